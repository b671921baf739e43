//! `held` starts to find where in the programs some locks of an area were taken: for each address the place
//! of the longest hold, as `tracewing locks` prints it.

use super::area::Area;
use super::ask::{Refusal, parsed, ready, refused};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use tracewing_analysis::{Bins, Frame, Group, Locks, Subject};
use tracewing_programs::symbols::Symbols;
use tracewing_trace::{Filter, Recording};
use tracewing_units::Duration;

/// Places by the address of the lock: several if processes have locks at the same address.
type Places = BTreeMap<String, BTreeSet<String>>;

/// Locks of a question, at most: so many a table has.
const MOST: usize = 1000;

/// What is asked: an area, and the addresses of locks as they are printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    from: Duration,
    to: Duration,
    rows: Option<Vec<u32>>,
    locks: BTreeSet<String>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let Asked { from, to, rows, locks } = parsed(body)?;
    if locks.len() > MOST {
        return Err(refused("too many locks at once"));
    }
    let area = Area { from, to, rows };
    let (filter, recording) = (area.events(&*ready(viewed)?)?, viewed.recording());
    jobs::start(viewed, move |job| find(job, &recording, &filter, &locks))
}

fn find(
    job: &Job,
    recording: &Recording,
    filter: &Filter,
    asked: &BTreeSet<String>,
) -> Result<Places, String> {
    let mut locks = Locks::new(Group::Lock, Bins::default());
    let ran = tracewing_analysis::run(recording, filter, &mut locks, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    let (mut symbols, mut places) = (Symbols::new(), Places::new());
    for row in locks.finish(&ran).rows {
        job.go_on()?;
        let (Subject::Lock(lock) | Subject::Futex(lock)) = row.subject else { continue };
        let lock = format!("{lock:#x}");
        // Symbols take longer than all the rest.
        if !asked.contains(&lock) {
            continue;
        }
        let place = |frame: &Frame| frame.text(|path, address| symbols.call(path, address));
        let chain = row.frames.iter().map(place).collect::<Vec<_>>().join(" < ");
        if !chain.is_empty() {
            places.entry(lock).or_default().insert(chain);
        }
    }
    Ok(places)
}
