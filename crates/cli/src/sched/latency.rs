//! `tracewing sched latency`: how long each thread waited for a CPU.

use super::name_of_waker;
use crate::cuts::{self, Why};
use crate::input::{Input, conclude, warn_of_losses};
use crate::losses;
use crate::no_result::{SWITCHES, say};
use crate::output::{count_of, print_strangers};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, TableOptions, columns, heads, milliseconds};
use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;
use tracewing_analysis::{SchedLatencies, SchedLatency, Slices};
use tracewing_trace::Zone;
use tracewing_units::{Duration, Timestamp};

const HELP: &str = "\
Examples:
  tracewing sched latency my-trace
  tracewing sched latency my-trace --sort avg -n 10
  tracewing sched latency my-trace --format json | jq .threads[0]

The columns are those of `perf sched latency --pids`. Times are in ms (ns in JSON and CSV); times that no event shows \
are left out.
";

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&[view()])))]
pub struct Args {
    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

pub fn view() -> View {
    View::new("sched latency", heads(columns_of_threads()))
}

/// A line of `sched latency`.
struct Waited<'r> {
    thread: &'r SchedLatency,
    zone: Zone,
    /// Slices are counted whose delay is known, and a delay begins with a wake.
    wakes: bool,
    /// Whether the filter lets through what it did without a CPU.
    off_cpus: bool,
    /// Whether events of the kernel were lost.
    is_lossy: bool,
}

impl Waited<'_> {
    fn delay(&self, ns: Option<Duration>) -> Cell {
        ns.filter(|_| self.wakes).map_or(Cell::None, Cell::Ns)
    }

    fn time(&self, at: Option<Timestamp>) -> Cell {
        at.filter(|_| self.wakes).map_or(Cell::None, |at| Cell::Time(at, self.zone))
    }
}

fn columns_of_threads<'r>() -> Vec<Column<Waited<'r>>> {
    columns! { row: Waited<'r>;
        number "process" "process" key, "id of its process" => row.thread.process.into();
        number "thread" "tid" key, "thread id" => row.thread.tid.into();
        text "name" "name" key + shrinking, "its name" => row.thread.name.as_str().into();
        duration "running" "running_ns" high, "time on CPUs" => Cell::Ns(row.thread.run_ns);
        duration "unknown" "unknown_ns" low, "time in which no event shows whether it had a CPU"
            => Cell::ns_if(row.off_cpus, row.thread.unknown_ns);
        number "switches" "switches" normal, "how often it got a CPU after a wait of known length"
            => if row.wakes && row.off_cpus { Cell::least(row.is_lossy, row.thread.slices) } else { Cell::None };
        duration "avg" "avg_delay_ns" high, "mean time ready before it got a CPU, after a wake or a preemption"
            => row.delay(row.thread.mean_ns());
        duration "max" "max_delay_ns" key, "longest time ready before it got a CPU" => row.delay(row.thread.longest_ns());
        clock "from" "max_delay_begin_ns" low, "beginning of the longest wait" => row.time(row.thread.max_begin());
        clock "to" "max_delay_end_ns" low, "end of the longest wait" => row.time(row.thread.max_end);
        text "woken-by" "max_delay_waker" low, "thread that woke it at the beginning of the longest wait"
            => row.thread.max_waker.as_ref().filter(|_| row.wakes).map_or(Cell::None, name_of_waker);
    }
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let layout = args.table.layout(&columns_of_threads())?;
    let format = args.table.format();
    let mut slices = Slices::new(SchedLatencies::default());
    let ran = args.input.analyse(&mut slices)?;
    let (rows, strangers) = slices.sink.finish(&ran);
    let (zone, wakes, off_cpus) = (args.input.zone(), ran.recorded.wakes, !ran.cuts.waits);
    let is_lossy = ran.lossy.kernel;
    let lines: Vec<_> =
        rows.iter().map(|thread| Waited { thread, zone, wakes, off_cpus, is_lossy }).collect();
    let mut out = screen::stdout(format.into());
    let (running, switches) = rows
        .iter()
        .fold((Duration::ZERO, 0), |(running, switches), row| (running + row.run_ns, switches + row.slices));
    let [lost, least_lost] = losses::members(&ran);
    let duration = ("duration_ns", Cell::Ns(ran.duration_ns()));
    let members = [duration, lost, least_lost, ("strangers", Cell::Count(strangers))];
    layout.table(&lines).write(&mut out, format, ("threads", &members), |out| {
        let (running, duration) = (milliseconds(running), milliseconds(ran.duration_ns()));
        let threads = count_of(rows.len(), "thread");
        if rows.is_empty() {
            return writeln!(out, "{threads} in {duration} ms");
        }
        let switches = match wakes && off_cpus && (switches > 0 || !is_lossy) {
            true => ", ".to_owned() + &count_of(switches as usize, "switch"),
            false => String::new(),
        };
        writeln!(out, "{threads}, {running} ms on CPUs in {duration} ms{switches}")?;
        if !wakes {
            let not_known = "how long and how often threads waited for a CPU is unknown";
            writeln!(
                out,
                "The recording lacks some wakes of threads (sched_waking, sched_wakeup): {not_known}."
            )?;
        }
        print_strangers(out, strangers, &ran)
    })?;
    if rows.is_empty() {
        SWITCHES.explain(&mut out, format, &args.input, &ran)?;
    }
    if let Some(line) = losses::least(&ran, "numbers of switches").filter(|_| is_lossy && !rows.is_empty()) {
        say(&mut out, format, &line)?;
    }
    let waits = "`switches`, `avg`, `max` and `unknown`";
    cuts::explain(!off_cpus && !rows.is_empty(), Why::OnCpus, waits, &mut out, format)?;
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}
