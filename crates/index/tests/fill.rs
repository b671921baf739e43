//! An index that is shown while it is made is byte by byte the one that is made at once, and what was certain
//! of it before is what it has in the end.

#[path = "certain/mod.rs"]
mod certain;
#[path = "../../trace/tests/common/mod.rs"]
mod common;
#[path = "../../trace/tests/common/switches.rs"]
mod switches;

use certain::same_so_far;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration as Pause;
use switches::{SLEEPER, write_switches};
use tracewing_index::{Cache, Index, Look, RowKind};
use tracewing_trace::Recording;
use tracewing_units::{Duration, Tid};

/// Switches on each CPU: many times as many as are read between two looks.
const COUNT: u64 = 60_000;
/// Longer than the time between two indexes of now.
const PAUSE: Pause = Pause::from_millis(300);

/// Fills the index of a recording in a folder. Gives the recording, the indexes before the last one, and the
/// last one.
fn fill(folder: &Path) -> (Recording, Vec<Index>, Index) {
    write_switches(&folder.join("trace"), COUNT);
    filled(folder)
}

fn filled(folder: &Path) -> (Recording, Vec<Index>, Index) {
    let recording = Recording::open(&[folder.join("trace")]).unwrap();
    let mut grown = Vec::new();
    let mut watch = |look| {
        match look {
            Look::Grown(index, _) => grown.push(*index),
            // The next index of now is due then.
            Look::Reads(_) => std::thread::sleep(PAUSE),
            Look::Waits => {}
        }
        ControlFlow::Continue(())
    };
    let cache = Cache::new(Some(&folder.join("filled"))).unwrap();
    let last = cache.fill(&recording, &mut watch).unwrap().expect("nothing has stopped it");
    (recording, grown, last)
}

/// Checks that the index that was filled is the one that is made at once, and that nothing else is left.
fn is_that_of_make(folder: &Path, recording: &Recording) -> Index {
    let made = Cache::new(Some(&folder.join("made"))).unwrap();
    made.make(recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let cache = Cache::new(Some(&folder.join("filled"))).unwrap();
    let bytes = |cache: &Cache| fs::read(cache.path_of(recording)).unwrap();
    assert!(bytes(&cache) == bytes(&made), "the indexes differ");
    assert_eq!(fs::read_dir(folder.join("filled")).unwrap().count(), 1, "files are left");
    cache.find(recording).expect("it is of this recording")
}

#[test]
fn each_index_is_certain_of_what_the_last_one_has() {
    let folder = tempfile::tempdir().unwrap();
    let (recording, grown, last) = fill(folder.path());
    is_that_of_make(folder.path(), &recording);
    last.check().unwrap();
    assert!(grown.len() > 3, "{}", grown.len());
    assert!(grown.windows(2).all(|two| two[0].tail().length < two[1].tail().length));
    for index in &grown {
        index.check().unwrap();
        assert!(index.tail().length < last.tail().length);
        assert_eq!(index.tail().begin, last.tail().begin);
        same_so_far(index, &last);
        // All CPUs are known up to the same time, and what lasts then is not certain.
        let known = index.tail().length;
        for (_, row) in index.rows().filter(|(_, row)| matches!(row.kind, RowKind::Cpu(_))) {
            assert!(row.certain <= known && known - row.certain < Duration::from_ns(2 * switches::PERIOD));
        }
        let sleeper = index.rows().find(|(_, row)| row.kind == RowKind::Thread(Tid(SLEEPER)));
        assert!(sleeper.expect("it has slept since the beginning").1.certain < Duration::from_ns(100_000));
    }
}

#[test]
fn one_that_is_stopped_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write_switches(&folder.path().join("trace"), COUNT);
    let recording = Recording::open(&[folder.path().join("trace")]).unwrap();
    let cache = Cache::new(Some(&folder.path().join("filled"))).unwrap();
    for is_last in
        [|look: &Look| matches!(look, Look::Reads(_)), |look: &Look| matches!(look, Look::Grown(..))]
    {
        let mut watch = |look| {
            std::thread::sleep(PAUSE);
            if is_last(&look) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert!(cache.fill(&recording, &mut watch).unwrap().is_none());
        assert!(cache.find(&recording).is_none());
        assert_eq!(fs::read_dir(folder.path().join("filled")).unwrap().count(), 0, "files are left");
    }
}

#[test]
fn a_damaged_recording_is_filled_as_far_as_it_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    write_switches(&folder.path().join("trace"), COUNT);
    let stream = folder.path().join("trace/kernel_1");
    let size = fs::metadata(&stream).unwrap().len();
    fs::File::options().write(true).open(&stream).unwrap().set_len(size / 2 + 77).unwrap();
    let (recording, grown, last) = filled(folder.path());
    assert!(last.tail().is_cut_off && !grown.is_empty());
    is_that_of_make(folder.path(), &recording);
}
