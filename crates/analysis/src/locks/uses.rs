//! Waits for locks and critical sections one by one, each with its beginning and its end: what is drawn of
//! locks.

use std::collections::HashMap;
use tracewing_units::{Duration, LockAddress, Pid, Task, Timestamp};

use tracewing_trace::EventRef;
use tracewing_trace::super_trace::{Carried, Located, Scope, Seen};

use super::account::Party;
use super::doubt::KernelDoubt;
use super::event::{Level, LockEvent, Reader};
use super::thread::{Acquisition, By, Outcome, Thread, Wait};
use super::tickets::{Ticketed, Tickets};
use crate::analysis::Loss;

/// What a thread or a user thread had to do with a lock, for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockUse {
    /// Its process, if reported.
    pub process: Option<Pid>,
    /// The party; for an unknown user thread, the thread that made the request, or held the lock.
    pub party: Party,
    /// The lock's address in its process.
    pub lock: LockAddress,
    /// What kind of lock it is.
    pub kind: &'static str,
    /// Whether the kernel's own events record it.
    pub is_of_kernel: bool,
    /// Whether it is a lock of user threads.
    pub is_of_tasks: bool,
    /// Whether it had the lock; else it waited for it.
    pub is_held: bool,
    /// From when, ns on the recording's clock.
    pub begin: Timestamp,
    /// To when, ns on the recording's clock.
    pub end: Timestamp,
}

/// What an event says about a lock.
#[derive(Debug)]
pub struct LockRead(pub(super) Level, pub(super) LockEvent);

/// Reads events about locks, and remembers their classes.
#[derive(Debug, Default)]
pub struct LockReader(Reader);

impl LockReader {
    /// Decodes an event; `None` if it is not about locks, or lacks fields.
    pub fn read(&mut self, event: &EventRef<'_>) -> Option<LockRead> {
        self.0.read(event).map(|(level, event)| LockRead(level, event))
    }

    /// Whether events of this class are about locks.
    pub fn knows(&mut self, event: &EventRef<'_>) -> bool {
        self.0.knows(event)
    }
}

/// Follows the same events as [`Locks`](super::Locks), whose waits and critical sections these are.
#[derive(Debug, Default)]
pub struct LockUses {
    reader: LockReader,
    threads: HashMap<Party, (Option<Pid>, Thread)>,
    tickets: Tickets,
    kernel: KernelDoubt,
    /// Whether events of programs are missing just now: two events of a thread need not belong together.
    blind: bool,
}

impl LockUses {
    /// Handles an event; `report` receives the uses that end by it.
    pub fn event(&mut self, seen: &Seen<'_>, report: &mut impl FnMut(LockUse)) {
        if let Some(read) = self.reader.read(seen.event) {
            self.located(read, &seen.located(), report);
        }
    }

    /// The same of an event that a [`LockReader`] has read.
    pub fn located(
        &mut self,
        LockRead(level, event): LockRead,
        at: &Located<'_>,
        report: &mut impl FnMut(LockUse),
    ) {
        let (Some(activity), Some(tid)) = (at.activity, at.place.tid) else { return };
        let (process, time) = (at.place.process, activity.time);
        let task = match at.place.thread {
            Carried::Thread { id, .. } => id,
            _ => Task(0),
        };
        let party = match level {
            Level::Task(Some(ticket)) => {
                let by = By { process, tid, task, ..By::default() };
                return self.tickets.event(ticket, &event, by, time, &mut |party, outcome| {
                    report_ticketed(party, &outcome, time, report);
                });
            }
            Level::Task(None) if !task.is_none() => Party::Task(process, task),
            // Which wait and which release belong together is not known.
            Level::Task(None) => return,
            Level::Thread | Level::Kernel => Party::Thread(tid),
        };
        if event == LockEvent::Exits {
            self.threads.get_mut(&party).into_iter().for_each(|(_, thread)| thread.exits(time));
            return;
        }
        if self.blind || self.kernel.hides_end_of(&event, time) {
            return;
        }
        let (known, thread) = self.threads.entry(party).or_default();
        *known = process.or(*known);
        let process = *known;
        thread.event(&event, By::default(), time, &mut |outcome| {
            report_use(&outcome, (process, party), time, report)
        });
    }

    /// The recording is opened anew: its streams and classes may have other numbers.
    pub fn reopen(&mut self) {
        self.reader = LockReader::default();
    }

    /// Another one that has seen the same.
    pub fn same(&self) -> Self {
        let Self { threads, tickets, kernel, blind, .. } = self;
        let (threads, tickets) = (threads.clone(), tickets.clone());
        Self { reader: LockReader::default(), threads, tickets, kernel: *kernel, blind: *blind }
    }

    /// A thread or a user thread has ended, and with it its pending wait.
    pub fn ends(&mut self, party: Party, at: Timestamp, report: &mut impl FnMut(LockUse)) {
        if let Some((process, mut thread)) = self.threads.remove(&party) {
            thread.finish(at, &mut |outcome| report_use(&outcome, (process, party), at, report));
        }
        self.tickets.ends(party, at);
    }

    /// Handles a loss: uses that were in progress get no end.
    pub fn lost(&mut self, lost: &Loss) {
        self.kernel.lost(lost, self.threads.values_mut().map(|(_, thread)| thread));
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

    /// The recording has ended, and with it all pending waits, in the order of their parties and locks.
    pub fn finish(&mut self, at: Timestamp, report: &mut impl FnMut(LockUse)) {
        let mut threads: Vec<_> = self.threads.drain().collect();
        threads.sort_unstable_by_key(|(party, _)| *party);
        for (party, (process, mut thread)) in threads {
            thread.finish(at, &mut |outcome| report_use(&outcome, (process, party), at, report));
        }
        self.tickets.finish(at, None, &mut |party, outcome| report_ticketed(party, &outcome, at, report));
    }
}

fn report_ticketed(party: Party, outcome: &Ticketed, now: Timestamp, report: &mut impl FnMut(LockUse)) {
    let Ticketed::Outcome(
        outcome @ (Outcome::Acquired { acquisition, .. }
        | Outcome::Refused { acquisition, .. }
        | Outcome::Unserved { acquisition, .. }
        | Outcome::Held { acquisition, .. }),
    ) = outcome
    else {
        return;
    };
    let party = match party {
        Party::Place(..) => Party::Thread(acquisition.by.tid),
        known => known,
    };
    let mut report_of_task = |of: LockUse| report(LockUse { is_of_tasks: true, ..of });
    report_use(outcome, (acquisition.by.process, party), now, &mut report_of_task);
}

fn report_use(
    outcome: &Outcome,
    (process, party): (Option<Pid>, Party),
    now: Timestamp,
    report: &mut impl FnMut(LockUse),
) {
    let mut report = |of: &Acquisition, is_held, begin: Timestamp, length: Duration| {
        let (end, is_of_tasks) = (begin + length, matches!(party, Party::Task(..)));
        report(LockUse {
            process,
            party,
            lock: of.lock,
            kind: of.kind.name(),
            is_of_kernel: of.kind.is_of_kernel(),
            is_of_tasks,
            is_held,
            begin,
            end,
        });
    };
    match outcome {
        Outcome::Acquired { acquisition, wait: Wait::For(wait), .. } => {
            report(acquisition, false, now.saturating_sub(*wait), *wait);
        }
        Outcome::Refused { acquisition, wait: Some(wait), at, .. }
        | Outcome::Unserved { acquisition, wait: Some(wait), at, .. } => {
            report(acquisition, false, at.saturating_sub(*wait), *wait);
        }
        Outcome::Held { acquisition, begin, length: Some(length) } => {
            report(acquisition, true, *begin, *length)
        }
        _ => {}
    }
}
