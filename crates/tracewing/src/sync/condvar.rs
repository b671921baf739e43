//! The condition variable. A thread that waits for one does not hold the mutex in the meantime.

use std::sync::{self, LockResult, PoisonError, WaitTimeoutResult};
use std::time::Duration;

use super::call::{Call, TIMED_OUT, address};
use super::events::{ConditionSignalled, ConditionWait, ConditionWoken, Kind};
use super::held::{Held, hold};
use super::mutex::MutexGuard;
use crate::emit;

/// An instrumented [`std::sync::Condvar`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

/// A wait that has ended, with the guard and whether it has timed out.
type Timed<G> = LockResult<(G, WaitTimeoutResult)>;

impl Condvar {
    /// As the standard library's.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// The mutex is poisoned.
    #[track_caller]
    pub fn wait<'a, T>(&self, held: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (lock, guard) = held.into_unrecorded();
        self.waits(lock);
        let result = self.0.wait(guard);
        self.woken(lock, 0);
        hold(lock, result)
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// The mutex is poisoned.
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut held: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut held) {
            held = self.wait(held)?;
        }
        Ok(held)
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// The mutex is poisoned.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        held: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> Timed<MutexGuard<'a, T>> {
        let (lock, guard) = held.into_unrecorded();
        self.waits(lock);
        self.timed(lock, self.0.wait_timeout(guard, timeout))
    }

    /// Like the standard library's; recorded as one wait.
    ///
    /// # Errors
    /// The mutex is poisoned.
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        held: MutexGuard<'a, T>,
        timeout: Duration,
        condition: F,
    ) -> Timed<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        let (lock, guard) = held.into_unrecorded();
        self.waits(lock);
        self.timed(lock, self.0.wait_timeout_while(guard, timeout, condition))
    }

    /// As the standard library's.
    #[track_caller]
    pub fn notify_one(&self) {
        self.signals(false);
        self.0.notify_one();
    }

    /// As the standard library's.
    #[track_caller]
    pub fn notify_all(&self) {
        self.signals(true);
        self.0.notify_all();
    }

    #[inline(always)]
    #[track_caller]
    fn waits(&self, lock: u64) {
        let call = Call::new(self, Kind::Mutex);
        emit!(ConditionWait { condition: address(self), lock, caller: call.caller() });
    }

    #[inline(always)]
    fn woken(&self, lock: u64, error: i32) {
        emit!(ConditionWoken { condition: address(self), lock, error });
    }

    #[inline(always)]
    #[track_caller]
    fn signals(&self, all: bool) {
        let call = Call::new(self, Kind::Mutex);
        emit!(ConditionSignalled { condition: address(self), caller: call.caller(), all });
    }

    fn timed<G>(&self, lock: u64, result: Timed<G>) -> Timed<Held<G>> {
        let timed_out = match &result {
            Ok((_, result)) => result.timed_out(),
            Err(poisoned) => poisoned.get_ref().1.timed_out(),
        };
        self.woken(lock, if timed_out { TIMED_OUT } else { 0 });
        let held = |(guard, result)| (Held::new(lock, guard), result);
        result.map(held).map_err(|poisoned| PoisonError::new(held(poisoned.into_inner())))
    }
}
