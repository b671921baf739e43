//! Locks of two runs are compared by the place where they are held, since their addresses differ.

use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use crate::compare::{result_of, tab};
use serde_json::{Value, json as object};
use std::path::PathBuf;
use std::process::Command;
use tracewing_testing::{RunExt, installed};

/// A copy of a recording in which some locks have other addresses, and its folder.
fn with_other_locks(name: &str, locks: &[u64]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    Command::new("cp").arg("-r").arg(stored(name)).arg(folder.path()).succeeds();
    let trace = folder.path().join(name);
    let files = ["user", "kernel"].map(|part| std::fs::read_dir(trace.join(part)).unwrap());
    let paths = files.into_iter().flatten().map(|file| file.unwrap().path());
    for path in paths.filter(|path| path.is_file()) {
        let mut bytes = std::fs::read(&path).unwrap();
        for lock in locks.iter().map(|lock| lock.to_le_bytes()) {
            while let Some(at) = bytes.windows(8).position(|some| some == lock) {
                bytes[at + 2] ^= 0x10;
            }
        }
        std::fs::write(path, bytes).unwrap();
    }
    (folder, trace)
}

#[test]
fn locks_of_two_runs_are_compared_by_place() {
    if !installed(&["chromium"]) {
        return;
    }
    let locks = [0x55a4_9894_2e88, 0x55a4_9894_2eb8, 0x55a4_9894_2ef0];
    let (_folder, other) = with_other_locks("server", &locks);
    let home = tempfile::tempdir().unwrap();
    let viewer = Viewer::with(&stored("server"), home, 0, &[other.to_str().unwrap()]);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let asked = object!({ "from": 0, "to": length, "what": "locks" });
    let theirs = ["", "other/"].map(|side| result_of(&viewer, side, "durations", &asked)["names"].take());
    for lock in locks {
        let has = |names: &Value| names.to_string().contains(&format!(" {lock:#x}"));
        assert!(has(&theirs[0]) && !has(&theirs[1]), "{lock:#x}");
    }
    browser.key("m");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    tab(&mut browser, "locks");
    let lines = browser.value("[...document.querySelectorAll('#details .figures tbody tr')].map((line) => [...line.children].map(({ textContent }) => textContent))");
    let lines: Vec<Vec<&str>> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap()).collect())
        .collect();
    let names: Vec<_> = lines.iter().map(|line| (line[0], line[1], line[2])).collect();
    let at = |kind: &str, line: u32| format!("crates/tokio/examples/server.rs:{line} ({kind})");
    for (name, state, count) in [
        (at("mutex", 101), "waits", "94"),
        (at("mutex", 101), "holds", "49"),
        (at("read", 110), "holds", "48"),
        (at("write", 110), "holds", "16"),
        (at("mutex", 120), "waits", "6"),
        ("futex".to_owned(), "waits", "160"),
        ("kernel spin".to_owned(), "waits", "5"),
    ] {
        assert!(names.contains(&(name.as_str(), state, count)), "{name} {state}: {names:?}");
    }
    // Two columns of each number, and one of the difference.
    for line in lines {
        let [count, total, difference] = [(2, 3), (4, 5), (6, 6)].map(|(a, b)| (line[a], line[b]));
        assert!(count.0 == count.1 && total.0 == total.1 && difference.0.starts_with('0'), "{line:?}");
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
