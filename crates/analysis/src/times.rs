//! Time by what it was spent on.

use crate::names::Names;
use serde::Serialize;
use tracewing_trace::super_trace::{Doing, Mode, Name};

/// Time in nanoseconds, by what it was spent on. `running_ns`, `waiting_ns`, `blocked_ns`, `nested_ns` and `unknown_ns` add
/// up to all of it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Times {
    /// On a CPU, interrupts included.
    pub running_ns: u64,
    /// Ready to run, but no CPU was free for it.
    pub waiting_ns: u64,
    /// Waiting for something else: a lock, data, time, its first start.
    pub blocked_ns: u64,
    /// Of a user thread: others that it runs within itself were running.
    pub nested_ns: u64,
    /// Before the first event that tells, and where events are missing.
    pub unknown_ns: u64,
    /// Part of `running_ns`: in its program's code.
    pub user_ns: u64,
    /// Part of `running_ns`: in system calls.
    pub system_ns: u64,
    /// Part of `running_ns`: taken from it by interrupts and softirqs.
    pub interrupted_ns: u64,
    /// Parts of `blocked_ns`, longest first.
    pub blocked_on: Vec<Blocked>,
}

/// Time spent waiting for one kind of thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// A system call, or what a user thread says that it waits for; `None` where no event tells.
    pub on: Option<String>,
    /// How long, in nanoseconds.
    pub ns: u64,
}

impl Times {
    /// Adds times of somebody else.
    pub fn add(&mut self, other: &Times) {
        self.running_ns += other.running_ns;
        self.waiting_ns += other.waiting_ns;
        self.blocked_ns += other.blocked_ns;
        self.nested_ns += other.nested_ns;
        self.unknown_ns += other.unknown_ns;
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.interrupted_ns += other.interrupted_ns;
        for blocked in &other.blocked_on {
            match self.blocked_on.iter_mut().find(|known| known.on == blocked.on) {
                Some(known) => known.ns += blocked.ns,
                None => self.blocked_on.push(blocked.clone()),
            }
        }
        self.blocked_on.sort_by_key(|blocked| std::cmp::Reverse(blocked.ns));
    }
}

/// The same while it is being counted.
#[derive(Debug, Default, Clone)]
pub(crate) struct Clock {
    user: u64,
    system: u64,
    interrupt: u64,
    unknown_mode: u64,
    waiting: u64,
    nested: u64,
    unknown: u64,
    /// Few kinds each, so a search is short.
    blocked: Vec<(Option<Name>, u64)>,
}

impl Clock {
    /// Adds what was done for `ns`.
    #[inline]
    pub(crate) fn add(&mut self, doing: Doing, ns: u64) {
        let sum = match doing {
            Doing::Unknown => &mut self.unknown,
            Doing::Running { mode: Mode::User, .. } => &mut self.user,
            Doing::Running { mode: Mode::SystemCall(_), .. } => &mut self.system,
            Doing::Running { mode: Mode::Interrupt, .. } => &mut self.interrupt,
            Doing::Running { mode: Mode::Unknown, .. } => &mut self.unknown_mode,
            Doing::Runnable { .. } => &mut self.waiting,
            Doing::Nested => &mut self.nested,
            Doing::Blocked { on } => return self.add_blocked(on, ns),
        };
        *sum += ns;
    }

    fn add_blocked(&mut self, on: Option<Name>, ns: u64) {
        match self.blocked.iter_mut().find(|(known, _)| *known == on) {
            Some((_, sum)) => *sum += ns,
            None => self.blocked.push((on, ns)),
        }
    }

    /// Moves what `other` counted here.
    pub(crate) fn take(&mut self, other: &mut Clock) {
        self.user += other.user;
        self.system += other.system;
        self.interrupt += other.interrupt;
        self.unknown_mode += other.unknown_mode;
        self.waiting += other.waiting;
        self.nested += other.nested;
        self.unknown += other.unknown;
        for (on, ns) in &other.blocked {
            self.add_blocked(*on, *ns);
        }
        other.clear();
    }

    pub(crate) fn clear(&mut self) {
        let mut blocked = std::mem::take(&mut self.blocked);
        blocked.clear();
        *self = Clock { blocked, ..Clock::default() };
    }

    pub(crate) fn times(&self, names: &Names) -> Times {
        let blocked = self.blocked.iter().filter(|(_, ns)| *ns > 0);
        let mut blocked_on: Vec<_> = blocked
            .map(|(on, ns)| Blocked { on: on.map(|name| names.get(name).to_owned()), ns: *ns })
            .collect();
        blocked_on.sort_by_key(|blocked| std::cmp::Reverse(blocked.ns));
        Times {
            running_ns: self.user + self.system + self.interrupt + self.unknown_mode,
            waiting_ns: self.waiting,
            blocked_ns: blocked_on.iter().map(|blocked| blocked.ns).sum(),
            nested_ns: self.nested,
            unknown_ns: self.unknown,
            user_ns: self.user,
            system_ns: self.system,
            interrupted_ns: self.interrupt,
            blocked_on,
        }
    }
}
