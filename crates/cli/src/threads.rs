//! `tracewing threads`: where the time of each thread, user thread or process went, as a table, JSON or CSV.

use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::{ANY, TASKS, tell_nameless};
use crate::output::{count_of, print_strangers};
use crate::screen;
use crate::table::{Cell, Column, Order, Table, figure, hidden, milliseconds, text};
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{
    Part, Process, Recorded, Thread, Threads, ThreadsTable, Times, UserThreadAccount, total,
};

/// What `tracewing threads` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing threads my-trace
  tracewing threads my-trace --by task
  tracewing threads my-trace --active-time --cpu 1 --from +1s --to +2s
  tracewing threads my-trace --sort waiting -n 10
  tracewing threads my-trace --format csv > threads.csv

Times are in ms (ns in JSON and CSV): on a CPU, waiting for a CPU, blocked, and unknown, which is before the \
first event that tells and where events are missing. user, system and irq are parts of running: the program's own code, \
system calls, and what interrupts took; what is left of it no event tells. preempted counts the switches at which the thread \
could have gone on, moved its changes of CPU, faults its page faults, whose time the kernel does not tell, polls how often it \
began to run a task. blocked-on is what it waited for longest, ? where no event tells; JSON and CSV have all causes with \
their times, and in interrupted_by which interrupts irq is made of. Where no event tells a thread's process, - stands for it. It needs a \
recording of kernel events.

With --by task, a line is a user thread (events user_thread:*). What the thread that ran it did counts as its own; it also \
waits while no thread is free for it. polls counts how often it was run, lwps its changes of thread.")]
pub struct Args {
    /// What a line stands for
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Print active time alone: how long each was running on a CPU, and in what
    #[arg(long)]
    active_time: bool,

    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

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
    let mut threads = Threads::new();
    let ran = args.input.analyse(&mut threads)?;
    let table = threads.finish(&ran);
    let mut out = screen::stdout(args.format.into());
    let (strangers, duration) = (Cell::Count(table.strangers), Cell::Ns(table.duration_ns));
    let members = [("duration_ns", duration), ("strangers", strangers)];
    let known = Known { recorded: ran.recorded, modes: !ran.modeless, switches: !ran.switchless };
    let (mut rows, document) = match args.by {
        By::Task => (of_tasks(&table.user_threads, known), ("user_threads", &members[..1])),
        By::Thread => (of_threads(&table.threads, known), ("threads", &members[..])),
        By::Process => (of_processes(&table.processes(), known), ("processes", &members[..])),
    };
    if args.active_time {
        rows.keep(&ACTIVE_TIME);
    }
    rows.arrange(&args.order)?;
    let needed = match args.by {
        By::Task => table.user_threads.is_empty().then_some(TASKS),
        By::Thread | By::Process => table.threads.is_empty().then_some(ANY),
    };
    rows.write(&mut out, args.format, document, |out| print_totals(out, &table, args.by, ran.switchless))?;
    if let Some(needed) = needed {
        needed.tell(&mut out, args.format, &args.input, &ran)?;
    } else if args.by == By::Task && table.user_threads.iter().all(|task| task.name.is_empty()) {
        tell_nameless(&mut out, args.format, &args.input)?;
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
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

/// Where time goes, behind the columns that say whose.
const TIMES: [Column; 10] = [
    figure("running", "running_ns"),
    figure("waiting", "waiting_ns"),
    figure("blocked", "blocked_ns"),
    hidden("nested_ns"),
    figure("unknown", "unknown_ns"),
    figure("user", "user_ns"),
    figure("system", "system_ns"),
    figure("irq", "interrupted_ns"),
    text("blocked-on", "blocked_on"),
    hidden("interrupted_by"),
];

/// Of what the recording does not tell, the figures are not known: they are not 0.
///
/// `waits`: whether the recording says which threads could run.
fn times(times: &Times, known: Known, waits: bool) -> [Cell; 10] {
    let time_if = |is_known: bool, ns: u64| if is_known { Cell::Ns(ns) } else { Cell::None };
    let of_mode = |ns: u64| time_if(known.modes && known.switches, ns);
    let parts = |parts: &[Part]| Cell::Parts(parts.iter().map(|part| (part.on.clone(), part.ns)).collect());
    [
        time_if(known.switches, times.running_ns),
        time_if(waits, times.waiting_ns),
        time_if(waits, times.blocked_ns),
        Cell::Ns(times.nested_ns),
        Cell::Ns(times.unknown_ns),
        of_mode(times.user_ns),
        of_mode(times.system_ns),
        time_if(known.recorded.interrupts && known.switches, times.interrupted_ns),
        parts(&times.blocked_on),
        parts(&times.interrupted_by),
    ]
}

/// Of the columns, those that tell who was running on a CPU for how long, and in what.
const ACTIVE_TIME: [&str; 9] =
    ["process", "task", "tid", "name", "running_ns", "user_ns", "system_ns", "interrupted_ns", "unknown_ns"];

/// What LWPs count.
const COUNTS: [Column; 8] = [
    figure("switches", "switches"),
    figure("preempted", "preemptions"),
    figure("moved", "migrations"),
    figure("woken", "wakeups"),
    figure("syscalls", "system_calls"),
    figure("faults", "page_faults"),
    figure("events", "user_events"),
    figure("polls", "polls"),
];

fn of_tasks(user_threads: &[UserThreadAccount], known: Known) -> Table {
    let ids = [figure("process", "process"), figure("task", "task"), text("name", "name")];
    let counts = [
        figure("polls", "polls"),
        figure("lwps", "lwp_migrations"),
        figure("moved", "cpu_migrations"),
        figure("woken", "wakeups"),
    ];
    let mut table = Table::new([&ids[..], &TIMES, &counts].concat());
    for thread in user_threads {
        let ids = [
            thread.process.into(),
            thread.thread.map_or(Cell::None, Cell::Count),
            thread.name.as_str().into(),
        ];
        // What LWPs did for it, switches of user threads tell.
        let polls = !known.recorded.lacks_user_switches;
        let counts = [
            Cell::count_if(polls, thread.polls),
            Cell::count_if(polls, thread.lwp_migrations),
            Cell::count_if(polls, thread.cpu_migrations),
            Cell::count_if(!known.recorded.lacks_user_wakes, thread.wakeups),
        ];
        let known = Known { switches: known.switches && polls, ..known };
        table.push(row(&ids, times(&thread.times, known, polls), &counts));
    }
    table
}

fn of_threads(threads: &[Thread], known: Known) -> Table {
    let ids = [figure("process", "process"), figure("thread", "tid"), text("name", "name")];
    let mut table = Table::new([&ids[..], &TIMES, &COUNTS].concat());
    for thread in threads {
        let ids = [thread.process.into(), Cell::Number(thread.tid.into()), thread.name.as_str().into()];
        let counts = [
            Cell::count_if(known.recorded.switches, thread.switches),
            Cell::count_if(known.recorded.switches, thread.preemptions),
            Cell::count_if(known.recorded.switches, thread.migrations),
            Cell::count_if(known.recorded.wakes, thread.wakeups),
            Cell::count_if(known.recorded.system_calls, thread.system_calls),
            Cell::count_if(known.recorded.page_faults, thread.page_faults),
            Cell::Count(thread.user_events),
            Cell::count_if(!known.recorded.lacks_user_switches, thread.polls),
        ];
        table.push(row(&ids, times_of_threads(&thread.times, known), &counts));
    }
    table
}

fn of_processes(processes: &[Process], known: Known) -> Table {
    let ids = [figure("process", "process"), text("name", "name")];
    let mut table = Table::new([&ids[..], &TIMES, &[figure("threads", "threads")], &COUNTS].concat());
    for process in processes {
        let ids = [process.process.into(), process.name.as_str().into()];
        let counts = [
            Cell::Count(process.threads),
            Cell::count_if(known.recorded.switches, process.switches),
            Cell::count_if(known.recorded.switches, process.preemptions),
            Cell::count_if(known.recorded.switches, process.migrations),
            Cell::count_if(known.recorded.wakes, process.wakeups),
            Cell::count_if(known.recorded.system_calls, process.system_calls),
            Cell::count_if(known.recorded.page_faults, process.page_faults),
            Cell::Count(process.user_events),
            Cell::count_if(!known.recorded.lacks_user_switches, process.polls),
        ];
        table.push(row(&ids, times_of_threads(&process.times, known), &counts));
    }
    table
}

/// Without wakes it is not told when a thread that was blocked could run.
fn times_of_threads(spent: &Times, known: Known) -> [Cell; 10] {
    times(spent, known, known.switches && known.recorded.wakes)
}

fn row(ids: &[Cell], times: [Cell; 10], counts: &[Cell]) -> Vec<Cell> {
    ids.iter().cloned().chain(times).chain(counts.iter().cloned()).collect()
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
