//! Rotations in which something goes wrong: the recorder is killed, the disk is full, others ask.

use super::*;
use std::os::unix::process::CommandExt;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tracewing_testing::{STRANGER, become_user, copy_program, is_root, signal};

#[test]
fn another_user_is_refused() {
    if !is_root() {
        return;
    }
    let mut rotated = Rotated::start(&[]);
    rotated.numbers("emit 100");
    let place = tempfile::tempdir_in("/tmp").unwrap();
    let program = place.path().join("tracewing");
    copy_program(harness::TRACEWING, &program);
    for path in [place.path(), &program] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let pid = rotated.recorder.id().to_string();
    for arguments in [&["rotate"][..], &["rotate", &pid], &["rotate", &pid, "--user", "0"]] {
        let mut command = Command::new(&program);
        command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent").env_remove("XDG_RUNTIME_DIR");
        // SAFETY: only system calls, between `fork` and `exec`.
        unsafe {
            command.pre_exec(|| {
                become_user(STRANGER);
                Ok(())
            })
        };
        let output = command.ran();
        assert!(!output.status.success(), "{arguments:?}: {}", output.text());
        let said = output.notes();
        assert!(said.contains("no recording is running") || said.contains("only root"), "{said}");
    }
    assert!(!rotated.trace().join("archives").exists(), "it was rotated");
    rotated.rotate();
    rotated.end();
}

#[test]
fn a_flight_recorder_has_snapshots_instead() {
    let mut rotated = Rotated::start(&["--flight-recorder"]);
    rotated.numbers("emit 1");
    let output = rotated.try_rotate();
    assert!(!output.status.success());
    assert!(output.notes().contains("tracewing snapshot"), "{}", output.notes());
    rotated.end();
}

/// What the recorder had completed stays complete; the last archive says that its recorder was killed, and
/// has what it had written.
#[test]
fn a_killed_recorder_leaves_its_archives() {
    let mut rotated = Rotated::start(&["--flush", "1"]);
    let first = rotated.numbers("emit 1000");
    let complete = rotated.rotate();
    let second = rotated.numbers("emit 1000");
    let trace = rotated.trace();
    let last = archives(&trace).pop().unwrap();
    let numbers = |path: &Path| {
        let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
        let events = list(path).into_iter().filter(|event| event.name == "pilot:count");
        events.for_each(|event| _ = numbers.insert(event.cpu, event.number("number")));
        numbers.into_values().collect::<Vec<u64>>()
    };
    wait_for("the second archive is not written", || {
        let info = harness::of(&last, &["list", "--format", "json"]).ran();
        info.status.success() && numbers(&last) == second
    });
    signal(rotated.recorder.id(), libc::SIGKILL);
    rotated.recorder.wait().unwrap();
    assert_eq!(numbers(&complete), first);
    check(&complete);
    let (_, notes) = harness::print(&last, &["list"]);
    assert!(notes.contains("the recorder was killed"), "{notes}");
    assert_eq!(numbers(&trace), second, "both are in the whole");
}

/// Ctrl-C at any moment of rotations: what the command emits until its end is in the archives, or counted.
#[test]
fn an_interrupt_during_rotations_loses_nothing_uncounted() {
    // The recorder waits so long for the command, and a bit more.
    const GRACE: Duration = Duration::from_millis(1500);
    let mut in_time = 0;
    for round in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let mut command = recorder(folder.path(), &[&SMALL[..], &["--rotate-size", "256K"]].concat());
        // The recorder passes the signal on.
        command.args(["sh", "-c", "trap '' INT; exec \"$0\""]).arg(program("pilot"));
        let mut rotated = Rotated::of(folder, &mut command);
        rotated.order("fly");
        wait_for("no rotation", || complete(&rotated.trace()) > 0);
        let waits = [random(), random()].map(|number| Duration::from_micros(number % 20_000));
        sleep(waits[0]);
        let interrupted = Instant::now();
        signal(rotated.recorder.id(), libc::SIGINT);
        sleep(waits[1]);
        let emitted: u64 = rotated.numbers("land").iter().sum();
        let recording = rotated.end();
        if interrupted.elapsed() > GRACE {
            continue; // the machine was too busy
        }
        in_time += 1;
        let paths = archives(&recording.trace());
        let all: Vec<Found> = paths.iter().map(|path| check(path)).collect();
        let (found, lost) = assert_continuous(&all);
        let threads = recording.summary["user_streams"].as_array().unwrap().len() as u64 - 1;
        let archives = paths.len();
        assert_eq!(found + lost, emitted + threads, "round {round}, {waits:?}, {archives} archives");
        assert_eq!((&recording.summary["events"], recording.lost()), (&found.into(), lost));
        let whole = description(&recording.trace());
        assert_eq!(
            (&whole["state"], &whole["archive_totals"]["completed"]),
            (&"complete".into(), &archives.into())
        );
    }
    assert!(in_time > 0, "the machine is too busy");
}

fn random() -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0)
}

/// A file system of some KiB.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path, kib: u32) -> Option<Self> {
        let options = format!("size={kib}k");
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(folder).status();
        if status.is_ok_and(|status| status.success()) {
            return Some(Self(folder.to_owned()));
        }
        tracewing_testing::skip(tracewing_testing::Cause::Root, "cannot mount a small disk");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The recording ends with what had room, in archives that say so; nothing is uncounted.
#[test]
fn a_full_disk_ends_the_recording_with_what_is_written() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path(), 1024) else { return };
    let mut rotated = Rotated::start_in(folder, &["--flush", "1"]);
    let first = rotated.numbers("emit 1000");
    let complete = rotated.rotate();
    rotated.numbers("emit 100000");
    let (folder, output) = rotated.end_badly();
    assert_eq!(output.status.code(), Some(1), "{}", output.notes());
    assert!(output.notes().contains("the disk is full"), "{}", output.notes());
    let found = check(&complete);
    assert_eq!(found.numbers.values().map(|numbers| *numbers.last().unwrap()).collect::<Vec<_>>(), first);
    let last = archives(&folder.path().join("t")).pop().unwrap();
    assert_eq!(description(&last)["state"], "cut_short");
    list(&last);
}

/// Without room for another archive, the recording continues in the present one.
#[test]
fn a_rotation_for_which_there_is_no_room_changes_nothing() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path(), 2048) else { return };
    let mut rotated = Rotated::start_in(folder, &["--flush", "1"]);
    rotated.numbers("emit 1000");
    let complete = rotated.rotate();
    let emitted = rotated.numbers("emit 1000");
    let filler = rotated.folder.path().join("filler");
    // To the last byte.
    let _ = std::fs::write(&filler, vec![1; 4 << 20]);
    let refused = rotated.try_rotate();
    assert!(!refused.status.success() && refused.notes().contains("No space left"), "{}", refused.notes());
    assert_eq!(archives(&rotated.trace()).len(), 2, "what was begun is gone");
    std::fs::remove_file(&filler).unwrap();
    let second = check(&rotated.rotate());
    assert_eq!(second.numbers.values().map(|numbers| *numbers.last().unwrap()).collect::<Vec<_>>(), emitted);
    assert_eq!(assert_continuous(&[check(&complete), second]).1, 0);
    rotated.end();
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for (options, said) in [
        (&["--rotate-size", "64K", "--flight-recorder"][..], "cannot be used with"),
        (&["--rotate-size", "1K"], "expected at least 64K"),
        (&["--rotate-size", "many"], "expected a number of bytes"),
        (&["--rotate-every", "0"], "expected at least 1 second"),
        (&["--rotate-every", "NaN"], "expected a number of seconds"),
        (&["--total-size", "511K"], "expected at least 512K"),
        (&["--max-size", "511K"], "expected at least 512K"),
        (&["--keep", "1"], "at least 2"),
        (&["--keep=-1"], "at least 2"),
        (&["--keep", "99999999999999999999"], "at least 2"),
        (&["--on-archive", ""], "a value is required"),
    ] {
        let output = run(&[&["record"], options, &["--", "true"]].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(output.notes().contains(said), "{options:?}: {}", output.notes());
    }
    let output = run(&["record", "--total-size", "1M", "--rotate-size", "600K", "--", "true"]);
    assert!(output.notes().contains("at most half of --total-size"), "{}", output.notes());
}
