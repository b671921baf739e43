//! `--on-archive`, `--total-size`, `--max-size` and `--keep`: what happens to archives that are complete.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A script that appends its arguments to the file `ran`, then does what `then` says.
fn script(folder: &Path, then: &str) -> String {
    let path = folder.join("command");
    let ran = folder.join("ran");
    fs::write(&path, format!("#!/bin/sh\necho \"$#:$1\" >> {}\n{then}\n", ran.display())).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn ran(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn each_complete_archive_is_given_to_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let list = format!("{} list \"$1\" > \"$1.txt\"", harness::TRACEWING);
    let command = script(folder.path(), &list);
    let mut rotated = Rotated::start_in(folder, &["--on-archive", &command]);
    for _ in 0..3 {
        rotated.numbers("emit 100");
        rotated.rotate();
    }
    rotated.numbers("emit 100");
    let recording = rotated.end();
    let mut paths = archives_with(&recording.trace(), |name| !name.ends_with(".txt"));
    paths.sort();
    let paths: Vec<String> = paths.iter().map(|path| format!("1:{}", path.display())).collect();
    assert_eq!(ran(recording.folder.path()), paths, "in their order, and the last one, too");
    assert_eq!(recording.summary["on_archive"], serde_json::json!({ "run": 4, "failed": 0, "skipped": 0 }));
    // Each was a complete trace when it was given.
    for path in &paths {
        let listed = fs::read_to_string(format!("{}.txt", &path[2..])).unwrap();
        assert!(listed.lines().filter(|line| line.contains("pilot:count")).count() >= 100);
    }
}

fn archives_with(trace: &Path, which: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(trace.join("archives")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| which(path.file_name().unwrap().to_str().unwrap())).collect()
}

#[test]
fn a_command_that_fails_is_said_once_and_counted() {
    for (command, why) in [(None, "exit status 7"), (Some("/no/such/command"), "No such file")] {
        let folder = tempfile::tempdir().unwrap();
        let own = script(folder.path(), "exit 7");
        let mut rotated = Rotated::start_in(folder, &["--on-archive", command.unwrap_or(&own)]);
        let emitted = rotated.numbers("emit 100");
        let first = check(&rotated.rotate());
        let second = check(&rotated.rotate());
        let recording = rotated.end();
        let notes = recording.stderr.matches(why).count();
        assert_eq!(notes, 2, "a line, and the same among the summary's notes: {}", recording.stderr);
        assert_eq!(
            recording.summary["on_archive"],
            serde_json::json!({ "run": 3, "failed": 3, "skipped": 0 })
        );
        let (found, lost) = assert_continuous(&[first, second]);
        assert_eq!((found - emitted.len() as u64, lost), (emitted.iter().sum(), 0));
    }
}

/// A script's wait for a file, or for the end of the test.
fn until(file: &Path) -> String {
    let folder = file.parent().unwrap().display();
    format!("while [ -d {folder} ] && ! [ -e {} ]; do sleep 0.1; done", file.display())
}

/// How often a process has slept.
fn sleeps(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_recorder_that_waits_for_the_command_sleeps() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let command = script(folder.path(), &until(&go));
    let mut rotated = Rotated::start_in(folder, &["--on-archive", &command]);
    rotated.numbers("emit 100");
    rotated.rotate();
    rotated.orders = None;
    wait_for("the recording does not end", || description(&rotated.trace())["state"] == "complete");
    let recorder = rotated.recorder.id();
    let before = sleeps(recorder);
    wait_for("it does not sleep", || sleeps(recorder) > before + 10);
    fs::write(&go, "").unwrap();
    rotated.end();
}

/// The recorder continues, and answers, while the command is busy; archives wait for it.
#[test]
fn a_slow_command_holds_nothing_up() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let command = script(folder.path(), &until(&go));
    let mut rotated = Rotated::start_in(folder, &["--on-archive", &command]);
    for round in 1..=3 {
        let emitted = rotated.numbers("emit 1000");
        let found = check(&rotated.rotate());
        assert_eq!(
            found.numbers.values().map(|numbers| *numbers.last().unwrap()).collect::<Vec<_>>(),
            emitted,
            "round {round}"
        );
    }
    wait_for("the command is not run", || ran(rotated.folder.path()).len() == 1);
    fs::write(&go, "").unwrap();
    let recording = rotated.end();
    assert_eq!(ran(recording.folder.path()).len(), 4);
    assert_eq!(recording.summary["on_archive"]["run"], 4);
}

/// What is over the size goes, the oldest first; readers agree about the rest.
#[test]
fn the_oldest_archives_make_room() {
    const TOTAL: u64 = 1 << 20;
    let mut rotated = Rotated::start(&["--total-size", "1M"]);
    let mut emitted = Vec::new();
    // 28 bytes each: an archive has 128 KiB, so there are more than fit.
    for round in 1..=20 {
        emitted = rotated.numbers("emit 5000");
        wait_for("no rotation by size", || complete(&rotated.trace()) >= round);
    }
    let recording = rotated.end();
    let paths = archives(&recording.trace());
    let whole = description(&recording.trace());
    let listed = whole["archives"].as_array().unwrap();
    let (removed, kept): (Vec<&Value>, Vec<&Value>) =
        listed.iter().partition(|archive| archive["is_removed"] == true);
    assert!(!removed.is_empty() && kept.len() == paths.len(), "{whole}");
    assert!(
        removed
            .iter()
            .map(|archive| &archive["number"])
            .eq(listed.iter().take(removed.len()).map(|it| &it["number"]))
    );
    let bytes: u64 = kept.iter().map(|archive| archive["bytes"].as_u64().unwrap()).sum();
    assert!(bytes <= TOTAL, "{bytes}");
    let all: Vec<Found> = paths.iter().map(|path| check(path)).collect();
    let (found, lost) = assert_continuous(&all);
    let number = |archive: &Value, what: &str| archive[what].as_u64().unwrap();
    assert_eq!(found, kept.iter().map(|archive| number(archive, "events")).sum::<u64>());
    let all_events: u64 = listed.iter().map(|archive| number(archive, "events")).sum();
    assert_eq!((all_events - emitted.len() as u64, lost, recording.lost()), (emitted.iter().sum(), 0, 0));
    assert_eq!(recording.summary["events"], all_events);
    let events =
        list(&recording.trace()).iter().filter(|event| event.name != "tracewing:known_thread").count();
    assert_eq!(events as u64, found, "the whole is what is left");
    let hidden = fs::read_dir(recording.trace().join("archives")).unwrap();
    let hidden =
        hidden.filter(|entry| entry.as_ref().unwrap().file_name().as_encoded_bytes()[0] == b'.').count();
    assert_eq!(hidden, 0, "removed archives are gone");
    let info = harness::print(&recording.trace(), &["info"]).0;
    assert!(
        info.contains(&format!("archives  {}, {} of them removed (", listed.len(), removed.len())),
        "{info}"
    );
    let sum = |what: &str| removed.iter().map(|archive| number(archive, what)).sum::<u64>();
    let totals = serde_json::json!({
        "completed": listed.len(), "removed": removed.len(), "removed_events": sum("events"), "removed_bytes": sum("bytes"),
    });
    assert_eq!((&whole["archive_totals"], &recording.summary["archive_totals"]), (&totals, &totals));
}

/// As many as that, with the one that is written.
#[test]
fn so_many_archives_are_kept() {
    let mut rotated = Rotated::start(&["--keep", "3"]);
    let present = |trace: &Path| {
        let mut names: Vec<String> = archives_with(trace, |name| !name.starts_with('.'))
            .iter()
            .map(|path| path.to_str().unwrap().rsplit('-').next().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    for round in 1..=5 {
        rotated.numbers("emit 100");
        rotated.rotate();
        if round == 2 {
            assert_eq!(present(&rotated.trace()), ["1", "2", "3"]);
        }
    }
    wait_for("older ones stay", || present(&rotated.trace()) == ["4", "5", "6"]);
    rotated.numbers("emit 100");
    let recording = rotated.end();
    assert_eq!(present(&recording.trace()), ["4", "5", "6"]);
    let whole = description(&recording.trace());
    let removed: Vec<bool> =
        whole["archives"].as_array().unwrap().iter().map(|it| it["is_removed"] == true).collect();
    assert_eq!(removed, [true, true, true, false, false, false]);
    let all: Vec<Found> = archives(&recording.trace()).iter().map(|path| check(path)).collect();
    assert_eq!(assert_continuous(&all).1, 0);
}

/// So that there are never more than that.
#[test]
fn a_size_is_divided_by_the_number_of_archives() {
    let mut rotated = Rotated::start(&["--max-size", "512K", "--keep", "2"]);
    wait_for("no rotation by size", || {
        rotated.numbers("emit 100");
        complete(&rotated.trace()) > 2
    });
    let recording = rotated.end();
    assert!(archives(&recording.trace()).len() <= 2);
    let whole = description(&recording.trace());
    // Those that a size has ended: a half of it each, and not an eighth.
    let by_size = whole["archives"].as_array().unwrap().iter().filter(|it| it["reason"] == "--rotate-size");
    let bytes: Vec<u64> = by_size.map(|archive| archive["bytes"].as_u64().unwrap()).collect();
    assert!(bytes.len() > 2 && bytes.iter().all(|bytes| *bytes >= 256 << 10), "{bytes:?}");
}

/// An archive that the user has taken away himself is no error, and counts no more.
#[test]
fn archives_may_be_moved_away() {
    let mut rotated = Rotated::start(&["--total-size", "1M"]);
    for round in 1..=12 {
        rotated.numbers("emit 5000");
        wait_for("no rotation by size", || complete(&rotated.trace()) >= round);
        for archive in archives_with(&rotated.trace(), |name| name.ends_with(&format!("-{round}"))) {
            fs::rename(&archive, rotated.folder.path().join(format!("moved-{round}"))).unwrap();
        }
    }
    let moved: Vec<PathBuf> =
        (1..=12).map(|round| rotated.folder.path().join(format!("moved-{round}"))).collect();
    let all: Vec<Found> = moved.iter().map(|path| check(path)).collect();
    assert_eq!(assert_continuous(&all).1, 0);
    let recording = rotated.end();
    let whole = description(&recording.trace());
    assert_eq!((&whole["state"], &whole["notes"]), (&"complete".into(), &serde_json::json!([])));
}
