//! `why` starts to find what a thread or task waited for in a window: its critical path, as `tracewing
//! critical-path` prints it, and the same summed up by cause.

use super::ask::{Refusal, is_read, parsed, ready, refused, row};
use super::jobs;
use crate::jobs::Job;
use crate::recording::{Ready, Viewed};
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use tracewing_analysis::{Actor, CriticalPath, CriticalPaths, Step, Target, What, Why};
use tracewing_index::{RowId, RowKind};
use tracewing_trace::{Filter, ThreadPattern, TimePoint};
use tracewing_units::{Cpu, Duration, Pid, Tid, Timestamp};

/// Most steps and causes of an answer.
const MOST_STEPS: usize = 2000;
const MOST_CAUSES: usize = 100;
/// Bytes of the history that are held in memory before a temporary file is made.
const HELD: usize = 16 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    row: u32,
    from: Duration,
    to: Duration,
}

#[derive(Debug, Serialize)]
struct Answer {
    /// The part of the window in which the thread or task is known.
    from: Duration,
    to: Duration,
    causes: Vec<Cause>,
    causes_left_out: usize,
    steps: Vec<PathStep>,
    /// Steps before these.
    steps_left_out: u64,
}

/// A thread, task or interrupt that did something, for one reason.
#[derive(Debug, Serialize)]
struct Cause {
    actor: Subject,
    activity: Activity,
    why: &'static str,
    /// Of a wake, the softirq through which it came.
    via: Option<String>,
    time: Duration,
    count: u64,
}

#[derive(Debug, Serialize)]
struct PathStep {
    from: Duration,
    to: Duration,
    cpu: Option<Cpu>,
    actor: Subject,
    activity: Activity,
    /// As `tracewing critical-path` prints it.
    reason: String,
    waiter: Option<Subject>,
}

#[derive(Debug, Clone, Serialize, PartialEq, Eq, Hash)]
struct Subject {
    /// As `tracewing critical-path` prints it.
    name: String,
    row: Option<u32>,
    is_interrupt: bool,
}

#[derive(Debug, Clone, Serialize, PartialEq, Eq, Hash)]
struct Activity {
    kind: &'static str,
    /// As `tracewing critical-path` prints it.
    name: String,
    /// The system call, or what it waits for.
    about: Option<String>,
}

/// The rows of threads and tasks by their numbers.
#[derive(Debug, Default)]
struct Rows {
    threads: HashMap<Tid, Vec<(RowId, Duration, Duration)>>,
    tasks: HashMap<(Option<Pid>, u64), RowId>,
    begin: Timestamp,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { row: number, from, to } = parsed(body)?;
    let ready = ready(viewed)?;
    let begin = ready.index.tail().begin;
    let filter = target(&ready, row(&ready.index, number)?)?;
    let at = |time| begin.checked_add(time).ok_or_else(|| refused("there is no such time"));
    let range = (at(from)?, at(to)?);
    if from >= to {
        return Err(refused("there is no such window"));
    }
    is_read(&ready, to)?;
    let target = Target::new(&filter)?;
    let (rows, recording) = (Rows::of(&ready), viewed.recording());
    jobs::start(viewed, move |job| Ok(rows.answer(&find(job, &recording, target, range)?)))
}

/// The filter that chooses a row's thread or task.
fn target(ready: &Ready, id: RowId) -> Result<Filter, Refusal> {
    let row = ready.index.row(id);
    match (row.kind, row.parent) {
        (RowKind::Thread(tid), _) => Ok(Filter { tids: vec![tid], ..Filter::default() }),
        (RowKind::Task(thread), _) => {
            let threads = vec![ThreadPattern::Number { process: row.process, thread }];
            Ok(Filter { threads, ..Filter::default() })
        }
        (_, Some(parent)) if row.is_part() => target(ready, parent),
        _ => Err(refused("only a thread or a task waits for others")),
    }
}

fn find(
    job: &Job,
    recording: &tracewing_trace::Recording,
    target: Target,
    (from, to): (Timestamp, Timestamp),
) -> Result<CriticalPath, String> {
    let mut paths = CriticalPaths::new(target, tempfile::spooled_tempfile(HELD));
    // An event at the end itself may show what it waited for until then.
    let (begin, end) = (TimePoint::Absolute(from), TimePoint::Absolute(to.next()));
    let filter = Filter { from: Some(begin), to: Some(end), ..Filter::default() };
    let ran = tracewing_analysis::run(recording, &filter, &mut paths, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    let path =
        paths.path(Some(ran.begin_ns), Some(ran.end_ns.min(to)), &ran.names, &mut || !job.is_stopped());
    path.map_err(|error| error.to_string())
}

impl Rows {
    fn of(ready: &Ready) -> Self {
        let mut rows = Rows { begin: ready.index.tail().begin, ..Rows::default() };
        for (id, row) in ready.index.rows() {
            match row.kind {
                RowKind::Thread(tid) => rows.threads.entry(tid).or_default().push((id, row.begin, row.end)),
                RowKind::Task(task) => _ = rows.tasks.insert((row.process, task.0), id),
                _ => {}
            }
        }
        rows
    }

    fn subject(&self, actor: &Actor, at: Duration) -> Subject {
        let row = match (actor.user_thread, actor.tid) {
            _ if actor.interrupt.is_some() => None,
            (Some(task), _) => self.tasks.get(&(actor.process, task.0)).copied(),
            (None, Some(tid)) => self.threads.get(&tid).and_then(|all| {
                let lives = all.iter().find(|(_, begin, end)| *begin <= at && at <= *end);
                lives.or(all.last()).map(|(id, ..)| *id)
            }),
            (None, None) => None,
        };
        let is_interrupt = actor.interrupt.is_some();
        Subject { name: actor.to_string(), row: row.map(|row| row.0), is_interrupt }
    }

    fn answer(&self, path: &CriticalPath) -> Answer {
        let mut causes: HashMap<_, (Duration, u64)> = HashMap::new();
        for step in &path.steps {
            let at = step.from_ns - self.begin;
            let (why, via) = reason(&step.why);
            let key = (self.subject(&step.actor, at), activity(&step.what), why, via);
            let sum = causes.entry(key).or_default();
            *sum = (sum.0 + step.ns(), sum.1 + 1);
        }
        let cause =
            |((actor, activity, why, via), (time, count))| Cause { actor, activity, why, via, time, count };
        let mut causes: Vec<Cause> = causes.into_iter().map(cause).collect();
        causes.sort_by(|one, other| {
            let key = |cause: &Cause| (cause.actor.name.clone(), cause.activity.name.clone(), cause.why);
            other.time.cmp(&one.time).then_with(|| key(one).cmp(&key(other)))
        });
        let causes_left_out = causes.len().saturating_sub(MOST_CAUSES);
        causes.truncate(MOST_CAUSES);
        let first = path.steps.len().saturating_sub(MOST_STEPS);
        Answer {
            from: path.from_ns - self.begin,
            to: path.to_ns - self.begin,
            causes,
            causes_left_out,
            steps: path.steps[first..].iter().map(|step| self.step(step)).collect(),
            steps_left_out: path.left_out + first as u64,
        }
    }

    fn step(&self, step: &Step) -> PathStep {
        let (from, to) = (step.from_ns - self.begin, step.to_ns - self.begin);
        PathStep {
            from,
            to,
            cpu: step.cpu,
            actor: self.subject(&step.actor, from),
            activity: activity(&step.what),
            reason: step.why.to_string(),
            waiter: step.waiter.as_ref().map(|waiter| self.subject(waiter, from)),
        }
    }
}

fn activity(what: &What) -> Activity {
    let (kind, about) = match what {
        What::User => ("user", None),
        What::SystemCall(call) => ("system", Some(call.to_string())),
        What::Running => ("running", None),
        What::Interrupt => ("interrupt", None),
        What::Blocked(on) => ("blocked", on.as_ref().map(ToString::to_string)),
        What::Ready => ("ready", None),
        What::Unknown => ("unknown", None),
    };
    Activity { kind, name: what.to_string(), about }
}

/// Why a step is on the path, and through which softirq a wake came.
fn reason(why: &Why) -> (&'static str, Option<String>) {
    match why {
        Why::Itself => ("itself", None),
        Why::Wakes => ("wakes", None),
        Why::WakesVia(softirq) => ("wakes", Some(softirq.to_string())),
        Why::Creates => ("creates", None),
        Why::HasCpu => ("cpu", None),
        Why::HasThread => ("thread", None),
        Why::Interrupts => ("interrupts", None),
    }
}
