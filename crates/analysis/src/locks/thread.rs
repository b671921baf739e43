//! A thread and its locks: from requests, acquisitions and releases to waits and critical sections.

use super::Kind;
use super::event::LockEvent;

/// An acquisition: by whom and where is what [`Account`](super::Account)s are kept for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Acquisition {
    pub(super) lock: u64,
    pub(super) kind: Kind,
    /// Where the program called; 0 where nobody knows.
    pub(super) caller: u64,
    /// By which chain it came there.
    pub(super) chain: Option<u64>,
}

/// What is told of a thread. Times are in nanoseconds.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    /// It has the lock, or the condition came, or all came to the barrier: after this wait, if it had to. `owner` had the lock;
    /// 0: nobody knows.
    Acquired { acquisition: Acquisition, wait: Option<u64>, owner: i32, depth: usize },
    /// It did not get it, after this wait.
    Refused { acquisition: Acquisition, wait: Option<u64>, owner: i32 },
    /// A critical section has ended.
    Held { acquisition: Acquisition, length: u64 },
    /// What was begun has no end, or what was ended no begin.
    Incomplete,
}

/// A lock that the thread waits for.
#[derive(Debug, Clone, Copy)]
struct Request {
    acquisition: Acquisition,
    owner: i32,
    at: i64,
}

/// A lock that the thread has.
#[derive(Debug, Clone, Copy)]
struct Held {
    acquisition: Acquisition,
    at: i64,
}

/// The last release, which the next event may take back.
#[derive(Debug, Clone, Copy)]
enum GivenBack {
    /// Of this, the last one of its lock; with the length that it had.
    Ended(Held, i64),
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
    request: Option<Request>,
    chain: Option<u64>,
    held: Vec<Held>,
    release: Option<GivenBack>,
    /// The condition variable or barrier that it waits for, and what it gave back for that.
    condition: Option<(Request, Option<Held>)>,
    /// A lock of the kernel's.
    kernel: Option<Request>,
}

impl Thread {
    /// Takes an event of the thread's; `tell` is told what follows from it.
    pub(super) fn event(&mut self, event: &LockEvent, at: i64, tell: &mut impl FnMut(Told)) {
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
            LockEvent::Requested { lock, caller, kind, owner } => {
                let acquisition = Acquisition { lock, kind, caller, chain: None };
                self.request = Some(Request { acquisition, owner, at });
            }
            LockEvent::CalledFrom { chain } => self.chain = Some(chain),
            LockEvent::Acquired { lock, caller, kind } => {
                let request = self.request.take().filter(|request| request.acquisition.lock == lock);
                let acquisition = Acquisition { lock, kind, caller, chain: self.chain.take() };
                let depth = self.depth();
                tell(Told::Acquired {
                    acquisition,
                    wait: request.map(|request| since(request.at, at)),
                    owner: request.map_or(0, |request| request.owner),
                    depth,
                });
                if kind != Kind::Semaphore && self.held.len() < MOST {
                    self.held.push(Held { acquisition, at });
                }
            }
            LockEvent::Refused { lock, caller, kind } => {
                let request = self.request.take().filter(|request| request.acquisition.lock == lock);
                tell(Told::Refused {
                    acquisition: Acquisition { lock, kind, caller, chain: self.chain.take() },
                    wait: request.map(|request| since(request.at, at)),
                    owner: request.map_or(0, |request| request.owner),
                });
            }
            // It was cancelled while it waited for a condition, and has the mutex again since nobody knows when.
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
                let acquisition = Acquisition { lock: condition, kind: Kind::Condition, caller, chain: None };
                self.condition = Some((Request { acquisition, owner: 0, at }, held));
            }
            LockEvent::ConditionWoken { condition, .. } => {
                let waited = self.condition.take();
                if let Some((request, held)) =
                    waited.filter(|(request, _)| request.acquisition.lock == condition)
                {
                    tell(Told::Acquired {
                        acquisition: request.acquisition,
                        wait: Some(since(request.at, at)),
                        owner: 0,
                        depth: self.depth(),
                    });
                    self.held.extend(held.map(|held| Held { at, ..held }));
                }
            }
            LockEvent::BarrierWait { barrier, caller } => {
                let acquisition = Acquisition { lock: barrier, kind: Kind::Barrier, caller, chain: None };
                self.condition = Some((Request { acquisition, owner: 0, at }, None));
            }
            LockEvent::BarrierPassed { barrier } => {
                let waited = self.condition.take();
                if let Some((request, _)) = waited.filter(|(request, _)| request.acquisition.lock == barrier)
                {
                    tell(Told::Acquired {
                        acquisition: request.acquisition,
                        wait: Some(since(request.at, at)),
                        owner: 0,
                        depth: self.depth(),
                    });
                }
            }
            LockEvent::KernelWait { lock, kind } => {
                // A mutex tells again when it goes from spinning to sleeping.
                let acquisition = Acquisition { lock, kind, caller: 0, chain: None };
                let same = self.kernel.filter(|request| request.acquisition.lock == lock);
                self.kernel = same.or(Some(Request { acquisition, owner: 0, at }));
            }
            LockEvent::KernelHas { lock } => {
                let request = self.kernel.take().filter(|request| request.acquisition.lock == lock);
                match request {
                    Some(Request { acquisition, at: begin, .. }) => {
                        let wait = Some(since(begin, at));
                        tell(Told::Acquired { acquisition, wait, owner: 0, depth: 0 });
                    }
                    None => tell(Told::Incomplete),
                }
            }
            LockEvent::NotReleased { .. } | LockEvent::CallChain { .. } | LockEvent::Image { .. } => {}
        }
    }

    /// Takes a lock from those that the thread has.
    fn give_back(&mut self, lock: u64, at: i64) -> GivenBack {
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

    /// Nothing is known any more, or the recording ends: what is not finished has no end. What the thread waited for since, it
    /// waited for until now.
    pub(super) fn finish(&mut self, at: i64, tell: &mut impl FnMut(Told)) {
        let Self { request, held, release, condition, kernel, chain } = std::mem::take(self);
        match release {
            Some(GivenBack::Ended(held, end)) => tell(ended(held, end)),
            Some(GivenBack::Unmatched) => tell(Told::Incomplete),
            Some(GivenBack::Inner(_)) | None => {}
        }
        for request in [request, condition.map(|(request, _)| request), kernel].into_iter().flatten() {
            tell(Told::Refused {
                acquisition: Acquisition { chain, ..request.acquisition },
                wait: Some(since(request.at, at)),
                owner: request.owner,
            });
            tell(Told::Incomplete);
        }
        held.iter().for_each(|_| tell(Told::Incomplete));
    }
}

fn ended(held: Held, at: i64) -> Told {
    Told::Held { acquisition: held.acquisition, length: since(held.at, at) }
}

fn since(begin: i64, end: i64) -> u64 {
    end.saturating_sub(begin).max(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: u64 = 0x10;
    const OTHER: u64 = 0x20;
    const CONDITION: u64 = 0x30;

    fn acquired(lock: u64) -> LockEvent {
        LockEvent::Acquired { lock, caller: 0x99, kind: Kind::Mutex }
    }

    fn requested(lock: u64, owner: i32) -> LockEvent {
        LockEvent::Requested { lock, caller: 0x99, kind: Kind::Mutex, owner }
    }

    fn released(lock: u64) -> LockEvent {
        LockEvent::Released { lock }
    }

    /// What follows from events at 10, 20, 30, … and the end of the recording behind them, in short.
    fn told(events: &[LockEvent]) -> Vec<String> {
        let (mut thread, mut all) = (Thread::default(), Vec::new());
        let mut tell = |told: Told| {
            all.push(match told {
                Told::Acquired { acquisition, wait, owner, depth } => {
                    format!("acquired {:#x} wait {wait:?} owner {owner} depth {depth}", acquisition.lock)
                }
                Told::Refused { acquisition, wait, .. } => {
                    format!("refused {:#x} wait {wait:?}", acquisition.lock)
                }
                Told::Held { acquisition, length } => format!("held {:#x} for {length}", acquisition.lock),
                Told::Incomplete => "incomplete".to_owned(),
            });
        };
        let mut at = 0;
        for event in events {
            at += 10;
            thread.event(event, at, &mut tell);
        }
        thread.finish(at + 10, &mut tell);
        all
    }

    #[test]
    fn waits_holds_and_nesting() {
        let events =
            [acquired(MUTEX), requested(OTHER, 7), acquired(OTHER), released(MUTEX), released(OTHER)];
        assert_eq!(
            told(&events),
            [
                "acquired 0x10 wait None owner 0 depth 0",
                "acquired 0x20 wait Some(10) owner 7 depth 1",
                "held 0x10 for 30",
                "held 0x20 for 20"
            ]
        );
    }

    #[test]
    fn a_recursive_lock_is_one_critical_section() {
        let events = [acquired(MUTEX), acquired(MUTEX), acquired(OTHER), released(MUTEX), released(MUTEX)];
        let acquired = ["acquired 0x10 wait None owner 0 depth 0", "acquired 0x10 wait None owner 0 depth 1"];
        let rest = ["acquired 0x20 wait None owner 0 depth 1", "held 0x10 for 40", "incomplete"];
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
        assert_eq!(told(&events), ["acquired 0x10 wait None owner 0 depth 0", "held 0x10 for 50"]);
    }

    #[test]
    fn who_waits_for_a_condition_has_not_got_the_mutex() {
        let wait = LockEvent::ConditionWait { condition: CONDITION, lock: MUTEX, caller: 1 };
        let woken = LockEvent::ConditionWoken { condition: CONDITION, lock: MUTEX };
        let first = ["acquired 0x10 wait None owner 0 depth 0", "held 0x10 for 10"];
        let then = ["acquired 0x30 wait Some(10) owner 0 depth 0", "held 0x10 for 10"];
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
        assert_eq!(told(&[acquired(MUTEX)]), ["acquired 0x10 wait None owner 0 depth 0", "incomplete"]);
        assert_eq!(told(&[requested(MUTEX, 0)]), ["refused 0x10 wait Some(10)", "incomplete"]);
    }

    #[test]
    fn the_kernels_mutex_tells_twice_that_it_waits() {
        let wait = || LockEvent::KernelWait { lock: MUTEX, kind: Kind::KernelMutex };
        let has = || LockEvent::KernelHas { lock: MUTEX };
        assert_eq!(
            told(&[wait(), wait(), has(), has()]),
            ["acquired 0x10 wait Some(20) owner 0 depth 0", "incomplete"]
        );
    }
}
