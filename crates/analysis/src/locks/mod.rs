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
//! | `account` | what is counted |
//! | `places` | the places in a program |
//! | `graph` | which party waits for which |
//! | `uses` | waits and critical sections one by one |

mod account;
mod event;
mod graph;
mod places;
#[cfg(test)]
mod tests;
mod thread;
mod tickets;
mod uses;

use std::collections::{HashMap, HashSet};
use tracewing_units::{Duration, Pid, Task, Tid, Timestamp};

use tracewing_trace::super_trace::{Carried, Change, Fold, Lwp, Scope, Seen, SwitchCause, UserThread};

use self::account::Kind;
pub use self::account::{Account, Bins, Histogram, Kinds, Party, Sum};
use self::event::{Level, LockEvent, Reader};
pub use self::graph::{Edge, Graph};
pub use self::places::Frame;
use self::places::Places;
use self::thread::{Acquisition, By, Request, Thread, Told, Wait};
use self::tickets::{Ticketed, Tickets};
pub use self::uses::{LockUse, LockUses};
use crate::analysis::{Analysis, Input, Loss};
use crate::images::Epoch;
use crate::programs::Programs;
use crate::run::{LocksLack, Ran};
use crate::times::grow;

/// What a line of the table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    /// A lock.
    #[default]
    Lock,
    /// A thread.
    Thread,
    /// A user thread.
    Task,
    /// A place in the program from which locks are acquired.
    Caller,
    /// A call chain by which locks are acquired.
    Chain,
}

/// Of what a line of the table is; in the process that the line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The lock at an address.
    Lock(u64),
    /// The futex at an address, which may be a part of a lock that begins there, and is no wait for that.
    Futex(u64),
    /// A thread.
    Thread(Tid),
    /// A user thread's number; `None` for what threads do for none.
    Task(Option<Task>),
    /// A return address of calls for locks; `None` if unknown, as in the kernel.
    Caller(Option<u64>),
    /// A call chain; `None` for acquisitions without one.
    Chain(Option<u64>),
}

/// A line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// The process; `None` if unknown, and for the kernel's locks.
    pub process: Option<Pid>,
    /// Its name, or nothing.
    pub process_name: String,
    /// What in it.
    pub subject: Subject,
    /// What is counted.
    pub account: Account,
    /// The name of the user thread that [`Row::subject`] is, or nothing.
    pub task_name: String,
    /// The name of the party that [`Account::owner`] returns.
    pub owner_name: String,
    /// Where in the program, the innermost first; of a lock, a thread or a user thread, where it was held
    /// longest, if lines are recorded.
    pub frames: Vec<Frame>,
}

/// Critical sections of one lock, taken at one place, in which a task awaited something else while others
/// waited for the lock.
#[derive(Debug, Clone)]
pub struct AcrossAwait {
    /// The process.
    pub process: Option<Pid>,
    /// The lock's address.
    pub lock: u64,
    /// What kind of lock it is.
    pub kind: &'static str,
    /// Where it was taken.
    pub frames: Vec<Frame>,
    /// Such critical sections.
    pub holds: Sum,
    /// How many waited at the end of one, at most.
    pub waiters: usize,
    /// How long others waited for the lock during these critical sections, in all, ns.
    pub waited_ns: Duration,
}

/// The result.
#[derive(Debug)]
pub struct LocksTable {
    /// What was waited for longest first.
    pub rows: Vec<Row>,
    /// Lengths of critical sections, and nesting, of the program's locks.
    pub histogram: Histogram,
    /// Which party waits for which.
    pub graph: Graph,
    /// Locks that were held across an `.await`, for [`LONG_HOLD`] or longer, while others waited; what cost
    /// most waiting first.
    pub across_awaits: Vec<AcrossAwait>,
    /// Functions of the library that records locks that another object overrides: the process, the function,
    /// the object.
    pub shadowed: Vec<(Option<Pid>, String, String)>,
    /// Requests, acquisitions and releases whose end or beginning is not among the analysed events. They are
    /// included in no time except that of the waits in progress at the end.
    pub incomplete: u64,
    /// Threads with locks whose process is unknown.
    pub strangers: usize,
    /// Acquisitions that are in no depth of nesting: no event shows which other locks were held then.
    pub unknown_depths: usize,
    /// Whether the histogram is empty as not all acquisitions and releases were recorded.
    pub lacks_holds: bool,
    /// Whether waits for locks of threads, and for those of user threads, are not in the graph: not all
    /// requests, acquisitions and releases were recorded.
    pub lacks_owners: [bool; 2],
    /// How long what was analysed lasted, ns.
    pub duration_ns: Duration,
    /// Why everything that needs pairs of events is unknown, if so.
    pub unpaired: Option<Unpaired>,
}

/// Of two events that belong together, the filter may leave out one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unpaired {
    /// By its name or its fields.
    Events,
    /// By its CPU.
    Cpus,
    /// By its LWP, of the locks of user threads, which go from one to another.
    Tids,
}

/// From when on a lock that is held across an `.await` is remarkable, in nanoseconds: as long as a blocking
/// poll.
pub const LONG_HOLD: Duration = Duration::from_ns(1_000_000);

/// The analysis.
#[derive(Debug)]
pub struct Locks {
    reader: Reader,
    programs: Programs,
    threads: HashMap<Party, Thread>,
    /// Requests that may have ended while events were lost, of parties without an event since; with the time
    /// at which the party itself ended.
    silent: HashMap<Party, (Request, Option<Timestamp>)>,
    tickets: Tickets,
    totals: Totals,
    names: HashMap<Tid, String>,
    /// Names of threads of processes, for want of the first one's.
    process_names: HashMap<Pid, String>,
    task_names: HashMap<(Option<Pid>, Task), String>,
    places: Places,
    shadowed: Vec<(Option<Pid>, String, String)>,
    strangers: HashSet<Tid>,
}

#[derive(Debug)]
struct Totals {
    /// Whether what is analysed has begun: before, only owners are noted.
    begun: bool,
    /// Whether events of programs are missing just now: two events of a thread need not belong together.
    blind: bool,
    group: Group,
    /// By process, subject, and the epoch since when the place is valid.
    accounts: HashMap<(Option<Pid>, Subject, Epoch), Account>,
    /// The holder of each lock, as far as events show.
    owners: HashMap<(Option<Pid>, u64), Vec<Party>>,
    graph: Graph,
    histogram: Histogram,
    /// Acquisitions of which the depth is not known.
    unknown_depths: usize,
    /// Whether threads have acquired locks that are held, and whether user threads have.
    have_held: [bool; 2],
    /// By process, lock, and the place where it was taken.
    across_awaits: HashMap<(Option<Pid>, u64, u64), Across>,
    incomplete: u64,
}

/// As in [`AcrossAwait`].
#[derive(Debug)]
struct Across {
    kind: Kind,
    epoch: Epoch,
    holds: Sum,
    waiters: usize,
    waited_ns: Duration,
}

impl Locks {
    /// An analysis that has seen nothing yet.
    pub fn new(group: Group, bins: Bins) -> Self {
        Self {
            reader: Reader::default(),
            programs: Programs::default(),
            threads: HashMap::new(),
            silent: HashMap::new(),
            tickets: Tickets::default(),
            totals: Totals {
                begun: false,
                blind: false,
                group,
                accounts: HashMap::new(),
                owners: HashMap::new(),
                graph: Graph::default(),
                histogram: Histogram::new(bins),
                unknown_depths: 0,
                have_held: [false; 2],
                across_awaits: HashMap::new(),
                incomplete: 0,
            },
            names: HashMap::new(),
            process_names: HashMap::new(),
            task_names: HashMap::new(),
            places: Places::default(),
            shadowed: Vec::new(),
            strangers: HashSet::new(),
        }
    }

    /// The table.
    pub fn finish(mut self, ran: &Ran) -> LocksTable {
        if self.totals.begun {
            self.note_who_waits(ran.end_ns);
            self.end_all(ran.end_ns);
        }
        let mut accounts = std::mem::take(&mut self.totals.accounts);
        let tears_tickets = ran.some_tids && accounts.values().any(|account| account.has_tickets);
        let unpaired = match () {
            () if ran.torn => Some(Unpaired::Events),
            () if ran.some_cpus => Some(Unpaired::Cpus),
            () => tears_tickets.then_some(Unpaired::Tids),
        };
        if let Some(unpaired) = unpaired {
            let is_torn = |account: &&mut Account| unpaired != Unpaired::Tids || account.has_tickets;
            accounts.values_mut().filter(is_torn).for_each(Account::unpair);
            (self.totals.histogram, self.totals.graph) = Default::default();
            self.totals.across_awaits.clear();
        }
        let (lacks_holds, lacks_owners) = self.totals.forget(&ran.recorded.lacks_of_locks);
        let row = |((process, subject, epoch), account): ((Option<Pid>, Subject, Epoch), Account)| Row {
            process,
            process_name: process.map(|process| self.process_name(process)).unwrap_or_default(),
            subject,
            task_name: match subject {
                Subject::Task(Some(task)) => self.name(Party::Task(process, task)),
                _ => String::new(),
            },
            owner_name: account.owner().map(|(owner, _)| self.name(owner)).unwrap_or_default(),
            frames: match subject {
                Subject::Lock(_) | Subject::Futex(_) | Subject::Thread(_) | Subject::Task(_) => {
                    let mut frames = self.places.caller(process, account.held_longest_at(), epoch);
                    frames.retain(|frame| frame.source.is_some());
                    frames
                }
                Subject::Caller(caller) => self.places.caller(process, caller, epoch),
                Subject::Chain(chain) => self.places.chain(process, chain, epoch),
            },
            account,
        };
        let mut rows: Vec<Row> = accounts.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            let account = &row.account;
            (std::cmp::Reverse((account.waits.total_ns, account.acquired)), row.process, row.subject)
        });
        let mut graph = std::mem::take(&mut self.totals.graph);
        graph.finish(|party| self.name(party), &self.places);
        let across = std::mem::take(&mut self.totals.across_awaits).into_iter();
        let mut across_awaits: Vec<AcrossAwait> = across
            .map(|((process, lock, caller), across)| AcrossAwait {
                process,
                lock,
                kind: across.kind.name(),
                frames: self.places.caller(process, Some(caller).filter(|caller| *caller != 0), across.epoch),
                holds: across.holds,
                waiters: across.waiters,
                waited_ns: across.waited_ns,
            })
            .collect();
        across_awaits.sort_by_key(|across| (std::cmp::Reverse(across.waited_ns), across.lock));
        let Totals { histogram, incomplete, unknown_depths, .. } = self.totals;
        LocksTable {
            rows,
            histogram,
            graph,
            across_awaits,
            shadowed: self.shadowed,
            incomplete,
            strangers: self.strangers.len(),
            unknown_depths,
            lacks_holds,
            lacks_owners,
            duration_ns: ran.duration_ns(),
            unpaired,
        }
    }

    fn process_name(&self, process: Pid) -> String {
        let name = self.names.get(&process.first_thread()).or_else(|| self.process_names.get(&process));
        name.cloned().unwrap_or_default()
    }

    fn name(&self, of: Party) -> String {
        let name = match of {
            Party::Thread(tid) => self.names.get(&tid),
            Party::Task(process, task) => self.task_names.get(&(process, task)),
            Party::Place(process, caller) => {
                let frames = self.places.caller(process, Some(caller), self.places.epoch());
                let source = frames.into_iter().next().and_then(|frame| frame.source);
                return source.map(|(file, line)| format!("{}:{line}", file_name(&file))).unwrap_or_default();
            }
        };
        name.cloned().unwrap_or_default()
    }

    /// The recording ends: wait-for edges must be determined before the state is dropped.
    fn note_who_waits(&mut self, at: Timestamp) {
        for (party, thread) in &mut self.threads {
            thread.settle(&mut |told| self.totals.add(*party, &told, false, &self.places));
        }
        for (party, thread) in &self.threads {
            if let Some(request) = thread.waits() {
                let acquisition = &request.acquisition;
                let owners = self.totals.owners_of(acquisition, request.owner);
                self.totals.graph.waits(*party, acquisition, &owners, thread.until(at) - request.at, false);
            }
        }
        for (party, (request, ended)) in &self.silent {
            let acquisition = &request.acquisition;
            let owners = self.totals.owners_of(acquisition, request.owner);
            self.totals.graph.waits(*party, acquisition, &owners, ended.unwrap_or(at) - request.at, true);
        }
    }

    /// Some events are missing, from now on or up to now: what was begun may have ended.
    fn doubt(&mut self) {
        let requests =
            self.threads.iter().filter_map(|(party, thread)| Some((*party, (thread.waits()?, thread.ended))));
        self.silent.extend(requests);
        let unfinished: u64 = self.threads.drain().map(|(_, thread)| thread.unfinished()).sum();
        self.totals.incomplete += if self.totals.begun { unfinished } else { 0 };
        self.totals.owners.clear();
        self.tickets.doubt();
    }

    /// The recording ends.
    fn end_all(&mut self, at: Timestamp) {
        self.tickets.finish(at, None, &mut |party, told| {
            self.totals.ticketed(party, &told, true, &self.places);
        });
        for (party, mut thread) in self.threads.drain() {
            thread.finish(at, &mut |told| self.totals.add(party, &told, false, &self.places));
        }
        self.totals.owners.clear();
    }

    /// The party no longer waits, but an unsuccessful wait is kept: it may have been a deadlock.
    fn ends(&mut self, party: Party, at: Timestamp) {
        if let Some((_, ended)) = self.silent.get_mut(&party) {
            *ended = Some(at);
        }
        if let Some(thread) = self.threads.get_mut(&party) {
            thread.ended = Some(at);
        }
        self.tickets.ends(party, at);
    }

    /// A process executes another program: its locks are gone, and all threads that wanted them or had them.
    fn replace(&mut self, process: Option<Pid>, at: Timestamp) {
        self.places.forget_images(process);
        let is_gone = |_: &Party, thread: &mut Thread| thread.process == process;
        for (party, mut thread) in self.threads.extract_if(is_gone) {
            thread.finish(at, &mut |told| self.totals.add(party, &told, false, &self.places));
        }
        self.tickets.finish(at, process, &mut |party, told| {
            self.totals.ticketed(party, &told, false, &self.places);
        });
        self.totals.owners.retain(|(of, _), _| *of != process);
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
            if let Some(process) = lwp.process {
                self.process_names.entry(process).or_insert_with(|| lwp.name.clone());
            }
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

    const TOGETHER: &[&[&str]] = &event::TOGETHER;

    const SAME: &[&str] = &["lock", "object"];

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
        for (party, mut thread) in self.threads.extract_if(|_, thread| thread.ended.is_some()) {
            thread.finish(time, &mut |told| self.totals.add(party, &told, false, &self.places));
        }
        for (party, thread) in &mut self.threads {
            thread.settle(&mut |told| self.totals.add(*party, &told, false, &self.places));
        }
        self.totals.begun = true;
        for (party, thread) in &mut self.threads {
            thread.begin(time, &mut |told| self.totals.add(*party, &told, false, &self.places));
        }
        self.tickets.begin(time, &mut |party, told| {
            self.totals.ticketed(party, &told, false, &self.places);
        });
    }

    fn event(&mut self, seen: &Seen<'_>) {
        let (Some(activity), Some(tid)) = (seen.activity, seen.place.tid) else { return };
        self.places.follow(seen);
        let Some((level, event)) = self.reader.read(seen.event) else { return };
        let process = seen.place.process;
        if let Some(since) = self.programs.changed(seen.state, process) {
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
            LockEvent::Shadowed { function, path } => {
                let told = (process, function, path);
                if !self.shadowed.contains(&told) {
                    self.shadowed.push(told);
                }
            }
            event => {
                let within = match level {
                    Level::Kernel => {
                        self.places.activity(seen.place.mode, |name| seen.adapter.name(name).to_owned())
                    }
                    Level::Thread | Level::Task(_) => 0,
                };
                // The kernel's locks belong to no process; only their waiters do.
                let is_who = matches!(self.totals.group, Group::Thread | Group::Task);
                let of = process.filter(|_| level != Level::Kernel || is_who);
                let task = self.task(process, seen.place.thread);
                let by = By { process: of, tid, task: Task(task), within, epoch: self.places.epoch() };
                if self.totals.begun && process.is_none() && level != Level::Kernel {
                    self.strangers.insert(tid);
                }
                let party = match level {
                    Level::Task(Some(ticket)) => {
                        return self.tickets.event(ticket, &event, by, activity.time, &mut |party, told| {
                            self.totals.ticketed(party, &told, false, &self.places);
                        });
                    }
                    Level::Task(None) if !by.task.is_none() => Party::Task(process, by.task),
                    Level::Task(None) => return self.totals.unpaired(&event, by, &self.places),
                    Level::Thread | Level::Kernel => Party::Thread(tid),
                };
                self.silent.remove(&party);
                let holder = match event {
                    LockEvent::Requested { lock, owner: None, .. } => self.holder((of, lock)),
                    _ => None,
                };
                let thread = self.threads.entry(party).or_default();
                thread.event(&event, by, activity.time, &mut |told| {
                    self.totals.add(party, &told, false, &self.places)
                });
                if holder.is_some() {
                    thread.learn_holder(holder);
                }
                thread.process = process.or(thread.process);
            }
        }
    }

    /// The present holder of a lock; of several, the one that has held it longest.
    fn holder(&self, lock: (Option<Pid>, u64)) -> Option<Party> {
        let owners = self.totals.owners.get(&lock)?;
        let has = |owner: &&Party| self.threads.get(owner).is_some_and(|thread| thread.has(lock.1));
        owners.iter().find(has).copied()
    }

    fn dumped(&mut self, tid: Tid, name: &[u8]) {
        self.names.entry(tid).or_insert_with(|| String::from_utf8_lossy(name).into_owned());
    }

    fn other_ends(&mut self, lwp: &Lwp) {
        // It may have held a lock that a selected party waited for.
        self.lwp_ends(lwp);
    }

    fn lost(&mut self, lost: &Loss) {
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

impl Totals {
    /// Forgets what needs events that were not recorded: whether the histogram does, and whether waits of
    /// threads and of user threads do.
    fn forget(&mut self, lacks: &[LocksLack; 2]) -> (bool, [bool; 2]) {
        let lacks_owners = lacks.map(|of| of.requests || of.acquisitions || of.releases);
        let has_no_holds = |(of, held): (&LocksLack, bool)| of.acquisitions || (of.releases && held);
        let lacks_holds = lacks.iter().zip(self.have_held).any(has_no_holds);
        if lacks_holds {
            self.histogram = Histogram::new(self.histogram.bins());
            self.unknown_depths = 0;
        }
        self.graph.forget(|waiter| lacks_owners[usize::from(is_task(waiter))]);
        if lacks_owners[1] {
            self.across_awaits.clear();
        }
        (lacks_holds, lacks_owners)
    }

    /// `has_ticket`: the holder in the meantime is recorded by itself.
    fn add(&mut self, party: Party, told: &Told, has_ticket: bool, places: &Places) {
        let unpaired = (self.blind && !has_ticket).then(|| told.unpaired());
        match unpaired.as_ref().unwrap_or(told) {
            Told::Acquired { acquisition, wait, owner, spins, depth } => {
                if self.begun {
                    let ns = match wait {
                        Wait::For(ns) => Some(*ns),
                        Wait::No | Wait::Unknown => None,
                    };
                    let account = self.tried(party, acquisition, ns, owner.as_slice(), *spins, places);
                    account.acquired += 1;
                    if *wait == Wait::Unknown {
                        account.unknown_waits += 1;
                        self.incomplete += 1;
                    }
                }
                if acquisition.kind.is_held() {
                    match depth {
                        _ if !self.begun => {}
                        Some(depth) => self.histogram.nested(*depth),
                        None => self.unknown_depths += 1,
                    }
                    self.have_held[usize::from(is_task(&party))] = true;
                    let lock = (acquisition.by.process, acquisition.lock);
                    if !has_ticket {
                        self.owners.entry(lock).or_default().push(party);
                    }
                }
            }
            Told::Refused { acquisition, wait, owner, spins, .. } if self.begun => {
                let owners = self.owners_of(acquisition, *owner);
                self.tried(party, acquisition, *wait, &owners, *spins, places).refused += 1;
            }
            Told::Held { acquisition, length, .. } => {
                match length {
                    _ if !self.begun => {}
                    Some(length) => {
                        let account = self.account(acquisition, places);
                        account.holds.add(*length);
                        if acquisition.caller != 0 {
                            let held = account.held_at.entry(acquisition.caller).or_default();
                            *held += *length;
                        }
                        self.histogram.held(*length);
                    }
                    None => {
                        self.account(acquisition, places).unknown_holds += 1;
                        self.incomplete += 1;
                    }
                }
                if let Some(owners) = self.owners.get_mut(&(acquisition.by.process, acquisition.lock)) {
                    owners.retain(|owner| *owner != party);
                }
            }
            Told::Unended { acquisition } if self.begun => {
                self.account(acquisition, places).unknown_holds += 1;
                self.incomplete += 1;
            }
            Told::Incomplete if self.begun => self.incomplete += 1,
            Told::Refused { .. } | Told::Unended { .. } | Told::Incomplete => {}
        }
    }

    /// The same of a request with a ticket. `ends`: the recording does, so what lasts may be a deadlock.
    fn ticketed(&mut self, party: Party, told: &Ticketed, ends: bool, places: &Places) {
        match told {
            Ticketed::Told(told) => {
                self.add(party, told, true, places);
                if let Some(acquisition) = told.acquisition().filter(|_| self.begun) {
                    self.account(acquisition, places).has_tickets = true;
                }
            }
            _ if !self.begun => {}
            Ticketed::Blocked { acquisition, owner, ns, lasts } => {
                let blamed = self.account(acquisition, places).owners.entry(*owner).or_default();
                *blamed += *ns;
                match *lasts && ends {
                    true => self.graph.waits(party, acquisition, &[*owner], *ns, false),
                    false => self.graph.waited(party, acquisition, &[*owner], *ns),
                }
            }
            Ticketed::AcrossAwait { acquisition, length, waiters, waited } => {
                if *length < LONG_HOLD || *waiters == 0 {
                    return;
                }
                let &Acquisition { lock, kind, caller, by, .. } = acquisition;
                let across = self.across_awaits.entry((by.process, lock, caller)).or_insert_with(|| Across {
                    kind,
                    epoch: by.epoch,
                    holds: Sum::default(),
                    waiters: 0,
                    waited_ns: Duration::ZERO,
                });
                across.holds.add(*length);
                across.waiters = across.waiters.max(*waiters);
                across.waited_ns += *waited;
            }
        }
    }

    /// An event of an unknown user thread, in a recording without tickets.
    fn unpaired(&mut self, event: &LockEvent, by: By, places: &Places) {
        if let LockEvent::Acquired { lock, caller, kind, .. } = *event
            && self.begun
        {
            let account = self.account(&Acquisition { lock, kind, caller, chain: None, by }, places);
            account.acquired += 1;
            account.unpaired += 1;
        }
    }

    /// The holder of a lock at present: as the request reports, otherwise as other events show.
    fn owners_of(&self, acquisition: &Acquisition, owner: Option<Tid>) -> Vec<Party> {
        let lock = (acquisition.by.process, acquisition.lock);
        match owner {
            _ if acquisition.kind == Kind::Futex => Vec::new(),
            None => self.owners.get(&lock).cloned().unwrap_or_default(),
            Some(owner) => vec![Party::Thread(owner)],
        }
    }

    fn tried(
        &mut self,
        party: Party,
        acquisition: &Acquisition,
        wait: Option<Duration>,
        owners: &[Party],
        spins: Option<u64>,
        places: &Places,
    ) -> &mut Account {
        if let Some(wait) = wait {
            self.graph.waited(party, acquisition, owners, wait);
        }
        let account = self.account(acquisition, places);
        if let Some(wait) = wait {
            account.waits.add(wait);
            if let Some(owner) = owners.last() {
                grow(account.owners.entry(*owner).or_default(), wait);
            }
        }
        if let Some(spins) = spins {
            *account.spins.get_or_insert(0) += spins;
        }
        account
    }

    fn account(&mut self, acquisition: &Acquisition, places: &Places) -> &mut Account {
        let by = acquisition.by;
        let subject = match self.group {
            Group::Lock if acquisition.kind == Kind::Futex => Subject::Futex(acquisition.lock),
            Group::Lock => Subject::Lock(acquisition.lock),
            Group::Thread => Subject::Thread(by.tid),
            Group::Task => Subject::Task(Some(by.task).filter(|task| !task.is_none())),
            Group::Caller => Subject::Caller(Some(acquisition.caller).filter(|caller| *caller != 0)),
            Group::Chain => Subject::Chain(acquisition.chain),
        };
        let since = match subject {
            Subject::Caller(caller) => places.since(by.process, caller, by.epoch),
            Subject::Chain(chain) => places.chain_since(by.process, chain, by.epoch),
            Subject::Lock(_) | Subject::Futex(_) | Subject::Thread(_) | Subject::Task(_) => 0,
        };
        let account = self.accounts.entry((by.process, subject, since)).or_default();
        account.kinds.add(acquisition.kind);
        account
    }
}

/// Whether it is a user thread, known or not.
fn is_task(party: &Party) -> bool {
    !matches!(party, Party::Thread(_))
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
