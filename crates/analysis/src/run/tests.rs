//! Which thread decodes the events changes nothing.

use super::{Ran, run_apart, run_as};
use crate::analysis::{Analysis, Input, ReadApart};
use crate::critical_path::{CriticalPath, CriticalPaths, Target};
use crate::functions::{Calls, FunctionRead, FunctionReader};
use crate::locks::{LockRead, LockReader, LockUses};
use crate::sched::{SchedLatencies, Slices};
use crate::tasks::{Tasks, Thresholds};
use crate::threads::{Threads, ThreadsTable};
use std::fmt::Debug;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tracewing_trace::super_trace::{Change, Fold, Located, Pauses};
use tracewing_trace::{EventRef, Filter, Recording, ThreadPattern, TimePoint};
use tracewing_units::{Duration, Tid, Timestamp};

/// Recordings with switches, tasks, losses, and buffers that were overwritten.
pub(in crate::run) fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings");
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// All of the time, and parts of it.
fn filters() -> [Filter; 3] {
    let at = |ms: u64| Some(TimePoint::FromBegin(Duration::from_ns(ms * 1_000_000)));
    [
        Filter::default(),
        Filter { from: at(20), to: at(60), ..Filter::default() },
        Filter { to: at(5), ..Filter::default() },
    ]
}

/// Asserts that an analysis gives the same with the events of this thread as with those of another one.
fn same<A: Analysis, R: PartialEq + Debug>(
    path: &Path,
    filter: &Filter,
    new: impl Fn() -> A,
    finish: impl Fn(A, &Ran) -> R,
) {
    let recording = Recording::open(&[path]).unwrap();
    let [own, other] = [false, true].map(|ahead| {
        let mut analysis = new();
        let mut go_on = |_| ControlFlow::Continue(());
        let ran = run_as(&recording, filter, &mut analysis, ahead, &mut go_on).unwrap();
        let result = finish(analysis, &ran);
        assert!(ran.events > 0, "{}", path.display());
        // More names may be known, since those of a batch come at once.
        (result, format!("{:?}", Ran { names: Default::default(), ..ran }))
    });
    assert_eq!(own, other, "{}", path.display());
}

#[test]
fn another_thread_may_decode() {
    for path in recordings() {
        for filter in &filters() {
            same(&path, filter, Threads::new, Threads::finish);
            same(&path, filter, || Slices::new(SchedLatencies::default()), |slices, _| format!("{slices:?}"));
            same(&path, filter, || Tasks::new(Thresholds::default(), false), |tasks, _| tasks.finish());
        }
    }
}

/// Functions and locks, read from events with their places, or without them.
#[derive(Debug, Default)]
struct Uses {
    functions: FunctionReader,
    readers: LockReader,
    calls: Calls,
    locks: LockUses,
    found: Vec<String>,
}

impl Fold for Uses {
    fn change(&mut self, _: Change<'_>) {}
}

impl Analysis for Uses {
    const EARLIER: bool = true;

    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Earlier(seen) => {
                let read = self.functions.read(seen.event);
                self.located_earlier(Some(&mut (read, None)), &seen.located());
            }
            Input::Event(seen) => {
                let mut read = (self.functions.read(seen.event), self.readers.read(seen.event));
                self.located(Some(&mut read), &seen.located());
            }
            Input::Name { .. } | Input::Explained(_) => {}
            other => self.found.push(format!("{other:?}")),
        }
    }
}

impl ReadApart for Uses {
    type Reader = (FunctionReader, LockReader);
    type Read = (Option<FunctionRead>, Option<LockRead>);

    fn read((functions, locks): &mut Self::Reader, event: &EventRef<'_>) -> Option<Self::Read> {
        let read = (functions.read(event), locks.read(event));
        (read.0.is_some() || read.1.is_some()).then_some(read)
    }

    fn located(&mut self, read: Option<&mut Self::Read>, at: &Located<'_>) {
        let (function, lock) = read.map_or((None, None), std::mem::take);
        let found = &mut self.found;
        found.push(format!("{:?} {:?}", at.place, at.activity));
        self.calls.located(function, at, &mut |thread, time, call| {
            found.push(format!("{thread:?} {time:?} {call:?}"));
        });
        if let Some(lock) = lock {
            self.locks.located(lock, at, &mut |lock| found.push(format!("{lock:?}")));
        }
    }

    fn located_earlier(&mut self, read: Option<&mut Self::Read>, at: &Located<'_>) {
        let (function, _) = read.map_or((None, None), std::mem::take);
        self.found.push(format!("earlier: {:?} {:?}", at.place, at.activity));
        self.calls.located_earlier(function, at);
    }
}

#[test]
fn another_thread_may_read_events() {
    for path in recordings() {
        let recording = Recording::open(&[&path]).unwrap();
        let [own, other] = [false, true].map(|ahead| {
            let (mut uses, mut go_on) = (Uses::default(), |_| ControlFlow::Continue(()));
            let ran = run_apart(&recording, &mut uses, ahead, Pauses::none(), &mut go_on).unwrap();
            (uses.found, format!("{:?}", Ran { names: Default::default(), ..ran }))
        });
        assert!(own.0.len() > 100, "{}", path.display());
        assert!(own == other, "{}", path.display());
    }
}

/// The paths of threads and tasks up to several times, with blocks of so many bytes.
fn paths_of(path: &Path, block: usize) -> Vec<Result<CriticalPath, String>> {
    let recording = Recording::open(&[path]).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let mut threads = Threads::new();
    let ran = run_as(&recording, &Filter::default(), &mut threads, false, &mut go_on).unwrap();
    let ThreadsTable { threads, user_threads, .. } = threads.finish(&ran);
    let lwps = threads.iter().map(|lwp| Filter { tids: vec![lwp.tid], ..Filter::default() });
    let tasks = user_threads.iter().filter_map(|task| {
        let pattern = ThreadPattern::new(&format!("{}/{}", task.process?, task.thread?));
        Some(Filter { threads: vec![pattern], ..Filter::default() })
    });
    let targets: Vec<_> = lwps.take(8).chain(tasks.take(8)).collect();
    let fifth = Duration::from_ns(ran.duration_ns().as_ns() / 5);
    let ends: Vec<Timestamp> =
        std::iter::successors(Some(ran.begin_ns + fifth), |at| Some(*at + fifth)).take(4).collect();
    let mut path_of = |(filter, to): (&Filter, Timestamp)| {
        let target = Target::new(filter).unwrap();
        let mut paths = CriticalPaths::of_blocks(target, Cursor::new(Vec::new()), block);
        let ran = run_as(&recording, &Filter::default(), &mut paths, false, &mut go_on).unwrap();
        paths.path(None, Some(to), &ran.names, &mut || true).map_err(|error| error.to_string())
    };
    targets.iter().flat_map(|target| ends.iter().map(move |to| (target, *to))).map(&mut path_of).collect()
}

#[test]
fn a_critical_path_needs_no_block_that_is_passed_over() {
    for path in recordings() {
        assert_eq!(paths_of(&path, 64), paths_of(&path, usize::MAX), "{}", path.display());
    }
}

/// The path of the thread that ran longest.
fn path_of(path: &Path, ahead: bool) -> Result<CriticalPath, String> {
    let recording = Recording::open(&[path]).unwrap();
    let mut go_on = |_| ControlFlow::Continue(());
    let mut threads = Threads::new();
    let ran = run_as(&recording, &Filter::default(), &mut threads, false, &mut go_on).unwrap();
    let tids: Vec<Tid> = threads.finish(&ran).threads.iter().take(1).map(|thread| thread.tid).collect();
    let target = Target::new(&Filter { tids, ..Filter::default() }).map_err(|error| error.to_string())?;
    let mut paths = CriticalPaths::new(target, Cursor::new(Vec::new()));
    let ran = run_as(&recording, &Filter::default(), &mut paths, ahead, &mut go_on).unwrap();
    paths.path(None, None, &ran.names, &mut || true).map_err(|error| error.to_string())
}

#[test]
fn a_critical_path_is_the_same_if_another_thread_decodes() {
    let all: Vec<_> = recordings().iter().map(|path| [path_of(path, false), path_of(path, true)]).collect();
    assert!(all.iter().all(|[own, other]| own == other));
    assert!(all.iter().any(|[own, _]| own.as_ref().is_ok_and(|path| path.steps.len() > 10)));
}
