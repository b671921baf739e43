//! Indexes of the stored recordings: statistics of windows are those of the analysis of threads, to the
//! nanosecond.

mod slow;

use slow::{Lives, Sums, of_thread, sums_of_threads};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tracewing_analysis::Threads;
use tracewing_index::{Cache, Index, Row, RowKind};
use tracewing_timeline::Class;
use tracewing_trace::{Filter, Recording, TimePoint};
use tracewing_units::{Duration, Timestamp};

fn stored() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings");
    let folders = fs::read_dir(folder).unwrap();
    let mut folders: Vec<_> = folders.map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    assert!(folders.len() >= 5);
    folders
}

/// The index of a recording, made anew.
fn index_of(recording: &Recording, folder: &Path) -> Index {
    let cache = Cache::new(Some(folder)).unwrap();
    cache.make(recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let index = cache.find(recording).unwrap();
    index.check().unwrap();
    index
}

/// What the index says of all threads, or tasks, of a window; without those that the recording does not
/// follow.
fn found(index: &Index, tasks: bool, from: Duration, to: Duration) -> BTreeMap<u64, Vec<Sums>> {
    let mut found: BTreeMap<u64, Vec<Sums>> = BTreeMap::new();
    for (id, row) in index.rows() {
        let number = match row.kind {
            RowKind::Thread(tid) if !tasks => u64::from(tid.0.cast_unsigned()),
            RowKind::Task(task) if tasks => task.0,
            _ => continue,
        };
        if index.tail().is_partial && !row.is_followed {
            continue;
        }
        let sums = index.statistics(id, from, to).unwrap();
        let named = sums.into_iter().map(|(state, ns)| {
            let state = index.state(state).unwrap();
            (slow::key(state.class, &state.about), ns.as_ns())
        });
        found.entry(number).or_default().push(slow::summed(named));
    }
    slow::without_empty(found)
}

/// Times in the recording's length, evenly and from its beginning: the same in each run.
fn moments(length: Duration) -> impl Iterator<Item = (Duration, Duration)> {
    let end = length.as_ns() + 1;
    let mut state = 0x1234_5678_9abc_def1_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..24).map(move |_| {
        let (one, other) = (random() % end, random() % end);
        (Duration::from_ns(one.min(other)), Duration::from_ns(one.max(other)))
    })
}

#[test]
fn statistics_of_windows_are_those_of_the_analysis() {
    let (mut same, mut revised) = (0, 0);
    for path in stored() {
        let recording = Recording::open(&[&path]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let index = index_of(&recording, &folder.path().join("cache"));
        let (begin, length) = (index.tail().begin, index.tail().length);
        let mut whole = Lives::default();
        let ran = run(&recording, &Filter::default(), &mut whole);
        let windows = moments(length).flat_map(|(from, to)| [(from, to), (from, length)]);
        for (from, to) in windows.chain([(Duration::ZERO, length)]) {
            for tasks in [false, true] {
                let ours = found(&index, tasks, from, to);
                assert_eq!(
                    ours,
                    whole.sums(&ran, tasks, begin, (from, to)),
                    "{path:?} {from:?} {to:?} {tasks}"
                );
                let theirs = analysed(&recording, tasks, begin, (from, to));
                for (number, theirs) in theirs {
                    let is_same = ours.get(&number).is_some_and(|ours| slow::holds(ours, &theirs));
                    // No later event can show that a state was assumed wrongly.
                    assert!(is_same || to < length, "{path:?} {from:?} {number}: {theirs:?} {ours:?}");
                    *(if is_same { &mut same } else { &mut revised }) += 1;
                }
            }
        }
    }
    // What is not the same was revised by a later event: the analysis of the window does not know that.
    assert!(same > 20 * revised, "{same} are the same, {revised} are not");
}

fn run<A: tracewing_analysis::Analysis>(
    recording: &Recording,
    filter: &Filter,
    analysis: &mut A,
) -> tracewing_analysis::Ran {
    tracewing_analysis::run(recording, filter, analysis, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// What `tracewing threads --from --to` says.
fn analysed(
    recording: &Recording,
    tasks: bool,
    begin: Timestamp,
    (from, to): (Duration, Duration),
) -> BTreeMap<u64, Vec<Sums>> {
    let at = |time| Some(TimePoint::Absolute(begin + time));
    let filter = Filter { from: at(from), to: at(to), ..Filter::default() };
    let mut threads = Threads::new();
    let ran = run(recording, &filter, &mut threads);
    sums_of_threads(&threads.finish(&ran), tasks)
}

#[test]
fn cpus_do_what_their_threads_do() {
    let mut groups = 0;
    for path in stored() {
        let recording = Recording::open(&[&path]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let index = index_of(&recording, &folder.path().join("cache"));
        let length = index.tail().length;
        let (mut threads, mut cpus) = (Duration::ZERO, Duration::ZERO);
        for (id, row) in index.rows() {
            let sums = index.statistics(id, Duration::ZERO, length).unwrap();
            let running = sums.iter().filter_map(|(state, ns)| {
                let state = index.state(*state).unwrap();
                let counts = state.class.is_running() && (state.thread.is_some() || of_thread(row.kind));
                counts.then_some(*ns)
            });
            match row.kind {
                RowKind::Cpu(_) => cpus += running.sum::<Duration>(),
                RowKind::Thread(_) => threads += running.sum::<Duration>(),
                RowKind::Tasks(_) => {
                    let members = index.rows().filter(|(_, member)| member.group == Some(id));
                    let used: Vec<Duration> = members.map(|(_, member)| member.used).collect();
                    assert!(sums.is_empty() && !used.is_empty());
                    assert_eq!(row.used, used.into_iter().sum(), "{path:?} {}", row.name);
                    groups += 1;
                }
                RowKind::Process(_) | RowKind::Task(_) => {}
                RowKind::Calls(_)
                | RowKind::Spans(_)
                | RowKind::Events(_)
                | RowKind::Locks(_)
                | RowKind::Samples
                | RowKind::SystemCalls
                | RowKind::Counter(_) => assert!(row.is_part()),
            }
            assert!(sums.values().copied().sum::<Duration>() <= length);
        }
        // Where events contradict each other, two threads may seem to have one CPU.
        assert!(cpus <= threads && cpus * 100 >= threads * 99, "{path:?}: {cpus:?}, {threads:?}");
    }
    assert!(groups > 0, "no recording has tasks");
}

#[test]
fn a_state_has_a_name_and_a_row_its_process() {
    let (mut blocked, mut parts) = (0, 0);
    for path in stored() {
        let recording = Recording::open(&[&path]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let index = index_of(&recording, &folder.path().join("cache"));
        for state in index.tail().states.iter().filter(|state| state.thread.is_none()) {
            assert!(!state.name.is_empty());
            blocked += usize::from(state.class == Class::Blocked && state.name.starts_with("blocked on "));
        }
        for (_, row) in index.rows().filter(|(_, row)| row.is_part()) {
            if let RowKind::Counter(_) = row.kind {
                continue;
            }
            let parent = index.row(row.parent.unwrap());
            assert!(matches!(parent.kind, RowKind::Thread(_) | RowKind::Task(_)));
            assert_eq!(parent.process, row.process);
            parts += 1;
        }
        let has_process = |row: &Row| !matches!(row.kind, RowKind::Cpu(_)) && !row.is_part();
        for (_, row) in index.rows().filter(|(_, row)| has_process(row)) {
            let parent = row.parent.map(|parent| index.row(parent).kind);
            let is_process = matches!(row.kind, RowKind::Process(_));
            assert_eq!(parent, (!is_process).then_some(RowKind::Process(row.process)));
        }
    }
    assert!(blocked > 0 && parts > 0);
}
