//! `tracewing tasks`: what each task of an async runtime did in its polls, how long it waited for them, and what is wrong with
//! it.

use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::{Part, TASKS, tell_missing, tell_nameless};
use crate::output::shown;
use crate::screen;
use crate::table::{Cell, Head, Order, Table, figure, hidden, milliseconds, text};
use anyhow::Result;
use std::io::{self, Write};
use std::process::ExitCode;
use tracewing_analysis::{Names, Task, Tasks, Thresholds, total};

/// So many warnings are printed.
const WARNINGS: usize = 20;

/// Polls in vain are no matter before there are so many.
const FEW: u64 = 10;

/// What `tracewing tasks` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing tasks my-trace
  tracewing tasks my-trace --sort max-delay -n 10
  tracewing tasks my-trace --by-name --long-poll 1ms
  tracewing tasks my-trace --task 'worker*' --format csv > tasks.csv

A task is a user thread (events user_thread:*). Times are in ms (ns in JSON and CSV). busy is time in polls, scheduled time in \
which it was ready and no worker polled it, idle time in which it waited for something else. longest is the longest poll, at is \
when that began. Parts of busy: preempted, the kernel had taken the CPU from its worker; system, in system calls, running or \
asleep; slept, its worker slept, in system calls or for memory. faults counts page faults. delay is how long it was ready \
before a poll, on average, max-delay at most. Without the kernel's switches, what they tell is not known (-).

Warnings, and the columns that count what they are about:
  blocking  polls in which the worker slept for --blocking-poll or longer: it could run no other task meanwhile
  long      polls that ran for --long-poll or longer without an await that gave way to others
  vain      wakes in vain: polls, but not the first, that ended pending within 10 us and in which the task recorded no event, \
began no system call, and woke and created nobody. Told where at least half of its polls, and ten, are such.")]
pub struct Args {
    /// One line for all tasks of a name
    #[arg(long)]
    by_name: bool,

    /// From when on a poll is called long
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = time)]
    long_poll: u64,

    /// From when on a poll in which its worker sleeps is called blocking
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = time)]
    blocking_poll: u64,

    #[command(flatten)]
    order: Order,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    #[command(flatten)]
    input: Input,
}

const COLUMNS: [Head; 27] = [
    figure("process", "process"),
    figure("task", "task"),
    hidden("tasks"),
    text("name", "name"),
    figure("polls", "polls"),
    figure("busy", "busy_ns"),
    figure("scheduled", "scheduled_ns"),
    figure("idle", "idle_ns"),
    hidden("nested_ns"),
    figure("unknown", "unknown_ns"),
    figure("longest", "longest_poll_ns"),
    text("at", "longest_poll_begin"),
    hidden("running_ns"),
    figure("preempted", "preempted_ns"),
    figure("system", "system_ns"),
    figure("slept", "slept_ns"),
    hidden("longest_sleep_ns"),
    hidden("longest_sleep_on"),
    figure("faults", "page_faults"),
    figure("delay", "mean_delay_ns"),
    figure("max-delay", "max_delay_ns"),
    hidden("max_delay_end"),
    hidden("delays"),
    hidden("long_polls_ran_ns"),
    figure("long", "long_polls"),
    figure("blocking", "blocking_polls"),
    figure("vain", "vain_polls"),
];

/// How there would be all of [`PARTS`].
const RECORD_ALL: &str =
    "`tracewing record -e 'user_thread:*'` records all that a program tells of its tasks.";

/// What is told by events that a recording of tasks may be without.
const PARTS: [Part; 2] = [
    Part {
        what: "switches of tasks (user_thread:switch)",
        names: &["user_thread:switch"],
        without: "no poll is known, nor how long any took",
    },
    Part {
        what: "wakes of tasks (user_thread:wake)",
        names: &["user_thread:wake"],
        without: "between its polls a task may have been ready or idle, which is `unknown`; `delay` is of first polls",
    },
];

pub fn run(args: &Args) -> Result<ExitCode> {
    let thresholds = Thresholds { long_ns: args.long_poll, blocking_ns: args.blocking_poll };
    let mut tasks = Tasks::new(thresholds, args.by_name);
    let ran = args.input.analyse(&mut tasks)?;
    let tasks = tasks.finish();
    let zone = args.input.zone();
    let time = |at: Option<i64>| at.map_or(Cell::None, |at| Cell::Time(at, zone));
    // What the worker did in a poll, switches of threads tell.
    let polls = !ran.recorded.lacks_user_switches;
    let of_polls = |ns: u64| if polls { Cell::Ns(ns) } else { Cell::None };
    let has_worker = polls && !ran.switchless;
    let of_worker = |ns: u64| if has_worker { Cell::Ns(ns) } else { Cell::None };
    // When it was blocked, and when it could go on, wakes of threads tell.
    let of_wakes = |ns: u64| if ran.recorded.wakes { of_worker(ns) } else { Cell::None };
    let polls_of_worker = |count: u64| Cell::count_if(has_worker, count);
    let mut table = Table::by_position(COLUMNS);
    for task in &tasks {
        table.push(vec![
            task.process.into(),
            task.task.map_or(Cell::None, Cell::Count),
            Cell::Count(task.tasks),
            task.name.as_str().into(),
            Cell::count_if(polls, task.polls),
            of_polls(task.busy_ns),
            of_polls(task.scheduled_ns),
            of_polls(task.idle_ns),
            of_polls(task.nested_ns),
            Cell::Ns(task.unknown_ns),
            of_polls(task.longest_ns),
            time(task.longest_begin),
            of_worker(task.running_ns),
            of_wakes(task.preempted_ns),
            if ran.modeless { Cell::None } else { of_wakes(task.system_ns) },
            of_wakes(task.slept_ns),
            of_wakes(task.longest_sleep_ns),
            task.slept_on
                .filter(|_| ran.recorded.wakes)
                .map_or(Cell::None, |name| ran.names.get(name).into()),
            Cell::count_if(polls && ran.recorded.page_faults, task.page_faults),
            of_polls(task.mean_delay_ns()),
            of_polls(task.max_delay_ns),
            time(task.max_delay_end),
            Cell::count_if(polls, task.delays),
            of_worker(task.long_ns),
            polls_of_worker(task.long_polls),
            Cell::count_if(has_worker && ran.recorded.wakes, task.blocking_polls),
            Cell::count_if(polls, task.vain_polls),
        ]);
    }
    table.arrange(&args.order)?;
    let mut out = screen::stdout(args.format.into());
    let members = [("duration_ns", Cell::Ns(ran.duration_ns()))];
    table.write(&mut out, args.format, ("tasks", &members), |out| {
        let count: u64 = tasks.iter().map(|task| task.tasks).sum();
        let busy = milliseconds(total(tasks.iter().map(|task| task.busy_ns)));
        let duration = milliseconds(ran.duration_ns());
        let busy = if polls { &busy } else { "unknown" };
        writeln!(out, "{count} {}, {busy} ms in polls in {duration} ms", plural(count, "task"))?;
        warn(out, &tasks, &ran.names)
    })?;
    if tasks.is_empty() {
        TASKS.tell(&mut out, args.format, &args.input, &ran)?;
    } else if ran.switchless && args.format == TableFormat::Table {
        writeln!(
            out,
            "Not all switches of threads (sched_switch) are in the recording: nothing is known of what workers did in polls."
        )?;
    }
    if !tasks.is_empty() {
        tell_missing(&PARTS, RECORD_ALL, &mut out, args.format, &args.input)?;
        if tasks.iter().all(|task| task.name.is_empty()) {
            tell_nameless(&mut out, args.format, &args.input)?;
        }
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// Says what is wrong with tasks.
fn warn(out: &mut impl Write, tasks: &[Task], names: &Names) -> io::Result<()> {
    let mut warnings = Vec::new();
    for task in tasks {
        if task.blocking_polls > 0 {
            let on = task.slept_on.map(|on| format!(" in {}", names.get(on))).unwrap_or_default();
            let (slept, longest) = (milliseconds(task.slept_ns), milliseconds(task.longest_sleep_ns));
            warnings.push((
                task,
                format!(
                    "blocks its worker: {} of {} {} slept, {slept} ms in all, {longest} ms at once{on}",
                    task.blocking_polls,
                    task.polls,
                    plural(task.polls, "poll")
                ),
            ));
        }
        if task.long_polls > 0 {
            let (ran, polls) = (milliseconds(task.long_ns), task.long_polls);
            warnings.push((
                task,
                format!(
                    "does not yield: {polls} of {} {} ran long, {ran} ms in all",
                    task.polls,
                    plural(task.polls, "poll")
                ),
            ));
        }
        if task.vain_polls >= FEW && task.vain_polls * 2 >= task.polls {
            warnings.push((
                task,
                format!("is woken in vain: {} of {} polls had nothing to do", task.vain_polls, task.polls),
            ));
        }
    }
    let style = anstyle::Style::new().fg_color(Some(anstyle::AnsiColor::Yellow.into()));
    for (task, warning) in warnings.iter().take(WARNINGS) {
        let whose = match (task.task, task.name.is_empty()) {
            (Some(number), true) => format!("task {number}"),
            (Some(number), false) => format!("task {number} ({})", shown(&task.name)),
            (None, _) => format!("tasks `{}`", shown(&task.name)),
        };
        let process = task.process.map(|process| format!(" of process {process}")).unwrap_or_default();
        writeln!(out, "{style}warning{style:#}: {whose}{process} {warning}")?;
    }
    if warnings.len() > WARNINGS {
        writeln!(
            out,
            "and {} more warnings; --sort long, blocking or vain shows whose",
            warnings.len() - WARNINGS
        )?;
    }
    Ok(())
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn time(text: &str) -> Result<u64, String> {
    let ns = tracewing_trace::parse_duration(text).and_then(|ns| u64::try_from(ns).ok());
    ns.ok_or_else(|| "give a time as in 10ms, 500us or 1.5s".to_owned())
}
