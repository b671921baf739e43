//! The index of a recording that was followed while it was made is byte by byte the one that is made of it
//! afterwards, in whatever order its parts appear.

#[path = "certain/mod.rs"]
mod certain;

use certain::same_so_far;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tracewing_index::{Cache, Index, Look};
use tracewing_trace::Recording;

const DESCRIPTION: &str = "tracewing.json";

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings/server")
}

/// Copies a file of the stored recording into one that is made.
fn copy(part: &str, to: &Path) {
    let path = to.join(part);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // At once, as recorders write packets.
    let temporary = to.join("part.unfinished");
    fs::copy(stored().join(part), &temporary).unwrap();
    fs::rename(temporary, path).unwrap();
}

fn describe(state: &str, to: &Path) {
    let text = fs::read_to_string(stored().join(DESCRIPTION)).unwrap();
    let text = text.replace(r#""state": "complete""#, &format!(r#""state": "{state}""#));
    let temporary = to.join("description.unfinished");
    fs::write(&temporary, text).unwrap();
    fs::rename(temporary, to.join(DESCRIPTION)).unwrap();
}

/// Follows a recording to which the groups of files are added one after the other, each when the index has
/// all before it. Gives the last index before the recording ends, and that of the complete recording; and
/// whether this was made anew since something came too late.
fn follow(groups: &[&[&str]]) -> (Index, Index, bool) {
    let place = tempfile::tempdir().unwrap();
    let trace = place.path().join("trace");
    fs::create_dir(&trace).unwrap();
    describe("recording", &trace);
    // As a recorder does that lives.
    let lock = fs::File::open(&trace).unwrap();
    lock.lock().unwrap();
    let mut groups = groups.iter();
    let mut add = || {
        let group = groups.next();
        group.into_iter().copied().flatten().for_each(|part| copy(part, &trace));
        group.is_some()
    };
    assert!(add());
    let (mut last, mut has_ended, mut is_anew) = (None, false, false);
    let inputs = [trace.clone()];
    let mut watch = |look| {
        match look {
            Look::Grown(index, _) => {
                assert!(!has_ended, "nothing is open any more");
                index.check().unwrap();
                last = Some(*index);
                if !add() {
                    describe("complete", &trace);
                    has_ended = true;
                }
            }
            Look::Reads(progress) => is_anew |= has_ended && progress.done == 0,
            Look::Waits => {}
        }
        ControlFlow::Continue(())
    };
    let followed = Cache::new(Some(&place.path().join("followed"))).unwrap();
    followed.follow(&inputs, &mut watch).unwrap().expect("it has ended");
    let recording = Recording::open(&inputs).unwrap();
    let made = Cache::new(Some(&place.path().join("made"))).unwrap();
    made.make(&recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let bytes = |cache: &Cache| fs::read(cache.path_of(&recording)).unwrap();
    assert!(bytes(&followed) == bytes(&made), "the indexes differ");
    let folder = fs::read_dir(place.path().join("followed")).unwrap();
    assert_eq!(folder.count(), 1, "files are left");
    (last.expect("it has grown"), made.find(&recording).expect("it was made just now"), is_anew)
}

const KERNEL: [&str; 3] = ["kernel/metadata", "kernel/channel_0", "kernel/channel_1"];
const USER: [&str; 3] = ["user/metadata", "user/uid0_0", "user/uid0_1"];

#[test]
fn all_streams_at_once() {
    let (before, after, _) = follow(&[&[KERNEL, USER].concat()]);
    same_so_far(&before, &after);
}

#[test]
fn a_stream_that_comes_too_late() {
    let (.., is_anew) = follow(&[&[KERNEL[0], KERNEL[1], USER[0], USER[1], USER[2]], &[KERNEL[2]]]);
    assert!(is_anew, "it was not noticed");
}
