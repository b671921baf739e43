//! `tracewing critical-path`: who had to come to an end so that a task or a thread could.

use crate::format::TableFormat;
use crate::input::conclude;
use crate::output::{raise_file_limit, shown};
use crate::progress::Watch;
use crate::table::{Cell, Order, Table, figure, hidden, milliseconds, text};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tracewing_analysis::{self as analysis, CriticalPath, CriticalPaths, Step, Target};
use tracewing_trace::{Filter, Recording, ThreadPattern, TimePoint, Zone};

/// What `tracewing critical-path` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing critical-path my-trace --task daemon --from +1.2s --to +1.3s
  tracewing critical-path my-trace --tid 4711 --sort ms -n 10      the ten longest steps
  tracewing critical-path my-trace --task 4711/21 --format json

The path is found from --to backwards. While the task or thread runs, the time is its own; where it was blocked, the path goes \
on with whoever woke it; where it waited for a CPU, the time is of those that had the CPU, and where a task waited for a \
thread to run it, the path goes on with that thread. An interrupt that wakes somebody ends such a detour: it was a timer or a \
device that was waited for. Each step says who did what, and why that is on the path; together they are the whole time from \
--from to --to, without which it is all that is known of the task or thread.

Times are in ms (ns in JSON and CSV), `at` counts from the path's begin. It needs a recording of kernel events, and for the \
parts of others one of the whole machine (--system-wide). There is room for about 4 million things that happen in the time, \
which take 500 MB; the path itself comes on top.")]
pub struct Args {
    /// Folders: traces, or folders with traces below them
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    /// Where the path begins
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,

    /// Where the path ends
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    to: Option<String>,

    /// Read times in UTC instead of the local time zone
    #[arg(long)]
    clock_gmt: bool,

    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,
}

/// Whose path.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct TargetArgs {
    /// The path of this user thread (task): NUMBER, PROCESS/NUMBER, or a name that matches GLOB
    #[arg(long = "task", alias = "thread", value_name = "NUMBER|GLOB")]
    task: Option<String>,

    /// The path of this thread of the kernel (LWP)
    #[arg(long, value_name = "TID")]
    tid: Option<i32>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let target = match (&args.target.task, args.target.tid) {
        (Some(task), _) => Target::UserThread(ThreadPattern::new(task)),
        (None, tid) => Target::Lwp(tid.context("give --task or --tid")?),
    };
    let zone = if args.clock_gmt { Zone::Utc } else { Zone::Local };
    let mut filter = Filter { zone, ..Filter::default() };
    filter.set_range(args.from.as_deref(), args.to.as_deref())?;
    raise_file_limit();
    let recording = Recording::open(&args.traces)?;
    let end = filter.range(&recording)?.end;
    // What begins at the end itself says who the target waited for until then.
    filter.to = args.to.as_ref().map(|_| TimePoint::Absolute(end.saturating_add(1)));
    let watch = Watch::new()?;
    let mut paths = CriticalPaths::new();
    let ran = analysis::run(&recording, &filter, &mut paths, &mut |progress| watch.show(progress))?;
    drop(watch);
    let from = args.from.as_ref().map(|_| ran.begin_ns);
    let to = args.to.as_ref().map(|_| ran.end_ns.min(end));
    let path = paths.path(&target, from, to, &ran.names)?;
    let mut rows = table(&path);
    rows.arrange(&args.order)?;
    let mut out = anstream::stdout().lock();
    match args.format {
        TableFormat::Json => {
            json(&mut out, &path, &rows).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => rows.csv(&mut out)?,
        TableFormat::Table => {
            rows.print(&mut out)?;
            print_sums(&mut out, &path)?;
        }
    }
    out.flush()?;
    Ok(conclude(ran))
}

fn json(out: &mut impl Write, path: &CriticalPath, rows: &Table) -> serde_json::Result<()> {
    let sums = |of: &str, sums: Vec<(String, u64)>| {
        sums.into_iter().map(|(name, ns)| serde_json::json!({ of: name, "ns": ns })).collect::<Vec<_>>()
    };
    let whole = serde_json::json!({
        "target": path.target.to_string(),
        "from_ns": path.from_ns,
        "to_ns": path.to_ns,
        "steps": rows,
        "by_who": sums("who", path.by_who()),
        "by_what": sums("what", path.by_what()),
    });
    serde_json::to_writer(out, &whole)
}

fn table(path: &CriticalPath) -> Table {
    let mut table = Table::new([
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
    for (title, sums) in [("who", path.by_who()), ("what", path.by_what())] {
        let mut table = Table::new([figure("ms", "ns"), figure("%", "percent"), text(title, title)]);
        let more = sums.len().saturating_sub(MOST);
        for (name, ns) in sums.into_iter().take(MOST) {
            table.push(vec![Cell::Ns(ns), Cell::Rate(ns as f64 * 100.0 / whole as f64), Cell::Text(name)]);
        }
        writeln!(out)?;
        table.print(out)?;
        if more > 0 {
            writeln!(out, "and {more} more; --format json has them")?;
        }
    }
    writeln!(out, "\n{} ms of {}", milliseconds(whole), shown(&path.target.to_string()))
}
