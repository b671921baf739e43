//! How a user thread moves from state to state: one method per kind of event, with every state that it may
//! find.
//!
//! Where an event finds a state from which nothing leads to it, events are missing: the state is believed up
//! to the last event that fits it, and time since then is unknown (`doubt`). `docs/explanation/state.md`
//! draws the states.

use crate::super_trace::activity::SwitchCause;
use crate::super_trace::doing::Doing;
use crate::super_trace::fold::{Change, Fold};
use crate::super_trace::user_thread::{State, UserThread};
use tracewing_units::{Cpu, Tid, Timestamp};

impl UserThread {
    /// An LWP begins to run it. It does not run elsewhere.
    pub(in crate::super_trace) fn begins(&mut self, tid: Tid, now: Timestamp, fold: &mut impl Fold) {
        match self.state {
            // Blocked: its wake is missing, so how long it was blocked is unknown. But where no wake of it is
            // ever recorded, as of tasks that only tokio's hooks know, its own word counts: it waited until
            // now for what it named.
            State::Blocked { on } if on.is_none() || self.wakeups > 0 => {
                self.wakes_unseen |= self.wakeups == 0;
                self.doubt(now, fold);
            }
            // Blocked on what it named, and never woken by an event: as above, until now.
            State::Blocked { .. } => {}
            // Runnable, or below one that it ran within itself: what comes before a poll. Unknown: the first
            // event that fixes it. Running: on another LWP, which has been moved on before.
            State::Runnable { .. } | State::Nested | State::Unknown | State::Running { .. } => {}
        }
        // From all states but one: a new poll. Nested: the poll that ran another one within it continues.
        if self.state != State::Nested {
            self.polls += 1;
            self.woken = false;
            self.waits_for = None;
        }
        self.enter(State::Running { tid }, now, fold);
        if self.last_lwp.is_some_and(|last| last != tid) {
            self.lwp_migrations += 1;
        }
        self.last_lwp = Some(tid);
    }

    /// It runs on a CPU.
    pub(in crate::super_trace) fn arrives(&mut self, cpu: Cpu) {
        if self.last_cpu.is_some_and(|last| last != cpu) {
            self.cpu_migrations += 1;
        }
        self.last_cpu = Some(cpu);
    }

    /// It stops running. If it was not known to run, its state up to now is unknown, too.
    pub(in crate::super_trace) fn stops(&mut self, cause: SwitchCause, now: Timestamp, fold: &mut impl Fold) {
        match self.state {
            // Running: the only state from which a switch leads away; its time is the LWP's.
            State::Running { .. } => self.since = self.since.max(now),
            // Any other: the switch to it is missing.
            State::Unknown | State::Runnable { .. } | State::Blocked { .. } | State::Nested => {
                self.doubt(now, fold);
            }
        }
        self.confirmed = self.confirmed.max(now);
        // So do hooks, which report no wakes.
        self.hooked |= cause == SwitchCause::Pending;
        self.wakes_unseen |= self.hooked;
        // From every state, as doubted above: the cause alone determines the next one.
        self.state = match cause {
            // A wake came while it ran: it is run once more.
            SwitchCause::Blocked if self.woken => State::Runnable { preempted: false },
            // No wake came: it waits for one.
            SwitchCause::Blocked => State::Blocked { on: self.waits_for },
            // It could continue, as the cause says, and waits for an LWP.
            SwitchCause::Yielded | SwitchCause::Budget | SwitchCause::Preempted => {
                State::Runnable { preempted: true }
            }
            // It is still in its poll, below the one that it runs.
            SwitchCause::Nested => State::Nested,
            // Its own word counts: it stopped because of what it waits for. Else it may be ready.
            SwitchCause::Pending if !self.woken && self.waits_for.is_some() => {
                State::Blocked { on: self.waits_for }
            }
            // Woken, or it named nothing: blocked or ready.
            SwitchCause::Pending => State::Unknown,
            // Without a cause, its next state is unknown. A thread that has ended is removed right after.
            SwitchCause::Unknown | SwitchCause::Ended => State::Unknown,
        };
    }

    /// It is unknown for how long it ran, and what it does now.
    pub(in crate::super_trace) fn vanishes(&mut self) {
        // From Running, on an LWP that is seen to run something else. Where switches are not recorded, from
        // every state that a stop leads to: it may run again at once, unseen.
        self.state = State::Unknown;
    }

    /// It is made ready.
    pub(in crate::super_trace) fn wakes(&mut self, now: Timestamp, fold: &mut impl Fold) {
        self.wakeups += 1;
        match self.state {
            // Blocked: what it waited for is over. Unknown: one that is woken is ready, whatever it did.
            State::Blocked { .. } | State::Unknown => {
                self.enter(State::Runnable { preempted: false }, now, fold);
            }
            // Running, itself or one within it: it is run once more after it stops.
            State::Running { .. } | State::Nested => self.woken = true,
            // Runnable: once is enough.
            State::Runnable { .. } => {}
        }
    }

    /// Its state is unknown from `from` on. If it ran until then, that has been reported.
    pub(in crate::super_trace) fn lose(&mut self, from: Timestamp, fold: &mut impl Fold) {
        match self.state {
            // Running: until then, the LWP's time covers it.
            State::Running { .. } => {
                self.since = self.since.max(from);
                self.state = State::Unknown;
            }
            // Blocked on nothing named, where its wakes are not recorded: perhaps no longer since its last
            // event.
            State::Blocked { on: None } if self.wakes_unseen => self.doubt(from, fold),
            // Any other lasted until then: an event would have ended it.
            State::Blocked { .. } | State::Runnable { .. } | State::Nested | State::Unknown => {
                self.enter(State::Unknown, from, fold);
            }
        }
    }

    /// What lies before `time` counts no longer.
    pub(in crate::super_trace) fn restart(&mut self, time: Timestamp) {
        match self.state {
            // Running: its time is the LWP's, which restarts, too.
            State::Running { .. } => self.since = self.since.max(time),
            // All others last: only their time so far is dropped.
            State::Unknown | State::Runnable { .. } | State::Blocked { .. } | State::Nested => {
                self.enter(self.state, time, &mut ());
            }
        }
        (self.polls, self.wakeups, self.lwp_migrations, self.cpu_migrations) = (0, 0, 0, 0);
    }

    /// Reports its state until the end. If it runs until then, that has been reported.
    pub(in crate::super_trace) fn finish(&mut self, end: Timestamp, fold: &mut impl Fold) {
        match self.state {
            // Running: until the end, the LWP's time covers it.
            State::Running { .. } => self.since = self.since.max(end),
            // Blocked on nothing named, where its wakes are not recorded: perhaps no longer.
            State::Blocked { on: None } if self.wakes_unseen => self.doubt(end, fold),
            // Any other lasts until the end: an event would have ended it.
            State::Blocked { .. } | State::Runnable { .. } | State::Nested | State::Unknown => {
                self.enter(self.state, end, fold);
            }
        }
        fold.change(Change::UserThreadEnds { thread: self });
    }

    /// What its state says cannot be true up to now: it is believed only up to its last confirmation.
    fn doubt(&mut self, now: Timestamp, fold: &mut impl Fold) {
        self.enter(State::Unknown, self.confirmed.max(self.since).min(now), fold);
        self.enter(State::Unknown, now, fold);
    }

    fn enter(&mut self, state: State, now: Timestamp, fold: &mut impl Fold) {
        let now = now.max(self.since);
        let doing = match self.state {
            State::Unknown | State::Running { .. } => Doing::Unknown,
            State::Runnable { preempted } => Doing::Runnable { preempted },
            State::Blocked { on } => Doing::Blocked { on },
            State::Nested => Doing::Nested,
        };
        fold.change(Change::UserThreadDid { thread: self, doing, from: self.since, to: now });
        (self.since, self.confirmed, self.state) = (now, now, state);
    }
}
