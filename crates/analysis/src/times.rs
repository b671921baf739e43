//! Time by what it was spent on.

use crate::names::Names;
use serde::Serialize;
use tracewing_trace::super_trace::{Doing, Mode, Name};
use tracewing_units::Duration;

/// Time, by what it was spent on. `running_ns`, `waiting_ns`, `blocked_ns`, `nested_ns` and
/// `unknown_ns` add up to all of it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Times {
    /// On a CPU, interrupts included.
    pub running_ns: Duration,
    /// Ready to run, but no CPU was free for it.
    #[serde(rename = "ready_ns")]
    pub waiting_ns: Duration,
    /// Waiting for something else: a lock, data, time, its first start.
    pub blocked_ns: Duration,
    /// Of a user thread: others that it runs within itself were running.
    pub nested_ns: Duration,
    /// Before its first event, and where events are missing.
    pub unknown_ns: Duration,
    /// Part of `running_ns`: in its program's code.
    pub user_ns: Duration,
    /// Part of `running_ns`: in system calls.
    pub system_ns: Duration,
    /// Part of `running_ns`: taken from it by interrupts and softirqs.
    pub interrupted_ns: Duration,
    /// Part of `running_ns`: in its program's code or in a system call, which no event says.
    pub undetermined_ns: Duration,
    /// Parts of `blocked_ns`, longest first.
    pub blocked_on: Vec<Part>,
    /// Parts of `interrupted_ns`: which interrupts and softirqs, longest first.
    pub interrupted_by: Vec<Part>,
}

/// Time spent waiting for one kind of thing, or in one kind of interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// A system call, or what a user thread reports that it waits for; an interrupt; `None` if unknown.
    pub on: Option<String>,
    /// How long, in nanoseconds.
    pub ns: Duration,
}

impl Times {
    /// Adds times of another one.
    pub fn add(&mut self, other: &Times) {
        grow(&mut self.running_ns, other.running_ns);
        grow(&mut self.waiting_ns, other.waiting_ns);
        grow(&mut self.blocked_ns, other.blocked_ns);
        grow(&mut self.nested_ns, other.nested_ns);
        grow(&mut self.unknown_ns, other.unknown_ns);
        grow(&mut self.user_ns, other.user_ns);
        grow(&mut self.system_ns, other.system_ns);
        grow(&mut self.interrupted_ns, other.interrupted_ns);
        grow(&mut self.undetermined_ns, other.undetermined_ns);
        add_parts(&mut self.blocked_on, &other.blocked_on);
        add_parts(&mut self.interrupted_by, &other.interrupted_by);
    }
}

fn add_parts(parts: &mut Vec<Part>, others: &[Part]) {
    for other in others {
        match parts.iter_mut().find(|known| known.on == other.on) {
            Some(known) => grow(&mut known.ns, other.ns),
            None => parts.push(other.clone()),
        }
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
}

/// The same while it is being counted.
#[derive(Debug, Default, Clone)]
pub(crate) struct Clock {
    user: Duration,
    system: Duration,
    unknown_mode: Duration,
    waiting: Duration,
    nested: Duration,
    unknown: Duration,
    /// Few kinds each, so a search is short.
    blocked: Vec<(Option<Name>, Duration)>,
    interrupted: Vec<(Option<Name>, Duration)>,
}

impl Clock {
    /// Adds what was done for `ns`.
    #[inline]
    pub(crate) fn add(&mut self, doing: Doing, ns: Duration) {
        let sum = match doing {
            Doing::Unknown => &mut self.unknown,
            Doing::Running { mode: Mode::User, .. } => &mut self.user,
            Doing::Running { mode: Mode::SystemCall(_), .. } => &mut self.system,
            Doing::Running { mode: Mode::Unknown, .. } => &mut self.unknown_mode,
            Doing::Runnable { .. } => &mut self.waiting,
            Doing::Nested => &mut self.nested,
            Doing::Running { mode: Mode::Interrupt(by), .. } => return add(&mut self.interrupted, by, ns),
            Doing::Blocked { on } => return add(&mut self.blocked, on, ns),
        };
        grow(sum, ns);
    }

    /// Moves what `other` counted here.
    pub(crate) fn take(&mut self, other: &mut Clock) {
        grow(&mut self.user, other.user);
        grow(&mut self.system, other.system);
        grow(&mut self.unknown_mode, other.unknown_mode);
        grow(&mut self.waiting, other.waiting);
        grow(&mut self.nested, other.nested);
        grow(&mut self.unknown, other.unknown);
        other.blocked.iter().for_each(|(on, ns)| add(&mut self.blocked, *on, *ns));
        other.interrupted.iter().for_each(|(by, ns)| add(&mut self.interrupted, *by, *ns));
        other.clear();
    }

    /// What it did in its program, it may have done in system calls.
    pub(crate) fn doubt_mode(&mut self) {
        grow(&mut self.unknown_mode, std::mem::take(&mut self.user));
    }

    pub(crate) fn clear(&mut self) {
        let mut emptied = [&mut self.blocked, &mut self.interrupted].map(std::mem::take);
        emptied.iter_mut().for_each(Vec::clear);
        let [blocked, interrupted] = emptied;
        *self = Clock { blocked, interrupted, ..Clock::default() };
    }

    pub(crate) fn times(&self, names: &Names) -> Times {
        let [blocked_on, interrupted_by] = [&self.blocked, &self.interrupted].map(|sums| parts(sums, names));
        let sum = |parts: &[Part]| total(parts.iter().map(|part| part.ns));
        let interrupted_ns = sum(&interrupted_by);
        Times {
            running_ns: total([self.user, self.system, interrupted_ns, self.unknown_mode].into_iter()),
            waiting_ns: self.waiting,
            blocked_ns: sum(&blocked_on),
            nested_ns: self.nested,
            unknown_ns: self.unknown,
            user_ns: self.user,
            system_ns: self.system,
            interrupted_ns,
            undetermined_ns: self.unknown_mode,
            blocked_on,
            interrupted_by,
        }
    }
}

/// Adds times up. If impossible stamps make the sum overflow, it is the largest value, which tables show as
/// unknown.
pub fn total(times: impl Iterator<Item = Duration>) -> Duration {
    times.sum()
}

/// Adds counts up; a sum that overflows is the largest value.
pub fn total_count(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Adds to a sum of times, as [`total`] does.
#[inline]
pub(crate) fn grow(sum: &mut Duration, ns: Duration) {
    *sum += ns;
}

/// Adds to one of few sums.
#[inline]
pub(crate) fn add<K: PartialEq>(sums: &mut Vec<(K, Duration)>, key: K, ns: Duration) {
    match sums.iter_mut().find(|(known, _)| *known == key) {
        Some((_, sum)) => grow(sum, ns),
        None => sums.push((key, ns)),
    }
}

/// The greatest first, with their names.
pub(crate) fn parts(sums: &[(Option<Name>, Duration)], names: &Names) -> Vec<Part> {
    let some = sums.iter().filter(|(_, ns)| !ns.is_zero());
    let mut parts: Vec<_> =
        some.map(|(on, ns)| Part { on: on.map(|name| names.get(name).to_owned()), ns: *ns }).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    parts
}
