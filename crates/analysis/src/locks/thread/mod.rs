//! A thread and its locks: from requests, acquisitions and releases to waits and critical sections.

mod outcome;
#[cfg(test)]
mod tests;

use super::places::{Caller, Chain};
use tracewing_units::{LockAddress, Pid, Tid, Timestamp};

pub(super) use self::outcome::{Acquisition, By, Outcome, Request, Wait};
use super::account::{Kind, Party};
use super::event::LockEvent;

/// A lock that the thread has.
#[derive(Debug, Clone, Copy)]
struct Held {
    acquisition: Acquisition,
    at: Timestamp,
    /// Whether that was before the analysed range.
    before: bool,
}

/// The last release, which the next event may take back.
#[derive(Debug, Clone, Copy)]
enum GivenBack {
    /// Of the last hold of its lock, and when it ended.
    Ended(Held, Timestamp),
    /// Of a recursive lock that the thread still holds.
    Inner(Held),
    /// Of a lock that it did not hold.
    Unmatched,
}

/// Maximum number of locks that are followed per thread.
const MOST: usize = 1 << 10;

/// The locks that a thread holds, waits for, and has just released.
#[derive(Debug, Clone, Default)]
pub(super) struct Thread {
    /// Its process, if reported.
    pub(super) process: Option<Pid>,
    /// When it ended; a later event belongs to another thread that reuses its number.
    pub(super) ended: Option<Timestamp>,
    /// When it began to exit, which takes long on a busy machine: it may wait for locks of the kernel
    /// meanwhile, and no longer for any of its program.
    exits: Option<Timestamp>,
    request: Option<Request>,
    chain: Option<Chain>,
    spins: Option<u64>,
    by: By,
    held: Vec<Held>,
    release: Option<GivenBack>,
    /// The condition variable or barrier that it waits for, and what it gave back for that.
    condition: Option<(Request, Option<Held>)>,
    /// A lock of the kernel's.
    kernel: Option<Request>,
    /// A futex, if no event shows which lock it is part of.
    futex: Option<Request>,
    /// When a signal has interrupted the wait for it: it continues if the thread's next action is the same
    /// call, and has no end if the thread does nothing more.
    interrupted: Option<Timestamp>,
}

impl Thread {
    /// Handles an event of the thread; `report` receives the results.
    pub(super) fn event(
        &mut self,
        event: &LockEvent,
        by: By,
        at: Timestamp,
        report: &mut impl FnMut(Outcome),
    ) {
        self.settle_end(event, report);
        self.by = by;
        let continues = self.settle_interrupted(event, report);
        if self.settle_release(event, report) {
            return;
        }
        match *event {
            LockEvent::Requested { lock, caller, kind, owner, .. } => {
                self.requested(self.request(lock, kind, caller, owner, at), report);
            }
            LockEvent::Spun { spins } => self.spins = Some(spins),
            LockEvent::CalledFrom { chain } => self.chain = Some(chain),
            LockEvent::Acquired { lock, caller, kind, waited } => {
                report(self.acquired((lock, kind, caller), waited, at));
            }
            LockEvent::Refused { lock, caller, kind, .. } => report(self.refused((lock, kind, caller), at)),
            // It was cancelled while it waited for a condition, and has had the mutex again since an unknown
            // time.
            LockEvent::Released { .. } if self.condition.take().is_some() => report(Outcome::Incomplete),
            LockEvent::Released { lock } => self.release = Some(self.give_back(lock, at)),
            LockEvent::ConditionWait { condition, lock, caller } => {
                let held = self.give_back_for_condition(lock, at, report);
                self.condition = Some((self.request(condition, Kind::Condition, caller, None, at), held));
            }
            LockEvent::ConditionWoken { condition, .. } => self.condition_came(condition, at, report),
            LockEvent::BarrierWait { barrier, caller } => {
                self.condition = Some((self.request(barrier, Kind::Barrier, caller, None, at), None));
            }
            LockEvent::BarrierPassed { barrier } => self.condition_came(barrier, at, report),
            LockEvent::KernelWait { lock, kind } => self.kernel_waits(lock, kind, at),
            LockEvent::KernelHas { lock } => {
                let request = self.kernel.take().filter(|request| request.acquisition.lock == lock);
                report(request.map_or(Outcome::Incomplete, |request| request.served(at, 0)));
            }
            // A futex wait of a lock that events report is part of the wait for that lock.
            LockEvent::FutexWait { address }
                if self.request.is_none() && self.condition.is_none() && !continues =>
            {
                self.futex = Some(self.request(address, Kind::Futex, Caller::UNKNOWN, None, at));
            }
            LockEvent::FutexEnd { result } => self.futex_ended(result, at, report),
            LockEvent::FutexWait { .. }
            | LockEvent::Exits
            | LockEvent::NotReleased { .. }
            | LockEvent::CallChain { .. }
            | LockEvent::Image { .. }
            | LockEvent::Place { .. }
            | LockEvent::Origin { .. }
            | LockEvent::Parked
            | LockEvent::Shadowed { .. } => {}
        }
    }

    /// An event after its end is of another thread with its number.
    fn settle_end(&mut self, event: &LockEvent, report: &mut impl FnMut(Outcome)) {
        if let Some(ended) = self.ended.or(self.exits.filter(|_| !event.is_kernels())) {
            self.finish(ended, report);
        }
    }

    fn kernel_waits(&mut self, lock: LockAddress, kind: Kind, at: Timestamp) {
        // A mutex reports again when it goes from spinning to sleeping.
        let same = self.kernel.filter(|request| request.acquisition.lock == lock);
        self.kernel = same.or(Some(self.request(lock, kind, self.by.within, None, at)));
    }

    /// Settles the pending release: it is certain unless this event takes it back. Returns whether the event
    /// does that, and thus needs no further handling.
    fn settle_release(&mut self, event: &LockEvent, report: &mut impl FnMut(Outcome)) -> bool {
        match (self.release.take(), event) {
            (Some(GivenBack::Ended(held, _) | GivenBack::Inner(held)), LockEvent::NotReleased { lock })
                if held.acquisition.lock == *lock =>
            {
                self.held.push(held);
                return true;
            }
            (Some(GivenBack::Unmatched), LockEvent::NotReleased { .. }) => return true,
            (Some(GivenBack::Ended(held, end)), _) => report(ended(held, end)),
            (Some(GivenBack::Unmatched), _) => report(Outcome::Incomplete),
            (Some(GivenBack::Inner(_)) | None, _) => {}
        }
        false
    }

    fn requested(&mut self, request: Request, report: &mut impl FnMut(Outcome)) {
        if self.request.replace(request).is_some() {
            report(Outcome::Incomplete);
        }
        self.spins = None;
    }

    /// The call for the lock ends, after a wait or without one: the thread holds it.
    fn acquired(
        &mut self,
        (lock, kind, caller): (LockAddress, Kind, Caller),
        waited: bool,
        at: Timestamp,
    ) -> Outcome {
        let request = self.request.take().filter(|request| request.acquisition.lock == lock);
        let acquisition = Acquisition { lock, kind, caller, chain: self.chain.take(), by: self.by };
        let depth = self.depth();
        if kind.is_held() && self.held.len() < MOST {
            self.held.push(Held { acquisition, at, before: false });
        }
        Outcome::Acquired {
            acquisition,
            wait: Wait::new(request.map(|request| at - request.at), waited),
            owner: request.and_then(Request::kept_by),
            spins: self.spins.take(),
            depth: Some(depth),
        }
    }

    /// The call ends without the lock: it was a try, or its time limit has passed.
    fn refused(&mut self, (lock, kind, caller): (LockAddress, Kind, Caller), at: Timestamp) -> Outcome {
        let request = self.request.take().filter(|request| request.acquisition.lock == lock);
        Outcome::Refused {
            acquisition: Acquisition { lock, kind, caller, chain: self.chain.take(), by: self.by },
            wait: request.map(|request| at - request.at),
            at,
            owner: request.and_then(|request| request.owner),
            spins: self.spins.take(),
        }
    }

    /// The mutex that a wait for a condition gives back, to have it again after the wait. The critical
    /// section has ended, unless the thread has the mutex recursively.
    fn give_back_for_condition(
        &mut self,
        lock: LockAddress,
        at: Timestamp,
        report: &mut impl FnMut(Outcome),
    ) -> Option<Held> {
        match self.give_back(lock, at) {
            GivenBack::Ended(held, end) => {
                report(ended(held, end));
                Some(held)
            }
            GivenBack::Inner(held) => Some(held),
            GivenBack::Unmatched => None,
        }
    }

    /// The wait for a condition or at a barrier is over; what was given back for it is held again.
    fn condition_came(&mut self, condition: LockAddress, at: Timestamp, report: &mut impl FnMut(Outcome)) {
        let waited = self.condition.take();
        if let Some((request, held)) = waited.filter(|(request, _)| request.acquisition.lock == condition) {
            report(request.served(at, self.depth()));
            self.held.extend(held.map(|held| Held { at, before: false, ..held }));
        }
    }

    /// The system call that waits for a futex returns `result`: 0, or an error number, negative.
    fn futex_ended(&mut self, result: i64, at: Timestamp, report: &mut impl FnMut(Outcome)) {
        const NOT_AS_EXPECTED: i64 = -11; // EAGAIN: it did not sleep
        // The kernel's ERESTARTSYS to ERESTART_RESTARTBLOCK, of which programs see nothing or EINTR.
        if matches!(result, -516..=-512) {
            self.interrupted = self.futex.map(|_| at);
            return;
        }
        match self.futex.take() {
            Some(request) if result == 0 => report(request.served(at, self.depth())),
            Some(request) if result != NOT_AS_EXPECTED => report(request.refused(at)),
            _ => {}
        }
    }

    /// The thread's next action shows whether an interrupted wait continues; the kernel's actions for it show
    /// nothing.
    fn settle_interrupted(&mut self, event: &LockEvent, report: &mut impl FnMut(Outcome)) -> bool {
        if event.is_kernels() {
            return false;
        }
        let Some((at, request)) = self.interrupted.take().zip(self.futex) else { return false };
        let continues = *event == LockEvent::FutexWait { address: request.acquisition.lock };
        if !continues {
            self.futex = None;
            report(request.refused(at));
        }
        continues
    }

    fn request(
        &self,
        lock: LockAddress,
        kind: Kind,
        caller: Caller,
        owner: Option<Tid>,
        at: Timestamp,
    ) -> Request {
        let acquisition = Acquisition { lock, kind, caller, chain: None, by: self.by };
        Request { acquisition, owner, holder: None, at }
    }

    /// The analysed range begins now: waits in progress begin here.
    pub(super) fn begin(&mut self, at: Timestamp, report: &mut impl FnMut(Outcome)) {
        self.held.iter_mut().for_each(|held| held.before = true);
        let condition = self.condition.as_mut().map(|(request, _)| request);
        let requests = [self.request.as_mut(), condition, self.kernel.as_mut(), self.futex.as_mut()];
        for request in requests.into_iter().flatten() {
            request.at = at;
            report(Outcome::Incomplete);
        }
    }

    /// What it waits for now, if it is something that a party can hold.
    pub(super) fn waits(&self) -> Option<Request> {
        let request = self.request?;
        Some(Request { acquisition: Acquisition { chain: self.chain, ..request.acquisition }, ..request })
    }

    /// Whether it has this lock.
    pub(super) fn has(&self, lock: LockAddress) -> bool {
        self.ended.is_none() && self.held.iter().any(|held| held.acquisition.lock == lock)
    }

    /// It begins to exit.
    pub(super) fn exits(&mut self, at: Timestamp) {
        self.exits = Some(at);
    }

    /// Sets the holder of the requested lock.
    pub(super) fn learn_holder(&mut self, holder: Option<Party>) {
        if let Some(request) = &mut self.request {
            request.holder = holder;
        }
    }

    /// Number of its requests and critical sections without an end.
    pub(super) fn unfinished(&self) -> u64 {
        let requests =
            [self.request.is_some(), self.condition.is_some(), self.kernel.is_some(), self.futex.is_some()];
        requests.into_iter().filter(|is_there| *is_there).count() as u64 + self.held.len() as u64
    }

    /// Events of the kernel are missing: its waits that are in progress may have ended, and what ends one may
    /// have belonged to another. Returns how many these were.
    pub(super) fn doubt_kernels(&mut self) -> u64 {
        self.interrupted = None;
        [self.kernel.take(), self.futex.take()].into_iter().flatten().count() as u64
    }

    /// Makes the pending release certain.
    pub(super) fn settle(&mut self, report: &mut impl FnMut(Outcome)) {
        match self.release.take() {
            Some(GivenBack::Ended(held, end)) => report(ended(held, end)),
            Some(GivenBack::Unmatched) => report(Outcome::Incomplete),
            Some(GivenBack::Inner(_)) | None => {}
        }
    }

    /// Takes a lock from those that the thread has.
    fn give_back(&mut self, lock: LockAddress, at: Timestamp) -> GivenBack {
        let is_it = |held: &Held| held.acquisition.lock == lock;
        let Some(place) = self.held.iter().rposition(is_it) else { return GivenBack::Unmatched };
        let held = self.held.remove(place);
        if self.held.iter().any(is_it) { GivenBack::Inner(held) } else { GivenBack::Ended(held, at) }
    }

    /// How many locks it has.
    fn depth(&self) -> usize {
        let locks = self.held.iter().map(|held| held.acquisition.lock).enumerate();
        locks.filter(|(at, lock)| self.held[..*at].iter().all(|held| held.acquisition.lock != *lock)).count()
    }

    /// The last time at which it can have waited for a lock of its program, up to `at`.
    pub(super) fn until(&self, at: Timestamp) -> Timestamp {
        self.waited_to().map_or(at, |end| end.min(at))
    }

    /// When it began to exit, or else when it ended, if it did.
    pub(super) fn waited_to(&self) -> Option<Timestamp> {
        self.exits.or(self.ended)
    }

    /// Nothing is known any more, or the recording ends: what is not finished has no end. What the thread
    /// waited for since, it waited for until now, or until it ended itself.
    pub(super) fn finish(&mut self, at: Timestamp, report: &mut impl FnMut(Outcome)) {
        let (until, kernels_until) = (self.until(at), self.ended.map_or(at, |ended| ended.min(at)));
        self.settle(report);
        let request = self.waits();
        let Self { held, condition, kernel, futex, interrupted, .. } = std::mem::take(self);
        let requests = [
            (request, until),
            (condition.map(|(request, _)| request), until),
            (kernel, kernels_until),
            (futex, interrupted.unwrap_or(until)),
        ];
        for (request, at) in requests {
            if let Some(request) = request {
                report(request.refused(at));
                report(Outcome::Incomplete);
            }
        }
        held.iter().for_each(|held| report(Outcome::Unended { acquisition: held.acquisition }));
    }
}

fn ended(held: Held, at: Timestamp) -> Outcome {
    let length = (!held.before).then(|| at - held.at);
    Outcome::Held { acquisition: held.acquisition, begin: held.at, length }
}
