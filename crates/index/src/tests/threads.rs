//! Which threads read a recording and make its index changes none of its bytes.

use crate::format::Identity;
use crate::make::make_as;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use tracewing_trace::{Progress, Recording};

/// Recordings with tasks, functions, locks, programs' own events, losses, and buffers that were overwritten.
fn recordings() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings");
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// The index of a recording, and what is known of that.
fn made(path: &Path, is_shared: bool) -> (Vec<u8>, u64, u64) {
    let (recording, mut bytes) = (Recording::open(&[path]).unwrap(), Vec::new());
    let mut go_on = |_: Progress| ControlFlow::Continue(());
    let place = (&mut bytes as &mut (dyn std::io::Write + Send), path);
    let made = make_as(&recording, Identity(7), place, &std::env::temp_dir(), is_shared, &mut go_on).unwrap();
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
