//! Ends of recordings: losses, Ctrl-C, a killed recorder, refusals.

use super::*;

/// The recorder is stopped so long that the kernel's buffer cannot hold what comes meanwhile.
#[test]
fn lost_samples_are_counted() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let command = program.path().join("busy");
    let child = recorder(folder.path(), &["--profile", "20000"]).arg(command).arg("4.5").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    // SAFETY: signals to the recorder that was just started.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    std::thread::sleep(Duration::from_millis(2500));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGCONT) }, 0);
    let recording = ended(folder, child);
    let lost = recording.lost();
    if lost == 0 {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Listed("no loss"),
            "this machine had too little time for the program to lose a sample",
        );
    }
    assert_eq!(recording.reasons(), BTreeMap::from([("profile buffer full", lost)]));
    assert_eq!(json(&[], &recording.trace())["lost_samples"], lost);
    let shown = String::from_utf8(of(&recording.trace(), &["profile"]).ran().stdout).unwrap();
    assert!(shown.contains(&format!(" {lost} lost")), "{shown}");
}

/// Until some samples of the recording in `t` are written, and then for as long as it takes to write more.
fn wait_for_samples(folder: &Path) {
    let begin = Instant::now();
    let is_written = |entry: fs::DirEntry| {
        entry.file_name() != "metadata" && entry.metadata().is_ok_and(|data| data.is_file() && data.len() > 0)
    };
    let written = || fs::read_dir(folder.join("t/profile")).is_ok_and(|all| all.flatten().any(is_written));
    while !written() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no samples are written");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs(1));
}

#[test]
fn ctrl_c_leaves_a_good_recording() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let child =
        recorder(folder.path(), &["--profile"]).arg(program.path().join("busy")).arg("60").spawn().unwrap();
    wait_for_samples(folder.path());
    let group = -i32::try_from(child.id()).unwrap();
    // SAFETY: a signal to the group that was made for this recorder.
    assert_eq!(unsafe { libc::kill(group, libc::SIGINT) }, 0);
    let output = child.wait_with_output().unwrap();
    let reported = output.notes();
    let summary: Value = serde_json::from_str(reported.lines().next_back().unwrap()).unwrap();
    assert_eq!(summary["state"], "complete");
    let found = json(&[], &folder.path().join("t"));
    assert!(by_function(&found, "total_samples").contains_key("heavy"));
    assert_eq!(
        reported.contains("profile: no hardware counters"),
        found["trigger"] == "cpu-clock",
        "{reported}"
    );
}

#[test]
fn a_killed_recorder_leaves_what_was_written() {
    let Some((program, _)) = profiled(&[], FRAME_POINTERS, &["0"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut child =
        recorder(folder.path(), &["--profile"]).arg(program.path().join("busy")).arg("60").spawn().unwrap();
    wait_for_samples(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let group = -i32::try_from(child.id()).unwrap();
    // SAFETY: as above; the program has survived its recorder.
    unsafe { libc::kill(group, libc::SIGKILL) };
    let output = of(&folder.path().join("t"), &["profile", "--format", "json"]).ran();
    let found: Value = output.json();
    assert!(by_function(&found, "total_samples").contains_key("heavy"));
}

#[test]
fn a_rate_that_cannot_be_is_refused() {
    if !can_sample() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = recorder(folder.path(), &["--profile", "4000000000"]).arg("true").ran();
    let reported = output.notes();
    assert!(reported.contains("perf_event_max_sample_rate"), "{reported}");
    assert!(!output.status.success() && !folder.path().join("t").exists());
    let output = harness::tracewing().args(["record", "--profile", "true"]).output();
    let reported = String::from_utf8(output.unwrap().stderr).unwrap();
    assert!(reported.contains("put the command after --"), "{reported}");
    let child = recorder(folder.path(), &["--profile"]).arg("true").spawn().unwrap();
    assert!(ended(folder, child).trace().join("profile/metadata").is_file());
}
