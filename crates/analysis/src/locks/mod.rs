//! Locks: their waiters, wait times, holders, hold times, and the places in the program that use them. The
//! figures of K42's lock contention table (Figure 7 of its paper) and of `perf lock contention`; nesting and
//! critical sections as Feather-Trace's paper (3) has them.
//!
//! From events of provider `lock` (`docs/reference/locks.md`), those of user threads
//! (`docs/reference/tasks.md`), the kernel's `contention_begin` and `contention_end`, and its futex system
//! calls, if no other event shows what is waited for; the last two have no critical sections.
//!
//! | module | does |
//! |---|---|
//! | `event` | decodes events |
//! | `thread` | a thread and its locks |
//! | `tickets` | requests of user threads |
//! | `owners` | the holders of a lock |
//! | `account` | what is counted of one line |
//! | `totals` | what is counted of all |
//! | `table`, `finish` | the result, and how it is made |
//! | `places` | the places in a program |
//! | `graph` | which party waits for which |
//! | `uses` | waits and critical sections one by one |
//! | `kept` | what checkpoints need |

mod account;
mod doubt;
mod event;
mod finish;
mod graph;
mod kept;
mod owners;
mod places;
mod table;
#[cfg(test)]
mod tests;
mod thread;
mod tickets;
mod totals;
mod uses;

use std::collections::{HashMap, HashSet};
use tracewing_units::{Caller, LockAddress, Pid, Task, Tid, Timestamp};

use tracewing_trace::super_trace::{
    Carried, Change, Fold, Located, Lwp, Name, Part, Scope, Seen, SwitchCause, UserThread,
};
use tracewing_vocabulary::{lock, user_thread};

pub use self::account::{Account, Bins, Histogram, Kinds, Party, Sum};
use self::doubt::KernelDoubt;
use self::event::{Level, LockEvent, Reader};
pub use self::graph::{Edge, Graph};
pub(crate) use self::kept::EarlierLocks;
pub use self::places::Frame;
use self::places::Places;
pub use self::table::{AcrossAwait, Group, LocksTable, Row, Subject, Unpaired};
use self::thread::{By, Request, Thread};
use self::tickets::Tickets;
use self::totals::Totals;
pub use self::uses::{LockRead, LockReader, LockUse, LockUses};
use crate::analysis::{Analysis, Input, Loss};
use crate::programs::Programs;

/// The analysis of `tracewing locks`: acquisitions, waits and critical sections.
#[derive(Debug)]
pub struct Locks {
    reader: Reader,
    programs: Programs,
    threads: HashMap<Party, Thread>,
    /// Those that ended before what is analysed: what they held, they hold until others have their numbers.
    dead: HashMap<Party, Thread>,
    /// Requests that may have ended while events were lost, of parties without an event since; with the time
    /// at which the party itself ended.
    silent: HashMap<Party, (Request, Option<Timestamp>)>,
    tickets: Tickets,
    kernel: KernelDoubt,
    totals: Totals,
    names: HashMap<Tid, String>,
    task_names: HashMap<(Option<Pid>, Task), String>,
    places: Places,
    shadowed: Vec<(Option<Pid>, String, String)>,
    strangers: HashSet<Tid>,
}

impl Locks {
    /// An analysis that has seen nothing yet.
    pub fn new(group: Group, bins: Bins) -> Self {
        Self {
            reader: Reader::default(),
            programs: Programs::default(),
            threads: HashMap::new(),
            dead: HashMap::new(),
            silent: HashMap::new(),
            tickets: Tickets::default(),
            kernel: KernelDoubt::default(),
            totals: Totals::new(group, bins),
            names: HashMap::new(),
            task_names: HashMap::new(),
            places: Places::default(),
            shadowed: Vec::new(),
            strangers: HashSet::new(),
        }
    }

    /// One that has seen the same; it learns event classes anew.
    pub(crate) fn same(&self) -> Self {
        Self {
            reader: Reader::default(),
            programs: self.programs.clone(),
            threads: self.threads.clone(),
            dead: self.dead.clone(),
            silent: self.silent.clone(),
            tickets: self.tickets.clone(),
            kernel: self.kernel,
            totals: self.totals.clone(),
            names: self.names.clone(),
            task_names: self.task_names.clone(),
            places: self.places.clone(),
            shadowed: self.shadowed.clone(),
            strangers: self.strangers.clone(),
        }
    }

    /// Some events are missing, from now on or up to now: what was begun may have ended.
    fn doubt(&mut self) {
        let requests = self
            .threads
            .iter()
            .filter_map(|(party, thread)| Some((*party, (thread.waits()?, thread.waited_to()))));
        self.silent.extend(requests);
        let unfinished: u64 = self.threads.drain().map(|(_, thread)| thread.unfinished()).sum();
        self.totals.incomplete += if self.totals.begun { unfinished } else { 0 };
        self.totals.owners.clear();
        self.dead.clear();
        self.tickets.doubt();
    }

    /// The thread no longer waits for locks of its program, but its number is still its own.
    fn exits(&mut self, party: Party, at: Timestamp) {
        if let Some((_, ended)) = self.silent.get_mut(&party) {
            ended.get_or_insert(at);
        }
        if let Some(thread) = self.threads.get_mut(&party) {
            thread.exits(at);
        }
    }

    /// The party no longer waits, but an unsuccessful wait is kept: it may have been a deadlock.
    fn ends(&mut self, party: Party, at: Timestamp) {
        if let Some((_, ended)) = self.silent.get_mut(&party) {
            ended.get_or_insert(at);
        }
        if let Some(thread) = self.threads.get_mut(&party) {
            thread.ended = Some(at);
            // What has nothing open is as one of which nothing was seen.
            if thread.unfinished() == 0 {
                self.threads.remove(&party);
            }
        }
        self.tickets.ends(party, at);
    }

    /// A process executes another program: its locks are gone, and all threads that wanted them or had them.
    fn replace(&mut self, process: Option<Pid>, at: Timestamp) {
        self.places.forget_images(process);
        let is_gone = |_: &Party, thread: &mut Thread| thread.process == process;
        for (party, mut thread) in self.threads.extract_if(is_gone) {
            thread.finish(at, &mut |outcome| self.totals.add(party, &outcome, false, &self.places));
        }
        self.tickets.finish(at, process, &mut |party, outcome| {
            self.totals.ticketed(party, &outcome, false, &self.places);
        });
        self.totals.owners.retain(|(of, _), _| *of != process);
        self.dead.retain(|_, thread| thread.process != process);
        self.silent.retain(|_, (request, _)| request.acquisition.by.process != process);
    }

    /// The user thread that an event belongs to, if there is one.
    fn task(&mut self, process: Option<Pid>, carried: Carried<'_>) -> u64 {
        let Carried::Thread { id, name } = carried else { return 0 };
        if !name.is_empty() && self.task_names.get(&(process, id)).is_none_or(|known| known != name) {
            self.task_names.insert((process, id), name.to_owned());
        }
        id.0
    }
}

impl Fold for Locks {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            Change::UserThreadStops { lwp, cause, at, .. } => self.user_thread_stops(lwp, cause, at),
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl Locks {
    fn lwp_ends(&mut self, lwp: &Lwp) {
        if !lwp.name.is_empty() {
            self.names.insert(lwp.tid, lwp.name.clone());
        }
        self.ends(Party::Thread(lwp.tid), lwp.reported_to());
    }

    fn user_thread_stops(&mut self, lwp: &Lwp, cause: SwitchCause, at: Timestamp) {
        let is_suspended = !matches!(cause, SwitchCause::Nested | SwitchCause::Ended | SwitchCause::Unknown);
        if is_suspended {
            self.tickets.suspends(lwp.tid, at);
        }
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        self.ends(Party::Task(thread.process, thread.id), thread.reported_to());
    }
}

impl Analysis for Locks {
    const BEFORE: bool = true;

    const CONTINUES: bool = true;

    const TOGETHER: &[&[&str]] = &event::TOGETHER;

    const SAME: &[&str] = &[lock::Acquired::lock.name, user_thread::Acquired::object.name];

    fn can_take(&self, parts: &[Part]) -> bool {
        Self::has_part(parts)
    }

    fn take(&mut self, parts: &[Part]) -> bool {
        self.take_part(parts)
    }

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Begins { time } => self.begins(time),
            Input::Event(seen) => self.event(seen),
            Input::Dumped { tid, name, .. } => self.dumped(tid, name),
            Input::LeftOut(Change::LwpEnds { lwp }) => self.other_ends(lwp),
            Input::Lost(lost) => self.lost(lost),
            Input::LossOver { .. } => self.loss_over(),
            _ => {}
        }
    }
}

impl Locks {
    fn begins(&mut self, time: Timestamp) {
        for (party, thread) in &mut self.threads {
            thread.settle(&mut |outcome| self.totals.add(*party, &outcome, false, &self.places));
        }
        let dead = self.threads.extract_if(|_, thread| thread.ended.is_some());
        self.dead = dead.filter(|(_, thread)| thread.held().next().is_some()).collect();
        self.totals.begins();
        for (party, thread) in &mut self.threads {
            thread.begin(time, &mut |outcome| self.totals.add(*party, &outcome, false, &self.places));
        }
        self.tickets.begin(time, &mut |party, outcome| {
            self.totals.ticketed(party, &outcome, false, &self.places);
        });
    }

    fn event(&mut self, seen: &Seen<'_>) {
        let at = seen.located();
        if self.follows(&at)
            && let Some((level, event)) = self.reader.read(seen.event)
        {
            self.located(level, event, &at, |name| seen.adapter.name(name).to_owned());
        }
    }

    /// Looks at an event; whether it may be about locks.
    #[inline]
    fn follows(&mut self, at: &Located<'_>) -> bool {
        let is_placed = at.activity.is_some() && at.place.tid.is_some();
        if is_placed {
            self.places.follow(at);
        }
        is_placed
    }

    /// Handles an event of which this was read.
    fn located(&mut self, level: Level, event: LockEvent, at: &Located<'_>, name: impl Fn(Name) -> String) {
        let (Some(activity), Some(tid)) = (at.activity, at.place.tid) else { return };
        let process = at.place.process;
        if let Some(since) = self.programs.changed(at.state, process) {
            self.replace(process, since);
        }
        match event {
            LockEvent::CallChain { chain, frames } => self.places.learn_chain(chain, frames),
            LockEvent::Image { begin, end, bias, path } => {
                self.places.learn_image(process, begin..end, bias, path);
            }
            LockEvent::Place { caller, file, line } => self.places.learn_source(process, caller, file, line),
            LockEvent::Origin { caller, file, line } => self.places.learn_source(None, caller, file, line),
            LockEvent::Parked => self.tickets.suspends(tid, activity.time),
            LockEvent::Exits => self.exits(Party::Thread(tid), activity.time),
            LockEvent::Shadowed { function, path } => {
                let found = (process, function, path);
                if !self.shadowed.contains(&found) {
                    self.shadowed.push(found);
                }
            }
            event => self.lock_event((at, name), tid, activity.time, level, &event),
        }
    }

    /// An event of a lock: of a thread, of the kernel, or of a user thread, whose requests have tickets.
    fn lock_event(
        &mut self,
        (at, name): (&Located<'_>, impl Fn(Name) -> String),
        tid: Tid,
        time: Timestamp,
        level: Level,
        event: &LockEvent,
    ) {
        let process = at.place.process;
        let within = match level {
            Level::Kernel => self.places.activity(at.place.mode, name),
            Level::Thread | Level::Task(_) => Caller::UNKNOWN,
        };
        // The kernel's locks belong to no process; only their waiters do.
        let of = process.filter(|_| level != Level::Kernel || self.totals.is_by_party());
        let task = self.task(process, at.place.thread);
        let by = By { process: of, tid, task: Task(task), within, epoch: self.places.epoch() };
        if self.totals.begun && process.is_none() && level != Level::Kernel {
            self.strangers.insert(tid);
        }
        let party = match level {
            Level::Task(Some(ticket)) => {
                return self.tickets.event(ticket, event, by, time, &mut |party, outcome| {
                    self.totals.ticketed(party, &outcome, false, &self.places);
                });
            }
            Level::Task(None) if !by.task.is_none() => Party::Task(process, by.task),
            Level::Task(None) => return self.totals.unpaired(event, by, &self.places),
            Level::Thread | Level::Kernel => Party::Thread(tid),
        };
        self.of_party(party, process, event, by, time);
    }

    /// An event of a thread, or of a user thread whose requests have no tickets.
    fn of_party(&mut self, party: Party, process: Option<Pid>, event: &LockEvent, by: By, time: Timestamp) {
        self.silent.remove(&party);
        if !self.dead.is_empty()
            && let Some(other) = self.dead.remove(&party)
        {
            other.held().for_each(|acquisition| self.totals.leaves(party, acquisition));
        }
        if self.kernel.hides_end_of(event, time) {
            return;
        }
        let holder = match *event {
            LockEvent::Requested { lock, owner: None, .. } => self.holder((by.process, lock)),
            _ => None,
        };
        let thread = self.threads.entry(party).or_default();
        thread.event(event, by, time, &mut |outcome| self.totals.add(party, &outcome, false, &self.places));
        if holder.is_some() {
            thread.learn_holder(holder);
        }
        thread.process = process.or(thread.process);
    }

    /// The present holder of a lock; of several, the one that has held it longest.
    fn holder(&self, lock: (Option<Pid>, LockAddress)) -> Option<Party> {
        let has = |owner: &Party| self.threads.get(owner).is_some_and(|thread| thread.has(lock.1));
        self.totals.owners.get(&lock)?.in_order().find(has)
    }

    fn dumped(&mut self, tid: Tid, name: &[u8]) {
        self.names.entry(tid).or_insert_with(|| String::from_utf8_lossy(name).into_owned());
    }

    fn other_ends(&mut self, lwp: &Lwp) {
        // It may have held a lock that a selected party waited for.
        self.lwp_ends(lwp);
    }

    fn lost(&mut self, lost: &Loss) {
        let unfinished = self.kernel.lost(lost, self.threads.values_mut());
        self.totals.incomplete += if self.totals.begun { unfinished } else { 0 };
        if matches!(lost.scope, Scope::User) {
            self.doubt();
            self.totals.blind = true;
        }
    }

    fn loss_over(&mut self) {
        self.doubt();
        self.totals.blind = false;
    }
}
