//! Which times the events of a recording show; the others are unknown, not 0.

use crate::run::Ran;
use crate::times::{Part, Times, grow};
use serde::Serialize;
use tracewing_units::Duration;

/// [`Times`], each `None` if the recording lacks events that show it. `unknown_ns` then includes it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct ShownTimes {
    /// See [`Times::running_ns`].
    pub running_ns: Option<Duration>,
    /// See [`Times::waiting_ns`].
    #[serde(rename = "ready_ns")]
    pub waiting_ns: Option<Duration>,
    /// See [`Times::blocked_ns`].
    pub blocked_ns: Option<Duration>,
    /// See [`Times::nested_ns`].
    pub nested_ns: Duration,
    /// See [`Times::unknown_ns`].
    pub unknown_ns: Duration,
    /// See [`Times::user_ns`].
    pub user_ns: Option<Duration>,
    /// See [`Times::system_ns`].
    pub system_ns: Option<Duration>,
    /// See [`Times::interrupted_ns`].
    pub interrupted_ns: Option<Duration>,
    /// See [`Times::blocked_on`].
    pub blocked_on: Vec<Part>,
    /// See [`Times::interrupted_by`].
    pub interrupted_by: Vec<Part>,
}

/// What the events of a recording show of a thread or a user thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown {
    /// Whether they show when it runs.
    running: bool,
    /// Whether they show since when it has been ready to run.
    waits: bool,
    /// Whether they show when it is blocked on what it names. A task reports that itself
    /// (`user_thread:wait`), so without its wakes too; it is then blocked until its next poll, and all that
    /// it is known to be blocked is that.
    causes: bool,
    /// Whether they show when it lost its CPU, or its worker, although it was ready to run.
    preemptions: bool,
    /// Whether they show that it is in its program or in a system call.
    pub(crate) modes: bool,
    interrupts: bool,
    /// Whether they show how often it is woken, and by which thread.
    pub(crate) wakes: bool,
}

impl Shown {
    pub(crate) fn of_threads(ran: &Ran) -> Self {
        let (running, wakes) = (!ran.switchless, ran.recorded.wakes);
        Self {
            running,
            waits: running && wakes,
            causes: running && wakes,
            preemptions: running && wakes,
            modes: running && !ran.modeless,
            interrupts: running && ran.recorded.interrupts,
            wakes,
        }
    }

    pub(crate) fn of_user_threads(ran: &Ran) -> Self {
        let polls = !ran.recorded.lacks_user_switches;
        let wakes = !ran.recorded.lacks_user_wakes;
        let Self { running, modes, interrupts, .. } = Self::of_threads(ran);
        Self {
            running: running && polls,
            waits: polls && wakes,
            causes: polls,
            preemptions: running && polls && wakes,
            modes: modes && polls,
            interrupts: interrupts && polls,
            wakes,
        }
    }

    /// The same of a user thread whose own wakes are not recorded.
    pub(crate) fn without_wakes(self) -> Self {
        Self { waits: false, preemptions: false, wakes: false, ..self }
    }

    /// Time in which it had lost its CPU or its turn, if that is known.
    pub(crate) fn preempted(self, ns: Duration) -> Option<Duration> {
        self.preemptions.then_some(ns)
    }

    pub(crate) fn times(self, times: Times) -> ShownTimes {
        let mut unknown_ns = times.unknown_ns;
        let mut part = |is_shown: bool, ns: Duration| {
            if !is_shown {
                grow(&mut unknown_ns, ns);
            }
            is_shown.then_some(ns)
        };
        let running_ns = part(self.running, times.running_ns);
        let waiting_ns = part(self.waits, times.waiting_ns);
        let is_blocked = self.waits || self.causes && !times.blocked_ns.is_zero();
        let blocked_ns = part(is_blocked, times.blocked_ns);
        ShownTimes {
            running_ns,
            waiting_ns,
            blocked_ns,
            nested_ns: times.nested_ns,
            unknown_ns,
            user_ns: self.modes.then_some(times.user_ns),
            system_ns: self.modes.then_some(times.system_ns),
            interrupted_ns: self.interrupts.then_some(times.interrupted_ns),
            blocked_on: if self.causes { times.blocked_on } else { Vec::new() },
            interrupted_by: if self.interrupts { times.interrupted_by } else { Vec::new() },
        }
    }
}
