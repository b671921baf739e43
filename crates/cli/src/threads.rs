//! `tracewing threads`: where the time of each thread went, as a table, JSON or CSV.

use crate::format::TableFormat;
use crate::output::{print_error, raise_file_limit};
use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_analysis::{Adapter, Thread, Threads, ThreadsTable};
use tracewing_trace::{Merge, Message, Recording, TimeRange};

/// What `tracewing threads` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing threads my-trace
  tracewing threads my-trace --format csv > threads.csv

Times are in ms (ns in JSON and CSV): on a CPU, waiting for a CPU, blocked, and unknown, which is before the \
first event that tells and where events are missing. irq is the part of running that interrupts took; preempted counts \
the switches at which the thread could have gone on, moved its changes of CPU. Where no event tells a thread's \
process, - stands for it. It needs a recording of kernel events.")]
pub struct Args {
    /// Folders: traces, or folders with traces below them
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
}

/// The table's columns.
const COLUMNS: &str = "process thread name running waiting blocked unknown irq switches preempted moved woken syscalls \
                       events";

pub fn run(args: &Args) -> Result<ExitCode> {
    raise_file_limit();
    let recording = Recording::open(&args.traces)?;
    let mut merge = Merge::new(&recording, TimeRange::ALL);
    let mut adapter = Adapter::new();
    let mut threads = Threads::new();
    let failure = loop {
        match merge.advance() {
            Ok(Some(Message::Event(event))) => {
                if let Some(activity) = adapter.activity(&event) {
                    threads.event(&activity);
                }
            }
            Ok(Some(Message::Lost(lost, trace, stream))) => {
                let (from, to) = lost.range.unwrap_or((i64::MIN, i64::MAX));
                threads.lost(Adapter::scope(trace, stream), from, to);
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let table = threads.finish();
    let mut out = anstream::stdout().lock();
    match args.format {
        TableFormat::Table => print(&mut out, &table)?,
        TableFormat::Json => {
            serde_json::to_writer(&mut out, &table).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => csv(&mut out, &table)?,
    }
    out.flush()?;
    Ok(match failure {
        None => ExitCode::SUCCESS,
        Some(error) => {
            print_error(&error.into());
            ExitCode::FAILURE
        }
    })
}

fn print(out: &mut impl Write, table: &ThreadsTable) -> std::io::Result<()> {
    let mut shown = Table::new();
    shown.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    shown.set_header(COLUMNS.split(' '));
    for thread in &table.threads {
        shown.add_row([
            thread.process.map_or_else(|| "-".to_owned(), |process| process.to_string()),
            thread.tid.to_string(),
            thread.name.clone(),
            milliseconds(thread.running_ns),
            milliseconds(thread.waiting_ns),
            milliseconds(thread.blocked_ns),
            milliseconds(thread.unknown_ns),
            milliseconds(thread.interrupted_ns),
            thread.switches.to_string(),
            thread.preemptions.to_string(),
            thread.migrations.to_string(),
            thread.wakeups.to_string(),
            thread.system_calls.to_string(),
            thread.user_events.to_string(),
        ]);
    }
    for (index, column) in shown.column_iter_mut().enumerate() {
        if index != 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
        column.set_padding((0, 2));
    }
    for line in shown.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    let running: u64 = table.threads.iter().map(|thread| thread.running_ns).sum();
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
    if table.strangers > 0 {
        writeln!(
            out,
            "{} other threads were met beside these; nothing is known of their time (record with --system-wide)",
            table.strangers
        )?;
    }
    Ok(())
}

fn csv(out: &mut impl Write, table: &ThreadsTable) -> std::io::Result<()> {
    writeln!(
        out,
        "process,tid,name,running_ns,waiting_ns,blocked_ns,unknown_ns,interrupted_ns,switches,preemptions,\
         migrations,wakeups,system_calls,user_events"
    )?;
    for thread in &table.threads {
        let Thread { process, tid, name, running_ns, waiting_ns, blocked_ns, unknown_ns, .. } = thread;
        let process = process.map_or_else(String::new, |process| process.to_string());
        // A thread may give itself any name.
        let name = name.replace('"', "\"\"");
        write!(out, "{process},{tid},\"{name}\",{running_ns},{waiting_ns},{blocked_ns},{unknown_ns},")?;
        let Thread { interrupted_ns, switches, preemptions, migrations, .. } = thread;
        let Thread { wakeups, system_calls, user_events, .. } = thread;
        write!(out, "{interrupted_ns},{switches},{preemptions},{migrations},")?;
        writeln!(out, "{wakeups},{system_calls},{user_events}")?;
    }
    Ok(())
}

/// Nanoseconds as milliseconds with three digits.
fn milliseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000)
}
