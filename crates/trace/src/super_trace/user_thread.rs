//! One user thread on its way through the states of its program's scheduler.
//!
//! While an LWP runs it, what the LWP does counts; this is about the time between. It is only believed that it ran when the
//! switch away from it was seen too, or nothing says otherwise.

use super::activity::{Name, SwitchCause};
use super::fold::{Doing, Fold};
use super::origins::Origins;

/// Which user thread: numbers are unique in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// Its process; where nobody knows that, the LWP that ran it, negative.
    pub owner: i32,
    pub id: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Unknown,
    /// An LWP runs it.
    Running {
        tid: i32,
    },
    Runnable {
        preempted: bool,
    },
    Blocked {
        on: Option<Name>,
    },
    Nested,
}

/// A user thread.
#[derive(Debug)]
pub struct UserThread {
    /// How many user threads the super-trace had before this one.
    pub serial: usize,
    /// Its process, where the events say.
    pub process: Option<i32>,
    /// Its number, unique in its process.
    pub id: u64,
    /// Its last known name.
    pub name: String,
    /// How often an LWP began to run it.
    pub polls: u64,
    /// How often somebody made it ready.
    pub wakeups: u64,
    /// How often another LWP ran it than before.
    pub lwp_migrations: u64,
    /// How often it was next run on another CPU than before.
    pub cpu_migrations: u64,
    /// What it has begun to wait for in the poll that goes on, or the last one: what it blocks on, where it says so.
    pub waits_for: Option<Name>,
    /// Where its name stands, until it has one.
    origin: Option<u64>,
    pub(super) state: State,
    /// Up to when time is accounted for; while it runs, when it began to.
    since: i64,
    /// The last event that fits the state.
    confirmed: i64,
    /// It was made ready while it was running.
    woken: bool,
    last_lwp: Option<i32>,
    last_cpu: Option<u32>,
}

impl UserThread {
    /// A user thread of which nothing is known since `since`.
    pub(super) fn new(serial: usize, key: Key, since: i64) -> Self {
        UserThread {
            serial,
            process: Some(key.owner).filter(|owner| *owner >= 0),
            id: key.id,
            name: String::new(),
            origin: None,
            polls: 0,
            wakeups: 0,
            lwp_migrations: 0,
            cpu_migrations: 0,
            state: State::Unknown,
            since,
            confirmed: since,
            woken: false,
            waits_for: None,
            last_lwp: None,
            last_cpu: None,
        }
    }

    /// Up to when it has been told what it did: its end, once it has ended, in nanoseconds on the recording's clock.
    pub fn told_to(&self) -> i64 {
        self.since
    }

    /// It is called as this origin says.
    pub(super) fn of_origin(mut self, origin: u64) -> Self {
        self.origin = Some(origin);
        self
    }

    /// It may run.
    pub(super) fn ready(mut self) -> Self {
        self.state = State::Runnable { preempted: false };
        self
    }

    /// It is called as its origin says, as soon as that is known: it may be told later, or have been lost before.
    pub(super) fn learn_name(&mut self, origins: &Origins) {
        if let Some(name) = self.origin.and_then(|origin| origins.get(origin)) {
            self.rename(name);
        }
    }

    pub(super) fn rename(&mut self, name: &[u8]) {
        self.origin = None;
        if self.name.as_bytes() != name {
            self.name = String::from_utf8_lossy(name).into_owned();
        }
    }

    /// An LWP begins to run it. It does not run elsewhere.
    pub(super) fn begins(&mut self, tid: i32, now: i64, fold: &mut impl Fold) {
        if let State::Blocked { on } = self.state {
            // Its wake is not recorded, so how long it was blocked is not known. But where no wake of it ever is, as of tasks that only
            // tokio's hooks know, its own word counts: it waited until now for what it has told.
            if on.is_none() || self.wakeups > 0 {
                self.doubt(now, fold);
            }
        }
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
    pub(super) fn arrives(&mut self, cpu: u32) {
        if self.last_cpu.is_some_and(|last| last != cpu) {
            self.cpu_migrations += 1;
        }
        self.last_cpu = Some(cpu);
    }

    /// It stops running. Where nobody knew that it ran, neither is known what it did up to now.
    pub(super) fn stops(&mut self, cause: SwitchCause, now: i64, fold: &mut impl Fold) {
        match self.state {
            State::Running { .. } => self.since = self.since.max(now),
            _ => self.doubt(now, fold),
        }
        self.confirmed = self.confirmed.max(now);
        self.state = match cause {
            SwitchCause::Blocked if self.woken => State::Runnable { preempted: false },
            SwitchCause::Blocked => State::Blocked { on: self.waits_for },
            SwitchCause::Yielded | SwitchCause::Budget | SwitchCause::Preempted => {
                State::Runnable { preempted: true }
            }
            SwitchCause::Nested => State::Nested,
            SwitchCause::Unknown | SwitchCause::Ended => State::Unknown,
        };
    }

    /// Nobody knows for how long it ran, or what it does now.
    pub(super) fn vanishes(&mut self) {
        self.state = State::Unknown;
    }

    /// Somebody makes it ready.
    pub(super) fn wakes(&mut self, now: i64, fold: &mut impl Fold) {
        self.wakeups += 1;
        match self.state {
            State::Blocked { .. } | State::Unknown => {
                self.enter(State::Runnable { preempted: false }, now, fold);
            }
            State::Running { .. } | State::Nested => self.woken = true,
            State::Runnable { .. } => {}
        }
    }

    /// Its state is no longer known from `from` on. If it ran until then, that has been told.
    pub(super) fn lose(&mut self, from: i64, fold: &mut impl Fold) {
        match self.state {
            State::Running { .. } => {
                self.since = self.since.max(from);
                self.state = State::Unknown;
            }
            _ => self.enter(State::Unknown, from, fold),
        }
    }

    /// What lies before `time` counts no longer.
    pub(super) fn restart(&mut self, time: i64) {
        match self.state {
            State::Running { .. } => self.since = self.since.max(time),
            state => self.enter(state, time, &mut ()),
        }
        (self.polls, self.wakeups, self.lwp_migrations, self.cpu_migrations) = (0, 0, 0, 0);
    }

    /// Tells what it did until the end. If it runs until then, that has been told.
    pub(super) fn finish(&mut self, end: i64, fold: &mut impl Fold) {
        match self.state {
            State::Running { .. } => self.since = self.since.max(end),
            state => self.enter(state, end, fold),
        }
        fold.user_thread_ends(self);
    }

    /// What its state says cannot be true up to now: it is believed only up to its last confirmation.
    fn doubt(&mut self, now: i64, fold: &mut impl Fold) {
        self.enter(State::Unknown, self.confirmed.max(self.since).min(now), fold);
        self.enter(State::Unknown, now, fold);
    }

    fn enter(&mut self, state: State, now: i64, fold: &mut impl Fold) {
        let now = now.max(self.since);
        let doing = match self.state {
            State::Unknown | State::Running { .. } => Doing::Unknown,
            State::Runnable { preempted } => Doing::Runnable { preempted },
            State::Blocked { on } => Doing::Blocked { on },
            State::Nested => Doing::Nested,
        };
        fold.user_thread(self, doing, self.since, now);
        (self.since, self.confirmed, self.state) = (now, now, state);
    }
}
