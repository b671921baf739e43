//! `tracewing sched`: what the scheduler decided, in the columns of `perf sched timehist` and `perf sched latency`.

use crate::format::{EventFormat, TableFormat};
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::SWITCHES;
use crate::output::{count_of, interrupt, print_strangers};
use crate::screen;
use crate::table::{Cell, Column, Lines, Order, Table, figure, hidden, milliseconds, text};
use anyhow::Result;
use clap::Subcommand;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tracewing_analysis::{Names, SchedLatencies, SchedLatency, Slice, SliceSink, Slices, state_letters};
use tracewing_trace::Zone;
use tracewing_trace::super_trace::{Name, Waker};

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

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing sched timehist my-trace
  tracewing sched timehist my-trace --cpu 1 --from +1s --to +1.1s
  tracewing sched timehist my-trace --format csv > slices.csv

The columns are those of `perf sched timehist --state`. time is when the thread left the CPU. Times are in ms (ns in JSON and \
CSV): wait is how long it had been off CPUs before, delay how much of that it was ready (since it was woken, or all of it if it \
had been preempted), run how long it ran. state is the one in which it left: R could have gone on, R+ was preempted, S sleeps, \
D sleeps and takes no signals, X and Z have ended. woken-by is the thread, task or interrupt that ended its sleep. - stands \
where no event tells, as for the first wait of a thread. It needs a recording of sched_switch, and of sched_waking or \
sched_wakeup.")]
struct TimehistArgs {
    /// Print only the first N lines
    #[arg(short = 'n', long = "count", value_name = "N")]
    count: Option<u64>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: EventFormat,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing sched latency my-trace
  tracewing sched latency my-trace --sort mean -n 10
  tracewing sched latency my-trace --format json | jq .threads[0]

The columns are those of `perf sched latency --pids`. Times are in ms (ns in JSON and CSV): running is time on CPUs, switches \
how often the thread got one, mean and max how long it was ready before that, woken or preempted. from and to are when the \
longest wait began and ended, woken-by who began it. Times of which no event tells are left out.")]
struct LatencyArgs {
    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        What::Timehist(args) => timehist(args),
        What::Latency(args) => latency(args),
    }
}

const SLICE: [Column; 14] = [
    text("time", "time"),
    figure("cpu", "cpu"),
    text("task [tid/pid]", "name"),
    hidden("tid"),
    hidden("process"),
    figure("wait", "wait_ns"),
    figure("delay", "delay_ns"),
    figure("run", "run_ns"),
    text("state", "state"),
    text("woken-by", "waker"),
    hidden("waker_tid"),
    hidden("waker_process"),
    hidden("waker_task"),
    hidden("waker_interrupt"),
];

/// Of the columns of [`SLICE`], in characters.
const WIDTHS: [usize; 14] = [18, 4, 32, 0, 0, 11, 9, 9, 5, 0, 0, 0, 0, 0];

fn timehist(args: &TimehistArgs) -> Result<ExitCode> {
    let mut out = BufWriter::new(screen::stdout(args.format.into()));
    let lines = Lines::begin(&mut out, &SLICE, &WIDTHS, args.format)?;
    let text = args.format == EventFormat::Text;
    let zone = args.input.zone();
    let left = args.count.unwrap_or(u64::MAX);
    let mut slices =
        Slices::new(Printer { out, lines, text, zone, left, names: Names::default(), written: Ok(()) });
    let ran = args.input.analyse(&mut slices)?;
    let mut printer = slices.sink;
    printer.written?;
    if printer.left == left && left > 0 {
        let format = if text { TableFormat::Table } else { TableFormat::Json };
        SWITCHES.tell(&mut printer.out, format, &args.input, &ran)?;
    }
    printer.out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// Prints slices as they end.
struct Printer<W> {
    out: W,
    lines: Lines<'static>,
    /// Whether it is for people.
    text: bool,
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
            let row = self.row(slice, end, state);
            self.written = self.lines.row(&mut self.out, &row);
        }
    }

    fn name(&mut self, name: Name, text: &str) {
        self.names.learn(name, text);
    }

    fn is_done(&self) -> bool {
        self.written.is_err() || self.left == 0
    }
}

impl<W> Printer<W> {
    fn row(&self, slice: &Slice<'_>, end: i64, state: i64) -> [Cell; 14] {
        let lwp = slice.lwp;
        let name = match self.text {
            true => Cell::Text(titled(&lwp.name, lwp.tid, lwp.process)),
            false => lwp.name.as_str().into(),
        };
        let ns = |ns: Option<u64>| ns.map_or(Cell::None, Cell::Ns);
        let waker = slice.waker.as_ref();
        let of_waker = |id: fn(&Waker) -> Option<i32>| waker.and_then(id).into();
        [
            Cell::Time(end, self.zone),
            slice.cpu.map_or(Cell::None, |cpu| Cell::Count(cpu.into())),
            name,
            Cell::Number(lwp.tid.into()),
            lwp.process.into(),
            ns(slice.wait_ns),
            ns(slice.delay_ns),
            // Where the begin is not known, there was more.
            ns(slice.begin.map(|_| slice.run_ns)),
            state_letters(state).into(),
            waker.map_or(Cell::None, |waker| self.waker(waker)),
            of_waker(|waker| waker.tid),
            of_waker(|waker| waker.process),
            waker.and_then(|waker| waker.user_thread).map_or(Cell::None, Cell::Count),
            waker.and_then(|waker| waker.interrupt).map_or(Cell::None, |name| self.names.get(name).into()),
        ]
    }

    fn waker(&self, waker: &Waker) -> Cell {
        if !self.text {
            return name_of_waker(waker);
        }
        let name = waker_name(waker);
        Cell::Text(match (waker.interrupt, waker.tid) {
            (Some(by), _) => interrupt(self.names.get(by)),
            (None, Some(0)) => name,
            (None, Some(tid)) => {
                let task = waker.user_thread.map(|task| format!("task {task} of ")).unwrap_or_default();
                task + &titled(&name, tid, waker.process)
            }
            (None, None) => "?".to_owned(),
        })
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

const LATENCY: [Column; 10] = [
    figure("process", "process"),
    figure("thread", "tid"),
    text("name", "name"),
    figure("running", "running_ns"),
    figure("switches", "switches"),
    figure("mean", "mean_delay_ns"),
    figure("max", "max_delay_ns"),
    text("from", "max_delay_begin"),
    text("to", "max_delay_end"),
    text("woken-by", "max_delay_waker"),
];

fn latency(args: &LatencyArgs) -> Result<ExitCode> {
    let mut slices = Slices::new(SchedLatencies::default());
    let ran = args.input.analyse(&mut slices)?;
    let (rows, strangers) = slices.sink.finish(&ran);
    let zone = args.input.zone();
    let time = |at: Option<i64>| at.map_or(Cell::None, |at| Cell::Time(at, zone));
    // Slices are counted whose delay is known, and a delay begins with a wake.
    let wakes = ran.recorded.wakes;
    let mut table = Table::new(LATENCY);
    for row in &rows {
        let SchedLatency { process, tid, name, run_ns, slices, max_ns, max_end, .. } = row;
        table.push(vec![
            (*process).into(),
            Cell::Number((*tid).into()),
            name.as_str().into(),
            Cell::Ns(*run_ns),
            Cell::count_if(wakes, *slices),
            if wakes { Cell::Ns(row.mean_ns()) } else { Cell::None },
            if wakes { Cell::Ns(*max_ns) } else { Cell::None },
            time(row.max_begin().filter(|_| wakes)),
            time(max_end.filter(|_| wakes)),
            row.max_waker.as_ref().filter(|_| wakes).map_or(Cell::None, name_of_waker),
        ]);
    }
    table.arrange(&args.order)?;
    let mut out = screen::stdout(args.format.into());
    let (running, switches) =
        rows.iter().fold((0, 0), |(running, switches), row| (running + row.run_ns, switches + row.slices));
    let members = [("duration_ns", Cell::Ns(ran.duration_ns())), ("strangers", Cell::Count(strangers))];
    table.write(&mut out, args.format, ("threads", &members), |out| {
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
        SWITCHES.tell(&mut out, args.format, &args.input, &ran)?;
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}
