//! Where the time of each thread and each user thread went: running, waiting for a CPU, blocked, or unknown.
//!
//! A fold over the super-trace in one pass; its memory grows with the LWPs, and with the user threads that
//! live at a time.

use crate::analysis::{Analysis, Input};
use crate::run::Ran;
use crate::serials::Serials;
use crate::times::{Clock, Times};
use std::collections::{BTreeMap, HashMap};
use tracewing_trace::super_trace::{Change, Doing, Fold, Lwp, LwpSerial, TaskSerial, UserThread};
use tracewing_units::{Duration, Pid, Task, Tid, Timestamp};

/// Maximum number of user threads with an account of their own. Further ones are summed by name when they
/// end.
const ACCOUNTS: usize = 1 << 18;

/// What one thread did, and for how long, within what was analysed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// The process it belongs to, where the events say: its first thread's number.
    pub process: Option<Pid>,
    /// Its number. One that was given again after the thread's end has an account for each thread.
    pub tid: Tid,
    /// Its last known name.
    pub name: String,
    /// Its life within the recording.
    pub times: Times,
    /// How often it left a CPU.
    pub switches: u64,
    /// How many of these switches left it ready to run.
    pub preemptions: u64,
    /// How often it was next seen on another CPU than before, whatever the filter leaves out of its life.
    pub migrations: u64,
    /// How often it was woken, whatever the filter leaves out of its life.
    pub wakeups: u64,
    /// System calls that it began.
    pub system_calls: u64,
    /// Whether these are not all ([`Lwp::lacks_calls`]).
    pub lacks_calls: bool,
    /// Whether it died without a sign of when it left its program ([`Lwp::dies_unseen`]).
    pub dies_unseen: bool,
    /// How often it touched a page that was not there.
    pub page_faults: u64,
    /// Events of its program that it recorded.
    pub user_events: u64,
    /// How often it began to run a user thread.
    pub polls: u64,
}

/// One user thread's account, such as a task of an async runtime.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct UserThreadAccount {
    /// Its process, where the events say.
    pub process: Option<Pid>,
    /// Its number, unique in its process; `None` for several of one name.
    pub thread: Option<Task>,
    /// Its last known name.
    pub name: String,
    /// Its life within the recording. The states of the LWP that ran it are its own; it also waits while no
    /// LWP is free for it, and is blocked while it waits for another user thread.
    pub times: Times,
    /// How often an LWP began to run it.
    pub polls: u64,
    /// Number of wakes, whatever the filter leaves out of its life.
    pub wakeups: u64,
    /// Whether these are not recorded ([`UserThread::lacks_wakes`]).
    pub lacks_wakes: bool,
    /// Whether that is as tokio's hooks report none ([`UserThread::is_hooked`]).
    pub hooked: bool,
    /// How often another LWP ran it than before, whatever the filter leaves out of its life.
    pub lwp_migrations: u64,
    /// How often it was next run on another CPU than before, whatever the filter leaves out of its life.
    pub cpu_migrations: u64,
}

/// One process' account: the sum of its threads'.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its first thread's number; `None` collects all threads whose process is unknown.
    pub process: Option<Pid>,
    /// Its first thread's name.
    pub name: String,
    /// How many threads it had.
    pub threads: u64,
    /// Of all threads together.
    pub times: Times,
    /// As in [`Thread`]; so are the others.
    pub switches: u64,
    /// See [`Thread`].
    pub preemptions: u64,
    /// See [`Thread`].
    pub migrations: u64,
    /// See [`Thread`].
    pub wakeups: u64,
    /// See [`Thread`].
    pub system_calls: u64,
    /// Whether these are not all ([`Lwp::lacks_calls`]).
    pub lacks_calls: bool,
    /// Whether any of its threads did.
    pub dies_unseen: bool,
    /// See [`Thread`].
    pub page_faults: u64,
    /// See [`Thread`].
    pub user_events: u64,
    /// See [`Thread`].
    pub polls: u64,
}

/// The result of [`Threads`].
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ThreadsTable {
    /// By running time, longest first.
    pub threads: Vec<Thread>,
    /// By running time, longest first, where that is known.
    pub user_threads: Vec<UserThreadAccount>,
    /// Threads that the recording does not follow and that only appear in events of others: their times are
    /// unknown.
    pub strangers: u64,
    /// From the first event to the last, in nanoseconds.
    pub duration_ns: Duration,
    /// Names of processes from a state dump.
    pub(crate) dumped: HashMap<Pid, String>,
}

impl ThreadsTable {
    /// The threads' accounts by process, by running time, longest first.
    pub fn processes(&self) -> Vec<Process> {
        let mut processes: BTreeMap<Option<Pid>, Process> = BTreeMap::new();
        for thread in &self.threads {
            let sum = processes.entry(thread.process).or_default();
            sum.process = thread.process;
            if thread.process == Some(thread.tid.as_process()) {
                sum.name.clone_from(&thread.name);
            }
            sum.threads += 1;
            sum.times.add(&thread.times);
            sum.switches += thread.switches;
            sum.preemptions += thread.preemptions;
            sum.migrations += thread.migrations;
            sum.wakeups += thread.wakeups;
            sum.system_calls += thread.system_calls;
            sum.lacks_calls |= thread.lacks_calls;
            sum.dies_unseen |= thread.dies_unseen;
            sum.page_faults += thread.page_faults;
            sum.user_events += thread.user_events;
            sum.polls += thread.polls;
        }
        // An idle first thread appears only in a state dump.
        for (process, sum) in processes.iter_mut().filter(|(_, sum)| sum.name.is_empty()) {
            if let Some(name) = process.and_then(|process| self.dumped.get(&process)) {
                sum.name.clone_from(name);
            }
        }
        let mut processes: Vec<_> = processes.into_values().collect();
        processes.sort_by_key(|process| std::cmp::Reverse(process.times.running_ns));
        processes
    }
}

/// The analysis: what is counted, by the serial numbers of LWPs and user threads.
#[derive(Debug, Default)]
pub struct Threads {
    lwps: Serials<LwpSerial, LwpClocks>,
    user_threads: Serials<TaskSerial, UserThreadClock>,
    ended: Vec<Ended>,
    ended_user_threads: Vec<(Clock, UserThreadAccount)>,
    sums: HashMap<(Option<Pid>, String), (Clock, UserThreadAccount)>,
    /// Names of processes from a state dump.
    dumped: HashMap<Pid, String>,
}

impl Threads {
    /// An analysis that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table, when all has been read.
    pub fn finish(self, ran: &Ran) -> ThreadsTable {
        let mut ended = self.ended;
        let before = ended.len();
        ended.retain(|ended| ended.followed || !ran.partial);
        let strangers = (before - ended.len()) as u64;
        let names = &ran.names;
        let timed = |ended: Ended| Thread { times: ended.clock.times(names), ..ended.thread };
        let mut threads: Vec<Thread> = ended.into_iter().map(timed).collect();
        threads.sort_by(|a, b| b.times.running_ns.cmp(&a.times.running_ns).then(a.tid.cmp(&b.tid)));
        let ended = self.ended_user_threads.into_iter().chain(self.sums.into_values());
        let timed = |(clock, account): (Clock, _)| UserThreadAccount { times: clock.times(names), ..account };
        let mut user_threads: Vec<_> = ended.map(timed).collect();
        user_threads.sort_by(|a, b| {
            let order = b.times.running_ns.cmp(&a.times.running_ns);
            order.then(a.process.cmp(&b.process)).then(a.thread.cmp(&b.thread))
        });
        let duration_ns = ran.duration_ns();
        ThreadsTable { threads, user_threads, strangers, duration_ns, dumped: self.dumped }
    }
}

#[derive(Debug, Default)]
struct LwpClocks {
    all: Clock,
    /// What it did for the user thread that it runs.
    for_user_thread: Clock,
    counts: Counts,
}

/// Events that the filter lets through.
#[derive(Debug, Default)]
struct Counts {
    switches: u64,
    preemptions: u64,
    system_calls: u64,
    page_faults: u64,
    user_events: u64,
    polls: u64,
}

#[derive(Debug, Default)]
struct UserThreadClock {
    all: Clock,
    polls: u64,
}

/// An LWP without its times.
#[derive(Debug)]
struct Ended {
    followed: bool,
    clock: Clock,
    thread: Thread,
}

impl Analysis for Threads {
    const EVENTS: bool = false;
    const CONTINUES: bool = true;

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        if let Input::Dumped { tid, process, name } = input {
            self.dumped(tid, process, name);
        }
    }
}

impl Threads {
    /// A dump may also name a thread that has ended; the last one of its number is meant.
    fn dumped(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        if tid == process.first_thread() {
            self.dumped.insert(process, String::from_utf8_lossy(name).into_owned());
        }
        if let Some(ended) = self.ended.iter_mut().rev().find(|ended| ended.thread.tid == tid) {
            ended.thread.process.get_or_insert(process);
            if ended.thread.name.is_empty() {
                ended.thread.name = String::from_utf8_lossy(name).into_owned();
            }
        }
    }
}

impl Fold for Threads {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            Change::LwpHidesCalls { lwp } => {
                let clocks = self.lwps.at(lwp.serial);
                clocks.all.doubt_mode();
                clocks.for_user_thread.doubt_mode();
            }
            Change::UserThreadDid { thread, doing, from, to } => self.user_thread(thread, doing, from, to),
            Change::LwpStops { lwp, prev_state, .. } => {
                let counts = self.counts_of(lwp);
                counts.switches += 1;
                counts.preemptions += u64::from(prev_state.could_continue());
            }
            Change::LwpCalls { lwp, .. } => self.counts_of(lwp).system_calls += 1,
            Change::LwpFaults { lwp, .. } => self.counts_of(lwp).page_faults += 1,
            Change::LwpRecords { lwp, .. } => self.counts_of(lwp).user_events += 1,
            Change::UserThreadRuns { thread, lwp, is_poll: true, .. } => {
                self.counts_of(lwp).polls += 1;
                self.user_threads.at(thread.serial).polls += 1;
            }
            Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl Threads {
    #[inline]
    fn counts_of(&mut self, lwp: &Lwp) -> &mut Counts {
        &mut self.lwps.at(lwp.serial).counts
    }

    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        let ns = to - from;
        let clocks = self.lwps.at(lwp.serial);
        clocks.all.add(doing, ns);
        if lwp.runs_user_thread() {
            clocks.for_user_thread.add(doing, ns);
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let done = &mut self.lwps.at(lwp.serial).for_user_thread;
        match thread {
            Some(thread) => self.user_threads.at(thread.serial).all.take(done),
            None => done.clear(),
        }
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: Timestamp, to: Timestamp) {
        self.user_threads.at(thread.serial).all.add(doing, to - from);
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        let LwpClocks { all: clock, counts, .. } = self.lwps.take(lwp.serial);
        let thread = Thread {
            process: lwp.process,
            tid: lwp.tid,
            name: lwp.name.clone(),
            times: Times::default(),
            switches: counts.switches,
            preemptions: counts.preemptions,
            migrations: lwp.migrations,
            wakeups: lwp.wakeups,
            system_calls: counts.system_calls,
            lacks_calls: lwp.lacks_calls(),
            dies_unseen: lwp.dies_unseen(),
            page_faults: counts.page_faults,
            user_events: counts.user_events,
            polls: counts.polls,
        };
        self.ended.push(Ended { followed: lwp.followed, clock, thread });
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        let UserThreadClock { all: mut clock, polls } = self.user_threads.take(thread.serial);
        let account = UserThreadAccount {
            process: thread.process,
            thread: Some(thread.id),
            name: thread.name.clone(),
            times: Times::default(),
            polls,
            wakeups: thread.wakeups,
            lacks_wakes: thread.lacks_wakes(),
            hooked: thread.is_hooked(),
            lwp_migrations: thread.lwp_migrations,
            cpu_migrations: thread.cpu_migrations,
        };
        if self.ended_user_threads.len() < ACCOUNTS {
            return self.ended_user_threads.push((clock, account));
        }
        let (time, sum) = self.sums.entry((account.process, account.name.clone())).or_default();
        time.take(&mut clock);
        (sum.process, sum.name) = (account.process, account.name);
        sum.polls += account.polls;
        sum.wakeups += account.wakeups;
        sum.lacks_wakes |= account.lacks_wakes;
        sum.hooked |= account.hooked;
        sum.lwp_migrations += account.lwp_migrations;
        sum.cpu_migrations += account.cpu_migrations;
    }
}
