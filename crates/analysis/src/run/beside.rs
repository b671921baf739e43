//! Decodes on one thread and folds on another.
//!
//! Decoding and folding take about the same time. Parts go through a channel of bounded size, so that memory
//! does not depend on the recording; what was read comes back, so that it is allocated once. A part is large
//! against what handing it over costs, and all that are under way fit the caches.

use super::Run;
use super::decoded::{Decoding, Part, Then};
use crate::analysis::{Analysis, Input};
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use tracewing_trace::super_trace::Name;
use tracewing_trace::{Progress, Recording};

/// Events of a part.
const EVENTS: usize = 1 << 10;

/// How many parts may wait.
const WAITING: usize = 4;

/// Parts between two looks at how far it is.
const PERIOD: u64 = super::PERIOD / EVENTS as u64;

/// Bytes of a recording that takes longer than the start of a thread, by far.
const LEAST: u64 = 1 << 20;

/// Whether a second thread makes reading faster.
pub(super) fn is_worth_it(recording: &Recording) -> bool {
    recording.bytes() >= LEAST && thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1)
}

/// Reads all events until `run` needs no more.
pub(super) fn read<A: Analysis>(
    recording: &Recording,
    run: &mut Run<'_, A>,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) {
    read_parts(recording, run, watch, EVENTS);
}

/// The same in parts of so many events.
fn read_parts<A: Analysis>(
    recording: &Recording,
    run: &mut Run<'_, A>,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    events: usize,
) {
    let (parts, decoded) = mpsc::sync_channel(WAITING);
    let (used, unused) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || decode(recording, events, &parts, &unused));
        let total = recording.bytes();
        for (count, part) in (1_u64..).zip(decoded) {
            let progress = Progress { done: part.bytes, total };
            if count % PERIOD == 0 && run.is_over(progress, watch) || !fold(recording, run, &part) {
                break;
            }
            match part.then {
                Then::Failed(error) => run.ran.failure = Some(error),
                // It may have ended meanwhile.
                _ => drop(used.send(part)),
            }
        }
    });
}

/// Decodes until all is decoded, or no more is needed.
fn decode(recording: &Recording, events: usize, parts: &SyncSender<Part>, unused: &Receiver<Part>) {
    let mut decoding = Decoding::of(recording);
    loop {
        let mut part = unused.try_recv().unwrap_or_default();
        decoding.next(&mut part, events);
        let is_last = matches!(part.then, Then::End | Then::Failed(_));
        if parts.send(part).is_err() || is_last {
            return;
        }
    }
}

/// Takes a part; false if no more is needed.
fn fold<A: Analysis>(recording: &Recording, run: &mut Run<'_, A>, part: &Part) -> bool {
    for text in &part.names {
        let name = Name(run.filtered.known_names() as u32);
        run.filtered.input(Input::Name { name, text });
    }
    if !part.events.iter().all(|activity| run.happens(activity.as_ref(), None)) {
        return false;
    }
    match &part.then {
        Then::More | Then::Failed(_) => {}
        Then::Lost(missing) => run.lost(missing),
        Then::End => run.ends(recording),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;
    use crate::run::{Ran, read};
    use crate::{Tasks, Threads, Thresholds};
    use std::collections::BTreeMap;
    use std::path::Path;
    use tracewing_trace::{Filter, TimePoint};
    use tracewing_units::Duration;

    type Way<'w, A> = &'w dyn Fn(&Recording, &mut Run<'_, A>);

    fn ran<A: Analysis>(recording: &Recording, filter: &Filter, analysis: &mut A, way: Way<'_, A>) -> Ran {
        let mut run = Run::new(recording, filter, analysis).unwrap();
        way(recording, &mut run);
        run.finish()
    }

    /// One thread finds the same as two, in parts of few events and of many.
    fn is_the_same<A: Analysis>(
        recording: &Recording,
        filter: &Filter,
        new: impl Fn() -> A,
        table: impl Fn(A, &Ran) -> String,
    ) {
        let found = |way: Way<'_, A>| {
            let mut analysis = new();
            let mut ran = ran(recording, filter, &mut analysis, way);
            let table = table(analysis, &ran);
            // Those of events after the range may be known, too.
            ran.names = Names::default();
            format!("{ran:?} {table}")
        };
        let go_on = |_: Progress| ControlFlow::Continue(());
        let whole = found(&|recording, run| read(recording, run, &mut { go_on }));
        for events in [1, 7, EVENTS] {
            let parts = found(&|recording, run| read_parts(recording, run, &mut { go_on }, events));
            assert!(whole == parts, "in parts of {events} events: {parts}, not {whole}");
        }
    }

    /// Stored recordings, some with losses, overwritten buffers and tasks.
    #[test]
    fn two_threads_find_what_one_finds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings");
        let mut lost = 0;
        for name in ["clerks", "lossy", "pipeline", "server", "snapshot", "system"] {
            let recording = Recording::open(&[folder.join(name)]).unwrap();
            let [from, to] =
                [20_000_000, 200_000_000].map(|ns| Some(TimePoint::FromBegin(Duration::from_ns(ns))));
            let part = Filter { from, to, ..Filter::default() };
            for filter in [Filter::default(), part] {
                is_the_same(&recording, &filter, Threads::new, |threads, ran| {
                    let mut table = threads.finish(ran);
                    let dumped: BTreeMap<_, _> = table.dumped.drain().collect();
                    format!("{table:?} {dumped:?}")
                });
                let tasks = || Tasks::new(Thresholds::default(), false);
                is_the_same(&recording, &filter, tasks, |tasks, _| format!("{:?}", tasks.finish()));
            }
            lost += ran(&recording, &Filter::default(), &mut Threads::new(), &|recording, run| {
                read(recording, run, &mut |_| ControlFlow::Continue(()));
            })
            .lost_events;
        }
        assert!(lost > 0);
    }
}
