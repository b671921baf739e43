//! Call chains of acquisitions. An event names a chain by a number, which is made of the chain's addresses;
//! what the number means is told when it is new.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use tracewing::sync::events::{CallChain, CalledFrom, Image};
use tracewing::{Event as _, emit};
use tracewing_abi::locks::{ALL_CHAINS, CHAINS_VARIABLE, NO_CHAINS};

use crate::hash::hash;
use crate::seen::{Seen, round};
use crate::unwind::{DEPTH, not_within_itself, unwind};
use crate::{Object, address, image};

static TOLD: Seen = Seen::new();
static IMAGES_TOLD: Seen = Seen::new();

/// Of which acquisitions chains are wanted.
static WANTED: AtomicU8 = AtomicU8::new(CONTENDED);
const NONE: u8 = 0;
const CONTENDED: u8 = 1;
const ALL: u8 = 2;

/// Reads from the environment what is wanted. To be called while the library is loaded.
pub(crate) fn prepare() {
    let wanted = match std::env::var(CHAINS_VARIABLE).as_deref() {
        Ok(ALL_CHAINS) => ALL,
        Ok(NO_CHAINS) => NONE,
        _ => CONTENDED,
    };
    WANTED.store(wanted, Relaxed); // alone: nothing else goes with it
}

/// Whether chains of all acquisitions are wanted, not only of those that wait.
#[inline(always)]
pub(crate) fn of_all() -> bool {
    WANTED.load(Relaxed) == ALL
}

/// Emits the call chain by which the thread came to the acquisition of a lock, in a function that returns to
/// `caller`.
#[inline(never)]
pub(crate) fn tell(lock: *mut Object, caller: u64) {
    if WANTED.load(Relaxed) == NONE || !CalledFrom::class().is_on() {
        return;
    }
    not_within_itself(|| {
        let mut frames = [0; DEPTH];
        let count = unwind(caller, &mut frames);
        let frames = &frames[..count];
        let chain = hash(frames.iter().copied());
        if TOLD.is_due(chain) {
            frames.iter().for_each(|frame| tell_image(*frame));
            emit!(CallChain { chain, frames });
        }
        emit!(CalledFrom { lock: address(lock), chain });
    });
}

/// Pages of code from which the program was seen to call lately, each with the round at that time; two that
/// share an entry are looked up in turns.
static CALLERS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The address from which the program calls; which file that is from is told before, if that may be new.
#[inline(always)]
pub(crate) fn noted(caller: u64) -> u64 {
    const PAGE: u32 = 12;
    const PAGES: u32 = 47 - PAGE;
    let page = caller >> PAGE;
    let number = page ^ (round() << PAGES);
    let entry = &CALLERS[page as usize % CALLERS.len()];
    if entry.load(Relaxed) != number {
        note(entry, number, caller);
    }
    caller
}

#[cold]
#[inline(never)]
fn note(entry: &AtomicU64, number: u64, caller: u64) {
    tell_image(caller);
    entry.store(number, Relaxed); // behind, for who comes at the same time; but alone: that one may be earlier
}

/// Tells which file the code at an address is from.
fn tell_image(address: u64) {
    if Image::class().is_on() {
        image::tell(
            address,
            |number| IMAGES_TOLD.is_due(number),
            |begin, end, bias, path| emit!(Image { begin, end, bias, path }),
        );
    }
}
