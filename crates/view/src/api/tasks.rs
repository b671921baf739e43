//! `tasks` starts to find what the tasks of an area did in their polls: what `tracewing tasks` prints.

use super::area::Area;
use super::ask::{Refusal, parsed, ready};
use super::jobs;
use crate::jobs::Job;
use crate::recording::{Ready, Viewed};
use crate::reply::Reply;
use serde::Serialize;
use std::collections::HashMap;
use tracewing_analysis::{KnownTask, Tasks, Thresholds};
use tracewing_index::RowKind;
use tracewing_trace::{Filter, Recording};
use tracewing_units::{Duration, Pid, Timestamp};

/// Most tasks of an answer: those that were polled the longest.
const MOST: usize = 1000;

#[derive(Debug, Serialize)]
struct Answer {
    tasks: Vec<Line>,
    left_out: usize,
}

/// A task; what is unknown is `null`. The names are those of the columns of `tracewing tasks --format json`.
#[derive(Debug, Serialize)]
struct Line {
    row: Option<u32>,
    process: Option<String>,
    task: Option<String>,
    name: String,
    polls: Option<u64>,
    busy_ns: Option<Duration>,
    scheduled_ns: Option<Duration>,
    idle_ns: Option<Duration>,
    longest_poll_ns: Option<Duration>,
    /// Since the recording begins; so is the next time.
    longest_poll_begin: Option<Duration>,
    avg_delay_ns: Option<Duration>,
    max_delay_ns: Option<Duration>,
    max_delay_end: Option<Duration>,
    slept_ns: Option<Duration>,
    long_polls: Option<u64>,
    blocking_polls: Option<u64>,
}

/// Rows of tasks by process and number.
type Rows = HashMap<(Option<Pid>, u64), u32>;

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let area: Area = parsed(body)?;
    let ready = ready(viewed)?;
    let filter = area.tasks(&ready)?;
    let (begin, rows, recording) = (ready.index.tail().begin, rows(&ready), viewed.recording());
    jobs::start(viewed, move |job| find(job, &recording, &filter, &rows, begin))
}

fn rows(ready: &Ready) -> Rows {
    let tasks = ready.index.rows().filter_map(|(id, row)| match row.kind {
        RowKind::Task(task) => Some(((row.process, task.0), id.0)),
        _ => None,
    });
    tasks.collect()
}

fn find(
    job: &Job,
    recording: &Recording,
    filter: &Filter,
    rows: &Rows,
    begin: Timestamp,
) -> Result<Answer, String> {
    let mut tasks = Tasks::new(Thresholds::default(), false);
    let ran = tracewing_analysis::run(recording, filter, &mut tasks, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    job.go_on()?;
    let mut tasks = tasks.finish();
    tasks.sort_by_key(|task| std::cmp::Reverse(task.busy_ns));
    let left_out = tasks.len().saturating_sub(MOST);
    tasks.truncate(MOST);
    let line = |task| Line::of(KnownTask { task, ran: &ran }, rows, begin);
    Ok(Answer { tasks: tasks.iter().map(line).collect(), left_out })
}

impl Line {
    fn of(known: KnownTask<'_>, rows: &Rows, begin: Timestamp) -> Self {
        let task = known.task;
        let since = |at: Option<Timestamp>| at.map(|at| at - begin);
        let is_longest_known = known.whole_polls() && task.polls > 0;
        Line {
            row: task.task.and_then(|number| rows.get(&(task.process, number.0)).copied()),
            process: task.process.map(|process| process.to_string()),
            task: task.task.map(|task| task.to_string()),
            name: task.name.clone(),
            polls: known.polls().then_some(task.polls),
            busy_ns: known.busy().then_some(task.busy_ns),
            scheduled_ns: known.task_wakes().then_some(task.scheduled_ns),
            idle_ns: known.is_idle().then_some(task.idle_ns),
            longest_poll_ns: is_longest_known.then_some(task.longest_ns),
            longest_poll_begin: since(task.longest_begin).filter(|_| is_longest_known),
            avg_delay_ns: known.has_delays().then(|| task.mean_delay_ns()),
            max_delay_ns: known.has_delays().then_some(task.max_delay_ns),
            max_delay_end: since(task.max_delay_end).filter(|_| known.has_delays()),
            slept_ns: known.wakes().then_some(task.slept_ns),
            long_polls: (known.worker() && known.whole_polls()).then_some(task.long_polls),
            blocking_polls: (known.wakes() && known.whole_polls()).then_some(task.blocking_polls),
        }
    }
}
