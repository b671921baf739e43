//! What a thread's events amount to: acquisitions, waits, critical sections.

use tracewing_units::{Caller, Chain, Duration, LockAddress, Pid, Task, Tid, Timestamp};

use super::super::account::{Kind, Party};
use crate::images::Epoch;
use crate::stored::stored;

/// An acquisition: lock, party and place, which [`Account`](crate::Account)s are kept for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Acquisition {
    pub(in super::super) lock: LockAddress,
    pub(in super::super) kind: Kind,
    /// Where the program called; 0 if unknown.
    pub(in super::super) caller: Caller,
    /// By which chain it came there.
    pub(in super::super) chain: Option<Chain>,
    /// The party, at both levels; 0: unknown, or none.
    pub(in super::super) by: By,
}

/// The thread or task that makes a request, and where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct By {
    /// Its process; `None` if unknown, and for the kernel's own locks, which belong to no process.
    pub(in super::super) process: Option<Pid>,
    pub(in super::super) tid: Tid,
    /// The user thread's number.
    pub(in super::super) task: Task,
    /// For the kernel's own locks: what the kernel does there, as a caller.
    pub(in super::super) within: Caller,
    /// When, as far as the places in programs depend on it.
    pub(in super::super) epoch: Epoch,
}

impl Default for By {
    fn default() -> Self {
        By { process: None, tid: Tid::IDLE, task: Task::NONE, within: Caller::UNKNOWN, epoch: 0 }
    }
}

/// How long an acquisition waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) enum Wait {
    /// It acquired the lock without waiting.
    No,
    /// It waited this long.
    For(Duration),
    /// The event that shows since when is missing.
    Unknown,
}

/// Whether a critical section that is followed begins with an acquisition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Hold {
    /// None does: nothing is held, or the thread holds more than is followed.
    None,
    /// The first one: the thread did not hold the lock.
    First,
    /// One within another: it holds the lock once more.
    Again,
}

/// A result about a thread. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) enum Outcome {
    /// The thread has acquired the lock, or the condition was signalled, or the barrier is complete.
    /// `owner`: the holder during the wait, if known. `spins`: number of tries before it slept. `depth`:
    /// number of other locks that it holds, if known.
    Acquired {
        acquisition: Acquisition,
        wait: Wait,
        owner: Option<Party>,
        spins: Option<u64>,
        depth: Option<usize>,
        hold: Hold,
    },
    /// The thread holds the lock again that it gave back to wait for a condition.
    HeldAgain { acquisition: Acquisition, hold: Hold },
    /// The thread has not acquired the lock, after this wait, which ended at `at`.
    Refused {
        acquisition: Acquisition,
        wait: Option<Duration>,
        at: Timestamp,
        owner: Option<Tid>,
        spins: Option<u64>,
    },
    /// The thread has waited until `at` for a lock that it neither acquired nor failed to acquire: it was
    /// killed, or the recording ends.
    Unserved { acquisition: Acquisition, wait: Option<Duration>, at: Timestamp, owner: Option<Tid> },
    /// A critical section has ended, with its beginning and length; those of a section that began before the
    /// analysed range are unknown.
    Held { acquisition: Acquisition, begin: Timestamp, length: Option<Duration> },
    /// The thread holds the lock, and no event shows until when.
    Unended { acquisition: Acquisition },
    /// The thread held the lock when it ended, and another one has its number now.
    Abandoned { acquisition: Acquisition },
    /// One of two events that belong together is missing.
    Incomplete,
}

/// A lock that the thread waits for.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Request {
    pub(in super::super) acquisition: Acquisition,
    /// The owner of the lock, according to the lock; 0 if it does not say.
    pub(in super::super) owner: Option<Tid>,
    /// The holder of the lock at that time, as other events show.
    pub(in super::super) holder: Option<Party>,
    pub(in super::super) at: Timestamp,
}

stored! {
    OF_OUTCOME:
    Acquisition { lock kind caller chain by }
    By { process tid task within epoch }
    Request { acquisition owner holder at }
}

impl Outcome {
    /// The acquired or requested lock.
    pub(in super::super) fn acquisition(&self) -> Option<&Acquisition> {
        match self {
            Self::Acquired { acquisition, .. }
            | Self::Refused { acquisition, .. }
            | Self::Unserved { acquisition, .. }
            | Self::Held { acquisition, .. }
            | Self::HeldAgain { acquisition, .. }
            | Self::Unended { acquisition }
            | Self::Abandoned { acquisition } => Some(acquisition),
            Self::Incomplete => None,
        }
    }

    /// The part that a single event reports, without what needs a pair.
    pub(in super::super) fn unpaired(self) -> Self {
        match self {
            Self::Acquired { acquisition, wait, spins, hold, .. } => {
                let wait = if wait == Wait::No { Wait::No } else { Wait::Unknown };
                Self::Acquired { acquisition, wait, owner: None, spins, depth: None, hold }
            }
            Self::Refused { acquisition, at, spins, .. } => {
                Self::Refused { acquisition, wait: None, at, owner: None, spins }
            }
            Self::Held { acquisition, begin, .. } => Self::Held { acquisition, begin, length: None },
            Self::Unserved { acquisition, at, owner, .. } => {
                Self::Unserved { acquisition, wait: None, at, owner }
            }
            outcome @ (Self::HeldAgain { .. }
            | Self::Unended { .. }
            | Self::Abandoned { .. }
            | Self::Incomplete) => outcome,
        }
    }
}

impl Wait {
    /// The wait of an acquisition: the time since its request, if known; `waited`: whether its event says
    /// that it waited.
    pub(in super::super) fn new(request: Option<Duration>, waited: bool) -> Self {
        match (request, waited) {
            (Some(ns), _) => Self::For(ns),
            (None, true) => Self::Unknown,
            (None, false) => Self::No,
        }
    }
}

impl Request {
    /// The holder of the lock when it was requested, if known.
    pub(super) fn kept_by(self) -> Option<Party> {
        self.owner.map(Party::Thread).or(self.holder)
    }

    /// The request has succeeded.
    pub(super) fn served(self, at: Timestamp, depth: usize) -> Outcome {
        let wait = Wait::For(at - self.at);
        let (acquisition, owner) = (self.acquisition, self.kept_by());
        let (spins, depth, hold) = (None, Some(depth), Hold::None);
        Outcome::Acquired { acquisition, wait, owner, spins, depth, hold }
    }

    /// The request has no end; the wait for it is known up to `at`.
    pub(super) fn unserved(self, at: Timestamp) -> Outcome {
        let Self { acquisition, owner, at: begin, .. } = self;
        Outcome::Unserved { acquisition, wait: Some(at - begin), at, owner }
    }

    /// The request has been given up, or has failed.
    pub(super) fn refused(self, at: Timestamp) -> Outcome {
        let Self { acquisition, owner, at: begin, .. } = self;
        Outcome::Refused { acquisition, wait: Some(at - begin), at, owner, spins: None }
    }
}
