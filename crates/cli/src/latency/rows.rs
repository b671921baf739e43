//! Tables of `tracewing latency`: figures of all periods and of groups, how many took how long, and the
//! longest.

use crate::bar::bar;
use crate::table::{Cell, Column, columns, period};
use tracewing_analysis::{
    Bar, Distribution, Episode, LatencyGroup, LatencyTable, Moment, Period, ShownTimes,
};
use tracewing_trace::{Variable, Zone};
use tracewing_units::Duration;

/// Characters of the longest bar.
const WIDTH: u64 = 50;

/// Figures of all periods, or of those of a group.
pub struct Figures<'t> {
    distribution: &'t Distribution,
    /// Of all periods.
    all: Option<&'t LatencyTable>,
    /// What the ends of a group have in common.
    group: Cell,
}

impl Figures<'_> {
    fn of_all(&self, count: fn(&LatencyTable) -> u64) -> Cell {
        Cell::count(self.all.map(count))
    }

    /// A figure of the periods; there is none of no periods.
    fn of_some(&self, figure: fn(&Distribution) -> Duration) -> Cell {
        Cell::period((self.distribution.count > 0).then(|| figure(self.distribution)))
    }

    fn total_ns(&self) -> Duration {
        rounded(self.distribution.mean_ns * self.distribution.count as f64)
    }
}

fn figures<'t>() -> Vec<Column<Figures<'t>>> {
    columns! { line: Figures<'t>;
        number "count" "count" key, "number of periods" => Cell::Count(line.distribution.count);
        period "min" "min_ns" low, "the shortest period" => line.of_some(|of| of.min_ns);
        period "avg" "avg_ns" high, "mean of the periods" => line.of_some(|of| rounded(of.mean_ns));
        period "stdev" "stdev_ns" low, "standard deviation from the mean"
            => line.of_some(|of| rounded(of.deviation_ns));
        period "p50" "p50_ns" normal, "median: half of the periods are at most this long" => line.of_some(|of| of.p50_ns);
        period "p90" "p90_ns" normal, "90 % of the periods are at most this long" => line.of_some(|of| of.p90_ns);
        period "p99" "p99_ns" high, "99 % of the periods are at most this long" => line.of_some(|of| of.p99_ns);
        period "p99.9" "p999_ns" normal, "99.9 % of the periods are at most this long" => line.of_some(|of| of.p999_ns);
        period "max" "max_ns" key, "the longest period" => line.of_some(|of| of.max_ns);
        share "error" "quantile_error" extra, "largest relative error of a quantile"
            => Cell::Share(line.distribution.quantile_error);
    }
}

pub fn columns_of_all<'t>() -> Vec<Column<Figures<'t>>> {
    let mut columns = figures();
    columns.extend(columns! { line: Figures<'t>;
        number "begins" "unmatched_begins" extra, "begin events without an end event" => line.of_all(|all| all.unmatched_begins);
        number "ends" "unmatched_ends" extra, "end events without a begin event" => line.of_all(|all| all.unmatched_ends);
        number "keyless" "without_key" extra, "begin and end events without a value to match"
            => line.of_all(|all| all.without_key);
        number "losses" "across_losses" extra, "periods in which events were lost, so that they may be wrong"
            => line.of_all(|all| all.across_losses);
        number "left-out" "across_left_out" extra, "periods that are left out, since they begin or end on CPUs that are not chosen"
            => Cell::count(line.all.and_then(|all| all.across_left_out));
        number "forgotten" "forgotten" extra, "begin events that were dropped to limit memory" => line.of_all(|all| all.forgotten);
    });
    columns
}

pub fn columns_of_groups<'t>() -> Vec<Column<Figures<'t>>> {
    let mut columns = columns! { line: Figures<'t>;
        list "group" "group" key + shrinking, "what the end events have in common" => line.group.clone();
    };
    columns.extend(figures());
    columns.extend(columns! { line: Figures<'t>;
        duration "total" "total_ns" extra, "total of all periods" => Cell::Ns(line.total_ns());
        list "histogram" "histogram" extra, "shortest period and number of periods of each bin"
            => histogram(line.distribution, |ns| ns.as_ns().to_string()), in_text: histogram(line.distribution, period);
    });
    columns
}

/// The figures of all periods.
pub fn all(table: &LatencyTable) -> Figures<'_> {
    Figures { distribution: &table.distribution, all: Some(table), group: Cell::None }
}

/// The figures of each group.
pub fn groups<'t>(groups: &'t [LatencyGroup], by: &[Variable]) -> Vec<Figures<'t>> {
    let line = |of: &'t LatencyGroup| {
        let LatencyGroup { group, distribution } = of;
        let values: Vec<_> = group.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = match (&group[..], &values[..]) {
            ([], _) => String::new(),
            ([(_, value)], _) if by.len() == 1 && !value.is_empty() => value.clone(),
            ([(name, value)], _) if value.is_empty() => name.clone(),
            (_, values) => values.join(", "),
        };
        let group = match group.is_empty() {
            true => Cell::None,
            false => Cell::list(text, serde_json::json!(group)),
        };
        Figures { distribution, all: None, group }
    };
    groups.iter().map(line).collect()
}

/// The nearest whole number of nanoseconds.
fn rounded(ns: f64) -> Duration {
    Duration::from_ns(ns.round() as u64)
}

fn histogram(distribution: &Distribution, length: fn(Duration) -> String) -> Cell {
    let bars = distribution.histogram.iter().map(|bar| format!("{}={}", length(bar.from_ns), bar.count));
    let text = bars.collect::<Vec<_>>().join(" ");
    Cell::list(text, serde_json::json!(distribution.histogram))
}

/// A bar of the histogram.
pub struct Bin<'t> {
    bin: &'t Bar,
    /// The count of the longest bar.
    most: u64,
}

pub fn columns_of_bins<'t>() -> Vec<Column<Bin<'t>>> {
    columns! { line: Bin<'t>;
        period "from" "from_ns" key, "periods in the bin are at least this long" => Cell::Period(line.bin.from_ns);
        period "to" "to_ns" extra, "periods in the bin are shorter than this; the last bin has no limit" => Cell::period(line.bin.to_ns);
        number "count" "count" key, "number of periods" => Cell::Count(line.bin.count);
        text "" "bar" low + only_text, "a bar as long as the count" => Cell::Text(bar(line.bin.count, line.most, WIDTH));
    }
}

/// The histogram: time grows by about 2 from line to line.
pub fn bins(distribution: &Distribution) -> Vec<Bin<'_>> {
    let most = distribution.histogram.iter().map(|bin| bin.count).max().unwrap_or(0);
    distribution.histogram.iter().map(|bin| Bin { bin, most }).collect()
}

/// One of the longest periods.
pub struct Worst<'t> {
    period: &'t Period,
    zone: Zone,
}

pub fn worst(table: &LatencyTable, zone: Zone) -> Vec<Worst<'_>> {
    table.worst.iter().map(|period| Worst { period, zone }).collect()
}

impl Worst<'_> {
    fn time(&self, at: &Moment) -> Cell {
        Cell::Time(at.ns, self.zone)
    }

    fn thread<T>(&self, part: impl Fn(&Episode) -> T) -> Option<T> {
        self.period.lwp.as_ref().map(part)
    }

    fn thread_time(&self, time: fn(&ShownTimes) -> Option<Duration>) -> Option<Duration> {
        self.thread(|of| time(&of.times)).flatten()
    }

    fn task<T>(&self, part: impl Fn(&Episode) -> T) -> Option<T> {
        self.period.user_thread.as_ref().map(part)
    }

    fn task_time(&self, time: fn(&ShownTimes) -> Option<Duration>) -> Option<Duration> {
        self.task(|of| time(&of.times)).flatten()
    }
}

fn text(text: Option<String>) -> Cell {
    text.map_or(Cell::None, Cell::Text)
}

fn blocked_on(episode: &Episode) -> Cell {
    let parts = episode.times.blocked_on.iter().map(|blocked| (blocked.on.clone(), blocked.ns));
    Cell::Parts(parts.collect())
}

fn woken_by(episode: &Episode) -> Option<String> {
    episode.woken_by.as_ref().map(ToString::to_string)
}

pub fn columns_of_worst<'t>() -> Vec<Column<Worst<'t>>> {
    let mut columns = columns! { line: Worst<'t>;
        period "time" "duration_ns" key, "length of the period" => Cell::Period(line.period.ns);
        clock "begin" "begin_ns" high, "time of the begin event" => line.time(&line.period.begin);
        number "begin-cpu" "begin_cpu" low, "CPU of the begin event" => line.period.begin.cpu.into();
        number "begin-process" "begin_process" low, "process of the begin event" => line.period.begin.process.into();
        number "begin-thread" "begin_tid" low, "thread of the begin event" => line.period.begin.tid.into();
        number "begin-task" "begin_task" low, "task of the begin event" => line.period.begin.user_thread.into();
        clock "end" "end_ns" high, "time of the end event" => line.time(&line.period.end);
        number "end-cpu" "end_cpu" low, "CPU of the end event" => line.period.end.cpu.into();
        number "end-process" "end_process" low, "process of the end event" => line.period.end.process.into();
        number "end-thread" "end_tid" low, "thread of the end event" => line.period.end.tid.into();
        number "end-task" "end_task" low, "task of the end event" => line.period.end.user_thread.into();
        text "key" "key" normal, "what the begin and end events have in common" => Cell::Text(key(line.period));
    };
    columns.extend(thread_columns());
    columns.extend(task_columns());
    columns
}

fn thread_columns<'t>() -> Vec<Column<Worst<'t>>> {
    columns! { line: Worst<'t>;
        text "thread" "thread" normal, "thread of the end event" => text(line.thread(|of| of.actor.to_string()));
        duration "thread-running" "thread_running_ns" low, "time running" => Cell::ns(line.thread_time(|times| times.running_ns));
        duration "thread-ready" "thread_ready_ns" low, "time ready to run"
            => Cell::ns(line.thread_time(|times| times.waiting_ns));
        duration "thread-blocked" "thread_blocked_ns" low, "time waiting for something else"
            => Cell::ns(line.thread_time(|times| times.blocked_ns));
        duration "thread-unknown" "thread_unknown_ns" low, "time in an unknown state"
            => Cell::ns(line.thread_time(|times| Some(times.unknown_ns)));
        duration "thread-irq" "thread_interrupted_ns" low, "part of running: interrupts"
            => Cell::ns(line.thread_time(|times| times.interrupted_ns));
        parts "thread-blocked-on" "thread_blocked_on" low, "what it waited for" => line.thread(blocked_on).unwrap_or(Cell::None);
        number "thread-wakeups" "thread_wakeups" low, "how often it was woken" => Cell::count(line.thread(|of| of.wakeups).flatten());
        text "thread-woken-by" "thread_woken_by" low, "thread, task or interrupt of its last wake" => text(line.thread(woken_by).flatten());
    }
}

fn task_columns<'t>() -> Vec<Column<Worst<'t>>> {
    columns! { line: Worst<'t>;
        text "task" "task" normal, "task of the end event" => text(line.task(|of| of.actor.to_string()));
        duration "task-running" "task_running_ns" low, "time running" => Cell::ns(line.task_time(|times| times.running_ns));
        duration "task-ready" "task_ready_ns" low, "time ready to run"
            => Cell::ns(line.task_time(|times| times.waiting_ns));
        duration "task-blocked" "task_blocked_ns" low, "time waiting for something else"
            => Cell::ns(line.task_time(|times| times.blocked_ns));
        duration "task-unknown" "task_unknown_ns" low, "time in an unknown state"
            => Cell::ns(line.task_time(|times| Some(times.unknown_ns)));
        duration "task-irq" "task_interrupted_ns" low, "part of running: interrupts"
            => Cell::ns(line.task_time(|times| times.interrupted_ns));
        parts "task-blocked-on" "task_blocked_on" low, "what it waited for" => line.task(blocked_on).unwrap_or(Cell::None);
        number "task-wakeups" "task_wakeups" low, "how often it was woken" => Cell::count(line.task(|of| of.wakeups).flatten());
        text "task-woken-by" "task_woken_by" low, "thread, task or interrupt of its last wake" => text(line.task(woken_by).flatten());
    }
}

/// What begin and end have in common.
pub fn key(period: &Period) -> String {
    let parts: Vec<_> = period.key.iter().map(|(name, value)| format!("{name}={value}")).collect();
    parts.join(" ")
}
