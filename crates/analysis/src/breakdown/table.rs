//! The result: processes with their rows, and the whole machine.

use super::account::{Account, Place, Sums, Waits};
use super::outside::Helper;
use super::{Breakdown, Ipc, Start};
use crate::names::Names;
use crate::run::Ran;
use crate::times::{Part, grow, parts, total};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use tracewing_units::{Duration, Pid};

/// The result of [`Breakdown`](super::Breakdown).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct BreakdownTable {
    /// By time on CPUs, longest first.
    pub processes: Vec<ProcessBreakdown>,
    /// The activity of all CPUs, if the recording covers the whole machine and no thread is left out.
    pub machine: Option<Machine>,
    /// Threads that the recording does not follow and that only appear in events of others: their times are
    /// unknown.
    pub strangers: u64,
    /// From the first event to the last, in nanoseconds.
    pub duration_ns: Duration,
}

/// The time of one process, by system call.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ProcessBreakdown {
    /// Its first thread's number; `None` collects all threads whose process is unknown.
    pub process: Option<Pid>,
    /// Its first thread's name.
    pub name: String,
    /// System calls by their time, longest first, then its own code, then what is unknown. Places where
    /// nothing was done are left out.
    pub rows: Vec<Row>,
    /// Of all threads together: their place is unknown.
    pub unseen_ns: Duration,
    /// What others did for it, most first. It is part of their time, not of its.
    pub outside: Vec<Outside>,
    /// Where its threads began, most time first.
    pub entries: Vec<Entry>,
}

/// What was done in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The system call, or what else the row is about.
    pub place: Spent,
    /// How long its threads were on CPUs there, interrupts apart, in nanoseconds.
    pub own_ns: Duration,
    /// How often the system call was begun.
    pub calls: u64,
    /// Events that its threads recorded there.
    pub events: u64,
    /// How often they touched a page that was not there.
    pub faults: u64,
    /// How often they woke a thread.
    pub woke: u64,
    /// Waits for other threads, by [`Ipc`].
    pub ipc: [Waits; 4],
    /// Waits of which no event shows what ended them: for other threads, or for anything else.
    pub unexplained: Waits,
    /// Waits of which no event shows what ends them, as they last at the end, or at a loss.
    pub lasting: Waits,
    /// Which interrupts and softirqs had the CPU meanwhile, longest first.
    pub interrupts: Vec<Part>,
    /// Waits for anything else.
    pub blocked_ns: Duration,
    /// Waits for a CPU.
    pub ready_ns: Duration,
}

/// Where time is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spent {
    /// In this system call.
    Call(String),
    /// In the program's own code.
    User,
    /// In a thread of the kernel's own.
    Kernel,
    /// No event shows whether it was in a system call.
    Unknown,
}

/// What one other did for a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// A process, which the process woke; or an interrupt, which woke the process.
    pub process: Option<Pid>,
    /// What it is called.
    pub name: String,
    /// How often it did.
    pub count: u64,
    /// How long it was on CPUs for it, in nanoseconds; `None` if the recording does not follow it.
    pub ns: Option<Duration>,
}

/// Threads of a process that began alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The function in which they began.
    pub start: Start,
    /// Number of these threads.
    pub threads: u64,
    /// How long they were on CPUs, interrupts apart, in nanoseconds.
    pub own_ns: Duration,
}

/// What all CPUs did, in nanoseconds.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Machine {
    /// How many there are.
    pub cpus: u64,
    /// In programs' own code.
    pub user_ns: Duration,
    /// In system calls, without interrupts.
    pub calls_ns: Duration,
    /// In threads of the kernel's own.
    pub kernel_ns: Duration,
    /// In interrupts and softirqs, including those on idle CPUs; `None` if not all kinds of them were
    /// recorded: their time is included in that of what they interrupted, or unknown.
    pub interrupts_ns: Option<Duration>,
    /// Without anything to do.
    pub idle_ns: Duration,
    /// Time for which no event shows what ran.
    pub unknown_ns: Duration,
}

impl Machine {
    /// All of it, which should be the recording's duration on each CPU.
    pub fn total_ns(&self) -> Duration {
        let Self { user_ns, calls_ns, kernel_ns, interrupts_ns, idle_ns, unknown_ns, .. } = *self;
        let known = [user_ns, calls_ns, kernel_ns, idle_ns, unknown_ns].into_iter();
        total(known.chain(interrupts_ns))
    }
}

impl Row {
    /// How long interrupts had the CPU.
    pub fn interrupts_ns(&self) -> Duration {
        total(self.interrupts.iter().map(|part| part.ns))
    }

    /// Waits for other threads, over whatever.
    pub fn ipc(&self) -> Waits {
        let mut sum = Waits::default();
        self.ipc.iter().for_each(|waits| sum.add(*waits));
        sum
    }

    /// Waits for other threads, by over what, longest first.
    pub fn ipc_by_kind(&self) -> Vec<(Ipc, Waits)> {
        let mut kinds: Vec<_> =
            Ipc::ALL.into_iter().zip(self.ipc).filter(|(_, waits)| waits.count > 0).collect();
        kinds.sort_by_key(|(_, waits)| Reverse(waits.ns));
        kinds
    }

    /// Whether its times are known. Activity takes time: if none is known, it is included in
    /// [`Spent::Unknown`].
    pub fn has_times(&self) -> bool {
        let waits = [self.ipc().ns, self.unexplained.ns, self.lasting.ns, self.blocked_ns, self.ready_ns];
        let times = waits.into_iter().chain([self.own_ns, self.interrupts_ns()]);
        !total(times).is_zero()
    }

    fn is_empty(&self) -> bool {
        let counts = self.calls + self.events + self.faults + self.woke + self.ipc().count;
        counts == 0 && !self.has_times()
    }

    fn new(place: Place, sums: Sums, names: &Names) -> Self {
        Row {
            place: match place {
                Place::Call(call) => Spent::Call(names.get(call).to_owned()),
                Place::User => Spent::User,
                Place::Kernel => Spent::Kernel,
                Place::Unknown => Spent::Unknown,
            },
            own_ns: sums.own_ns,
            calls: sums.calls,
            events: sums.events,
            faults: sums.faults,
            woke: sums.woke,
            ipc: sums.ipc,
            unexplained: sums.unexplained,
            lasting: sums.lasting,
            interrupts: parts(&sums.interrupts, names),
            blocked_ns: sums.blocked_ns,
            ready_ns: sums.ready_ns,
        }
    }
}

impl ProcessBreakdown {
    /// How long its threads were on CPUs, interrupts included.
    pub fn running_ns(&self) -> Duration {
        total(self.rows.iter().map(|row| row.own_ns + row.interrupts_ns()))
    }

    /// Its waits of which no event shows what ended them.
    pub fn unexplained(&self) -> Waits {
        let mut sum = Waits::default();
        self.rows.iter().for_each(|row| sum.add(row.unexplained));
        sum
    }

    /// Its waits of which no event shows what ends them.
    pub fn lasting(&self) -> Waits {
        let mut sum = Waits::default();
        self.rows.iter().for_each(|row| sum.add(row.lasting));
        sum
    }

    /// Whether any kernel event is about it.
    pub fn is_known(&self) -> bool {
        self.rows.iter().any(|row| !Row { events: 0, ..row.clone() }.is_empty())
    }
}

/// An LWP that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub process: Option<Pid>,
    pub name: String,
    pub followed: bool,
    pub account: Account,
}

/// What is summed for a process.
#[derive(Debug, Default)]
struct Sum {
    places: HashMap<Place, Sums>,
    unseen_ns: Duration,
    entries: BTreeMap<Start, (u64, Duration)>,
    outside: Vec<Outside>,
}

pub(super) fn table(breakdown: Breakdown, ran: &Ran) -> BreakdownTable {
    let Breakdown { ended, served, entries, processes: called, idle_ns, idle_interrupts_ns, .. } = breakdown;
    let mut sums: BTreeMap<Option<Pid>, Sum> = BTreeMap::new();
    let mut strangers = 0;
    for Ended { process, name, followed, account } in ended {
        if ran.partial && !followed {
            strangers += 1;
            continue;
        }
        let sum = sums.entry(process).or_default();
        account.places.into_iter().for_each(|(place, sums)| sum.places.entry(place).or_default().take(sums));
        grow(&mut sum.unseen_ns, account.unseen_ns);
        let (threads, own_ns) = sum.entries.entry(entries.start(process, account.entry, name)).or_default();
        *threads += 1;
        grow(own_ns, account.own_ns);
    }
    let names = &ran.names;
    for (process, helper, waits) in served.into_sums() {
        let follows =
            !matches!(helper, Helper::Process(server) if ran.partial && !sums.contains_key(&Some(server)));
        let Some(sum) = sums.get_mut(&Some(process)) else { continue };
        let (process, name) = match helper {
            Helper::Process(server) => (Some(server), called.get(&server).cloned().unwrap_or_default()),
            Helper::Interrupt(by) => (None, names.get(by).to_owned()),
        };
        sum.outside.push(Outside { process, name, count: waits.count, ns: follows.then_some(waits.ns) });
    }
    let of = |(process, sum): (Option<Pid>, Sum)| {
        let name = process.and_then(|process| called.get(&process)).cloned().unwrap_or_default();
        of_process(process, name, sum, names)
    };
    let mut processes: Vec<_> = sums.into_iter().map(of).collect();
    processes.sort_by_key(|process| Reverse(process.running_ns()));
    let duration_ns = ran.duration_ns();
    let whole = ran.whole && !ran.chosen && ran.cpus > 0;
    let machine = whole.then(|| {
        let mut machine = Machine { cpus: ran.cpus, idle_ns, ..Machine::default() };
        let mut interrupts_ns = idle_interrupts_ns;
        for row in processes.iter().flat_map(|process| &process.rows) {
            grow(&mut interrupts_ns, row.interrupts_ns());
            let own_ns = match row.place {
                Spent::User => &mut machine.user_ns,
                Spent::Call(_) => &mut machine.calls_ns,
                Spent::Kernel => &mut machine.kernel_ns,
                Spent::Unknown => &mut machine.unknown_ns,
            };
            grow(own_ns, row.own_ns);
        }
        machine.interrupts_ns = ran.recorded.interrupts.then_some(interrupts_ns);
        let unseen_ns = duration_ns * ran.cpus - machine.total_ns();
        grow(&mut machine.unknown_ns, unseen_ns);
        machine
    });
    BreakdownTable { processes, machine, strangers, duration_ns }
}

fn of_process(process: Option<Pid>, name: String, sum: Sum, names: &Names) -> ProcessBreakdown {
    let rows = sum.places.into_iter().map(|(place, sums)| Row::new(place, sums, names));
    let mut rows: Vec<_> = rows.filter(|row| !row.is_empty()).collect();
    rows.sort_by(|a, b| {
        let order = |row: &Row| match row.place {
            Spent::Call(_) => (0, Reverse(row.own_ns)),
            Spent::Kernel => (1, Reverse(Duration::ZERO)),
            Spent::User => (2, Reverse(Duration::ZERO)),
            Spent::Unknown => (3, Reverse(Duration::ZERO)),
        };
        let name = |row: &Row| match &row.place {
            Spent::Call(call) => call.clone(),
            _ => String::new(),
        };
        order(a).cmp(&order(b)).then_with(|| name(a).cmp(&name(b)))
    });
    let mut outside = sum.outside;
    outside.sort_by(|a, b| {
        b.ns.cmp(&a.ns).then(b.count.cmp(&a.count)).then(a.process.cmp(&b.process)).then(a.name.cmp(&b.name))
    });
    let entries = sum.entries.into_iter();
    let mut entries: Vec<_> =
        entries.map(|(start, (threads, own_ns))| Entry { start, threads, own_ns }).collect();
    entries.sort_by_key(|entry| Reverse(entry.own_ns));
    ProcessBreakdown { process, name, rows, unseen_ns: sum.unseen_ns, outside, entries }
}
