//! One user thread and its states in its program's scheduler.
//!
//! While an LWP runs it, the LWP's state applies; this is about the time in between. It is only assumed to
//! have run if the switch away from it was seen too, or nothing contradicts it.

use super::activity::Name;
use super::numbers::Number;
use super::origins::Origins;
use super::serial::TaskSerial;
use tracewing_units::{Cpu, Origin, Pid, Task, Tid, Timestamp};

/// Which user thread: numbers are unique in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub owner: Owner,
    pub id: Task,
}

/// Owner of user threads: a process; if that is unknown, the LWP that ran them, as a negative number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub(super) struct Owner(pub(super) i32);

impl Owner {
    pub(super) const fn process(pid: Pid) -> Self {
        Owner(pid.0)
    }

    pub(super) const fn lwp(tid: Tid) -> Self {
        Owner(-tid.0)
    }

    /// An LWP's process, if it is known.
    pub(super) const fn of(process: Option<Pid>, tid: Tid) -> Self {
        match process {
            Some(pid) => Owner::process(pid),
            None => Owner::lwp(tid),
        }
    }

    pub(super) fn as_process(self) -> Option<Pid> {
        (self.0 >= 0).then_some(Pid(self.0))
    }
}

impl Number for Owner {
    #[inline]
    fn bits(self) -> u64 {
        self.0.cast_unsigned().into()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is known of what it does.
    Unknown,
    /// An LWP runs it.
    Running { tid: Tid },
    /// It waits for an LWP.
    Runnable {
        /// It stopped although it could continue.
        preempted: bool,
    },
    /// It waits for something else.
    Blocked {
        /// What it said that it waits for.
        on: Option<Name>,
    },
    /// It runs another one within itself.
    Nested,
}

/// A unit of work that a program schedules onto LWPs itself, such as a task of an async runtime.
#[derive(Debug, Clone)]
pub struct UserThread {
    /// How many user threads the super-trace had before this one.
    pub serial: TaskSerial,
    /// Its process, where the events say.
    pub process: Option<Pid>,
    /// Its number, unique in its process.
    pub id: Task,
    /// Its last known name.
    pub name: String,
    /// How often an LWP began to run it.
    pub polls: u64,
    /// How often it was woken.
    pub wakeups: u64,
    /// How often another LWP ran it than before.
    pub lwp_migrations: u64,
    /// How often it was next run on another CPU than before.
    pub cpu_migrations: u64,
    /// What it has begun to wait for in the current or last poll: what it blocks on, if it reports it.
    pub waits_for: Option<Name>,
    /// Where its name stands, until it has one.
    pub(super) origin: Option<Origin>,
    pub(super) state: State,
    /// Up to when time is accounted for; while it runs, when it began to.
    pub(super) since: Timestamp,
    /// The last event that fits the state.
    pub(super) confirmed: Timestamp,
    /// It was made ready while it was running.
    pub(super) woken: bool,
    /// Its wakes are not recorded: as no user thread's are; as tokio's hooks, which alone know it, report
    /// none; or as it ran after it had been blocked, without a wake.
    pub(super) wakes_unseen: bool,
    /// A poll of it ended pending, as tokio's hooks report.
    pub(super) hooked: bool,
    pub(super) last_lwp: Option<Tid>,
    pub(super) last_cpu: Option<Cpu>,
}

impl UserThread {
    /// A user thread whose state is unknown since `since`; whether no wakes are recorded.
    pub(super) fn new(serial: TaskSerial, key: Key, since: Timestamp, wakes_unseen: bool) -> Self {
        UserThread {
            serial,
            process: key.owner.as_process(),
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
            wakes_unseen,
            hooked: false,
            waits_for: None,
            last_lwp: None,
            last_cpu: None,
        }
    }

    /// Up to when its state has been reported: its end, once it has ended, in nanoseconds on the recording's
    /// clock.
    pub fn reported_to(&self) -> Timestamp {
        self.since
    }

    /// Whether its wakes are not recorded: their number, and since when it has been ready, are unknown. Where
    /// it names what it waits for, that lasts until it runs again.
    pub fn lacks_wakes(&self) -> bool {
        self.wakes_unseen
    }

    /// Whether only tokio's hooks know it, which report no wakes.
    pub fn is_hooked(&self) -> bool {
        self.hooked
    }

    /// It is called as this origin says.
    pub(super) fn of_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    pub(super) fn ready(mut self) -> Self {
        self.state = State::Runnable { preempted: false };
        self
    }

    /// Takes its name from its origin as soon as that is known: it may be reported later, or have been lost
    /// earlier.
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
}
