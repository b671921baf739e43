//! `polls` starts to find the polls of a task of which a number in the answer of `tasks` is made.

use super::area::{Area, of_area};
use super::ask::{Refusal, ready, refused, row};
use super::jobs;
use crate::jobs::Job;
use crate::recording::{Ready, Viewed};
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_analysis::{KnownTask, ListedPoll, PollsBy, Tasks, Thresholds};
use tracewing_index::RowKind;
use tracewing_trace::{Filter, Recording};
use tracewing_units::{Duration, Timestamp};

/// Most polls of an answer.
const MOST: usize = 300;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    by: By,
}

/// See [`PollsBy`].
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Duration,
    Slept,
    Delay,
    Long,
    Blocking,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// How many there are.
    count: u64,
    /// The first of them, in their order.
    polls: Vec<Line>,
}

/// A poll; what is unknown is `null`.
#[derive(Debug, Serialize)]
struct Line {
    /// Since the recording begins; so is the next time.
    from: Duration,
    /// `null` if it has not ended in the area.
    to: Option<Duration>,
    busy_ns: Option<Duration>,
    running_ns: Option<Duration>,
    slept_ns: Option<Duration>,
    delay_ns: Option<Duration>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let ready = ready(viewed)?;
    let (area, Asked { by }) = of_area(&ready, body)?;
    is_task(&ready, &area)?;
    let filter = area.tasks(&ready)?;
    let (begin, recording) = (ready.index.tail().begin, viewed.recording());
    jobs::start(viewed, move |job| find(job, &recording, &filter, by.into(), begin))
}

/// Polls are those of one task.
fn is_task(ready: &Ready, area: &Area) -> Result<(), Refusal> {
    let [number] = area.rows.as_deref().unwrap_or_default() else { return Err(refused("give one task")) };
    match ready.index.row(row(&ready.index, *number)?).kind {
        RowKind::Task(_) => Ok(()),
        _ => Err(refused("this row is no task")),
    }
}

fn find(
    job: &Job,
    recording: &Recording,
    filter: &Filter,
    by: PollsBy,
    begin: Timestamp,
) -> Result<Answer, String> {
    let mut tasks = Tasks::new(Thresholds::default(), false).listing(by, MOST);
    let ran = tracewing_analysis::run(recording, filter, &mut tasks, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    job.go_on()?;
    let (polls, tasks) = (tasks.take_polls(), tasks.finish());
    let (Some(polls), Some(task)) = (polls, tasks.first()) else {
        return Ok(Answer { count: 0, polls: Vec::new() });
    };
    let known = KnownTask { task, ran: &ran };
    let count = polls.count;
    let polls = polls.into_listed().into_iter().map(|poll| Line::of(poll, known, begin)).collect();
    Ok(Answer { count, polls })
}

impl Line {
    fn of(poll: ListedPoll, known: KnownTask<'_>, begin: Timestamp) -> Self {
        Line {
            from: poll.begin - begin,
            to: poll.end.map(|end| end - begin),
            busy_ns: known.busy().then_some(poll.busy_ns),
            running_ns: known.worker().then_some(poll.running_ns),
            slept_ns: known.wakes().then_some(poll.slept_ns),
            delay_ns: poll.delay_ns.filter(|_| known.has_delays()),
        }
    }
}

impl From<By> for PollsBy {
    fn from(by: By) -> Self {
        match by {
            By::Duration => PollsBy::Duration,
            By::Slept => PollsBy::Slept,
            By::Delay => PollsBy::Delay,
            By::Long => PollsBy::Long,
            By::Blocking => PollsBy::Blocking,
        }
    }
}
