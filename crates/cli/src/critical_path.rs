//! `tracewing critical-path`: which threads and tasks a thread or a task waited for, step by step.

use crate::across;
use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::no_result::ANY;
use crate::output::shown;
use crate::parts::{Part, RECORD_KERNEL, RECORD_TASKS, explain_missing};
use crate::progress::Watch;
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, Layout, Table, TableOptions, columns, heads, milliseconds};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use tracewing_analysis::{self as analysis, CriticalPath, CriticalPaths, NoPath, Step, Target};
use tracewing_trace::{Filter, TimePoint, Zone};
use tracewing_units::{Duration, Timestamp};

/// Bytes of the history that are held in memory before a temporary file is made.
const HELD: usize = 64 << 20;

const HELP: &str = "\
Examples:
  tracewing critical-path my-trace --task daemon --from +1.2s --to +1.3s
  tracewing critical-path my-trace --tid 4711 --sort time -n 10      the ten longest steps
  tracewing critical-path my-trace --task 4711/21 --format json
  tracewing critical-path my-trace --process quotes      of the main thread of the process

--task or --tid select the task or thread whose path is printed, with --process in that process; --process alone \
selects its main thread. Other filters are refused, since the path crosses all threads.

The path is followed backwards from --to. While the task or thread runs, the time is its own. While it is blocked, \
the path continues with the thread or task that woke it. While it waits for a CPU, the time belongs to the threads \
that had that CPU; while a task waits for a thread to run it, the path continues with that thread. If an interrupt \
woke it, the time belongs to that interrupt: the wait was for a timer or a device. Each step names a thread or task, \
what it did, and why that is on the path. Together, the steps cover the whole time from --from to --to (by default, \
the whole time in which the task or thread is known).

Times are in ms (ns in JSON and CSV); `at` counts from the beginning of the path. This command needs a recording of \
kernel events, and of the whole machine (--system-wide) to show what other programs did. About 10 bytes for each \
system call, switch and wake are kept until the path is found: up to 64 MB in memory, more in a temporary file in \
$TMPDIR. If a path has more than 262144 steps, only the last ones are printed; the sums cover all of them.
";

/// What `tracewing critical-path` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&[view()])))]
pub struct Args {
    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

/// Events of the kernel that a recording may lack.
const KERNEL_PARTS: [Part; 4] = [
    Part::switches("when threads ran is unknown"),
    Part::system_calls("what threads did on CPUs is `running`"),
    Part::wakes("if one is missing, the path stays with the blocked thread, as if nothing had woken it"),
    Part::interrupts("their time is attributed to the threads that they interrupted"),
];

/// The same of tasks.
const TASK_PARTS: [Part; 2] = [
    Part::task_switches("which thread ran which task is unknown"),
    Part::task_wakes(
        "what a task did between its polls is `unknown`, or `blocked` until the next poll if it names what it waits for",
    ),
];

pub fn run(args: &Args) -> Result<ExitCode> {
    let layout = args.table.layout(&columns())?;
    let (recording, chosen) = args.input.open()?;
    let mut paths = CriticalPaths::new(Target::new(&chosen)?, tempfile::spooled_tempfile(HELD));
    let Filter { from, to, zone, .. } = chosen;
    let (has_begin, has_end) = (from.is_some(), to.is_some());
    let range = Filter { from, to, zone, ..Filter::default() };
    let end = range.range(recording)?.end;
    // An event at the end itself may show what the target waited for until then.
    let filter = Filter { to: has_end.then(|| TimePoint::Absolute(end.next())), ..range.clone() };
    let watch = Watch::new()?;
    let ran = analysis::run(recording, &filter, &mut paths, &mut |progress| watch.show(progress))?;
    let from = has_begin.then_some(ran.begin_ns);
    let to = has_end.then(|| ran.end_ns.min(end));
    // Where reading was stopped, the path is that of what was read.
    let path = paths.path(from, to, &ran.names, &mut || ran.stopped || !watch.is_stopped());
    drop(watch);
    let path = match path {
        Err(NoPath::Missing(_)) if ran.events == 0 => bail!(ANY.why_empty_in(&args.input)?),
        path => path?,
    };
    let rows = layout.table(&lines(&path, zone));
    let mut out = screen::stdout(args.table.format().into());
    match args.table.format() {
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
    explain_missing(&KERNEL_PARTS, RECORD_KERNEL, &mut out, args.table.format(), &args.input)?;
    if ran.recorded.lacks_user_switches || ran.recorded.lacks_user_wakes {
        explain_missing(&TASK_PARTS, RECORD_TASKS, &mut out, args.table.format(), &args.input)?;
    }
    out.flush()?;
    let processes: BTreeSet<_> = path
        .steps
        .iter()
        .filter(|step| step.actor.user_thread.is_some())
        .map(|step| step.actor.process)
        .collect();
    if !ran.stopped && !processes.is_empty() {
        across::warn(&args.input, &range, |across| processes.contains(&across.process))?;
    }
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// A path for programs.
#[derive(serde::Serialize)]
struct Document<'p> {
    target: String,
    begin_ns: Timestamp,
    end_ns: Timestamp,
    steps: &'p Table,
    left_out: u64,
    by_subject: Vec<Subject<'p>>,
    by_activity: Vec<Activity<'p>>,
}

#[derive(serde::Serialize)]
struct Subject<'p> {
    subject: &'p str,
    duration_ns: Duration,
}

#[derive(serde::Serialize)]
struct Activity<'p> {
    activity: &'p str,
    duration_ns: Duration,
}

impl<'p> Document<'p> {
    fn new(path: &'p CriticalPath, steps: &'p Table) -> Self {
        Document {
            target: path.target.to_string(),
            begin_ns: path.from_ns,
            end_ns: path.to_ns,
            steps,
            left_out: path.left_out,
            by_subject: path
                .by_actor
                .iter()
                .map(|(subject, ns)| Subject { subject, duration_ns: *ns })
                .collect(),
            by_activity: path
                .by_what
                .iter()
                .map(|(activity, ns)| Activity { activity, duration_ns: *ns })
                .collect(),
        }
    }
}

/// A step as a line of the table.
struct Line<'p> {
    step: &'p Step,
    begin: Timestamp,
    zone: Zone,
}

fn lines(path: &CriticalPath, zone: Zone) -> Vec<Line<'_>> {
    path.steps.iter().map(|step| Line { step, begin: path.from_ns, zone }).collect()
}

/// A name that is not empty.
fn name(name: &str) -> Cell {
    if name.is_empty() { Cell::None } else { name.into() }
}

fn columns<'p>() -> Vec<Column<Line<'p>>> {
    columns! { line: Line<'p>;
        clock "begin" "begin_ns" extra, "beginning of the step" => Cell::Time(line.step.from_ns, line.zone);
        clock "end" "end_ns" extra, "end of the step" => Cell::Time(line.step.to_ns, line.zone);
        duration "at" "offset_ns" high, "time from the beginning of the path to the beginning of the step" => Cell::Ns(line.step.from_ns - line.begin);
        duration "time" "duration_ns" key, "length of the step" => Cell::Ns(line.step.ns());
        number "cpu" "cpu" low, "the CPU" => line.step.cpu.into();
        text "subject" "subject" key + shrinking, "thread, task or interrupt that the time belongs to" => Cell::Text(line.step.actor.to_string());
        text "activity" "activity" key, "what it did" => Cell::Text(line.step.what.to_string());
        text "reason" "reason" high, "why that is on the path" => Cell::Text(line.step.why.to_string());
        text "waiter" "waiter" normal + shrinking, "thread or task that it held up or woke"
            => Cell::Text(line.step.waiter.as_ref().map(ToString::to_string).unwrap_or_default());
        number "process" "process" extra, "id of the process that the time belongs to" => line.step.actor.process.into();
        number "tid" "tid" extra, "thread id" => line.step.actor.tid.into();
        text "thread-name" "thread_name" extra, "name of the thread" => name(&line.step.actor.name);
        number "task" "task" extra, "number of the task" => line.step.actor.user_thread.into();
        text "task-name" "task_name" extra, "name of the task" => name(&line.step.actor.user_thread_name);
    }
}

pub fn view() -> View {
    View::new("critical-path", heads(columns()))
}

/// A part of the path's time.
struct Sum<'p> {
    name: &'p str,
    ns: Duration,
    percent: f64,
}

/// The largest sums: by thread or task, and by what was done.
fn print_sums(out: &mut impl Write, path: &CriticalPath) -> std::io::Result<()> {
    const MOST: usize = 20;
    let whole = path.to_ns - path.from_ns;
    let percent = |ns: Duration| ns.percent_of(whole);
    for (title, sums) in [("subject", &path.by_actor), ("activity", &path.by_what)] {
        let columns = [
            Column::duration("", "ns", "time", |sum: &Sum| Cell::Ns(sum.ns)).key(),
            Column::percent("", "percent", "part of the path", |sum: &Sum| Cell::Rate(sum.percent)).key(),
            Column::text(title, title, "the thread, task or interrupt, or what it did", |sum: &Sum| {
                sum.name.into()
            })
            .shrinking(),
        ];
        let most = sums.iter().take(MOST);
        let lines: Vec<_> = most.map(|(name, ns)| Sum { name, ns: *ns, percent: percent(*ns) }).collect();
        let more = sums.len().saturating_sub(MOST);
        writeln!(out)?;
        Layout::all(&columns, TableFormat::Table).table(&lines).print(out)?;
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
