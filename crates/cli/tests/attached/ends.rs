//! How recordings of running processes end, none of which the processes notice.

use super::*;
use harness::traceable;
use std::collections::BTreeSet;

#[test]
fn a_recording_that_ends_leaves_the_process_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = Target::start(folder.path(), "subject");
    let state = |target: &Target| {
        let descriptors = std::fs::read_dir(format!("/proc/{}/fd", target.pid())).unwrap().count();
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).unwrap();
        let files = maps.lines().filter_map(|line| line.split_whitespace().nth(5).map(str::to_owned));
        let files: BTreeSet<String> = files.collect();
        (descriptors, files, target.threads().len())
    };
    let before = state(&target);
    let pid = target.pid().to_string();
    for profile in [&[][..], &["--profile"]] {
        for by_signal in [false, true] {
            let _ = std::fs::remove_dir_all(folder.path().join("t"));
            let time: &[&str] = if by_signal { &[] } else { &["--for", "0.3"] };
            let recorder = Attached::start(folder.path(), &[&["--pid", &pid], time, profile].concat());
            let recording = if by_signal { recorder.stop() } else { recorder.ended() };
            assert_eq!(recording.summary()["state"], "complete");
            assert_eq!(state(&target), before);
        }
    }
    target.order("fork");
    assert_eq!(target.end(), Some(7));
}

#[test]
fn it_lasts_until_the_last_process_ends() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (Target::start(folder.path(), "subject"), Target::start(folder.path(), "subject"));
    let pids = [first.pid(), second.pid()];
    let mut recorder = Attached::start(folder.path(), &["--pid", &pids.map(|pid| pid.to_string()).join(",")]);
    assert_eq!(first.end(), Some(7));
    std::thread::sleep(Duration::from_millis(500));
    assert!(recorder.child.try_wait().unwrap().is_none(), "one is left");
    assert_eq!(second.end(), Some(7));
    let recording = recorder.ended();
    let mut attached = recording.attached();
    attached.sort_unstable();
    let mut expected = pids.map(u64::from);
    expected.sort_unstable();
    assert_eq!(attached, expected);
    for pid in pids {
        assert!(recording.names(pid).iter().any(|name| name == "worker-1"), "{pid}");
    }
}

#[test]
fn a_child_that_outlives_it_is_one_of_them() {
    if !traceable() {
        return;
    }
    for (options, outlives) in [(&[][..], true), (&["--no-children"], false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut target = Target::start(folder.path(), "subject");
        let pid = target.pid().to_string();
        let recorder = Attached::start(folder.path(), &[&["--pid", &pid], options].concat());
        target.order("leave");
        assert_eq!(target.end(), Some(7));
        let recording = recorder.ended();
        // Only after more than half a second it is another program.
        assert_eq!(recording.has("sleep"), outlives, "{options:?}");
    }
}

#[test]
fn of_the_whole_machine_too_it_lasts_as_long_as_the_process() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (target, other) = (Target::start(folder.path(), "subject"), Target::start(folder.path(), "other"));
    let recorder = Attached::start(folder.path(), &["--system-wide", "--pid", &target.pid().to_string()]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(target.end(), Some(7));
    let recording = recorder.ended();
    assert!(recording.names(other.pid()).iter().any(|name| name == "worker-0"));
}
