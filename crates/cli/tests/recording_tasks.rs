//! Events from the places where emitting is difficult (`crates/tracewing/tests/programs/tasks.rs`): children
//! of every kind, signal handlers, code that runs while threads and processes end, executed programs. Each in
//! buffers per process, and per program where that may share, with protocol `Smp`, and in buffers so small
//! that most is lost.

mod harness;
mod recorded;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::sync::OnceLock;
use tracewing_testing::am_root;

use recorded::{Recording, UNREADY, program, record};

fn tasks() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| program("tasks").to_str().unwrap().to_owned())
}

const WAYS: [&[&str]; 4] = [
    &["--sub-buffers", "64"],
    &["--sub-buffers", "64", "--buffers", "program"],
    &["--sub-buffers", "64", "--clock", "mono"],
    &["--sub-buffers", "2", "--sub-buffer-size", "4K", "--flush", "1000"],
];

/// Plays a scene in which `tasks` tasks emit. Nothing is lost but in small buffers, and there for want of
/// room only; and what forked children emit before they have buffers, where their parent has none for them
/// yet.
fn play(scene: &str, tasks: u64) -> Vec<Recording> {
    play_with(scene, tasks, &[])
}

/// The same where events may be lost for other reasons.
fn play_with(scene: &str, tasks: u64, reasons: &[&str]) -> Vec<Recording> {
    let play = |options: &&[&str]| {
        let recording = record(options, &[self::tasks(), scene]);
        let mut allowed = reasons.to_vec();
        if options.contains(&"4K") {
            allowed.extend(["buffer full", "event too large"]);
        }
        if am_root() || !options.contains(&"program") {
            allowed.push(UNREADY);
        }
        let lost = recording.reasons();
        let other = lost.keys().find(|reason| !allowed.contains(reason));
        assert_eq!(other, None, "{scene}, {options:?}: {}", recording.summary["losses"]);
        // A task of which every event is lost is not announced.
        let is_announced =
            lost.keys().all(|reason| reason.starts_with("buffer") || reason.starts_with("event"));
        recording.account(is_announced.then_some(tasks));
        let events = recording.events();
        let listed = events.iter().filter(|event| event.name != "tracewing:thread").count() as u64;
        let emitted: u64 = recording.counts().into_values().map(|count| *count.start()).sum();
        assert!(listed + recording.lost() >= emitted, "{scene}, {options:?}: {listed} of {emitted}");
        recording
    };
    WAYS.iter().map(play).collect()
}

#[test]
fn vforked_children() {
    play_with("vfork", 4, &["thread not protected"]);
}

#[test]
fn children_on_their_parents_memory_with_a_stack_of_their_own() {
    play_with("clone", 4, &["thread not protected"]);
}

#[test]
fn spawned_programs() {
    play("spawn", 24);
}

#[test]
fn children_and_grandchildren_of_a_process_with_threads() {
    play("forks", 87);
}

#[test]
fn children_forked_by_a_signal_handler() {
    // Made by a raw system call, which the C library does not notice.
    play_with("fork_in_handler", 1, &["thread id not known"]);
}

#[test]
fn code_that_runs_while_threads_and_processes_end() {
    let recordings = play("exits", 5);
    let counts: Vec<u64> = recordings[0].counts().into_values().map(|count| *count.start()).collect();
    // Thread, process, thread-local destructors, key destructors, `atexit`, and the program's own
    // destructors.
    assert_eq!(counts, [1, 3, 6, 6, 3, 3]);
}

#[test]
fn signal_handlers_in_the_middle_of_events() {
    play("signals", 1);
}

#[test]
fn signal_handlers_on_a_small_stack() {
    for recording in play("small_stack", 1) {
        let used = recording.stderr.lines().find_map(|line| line.strip_prefix("stack ")).unwrap();
        // Unoptimised, and with the thread's first event: SIGSTKSZ is 8 KiB.
        assert!(used.parse::<usize>().unwrap() < 7680, "{used} bytes of stack");
    }
}

#[test]
fn threads_that_come_and_go() {
    play("late_threads", 400);
}

#[test]
fn a_program_that_executes_itself_is_recorded_on() {
    for recording in play("exec", 40) {
        assert_eq!(recording.summary["processes"], 21);
    }
}

/// A program that runs with raised privileges ignores the environment that it was started with.
#[test]
fn a_program_with_raised_privileges_does_not_join() {
    if !am_root() {
        return tracewing_testing::skip(tracewing_testing::Cause::Root, "making a setuid program needs root");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.path().join("tasks");
    tracewing_testing::copy_program(tasks(), &copy);
    let as_user_nobody = ["setpriv", "--reuid=65534", "--clear-groups", copy.to_str().unwrap(), "leaf"];
    if !Command::new("setpriv").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("setpriv"),
            "setpriv is not installed",
        );
    }
    for (mode, processes, events) in [(0o755, 1, 101), (0o4755, 0, 0)] {
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(fs::metadata(&copy).unwrap().mode() & 0o7777, mode);
        let recording = record(&[], &as_user_nobody);
        assert_eq!(recording.summary["processes"], processes, "mode {mode:o}");
        assert_eq!(recording.events().len(), events, "mode {mode:o}");
    }
}
