//! How many threads are between a look at a slot and their last access to what it names, counted in a few
//! words by CPU once the process has taken part in a recording.

use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::*, fence};

use super::system;
use core::time::Duration;

/// Number of looks, a millisecond apart, after which threads that have not left are assumed to be
/// stopped.
const PATIENCE: usize = 200;

#[repr(C, align(64))]
struct Count(AtomicI64);

type Counts = [Count; 32];

/// Zeroed in a forked child, in which those other threads are not.
static COUNTS: AtomicPtr<Counts> = AtomicPtr::new(core::ptr::null_mut());

fn counts() -> Option<&'static Counts> {
    // Acquire, with the release in `prepare`. SAFETY: null, or a page that is never unmapped; zeroes are
    // valid.
    unsafe { COUNTS.load(Acquire).as_ref() }
}

/// A visit, counted while the value lives.
pub(super) struct Counted(&'static AtomicI64);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release); // with `wait_for_end`: the visitor's accesses come first
    }
}

pub(super) fn count() -> Option<Counted> {
    let counts = counts()?;
    let count = &counts[system::current_cpu() % counts.len()].0;
    count.fetch_add(1, Relaxed);
    fence(SeqCst); // with `wait_for_end`: it sees the count, or the visitor sees what has changed
    Some(Counted(count))
}

/// Makes visits be counted from now on.
pub(super) fn prepare() -> bool {
    if counts().is_some() {
        return true;
    }
    let Some(page) = system::map_wiped_on_fork(size_of::<Counts>()) else { return false };
    // Release, with the acquire load in `counts`.
    if COUNTS.compare_exchange(core::ptr::null_mut(), page.as_ptr().cast(), AcqRel, Relaxed).is_err() {
        // SAFETY: mapped here, and no other code has its address.
        unsafe { system::unmap(page, size_of::<Counts>()) };
    }
    true
}

/// Waits until all visits that began before have ended; `false` if some do not.
pub(super) fn wait_for_end() -> bool {
    let Some(counts) = counts() else { return true };
    fence(SeqCst); // with `count`
    (0..PATIENCE).any(|look| {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Acquire, with the release of `Counted`'s drop.
        counts.iter().map(|count| count.0.load(Acquire)).sum::<i64>() == 0
    })
}
