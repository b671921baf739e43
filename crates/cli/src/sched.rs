//! `tracewing sched`: what the scheduler decided, in the columns of `perf sched timehist` and
//! `perf sched latency`.

use crate::format::{EventFormat, EventFormatOption, TableFormat};
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::SWITCHES;
use crate::output::{count_of, interrupt, print_strangers};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Choice, Column, First, Lines, TableOptions, columns, heads, milliseconds};
use anyhow::Result;
use clap::Subcommand;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tracewing_analysis::{Names, SchedLatencies, SchedLatency, Slice, SliceSink, Slices};
use tracewing_trace::Zone;
use tracewing_trace::super_trace::{Name, TaskState, Waker};

/// What `tracewing sched` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing sched timehist my-trace --cpu 1
  tracewing sched latency my-trace --sort max -n 10")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// A line for each time that a thread had a CPU, when it leaves it
    Timehist(TimehistArgs),
    /// A line for each thread: how long it waited for a CPU when it was ready, at most and on average
    Latency(LatencyArgs),
}

const TIMEHIST_HELP: &str = "\
Examples:
  tracewing sched timehist my-trace
  tracewing sched timehist my-trace --cpu 1 --from +1s --to +1.1s
  tracewing sched timehist my-trace --format csv > slices.csv

The columns are those of `perf sched timehist --state`. Times are in ms (ns in JSON and CSV). - stands where no event tells, as for \
the first wait of a thread. It needs a recording of sched_switch, and of sched_waking or sched_wakeup.
";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{TIMEHIST_HELP}{}", reference::help(&[timehist_view()])))]
struct TimehistArgs {
    #[command(flatten)]
    first: First,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    format: EventFormatOption,

    #[command(flatten)]
    input: Input,
}

const LATENCY_HELP: &str = "\
Examples:
  tracewing sched latency my-trace
  tracewing sched latency my-trace --sort mean -n 10
  tracewing sched latency my-trace --format json | jq .threads[0]

The columns are those of `perf sched latency --pids`. Times are in ms (ns in JSON and CSV); those of which no event tells are left out.
";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{LATENCY_HELP}{}", reference::help(&[latency_view()])))]
struct LatencyArgs {
    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Timehist(args) => timehist(args),
        What::Latency(args) => latency(args),
    }
}

/// A time slice whose end is known.
struct Left {
    end: i64,
    zone: Zone,
    state: TaskState,
    name: String,
    tid: i32,
    process: Option<i32>,
    cpu: Option<u32>,
    wait_ns: Option<u64>,
    delay_ns: Option<u64>,
    run_ns: Option<u64>,
    waker: Option<Waker>,
    /// The interrupt that woke it.
    interrupt: Option<String>,
}

fn slice_columns() -> Vec<Column<Left>> {
    columns! { left: Left;
        clock(18) "time" "time" key, "when the thread left the CPU" => Cell::Time(left.end, left.zone);
        number(4) "cpu" "cpu" high, "the CPU" => Cell::count(left.cpu.map(u64::from));
        text(32) "task [tid/pid]" "name" key, "name of the thread, in text with its number and its process'"
            => left.name.as_str().into(), in_text: titled(&left.name, left.tid, left.process).into();
        number "tid" "tid" extra, "number of the thread" => Cell::Number(left.tid.into());
        number "process" "process" extra, "number of its process" => left.process.into();
        duration(11) "wait" "wait_ns" high, "time off CPUs before" => Cell::ns(left.wait_ns);
        duration(9) "delay" "delay_ns" high, "part of wait: ready, since it was woken, or all of it after a preemption"
            => Cell::ns(left.delay_ns);
        duration(9) "run" "run_ns" high, "time on the CPU; unknown where its begin is" => Cell::ns(left.run_ns);
        text(5) "state" "state" normal, "state in which it left: R ready, R+ preempted, S asleep, D uninterruptible, X and Z ended"
            => left.state.letters().into();
        text "woken-by" "waker" low, "thread, task or interrupt that ended its sleep"
            => left.waker.as_ref().map_or(Cell::None, name_of_waker),
            in_text: left.waker.as_ref().map_or(Cell::None, |waker| left.titled_waker(waker).into());
        number "waker-tid" "waker_tid" extra, "number of the thread that ended its sleep"
            => left.of_waker(|waker| waker.tid).into();
        number "waker-process" "waker_process" extra, "number of that thread's process"
            => left.of_waker(|waker| waker.process).into();
        number "waker-task" "waker_task" extra, "number of the user thread that it ran"
            => Cell::count(left.of_waker(|waker| waker.user_thread));
        text "waker-interrupt" "waker_interrupt" extra, "interrupt that ended its sleep"
            => left.interrupt.as_deref().map_or(Cell::None, Cell::from);
    }
}

impl Left {
    fn of_waker<T>(&self, part: fn(&Waker) -> Option<T>) -> Option<T> {
        self.waker.as_ref().and_then(part)
    }

    fn titled_waker(&self, waker: &Waker) -> String {
        let name = waker_name(waker);
        match (&self.interrupt, waker.tid) {
            (Some(by), _) => interrupt(by),
            (None, Some(0)) => name,
            (None, Some(tid)) => {
                let task = waker.user_thread.map(|task| format!("task {task} of ")).unwrap_or_default();
                task + &titled(&name, tid, waker.process)
            }
            (None, None) => "?".to_owned(),
        }
    }
}

fn timehist(args: &TimehistArgs) -> Result<ExitCode> {
    let format = args.format.format;
    let lines = Lines::new(&slice_columns(), &args.choice, format)?;
    let mut out = BufWriter::new(screen::stdout(format.into()));
    lines.begin(&mut out)?;
    let zone = args.input.zone();
    let left = args.first.count.unwrap_or(u64::MAX);
    let mut slices =
        Slices::new(Printer { out, lines, zone, left, names: Names::default(), written: Ok(()) });
    let ran = args.input.analyse(&mut slices)?;
    let mut printer = slices.sink;
    printer.written?;
    if printer.left == left && left > 0 {
        let is_text = format == EventFormat::Text;
        let format = if is_text { TableFormat::Table } else { TableFormat::Json };
        SWITCHES.tell(&mut printer.out, format, &args.input, &ran)?;
    }
    printer.out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// Prints slices as they end.
struct Printer<W> {
    out: W,
    lines: Lines<Left>,
    zone: Zone,
    /// So many lines are still to be printed.
    left: u64,
    names: Names,
    written: io::Result<()>,
}

impl<W: Write> SliceSink for Printer<W> {
    fn slice(&mut self, slice: &Slice<'_>) {
        if let (Some(end), Some(state), false) = (slice.end, slice.state, self.is_done()) {
            self.left -= 1;
            let interrupt = slice.waker.as_ref().and_then(|waker| waker.interrupt);
            let left = Left {
                end,
                zone: self.zone,
                state,
                name: slice.lwp.name.clone(),
                tid: slice.lwp.tid,
                process: slice.lwp.process,
                cpu: slice.cpu,
                wait_ns: slice.wait_ns,
                delay_ns: slice.delay_ns,
                // Where the begin is not known, there was more.
                run_ns: slice.begin.map(|_| slice.run_ns),
                waker: slice.waker,
                interrupt: interrupt.map(|name| self.names.get(name).to_owned()),
            };
            self.written = self.lines.row(&mut self.out, &left);
        }
    }

    fn name(&mut self, name: Name, text: &str) {
        self.names.learn(name, text);
    }

    fn is_done(&self) -> bool {
        self.written.is_err() || self.left == 0
    }
}

/// A CPU's idle thread has a name of its own, as in the kernel.
fn waker_name(waker: &Waker) -> String {
    match (waker.tid, waker.cpu) {
        (Some(0), Some(cpu)) => format!("swapper/{cpu}"),
        _ => waker.name.as_str().to_owned(),
    }
}

/// Nothing where that is not known.
fn name_of_waker(waker: &Waker) -> Cell {
    let name = waker_name(waker);
    if name.is_empty() { Cell::None } else { Cell::Text(name) }
}

/// As perf has it: the process is left out where it is the thread's own number.
fn titled(name: &str, tid: i32, process: Option<i32>) -> String {
    let name = if name.is_empty() { "?" } else { name };
    match process {
        Some(process) if process != tid => format!("{name}[{tid}/{process}]"),
        _ => format!("{name}[{tid}]"),
    }
}

/// A line of `sched latency`.
struct Waited<'r> {
    thread: &'r SchedLatency,
    zone: Zone,
    /// Slices are counted whose delay is known, and a delay begins with a wake.
    wakes: bool,
}

impl Waited<'_> {
    fn time(&self, at: Option<i64>) -> Cell {
        at.filter(|_| self.wakes).map_or(Cell::None, |at| Cell::Time(at, self.zone))
    }
}

fn latency_columns<'r>() -> Vec<Column<Waited<'r>>> {
    columns! { row: Waited<'r>;
        number "process" "process" key, "number of its process" => row.thread.process.into();
        number "thread" "tid" key, "number of the thread" => Cell::Number(row.thread.tid.into());
        text "name" "name" key + shrinking, "its name" => row.thread.name.as_str().into();
        duration "running" "running_ns" high, "time on CPUs" => Cell::Ns(row.thread.run_ns);
        number "switches" "switches" normal, "how often it got a CPU, where the wait before is known"
            => Cell::count_if(row.wakes, row.thread.slices);
        duration "mean" "mean_delay_ns" high, "mean time that it was ready before it got a CPU, woken or preempted"
            => Cell::ns_if(row.wakes, row.thread.mean_ns());
        duration "max" "max_delay_ns" key, "the longest time that it was ready before it got a CPU" => Cell::ns_if(row.wakes, row.thread.max_ns);
        clock "from" "max_delay_begin" low, "begin of the longest wait" => row.time(row.thread.max_begin());
        clock "to" "max_delay_end" low, "end of the longest wait" => row.time(row.thread.max_end);
        text "woken-by" "max_delay_waker" low, "thread whose wake began the longest wait"
            => row.thread.max_waker.as_ref().filter(|_| row.wakes).map_or(Cell::None, name_of_waker);
    }
}

pub fn timehist_view() -> View {
    View::new("sched timehist", heads(slice_columns()))
}

pub fn latency_view() -> View {
    View::new("sched latency", heads(latency_columns()))
}

fn latency(args: &LatencyArgs) -> Result<ExitCode> {
    let layout = args.table.layout(&latency_columns())?;
    let format = args.table.format();
    let mut slices = Slices::new(SchedLatencies::default());
    let ran = args.input.analyse(&mut slices)?;
    let (rows, strangers) = slices.sink.finish(&ran);
    let (zone, wakes) = (args.input.zone(), ran.recorded.wakes);
    let lines: Vec<_> = rows.iter().map(|thread| Waited { thread, zone, wakes }).collect();
    let mut out = screen::stdout(format.into());
    let (running, switches) =
        rows.iter().fold((0, 0), |(running, switches), row| (running + row.run_ns, switches + row.slices));
    let members = [("duration_ns", Cell::Ns(ran.duration_ns())), ("strangers", Cell::Count(strangers))];
    layout.table(&lines).write(&mut out, format, ("threads", &members), |out| {
        let (running, duration) = (milliseconds(running), milliseconds(ran.duration_ns()));
        let threads = count_of(rows.len(), "thread");
        if rows.is_empty() {
            return writeln!(out, "{threads} in {duration} ms");
        }
        let switches =
            if wakes { ", ".to_owned() + &count_of(switches as usize, "switch") } else { String::new() };
        writeln!(out, "{threads}, {running} ms on CPUs in {duration} ms{switches}")?;
        if !wakes {
            let not_known = "how long threads waited for a CPU, and how often, is not known";
            writeln!(
                out,
                "Not all wakes of threads (sched_waking, sched_wakeup) are in the recording: {not_known}."
            )?;
        }
        print_strangers(out, strangers)
    })?;
    if rows.is_empty() {
        SWITCHES.tell(&mut out, format, &args.input, &ran)?;
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}
