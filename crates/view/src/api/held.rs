//! `held` starts to find where in the programs the locks of an area were taken: for each address the place
//! of the longest hold, as `tracewing locks` prints it.

use super::area::Area;
use super::ask::{Refusal, parsed, ready};
use super::jobs;
use crate::jobs::Job;
use crate::recording::Viewed;
use crate::reply::Reply;
use std::collections::{BTreeMap, BTreeSet};
use tracewing_analysis::{Bins, Frame, Group, Locks, Subject};
use tracewing_programs::symbols::Symbols;
use tracewing_trace::{Filter, Recording};

/// Places by the address of the lock: several if processes have locks at the same address.
type Places = BTreeMap<String, BTreeSet<String>>;

pub(super) fn start(viewed: &Viewed, body: &[u8]) -> Result<Reply, Refusal> {
    let area: Area = parsed(body)?;
    let (filter, recording) = (area.events(&*ready(viewed)?)?, viewed.recording());
    jobs::start(viewed, move |job| find(job, &recording, &filter))
}

fn find(job: &Job, recording: &Recording, filter: &Filter) -> Result<Places, String> {
    let mut locks = Locks::new(Group::Lock, Bins::default());
    let ran = tracewing_analysis::run(recording, filter, &mut locks, &mut |progress| job.watch(progress));
    let ran = ran.map_err(|error| error.to_string())?;
    let (mut symbols, mut places) = (Symbols::new(), Places::new());
    for row in locks.finish(&ran).rows {
        job.go_on()?;
        let (Subject::Lock(lock) | Subject::Futex(lock)) = row.subject else { continue };
        let place = |frame: &Frame| frame.text(|path, address| symbols.call(path, address));
        let chain = row.frames.iter().map(place).collect::<Vec<_>>().join(" < ");
        if !chain.is_empty() {
            places.entry(format!("{lock:#x}")).or_default().insert(chain);
        }
    }
    Ok(places)
}
