//! Waits for locks and critical sections one by one, each with its begin and its end: what is drawn of locks.

use std::collections::HashMap;

use tracewing_trace::super_trace::{Carried, Scope, Seen};

use super::account::Party;
use super::event::{Level, Reader};
use super::thread::{Acquisition, By, Thread, Told};
use crate::run::Loss;

/// What a thread or a user thread had to do with a lock, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockUse {
    /// Its process, where an event tells.
    pub process: Option<i32>,
    /// Who.
    pub party: Party,
    /// The lock's address.
    pub lock: u64,
    /// What kind of lock it is.
    pub kind: &'static str,
    /// Whether it had the lock; else it waited for it.
    pub is_held: bool,
    /// From when, ns on the recording's clock.
    pub begin: i64,
    /// To when.
    pub end: i64,
}

/// Follows the same events as [`Locks`](super::Locks), whose waits and critical sections these are.
#[derive(Debug, Default)]
pub struct LockUses {
    reader: Reader,
    threads: HashMap<Party, (Option<i32>, Thread)>,
}

impl LockUses {
    /// Takes an event; `tell` is told what ends by it.
    pub fn event(&mut self, seen: &Seen<'_>, tell: &mut impl FnMut(LockUse)) {
        let (Some(activity), Some(tid)) = (seen.activity, seen.place.tid) else { return };
        let Some((level, event)) = self.reader.read(seen.event) else { return };
        let process = seen.place.process;
        let party = match (level, seen.place.thread) {
            (Level::Task, Carried::Thread { id, .. }) => Party::Task(process, id),
            _ => Party::Thread(tid),
        };
        let (known, thread) = self.threads.entry(party).or_default();
        *known = process.or(*known);
        let (process, time) = (*known, activity.time);
        thread.event(&event, By::default(), time, &mut |told| tell_of(&told, (process, party), time, tell));
    }

    /// A thread or a user thread has ended: what it waits for still it has waited for up to then.
    pub fn ends(&mut self, party: Party, at: i64, tell: &mut impl FnMut(LockUse)) {
        if let Some((process, mut thread)) = self.threads.remove(&party) {
            thread.finish(at, &mut |told| tell_of(&told, (process, party), at, tell));
        }
    }

    /// Events are missing.
    pub fn lost(&mut self, lost: &Loss, tell: &mut impl FnMut(LockUse)) {
        if lost.scope == Scope::User {
            self.finish(lost.from, tell);
        }
    }

    /// The recording ends, or nothing is known any more: what somebody waits for still he has waited for up to now.
    pub fn finish(&mut self, at: i64, tell: &mut impl FnMut(LockUse)) {
        for (party, (process, mut thread)) in self.threads.drain() {
            thread.finish(at, &mut |told| tell_of(&told, (process, party), at, tell));
        }
    }
}

fn tell_of(told: &Told, (process, party): (Option<i32>, Party), now: i64, tell: &mut impl FnMut(LockUse)) {
    let mut tell = |of: &Acquisition, is_held, begin: i64, length: u64| {
        let end = begin.saturating_add_unsigned(length);
        tell(LockUse { process, party, lock: of.lock, kind: of.kind.name(), is_held, begin, end });
    };
    match told {
        Told::Acquired { acquisition, wait: Some(wait), .. } => {
            tell(acquisition, false, now.saturating_sub_unsigned(*wait), *wait);
        }
        Told::Refused { acquisition, wait: Some(wait), at, .. } => {
            tell(acquisition, false, at.saturating_sub_unsigned(*wait), *wait);
        }
        Told::Held { acquisition, begin, length: Some(length) } => tell(acquisition, true, *begin, *length),
        _ => {}
    }
}
