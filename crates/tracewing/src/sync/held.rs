//! Guards: a lock that is held; its release is recorded when the guard is dropped.

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use super::call::released;

/// A guard of the standard library's.
#[must_use = "the lock is released when this is dropped"]
pub struct Held<G> {
    // Dropped first: the release is recorded before it happens.
    release: OnRelease,
    guard: G,
}

struct OnRelease {
    lock: u64,
}

impl Drop for OnRelease {
    #[inline(always)]
    fn drop(&mut self) {
        released(self.lock);
    }
}

impl<G> Held<G> {
    #[inline(always)]
    pub(super) fn new(lock: u64, guard: G) -> Self {
        Self { release: OnRelease { lock }, guard }
    }

    /// The lock and the guard, whose release will not be recorded.
    pub(super) fn into_unrecorded(self) -> (u64, G) {
        let lock = self.release.lock;
        core::mem::forget(self.release);
        (lock, self.guard)
    }
}

/// The guard of a result, poisoned or not.
#[inline(always)]
pub(super) fn hold<G>(lock: u64, result: LockResult<G>) -> LockResult<Held<G>> {
    match result {
        Ok(guard) => Ok(Held::new(lock, guard)),
        Err(poisoned) => Err(PoisonError::new(Held::new(lock, poisoned.into_inner()))),
    }
}

/// What was had at once, poisoned or not.
#[inline(always)]
pub(super) fn had<G>(result: TryLockResult<G>) -> Option<LockResult<G>> {
    match result {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// The other way round.
#[inline(always)]
pub(super) fn tried<G>(lock: u64, had: Option<LockResult<G>>) -> TryLockResult<Held<G>> {
    match had {
        Some(result) => hold(lock, result).map_err(TryLockError::Poisoned),
        None => Err(TryLockError::WouldBlock),
    }
}

impl<G: Deref> Deref for Held<G> {
    type Target = G::Target;

    #[inline(always)]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for Held<G> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<G: fmt::Debug> fmt::Debug for Held<G> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(formatter)
    }
}

impl<G: fmt::Display> fmt::Display for Held<G> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(formatter)
    }
}
