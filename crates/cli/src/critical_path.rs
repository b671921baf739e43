//! `tracewing critical-path`: who had to come to an end so that a task or a thread could.

use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::ANY;
use crate::output::shown;
use crate::progress::Watch;
use crate::screen;
use crate::table::{Cell, Order, Table, figure, hidden, milliseconds, text};
use anyhow::{Result, bail};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use tracewing_analysis::{self as analysis, CriticalPath, CriticalPaths, NoPath, Step, Target};
use tracewing_trace::{Filter, TimePoint};

/// So much of what happened is held in memory before a temporary file is made, in bytes.
const HELD: usize = 64 << 20;

/// What `tracewing critical-path` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing critical-path my-trace --task daemon --from +1.2s --to +1.3s
  tracewing critical-path my-trace --tid 4711 --sort ms -n 10      the ten longest steps
  tracewing critical-path my-trace --task 4711/21 --format json
  tracewing critical-path my-trace --process cargo       of the process' first thread

--task or --tid say whose path it is, one of one process where --pid or --process say so, too; these alone mean the process' first \
thread. Other filters would leave out what the path goes over, and are refused.

The path is found from --to backwards. While the task or thread runs, the time is its own; where it was blocked, the path goes \
on with whoever woke it; where it waited for a CPU, the time is of those that had the CPU, and where a task waited for a \
thread to run it, the path goes on with that thread. An interrupt that wakes somebody ends such a detour: it was a timer or a \
device that was waited for. Each step says who did what, and why that is on the path; together they are the whole time from \
--from to --to, without which it is all that is known of the task or thread.

Times are in ms (ns in JSON and CSV), `at` counts from the path's begin. It needs a recording of kernel events, and for the \
parts of others one of the whole machine (--system-wide). What all did in the time is kept until the path is found, in some 10 \
bytes for each system call, switch and wake: up to 64 MB in memory, more in a temporary file (in $TMPDIR). Of a path of more \
than 262144 steps, the last ones are told; the sums are of all.")]
pub struct Args {
    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (recording, chosen) = args.input.open()?;
    let mut paths = CriticalPaths::new(Target::new(&chosen)?, tempfile::spooled_tempfile(HELD));
    let Filter { from, to, zone, .. } = chosen;
    let (has_begin, has_end) = (from.is_some(), to.is_some());
    let mut filter = Filter { from, to, zone, ..Filter::default() };
    let end = filter.range(&recording)?.end;
    // What begins at the end itself says who the target waited for until then.
    filter.to = has_end.then(|| TimePoint::Absolute(end.saturating_add(1)));
    let watch = Watch::new()?;
    let ran = analysis::run(&recording, &filter, &mut paths, &mut |progress| watch.show(progress))?;
    let from = has_begin.then_some(ran.begin_ns);
    let to = has_end.then(|| ran.end_ns.min(end));
    // Who has stopped the reading has the path of what was read.
    let path = paths.path(from, to, &ran.names, &mut || ran.stopped || !watch.is_stopped());
    drop(watch);
    let path = match path {
        Err(NoPath::Missing(_)) if ran.events == 0 => bail!(ANY.why_nothing_in(&args.input)?),
        path => path?,
    };
    let mut rows = table(&path);
    rows.arrange(&args.order)?;
    let mut out = screen::stdout(args.format.into());
    match args.format {
        TableFormat::Json => {
            let mut out = BufWriter::new(&mut out);
            serde_json::to_writer(&mut out, &Document::new(&path, &rows)).map_err(std::io::Error::from)?;
            writeln!(out)?;
            out.flush()?;
        }
        TableFormat::Csv => rows.csv(&mut out)?,
        TableFormat::Table => {
            rows.print(&mut out)?;
            print_sums(&mut out, &path)?;
        }
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// A path for programs.
#[derive(serde::Serialize)]
struct Document<'p> {
    target: String,
    from_ns: i64,
    to_ns: i64,
    steps: &'p Table,
    left_out: u64,
    by_who: Vec<Whose<'p>>,
    by_what: Vec<Spent<'p>>,
}

#[derive(serde::Serialize)]
struct Whose<'p> {
    who: &'p str,
    ns: u64,
}

#[derive(serde::Serialize)]
struct Spent<'p> {
    what: &'p str,
    ns: u64,
}

impl<'p> Document<'p> {
    fn new(path: &'p CriticalPath, steps: &'p Table) -> Self {
        Document {
            target: path.target.to_string(),
            from_ns: path.from_ns,
            to_ns: path.to_ns,
            steps,
            left_out: path.left_out,
            by_who: path.by_who.iter().map(|(who, ns)| Whose { who, ns: *ns }).collect(),
            by_what: path.by_what.iter().map(|(what, ns)| Spent { what, ns: *ns }).collect(),
        }
    }
}

fn table(path: &CriticalPath) -> Table {
    let mut table = Table::by_position([
        hidden("from_ns"),
        hidden("to_ns"),
        figure("at", "after_ns"),
        figure("ms", "ns"),
        figure("cpu", "cpu"),
        text("who", "who"),
        text("what", "what"),
        text("why", "why"),
        text("whom", "whom"),
        hidden("process"),
        hidden("tid"),
        hidden("thread_name"),
        hidden("task"),
        hidden("task_name"),
    ]);
    for step in &path.steps {
        let Step { from_ns, to_ns, cpu, who, what, why, whom } = step;
        let name = |name: &str| if name.is_empty() { Cell::None } else { name.into() };
        table.push(vec![
            Cell::Number(*from_ns),
            Cell::Number(*to_ns),
            Cell::Ns(from_ns.abs_diff(path.from_ns)),
            Cell::Ns(step.ns()),
            cpu.map_or(Cell::None, |cpu| Cell::Count(cpu.into())),
            Cell::Text(who.to_string()),
            Cell::Text(what.to_string()),
            Cell::Text(why.to_string()),
            Cell::Text(whom.as_ref().map(ToString::to_string).unwrap_or_default()),
            who.process.into(),
            who.tid.into(),
            name(&who.name),
            who.user_thread.map_or(Cell::None, Cell::Count),
            name(&who.user_thread_name),
        ]);
    }
    table
}

/// Whose the time was, and what was done in it; most of it.
fn print_sums(out: &mut impl Write, path: &CriticalPath) -> std::io::Result<()> {
    const MOST: usize = 20;
    let whole = path.to_ns.abs_diff(path.from_ns);
    for (title, sums) in [("who", &path.by_who), ("what", &path.by_what)] {
        let mut table = Table::by_position([figure("ms", "ns"), figure("%", "percent"), text(title, title)]);
        let more = sums.len().saturating_sub(MOST);
        for (name, ns) in sums.iter().take(MOST) {
            let percent = *ns as f64 * 100.0 / whole as f64;
            table.push(vec![Cell::Ns(*ns), Cell::Rate(percent), Cell::Text(name.clone())]);
        }
        writeln!(out)?;
        table.print(out)?;
        if more > 0 {
            writeln!(out, "and {more} more; --format json has them")?;
        }
    }
    writeln!(out, "\n{} ms of {}", milliseconds(whole), shown(&path.target.to_string()))?;
    if path.left_out > 0 {
        writeln!(
            out,
            "{} steps before these are in the sums only; --to chooses an earlier end",
            path.left_out
        )?;
    }
    Ok(())
}
