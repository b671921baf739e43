//! `tracewing latency`: how long it takes from one event to another, as tables, JSON or CSV.

use crate::bar::bar;
use crate::format::TableFormat;
use crate::input::{Input, conclude, warn_of_losses};
use crate::nothing::{ANY, say};
use crate::output::{quoted, shown};
use crate::progress::Watch;
use crate::screen;
use crate::table::{Cell, Head, Table, figure, hidden, period, text};
use anyhow::{Result, bail, ensure};
use std::io::{Result as IoResult, Write};
use std::process::ExitCode;
use tracewing_analysis::{
    self as analysis, Bar, Distribution, Episode, EventPattern, Latency, LatencyGroup, LatencyTable, Moment,
    Nesting, Period, Question, total,
};
use tracewing_trace::{Filter, TimePoint, Variable};

const NS_PER_S: u64 = 1_000_000_000;

/// What `tracewing latency` accepts.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tracewing latency my-trace --begin sent_msg --end received_msg --by message
      two events with the same value of the field `message`
  tracewing latency my-trace --begin 'irq_softirq_entry where vec == 3' --end 'server:received' --nested queue
      from when the kernel had a message to its treatment by the program
  tracewing latency my-trace --begin sched_waking --end sched_switch --by tid=next_tid --nested latest
      from a thread's waking to when it has a CPU; what it did in the three worst cases
  tracewing latency my-trace --begin 'syscall_entry_*' --end 'syscall_exit_*' --by '$tid' --show histogram
      system calls, each on its own thread
  tracewing latency my-trace --begin 'syscall_entry_*' --end 'syscall_exit_*' --by '$tid' --group '$event'
      the same for each system call by itself; --group '$process' for each process
  tracewing latency my-trace --begin job:start --end job:end --by '$task' --format csv --show worst -n 1000000
      every period as a line

A PATTERN is a shell pattern for names of events, and behind ` where ` a condition as for --where, on that event's fields. \
--by says what must be equal at begin and end: a field, a context ($tid, $pid, $cpu), $task (the user thread), or A=B where \
the begin calls it A and the end B. Without --by, any begin fits any end. An event that fits both patterns ends a period and \
begins the next.

--group tells the figures also by what the ends have in common: a field, a context, a column such as $process, $tid or $task, or $event, the event's name; the groups with the longest time in all first. A switch is of whom it leads to, where --by …=next_tid or thread=next says so.

Quantiles are exact up to 4 million periods, and beyond that within 0.1 %. Of the worst periods it is told what the end's \
thread and task did in them, for which the recording is read a second time; of a switch it is the thread that leaves the CPU, or with --by …=next_tid the one \
that gets it. Begins without an end and ends without a begin \
are counted.")]
pub struct Args {
    /// Events with which a period begins
    #[arg(long, value_name = "PATTERN")]
    begin: EventPattern,

    /// Events with which it ends
    #[arg(long, value_name = "PATTERN")]
    end: EventPattern,

    /// Begin and end have the same value of this; several with commas
    #[arg(long, value_name = "FIELD|A=B", value_delimiter = ',', value_parser = pair)]
    by: Vec<(Variable, Variable)>,

    /// Tell the figures also for each value of this, of the end; several with commas
    #[arg(long, value_name = "FIELD", value_delimiter = ',', value_parser = variable)]
    group: Vec<Variable>,

    /// To which begin an end belongs if there are several
    #[arg(long, value_enum, default_value_t)]
    nested: Nested,

    /// How many of the longest periods to tell
    #[arg(short = 'n', long = "worst", value_name = "N", default_value_t = 3)]
    worst: usize,

    /// What to print; several with commas [default: all; as CSV, figures]
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    show: Vec<Show>,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: TableFormat,

    // Last, since its heading goes on for what follows.
    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
enum Nested {
    /// The latest; those before it wait for ends of their own
    #[default]
    Stack,
    /// The earliest; those after it wait for ends of their own
    Queue,
    /// The latest; those before it have no end
    Latest,
    /// The earliest; those after it have no end
    First,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Show {
    /// Count, mean, quantiles
    Figures,
    /// The same by --group
    Groups,
    /// How many took how long
    Histogram,
    /// The longest ones
    Worst,
}

fn variable(text: &str) -> Result<Variable, String> {
    text.trim().parse::<Variable>().map_err(|error| error.to_string())
}

/// `A`, or `A=B`.
fn pair(text: &str) -> Result<(Variable, Variable), String> {
    let (begin, end) = text.split_once('=').unwrap_or((text, text));
    Ok((variable(begin)?, variable(end)?))
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let show = match (&args.show[..], args.format) {
        ([_, _, ..], TableFormat::Csv) => {
            bail!("CSV is one table: give --show one of figures, groups, histogram, worst")
        }
        ([], TableFormat::Csv) if args.group.is_empty() => vec![Show::Figures],
        ([], TableFormat::Csv) => vec![Show::Groups],
        ([], _) => {
            let mut show = vec![Show::Figures, Show::Groups, Show::Histogram, Show::Worst];
            show.retain(|part| match part {
                Show::Groups => !args.group.is_empty(),
                Show::Worst => args.worst > 0,
                _ => true,
            });
            show
        }
        (show, _) => show.to_vec(),
    };
    ensure!(!show.contains(&Show::Groups) || !args.group.is_empty(), "--show groups needs --group");
    let question = Question {
        begin: args.begin.clone(),
        end: args.end.clone(),
        by: args.by.clone(),
        group: args.group.clone(),
        nesting: match args.nested {
            Nested::Stack => Nesting::Stack,
            Nested::Queue => Nesting::Queue,
            Nested::Latest => Nesting::Latest,
            Nested::First => Nesting::First,
        },
        worst: if show.contains(&Show::Worst) { args.worst } else { 0 },
    };
    let (recording, filter) = args.input.open()?;
    let watch = Watch::new()?;
    let mut latency = Latency::new(&question, &recording)?;
    let mut ran = analysis::run(&recording, &filter, &mut latency, &mut |progress| watch.show(progress))?;
    let (mut table, mut episodes) = latency.finish();
    if let Some(until) = episodes.until().filter(|_| !ran.stopped) {
        let (from, to) = (filter.from, Some(TimePoint::Absolute(until)));
        let filter = Filter { from, to, zone: filter.zone, ..Filter::default() };
        let again = analysis::run(&recording, &filter, &mut episodes, &mut |progress| watch.show(progress))?;
        if !again.stopped {
            episodes.finish(&mut table, &again);
        }
        ran.failure = ran.failure.or(again.failure);
    }
    drop(watch);
    let mut out = screen::stdout(args.format.into());
    match args.format {
        TableFormat::Table => print(&mut out, &table, &show, args)?,
        TableFormat::Json => {
            serde_json::to_writer(&mut out, &table).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        TableFormat::Csv => match show[..] {
            [Show::Groups, ..] => groups(&table.groups, &args.group).csv(&mut out)?,
            [Show::Histogram, ..] => histogram(&table.distribution).csv(&mut out)?,
            [Show::Worst, ..] => worst(&table).csv(&mut out)?,
            _ => figures(&table).csv(&mut out)?,
        },
    }
    let periods = table.distribution.count + table.unmatched_begins + table.unmatched_ends;
    if periods + table.without_key == 0
        && let Some(why) = ANY.why_no_event(&args.input)?
    {
        say(&mut out, args.format, &why)?;
    }
    out.flush()?;
    warn_of_losses(&ran);
    Ok(conclude(ran))
}

fn print(out: &mut impl Write, table: &LatencyTable, show: &[Show], args: &Args) -> IoResult<()> {
    for (place, part) in show.iter().enumerate() {
        if place > 0 {
            writeln!(out)?;
        }
        match part {
            Show::Figures => figures(table).print(out)?,
            Show::Histogram => draw(out, &table.distribution)?,
            Show::Groups => groups(&table.groups, &args.group).print(out)?,
            Show::Worst => print_worst(out, table, &args.input)?,
        }
    }
    let LatencyTable { distribution, unmatched_begins, unmatched_ends, .. } = table;
    writeln!(
        out,
        "\n{} periods; {unmatched_begins} begins without an end, {unmatched_ends} ends without a begin",
        distribution.count
    )?;
    let remarks = [
        (table.without_key, "begins or ends have nothing to match them by"),
        (table.across_losses, "periods have losses of events in them, and may be wrong"),
        (table.forgotten, "begins were forgotten for want of memory"),
    ];
    for (count, remark) in remarks.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "{count} {remark}")?;
    }
    if distribution.quantile_error > 0.0 {
        writeln!(out, "The quantiles are within {} %.", distribution.quantile_error * 100.0)?;
    }
    Ok(())
}

fn figures(table: &LatencyTable) -> Table {
    let counts =
        ["unmatched_begins", "unmatched_ends", "without_key", "across_losses", "forgotten"].map(hidden);
    let mut figures = Table::by_position([&FIGURES[..], &counts].concat());
    let LatencyTable { unmatched_begins, unmatched_ends, without_key, across_losses, forgotten, .. } = *table;
    let counts = [unmatched_begins, unmatched_ends, without_key, across_losses, forgotten];
    figures.push(cells(&table.distribution).chain(counts.map(Cell::Count)).collect());
    figures
}

/// A row for each group.
fn groups(groups: &[LatencyGroup], by: &[Variable]) -> Table {
    let columns = [&[text(GROUP, GROUP)][..], &FIGURES, &[hidden("total_ns")]].concat();
    let mut table = Table::by_position(columns);
    for LatencyGroup { group, distribution } in groups {
        let values: Vec<_> = group.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let total = distribution.mean_ns * distribution.count as f64;
        let name = match (&group[..], &values[..]) {
            ([], _) => Cell::None,
            ([(_, value)], _) if by.len() == 1 && !value.is_empty() => Cell::Text(value.clone()),
            ([(name, value)], _) if value.is_empty() => Cell::Text(name.clone()),
            (_, values) => Cell::Text(values.join(", ")),
        };
        table.push(
            [name].into_iter().chain(cells(distribution)).chain([Cell::Ns(total.round() as u64)]).collect(),
        );
    }
    table
}

const GROUP: &str = "group";

const FIGURES: [Head; 9] = [
    figure("count", "count"),
    figure("min", "min_ns"),
    figure("mean", "mean_ns"),
    figure("deviation", "deviation_ns"),
    figure("p50", "p50_ns"),
    figure("p90", "p90_ns"),
    figure("p99", "p99_ns"),
    figure("p99.9", "p999_ns"),
    figure("max", "max_ns"),
];

fn cells(distribution: &Distribution) -> impl Iterator<Item = Cell> + use<> {
    let Distribution {
        count, min_ns, mean_ns, deviation_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns, ..
    } = *distribution;
    let times = [
        min_ns,
        mean_ns.round() as u64,
        deviation_ns.round() as u64,
        p50_ns,
        p90_ns,
        p99_ns,
        p999_ns,
        max_ns,
    ];
    [Cell::Count(count)].into_iter().chain(times.map(Cell::Period))
}

fn histogram(distribution: &Distribution) -> Table {
    let mut table =
        Table::by_position([figure("from", "from_ns"), figure("to", "to_ns"), figure("count", "count")]);
    for Bar { from_ns, to_ns, count } in &distribution.histogram {
        let to = to_ns.map_or(Cell::None, Cell::Period);
        table.push(vec![Cell::Period(*from_ns), to, Cell::Count(*count)]);
    }
    table
}

/// Draws the histogram: time grows by about 2 from line to line, a bar's length is the count.
fn draw(out: &mut impl Write, distribution: &Distribution) -> IoResult<()> {
    const WIDTH: u64 = 50;
    let most = distribution.histogram.iter().map(|bar| bar.count).max().unwrap_or(0);
    let mut table =
        Table::by_position([figure("from", "from_ns"), figure("count", "count"), text("", "bar")]);
    for Bar { from_ns, count, .. } in &distribution.histogram {
        let bar = Cell::Text(bar(*count, most, WIDTH));
        table.push(vec![Cell::Period(*from_ns), Cell::Count(*count), bar]);
    }
    table.print(out)
}

/// A line per period, for programs.
fn worst(table: &LatencyTable) -> Table {
    let mut columns = vec![figure("ns", "ns")];
    let names = ["begin_ns", "begin_cpu", "begin_pid", "begin_tid", "begin_task"];
    columns.extend(names.map(hidden));
    columns.extend(["end_ns", "end_cpu", "end_pid", "end_tid", "end_task", "key"].map(hidden));
    for whose in THREAD_COLUMNS.into_iter().chain(TASK_COLUMNS) {
        columns.push(hidden(whose));
    }
    let mut rows = Table::by_position(columns);
    for period in &table.worst {
        let mut row = vec![Cell::Period(period.ns)];
        for at in [&period.begin, &period.end] {
            row.push(Cell::Number(at.ns));
            row.push(at.cpu.map_or(Cell::None, |cpu| Cell::Count(cpu.into())));
            row.extend([at.process.into(), at.tid.into()]);
            row.push(at.user_thread.map_or(Cell::None, Cell::Count));
        }
        row.push(Cell::Text(key(period)));
        for episode in [&period.lwp, &period.user_thread] {
            row.extend(breakdown(episode.as_ref()));
        }
        rows.push(row);
    }
    rows
}

const THREAD_COLUMNS: [&str; 9] = [
    "thread",
    "thread_running_ns",
    "thread_waiting_ns",
    "thread_blocked_ns",
    "thread_unknown_ns",
    "thread_interrupted_ns",
    "thread_blocked_on",
    "thread_wakeups",
    "thread_woken_by",
];

const TASK_COLUMNS: [&str; 9] = [
    "task",
    "task_running_ns",
    "task_waiting_ns",
    "task_blocked_ns",
    "task_unknown_ns",
    "task_interrupted_ns",
    "task_blocked_on",
    "task_wakeups",
    "task_woken_by",
];

fn breakdown(episode: Option<&Episode>) -> [Cell; 9] {
    let Some(Episode { who, times, wakeups, woken_by, .. }) = episode else {
        return [const { Cell::None }; 9];
    };
    let parts = times.blocked_on.iter().map(|blocked| (blocked.on.clone(), blocked.ns));
    [
        Cell::Text(who.to_string()),
        Cell::ns(times.running_ns),
        Cell::ns(times.waiting_ns),
        Cell::ns(times.blocked_ns),
        Cell::Ns(times.unknown_ns),
        Cell::ns(times.interrupted_ns),
        Cell::Parts(parts.collect()),
        Cell::count(*wakeups),
        woken_by.as_ref().map_or(Cell::None, |by| Cell::Text(by.to_string())),
    ]
}

/// What begin and end have in common.
fn key(period: &Period) -> String {
    let parts: Vec<_> = period.key.iter().map(|(name, value)| format!("{name}={value}")).collect();
    parts.join(" ")
}

/// The longest periods, and what their threads did.
fn print_worst(out: &mut impl Write, table: &LatencyTable, input: &Input) -> IoResult<()> {
    let traces: Vec<_> = input.traces().iter().map(|trace| quoted(trace)).collect();
    for (place, worst) in table.worst.iter().enumerate() {
        let key = if worst.key.is_empty() { String::new() } else { format!("  {}", key(worst)) };
        writeln!(out, "{}. {}{}", place + 1, period(worst.ns), shown(&key))?;
        for (what, at) in [("from", &worst.begin), ("to", &worst.end)] {
            let parts = [
                at.cpu.map(|cpu| format!("CPU {cpu}")),
                at.process.map(|process| format!("process {process}")),
                at.tid.map(|tid| format!("thread {tid}")),
                at.user_thread.map(|thread| format!("task {thread}")),
            ];
            let parts: Vec<_> = parts.into_iter().flatten().collect();
            writeln!(out, "   {what:<5}{}  {}", input.zone().format(at.ns), parts.join(", "))?;
        }
        for episode in [&worst.user_thread, &worst.lwp].into_iter().flatten() {
            print_episode(out, episode, worst.end.ns)?;
        }
        let whose = match (&worst.end, &worst.user_thread) {
            (Moment { process: Some(process), user_thread: Some(thread), .. }, Some(_)) => {
                format!("--task {process}/{thread}")
            }
            (Moment { tid: Some(tid), .. }, _) if worst.lwp.is_some() => format!("--tid {tid}"),
            _ => continue,
        };
        // As the options read it.
        let seconds = |ns: i64| {
            let sign = if ns < 0 { "-" } else { "" };
            format!("{sign}{}.{:09}", ns.unsigned_abs() / NS_PER_S, ns.unsigned_abs() % NS_PER_S)
        };
        writeln!(
            out,
            "   tracewing critical-path {} {whose} --from {} --to {}",
            shown(&traces.join(" ")),
            seconds(worst.begin.ns),
            seconds(worst.end.ns)
        )?;
    }
    Ok(())
}

/// What one did in a period, in one line; and who woke it, in another.
fn print_episode(out: &mut impl Write, episode: &Episode, end: i64) -> IoResult<()> {
    let Episode { who, times, system_calls, preempted_ns, wakeups, woken_by, woken_ns } = episode;
    let listed = |parts: Vec<String>| match &parts[..] {
        [] => String::new(),
        parts => format!(" ({})", parts.join(", ")),
    };
    let part = |(name, ns): (&str, u64)| format!("{name} {}", period(ns));
    let calls = system_calls.iter().map(|(call, ns)| part((call, *ns)));
    let gave_way = if who.user_thread.is_some() { "yielded" } else { "preempted" };
    let preempted = preempted_ns.filter(|ns| *ns > 0).map(|ns| part((gave_way, ns)));
    let on = times.blocked_on.iter().map(|blocked| part((blocked.on.as_deref().unwrap_or("?"), blocked.ns)));
    let told = total([times.user_ns, times.system_ns, times.interrupted_ns].into_iter().flatten());
    let in_no_mode = times.running_ns.map(|ns| ns.saturating_sub(told));
    let parts = [
        (times.user_ns, "user", String::new()),
        (times.system_ns, "system calls", listed(calls.collect())),
        (times.interrupted_ns, "interrupted", String::new()),
        (in_no_mode, "running", String::new()),
        (times.waiting_ns, "ready", listed(preempted.into_iter().collect())),
        (times.blocked_ns, "blocked", listed(on.collect())),
        (Some(times.nested_ns), "others within it", String::new()),
        (Some(times.unknown_ns), "unknown", String::new()),
    ];
    let parts = parts.into_iter().filter_map(|(ns, what, more)| Some((ns.filter(|ns| *ns > 0)?, what, more)));
    let parts: Vec<_> = parts.map(|(ns, what, more)| format!("{what} {}{more}", period(ns))).collect();
    writeln!(out, "   {}: {}", shown(&who.to_string()), shown(&parts.join(", ")))?;
    if let (Some(by), Some(at)) = (woken_by, woken_ns) {
        let times = match wakeups {
            Some(wakeups @ 2..) => format!("{wakeups} times, last"),
            _ => "once".to_owned(),
        };
        let before = period(end.abs_diff(*at));
        writeln!(out, "     woken {times} by {}, {before} before the end", shown(&by.to_string()))?;
    }
    Ok(())
}
