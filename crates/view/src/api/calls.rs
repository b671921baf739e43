//! `calls` starts to find how long system calls took in an area: what `tracewing latency --begin
//! 'syscall_entry_*' --end 'syscall_exit_*' --match '$tid' --by '$event'` prints. Of one system call, also
//! the longest ones.

use super::area::of_area;
use super::ask::{Refusal, ready, refused};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use tracewing_analysis::{Distribution, EventPattern, Latency, Nesting, Period, Question};
use tracewing_trace::{Filter, Recording, Variable};
use tracewing_units::{Duration, Timestamp};

/// Most calls of one name in an answer.
const MOST: usize = 300;
/// Longest name of a system call.
const LONGEST: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Only this system call, with the longest ones.
    name: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    calls: Vec<Row>,
    /// Calls that began before the area, or end after it.
    unmatched: u64,
    /// The longest calls of the one that was asked for.
    longest: Vec<Longest>,
    /// Why there are none.
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    total_ns: Duration,
    #[serde(flatten)]
    took: Distribution,
}

#[derive(Debug, Serialize)]
struct Longest {
    tid: Option<String>,
    from: Duration,
    to: Duration,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let ready = ready(viewed)?;
    let (area, Asked { name }) = of_area(&ready, body)?;
    let is_name = |name: &String| {
        name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if name.as_ref().is_some_and(|name| !is_name(name)) {
        return Err(refused("there is no such system call"));
    }
    let filter = area.threads(&ready, "system calls")?;
    let (begin, recording) = (ready.index.tail().begin, viewed.recording());
    jobs::start(viewed, move |job| find(job, &recording, &filter, name.as_deref(), begin))
}

fn find(
    job: &Job,
    recording: &Recording,
    filter: &Filter,
    name: Option<&str>,
    begin: Timestamp,
) -> Result<Answer, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let pattern = |side: &str| {
        format!("syscall_{side}_{}", name.unwrap_or("*"))
            .parse::<EventPattern>()
            .map_err(|error| text(&error))
    };
    let variable = |name: &str| name.parse::<Variable>().map_err(|error| text(&error));
    let thread = variable("$tid")?;
    let question = Question {
        begin: pattern("entry")?,
        end: pattern("exit")?,
        by: vec![(thread.clone(), thread)],
        group: vec![variable("$event")?],
        nesting: Nesting::Stack,
        worst: if name.is_some() { MOST } else { 0 },
    };
    let latency = Latency::new(&question, recording);
    let mut latency = match latency.and_then(|latency| latency.filtered(&question, filter, recording)) {
        Ok(latency) => latency,
        // It has no such events.
        Err(error) => {
            let (calls, longest) = (Vec::new(), Vec::new());
            return Ok(Answer { calls, unmatched: 0, longest, note: Some(error.to_string()) });
        }
    };
    tracewing_analysis::run(recording, filter, &mut latency, &mut |progress| job.watch(progress))
        .map_err(|error| error.to_string())?;
    job.go_on()?;
    let (table, _) = latency.finish();
    let row = |group: tracewing_analysis::LatencyGroup| {
        let event = group.group.into_iter().next().map(|(_, event)| event).unwrap_or_default();
        let name = event.strip_prefix("syscall_exit_").unwrap_or(&event).to_owned();
        let took = group.distribution;
        let total_ns = Duration::from_ns((took.mean_ns * took.count as f64).round() as u64);
        Row { name, total_ns, took }
    };
    let longest = |period: Period| Longest {
        tid: period.end.tid.map(|tid| tid.to_string()),
        from: period.begin.ns - begin,
        to: period.end.ns - begin,
    };
    Ok(Answer {
        calls: table.groups.into_iter().map(row).collect(),
        unmatched: table.unmatched_begins + table.unmatched_ends,
        longest: table.worst.into_iter().map(longest).collect(),
        note: None,
    })
}
