//! `classes` starts to count the events of an area by name: what `tracewing stats` counts. Of one name, also
//! the first ones.

use super::area::of_area;
use super::ask::{Refusal, ready, refused};
use super::jobs;
use crate::events::{Each, each};
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tracewing_trace::{Filter, Recording};
use tracewing_units::{Duration, Timestamp};

/// Most names, and most events of one, in an answer.
const MOST: usize = 1000;
const LISTED: usize = 300;
/// Longest name.
pub(super) const LONGEST: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Only this name, with the first events.
    name: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    names: Vec<Class>,
    left_out: usize,
    /// Why these are not all events: the recording is cut off or damaged.
    failure: Option<String>,
    /// The first events of the name that was asked for.
    events: Vec<Listed>,
}

#[derive(Debug, Serialize)]
struct Class {
    name: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Listed {
    at: Duration,
    cpu: Option<String>,
    tid: Option<String>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let ready = ready(viewed)?;
    let (area, Asked { name }) = of_area(&ready, body)?;
    if name.as_ref().is_some_and(|name| name.len() > LONGEST) {
        return Err(refused("the name is too long"));
    }
    let filter = area.events(&ready)?;
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
    let (mut counts, mut events) = (BTreeMap::<String, u64>::new(), Vec::new());
    let ended = each(recording, filter, &mut |progress| job.watch(progress), &mut |event| {
        let Each { name: of, time, cpu, tid, .. } = event;
        if name.is_some_and(|name| name != of) {
            return ControlFlow::Continue(());
        }
        match counts.get_mut(of) {
            Some(count) => *count += 1,
            None => drop(counts.insert(of.to_owned(), 1)),
        }
        if name.is_some() && events.len() < LISTED {
            let (cpu, tid) = (cpu.map(|cpu| cpu.to_string()), tid.map(|tid| tid.to_string()));
            events.push(Listed { at: time - begin, cpu, tid });
        }
        ControlFlow::Continue(())
    });
    job.go_on()?;
    let failure = ended.err();
    let mut names: Vec<Class> = counts.into_iter().map(|(name, count)| Class { name, count }).collect();
    names.sort_by_key(|class| Reverse(class.count));
    let left_out = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    Ok(Answer { names, left_out, failure, events })
}
