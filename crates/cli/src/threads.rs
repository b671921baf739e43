//! `tracewing threads`: where the time of each thread, user thread or process went, as a table, JSON or CSV.

use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::{ANY, TASKS, tell_nameless};
use crate::output::{count_of, print_strangers};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, TableOptions, columns, heads, milliseconds};
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{
    Part, Process, Recorded, Thread, Threads, ThreadsTable, Times, UserThreadAccount, total,
};

/// What `tracewing threads` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views())))]
pub struct Args {
    /// What a line stands for
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Print active time alone: how long each was running on a CPU, and in what
    #[arg(long, conflicts_with = "columns")]
    active_time: bool,

    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

const HELP: &str = "\
Examples:
  tracewing threads my-trace
  tracewing threads my-trace --by task
  tracewing threads my-trace --active-time --cpu 1 --from +1s --to +2s
  tracewing threads my-trace --sort waiting -n 10
  tracewing threads my-trace --columns name,running,switches --format csv > threads.csv

Times are in ms (ns in JSON and CSV). What is left of running beside user, system and irq no event tells. JSON and CSV have all \
causes of blocked-on with their times. Where no event tells a thread's process, - stands for it. It needs a recording of kernel events.

With --by task, a line is a user thread (events user_thread:*). What the thread that ran it did counts as its own; it also \
waits while no thread is free for it.
";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum By {
    /// A user thread, such as a task of an async runtime
    Task,
    /// A thread as the kernel knows it
    #[default]
    Thread,
    /// A process
    Process,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut all = columns(args.by);
    if args.active_time {
        all.retain(|column| ACTIVE_TIME.contains(&column.head.name));
    }
    let layout = args.table.layout(&all)?;
    let format = args.table.format();
    let mut threads = Threads::new();
    let ran = args.input.analyse(&mut threads)?;
    let table = threads.finish(&ran);
    let mut out = screen::stdout(format.into());
    let (strangers, duration) = (Cell::Count(table.strangers), Cell::Ns(table.duration_ns));
    let members = [("duration_ns", duration), ("strangers", strangers)];
    let known = Known { recorded: ran.recorded, modes: !ran.modeless, switches: !ran.switchless };
    let processes = if args.by == By::Process { table.processes() } else { Vec::new() };
    let (lines, document) = match args.by {
        By::Task => (of_tasks(&table.user_threads, known), ("user_threads", &members[..1])),
        By::Thread => (of_threads(&table.threads, known), ("threads", &members[..])),
        By::Process => (of_processes(&processes, known), ("processes", &members[..])),
    };
    let needed = match args.by {
        By::Task => table.user_threads.is_empty().then_some(TASKS),
        By::Thread | By::Process => table.threads.is_empty().then_some(ANY),
    };
    let rows = layout.table(&lines);
    rows.write(&mut out, format, document, |out| print_totals(out, &table, args.by, ran.switchless))?;
    if let Some(needed) = needed {
        needed.tell(&mut out, format, &args.input, &ran)?;
    } else if args.by == By::Task && table.user_threads.iter().all(|task| task.name.is_empty()) {
        tell_nameless(&mut out, format, &args.input)?;
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

pub fn views() -> Vec<View> {
    vec![
        View::new("threads", heads(columns(By::Thread))),
        View::new("threads --by process", heads(columns(By::Process))),
        View::new("threads --by task", heads(columns(By::Task))),
    ]
}

/// What a recording tells.
#[derive(Clone, Copy)]
struct Known {
    recorded: Recorded,
    /// Whether threads are in their program or in a system call.
    modes: bool,
    /// Whether anybody has a CPU.
    switches: bool,
}

/// A line of the table: a thread, a user thread or a process.
struct Line<'t> {
    process: Option<i32>,
    /// The thread's, or the user thread's.
    number: Cell,
    name: &'t str,
    threads: u64,
    times: &'t Times,
    known: Known,
    /// Whether it is known when it could run, and when it was blocked.
    waits: bool,
    counts: Counts,
}

/// Numbers of events, where those are recorded.
#[derive(Default)]
struct Counts {
    switches: Option<u64>,
    preemptions: Option<u64>,
    cpu_migrations: Option<u64>,
    lwp_migrations: Option<u64>,
    wakeups: Option<u64>,
    system_calls: Option<u64>,
    page_faults: Option<u64>,
    user_events: Option<u64>,
    polls: Option<u64>,
}

impl Line<'_> {
    fn of_mode(&self, ns: u64) -> Cell {
        Cell::ns_if(self.known.modes && self.known.switches, ns)
    }
}

fn columns<'t>(by: By) -> Vec<Column<Line<'t>>> {
    let [tasks, threads, processes] = [By::Task, By::Thread, By::Process].map(|of| by == of);
    let mut columns = columns! { line: Line<'t>;
        number "process" "process" key, "number of its process" => line.process.into();
    };
    if tasks {
        columns.extend(columns! { line: Line<'t>;
            number "task" "task" key, "number of the user thread" => line.number.clone();
        });
    }
    if threads {
        columns.extend(columns! { line: Line<'t>;
            number "thread" "tid" key, "number of the thread" => line.number.clone();
        });
    }
    columns.extend(columns! { line: Line<'t>;
        text "name" "name" key + shrinking, "its last known name" => line.name.into();
    });
    columns.extend(times());
    if processes {
        columns.extend(columns! { line: Line<'t>;
            number "threads" "threads" normal, "its threads" => Cell::Count(line.threads);
        });
    }
    columns.extend(if tasks { counts_of_tasks() } else { counts_of_threads() });
    columns
}

/// Where time goes. What the recording does not tell is not known: it is not 0.
fn times<'t>() -> Vec<Column<Line<'t>>> {
    columns! { line: Line<'t>;
        duration "running" "running_ns" key, "time on a CPU"
            => Cell::ns_if(line.known.switches, line.times.running_ns);
        duration "waiting" "waiting_ns" high, "time ready to run: no CPU was free, or for a task no thread"
            => Cell::ns_if(line.waits, line.times.waiting_ns);
        duration "blocked" "blocked_ns" high, "time waiting for something else"
            => Cell::ns_if(line.waits, line.times.blocked_ns);
        duration "nested" "nested_ns" extra, "time in which another user thread ran within it"
            => Cell::Ns(line.times.nested_ns);
        duration "unknown" "unknown_ns" high, "time before the first event that shows its state, and where events are missing"
            => Cell::Ns(line.times.unknown_ns);
        duration "user" "user_ns" normal, "part of running: the program's own code"
            => line.of_mode(line.times.user_ns);
        duration "system" "system_ns" normal, "part of running: system calls"
            => line.of_mode(line.times.system_ns);
        duration "irq" "interrupted_ns" normal, "part of running: interrupts"
            => Cell::ns_if(line.known.recorded.interrupts && line.known.switches, line.times.interrupted_ns);
        parts "blocked-on" "blocked_on" normal, "what it waited for longest, ? where no event shows it"
            => cell_of(&line.times.blocked_on);
        parts "interrupted-by" "interrupted_by" extra, "interrupts that irq is made of"
            => cell_of(&line.times.interrupted_by);
    }
}

fn cell_of(parts: &[Part]) -> Cell {
    Cell::Parts(parts.iter().map(|part| (part.on.clone(), part.ns)).collect())
}

fn counts_of_tasks<'t>() -> Vec<Column<Line<'t>>> {
    columns! { line: Line<'t>;
        number "polls" "polls" normal, "how often a thread began to run it" => Cell::count(line.counts.polls);
        number "lwps" "lwp_migrations" low, "how often another thread ran it than before"
            => Cell::count(line.counts.lwp_migrations);
        number "moved" "cpu_migrations" low, "how often it ran on another CPU than before"
            => Cell::count(line.counts.cpu_migrations);
        number "woken" "wakeups" low, "how often it was woken" => Cell::count(line.counts.wakeups);
    }
}

fn counts_of_threads<'t>() -> Vec<Column<Line<'t>>> {
    columns! { line: Line<'t>;
        number "switches" "switches" normal, "how often it left a CPU" => Cell::count(line.counts.switches);
        number "preempted" "preemptions" low, "how often it left a CPU although it was ready to run"
            => Cell::count(line.counts.preemptions);
        number "moved" "migrations" low, "how often it ran on another CPU than before"
            => Cell::count(line.counts.cpu_migrations);
        number "woken" "wakeups" low, "how often it was woken" => Cell::count(line.counts.wakeups);
        number "syscalls" "system_calls" normal, "system calls that it began" => Cell::count(line.counts.system_calls);
        number "faults" "page_faults" low, "page faults; the kernel does not record their time"
            => Cell::count(line.counts.page_faults);
        number "events" "user_events" low, "events of its program" => Cell::count(line.counts.user_events);
        number "polls" "polls" low, "how often it began to run a user thread" => Cell::count(line.counts.polls);
    }
}

/// Of the columns, those that say how long each was running on a CPU, and in what.
const ACTIVE_TIME: [&str; 9] =
    ["process", "task", "tid", "name", "running_ns", "user_ns", "system_ns", "interrupted_ns", "unknown_ns"];

fn of_tasks(user_threads: &[UserThreadAccount], known: Known) -> Vec<Line<'_>> {
    // What LWPs did for it, switches of user threads tell.
    let polls = !known.recorded.lacks_user_switches;
    let known = Known { switches: known.switches && polls, ..known };
    let counts = |thread: &UserThreadAccount| Counts {
        polls: polls.then_some(thread.polls),
        lwp_migrations: polls.then_some(thread.lwp_migrations),
        // In the middle of a poll, only switches show them.
        cpu_migrations: known.switches.then_some(thread.cpu_migrations),
        wakeups: (!known.recorded.lacks_user_wakes).then_some(thread.wakeups),
        ..Counts::default()
    };
    let lines = user_threads.iter().map(|thread| Line {
        process: thread.process,
        number: Cell::count(thread.thread),
        name: &thread.name,
        threads: 0,
        times: &thread.times,
        known,
        waits: polls && !known.recorded.lacks_user_wakes,
        counts: counts(thread),
    });
    lines.collect()
}

/// The counts of a thread or a process.
macro_rules! counts_of {
    ($of:expr, $known:expr) => {{
        let (of, recorded) = ($of, $known.recorded);
        Counts {
            switches: recorded.switches.then_some(of.switches),
            preemptions: recorded.switches.then_some(of.preemptions),
            cpu_migrations: recorded.switches.then_some(of.migrations),
            lwp_migrations: None,
            wakeups: (recorded.wakes && recorded.first_wakes).then_some(of.wakeups),
            system_calls: (recorded.all_system_calls && !of.lacks_calls).then_some(of.system_calls),
            page_faults: recorded.page_faults.then_some(of.page_faults),
            user_events: Some(of.user_events),
            polls: (!recorded.lacks_user_switches).then_some(of.polls),
        }
    }};
}

fn of_threads(threads: &[Thread], known: Known) -> Vec<Line<'_>> {
    let lines = threads.iter().map(|thread| Line {
        process: thread.process,
        number: Cell::Number(thread.tid.into()),
        name: &thread.name,
        threads: 1,
        times: &thread.times,
        known,
        waits: waits_of_threads(known),
        counts: counts_of!(thread, known),
    });
    lines.collect()
}

fn of_processes(processes: &[Process], known: Known) -> Vec<Line<'_>> {
    let lines = processes.iter().map(|process| Line {
        process: process.process,
        number: Cell::None,
        name: &process.name,
        threads: process.threads,
        times: &process.times,
        known,
        waits: waits_of_threads(known),
        counts: counts_of!(process, known),
    });
    lines.collect()
}

/// Without wakes it is not known when a thread that was blocked could run.
fn waits_of_threads(known: Known) -> bool {
    known.switches && known.recorded.wakes
}

fn print_totals(out: &mut impl Write, table: &ThreadsTable, by: By, switchless: bool) -> std::io::Result<()> {
    let running = total(table.threads.iter().map(|thread| thread.times.running_ns));
    let (threads, duration) = (table.threads.len(), milliseconds(table.duration_ns));
    let lines = match by {
        By::Thread => String::new(),
        By::Task => count_of(table.user_threads.len(), "task") + " on ",
        By::Process => count_of(table.processes().len(), "process") + " with ",
    };
    let threads = count_of(threads, "thread");
    match switchless {
        true => writeln!(out, "{lines}{threads} in {duration} ms, time on CPUs unknown")?,
        false => writeln!(out, "{lines}{threads}, {} ms on CPUs in {duration} ms", milliseconds(running))?,
    }
    if table.threads.is_empty() {
        writeln!(out, "No thread fits that was met in this time.")?;
    } else if switchless {
        writeln!(
            out,
            "Not all switches of threads (sched_switch) are in the recording, so nothing is known of their time."
        )?;
    }
    print_strangers(out, table.strangers)
}
