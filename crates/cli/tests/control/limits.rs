//! Programs beyond limits, and what is refused.

use super::*;

/// Forty programs that live at once, where 64 files can be open. Returns how many received a change
/// meanwhile.
fn beyond_the_limit_on_open_files(options: &[&str], user: Option<u32>) -> (Recording, Option<u64>) {
    let script = "ulimit -n 64 -H; exec \"$@\"";
    let folder = tempfile::tempdir().unwrap();
    let programs = 40;
    // Each of them waits for the end of its input, which all of them share.
    let all = format!("for n in $(seq {programs}); do {} & done <&0; wait", program("steps").display());
    let mut recorder = Command::new("bash");
    recorder.current_dir(folder.path()).args(["-c", &format!("ulimit -n 64; {script}"), "bash"]);
    recorder.env("TRACEWING_WAIT", "60000"); // however busy the machine is
    if let Some(user) = user {
        std::os::unix::fs::chown(folder.path(), Some(user), Some(user)).unwrap();
        recorder.uid(user).gid(user).env("XDG_RUNTIME_DIR", folder.path());
    }
    recorder.args([harness::TRACEWING, "record", "--no-kernel", "--format", "json", "-o", "t"]);
    recorder
        .args(options)
        .args(["--", "bash", "-c", &all])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut recorder = recorder.spawn().unwrap();
    let input = recorder.stdin.take().unwrap();
    let mut output = BufReader::new(recorder.stdout.take().unwrap()).lines();
    (0..programs).for_each(|_| drop(output.next().unwrap().unwrap()));
    let state = command("disable", &recorder.id().to_string(), &["-e", "*", "--format", "json"]);
    let state: Option<Value> = serde_json::from_slice(&state.stdout).ok();
    drop(input);
    (ended(folder, recorder), state.map(|state| state["programs"].as_u64().unwrap()))
}

#[test]
fn programs_beyond_the_limit_on_open_files_are_recorded_without_changes() {
    // Root's share no buffers.
    let user = rustix::process::geteuid().is_root().then_some(54_321);
    let (recording, reported) = beyond_the_limit_on_open_files(&["--buffers", "user"], user);
    assert_eq!(recording.summary["processes"], 40);
    let notes = recording.summary["notes"].to_string();
    assert!(notes.contains("programs at once") && notes.contains("do not reach some of them"), "{notes}");
    // Root cannot ask another user's recorder.
    assert!(reported.is_none_or(|reported| reported < 40), "{reported:?}");
}

#[test]
fn programs_beyond_the_limit_on_buffers_are_not_recorded_and_the_others_are() {
    let (recording, reported) = beyond_the_limit_on_open_files(&[], None);
    let notes = recording.summary["notes"].to_string();
    assert!(notes.contains("is not recorded: more than") && notes.contains("ulimit -n"), "{notes}");
    let recorded = recording.summary["processes"].as_u64().unwrap();
    assert!((1..40).contains(&recorded) && reported == Some(recorded), "{recorded}, {reported:?}");
    recording.events();
}

/// Waits until what `attempt` prints holds `part`.
fn awaited(part: &str, attempt: impl Fn() -> String) {
    let begin = Instant::now();
    loop {
        let printed = attempt();
        if printed.contains(part) {
            return;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{part} is not in: {printed}");
    }
}

#[test]
fn what_cannot_be_done_is_said() {
    let steps = Steps::record(&[], &[]);
    let fails = |name: &str, options: &[&str], code: i32, part: &str| {
        awaited(part, || {
            let output = steps.command(name, options);
            assert_eq!(output.status.code(), Some(code), "{name} {options:?}: {output:?}");
            output.notes()
        });
    };
    fails("enable", &[], 1, "which events?");
    fails("disable", &[], 1, "which events?");
    fails("enable", &["--where", "number >"], 2, "number >\n");
    fails("disable", &["--where", "number > 3"], 1, "tracewing enable -e GLOB --where");
    fails("enable", &["--level", "loud"], 2, "is not a level");
    fails("enable", &["--major", "64"], 2, "from 0 to 63");
    let long = "x".repeat(60_000);
    fails("enable", &["-e", &long, "-e", &long], 1, "too long patterns");
    let recorder = Pid::from_raw(steps.recorder.id() as i32).unwrap();
    kill_process(recorder, Signal::STOP).unwrap();
    fails("pause", &[], 1, "do not answer (process ");
    kill_process(recorder, Signal::CONT).unwrap();
    // Each condition is awaited: recorders of other tests, and on a busy machine this one, may answer late.
    awaited("is called \"no-such-recording\"", || {
        let unmatched = command("pause", "no-such-recording", &[]);
        assert_eq!(unmatched.status.code(), Some(1));
        unmatched.notes()
    });
    let enable = ["-e", "step", "--where", "number > 3"];
    awaited("no event of the recorded programs matches", || steps.command("enable", &enable).notes());
    confirmed("enable", &steps.recorder.id().to_string(), &enable);
    steps.end();
}
