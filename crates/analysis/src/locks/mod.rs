//! Locks: who waited for which, for how long, who had it meanwhile, how long it was held, and from where in the program that was
//! done. The figures of K42's lock contention table (Figure 7 of its paper) and of `perf lock contention`; nesting and critical
//! sections as Feather-Trace's paper (3) has them.
//!
//! From events of provider `lock` (`docs/locks.md`), and the kernel's `contention_begin` and `contention_end`, which know no
//! critical sections.
//!
//! | module | does |
//! |---|---|
//! | `event` | what an event says |
//! | `thread` | a thread and its locks |
//! | `account` | what is counted |

mod account;
mod event;
mod thread;

use std::collections::HashMap;

use tracewing_trace::super_trace::{Fold, Lwp, Scope, Seen};

use self::account::Kind;
pub use self::account::{Account, Bins, Histogram, Kinds, Sum};
use self::event::{LockEvent, Reader};
use self::thread::{Acquisition, Thread, Told};
use crate::run::{Analysis, Ran};

/// What a line of the table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Group {
    /// A lock.
    #[default]
    Lock,
    /// A thread.
    Thread,
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
    /// The name of the thread that [`Account::owner`] has.
    pub owner_name: String,
    /// Where in the program, the innermost first.
    pub frames: Vec<Frame>,
}

/// A place in a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// A return address.
    pub address: u64,
    /// The file that the code is from, and the address by that file's own counting.
    pub image: Option<(String, u64)>,
}

/// The result.
#[derive(Debug)]
pub struct LocksTable {
    /// What was waited for longest first.
    pub rows: Vec<Row>,
    /// Lengths of critical sections, and nesting, of the program's locks.
    pub histogram: Histogram,
    /// Requests, acquisitions and releases of which no event tells the end, or the begin. They are in no time but the
    /// waits that last.
    pub incomplete: u64,
    /// How long what was analysed lasted, ns.
    pub duration_ns: u64,
}

#[derive(Debug)]
struct Image {
    begin: u64,
    end: u64,
    bias: u64,
    path: String,
}

/// The analysis.
#[derive(Debug)]
pub struct Locks {
    group: Group,
    reader: Reader,
    /// By process and thread.
    threads: HashMap<(Option<i32>, i32), Thread>,
    totals: Totals,
    names: HashMap<i32, String>,
    chains: HashMap<u64, Vec<u64>>,
    images: HashMap<Option<i32>, Vec<Image>>,
}

#[derive(Debug)]
struct Totals {
    group: Group,
    accounts: HashMap<(Option<i32>, Subject), Account>,
    /// Who has which lock, as far as events tell.
    owners: HashMap<(Option<i32>, u64), i32>,
    histogram: Histogram,
    incomplete: u64,
}

impl Locks {
    /// An analysis that has seen nothing yet.
    pub fn new(group: Group, bins: Bins) -> Self {
        Self {
            group,
            reader: Reader::default(),
            threads: HashMap::new(),
            totals: Totals {
                group,
                accounts: HashMap::new(),
                owners: HashMap::new(),
                histogram: Histogram::new(bins),
                incomplete: 0,
            },
            names: HashMap::new(),
            chains: HashMap::new(),
            images: HashMap::new(),
        }
    }

    /// The table.
    pub fn finish(mut self, ran: &Ran) -> LocksTable {
        self.forget_threads(ran.end_ns);
        let accounts = std::mem::take(&mut self.totals.accounts);
        let name = |tid: i32| self.names.get(&tid).cloned().unwrap_or_default();
        let row = |((process, subject), account): ((Option<i32>, Subject), Account)| Row {
            process,
            process_name: process.map(name).unwrap_or_default(),
            subject,
            owner_name: account.owner().map(|(owner, _)| name(owner)).unwrap_or_default(),
            account,
            frames: self.frames(process, subject),
        };
        let mut rows: Vec<Row> = accounts.into_iter().map(row).collect();
        rows.sort_by_key(|row| {
            let account = &row.account;
            (std::cmp::Reverse((account.waits.total_ns, account.acquired)), row.process, row.subject)
        });
        let Totals { histogram, incomplete, .. } = self.totals;
        LocksTable { rows, histogram, incomplete, duration_ns: ran.duration_ns() }
    }

    fn frames(&self, process: Option<i32>, subject: Subject) -> Vec<Frame> {
        let addresses = match &subject {
            Subject::Lock(_) | Subject::Thread(_) => &[],
            Subject::Caller(caller) => caller.as_slice(),
            Subject::Chain(chain) => {
                chain.and_then(|chain| self.chains.get(&chain)).map_or(&[][..], Vec::as_slice)
            }
        };
        addresses.iter().map(|address| self.frame(process, *address)).collect()
    }

    fn frame(&self, process: Option<i32>, address: u64) -> Frame {
        let own = self.images.get(&process).into_iter().flatten();
        // A forked child's are its parent's until it tells of its own.
        let found = own.chain(self.images.values().flatten());
        let image = found.into_iter().find(|image| (image.begin..image.end).contains(&address));
        let image = image.map(|image| (image.path.clone(), address.wrapping_sub(image.bias)));
        Frame { address, image }
    }

    /// No thread's state is known any more.
    fn forget_threads(&mut self, at: i64) {
        for ((process, tid), mut thread) in self.threads.drain() {
            thread.finish(at, &mut |told| self.totals.add(process, tid, &told));
        }
        self.totals.owners.clear();
    }
}

impl Fold for Locks {
    fn lwp_ends(&mut self, lwp: &Lwp) {
        if !lwp.name.is_empty() {
            self.names.insert(lwp.tid, lwp.name.clone());
        }
    }
}

impl Analysis for Locks {
    fn event(&mut self, seen: &Seen<'_>) {
        let (Some(activity), Some(tid)) = (seen.activity, seen.place.tid) else { return };
        let Some(event) = self.reader.read(seen.event) else { return };
        let process = seen.place.process;
        match event {
            LockEvent::CallChain { chain, frames } => drop(self.chains.insert(chain, frames)),
            LockEvent::Image { begin, end, bias, path } => {
                let images = self.images.entry(process).or_default();
                images.retain(|image| image.end <= begin || end <= image.begin);
                images.push(Image { begin, end, bias, path });
            }
            event => {
                // The kernel's locks are nobody's.
                let is_kernel = matches!(event, LockEvent::KernelWait { .. } | LockEvent::KernelHas { .. });
                let process = process.filter(|_| !is_kernel || self.group != Group::Lock);
                self.threads
                    .entry((process, tid))
                    .or_default()
                    .event(&event, activity.time, &mut |told| self.totals.add(process, tid, &told));
            }
        }
    }

    fn lost(&mut self, scope: Scope, from: i64, _to: i64) {
        if matches!(scope, Scope::User) {
            self.forget_threads(from);
        }
    }
}

impl Totals {
    fn add(&mut self, process: Option<i32>, tid: i32, told: &Told) {
        match told {
            Told::Acquired { acquisition, wait, owner, depth } => {
                let account = self.waited(process, tid, acquisition, *wait, *owner);
                account.acquired += 1;
                if is_held(acquisition.kind) {
                    self.histogram.nested(*depth);
                    self.owners.insert((process, acquisition.lock), tid);
                }
            }
            Told::Refused { acquisition, wait, owner } => {
                self.waited(process, tid, acquisition, *wait, *owner).refused += 1;
            }
            Told::Held { acquisition, length } => {
                self.account(process, tid, acquisition).holds.add(*length);
                self.histogram.held(*length);
                self.owners.remove(&(process, acquisition.lock));
            }
            Told::Incomplete => self.incomplete += 1,
        }
    }

    fn waited(
        &mut self,
        process: Option<i32>,
        tid: i32,
        acquisition: &Acquisition,
        wait: Option<u64>,
        owner: i32,
    ) -> &mut Account {
        let known = self.owners.get(&(process, acquisition.lock)).copied();
        let account = self.account(process, tid, acquisition);
        if let Some(wait) = wait {
            account.waits.add(wait);
            let owner = if owner == 0 { known.unwrap_or(0) } else { owner };
            *account.owners.entry(owner).or_default() += wait;
        }
        account
    }

    fn account(&mut self, process: Option<i32>, tid: i32, acquisition: &Acquisition) -> &mut Account {
        let subject = match self.group {
            Group::Lock => Subject::Lock(acquisition.lock),
            Group::Thread => Subject::Thread(tid),
            Group::Caller => Subject::Caller(Some(acquisition.caller).filter(|caller| *caller != 0)),
            Group::Chain => Subject::Chain(acquisition.chain),
        };
        let account = self.accounts.entry((process, subject)).or_default();
        account.kinds.add(acquisition.kind);
        account
    }
}

/// Whether there is a critical section.
fn is_held(kind: Kind) -> bool {
    matches!(kind, Kind::Mutex | Kind::Read | Kind::Write | Kind::Spin)
}
