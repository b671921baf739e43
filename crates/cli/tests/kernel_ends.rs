//! However a recording with kernel events ends (by signals, a killed recorder, a full disk), both readers
//! open the result and nothing of it stays in tracefs. A user without permission to trace the kernel is shown
//! a next step.

mod harness;
mod kernel_common;

use harness::{Printed, RunExt, traceable};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;
use tracewing_testing::wait_until;

use kernel_common::{end, events, instances_of, listing, play, player, record, role_is, signal, summary};
use tracewing::emit;

#[derive(tracewing::Event)]
#[event(provider = "ends")]
struct Tick {
    number: u64,
}

/// The program: emits, once at least, until the file `stop` appears, then writes `stopped`. Leaves in
/// `socket` where the recorder listens.
#[test]
fn program() {
    if !role_is("program") {
        return;
    }
    fs::write("socket", std::env::var("TRACEWING_SOCKET").unwrap()).unwrap();
    let mut number = 0;
    loop {
        emit!(Tick { number });
        number += 1;
        if Path::new("stop").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    fs::write("stopped", number.to_string()).unwrap();
}

/// Records the program and waits until events of it and of the kernel are in the folder.
fn start(folder: &Path) -> Child {
    let command = player("program");
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let recorder = play(&mut record(folder, &["--flush", "20"], &command), "program").spawn().unwrap();
    wait_until("packets in the folder", || {
        ["t/user", "t/kernel"].iter().all(|trace| {
            let Ok(files) = fs::read_dir(folder.join(trace).join("index")) else { return false };
            files.flatten().any(|file| file.metadata().is_ok_and(|data| data.len() > 16))
        })
    });
    recorder
}

/// The program's events in a recording are the first ones that it emitted; there are events of the kernel,
/// too. Gives the number of the last one, plus one.
///
/// A recorder that was killed between two CPUs' buffers leaves the events of one of them up to a later time:
/// what the other held is then missing in between.
fn check_trace(folder: &Path, was_killed: bool) -> i64 {
    let (text, warnings) = listing(&folder.join("t"));
    assert_eq!(warnings, "");
    let events = events(&text);
    assert!(events.iter().any(|event| event.is_kernels()));
    let numbers = events.iter().filter(|event| event.name == "ends:tick").map(|event| event.number("number"));
    let numbers: Vec<i64> = numbers.collect();
    let last = *numbers.last().expect("no event of the program");
    if was_killed {
        assert!(numbers.is_sorted_by(|before, after| before < after));
    } else {
        assert!(numbers.into_iter().eq(0..=last));
    }
    last + 1
}

fn socket_folder(folder: &Path) -> PathBuf {
    let socket = PathBuf::from(fs::read_to_string(folder.join("socket")).unwrap());
    socket.parent().unwrap().to_owned()
}

#[test]
fn an_interrupted_recording_is_a_good_one() {
    if !traceable() {
        return;
    }
    for (name, to_group, status) in [("INT", true, 130), ("TERM", false, 143)] {
        let folder = tempfile::tempdir().unwrap();
        let recorder = start(folder.path());
        let id = i64::from(recorder.id());
        signal(name, if to_group { -id } else { id });
        let output = end(recorder);
        assert_eq!(output.status.code(), Some(status));
        let summary = summary(&output);
        assert_eq!(
            (&summary["state"], &summary["lost_events"]),
            (&"complete".into(), &0.into()),
            "{summary}"
        );
        check_trace(folder.path(), false);
        assert!(!socket_folder(folder.path()).exists(), "not removed");
    }
}

#[test]
fn after_a_killed_recorder_the_next_one_cleans_up() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let recorder = start(folder.path());
    let id = recorder.id();
    signal("KILL", id.into());
    fs::write(folder.path().join("stop"), "").unwrap();
    assert_eq!(recorder.wait_with_output().unwrap().status.signal(), Some(libc::SIGKILL));
    wait_until("the program runs to its end", || folder.path().join("stopped").exists());
    let emitted: i64 = fs::read_to_string(folder.path().join("stopped")).unwrap().parse().unwrap();
    assert!(check_trace(folder.path(), true) <= emitted);

    let next = tempfile::tempdir().unwrap();
    let output = end(record(next.path(), &[], &["true"]).spawn().unwrap());
    assert!(output.status.success());
    wait_until("the guardian removes the instance", || instances_of(id).is_empty());
    assert!(!socket_folder(folder.path()).exists(), "left where programs join");
}

/// Records a program that makes many events into `disk/t`, where `disk` has this size, and copies that to
/// `t`.
fn record_to_disk(folder: &Path, size: &str, options: &[&str]) -> Output {
    fs::create_dir(folder.join("disk")).unwrap();
    let inside = format!(
        "mount -t tmpfs -o size={size} tmpfs disk && {{ \"$@\"; status=$?; test ! -e disk/t || cp -r disk/t t; exit $status; }}"
    );
    let mut command = Command::new("unshare");
    command.current_dir(folder).args(["-m", "sh", "-c", &inside, "sh", harness::TRACEWING]);
    command.args(["record", "-o", "disk/t"]).args(options);
    // Reads and writes, a byte each, give more events than fit.
    command.args(["--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000", "status=none"]);
    command.ran()
}

#[test]
fn on_a_full_disk_a_status_of_the_command_other_than_0_is_kept() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("disk")).unwrap();
    let inside = "mount -t tmpfs -o size=2m tmpfs disk && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.current_dir(folder.path()).args(["-m", "sh", "-c", inside, "sh", harness::TRACEWING]);
    command.args(["record", "-o", "disk/t", "--", "sh", "-c"]);
    command.arg("dd if=/dev/zero of=/dev/null bs=1 count=200000 status=none; exit 3");
    let output = command.ran();
    let stderr = output.notes();
    assert!(stderr.contains("the disk is full"), "{stderr}");
    assert_eq!(output.status.code(), Some(3), "{stderr}");
}

#[test]
fn on_a_full_disk_no_program_is_asked_for_other_rules() {
    if !traceable() {
        return;
    }
    let optimised: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    tracewing_testing::build(
        env!("CARGO_TARGET_TMPDIR"),
        &[&["-p", "tracewing-preload"], optimised].concat(),
    );
    let folder = tempfile::tempdir().unwrap();
    // With the library, the command is a program that takes part.
    let output = record_to_disk(folder.path(), "2m", &["--locks", "-e", "nothing:*"]);
    let stderr = output.notes();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the disk is full"), "{stderr}");
    for wrong in ["no event", "No events"] {
        assert!(!stderr.contains(wrong), "{stderr}");
    }
}

#[test]
fn without_room_for_the_metadata_nothing_is_begun_or_left() {
    if !traceable() {
        return;
    }
    for options in [&[][..], &["--profile"]] {
        let folder = tempfile::tempdir().unwrap();
        let output = record_to_disk(folder.path(), "96k", options);
        let stderr = output.notes();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("kernel/metadata: No space left on device"), "{stderr}");
        assert!(!stderr.contains("stays readable"), "{stderr}");
        assert!(!folder.path().join("t").exists(), "{stderr}");
    }
}

#[test]
fn a_full_disk_is_one_line_and_a_failure_of_the_recorder_only() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = record_to_disk(folder.path(), "2m", &["--format", "json"]);
    let stderr = output.notes();
    // The command has ended with 0, but a part of its recording is missing.
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let summary = summary(&output);
    assert_eq!(summary["state"], "cut_short", "{summary}");
    let description = fs::read_to_string(folder.path().join("t/tracewing.json")).unwrap();
    assert!(description.contains("\"cut_short\""), "{description}");
    assert!(summary["lost_events"].as_u64().unwrap() > 0, "{summary}");
    let full: Vec<&str> = stderr.lines().filter(|line| !line.starts_with('{')).collect();
    let stopped = full.iter().filter(|line| line.contains("the disk is full")).count();
    assert_eq!(stopped, 1, "{stderr}");
    assert!(
        !full.iter().any(|line| line.contains("cannot write") && !line.contains("the disk is full")),
        "{stderr}"
    );
    let (text, _) = listing(&folder.path().join("t"));
    assert_eq!(Some(events(&text).len() as u64), summary["events"].as_u64());
}

#[test]
fn a_flight_recorder_whose_last_snapshot_does_not_fit_fails() {
    if !traceable() {
        return;
    }
    // Nothing of the snapshot fits; all but the kernel's part; all but the end of that; all.
    let (cut, complete) = (Some("cut_short"), Some("complete"));
    for (size, state, status) in [("4k", None, 1), ("96k", cut, 1), ("2m", cut, 1), ("200m", complete, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let output = record_to_disk(folder.path(), size, &["--flight-recorder", "--format", "json"]);
        let stderr = output.notes();
        assert_eq!(output.status.code(), Some(status), "{size}: {stderr}");
        assert_eq!(stderr.contains("No space left on device"), status == 1, "{size}: {stderr}");
        let summary = summary(&output);
        let snapshots = summary["snapshots"].as_array().unwrap();
        assert_eq!(snapshots.first().and_then(|taken| taken["state"].as_str()), state, "{size}: {stderr}");
        assert_eq!(summary["state"] == "complete", status == 0, "{size}: {stderr}");
        if let Some(state) = state {
            let description = fs::read_to_string(folder.path().join("t/snapshot-1/tracewing.json")).unwrap();
            assert!(description.contains(&format!("{state:?}")), "{description}");
        }
    }
}

#[test]
fn without_kernel_privileges_user_events_are_recorded_with_advice() {
    // Becoming another user needs root, too.
    if !traceable() {
        return;
    }
    const NOBODY: u32 = 65534;
    let folder = tempfile::tempdir().unwrap();
    chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    open(folder.path());
    // The originals may lie where no other user may look.
    let copy = |from: &str, name: &str| {
        let path = folder.path().join(name);
        tracewing_testing::copy_program(from, &path);
        open(&path);
        path
    };
    let recorder = copy(harness::TRACEWING, "tracewing");
    let program = copy(&player("program")[0], "program");
    let script = "(sleep 0.3; touch stop) & exec \"$@\"";
    let as_user_nobody = || {
        let mut command = Command::new("setpriv");
        command.current_dir(folder.path()).args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&recorder).arg("record");
        command
    };
    for wanted in [&["--system-wide"][..], &["-k", "sched_switch"], &["--probe", "libc.so.6:getenv"]] {
        let output = as_user_nobody().args(["-o", "t"]).args(wanted).args(["--", "touch", "began"]).ran();
        let stderr = output.notes();
        assert_eq!(output.status.code(), Some(1), "{wanted:?}: {stderr}");
        assert!(stderr.contains("root"), "{wanted:?}: {stderr}");
        assert!(!folder.path().join("t").exists() && !folder.path().join("began").exists(), "{wanted:?}");
    }
    let output = play(&mut as_user_nobody(), "program")
        .args(["--format", "json", "-o", "t", "--", "sh", "-c", script, "sh"])
        .arg(program)
        .args(&player("program")[1..])
        .ran();
    let stderr = output.notes();
    assert!(output.status.success(), "{stderr}");
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.starts_with('{')).collect();
    assert!(
        matches!(&lines[..], [line] if line.contains("the kernel is not recorded") && line.contains("root")),
        "{stderr}"
    );
    assert!(!folder.path().join("t/kernel").exists());
    let (text, warnings) = listing(&folder.path().join("t"));
    assert_eq!(warnings, "");
    assert_eq!(Some(events(&text).len() as u64), summary(&output)["events"].as_u64());
    assert!(text.contains("ends:tick"));
}
