//! The index of a recording that was followed while it was made is byte by byte the one that is made of it
//! afterwards, in whatever order its parts appear.

#[path = "certain/mod.rs"]
mod certain;

use certain::same_so_far;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tracewing_index::{Cache, Index, Look};
use tracewing_trace::Recording;

const DESCRIPTION: &str = "tracewing.json";

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings/server")
}

/// Copies a file of the stored recording into one that is made. Each packet gets so many bytes of padding,
/// which take no space on the disk.
fn copy(part: &str, to: &Path, padding: u64) {
    let path = to.join(part);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // At once, as recorders write packets.
    let temporary = to.join("part.unfinished");
    if padding == 0 || part.ends_with("metadata") {
        fs::copy(stored().join(part), &temporary).unwrap();
    } else {
        pad(&fs::read(stored().join(part)).unwrap(), padding, &temporary);
    }
    fs::rename(temporary, path).unwrap();
}

fn pad(stream: &[u8], padding: u64, to: &Path) {
    let file = fs::File::create(to).unwrap();
    let (mut at, mut end) = (0, 0);
    while at < stream.len() {
        // In bits, after the packet's header, its times and the size of its content.
        let place = at + 56;
        let size = u64::from_le_bytes(*stream[place..].first_chunk().unwrap()) / 8;
        let mut packet = stream[at..at + size as usize].to_vec();
        packet[56..64].copy_from_slice(&((size + padding) * 8).to_le_bytes());
        file.write_all_at(&packet, end).unwrap();
        (at, end) = (at + size as usize, end + size + padding);
    }
    file.set_len(end).unwrap();
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
    let (before, _, after, is_anew) = follow_padded(groups, 0);
    (before, after, is_anew)
}

/// The same, with padding; also gives the index that was left, before the one that is made afterwards.
fn follow_padded(groups: &[&[&str]], padding: u64) -> (Index, Index, Index, bool) {
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
        group.into_iter().copied().flatten().for_each(|part| copy(part, &trace, padding));
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
    let left = followed.follow(&inputs, &mut watch).unwrap().expect("it has ended");
    let recording = Recording::open(&inputs).unwrap();
    let made = Cache::new(Some(&place.path().join("made"))).unwrap();
    made.make(&recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let bytes = |cache: &Cache| fs::read(cache.path_of(&recording)).unwrap();
    assert!(padding > 0 || bytes(&followed) == bytes(&made), "the indexes differ");
    let folder = fs::read_dir(place.path().join("followed")).unwrap();
    assert_eq!(folder.count(), 1, "files are left");
    let after = made.find(&recording).expect("it was made just now");
    (last.expect("it has grown"), left, after, is_anew)
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

/// Of a large recording, the index that was made while it was has no checkpoints, and says so: it is made
/// anew where they are needed.
#[test]
fn an_index_without_checkpoints_says_so() {
    let (_, left, made, is_anew) = follow_padded(&[&[KERNEL, USER].concat()], 64 << 20);
    assert!(!is_anew);
    assert_eq!((left.tail().lacks_checkpoints, left.checkpoints().is_some()), (true, false));
    assert_eq!((made.tail().lacks_checkpoints, made.checkpoints().is_some()), (false, true));
    // All else is the same.
    let length = made.tail().length;
    assert_eq!((left.tail().length, left.tail().events), (length, made.tail().events));
    assert_eq!(left.tail().states, made.tail().states);
    let rows = |index: &Index| index.rows().map(|(id, row)| (id, row.kind)).collect::<Vec<_>>();
    assert_eq!(rows(&left), rows(&made));
    for (id, _) in made.rows() {
        let of = |index: &Index| index.statistics(id, tracewing_units::Duration::ZERO, length).unwrap();
        assert_eq!(of(&left), of(&made));
    }
}
