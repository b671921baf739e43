//! Which threads read a recording and make its index changes none of its bytes, checkpoints included.

use super::{IDENTITY, opened};
use crate::make::make_as;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tracewing_analysis::profile::{Frames, Image, Profile};
use tracewing_analysis::{Analysis, Bins, Functions, Group, Locks, Ran, run};
use tracewing_trace::super_trace::{Checkpoint, Pauses};
use tracewing_trace::{Checkpoints, Filter, Progress, Recording, TimePoint};
use tracewing_units::Timestamp;

/// Recordings with tasks, functions, locks, programs' own events, losses, and buffers that were overwritten.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings");
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// Times at which a recording pauses.
fn times(recording: &Recording) -> Vec<Timestamp> {
    let (begin, end) = (recording.begin().unwrap(), recording.end().unwrap());
    (1..10).map(|part| begin + (end - begin) / 10 * part).collect()
}

/// The index of a recording, and what is known of that.
fn made(path: &Path, is_shared: bool) -> (Vec<u8>, u64, u64) {
    let (recording, mut bytes) = (Recording::open(&[path]).unwrap(), Vec::new());
    let (pauses, scratch) = (Pauses::at(times(&recording)), std::env::temp_dir());
    let mut go_on = |_: Progress| ControlFlow::Continue(());
    let place = (&mut bytes as &mut (dyn std::io::Write + Send), path);
    let made = make_as(&recording, IDENTITY, place, &scratch, (is_shared, pauses), &mut go_on).unwrap();
    (bytes, made.ran.events, made.rows)
}

#[test]
fn an_index_made_by_three_threads_has_the_same_bytes() {
    let all = recordings();
    assert!(all.len() >= 5);
    for path in all {
        let (here, events, rows) = made(&path, false);
        assert!(events > 0 && rows > 0);
        assert!(made(&path, true) == (here, events, rows), "{}", path.display());
    }
}

#[test]
fn readers_of_a_recording_continue_from_its_index() {
    for path in recordings() {
        let (bytes, recording) = (made(&path, true).0, Recording::open(&[&path]).unwrap());
        let kept = opened(&bytes).unwrap().unwrap().checkpoints().unwrap();
        let (times, end) = (times(&recording), recording.end().unwrap());
        assert!(kept.places.len() >= 5, "{}: {:?}", path.display(), kept.places);
        for place in &kept.places {
            assert!(times.contains(&place.until));
            assert_eq!(kept.before(place.until.next()).map(|bytes| bytes.len() as u64), Some(place.length));
            let before = kept.places.iter().filter(|other| other.until < place.until).count();
            assert_eq!(kept.before(place.until).is_some(), before > 0);
        }
        let last = kept.places.last().unwrap().until;
        recording.use_checkpoints(Box::new(kept));
        assert_eq!(Checkpoint::before(&recording, end).map(|checkpoint| checkpoint.until), Some(last));
    }
}

/// What analyses of locks, functions and samples give of a recording from a time on.
fn analysed(recording: &Recording, from: Timestamp) -> [String; 3] {
    fn ran<A: Analysis>(recording: &Recording, from: Timestamp, analysis: &mut A) -> Ran {
        let filter = Filter { from: Some(TimePoint::Absolute(from)), ..Filter::default() };
        run(recording, &filter, analysis, &mut |_| ControlFlow::Continue(())).unwrap()
    }
    let (mut locks, mut functions) = (Locks::new(Group::Lock, Bins::Log), Functions::new());
    let mut profile = Profile::new();
    let of_locks = ran(recording, from, &mut locks);
    let table = locks.finish(&of_locks);
    let lines = table.rows.iter().map(|row| {
        let of = &row.account;
        let (counts, owner) = ((of.acquired, of.waits, of.holds), (of.owner(), &row.owner_name));
        format!("{:?} {:?} {counts:?} {owner:?} {:?}", row.process, row.subject, row.frames)
    });
    let edges = table.graph.edges.iter().map(|edge| format!("{edge:?}"));
    let mut lines: Vec<_> = lines.chain(edges).collect();
    lines.sort_unstable();
    let of_functions = ran(recording, from, &mut functions);
    let functions = functions.finish(&of_functions, &mut |function| format!("{function:?}"));
    let of_profile = ran(recording, from, &mut profile);
    let mut name = |image: &Image, offset: u64| Frames {
        name: Some(format!("{image:?} {offset}")),
        ..Frames::default()
    };
    let samples = profile.finish(&of_profile).name(&mut name).folded();
    let counts = (table.incomplete, table.forgotten_holders, table.graph.cycles.len());
    [format!("{lines:?} {counts:?}"), format!("{functions:?}"), format!("{samples:?}")]
}

#[test]
fn analyses_continue_from_the_index_of_a_recording() {
    for path in recordings() {
        let [with, without] = [(); 2].map(|()| Recording::open(&[&path]).unwrap());
        let kept = opened(&made(&path, true).0).unwrap().unwrap().checkpoints().unwrap();
        let times: Vec<_> = kept.places.iter().map(|place| place.until.next()).collect();
        with.use_checkpoints(Box::new(kept));
        for from in times {
            let parts = Checkpoint::before(&with, from).unwrap().known.parts;
            assert!(Locks::new(Group::Lock, Bins::Log).take(&parts), "{}: {from:?}", path.display());
            assert!(Functions::new().take(&parts) && Profile::new().take(&parts));
            let [found, expected] = [&with, &without].map(|recording| analysed(recording, from));
            assert_eq!(found, expected, "{}: {from:?}", path.display());
        }
    }
}

#[test]
fn a_damaged_checkpoint_is_none() {
    let bytes = made(&recordings()[0], false).0;
    let kept = opened(&bytes).unwrap().unwrap().checkpoints().unwrap();
    let place = kept.places[0];
    for at in (place.offset..place.offset + place.length).step_by(53) {
        let mut other = bytes.clone();
        other[at as usize] ^= 4;
        let kept = opened(&other).unwrap().unwrap().checkpoints().unwrap();
        assert_eq!(kept.before(place.until.next()), None);
    }
}
