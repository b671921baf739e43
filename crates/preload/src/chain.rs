//! Call chains of acquisitions. An event names a chain by a number computed from the chain's addresses; a new
//! number is described once.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use tracewing::sync::events::{CallChain, CalledFrom, Image};
use tracewing::{Event as _, emit};
use tracewing_abi::locks::{ALL_CHAINS, CHAINS_VARIABLE, NO_CHAINS};

use crate::hash::hash;
use crate::seen::{Seen, round};
use crate::unwind::{DEPTH, not_within_itself, unwind};
use crate::{Object, address, image};

static DESCRIBED: Seen = Seen::new();
static IMAGES_DESCRIBED: Seen = Seen::new();

/// The acquisitions whose chains are recorded.
static CHOICE: AtomicU8 = AtomicU8::new(CONTENDED);
const NONE: u8 = 0;
const CONTENDED: u8 = 1;
const ALL: u8 = 2;

/// Reads the setting from the environment. Must be called while the library is loaded.
pub(crate) fn prepare() {
    let choice = match std::env::var(CHAINS_VARIABLE).as_deref() {
        Ok(ALL_CHAINS) => ALL,
        Ok(NO_CHAINS) => NONE,
        _ => CONTENDED,
    };
    CHOICE.store(choice, Relaxed); // alone: nothing else goes with it
}

/// Whether chains of all acquisitions are recorded, not only of those that wait.
#[inline(always)]
pub(crate) fn of_all() -> bool {
    CHOICE.load(Relaxed) == ALL
}

/// Emits the call chain of a lock acquisition, in a function that returns to `caller`.
#[inline(never)]
pub(crate) fn record(lock: *mut Object, caller: u64) {
    if CHOICE.load(Relaxed) == NONE || !CalledFrom::class().is_on() {
        return;
    }
    not_within_itself(|| {
        let mut frames = [0; DEPTH];
        let count = unwind(caller, &mut frames);
        let frames = &frames[..count];
        let chain = hash(frames.iter().copied());
        if DESCRIBED.is_due(chain) {
            frames.iter().for_each(|frame| describe_image(*frame));
            emit!(CallChain { chain, frames });
        }
        emit!(CalledFrom { lock: address(lock), chain });
    });
}

/// Pages of code from which the program called lately, each with its round at that time; two that share an
/// entry displace each other.
static CALLERS: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The address from which the program calls; its file is described first, if it may be new.
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
    describe_image(caller);
    entry.store(number, Relaxed); // last, for a concurrent caller; unordered: that caller may still be earlier
}

/// Describes the file that contains the code at an address.
fn describe_image(address: u64) {
    if Image::class().is_on() {
        image::describe(
            address,
            |number| IMAGES_DESCRIBED.is_due(number),
            |begin, end, bias, path| emit!(Image { begin, end, bias, path }),
        );
    }
}
