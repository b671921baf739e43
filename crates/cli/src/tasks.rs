//! `tracewing tasks`: what each task of an async runtime did in its polls, how long it waited for them, and
//! what is wrong with it.

mod warnings;

use crate::across;
use crate::cuts::{self, Why};
use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::losses;
use crate::no_result::{TASKS, explain_nameless, lacks_programs, say};
use crate::output::{plural, print_note};
use crate::parts::{Part, RECORD_KERNEL, RECORD_TASKS, Wakeless, explain_missing};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Cell, Column, Table, TableOptions, columns, heads, milliseconds};
use anyhow::Result;
use std::io::Write;
use std::ops::Deref;
use std::process::ExitCode;
use tracewing_analysis::{Cuts, KnownTask, Ran, Task, Tasks, Thresholds, Window, total};
use tracewing_trace::Zone;
use tracewing_units::{Duration, Timestamp};

/// Rows from which on a table takes long to read.
const MANY: usize = 1000;

const HELP: &str = "\
Examples:
  tracewing tasks my-trace
  tracewing tasks my-trace --sort max-delay -n 10
  tracewing tasks my-trace --by name --long-poll 1ms
  tracewing tasks my-trace --columns name,busy,longest --task 'work/*' --format csv > tasks.csv

A task is a user thread (events user_thread:*). Times are in ms (ns in JSON and CSV). If the kernel's switches were \
not recorded, what only they show is unknown (-).

Warnings are about the columns blocking, long and spurious. A wake is spurious if the poll after it (other than the \
task's first) ended pending within 10 us, and in that poll the task recorded no event, began no system call, and \
neither woke nor created a thread or task. The warning is printed if that applies to at least ten polls of a task, \
and to at least half of them.
";

/// What `tracewing tasks` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = format!("{HELP}{}", reference::help(&views())))]
pub struct Args {
    /// What each row describes
    #[arg(long, value_enum, default_value_t)]
    by: By,

    /// Polls that run for this long or longer are called long
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = time)]
    long_poll: Duration,

    /// Polls in which the worker sleeps for this long or longer are called blocking
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = time)]
    blocking_poll: Duration,

    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum By {
    /// A task
    #[default]
    Task,
    /// All tasks of a name
    Name,
}

impl Args {
    /// How to get a shorter table than one of so many rows.
    fn advice(&self, rows: usize) -> Option<String> {
        let is_long = self.table.first.count.is_none() && rows >= MANY;
        let by = match self.by {
            By::Task => "--by name has one for all tasks of a name, ",
            By::Name => "",
        };
        is_long.then(|| format!("{rows} rows: {by}-n 20 prints the first 20"))
    }
}

/// A line of the table.
pub struct Line<'t> {
    known: KnownTask<'t>,
    zone: Zone,
}

impl<'t> Deref for Line<'t> {
    type Target = KnownTask<'t>;

    fn deref(&self) -> &KnownTask<'t> {
        &self.known
    }
}

impl Line<'_> {
    /// A number of what events of tasks and of the kernel show, if they were recorded.
    fn count(&self, is_recorded: bool, count: u64) -> Cell {
        if is_recorded { Cell::least(self.ran.lossy.any(), count) } else { Cell::None }
    }

    fn time(&self, is_known: bool, at: Option<Timestamp>) -> Cell {
        at.filter(|_| is_known).map_or(Cell::None, |at| Cell::Time(at, self.zone))
    }

    fn slept_on(&self) -> Cell {
        let on = self.task.slept_on.filter(|_| self.wakes() && self.whole_polls());
        on.map_or(Cell::None, |name| self.ran.names.get(name).into())
    }
}

fn columns<'t>() -> Vec<Column<Line<'t>>> {
    columns! { line: Line<'t>;
        number "process" "process" key, "id of its process" => line.task.process.into();
        number "task" "task" key, "number of the task" => line.task.task.into();
        number "tasks" "tasks" extra, "number of tasks that the line sums up (--by name)" => Cell::Count(line.task.tasks);
        text "name" "name" key + shrinking, "its name" => line.task.name.as_str().into();
        number "polls" "polls" high, "how often it was polled" => line.count(line.polls(), line.task.polls);
        duration "busy" "busy_ns" key, "time in polls" => Cell::ns_if(line.busy(), line.task.busy_ns);
        duration "scheduled" "scheduled_ns" high, "time ready to run while no worker polled it"
            => Cell::ns_if(line.task_wakes(), line.task.scheduled_ns);
        duration "idle" "idle_ns" high, "time waiting for something else"
            => Cell::ns_if(line.is_idle(), line.task.idle_ns);
        duration "nested" "nested_ns" extra, "time in which another task ran inside it"
            => Cell::ns_if(line.polls() && line.between_polls(), line.task.nested_ns);
        duration "unknown" "unknown_ns" normal, "time before the first event that shows its state, and while events are missing"
            => Cell::ns_if(line.between_polls(), line.unknown());
        duration "longest" "longest_poll_ns" normal, "the longest poll"
            => Cell::ns_if(line.whole_polls() && line.task.polls > 0, line.task.longest_ns);
        clock "at" "longest_poll_begin_ns" low, "beginning of the longest poll"
            => line.time(line.whole_polls(), line.task.longest_begin);
        duration "running" "running_ns" extra, "part of busy: its worker ran on a CPU"
            => Cell::ns_if(line.worker(), line.task.running_ns);
        duration "preempted" "preempted_ns" low, "part of busy: the kernel had taken the CPU from its worker"
            => Cell::ns_if(line.wakes(), line.task.preempted_ns);
        duration "system" "system_ns" low, "part of busy: in system calls, running or asleep"
            => Cell::ns_if(line.wakes() && !line.ran.modeless, line.task.system_ns);
        duration "slept" "slept_ns" normal, "part of busy: its worker slept, in system calls or for memory"
            => Cell::ns_if(line.wakes(), line.task.slept_ns);
        duration "longest-sleep" "longest_sleep_ns" extra, "the longest sleep in one poll"
            => Cell::ns_if(line.wakes() && line.whole_polls(), line.task.longest_sleep_ns);
        text "longest-sleep-on" "longest_sleep_on" extra, "what its worker slept on during that sleep" => line.slept_on();
        number "faults" "page_faults" low, "page faults in polls"
            => line.count(line.polls() && line.ran.recorded.page_faults, line.task.page_faults);
        duration "delay" "avg_delay_ns" normal, "mean time ready before a poll"
            => Cell::ns_if(line.has_delays(), line.task.mean_delay_ns());
        duration "max-delay" "max_delay_ns" normal, "longest time ready before a poll"
            => Cell::ns_if(line.has_delays(), line.task.max_delay_ns);
        clock "max-delay-end" "max_delay_end_ns" extra, "end of the longest delay"
            => line.time(line.has_delays(), line.task.max_delay_end);
        number "delays" "delays" extra, "number of known delays"
            => line.count(line.whole_polls() && line.between_polls(), line.task.delays);
        duration "long-polls-running" "long_polls_running_ns" extra, "time that long polls ran"
            => Cell::ns_if(line.worker() && line.whole_polls(), line.task.long_ns);
        number "long" "long_polls" normal + alarming, "polls that ran for --long-poll or longer without yielding to other tasks"
            => line.count(line.worker() && line.whole_polls(), line.task.long_polls);
        number "blocking" "blocking_polls" normal + alarming, "polls in which its worker slept for --blocking-poll or longer: no other task ran on it"
            => line.count(line.wakes() && line.whole_polls(), line.task.blocking_polls);
        number "spurious" "spurious_polls" normal + alarming, "polls after spurious wakes: short, pending, and without any effect"
            => line.count(line.effects(), line.task.vain_polls);
    }
}

/// The columns of a running recording's tasks.
pub fn live_columns<'t>() -> Vec<Column<Line<'t>>> {
    columns()
}

/// The tasks of a running recording in the time of a window.
pub fn live_table(window: &Window, options: &TableOptions, width: Option<usize>) -> Table {
    let line = |task| Line { known: KnownTask { task, ran: &window.ran }, zone: Zone::Local };
    let lines: Vec<_> = window.tasks.iter().map(line).collect();
    options.layout_of_part(&live_columns()).within(width).table(&lines)
}

pub fn views() -> Vec<View> {
    vec![View::new("tasks", heads(columns()))]
}

/// Events that a recording of tasks may lack.
const PARTS: [Part; 2] = [
    Part::task_switches("polls and their times are unknown"),
    Part::task_wakes(
        "a task is `idle` during waits that it reports, until its next poll, though it may have been ready earlier, so \
         `idle` is an upper bound; the rest of its time between polls is unknown (-); `delay` covers only first polls",
    ),
];

/// What that means for tasks that only hooks know.
const HOOKED: &str = "a task is then `idle` during waits that it reports, until its next poll, though it may have been ready earlier, \
                      so `idle` is an upper bound; the rest of its time between polls, and which wakes were spurious, is \
                      unknown";

/// Events of the kernel that it may lack.
const CALLS: [Part; 1] =
    [Part::system_calls("time in them (`system`) and which wakes were spurious are unknown (-)")];

pub fn run(args: &Args) -> Result<ExitCode> {
    let layout = args.table.layout(&columns())?;
    let thresholds = Thresholds { long_ns: args.long_poll, blocking_ns: args.blocking_poll };
    let mut tasks = Tasks::new(thresholds, args.by == By::Name);
    let ran = args.input.analyse(&mut tasks)?;
    let tasks = tasks.finish();
    let is_gone = lacks_programs(&args.input)?;
    let zone = args.input.zone();
    let lines: Vec<_> =
        tasks.iter().map(|task| Line { known: KnownTask { task, ran: &ran }, zone }).collect();
    let format = args.table.format();
    let mut out = screen::stdout(format.into());
    let [lost, least_lost] = losses::members(&ran);
    let members = [("duration_ns", Cell::Ns(ran.duration_ns())), lost, least_lost];
    layout.table(&lines).write(&mut out, format, ("tasks", &members), |out| {
        let count: u64 = tasks.iter().map(|task| task.tasks).sum();
        let duration = milliseconds(ran.duration_ns());
        // Events that were lost may be of any number of tasks.
        let is_lost = tasks.is_empty() && (ran.lossy.programs || is_gone);
        let count_text = if is_lost { "unknown".to_owned() } else { count.to_string() };
        let tasks_text = format!("{count_text} {}", plural(count, "task"));
        if KnownTask::knows_busy(&ran) && !is_lost {
            let busy = milliseconds(total(tasks.iter().map(|task| task.busy_ns)));
            writeln!(out, "{tasks_text}, {busy} ms in polls in {duration} ms")?;
        } else {
            writeln!(out, "{tasks_text} in {duration} ms, time in polls unknown")?;
        }
        match ran.cuts.polls {
            true => Ok(()),
            false => warnings::print(out, &tasks, &ran),
        }
    })?;
    if tasks.is_empty() {
        TASKS.explain(&mut out, format, &args.input, &ran)?;
    } else if ran.switchless && format == TableFormat::Table {
        let note = "The recording lacks some switches of threads (sched_switch): what workers did in polls is unknown";
        print_note(&mut out, &format!("{note}."))?;
    }
    if let Some(advice) = args.advice(lines.len()).filter(|_| format == TableFormat::Table) {
        print_note(&mut out, &advice)?;
    }
    explain(&mut out, args, &tasks, &ran)?;
    if let Some(line) = losses::least(&ran, "numbers of polls and delays").filter(|_| !tasks.is_empty()) {
        say(&mut out, format, &line)?;
    }
    out.flush()?;
    if !tasks.is_empty() && !ran.stopped {
        across::warn(&args.input, &args.input.filter()?, |_| true)?;
    }
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

/// What is unknown, and why.
fn explain(out: &mut impl Write, args: &Args, tasks: &[Task], ran: &Ran) -> Result<()> {
    let format = args.table.format();
    let doubtful: u64 = tasks.iter().map(|task| task.doubtful_polls).sum();
    if doubtful > 0 && !ran.switchless && !ran.cuts.polls {
        let polls = plural(doubtful, "poll");
        let why = "what their workers did is unknown for part of the time, which is counted in `busy` only";
        say(out, format, &format!("{doubtful} more {polls} may be long or blocking: {why}."))?;
    }
    if !tasks.is_empty() {
        explain_cuts(ran.cuts, out, format)?;
        let counts = tasks.iter().map(|task| (task.tasks, task.lacks_wakes, task.hooked));
        let wakeless = Wakeless::of(counts, ran, &args.input)?;
        wakeless.explain(HOOKED, out, format)?;
        explain_missing(&wakeless.parts(&PARTS), RECORD_TASKS, out, format, &args.input)?;
        // Without switches, more is unknown, which has been said.
        if !ran.switchless {
            explain_missing(&CALLS, RECORD_KERNEL, out, format, &args.input)?;
        }
        if tasks.iter().all(|task| task.name.is_empty()) {
            explain_nameless(out, format, &args.input)?;
        }
    }
    Ok(())
}

/// What is unknown because of the filter.
fn explain_cuts(cut: Cuts, out: &mut impl Write, format: TableFormat) -> Result<()> {
    let between = "`scheduled`, `idle`, `nested`, `unknown`, `delay` and `max-delay`";
    cuts::explain(cut.between_polls, Why::InPolls, between, out, format)?;
    cuts::explain(cut.waits, Why::OnCpus, "`busy`, `preempted`, `system` and `slept`", out, format)?;
    let of_polls = "`longest`, `long`, `blocking` and `spurious`";
    cuts::explain(cut.polls, Why::PartsOfPolls, of_polls, out, format)
}

fn time(text: &str) -> Result<Duration, String> {
    tracewing_trace::parse_duration(text).ok_or_else(|| "give a time as in 10ms, 500us or 1.5s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches};

    #[test]
    fn what_no_column_shows_is_unknown_time() {
        let [idle_ns, scheduled_ns, unknown_ns] = [20, 5, 7].map(Duration::from_ns);
        let ran = Ran::default();
        let shown = |lacks_wakes, idle_ns| {
            let task = Task { idle_ns, scheduled_ns, unknown_ns, lacks_wakes, ..Task::default() };
            let line = Line { known: KnownTask { task: &task, ran: &ran }, zone: Zone::Local };
            (line.task_wakes(), line.is_idle(), line.unknown().as_ns())
        };
        assert_eq!(shown(false, Duration::ZERO), (true, true, 7));
        // It was idle while it waited for what it names.
        assert_eq!(shown(true, idle_ns), (false, true, 12));
        assert_eq!(shown(true, Duration::ZERO), (false, false, 12));
    }

    #[test]
    fn a_long_table_has_advice() {
        let advice = |line: &str, rows| {
            let command = Args::augment_args(clap::Command::new("tasks"));
            let matches = command.get_matches_from(format!("tasks {line}").split_whitespace());
            Args::from_arg_matches(&matches).unwrap().advice(rows)
        };
        assert!(advice("t", 2000).unwrap().starts_with("2000 rows: --by name"));
        assert_eq!(advice("t --by name", 2000).unwrap(), "2000 rows: -n 20 prints the first 20");
        for (line, rows) in [("t", 999), ("t -n 5", 2000), ("t --by name", 999)] {
            assert_eq!(advice(line, rows), None, "{line}");
        }
    }
}
