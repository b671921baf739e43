//! Waits for locks and critical sections one by one, each with its beginning and its end: what is drawn of
//! locks.

use std::collections::HashMap;
use tracewing_units::{Duration, Pid, Task, Timestamp};

use tracewing_trace::super_trace::{Carried, Scope, Seen};

use super::account::Party;
use super::event::{Level, Reader};
use super::thread::{Acquisition, By, Thread, Told, Wait};
use super::tickets::{Ticketed, Tickets};
use crate::analysis::Loss;

/// What a thread or a user thread had to do with a lock, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockUse {
    /// Its process, if reported.
    pub process: Option<Pid>,
    /// The party; for an unknown user thread, the thread that made the request, or held the lock.
    pub party: Party,
    /// The lock's address.
    pub lock: u64,
    /// What kind of lock it is.
    pub kind: &'static str,
    /// Whether it is a lock of user threads.
    pub is_of_tasks: bool,
    /// Whether it had the lock; else it waited for it.
    pub is_held: bool,
    /// From when, ns on the recording's clock.
    pub begin: Timestamp,
    /// To when.
    pub end: Timestamp,
}

/// Follows the same events as [`Locks`](super::Locks), whose waits and critical sections these are.
#[derive(Debug, Default)]
pub struct LockUses {
    reader: Reader,
    threads: HashMap<Party, (Option<Pid>, Thread)>,
    tickets: Tickets,
    /// Whether events of programs are missing just now: two events of a thread need not belong together.
    blind: bool,
}

impl LockUses {
    /// Handles an event; `tell` receives the uses that end by it.
    pub fn event(&mut self, seen: &Seen<'_>, tell: &mut impl FnMut(LockUse)) {
        let (Some(activity), Some(tid)) = (seen.activity, seen.place.tid) else { return };
        let Some((level, event)) = self.reader.read(seen.event) else { return };
        let (process, time) = (seen.place.process, activity.time);
        let task = match seen.place.thread {
            Carried::Thread { id, .. } => id,
            _ => Task(0),
        };
        let party = match level {
            Level::Task(Some(ticket)) => {
                let by = By { process, tid, task, ..By::default() };
                return self.tickets.event(ticket, &event, by, time, &mut |party, told| {
                    tell_ticketed(party, &told, time, tell);
                });
            }
            Level::Task(None) if !task.is_none() => Party::Task(process, task),
            // Which wait and which release belong together is not known.
            Level::Task(None) => return,
            Level::Thread | Level::Kernel => Party::Thread(tid),
        };
        if self.blind {
            return;
        }
        let (known, thread) = self.threads.entry(party).or_default();
        *known = process.or(*known);
        let process = *known;
        thread.event(&event, By::default(), time, &mut |told| tell_of(&told, (process, party), time, tell));
    }

    /// A thread or a user thread has ended: what it waits for still it has waited for up to then.
    pub fn ends(&mut self, party: Party, at: Timestamp, tell: &mut impl FnMut(LockUse)) {
        if let Some((process, mut thread)) = self.threads.remove(&party) {
            thread.finish(at, &mut |told| tell_of(&told, (process, party), at, tell));
        }
        self.tickets.ends(party, at);
    }

    /// Events are missing.
    pub fn lost(&mut self, lost: &Loss) {
        if lost.scope == Scope::User {
            self.threads.clear();
            self.tickets.doubt();
            self.blind = true;
        }
    }

    /// No events of programs are missing any more.
    pub fn loss_over(&mut self) {
        self.tickets.doubt();
        self.blind = false;
    }

    /// The recording ends: what a thread or user thread waits for still it has waited for up to now.
    pub fn finish(&mut self, at: Timestamp, tell: &mut impl FnMut(LockUse)) {
        for (party, (process, mut thread)) in self.threads.drain() {
            thread.finish(at, &mut |told| tell_of(&told, (process, party), at, tell));
        }
        self.tickets.finish(at, None, &mut |party, told| tell_ticketed(party, &told, at, tell));
    }
}

fn tell_ticketed(party: Party, told: &Ticketed, now: Timestamp, tell: &mut impl FnMut(LockUse)) {
    let Ticketed::Told(
        told @ (Told::Acquired { acquisition, .. }
        | Told::Refused { acquisition, .. }
        | Told::Held { acquisition, .. }),
    ) = told
    else {
        return;
    };
    let party = match party {
        Party::Place(..) => Party::Thread(acquisition.by.tid),
        known => known,
    };
    let mut tell_task = |of: LockUse| tell(LockUse { is_of_tasks: true, ..of });
    tell_of(told, (acquisition.by.process, party), now, &mut tell_task);
}

fn tell_of(
    told: &Told,
    (process, party): (Option<Pid>, Party),
    now: Timestamp,
    tell: &mut impl FnMut(LockUse),
) {
    let mut tell = |of: &Acquisition, is_held, begin: Timestamp, length: Duration| {
        let (end, is_of_tasks) = (begin + length, matches!(party, Party::Task(..)));
        tell(LockUse {
            process,
            party,
            lock: of.lock,
            kind: of.kind.name(),
            is_of_tasks,
            is_held,
            begin,
            end,
        });
    };
    match told {
        Told::Acquired { acquisition, wait: Wait::For(wait), .. } => {
            tell(acquisition, false, now.saturating_sub(*wait), *wait);
        }
        Told::Refused { acquisition, wait: Some(wait), at, .. } => {
            tell(acquisition, false, at.saturating_sub(*wait), *wait);
        }
        Told::Held { acquisition, begin, length: Some(length) } => tell(acquisition, true, *begin, *length),
        _ => {}
    }
}
