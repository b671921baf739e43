//! `tracewing threads`: where the time of each thread, user thread or process went, as a table, JSON or CSV.

mod rows;

use crate::cuts::{self, Why};
use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::losses;
use crate::no_result::{ANY, TASKS, explain_nameless, say};
use crate::output::{count_of, print_strangers};
use crate::parts::{Part as MissingPart, RECORD_KERNEL, RECORD_TASKS, Wakeless, explain_missing};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, TableOptions, heads, milliseconds};
use crate::table::{Column, Table};
use anyhow::Result;
use rows::{ACTIVE_TIME, Known, columns, of_processes, of_tasks, of_threads};
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{Cuts, Ran, Threads, ThreadsTable, Window, total};

/// What `tracewing threads` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views())))]
pub struct Args {
    /// What each row describes
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
  tracewing threads my-trace --sort ready -n 10
  tracewing threads my-trace --columns name,running,switches --format csv > threads.csv

Times are in ms (ns in JSON and CSV). Any part of running that is not user, system or irq is time in an unknown mode; \
if that can include all of user or of system, the column shows -. \
JSON and CSV have all causes of blocked-on with their times. The process of a thread is - if no event shows it. This \
command needs a recording of kernel events.

With --by task, each line is a task (events user_thread:*). What a thread does while it runs a task is \
attributed to the task; a task is also ready while no thread is free for it.
";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum By {
    /// A task of an async runtime, or another user thread
    Task,
    /// A thread as the kernel knows it
    #[default]
    Thread,
    /// A process
    Process,
}

/// What `threads` takes from kernel events that a recording may lack.
const KERNEL_PARTS: [MissingPart; 5] = [
    MissingPart::switches("all times are unknown (-)"),
    MissingPart::system_calls("`user`, `system` and the number of calls are unknown (-)"),
    MissingPart::wakes("`ready`, `blocked` and the number of wakes are unknown (-)"),
    MissingPart::interrupts(
        "`irq` is unknown (-), and the time of interrupts is attributed to what they interrupted",
    ),
    MissingPart::page_faults("`faults` are unknown (-)"),
];

/// The same for tasks, whose time between polls other events show.
const KERNEL_PARTS_OF_TASKS: [MissingPart; 4] = [
    MissingPart::switches("all times are unknown (-)"),
    MissingPart::system_calls("`user` and `system` are unknown (-)"),
    MissingPart::wakes("time within polls in which their threads slept is in `unknown`"),
    MissingPart::interrupts(
        "`irq` is unknown (-), and the time of interrupts is attributed to what they interrupted",
    ),
];

/// The same of events of programs about their tasks.
const TASK_PARTS: [MissingPart; 2] = [
    MissingPart::task_switches("polls and their times are unknown (-)"),
    MissingPart::task_wakes(
        "a task is `blocked` during waits that it reports, until its next poll, though it may have been ready earlier, so \
         `blocked` is an upper bound; the rest of its time between polls is unknown (-)",
    ),
];

/// What that means for tasks that only hooks know.
const HOOKED: &str = "a task is then `blocked` during waits that it reports, until its next poll, though it may have been ready \
                      earlier, so `blocked` is an upper bound; the rest of its time between polls is unknown";

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
    let [lost, least_lost] = losses::members(&ran);
    let members = [("duration_ns", duration), lost, least_lost, ("strangers", strangers)];
    let known = known(&ran);
    let processes = if args.by == By::Process { table.processes() } else { Vec::new() };
    let (lines, document) = match args.by {
        By::Task => (of_tasks(&table.user_threads, known), ("user_threads", &members[..3])),
        By::Thread => (of_threads(&table.threads, known), ("threads", &members[..])),
        By::Process => (of_processes(&processes, known), ("processes", &members[..])),
    };
    let needed = match args.by {
        By::Task => table.user_threads.is_empty().then_some(TASKS),
        By::Thread | By::Process => table.threads.is_empty().then_some(ANY),
    };
    let rows = layout.table(&lines);
    rows.write(&mut out, format, document, |out| print_totals(out, &table, args.by, &ran))?;
    if let Some(needed) = needed {
        needed.explain(&mut out, format, &args.input, &ran)?;
    } else if args.by == By::Task && table.user_threads.iter().all(|task| task.name.is_empty()) {
        explain_nameless(&mut out, format, &args.input)?;
    }
    if needed.is_none() {
        if args.by == By::Task {
            let tasks = table.user_threads.iter().map(|task| (1, task.lacks_wakes, task.hooked));
            let wakeless = Wakeless::of(tasks, &ran, &args.input)?;
            wakeless.explain(HOOKED, &mut out, format)?;
            explain_missing(&wakeless.parts(&TASK_PARTS), RECORD_TASKS, &mut out, format, &args.input)?;
        }
        // Of a recording without the kernel's events, the totals say so.
        if ran.cpus > 0 {
            let parts = if args.by == By::Task { &KERNEL_PARTS_OF_TASKS[..] } else { &KERNEL_PARTS };
            explain_missing(parts, RECORD_KERNEL, &mut out, format, &args.input)?;
        }
        explain_cuts(args.by, &ran, &mut out, format)?;
        if let Some(line) = losses::least(&ran, "numbers of events") {
            say(&mut out, format, &line)?;
        }
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// What is unknown because of the filter.
fn explain_cuts(by: By, ran: &Ran, out: &mut impl Write, format: TableFormat) -> Result<()> {
    let Cuts { lwps, waits, polls, between_polls } = ran.cuts;
    if by == By::Task {
        let (why, columns) = match between_polls {
            true => (Why::InPolls, "`ready`, `blocked`, `nested`, `unknown`, `lwps`, `moved` and `woken`"),
            false => (Why::PartsOfPolls, "`lwps`, `moved` and `woken`"),
        };
        return cuts::explain(between_polls || polls, why, columns, out, format);
    }
    cuts::explain(waits, Why::OnCpus, "`ready`, `blocked` and `unknown`", out, format)?;
    cuts::explain(lwps, Why::PartsOfThreads, "`moved` and `woken`", out, format)
}

fn known(ran: &Ran) -> Known {
    let Ran { recorded, modeless, switchless, lossy, cuts, .. } = *ran;
    Known { recorded, modes: !modeless, switches: !switchless, lossy, cuts }
}

/// The columns of a running recording's threads.
pub fn live_columns<'t>() -> Vec<Column<rows::Line<'t>>> {
    columns(By::Thread)
}

/// The threads of a running recording in the time of a window.
pub fn live_table(window: &Window, options: &TableOptions, width: Option<usize>) -> Table {
    let lines = of_threads(&window.threads.threads, known(&window.ran));
    options.layout_of_part(&live_columns()).within(width).table(&lines)
}

pub fn views() -> Vec<View> {
    vec![
        View::new("threads", heads(columns(By::Thread))),
        View::new("threads --by process", heads(columns(By::Process))),
        View::new("threads --by task", heads(columns(By::Task))),
    ]
}

fn print_totals(out: &mut impl Write, table: &ThreadsTable, by: By, ran: &Ran) -> std::io::Result<()> {
    let running = total(table.threads.iter().map(|thread| thread.times.running_ns));
    let (threads, duration) = (table.threads.len(), milliseconds(table.duration_ns));
    let lines = match by {
        By::Thread => String::new(),
        By::Task => count_of(table.user_threads.len(), "task") + " on ",
        By::Process => count_of(table.processes().len(), "process") + " with ",
    };
    let threads = count_of(threads, "thread");
    match ran.switchless {
        true => writeln!(out, "{lines}{threads} in {duration} ms, time on CPUs unknown")?,
        false => writeln!(out, "{lines}{threads}, {} ms on CPUs in {duration} ms", milliseconds(running))?,
    }
    if table.threads.is_empty() {
        if ran.chosen {
            writeln!(out, "No thread that appears in this time matches.")?;
        }
    } else if ran.cpus == 0 {
        writeln!(out, "The recording has no events of the kernel: the times of threads are unknown (-).")?;
    }
    print_strangers(out, table.strangers, ran)
}
