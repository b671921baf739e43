//! `held` starts to find where in the programs some locks of an area were taken: for each address the place
//! of the longest hold, as `tracewing locks` prints it.

use super::area::of_area;
use super::ask::{Refusal, ready, refused};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use tracewing_analysis::{Bins, Frame, Group, Locks, Row, Subject};
use tracewing_programs::symbols::Symbols;
use tracewing_trace::{Filter, Recording};

/// Places by the address of the lock: several if processes have locks at the same address.
pub(super) type Places = BTreeMap<String, BTreeSet<String>>;

/// Locks of a question, at most: so many a table has.
const MOST: usize = 1000;

/// What is asked: an area, and the addresses of locks as they are printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    locks: BTreeSet<String>,
}

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let ready = ready(viewed)?;
    let (area, Asked { locks }) = of_area(&ready, body)?;
    if locks.len() > MOST {
        return Err(refused("too many locks at once"));
    }
    let (filter, recording) = (area.events(&ready)?, viewed.recording());
    let place = |row: &Row| row.frames.first().cloned();
    let is_asked = move |lock: &str| locks.contains(lock);
    jobs::start(viewed, move |job| places(job, (&recording, &filter), is_asked, place))
}

/// The places of some locks in what a filter lets through.
pub(super) fn places(
    job: &Job,
    (recording, filter): (&Recording, &Filter),
    is_asked: impl Fn(&str) -> bool,
    place: impl Fn(&Row) -> Option<Frame>,
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
        let Some(place) = place(&row).filter(|_| is_asked(&lock)) else { continue };
        let text = place.text(|path, address| symbols.call(path, address));
        places.entry(lock).or_default().insert(text);
    }
    Ok(places)
}
