//! Locks: who waited for which, for how long, who had it meanwhile, how long it was held, and from where in the program that was
//! done. The figures of K42's lock contention table (Figure 7 of its paper) and of `perf lock contention`; nesting and critical
//! sections as Feather-Trace's paper (3) has them.
//!
//! From events of provider `lock` (`docs/locks.md`), those of user threads (`docs/tasks.md`), the kernel's `contention_begin` and
//! `contention_end`, and its futex system calls, where no other event tells what is waited for; the last two know no critical
//! sections.
//!
//! | module | does |
//! |---|---|
//! | `event` | what an event says |
//! | `thread` | a thread and its locks |
//! | `account` | what is counted |
//! | `places` | where in a program that is |
//! | `graph` | who waits for whom |
//! | `uses` | waits and critical sections one by one |

mod account;
mod event;
mod graph;
mod places;
mod thread;
mod uses;

use std::collections::{HashMap, HashSet};

use tracewing_trace::super_trace::{Carried, Fold, Lwp, Scope, Seen, UserThread};

use self::account::Kind;
pub use self::account::{Account, Bins, Histogram, Kinds, Party, Sum};
use self::event::{Level, LockEvent, Reader};
pub use self::graph::{Edge, Graph};
pub use self::places::Frame;
use self::places::Places;
use self::thread::{Acquisition, By, Thread, Told};
pub use self::uses::{LockUse, LockUses};
use crate::images::Epoch;
use crate::programs::Programs;
use crate::run::{Analysis, Loss, Ran};

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
    /// A thread.
    Thread(i32),
    /// A user thread's number; `None` for what threads do for none.
    Task(Option<u64>),
    /// An address to which calls for locks return; `None` where no event tells, as in the kernel.
    Caller(Option<u64>),
    /// A call chain; `None` for acquisitions without one.
    Chain(Option<u64>),
}

/// A line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// The process; `None` where no event tells, and for the kernel's locks.
    pub process: Option<i32>,
    /// Its name, or nothing.
    pub process_name: String,
    /// What in it.
    pub subject: Subject,
    /// What is counted.
    pub account: Account,
    /// The name of the user thread that [`Row::subject`] is, or nothing.
    pub task_name: String,
    /// The name of whom [`Account::owner`] gives.
    pub owner_name: String,
    /// Where in the program, the innermost first.
    pub frames: Vec<Frame>,
}

/// The result.
#[derive(Debug)]
pub struct LocksTable {
    /// What was waited for longest first.
    pub rows: Vec<Row>,
    /// Lengths of critical sections, and nesting, of the program's locks.
    pub histogram: Histogram,
    /// Who waits for whom.
    pub graph: Graph,
    /// Functions that other objects have in front of the library that records locks: the process, the function, the object.
    pub shadowed: Vec<(Option<i32>, String, String)>,
    /// Requests, acquisitions and releases of which no event of what was analysed tells the end, or the begin. They are in no time
    /// but the waits that last, or lasted.
    pub incomplete: u64,
    /// Threads with locks of which no event tells the process.
    pub strangers: usize,
    /// How long what was analysed lasted, ns.
    pub duration_ns: u64,
}

/// The analysis.
#[derive(Debug)]
pub struct Locks {
    reader: Reader,
    programs: Programs,
    threads: HashMap<Party, Thread>,
    totals: Totals,
    names: HashMap<i32, String>,
    /// Names of threads of processes, for want of the first one's.
    process_names: HashMap<i32, String>,
    task_names: HashMap<(Option<i32>, u64), String>,
    places: Places,
    shadowed: Vec<(Option<i32>, String, String)>,
    strangers: HashSet<i32>,
}

#[derive(Debug)]
struct Totals {
    /// Whether what is analysed has begun: before, only owners are noted.
    begun: bool,
    group: Group,
    /// By whose they are, what they are of, and since when that is the place it is.
    accounts: HashMap<(Option<i32>, Subject, Epoch), Account>,
    /// Who has which lock, as far as events tell.
    owners: HashMap<(Option<i32>, u64), Vec<Party>>,
    graph: Graph,
    histogram: Histogram,
    incomplete: u64,
}

impl Locks {
    /// An analysis that has seen nothing yet.
    pub fn new(group: Group, bins: Bins) -> Self {
        Self {
            reader: Reader::default(),
            programs: Programs::default(),
            threads: HashMap::new(),
            totals: Totals {
                begun: false,
                group,
                accounts: HashMap::new(),
                owners: HashMap::new(),
                graph: Graph::default(),
                histogram: Histogram::new(bins),
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
            self.forget_threads(ran.end_ns);
        }
        let accounts = std::mem::take(&mut self.totals.accounts);
        let row = |((process, subject, epoch), account): ((Option<i32>, Subject, Epoch), Account)| Row {
            process,
            process_name: process.map(|process| self.process_name(process)).unwrap_or_default(),
            subject,
            task_name: match subject {
                Subject::Task(Some(task)) => self.name(Party::Task(process, task)),
                _ => String::new(),
            },
            owner_name: account.owner().map(|(owner, _)| self.name(owner)).unwrap_or_default(),
            account,
            frames: match subject {
                Subject::Lock(_) | Subject::Thread(_) | Subject::Task(_) => Vec::new(),
                Subject::Caller(caller) => self.places.caller(process, caller, epoch),
                Subject::Chain(chain) => self.places.chain(process, chain, epoch),
            },
        };
        let mut rows: Vec<Row> = accounts.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            let account = &row.account;
            (std::cmp::Reverse((account.waits.total_ns, account.acquired)), row.process, row.subject)
        });
        let mut graph = std::mem::take(&mut self.totals.graph);
        graph.finish(|party| self.name(party), &self.places);
        let Totals { histogram, incomplete, .. } = self.totals;
        LocksTable {
            rows,
            histogram,
            graph,
            shadowed: self.shadowed,
            incomplete,
            strangers: self.strangers.len(),
            duration_ns: ran.duration_ns(),
        }
    }

    fn process_name(&self, process: i32) -> String {
        let name = self.names.get(&process).or_else(|| self.process_names.get(&process));
        name.cloned().unwrap_or_default()
    }

    fn name(&self, of: Party) -> String {
        let name = match of {
            Party::Thread(tid) => self.names.get(&tid),
            Party::Task(process, task) => self.task_names.get(&(process, task)),
        };
        name.cloned().unwrap_or_default()
    }

    /// The recording ends: who waits now has to be known before it is forgotten.
    fn note_who_waits(&mut self, at: i64) {
        for (party, thread) in &mut self.threads {
            thread.settle(&mut |told| self.totals.add(*party, &told, &self.places));
        }
        for (party, thread) in &self.threads {
            if let Some(request) = thread.waits() {
                let acquisition = &request.acquisition;
                let owners = self.totals.owners_of(acquisition, request.owner);
                self.totals.graph.waits(*party, acquisition, &owners, thread.until(at) - request.at);
            }
        }
    }

    /// No thread's state is known any more.
    fn forget_threads(&mut self, at: i64) {
        for (party, mut thread) in self.threads.drain() {
            thread.finish(at, &mut |told| self.totals.add(party, &told, &self.places));
        }
        self.totals.owners.clear();
    }

    /// Who waits still does so no longer, but what he waited for in vain is kept: it may have been a deadlock.
    fn ends(&mut self, party: Party, at: i64) {
        if let Some(thread) = self.threads.get_mut(&party) {
            thread.ended = Some(at);
        }
    }

    /// A process executes another program: its locks are gone, and all threads that wanted them or had them.
    fn replace(&mut self, process: Option<i32>, at: i64) {
        self.places.forget_images(process);
        let is_gone = |_: &Party, thread: &mut Thread| thread.process == process;
        for (party, mut thread) in self.threads.extract_if(is_gone) {
            thread.finish(at, &mut |told| self.totals.add(party, &told, &self.places));
        }
        self.totals.owners.retain(|(of, _), _| *of != process);
    }

    /// Whom the user thread is that an event belongs to, if there is one.
    fn task(&mut self, process: Option<i32>, carried: Carried<'_>) -> u64 {
        let Carried::Thread { id, name } = carried else { return 0 };
        if !name.is_empty() && self.task_names.get(&(process, id)).is_none_or(|known| known != name) {
            self.task_names.insert((process, id), name.to_owned());
        }
        id
    }
}

impl Fold for Locks {
    fn lwp_ends(&mut self, lwp: &Lwp) {
        if !lwp.name.is_empty() {
            self.names.insert(lwp.tid, lwp.name.clone());
            if let Some(process) = lwp.process {
                self.process_names.entry(process).or_insert_with(|| lwp.name.clone());
            }
        }
        self.ends(Party::Thread(lwp.tid), lwp.told_to());
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        self.ends(Party::Task(thread.process, thread.id), thread.told_to());
    }
}

impl Analysis for Locks {
    const BEFORE: bool = true;

    fn begins(&mut self, time: i64) {
        for (party, mut thread) in self.threads.extract_if(|_, thread| thread.ended.is_some()) {
            thread.finish(time, &mut |told| self.totals.add(party, &told, &self.places));
        }
        for (party, thread) in &mut self.threads {
            thread.settle(&mut |told| self.totals.add(*party, &told, &self.places));
        }
        self.totals.begun = true;
        for (party, thread) in &mut self.threads {
            thread.begin(time, &mut |told| self.totals.add(*party, &told, &self.places));
        }
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
                    Level::Thread | Level::Task => 0,
                };
                // The kernel's locks are nobody's; only who waits for them belongs to a process.
                let is_who = matches!(self.totals.group, Group::Thread | Group::Task);
                let of = process.filter(|_| level != Level::Kernel || is_who);
                let task = self.task(process, seen.place.thread);
                let by = By { process: of, tid, task, within, epoch: self.places.epoch() };
                let party = match level {
                    Level::Task if by.task != 0 => Party::Task(process, by.task),
                    _ => Party::Thread(tid),
                };
                if self.totals.begun && process.is_none() && level != Level::Kernel {
                    self.strangers.insert(tid);
                }
                let thread = self.threads.entry(party).or_default();
                thread.event(&event, by, activity.time, &mut |told| {
                    self.totals.add(party, &told, &self.places)
                });
                thread.process = process.or(thread.process);
            }
        }
    }

    fn dumped(&mut self, tid: i32, _process: i32, name: &[u8]) {
        self.names.entry(tid).or_insert_with(|| String::from_utf8_lossy(name).into_owned());
    }

    fn other_ends(&mut self, lwp: &Lwp) {
        // It may have had a lock for which somebody waited who is wanted.
        self.lwp_ends(lwp);
    }

    fn lost(&mut self, lost: &Loss) {
        if matches!(lost.scope, Scope::User) {
            self.forget_threads(lost.from);
        }
    }
}

impl Totals {
    fn add(&mut self, party: Party, told: &Told, places: &Places) {
        match told {
            Told::Acquired { acquisition, wait, owner, spins, depth } => {
                if self.begun {
                    self.tried(party, acquisition, *wait, *owner, *spins, places).acquired += 1;
                }
                if acquisition.kind.is_held() {
                    if self.begun {
                        self.histogram.nested(*depth);
                    }
                    self.owners.entry((acquisition.by.process, acquisition.lock)).or_default().push(party);
                }
            }
            Told::Refused { acquisition, wait, owner, spins, .. } if self.begun => {
                self.tried(party, acquisition, *wait, *owner, *spins, places).refused += 1;
            }
            Told::Held { acquisition, length, .. } => {
                match length {
                    _ if !self.begun => {}
                    Some(length) => {
                        self.account(acquisition, places).holds.add(*length);
                        self.histogram.held(*length);
                    }
                    None => self.incomplete += 1,
                }
                if let Some(owners) = self.owners.get_mut(&(acquisition.by.process, acquisition.lock)) {
                    owners.retain(|owner| *owner != party);
                }
            }
            Told::Incomplete if self.begun => self.incomplete += 1,
            Told::Refused { .. } | Told::Incomplete => {}
        }
    }

    /// Who has a lock: as it says itself, else as events do.
    fn owners_of(&self, acquisition: &Acquisition, owner: i32) -> Vec<Party> {
        let lock = (acquisition.by.process, acquisition.lock);
        match owner {
            0 => self.owners.get(&lock).cloned().unwrap_or_default(),
            owner => vec![Party::Thread(owner)],
        }
    }

    fn tried(
        &mut self,
        party: Party,
        acquisition: &Acquisition,
        wait: Option<u64>,
        owner: i32,
        spins: Option<u64>,
        places: &Places,
    ) -> &mut Account {
        let owners = if wait.is_some() { self.owners_of(acquisition, owner) } else { Vec::new() };
        if let Some(wait) = wait {
            self.graph.waited(party, acquisition, &owners, wait);
        }
        let account = self.account(acquisition, places);
        if let Some(wait) = wait {
            account.waits.add(wait);
            if let Some(owner) = owners.last() {
                *account.owners.entry(*owner).or_default() += wait;
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
            Group::Lock => Subject::Lock(acquisition.lock),
            Group::Thread => Subject::Thread(by.tid),
            Group::Task => Subject::Task(Some(by.task).filter(|task| *task != 0)),
            Group::Caller => Subject::Caller(Some(acquisition.caller).filter(|caller| *caller != 0)),
            Group::Chain => Subject::Chain(acquisition.chain),
        };
        let since = match subject {
            Subject::Caller(caller) => places.since(by.process, caller, by.epoch),
            Subject::Chain(chain) => places.chain_since(by.process, chain, by.epoch),
            Subject::Lock(_) | Subject::Thread(_) | Subject::Task(_) => 0,
        };
        let account = self.accounts.entry((by.process, subject, since)).or_default();
        account.kinds.add(acquisition.kind);
        account
    }
}
