//! `tracewing record` as a user sees it: exit status, signals, refusals, what remains.

mod harness;

use harness::RunExt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tracewing_testing::with_default_signals;

fn tracewing(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = harness::tracewing();
    command.current_dir(folder).arg("record").args(arguments).stderr(Stdio::piped()).stdout(Stdio::piped());
    // What a test sends to the recorder is not to reach the test.
    with_default_signals(command.process_group(0));
    command
}

fn run(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let Output { status, stderr, .. } = tracewing(folder, arguments).ran();
    (status.code().unwrap(), String::from_utf8(stderr).unwrap())
}

/// Starts a recording of a shell script, first the traps that it sets, and waits until these are in place.
fn start(folder: &Path, options: &[&str], traps: &str, script: &str) -> Child {
    let script = format!("{traps}; touch ready; {script}");
    let arguments: Vec<&str> = options.iter().copied().chain(["--", "sh", "-c", &script]).collect();
    let child = tracewing(folder, &arguments).spawn().unwrap();
    let begin = Instant::now();
    while !folder.join("ready").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the command did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn end(child: Child) -> (i32, String) {
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    (status.code().or(status.signal()).unwrap(), String::from_utf8(stderr).unwrap())
}

fn description(trace: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(trace.join("tracewing.json")).unwrap()).unwrap()
}

#[test]
fn exit_status_output_and_input_are_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let output = tracewing(folder.path(), &["--no-kernel", "-o", "t", "--", "sh", "-c", "echo out; exit 9"]);
    let Output { status, stdout, stderr } = { output }.ran();
    assert_eq!((status.code(), stdout.as_slice()), (Some(9), &b"out\n"[..]));
    assert!(String::from_utf8(stderr).unwrap().contains("no program that links the crate tracewing joined"));
}

#[test]
fn a_signal_reaches_the_command_and_leaves_a_good_trace() {
    for (name, status) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let folder = tempfile::tempdir().unwrap();
        let child = start(folder.path(), &["--no-kernel", "-o", "t"], ":", "exec sleep 60");
        signal(&child, name);
        assert_eq!(end(child).0, status);
        assert_eq!(description(&folder.path().join("t"))["state"], "complete");
    }
}

#[test]
fn the_whole_machine_is_recorded_without_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let (status, notes) = run(folder.path(), &["--system-wide", "--locks"]);
    assert!(status == 1 && notes.contains("--locks needs a library that is loaded"), "{notes}");
    let (status, notes) = run(folder.path(), &["--for", "1"]);
    for way in ["nothing to record", "-- CMD", "--pid", "--name", "--system-wide"] {
        assert!(status == 1 && notes.contains(way), "{way}: {notes}");
    }
    if !harness::traceable() {
        return;
    }
    let (status, notes) = run(folder.path(), &["--system-wide", "--for", "0.3", "-o", "timed"]);
    assert_eq!(status, 0, "{notes}");
    let child = tracewing(folder.path(), &["--system-wide", "-o", "stopped"]).spawn().unwrap();
    let begin = Instant::now();
    while !folder.path().join("stopped/kernel/channel_0").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the recording did not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "-INT");
    assert_eq!(end(child).0, 0);
    for name in ["timed", "stopped"] {
        assert_eq!(description(&folder.path().join(name))["state"], "complete");
        let threads = harness::json(&folder.path().join(name), &["threads"]);
        // Also threads that nothing here has started.
        let is_kernels = |row: &serde_json::Value| row["name"].as_str().unwrap().starts_with("rcu_");
        assert!(threads["threads"].as_array().unwrap().iter().any(is_kernels), "{name}: {threads}");
    }
}

/// The script as one whose signals are ignored from its beginning: an ignored signal stays so over `exec`.
fn ignoring(folder: &Path, signals: &str, arguments: &str) -> Child {
    let exe = harness::TRACEWING;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("trap '' {signals}; exec {exe} {arguments}")]).current_dir(folder);
    with_default_signals(command.process_group(0).stderr(Stdio::piped())).spawn().unwrap()
}

#[test]
fn signals_that_are_ignored_at_the_start_stay_so() {
    let script = "touch ready; while ! test -e stop; do sleep 0.01; done; touch stopped";
    for (ignored, sent) in [("INT QUIT", &["-INT", "-QUIT"][..]), ("HUP", &["-HUP"]), ("TERM", &["-TERM"])] {
        let folder = tempfile::tempdir().unwrap();
        let child = ignoring(folder.path(), ignored, &format!("record --no-kernel -o t sh -c '{script}'"));
        while !folder.path().join("ready").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        sent.iter().for_each(|name| signal(&child, name));
        // More than the time that a command has to end after a signal.
        std::thread::sleep(Duration::from_millis(2500));
        fs::write(folder.path().join("stop"), "").unwrap();
        let (status, said) = end(child);
        assert_eq!(status, 0, "{ignored}: {said}");
        assert!(!said.contains("the recording is over; waiting"), "{ignored}: {said}");
        assert!(folder.path().join("stopped").exists(), "{ignored}: the command was ended");
    }
}

#[test]
fn a_command_that_ends_by_itself_after_a_signal_gives_its_own_status() {
    let folder = tempfile::tempdir().unwrap();
    let script = "while true; do sleep 0.01; done";
    let child = start(folder.path(), &["--no-kernel", "-o", "t"], "trap 'exit 5' INT", script);
    signal(&child, "-INT");
    assert_eq!(end(child).0, 5);
}

#[test]
fn a_second_signal_does_not_wait_for_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let script = "while test -e ready && ! test -e stop; do sleep 0.01; done; touch stopped";
    let child = start(folder.path(), &["--no-kernel", "-o", "t"], "trap '' TERM", script);
    signal(&child, "-TERM");
    signal(&child, "-TERM");
    // Two that come at once are one: until the recorder has ended, more have to follow.
    let id = child.id().to_string();
    let repeat = format!("while kill -TERM {id} 2>/dev/null; do sleep 0.05; done");
    let mut repeating = Command::new("sh").args(["-c", &repeat]).spawn().unwrap();
    let mut child = child;
    let status = child.wait().unwrap();
    repeating.wait().unwrap();
    // One that comes when the recording has ended finds a process like any other; a shell calls both 143.
    let ended = status.code().or(status.signal().map(|number| 128 + number));
    assert_eq!(ended, Some(143));
    assert_eq!(description(&folder.path().join("t"))["state"], "complete");
    assert!(!folder.path().join("stopped").exists(), "the command was waited for");
    fs::write(folder.path().join("stop"), "").unwrap();
}

#[test]
fn a_recorder_that_is_killed_leaves_the_command_and_a_readable_folder() {
    let folder = tempfile::tempdir().unwrap();
    let script = "while test -e ready && ! test -e stop; do sleep 0.01; done; touch stopped";
    let child = start(folder.path(), &["--no-kernel", "-o", "t"], ":", script);
    signal(&child, "-KILL");
    fs::write(folder.path().join("stop"), "").unwrap();
    assert_eq!(end(child).0, 9);
    assert_eq!(description(&folder.path().join("t"))["state"], "recording");
    let read = |arguments: &[&str]| {
        let mut command = harness::tracewing();
        command.args(arguments).arg(folder.path().join("t")).ran()
    };
    let info = read(&["info"]).stdout;
    assert!(String::from_utf8_lossy(&info).contains(", killed"), "{}", String::from_utf8_lossy(&info));
    assert!(
        read(&["list", "--follow"]).status.success(),
        "it does not wait for events that no recorder adds"
    );
    let begin = Instant::now();
    while !folder.path().join("stopped").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the command did not survive");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn refusals_say_what_to_do_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("full")).unwrap();
    fs::write(folder.path().join("full/x"), "").unwrap();
    for (arguments, status, text) in [
        (&["-o", "full", "--", "true"][..], 1, "choose another folder"),
        (&["-o", "t", "--", "/no/such/command"], 127, "cannot run /no/such/command"),
        (&["-o", "t", "--", "/"], 126, "cannot run /"),
        (&["-o", "t", "--sub-buffer-size", "3000", "--", "true"], 1, "power of two"),
        (&["-o", "t", "--sub-buffers", "1", "--", "true"], 1, "--sub-buffers"),
        (&["-o", "t", "--flush", "0", "--", "true"], 2, "--flush"),
        (&["-o", "t"], 1, "CMD"),
        (&["-o", "t", "--functions=", "--", "true"], 2, "--functions"),
        (&["-o", "t/in/it", "--no-kernel", "--", "/proc/self/status"], 126, "cannot run"),
        (&["-o", "t", "--no-such-option", "--", "true"], 2, "--no-such-option"),
    ] {
        let (code, stderr) = run(folder.path(), arguments);
        assert_eq!(code, status, "{arguments:?}: {stderr}");
        assert!(stderr.contains(text), "{arguments:?}: {stderr}");
        assert!(!folder.path().join("t").exists(), "{arguments:?}");
    }
}

#[test]
fn what_is_refused_late_leaves_nothing_either() {
    if let Err(missing) = tracewing_kernel::privileges() {
        return tracewing_testing::skip(tracewing_testing::Cause::KernelEvents, format_args!("{missing}"));
    }
    let folder = tempfile::tempdir().unwrap();
    // Found, but not executed.
    let nonsense = folder.path().join("nonsense");
    fs::write(&nonsense, "#!/no/such/interpreter").unwrap();
    fs::set_permissions(&nonsense, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (arguments, text) in [
        (&["-o", "t", "--", "./nonsense"][..], "cannot run ./nonsense"),
        (&["-o", "new/parent/t", "--", "./nonsense"], "cannot run ./nonsense"),
        (&["-o", "new/parent/t", "--flight-recorder", "--", "./nonsense"], "cannot run ./nonsense"),
        (&["-o", "t", "--profile", "--", "./nonsense"], "cannot run ./nonsense"),
        (&["-o", "t", "--profile", "4000000000", "--", "true"], "perf_event_max_sample_rate"),
        (&["-o", "t", "-k", "nothing_like_it", "--", "true"], "no kernel event is named"),
        (&["-o", "t", "--probe", "libc.so.6:nothing_like_it", "--", "true"], "nothing_like_it"),
        (&["-o", "t", "--usdt", "nothing:like_it", "--", "true"], "nothing:like_it"),
        (&["-o", "empty", "--", "./nonsense"], "cannot run ./nonsense"),
    ] {
        let (code, stderr) = run(folder.path(), arguments);
        assert!(code != 0 && stderr.contains(text), "{arguments:?}: {code} {stderr}");
        let entries =
            fs::read_dir(folder.path()).unwrap().chain(fs::read_dir(folder.path().join("empty")).unwrap());
        let mut left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["empty", "nonsense"], "{arguments:?}");
    }
}

#[test]
fn a_recording_continues_if_its_messages_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    for format in ["text", "json"] {
        let arguments = ["--no-kernel", "--format", format, "-o", format, "--", "sh", "-c", "exit 9"];
        let mut command = tracewing(folder.path(), &arguments);
        let output = command.stderr(fs::File::create("/dev/full").unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(9), "{output:?}");
        assert_eq!(description(&folder.path().join(format))["state"], "complete");
    }
    // Nor is an error any more than that.
    let mut command = tracewing(folder.path(), &["-o", "t", "--", "/no/such/command"]);
    let status = command.stderr(fs::File::create("/dev/full").unwrap()).status().unwrap();
    assert_eq!(status.code(), Some(127));
}

#[test]
fn the_summary_is_json_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let (_, stderr) = run(folder.path(), &["--no-kernel", "--format", "json", "-o", "t", "--", "true"]);
    let summary: serde_json::Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["folder"], &summary["state"]), (&"t".into(), &"complete".into()));
    let (_, stderr) = run(folder.path(), &["--no-kernel", "--quiet", "-o", "u", "--", "true"]);
    assert_eq!(stderr, "");
}
