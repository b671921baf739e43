//! `tracewing threads`: where the time of each thread, user thread or process went, as a table, JSON or CSV.

use crate::format::TableFormat;
use crate::input::Input;
use crate::output::{print_error, shown};
use crate::progress::Watch;
use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{
    self as analysis, Process, Thread, Threads, ThreadsTable, Times, UserThreadAccount,
};

/// What `tracewing threads` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing threads my-trace
  tracewing threads my-trace --by task
  tracewing threads my-trace --format csv > threads.csv

Times are in ms (ns in JSON and CSV): on a CPU, waiting for a CPU, blocked, and unknown, which is before the \
first event that tells and where events are missing. user, system and irq are parts of running: the program's own code, \
system calls, and what interrupts took; what is left of it no event tells. preempted counts the switches at which the thread \
could have gone on, moved its changes of CPU, faults its page faults, whose time the kernel does not tell. blocked-on is what \
it waited for longest, ? where no event tells. Where no event tells a thread's process, - stands for it. It needs a \
recording of kernel events.

With --by task, a line is a user thread (events user_thread:*). What the thread that ran it did counts as its own; it also \
waits while no thread is free for it. polls counts how often it was run, lwps its changes of thread.")]
pub struct Args {
    #[command(flatten)]
    input: Input,

    /// What a line stands for
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
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

/// What a table shows, with the names of the columns in the table and in CSV.
struct Rows {
    header: String,
    csv_header: String,
    rows: Vec<Row>,
}

struct Row {
    /// The process, and the thread's or the user thread's number.
    ids: Vec<Option<String>>,
    name: String,
    times: Times,
    counts: Vec<u64>,
}

const TIMES: &str = "running waiting blocked unknown user system irq blocked-on";
const CSV_TIMES: &str =
    "running_ns,waiting_ns,blocked_ns,nested_ns,unknown_ns,user_ns,system_ns,interrupted_ns,blocked_on";

pub fn run(args: &Args) -> Result<ExitCode> {
    let (recording, filter) = args.input.open()?;
    let watch = Watch::new()?;
    let mut threads = Threads::new();
    let ran = analysis::run(&recording, &filter, &mut threads, &mut |progress| watch.show(progress))?;
    drop(watch);
    let table = threads.finish(&ran);
    let mut out = anstream::stdout().lock();
    match args.format {
        TableFormat::Table => {
            print(&mut out, &Rows::new(&table, args.by))?;
            print_totals(&mut out, &table, args.by)?;
        }
        TableFormat::Json => {
            json(&mut out, &table, args.by).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => csv(&mut out, &Rows::new(&table, args.by))?,
    }
    out.flush()?;
    Ok(match ran.failure {
        None => ExitCode::SUCCESS,
        Some(error) => {
            print_error(&error.into());
            ExitCode::FAILURE
        }
    })
}

impl Rows {
    fn new(table: &ThreadsTable, by: By) -> Self {
        let (ids, counts, rows): (_, _, Vec<Row>) = match by {
            By::Task => (
                "process task",
                "polls lwps moved woken",
                table.user_threads.iter().map(Row::of_user_thread).collect(),
            ),
            By::Thread => (
                "process thread",
                "switches preempted moved woken syscalls faults events",
                table.threads.iter().map(Row::of_thread).collect(),
            ),
            By::Process => (
                "process",
                "threads switches preempted moved woken syscalls faults events",
                table.processes().iter().map(Row::of_process).collect(),
            ),
        };
        let csv_ids = if by == By::Thread { "process,tid".to_owned() } else { ids.replace(' ', ",") };
        let csv_counts = counts
            .replace("preempted", "preemptions")
            .replace("lwps moved", "lwp_migrations cpu_migrations")
            .replace("moved", "migrations")
            .replace("woken", "wakeups")
            .replace("syscalls", "system_calls")
            .replace("faults", "page_faults")
            .replace("events", "user_events")
            .replace(' ', ",");
        Rows {
            header: format!("{ids} name {TIMES} {counts}"),
            csv_header: format!("{csv_ids},name,{CSV_TIMES},{csv_counts}"),
            rows,
        }
    }
}

impl Row {
    fn of_thread(thread: &Thread) -> Self {
        Row {
            ids: vec![thread.process.map(|process| process.to_string()), Some(thread.tid.to_string())],
            name: thread.name.clone(),
            times: thread.times.clone(),
            counts: vec![
                thread.switches,
                thread.preemptions,
                thread.migrations,
                thread.wakeups,
                thread.system_calls,
                thread.page_faults,
                thread.user_events,
            ],
        }
    }

    fn of_user_thread(thread: &UserThreadAccount) -> Self {
        Row {
            ids: vec![thread.process.map(|process| process.to_string()), Some(thread.thread.to_string())],
            name: thread.name.clone(),
            times: thread.times.clone(),
            counts: vec![thread.polls, thread.lwp_migrations, thread.cpu_migrations, thread.wakeups],
        }
    }

    fn of_process(process: &Process) -> Self {
        Row {
            ids: vec![process.process.map(|process| process.to_string())],
            name: process.name.clone(),
            times: process.times.clone(),
            counts: vec![
                process.threads,
                process.switches,
                process.preemptions,
                process.migrations,
                process.wakeups,
                process.system_calls,
                process.page_faults,
                process.user_events,
            ],
        }
    }
}

fn json(out: &mut impl Write, table: &ThreadsTable, by: By) -> serde_json::Result<()> {
    let ThreadsTable { threads, user_threads, strangers, duration_ns } = table;
    let whole = match by {
        By::Task => serde_json::json!({ "user_threads": user_threads, "duration_ns": duration_ns }),
        By::Thread => {
            serde_json::json!({ "threads": threads, "strangers": strangers, "duration_ns": duration_ns })
        }
        By::Process => {
            let processes = table.processes();
            serde_json::json!({ "processes": processes, "strangers": strangers, "duration_ns": duration_ns })
        }
    };
    serde_json::to_writer(out, &whole)
}

fn print(out: &mut impl Write, rows: &Rows) -> std::io::Result<()> {
    let mut shown_table = Table::new();
    shown_table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    shown_table.set_header(rows.header.split(' '));
    for row in &rows.rows {
        let mut cells: Vec<String> =
            row.ids.iter().map(|id| id.clone().unwrap_or_else(|| "-".to_owned())).collect();
        cells.push(shown(&row.name).into_owned());
        let times = &row.times;
        cells.extend(
            [
                times.running_ns,
                times.waiting_ns,
                times.blocked_ns,
                times.unknown_ns,
                times.user_ns,
                times.system_ns,
                times.interrupted_ns,
            ]
            .map(milliseconds),
        );
        let longest = times.blocked_on.first().map(|blocked| blocked.on.as_deref().unwrap_or("?"));
        cells.push(longest.unwrap_or_default().to_owned());
        cells.extend(row.counts.iter().map(u64::to_string));
        shown_table.add_row(cells);
    }
    let texts = ["name", "blocked-on"];
    for (name, column) in rows.header.split(' ').zip(shown_table.column_iter_mut()) {
        if !texts.contains(&name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
    }
    for line in shown_table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn print_totals(out: &mut impl Write, table: &ThreadsTable, by: By) -> std::io::Result<()> {
    let running: u64 = table.threads.iter().map(|thread| thread.times.running_ns).sum();
    writeln!(
        out,
        "{} {}, {} ms on CPUs in {} ms",
        table.threads.len(),
        if table.threads.len() == 1 { "thread" } else { "threads" },
        milliseconds(running),
        milliseconds(table.duration_ns)
    )?;
    if table.threads.iter().all(|thread| thread.switches == 0) {
        writeln!(out, "The recording has no sched_switch events, so nothing is known of the threads' time.")?;
    }
    if by == By::Task && table.user_threads.is_empty() {
        writeln!(out, "The recording has no user_thread events, so nothing is known of tasks.")?;
    }
    if table.strangers > 0 {
        writeln!(
            out,
            "{} other threads were met beside these; nothing is known of their time (record with --system-wide)",
            table.strangers
        )?;
    }
    Ok(())
}

fn csv(out: &mut impl Write, rows: &Rows) -> std::io::Result<()> {
    writeln!(out, "{}", rows.csv_header)?;
    for row in &rows.rows {
        for id in &row.ids {
            write!(out, "{},", id.as_deref().unwrap_or_default())?;
        }
        // A thread may give itself any name.
        write!(out, "\"{}\"", row.name.replace('"', "\"\""))?;
        let Times { running_ns, waiting_ns, blocked_ns, nested_ns, unknown_ns, .. } = &row.times;
        let Times { user_ns, system_ns, interrupted_ns, blocked_on, .. } = &row.times;
        write!(
            out,
            ",{running_ns},{waiting_ns},{blocked_ns},{nested_ns},{unknown_ns},{user_ns},{system_ns},"
        )?;
        let blocked = blocked_on
            .iter()
            .map(|blocked| format!("{}={}", blocked.on.as_deref().unwrap_or("?"), blocked.ns))
            .collect::<Vec<_>>();
        write!(out, "{interrupted_ns},\"{}\"", blocked.join(" ").replace('"', "\"\""))?;
        for count in &row.counts {
            write!(out, ",{count}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Nanoseconds as milliseconds with three digits.
fn milliseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)
}
