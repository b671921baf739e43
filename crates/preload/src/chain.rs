//! Call chains of acquisitions. An event names a chain by a number, which is made of the chain's addresses;
//! what the number means is told when it is new.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use tracewing::sync::events::{CallChain, CalledFrom, Image};
use tracewing::{Event as _, emit};
use tracewing_abi::locks::{ALL_CHAINS, CHAINS_VARIABLE, NO_CHAINS};

use crate::seen::{Seen, round};
use crate::take::Call;
use crate::unwind::{DEPTH, not_within_itself, unwind};
use crate::{address, image};

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

/// Tells by which chain the thread came to this acquisition.
#[inline(never)]
pub(crate) fn tell(call: Call) {
    if WANTED.load(Relaxed) == NONE || !CalledFrom::class().is_on() {
        return;
    }
    not_within_itself(|| {
        let mut frames = [0; DEPTH];
        let count = unwind(call.caller, &mut frames);
        let frames = &frames[..count];
        let chain = hash(frames.iter().copied());
        if TOLD.is_due(chain) {
            frames.iter().for_each(|frame| tell_image(*frame));
            emit!(CallChain { chain, frames });
        }
        emit!(CalledFrom { lock: address(call.lock), chain });
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

/// A number for numbers: never 0, and so wide that two chains do not share one.
pub(crate) fn hash(numbers: impl Iterator<Item = u64>) -> u64 {
    // Multiply and fold, with an odd constant whose bits look random.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |hash: u64, number: u64| {
        let product = u128::from(hash ^ number ^ FACTOR) * u128::from(FACTOR);
        (product as u64) ^ ((product >> 64) as u64)
    };
    numbers.fold(FACTOR.rotate_left(31), fold).max(1)
}
