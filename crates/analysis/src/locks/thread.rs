//! A thread and its locks: from requests, acquisitions and releases to waits and critical sections.

use super::Kind;
use super::account::Party;
use super::event::LockEvent;
use crate::images::Epoch;
use tracewing_units::{Duration, Pid, Task, Tid, Timestamp};

/// An acquisition: lock, party and place, which [`Account`](super::Account)s are kept for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Acquisition {
    pub(super) lock: u64,
    pub(super) kind: Kind,
    /// Where the program called; 0 if unknown.
    pub(super) caller: u64,
    /// By which chain it came there.
    pub(super) chain: Option<u64>,
    /// The party, at both levels; 0: unknown, or none.
    pub(super) by: By,
}

/// The running party.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct By {
    /// Its process; `None` if unknown, and for the kernel's own locks, which belong to no process.
    pub(super) process: Option<Pid>,
    pub(super) tid: Tid,
    /// The user thread's number.
    pub(super) task: Task,
    /// For the kernel's own locks: what the kernel does there, as a caller.
    pub(super) within: u64,
    /// When, as far as the places in programs depend on it.
    pub(super) epoch: Epoch,
}

impl Default for By {
    fn default() -> Self {
        By { process: None, tid: Tid::IDLE, task: Task::NONE, within: 0, epoch: 0 }
    }
}

/// How long an acquisition waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wait {
    /// It had its lock at once.
    No,
    /// So long.
    For(Duration),
    /// The event that would say since when is not there.
    Unknown,
}

/// A result about a thread. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Told {
    /// It has the lock, or the condition came, or all came to the barrier: after this wait, if it had to.
    /// `owner` had the lock, if that is known. `spins`: how often it has tried before it slept. `depth`: how
    /// many other locks it has, where that is known.
    Acquired {
        acquisition: Acquisition,
        wait: Wait,
        owner: Option<Party>,
        spins: Option<u64>,
        depth: Option<usize>,
    },
    /// It did not get it, after this wait up to then.
    Refused {
        acquisition: Acquisition,
        wait: Option<Duration>,
        at: Timestamp,
        owner: Option<Tid>,
        spins: Option<u64>,
    },
    /// A critical section has ended, with its beginning and length; those of a section that began before the
    /// analysed range are unknown.
    Held { acquisition: Acquisition, begin: Timestamp, length: Option<Duration> },
    /// It has the lock, and no event says until when.
    Unended { acquisition: Acquisition },
    /// A beginning has no end, or an end no beginning.
    Incomplete,
}

/// A lock that the thread waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) acquisition: Acquisition,
    /// The owner of the lock, according to the lock; 0 if it does not say.
    pub(super) owner: Option<Tid>,
    /// The holder of the lock at that time, as other events show.
    pub(super) holder: Option<Party>,
    pub(super) at: Timestamp,
}

/// A lock that the thread has.
#[derive(Debug, Clone, Copy)]
struct Held {
    acquisition: Acquisition,
    at: Timestamp,
    /// Whether that was before what is analysed.
    before: bool,
}

/// The last release, which the next event may take back.
#[derive(Debug, Clone, Copy)]
enum GivenBack {
    /// Of this, the last one of its lock; with the length that it had.
    Ended(Held, Timestamp),
    /// Of a lock that the thread has still, recursively.
    Inner(Held),
    /// Of a lock that it did not have.
    Unmatched,
}

/// Locks that a thread can have at a time; more are not followed.
const MOST: usize = 1 << 10;

/// A thread's state.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Its process, if reported.
    pub(super) process: Option<Pid>,
    /// When it ended; a later event belongs to another thread that reuses its number.
    pub(super) ended: Option<Timestamp>,
    request: Option<Request>,
    chain: Option<u64>,
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
    /// Handles an event of the thread; `tell` receives the results.
    pub(super) fn event(&mut self, event: &LockEvent, by: By, at: Timestamp, tell: &mut impl FnMut(Told)) {
        if let Some(ended) = self.ended {
            self.finish(ended, tell);
        }
        self.by = by;
        let goes_on = self.settle_interrupted(event, tell);
        // A release is certain when the next event does not take it back.
        match (self.release.take(), event) {
            (Some(GivenBack::Ended(held, _) | GivenBack::Inner(held)), LockEvent::NotReleased { lock })
                if held.acquisition.lock == *lock =>
            {
                return self.held.push(held);
            }
            (Some(GivenBack::Unmatched), LockEvent::NotReleased { .. }) => return,
            (Some(GivenBack::Ended(held, end)), _) => tell(ended(held, end)),
            (Some(GivenBack::Unmatched), _) => tell(Told::Incomplete),
            (Some(GivenBack::Inner(_)) | None, _) => {}
        }
        match *event {
            LockEvent::Requested { lock, caller, kind, owner, .. } => {
                let request = self.request(lock, kind, caller, owner, at);
                if self.request.replace(request).is_some() {
                    tell(Told::Incomplete);
                }
                self.spins = None;
            }
            LockEvent::Spun { spins } => self.spins = Some(spins),
            LockEvent::CalledFrom { chain } => self.chain = Some(chain),
            LockEvent::Acquired { lock, caller, kind, waited } => {
                let request = self.request.take().filter(|request| request.acquisition.lock == lock);
                let acquisition = Acquisition { lock, kind, caller, chain: self.chain.take(), by };
                let depth = self.depth();
                tell(Told::Acquired {
                    acquisition,
                    wait: Wait::new(request.map(|request| at - request.at), waited),
                    owner: request.and_then(Request::kept_by),
                    spins: self.spins.take(),
                    depth: Some(depth),
                });
                if kind.is_held() && self.held.len() < MOST {
                    self.held.push(Held { acquisition, at, before: false });
                }
            }
            LockEvent::Refused { lock, caller, kind, .. } => {
                let request = self.request.take().filter(|request| request.acquisition.lock == lock);
                tell(Told::Refused {
                    acquisition: Acquisition { lock, kind, caller, chain: self.chain.take(), by },
                    wait: request.map(|request| at - request.at),
                    at,
                    owner: request.and_then(|request| request.owner),
                    spins: self.spins.take(),
                });
            }
            // It was cancelled while it waited for a condition, and has had the mutex again since an unknown
            // time.
            LockEvent::Released { .. } if self.condition.take().is_some() => tell(Told::Incomplete),
            LockEvent::Released { lock } => self.release = Some(self.give_back(lock, at)),
            LockEvent::ConditionWait { condition, lock, caller } => {
                let held = match self.give_back(lock, at) {
                    GivenBack::Ended(held, end) => {
                        tell(ended(held, end));
                        Some(held)
                    }
                    GivenBack::Inner(held) => Some(held),
                    GivenBack::Unmatched => None,
                };
                self.condition = Some((self.request(condition, Kind::Condition, caller, None, at), held));
            }
            LockEvent::ConditionWoken { condition, .. } => {
                let waited = self.condition.take();
                if let Some((request, held)) =
                    waited.filter(|(request, _)| request.acquisition.lock == condition)
                {
                    tell(request.served(at, self.depth()));
                    self.held.extend(held.map(|held| Held { at, before: false, ..held }));
                }
            }
            LockEvent::BarrierWait { barrier, caller } => {
                self.condition = Some((self.request(barrier, Kind::Barrier, caller, None, at), None));
            }
            LockEvent::BarrierPassed { barrier } => {
                let waited = self.condition.take();
                if let Some((request, _)) = waited.filter(|(request, _)| request.acquisition.lock == barrier)
                {
                    tell(request.served(at, self.depth()));
                }
            }
            LockEvent::KernelWait { lock, kind } => {
                // A mutex reports again when it goes from spinning to sleeping.
                let same = self.kernel.filter(|request| request.acquisition.lock == lock);
                self.kernel = same.or(Some(self.request(lock, kind, by.within, None, at)));
            }
            LockEvent::KernelHas { lock } => {
                let request = self.kernel.take().filter(|request| request.acquisition.lock == lock);
                tell(request.map_or(Told::Incomplete, |request| request.served(at, 0)));
            }
            // A futex wait of a lock that events report is part of the wait for that lock.
            LockEvent::FutexWait { address }
                if self.request.is_none() && self.condition.is_none() && !goes_on =>
            {
                self.futex = Some(self.request(address, Kind::Futex, 0, None, at));
            }
            LockEvent::FutexEnd { result } => {
                const NOT_AS_EXPECTED: i64 = -11; // EAGAIN: it did not sleep
                // The kernel's ERESTARTSYS to ERESTART_RESTARTBLOCK, of which programs see nothing or EINTR.
                if matches!(result, -516..=-512) {
                    self.interrupted = self.futex.map(|_| at);
                    return;
                }
                match self.futex.take() {
                    Some(request) if result == 0 => tell(request.served(at, self.depth())),
                    Some(request) if result != NOT_AS_EXPECTED => tell(request.refused(at)),
                    _ => {}
                }
            }
            LockEvent::FutexWait { .. }
            | LockEvent::NotReleased { .. }
            | LockEvent::CallChain { .. }
            | LockEvent::Image { .. }
            | LockEvent::Place { .. }
            | LockEvent::Origin { .. }
            | LockEvent::Parked
            | LockEvent::Shadowed { .. } => {}
        }
    }

    /// The thread's next action shows whether an interrupted wait continues; the kernel's actions for it show
    /// nothing.
    fn settle_interrupted(&mut self, event: &LockEvent, tell: &mut impl FnMut(Told)) -> bool {
        if matches!(event, LockEvent::KernelWait { .. } | LockEvent::KernelHas { .. }) {
            return false;
        }
        let Some((at, request)) = self.interrupted.take().zip(self.futex) else { return false };
        let goes_on = *event == LockEvent::FutexWait { address: request.acquisition.lock };
        if !goes_on {
            self.futex = None;
            tell(request.refused(at));
        }
        goes_on
    }

    fn request(&self, lock: u64, kind: Kind, caller: u64, owner: Option<Tid>, at: Timestamp) -> Request {
        let acquisition = Acquisition { lock, kind, caller, chain: None, by: self.by };
        Request { acquisition, owner, holder: None, at }
    }

    /// The analysed range begins now: waits in progress begin here.
    pub(super) fn begin(&mut self, at: Timestamp, tell: &mut impl FnMut(Told)) {
        self.held.iter_mut().for_each(|held| held.before = true);
        let condition = self.condition.as_mut().map(|(request, _)| request);
        let requests = [self.request.as_mut(), condition, self.kernel.as_mut(), self.futex.as_mut()];
        for request in requests.into_iter().flatten() {
            request.at = at;
            tell(Told::Incomplete);
        }
    }

    /// What it waits for now, if it is something that a party can hold.
    pub(super) fn waits(&self) -> Option<Request> {
        let request = self.request?;
        Some(Request { acquisition: Acquisition { chain: self.chain, ..request.acquisition }, ..request })
    }

    /// Whether it has this lock.
    pub(super) fn has(&self, lock: u64) -> bool {
        self.ended.is_none() && self.held.iter().any(|held| held.acquisition.lock == lock)
    }

    /// Sets the holder of the requested lock.
    pub(super) fn learn_holder(&mut self, holder: Option<Party>) {
        if let Some(request) = &mut self.request {
            request.holder = holder;
        }
    }

    /// How many requests and critical sections of it have no end yet.
    pub(super) fn unfinished(&self) -> u64 {
        let requests =
            [self.request.is_some(), self.condition.is_some(), self.kernel.is_some(), self.futex.is_some()];
        requests.into_iter().filter(|is_there| *is_there).count() as u64 + self.held.len() as u64
    }

    /// No event takes the last release back any more.
    pub(super) fn settle(&mut self, tell: &mut impl FnMut(Told)) {
        match self.release.take() {
            Some(GivenBack::Ended(held, end)) => tell(ended(held, end)),
            Some(GivenBack::Unmatched) => tell(Told::Incomplete),
            Some(GivenBack::Inner(_)) | None => {}
        }
    }

    /// Takes a lock from those that the thread has.
    fn give_back(&mut self, lock: u64, at: Timestamp) -> GivenBack {
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

    /// The last time at which it can have waited, up to `at`.
    pub(super) fn until(&self, at: Timestamp) -> Timestamp {
        self.ended.map_or(at, |ended| ended.min(at))
    }

    /// Nothing is known any more, or the recording ends: what is not finished has no end. What the thread
    /// waited for since, it waited for until now, or until it ended itself.
    pub(super) fn finish(&mut self, at: Timestamp, tell: &mut impl FnMut(Told)) {
        let at = self.until(at);
        self.settle(tell);
        let request = self.waits();
        let Self { held, condition, kernel, futex, interrupted, .. } = std::mem::take(self);
        let requests = [request, condition.map(|(request, _)| request), kernel].map(|request| (request, at));
        for (request, at) in requests.into_iter().chain([(futex, interrupted.unwrap_or(at))]) {
            if let Some(request) = request {
                tell(request.refused(at));
                tell(Told::Incomplete);
            }
        }
        held.iter().for_each(|held| tell(Told::Unended { acquisition: held.acquisition }));
    }
}

impl Told {
    /// The acquired or requested lock.
    pub(super) fn acquisition(&self) -> Option<&Acquisition> {
        match self {
            Self::Acquired { acquisition, .. }
            | Self::Refused { acquisition, .. }
            | Self::Held { acquisition, .. }
            | Self::Unended { acquisition } => Some(acquisition),
            Self::Incomplete => None,
        }
    }

    /// The part that a single event reports, without what needs a pair.
    pub(super) fn unpaired(self) -> Self {
        match self {
            Self::Acquired { acquisition, wait, spins, .. } => {
                let wait = if wait == Wait::No { Wait::No } else { Wait::Unknown };
                Self::Acquired { acquisition, wait, owner: None, spins, depth: None }
            }
            Self::Refused { acquisition, at, spins, .. } => {
                Self::Refused { acquisition, wait: None, at, owner: None, spins }
            }
            Self::Held { acquisition, begin, .. } => Self::Held { acquisition, begin, length: None },
            told @ (Self::Unended { .. } | Self::Incomplete) => told,
        }
    }
}

impl Wait {
    /// That of an acquisition which followed a request so long ago, if any is known, and `waited` by its own
    /// account.
    pub(super) fn new(request: Option<Duration>, waited: bool) -> Self {
        match (request, waited) {
            (Some(ns), _) => Self::For(ns),
            (None, true) => Self::Unknown,
            (None, false) => Self::No,
        }
    }
}

impl Request {
    /// The holder of the lock when it was requested, if known.
    fn kept_by(self) -> Option<Party> {
        self.owner.map(Party::Thread).or(self.holder)
    }

    /// It has what it wanted.
    fn served(self, at: Timestamp, depth: usize) -> Told {
        let wait = Wait::For(at - self.at);
        let (acquisition, owner) = (self.acquisition, self.kept_by());
        Told::Acquired { acquisition, wait, owner, spins: None, depth: Some(depth) }
    }

    /// It does not want it any more.
    fn refused(self, at: Timestamp) -> Told {
        let Self { acquisition, owner, at: begin, .. } = self;
        Told::Refused { acquisition, wait: Some(at - begin), at, owner, spins: None }
    }
}

fn ended(held: Held, at: Timestamp) -> Told {
    let length = (!held.before).then(|| at - held.at);
    Told::Held { acquisition: held.acquisition, begin: held.at, length }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: u64 = 0x10;
    const OTHER: u64 = 0x20;
    const CONDITION: u64 = 0x30;

    fn acquired(lock: u64) -> LockEvent {
        LockEvent::Acquired { lock, caller: 0x99, kind: Kind::Mutex, waited: false }
    }

    fn requested(lock: u64, owner: i32) -> LockEvent {
        let owner = (owner != 0).then_some(Tid(owner));
        LockEvent::Requested { lock, caller: 0x99, kind: Kind::Mutex, owner, ends: true }
    }

    fn released(lock: u64) -> LockEvent {
        LockEvent::Released { lock }
    }

    /// The results of events at 10, 20, 30, … and of the end of the recording after them, in short.
    fn told(events: &[LockEvent]) -> Vec<String> {
        let (mut thread, mut all) = (Thread::default(), Vec::new());
        let mut tell = |told: Told| {
            all.push(match told {
                Told::Acquired { acquisition, wait, owner, depth, .. } => {
                    let depth = depth.unwrap();
                    let Party::Thread(owner) = owner.unwrap_or(Party::Thread(Tid(0))) else { panic!() };
                    format!("acquired {:#x} wait {wait:?} owner {owner} depth {depth}", acquisition.lock)
                }
                Told::Refused { acquisition, wait, .. } => {
                    format!("refused {:#x} wait {wait:?}", acquisition.lock)
                }
                Told::Held { acquisition, length, .. } => {
                    format!("held {:#x} for {:?}", acquisition.lock, length.unwrap())
                }
                Told::Incomplete | Told::Unended { .. } => "incomplete".to_owned(),
            });
        };
        let mut at = Timestamp::ORIGIN;
        let step = Duration::from_ns(10);
        for event in events {
            at = at + step;
            thread.event(event, By::default(), at, &mut tell);
        }
        thread.finish(at + step, &mut tell);
        all
    }

    #[test]
    fn waits_holds_and_nesting() {
        let events =
            [acquired(MUTEX), requested(OTHER, 7), acquired(OTHER), released(MUTEX), released(OTHER)];
        assert_eq!(
            told(&events),
            [
                "acquired 0x10 wait No owner 0 depth 0",
                "acquired 0x20 wait For(10 ns) owner 7 depth 1",
                "held 0x10 for 30 ns",
                "held 0x20 for 20 ns"
            ]
        );
    }

    #[test]
    fn a_recursive_lock_is_one_critical_section() {
        let events = [acquired(MUTEX), acquired(MUTEX), acquired(OTHER), released(MUTEX), released(MUTEX)];
        let acquired = ["acquired 0x10 wait No owner 0 depth 0", "acquired 0x10 wait No owner 0 depth 1"];
        let rest = ["acquired 0x20 wait No owner 0 depth 1", "held 0x10 for 40 ns", "incomplete"];
        assert_eq!(told(&events), [&acquired[..], &rest].concat());
    }

    #[test]
    fn a_release_that_failed_is_none() {
        let events = [
            acquired(MUTEX),
            released(MUTEX),
            LockEvent::NotReleased { lock: MUTEX },
            released(OTHER),
            LockEvent::NotReleased { lock: OTHER },
            released(MUTEX),
        ];
        assert_eq!(told(&events), ["acquired 0x10 wait No owner 0 depth 0", "held 0x10 for 50 ns"]);
    }

    #[test]
    fn who_waits_for_a_condition_has_not_got_the_mutex() {
        let wait = LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: 1 };
        let woken = LockEvent::ConditionWoken { condition: CONDITION, lock: MUTEX };
        let first = ["acquired 0x10 wait No owner 0 depth 0", "held 0x10 for 10 ns"];
        let then = ["acquired 0x30 wait For(10 ns) owner 0 depth 0", "held 0x10 for 10 ns"];
        assert_eq!(told(&[acquired(MUTEX), wait, woken, released(MUTEX)]), [&first[..], &then].concat());
        let cancelled = LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: 1 };
        assert_eq!(
            told(&[acquired(MUTEX), cancelled, released(MUTEX)]),
            [&first[..], &["incomplete"]].concat()
        );
    }

    #[test]
    fn what_is_cut_off_is_incomplete() {
        assert_eq!(told(&[released(MUTEX)]), ["incomplete"]);
        assert_eq!(told(&[acquired(MUTEX)]), ["acquired 0x10 wait No owner 0 depth 0", "incomplete"]);
        assert_eq!(told(&[requested(MUTEX, 0)]), ["refused 0x10 wait Some(10 ns)", "incomplete"]);
    }

    #[test]
    fn a_wait_whose_begin_is_not_recorded_has_no_length() {
        let late = LockEvent::Acquired { lock: MUTEX, caller: 0x99, kind: Kind::Mutex, waited: true };
        assert_eq!(
            told(&[late, released(MUTEX)]),
            ["acquired 0x10 wait Unknown owner 0 depth 0", "held 0x10 for 10 ns"]
        );
    }

    #[test]
    fn another_thread_with_its_number_has_nothing_of_one_that_has_ended() {
        let (mut thread, mut waits) = (Thread::default(), Vec::new());
        let mut tell = |told: Told| match told {
            Told::Refused { wait, .. } => waits.push(("refused", wait)),
            Told::Acquired { wait: Wait::No, .. } => waits.push(("acquired", None)),
            _ => {}
        };
        let at = Timestamp::from_ns;
        thread.event(&requested(MUTEX, 7), By::default(), at(10), &mut tell);
        thread.ended = Some(at(30));
        thread.event(&acquired(MUTEX), By::default(), at(90), &mut tell);
        thread.event(&requested(OTHER, 0), By::default(), at(100), &mut tell);
        thread.finish(at(150), &mut tell);
        assert_eq!(
            waits,
            [
                ("refused", Some(Duration::from_ns(20))),
                ("acquired", None),
                ("refused", Some(Duration::from_ns(50)))
            ]
        );
    }

    #[test]
    fn a_futex_is_waited_for_unless_it_is_part_of_a_lock() {
        let wait = || LockEvent::FutexWait { address: OTHER };
        let end = |result| LockEvent::FutexEnd { result };
        let (woken, changed, late) = (0, -11, -110);
        assert_eq!(
            told(&[wait(), end(woken), wait(), end(changed), wait(), end(late), end(1)]),
            ["acquired 0x20 wait For(10 ns) owner 0 depth 0", "refused 0x20 wait Some(10 ns)"]
        );
        assert_eq!(
            told(&[requested(MUTEX, 0), wait(), end(woken), acquired(MUTEX), released(MUTEX)]),
            ["acquired 0x10 wait For(30 ns) owner 0 depth 0", "held 0x10 for 10 ns"]
        );
        assert_eq!(told(&[wait()]), ["refused 0x20 wait Some(10 ns)", "incomplete"]);
    }

    #[test]
    fn a_futex_that_a_signal_interrupts_is_waited_for_until_it_is_had_or_the_thread_is_killed() {
        let wait = || LockEvent::FutexWait { address: OTHER };
        let end = |result| LockEvent::FutexEnd { result };
        let (woken, interrupted, late) = (0, -512, -110);
        let kernels = || LockEvent::KernelWait { lock: MUTEX, kind: Kind::KernelMutex };
        let has = || LockEvent::KernelHas { lock: MUTEX };
        let kernel = "acquired 0x10 wait For(10 ns) owner 0 depth 0";
        assert_eq!(
            told(&[wait(), end(interrupted), wait(), end(woken)]),
            ["acquired 0x20 wait For(30 ns) owner 0 depth 0"],
            "begun again"
        );
        assert_eq!(
            told(&[wait(), end(interrupted), kernels(), has()]),
            [kernel, "refused 0x20 wait Some(10 ns)", "incomplete"],
            "killed"
        );
        assert_eq!(
            told(&[wait(), end(interrupted), released(MUTEX)]),
            ["refused 0x20 wait Some(10 ns)", "incomplete"],
            "told to the program; and a release without its acquisition"
        );
        let other = LockEvent::FutexWait { address: CONDITION };
        assert_eq!(
            told(&[wait(), end(-516), other, end(late)]),
            ["refused 0x20 wait Some(10 ns)", "refused 0x30 wait Some(10 ns)"]
        );
    }

    #[test]
    fn the_kernels_mutex_tells_twice_that_it_waits() {
        let wait = || LockEvent::KernelWait { lock: MUTEX, kind: Kind::KernelMutex };
        let has = || LockEvent::KernelHas { lock: MUTEX };
        assert_eq!(
            told(&[wait(), wait(), has(), has()]),
            ["acquired 0x10 wait For(20 ns) owner 0 depth 0", "incomplete"]
        );
    }
}
