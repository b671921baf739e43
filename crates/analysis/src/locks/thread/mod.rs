//! A thread and its locks: from requests, acquisitions and releases to waits and critical sections.

mod holds;
mod kernel;
mod outcome;
#[cfg(test)]
mod tests;

use tracewing_units::{Caller, Chain, LockAddress, Pid, Tid, Timestamp};

pub(super) use self::holds::OF_HELD;
use self::holds::{GivenBack, Held, Holds};
pub(super) use self::outcome::{Acquisition, By, Hold, OF_OUTCOME, Outcome, Request, Wait};
use super::account::{Kind, Party};
use super::event::LockEvent;
use crate::stored::stored;

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
    held: Holds,
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

stored! {
    OF_THREAD:
    Thread {
        process ended exits request chain spins by held release condition kernel futex interrupted
    }
}

impl Thread {
    /// Whether it holds more locks than are followed, as only bytes can say that are not those of a thread.
    pub(super) fn holds_too_much(&self) -> bool {
        self.held.are_too_many()
    }

    /// Locks of the kernel belong to no process.
    pub(super) fn forget_process_of_kernels(&mut self) {
        if let Some(request) = &mut self.kernel {
            request.acquisition.by.process = None;
        }
    }

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
        self.settle_futex(event, report);
        if !self.settle_release(event, report) {
            self.moves(event, continues, at, report);
        }
    }

    /// Moves it from state to state, once all that the event settles is. `continues`: an interrupted wait for
    /// a futex does. `docs/explanation/state.md` draws the states.
    fn moves(&mut self, event: &LockEvent, continues: bool, at: Timestamp, report: &mut impl FnMut(Outcome)) {
        match *event {
            // From every state: a request that is open has lost its end; all else stays.
            LockEvent::Requested { lock, caller, kind, owner, .. } => {
                self.requested(self.request(lock, kind, caller, owner, at), report);
            }
            // In every state, which stays: they describe the call that the thread is in.
            LockEvent::Spun { spins } => self.spins = Some(spins),
            LockEvent::CalledFrom { chain } => self.chain = Some(chain),
            // From a request, or from none: it did not have to wait, or the request is missing.
            LockEvent::Acquired { lock, caller, kind, waited } => {
                let request = self.request_of(lock, report);
                report(self.acquired((lock, kind, caller), request, waited, at));
            }
            // From a request, or from none: a try does not wait.
            LockEvent::Refused { lock, caller, kind, .. } => {
                let request = self.request_of(lock, report);
                report(self.refused((lock, kind, caller), request, at));
            }
            // From a wait for a condition: it was cancelled meanwhile, and has had the mutex again since an
            // unknown time. From a wait at a barrier: that one's end is missing.
            LockEvent::Released { .. } if self.condition.take().is_some() => report(Outcome::Incomplete),
            // From all others: it holds the lock, or its acquisition is missing. The next event shows whether
            // it has really given it back.
            LockEvent::Released { lock } => self.release = Some(self.held.give_back(lock, at)),
            // From every state, usually as the holder of the mutex, which it gives back first.
            LockEvent::ConditionWait { condition, lock, caller } => {
                let held = self.give_back_for_condition(lock, at, report);
                let request = self.request(condition, Kind::Condition, caller, None, at);
                self.waits_for(request, held, report);
            }
            // From every state; nothing is given back for it.
            LockEvent::BarrierWait { barrier, caller } => {
                self.waits_for(self.request(barrier, Kind::Barrier, caller, None, at), None, report);
            }
            // From the wait for the same object; otherwise one of the two is missing.
            LockEvent::ConditionWoken { condition: object, came, .. } => {
                self.condition_ended(object, came, at, report);
            }
            LockEvent::BarrierPassed { barrier } => self.condition_ended(barrier, true, at, report),
            // What the kernel does for it: apart from its program's waits, except that a futex may be part of
            // one.
            LockEvent::KernelWait { lock, kind } => self.kernel_waits(lock, kind, at),
            LockEvent::KernelHas { lock } => self.kernel_has(lock, at, report),
            LockEvent::FutexWait { address } => self.futex_waits(address, continues, at, report),
            LockEvent::FutexEnd { result } => self.futex_ended(result, at, report),
            // In every state, which stays. `NotReleased` finds no release before it: that one is missing, and
            // nothing has changed. All others are no step of a lock's use, or are handled by the caller.
            LockEvent::NotReleased { .. }
            | LockEvent::Exits
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
        // From every state, to one without anything: the thread that has ended, or the program of one that
        // exits, does nothing more. The kernel still acts for a thread that exits.
        if let Some(ended) = self.ended.or(self.exits.filter(|_| !event.is_kernels())) {
            self.finish(ended, &mut |outcome| {
                report(outcome);
                if let Outcome::Unended { acquisition } = outcome {
                    report(Outcome::Abandoned { acquisition });
                }
            });
        }
    }

    /// Settles the pending release: it is certain unless this event takes it back. Returns whether the event
    /// does that, and thus needs no further handling.
    fn settle_release(&mut self, event: &LockEvent, report: &mut impl FnMut(Outcome)) -> bool {
        match (self.release.take(), event) {
            // Given back, and the very next event says that it was not: it holds the lock on.
            (Some(GivenBack::Ended(held, _) | GivenBack::Inner(held)), LockEvent::NotReleased { lock })
                if held.acquisition.lock == *lock =>
            {
                self.held.add(held);
                return true;
            }
            // It did not hold the lock, so the release failed with reason: nothing is missing.
            (Some(GivenBack::Unmatched), LockEvent::NotReleased { .. }) => return true,
            // Given back: the critical section has ended.
            (Some(GivenBack::Ended(held, end)), _) => report(ended(held, end)),
            // Given back without having been acquired: that event is missing.
            (Some(GivenBack::Unmatched), _) => report(Outcome::Incomplete),
            // It still holds the lock, or has released none: no section ends.
            (Some(GivenBack::Inner(_)) | None, _) => {}
        }
        false
    }

    fn requested(&mut self, request: Request, report: &mut impl FnMut(Outcome)) {
        // One call for a lock ends before the next begins: from another request, the end of that is missing.
        if self.request.replace(request).is_some() {
            report(Outcome::Incomplete);
        }
        self.spins = None;
    }

    /// The open request, which a call for this lock ends. That of another lock ends, too, as calls do not
    /// nest: its own end is missing, and its time is not this wait.
    fn request_of(&mut self, lock: LockAddress, report: &mut impl FnMut(Outcome)) -> Option<Request> {
        let request = self.request.take()?;
        let is_its = request.acquisition.lock == lock;
        if !is_its {
            report(Outcome::Incomplete);
        }
        is_its.then_some(request)
    }

    /// The call for the lock ends, after a wait or without one: the thread holds it.
    fn acquired(
        &mut self,
        (lock, kind, caller): (LockAddress, Kind, Caller),
        request: Option<Request>,
        waited: bool,
        at: Timestamp,
    ) -> Outcome {
        let acquisition = Acquisition { lock, kind, caller, chain: self.chain.take(), by: self.by };
        let depth = self.held.depth();
        // What no thread can hold (a semaphore), and what is beyond the limit, is not followed.
        let hold = match kind.is_held() {
            true => self.held.add(Held { acquisition, at, before: false }),
            false => Hold::None,
        };
        Outcome::Acquired {
            acquisition,
            wait: Wait::new(request.map(|request| at - request.at), waited),
            owner: request.and_then(Request::kept_by),
            spins: self.spins.take(),
            depth: Some(depth),
            hold,
        }
    }

    /// The call ends without the lock: it was a try, or its time limit has passed.
    /// What the thread holds stays.
    fn refused(
        &mut self,
        (lock, kind, caller): (LockAddress, Kind, Caller),
        request: Option<Request>,
        at: Timestamp,
    ) -> Outcome {
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
        match self.held.give_back(lock, at) {
            // It held the mutex once: it no longer does, for certain, as the call has begun to wait.
            GivenBack::Ended(held, end) => {
                report(ended(held, end));
                Some(held)
            }
            // It holds the mutex on, as often as it has not given it back.
            GivenBack::Inner(held) => Some(held),
            // The acquisition is missing; the release after the wait will be counted as incomplete.
            GivenBack::Unmatched => None,
        }
    }

    /// It waits for a condition or at a barrier. Such calls do not nest: if it waits already, the end of that
    /// wait is missing.
    fn waits_for(&mut self, request: Request, held: Option<Held>, report: &mut impl FnMut(Outcome)) {
        if self.condition.replace((request, held)).is_some() {
            report(Outcome::Incomplete);
        }
    }

    /// The wait for a condition or at a barrier is over: it `came`, or its time limit has passed. What was
    /// given back for it is held again.
    fn condition_ended(
        &mut self,
        condition: LockAddress,
        came: bool,
        at: Timestamp,
        report: &mut impl FnMut(Outcome),
    ) {
        match self.condition.take() {
            Some((request, held)) if request.acquisition.lock == condition => {
                report(if came { request.served(at, self.held.depth()) } else { request.refused(at) });
                if let Some(held) = held {
                    let hold = self.held.add(Held { at, before: false, ..held });
                    report(Outcome::HeldAgain { acquisition: held.acquisition, hold });
                }
            }
            // It waits for something else, whose end is missing, as is the beginning of what ends now.
            Some(_) => (0..2).for_each(|_| report(Outcome::Incomplete)),
            // It does not wait: the beginning is missing.
            None => report(Outcome::Incomplete),
        }
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
        self.held.begin();
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
        // No owner of a lock is searched for it in vain, of which there may be many: it holds the lock, or
        // has just given it back.
        let is_given_back =
            matches!(self.release, Some(GivenBack::Ended(held, _)) if held.acquisition.lock == lock);
        self.ended.is_none() && !is_given_back && self.held.of_lock(lock).is_some()
    }

    /// What it holds.
    pub(super) fn held(&self) -> impl Iterator<Item = &Acquisition> {
        self.held.iter().map(|held| &held.acquisition)
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

    /// Number of its requests and critical sections without an end. The last release may have been taken back
    /// by the next event.
    pub(super) fn unfinished(&self) -> u64 {
        let (request, condition) = (self.request.is_some(), self.condition.is_some());
        let release = matches!(self.release, Some(GivenBack::Ended(..) | GivenBack::Unmatched));
        let open = [request, condition, self.kernel.is_some(), self.futex.is_some(), release];
        open.into_iter().filter(|is_there| *is_there).count() as u64 + self.held.len() as u64
    }

    /// Makes the pending release certain.
    pub(super) fn settle(&mut self, report: &mut impl FnMut(Outcome)) {
        match self.release.take() {
            // As in `settle_release`, of the same states: no event takes the release back any more.
            Some(GivenBack::Ended(held, end)) => report(ended(held, end)),
            Some(GivenBack::Unmatched) => report(Outcome::Incomplete),
            Some(GivenBack::Inner(_)) | None => {}
        }
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
        // From every wait, and from every critical section: its end will not come.
        for (request, at) in requests {
            if let Some(request) = request {
                report(request.unserved(at));
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
