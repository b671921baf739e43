//! One request for a lock: it is tried, tried again, waited for, and each step is recorded.

use core::hint::spin_loop;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::events::{Acquired, Kind, Place, Refused, Released, Requested, Spun};
use crate::agent::{changes, is_recorded};
use crate::emit;

/// How often a lock is tried before the thread waits, with pauses that double each time; the originals then
/// continue spinning for a moment, which is not counted.
const SPINS: u64 = 7;

/// `EBUSY` and `ETIMEDOUT`.
pub(super) const BUSY: i32 = libc::EBUSY;
pub(super) const TIMED_OUT: i32 = libc::ETIMEDOUT;

/// A call for a lock.
#[derive(Clone, Copy)]
pub(super) struct Call {
    lock: u64,
    place: &'static Location<'static>,
    kind: Kind,
}

impl Call {
    #[inline(always)]
    #[track_caller]
    pub(super) fn new<L: ?Sized>(lock: &L, kind: Kind) -> Self {
        Self::at(address(lock), kind)
    }

    /// The same for one that is elsewhere by now.
    #[inline(always)]
    #[track_caller]
    pub(super) fn at(lock: u64, kind: Kind) -> Self {
        Self { lock, place: Location::caller(), kind }
    }

    /// Takes the lock by `attempt`, which does not wait, or if that fails by `wait`.
    #[inline(always)]
    pub(super) fn take<G>(self, attempt: impl FnMut() -> Option<G>, wait: impl FnOnce() -> G) -> G {
        match self.take_in_time(attempt, || Some(wait())) {
            Some(guard) => guard,
            None => unreachable!("`wait` gives one"),
        }
    }

    /// The same with a `wait` that may give up.
    #[inline(always)]
    pub(super) fn take_in_time<G>(
        self,
        mut attempt: impl FnMut() -> Option<G>,
        wait: impl FnOnce() -> Option<G>,
    ) -> Option<G> {
        if !is_recorded() {
            return wait();
        }
        match attempt() {
            Some(guard) => {
                self.acquired(false);
                Some(guard)
            }
            None => self.take_slow(attempt, wait),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slow<G>(
        self,
        mut attempt: impl FnMut() -> Option<G>,
        wait: impl FnOnce() -> Option<G>,
    ) -> Option<G> {
        let Self { lock, kind, .. } = self;
        // The originals do not reveal the owner.
        emit!(Requested { lock, caller: self.caller(), kind, owner: 0 });
        let mut spins = 0;
        let mut guard = None;
        while guard.is_none() && spins < SPINS {
            (0..1_u32 << spins).for_each(|_| spin_loop());
            spins += 1;
            guard = attempt();
        }
        emit!(Spun { lock, spins });
        let guard = guard.or_else(wait);
        match guard {
            Some(_) => self.acquired(true),
            None => self.refused(TIMED_OUT),
        }
        guard
    }

    /// Takes the lock if it can be had at once.
    #[inline(always)]
    pub(super) fn attempt<G>(self, attempt: impl FnOnce() -> Option<G>) -> Option<G> {
        let guard = attempt();
        match guard {
            Some(_) => self.acquired(false),
            None => self.refused(BUSY),
        }
        guard
    }

    #[inline(always)]
    pub(super) fn acquired(self, waited: bool) {
        let Self { lock, kind, .. } = self;
        emit!(Acquired { lock, caller: self.caller(), kind, waited });
    }

    #[inline(always)]
    fn refused(self, error: i32) {
        let Self { lock, kind, .. } = self;
        emit!(Refused { lock, caller: self.caller(), kind, error });
    }

    /// The number of the calling place, which is recorded when it is new.
    #[inline(always)]
    pub(super) fn caller(self) -> u64 {
        let caller = address(self.place);
        let number = caller ^ (u64::from(changes()) << 48);
        // Addresses of equal alignment: their upper bits, by a multiplication, choose the entry.
        let place = &RECENT[(caller.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize];
        if place.load(Relaxed) != number {
            self.describe(place, number);
        }
        caller
    }

    /// Two threads may do so at the same time: then it is recorded twice.
    #[cold]
    #[inline(never)]
    fn describe(self, entry: &AtomicU64, number: u64) {
        entry.store(number, Relaxed); // alone: no other memory goes with it
        emit!(Place { caller: address(self.place), file: self.place.file(), line: self.place.line() });
    }
}

/// Places that were recorded recently, each with the number of changes at that time. Two that share an entry
/// are recorded alternately.
static RECENT: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The lock is released next: recorded before, since afterwards it may belong to another thread, or be gone.
#[inline(always)]
pub(super) fn released(lock: u64) {
    emit!(Released { lock });
}

/// The number of something in events: its address.
#[inline(always)]
pub(super) fn address<T: ?Sized>(of: &T) -> u64 {
    (&raw const *of).addr() as u64
}
