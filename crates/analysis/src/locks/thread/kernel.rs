//! What the kernel says of a thread's waits: for its own locks, and for futexes.

use super::{Caller, Kind, LockAddress, LockEvent, Outcome, Thread, Timestamp};

impl Thread {
    /// It waits for a lock of the kernel.
    pub(super) fn kernel_waits(&mut self, lock: LockAddress, kind: Kind, at: Timestamp) {
        // Waiting for it already: a mutex reports again when it goes from spinning to sleeping. Waiting for
        // none, or for another one: an interrupt may wait within a wait, whose end is incomplete then.
        let same = self.kernel.filter(|request| request.acquisition.lock == lock);
        self.kernel = same.or(Some(self.request(lock, kind, self.by.within, None, at)));
    }

    /// It has got a lock of the kernel, or has given it up.
    pub(super) fn kernel_has(&mut self, lock: LockAddress, at: Timestamp, report: &mut impl FnMut(Outcome)) {
        // From the wait for this lock. From none, or from the wait for another lock, the beginning is
        // missing; the other wait is dropped with it.
        let request = self.kernel.take().filter(|request| request.acquisition.lock == lock);
        report(request.map_or(Outcome::Incomplete, |request| request.served(at, 0)));
    }

    /// A system call waits for a futex; `continues`: as one did that a signal has interrupted.
    pub(super) fn futex_waits(
        &mut self,
        address: LockAddress,
        continues: bool,
        at: Timestamp,
        report: &mut impl FnMut(Outcome),
    ) {
        // From a request, or a wait for a condition or at a barrier: it is part of that wait. From an
        // interrupted wait for the same futex: that one continues. From all others, it is a wait of its own.
        if self.request.is_some() || self.condition.is_some() || continues {
            return;
        }
        let request = self.request(address, Kind::Futex, Caller::UNKNOWN, None, at);
        // From another wait for a futex: its end is missing.
        if self.futex.replace(request).is_some() {
            report(Outcome::Incomplete);
        }
    }

    /// The program continues after the system call that waits for a futex.
    pub(super) fn settle_futex(&mut self, event: &LockEvent, report: &mut impl FnMut(Outcome)) {
        let is_of_program =
            !event.is_kernels() && !matches!(event, LockEvent::FutexWait { .. } | LockEvent::FutexEnd { .. });
        // From a wait for a futex: its end is missing, and a later one is not its own. From all other states,
        // nothing is to be settled.
        if is_of_program && self.futex.take().is_some() {
            report(Outcome::Incomplete);
        }
    }

    /// The system call that waits for a futex returns `result`: 0, or an error number, negative.
    pub(super) fn futex_ended(&mut self, result: i64, at: Timestamp, report: &mut impl FnMut(Outcome)) {
        const NOT_AS_EXPECTED: i64 = -11; // EAGAIN: it did not sleep
        // The kernel's ERESTARTSYS to ERESTART_RESTARTBLOCK, of which programs see nothing or EINTR. From a
        // wait for a futex: the next action shows whether it continues. From none: no wait is interrupted.
        if matches!(result, -516..=-512) {
            self.interrupted = self.futex.map(|_| at);
            return;
        }
        match self.futex.take() {
            // From a wait: it was woken.
            Some(request) if result == 0 => report(request.served(at, self.held.depth())),
            // From a wait: it has ended without a wake, such as by its time limit.
            Some(request) if result != NOT_AS_EXPECTED => report(request.refused(at)),
            // From a wait that was none; or from no wait: the call was part of another wait, or woke others.
            Some(_) | None => {}
        }
    }

    /// The thread's next action shows whether an interrupted wait continues; the kernel's actions for it show
    /// nothing. Returns whether it does.
    pub(super) fn settle_interrupted(&mut self, event: &LockEvent, report: &mut impl FnMut(Outcome)) -> bool {
        if event.is_kernels() {
            return false;
        }
        // From all states but the interrupted one, nothing is to be settled.
        let Some((at, request)) = self.interrupted.take().zip(self.futex) else { return false };
        // The same call again: it waits as before. Anything else: the wait has ended when it was interrupted.
        let continues = *event == LockEvent::FutexWait { address: request.acquisition.lock };
        if !continues {
            self.futex = None;
            report(request.refused(at));
        }
        continues
    }

    /// Events of the kernel are missing: its waits that are in progress may have ended, and what ends one may
    /// have belonged to another. Returns how many these were.
    pub(in super::super) fn doubt_kernels(&mut self) -> u64 {
        self.interrupted = None;
        [self.kernel.take(), self.futex.take()].into_iter().flatten().count() as u64
    }
}
