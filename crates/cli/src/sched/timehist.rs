//! `tracewing sched timehist`: each time that a thread had a CPU.

use super::{name_of_waker, waker_name};
use crate::cuts::{self, Why};
use crate::format::{EventFormat, EventFormatOption, TableFormat};
use crate::input::{Input, conclude, warn_of_losses};
use crate::no_result::SWITCHES;
use crate::output::interrupt;
use crate::parts::{Part, RECORD_KERNEL, explain_missing, has_all};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Choice, Column, First, Lines, columns, heads};
use anyhow::Result;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use tracewing_analysis::{Names, Slice, SliceSink, Slices};
use tracewing_trace::Zone;
use tracewing_trace::super_trace::{Name, TaskState, Waker};
use tracewing_units::{Cpu, Duration, Pid, Tid, Timestamp};

const HELP: &str = "\
Examples:
  tracewing sched timehist my-trace
  tracewing sched timehist my-trace --cpu 1 --from +1s --to +1.1s
  tracewing sched timehist my-trace --format csv > slices.csv

The columns are those of `perf sched timehist --state`. Times are in ms (ns in JSON and CSV). - stands for what no \
event shows, such as the first wait of a thread. This command needs a recording of sched_switch, and of sched_waking \
or sched_wakeup.
";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&[view()])))]
pub struct Args {
    #[command(flatten)]
    first: First,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    format: EventFormatOption,

    #[command(flatten)]
    input: Input,
}

pub fn view() -> View {
    View::new("sched timehist", heads(slice_columns()))
}

/// A time slice whose end is known.
struct Left {
    end: Timestamp,
    zone: Zone,
    state: TaskState,
    name: String,
    tid: Tid,
    process: Option<Pid>,
    cpu: Option<Cpu>,
    wait_ns: Option<Duration>,
    delay_ns: Option<Duration>,
    run_ns: Option<Duration>,
    waker: Option<Waker>,
    /// The interrupt that woke it.
    interrupt: Option<String>,
}

fn slice_columns() -> Vec<Column<Left>> {
    columns! { left: Left;
        clock(18) "time" "time_ns" key, "when the thread left the CPU" => Cell::Time(left.end, left.zone);
        number(4) "cpu" "cpu" high, "the CPU" => left.cpu.into();
        text(32) "task [tid/pid]" "name" key + shrinking, "name of the thread; in text, with its number and that of its process"
            => left.name.as_str().into(), in_text: titled(&left.name, left.tid, left.process).into();
        number "tid" "tid" extra, "thread id" => left.tid.into();
        number "process" "process" extra, "id of its process" => left.process.into();
        duration(11) "wait" "wait_ns" high, "time off CPUs before this" => Cell::ns(left.wait_ns);
        duration(9) "delay" "delay_ns" high, "part of wait in which it was ready: since its wake, or all of it after a preemption"
            => Cell::ns(left.delay_ns);
        duration(9) "run" "run_ns" high, "time on the CPU; unknown if its beginning is unknown" => Cell::ns(left.run_ns);
        text(5) "state" "state" normal, "state when it left the CPU: R ready, R+ preempted, S asleep, D uninterruptible, X and Z ended"
            => left.state.letters().into();
        text "woken-by" "waker" low + shrinking, "thread, task or interrupt that ended its sleep"
            => left.waker.as_ref().map_or(Cell::None, name_of_waker),
            in_text: left.waker.as_ref().map_or(Cell::None, |waker| left.titled_waker(waker).into());
        number "waker-tid" "waker_tid" extra, "id of the thread that ended its sleep"
            => left.of_waker(|waker| waker.tid).into();
        number "waker-process" "waker_process" extra, "id of that thread's process"
            => left.of_waker(|waker| waker.process).into();
        number "waker-task" "waker_task" extra, "number of the task that the waker ran"
            => left.of_waker(|waker| waker.user_thread).into();
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
            (None, Some(Tid(0))) => name,
            (None, Some(tid)) => {
                let task = waker.user_thread.map(|task| format!("task {task} of ")).unwrap_or_default();
                task + &titled(&name, tid, waker.process)
            }
            (None, None) => "?".to_owned(),
        }
    }
}

/// What delays begin with.
const PARTS: [Part; 1] = [Part::wakes("`delay` of a thread that was woken is unknown (-)")];

pub fn run(args: &Args) -> Result<ExitCode> {
    let format = args.format.format;
    let lines = Lines::new(&slice_columns(), &args.choice, format)?;
    let mut out = BufWriter::new(screen::stdout(format.into()));
    lines.begin(&mut out)?;
    let zone = args.input.zone();
    let left = args.first.count.unwrap_or(u64::MAX);
    let [has_wakes] = has_all(&PARTS, &args.input, false)?;
    let mut slices =
        Slices::new(Printer { out, lines, zone, has_wakes, left, names: Names::default(), written: Ok(()) });
    let ran = args.input.analyse(&mut slices)?;
    let mut printer = slices.sink;
    printer.written?;
    printer.lines.end(&mut printer.out)?;
    let is_text = format == EventFormat::Text;
    let format = if is_text { TableFormat::Table } else { TableFormat::Json };
    match printer.left == left {
        true if left > 0 => SWITCHES.explain(&mut printer.out, format, &args.input, &ran)?,
        true => {}
        false => {
            explain_missing(&PARTS, RECORD_KERNEL, &mut printer.out, format, &args.input)?;
            cuts::explain(ran.cuts.waits, Why::OnCpus, "`wait` and `delay`", &mut printer.out, format)?;
        }
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
    /// Whether all wakes were recorded: else the one that began a delay may be missing.
    has_wakes: bool,
    /// Number of lines that are still to be printed.
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
                // After a preemption, no wake begins it.
                delay_ns: slice.delay_ns.filter(|_| self.has_wakes || slice.waker.is_none()),
                // Where the beginning is not known, there was more.
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

/// As perf has it: the process is left out where it is the thread's own number.
fn titled(name: &str, tid: Tid, process: Option<Pid>) -> String {
    let name = if name.is_empty() { "?" } else { name };
    match process {
        Some(process) if process.first_thread() != tid => format!("{name}[{tid}/{process}]"),
        _ => format!("{name}[{tid}]"),
    }
}
