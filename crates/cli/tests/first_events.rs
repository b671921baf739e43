//! First events of call sites of `tracing` (`crates/tracing/tests/programs/tracing_sandbox.rs`): recorded by
//! whatever kind of recording, even where the program makes no system call any more, is killed, or is a child
//! that ends at once. Nothing is asked for meanwhile.

mod harness;
mod recorded;

use harness::RunExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use recorded::{Event, Recording, build, list, record, recorder};

const NO_RSEQ: &str = "GLIBC_TUNABLES=glibc.pthread.rseq=0";
const RULES: [&str; 2] = ["-e", "tracing_sandbox:*"];

fn example() -> PathBuf {
    build(&["-p", "tracewing-tracing", "--example", "tracing_sandbox"])
        .join("examples")
        .join("tracing_sandbox")
}

const FLIGHT: [&str; 3] = ["--flight-recorder", "--snapshot-on", "exit"];

const WAYS: [(&[&str], &[&str]); 8] = [
    (&[], &[]),
    (&["--buffers", "process"], &[]),
    (&["--buffers", "user"], &[]),
    (&[], &["env", NO_RSEQ]),
    (&["--clock", "mono"], &[]),
    // Many sub-buffers, and most packets wait for a class in another one.
    (&["--sub-buffers", "64", "--sub-buffer-size", "4K"], &[]),
    (&["--buffers-in", "b"], &[]),
    // The rules differ by process.
    (&["--process", "tracing_sandbox"], &[]),
];

fn numbers(events: &[Event]) -> Vec<u64> {
    let events = events.iter().filter(|event| !event.payload["number"].is_null());
    events.map(|event| event.number("number")).collect()
}

/// All that the program emits and the rules want.
fn is_whole(events: &[Event], what: &dyn std::fmt::Debug) {
    let expected: Vec<u64> = (0..10).flat_map(|number| [number; 2]).chain(10..30).collect();
    assert_eq!(numbers(events), expected, "{what:?}");
    let ends = |ending: &str| events.iter().filter(|event| event.name.ends_with(ending)).count();
    assert_eq!([ends("_enter"), ends("_exit"), ends("_close")], [10; 3], "{what:?}");
    let others = |event: &&Event| event.name.starts_with("disabled:") || event.name == "tracewing:first";
    assert_eq!(events.iter().find(others).map(|event| &event.name), None, "{what:?}");
}

fn play(scene: &str, before: &[&str], options: &[&str]) -> Recording {
    let example = example();
    let command = [before, &[example.to_str().unwrap(), scene]].concat();
    record(&[&RULES, options].concat(), &command)
}

#[test]
fn under_a_filter_that_ends_the_program_for_system_calls() {
    for (options, before) in WAYS {
        let recording = play("filtered", before, options);
        assert_eq!(recording.lost(), 0, "{options:?}, {before:?}: {}", recording.summary);
        is_whole(&recording.events(), &(options, before));
        recording.compare_with_babeltrace2();
    }
}

/// New tasks, from places in the source that are reached for the first time.
#[test]
fn of_tasks_under_a_filter() {
    let program =
        build(&["-p", "tracewing-tokio", "--example", "tokio_filtered"]).join("examples/tokio_filtered");
    for (options, before) in WAYS.into_iter().filter(|(options, _)| !options.contains(&"--process")) {
        let recording = record(options, &[before, &[program.to_str().unwrap()]].concat());
        let tasks: usize = recording.stdout.trim().strip_prefix("tasks ").unwrap().parse().unwrap();
        let mut lost = recording.reasons();
        lost.remove("buffer full");
        assert!(lost.is_empty(), "{options:?}, {before:?}: {}", recording.summary);
        let events = recording.events();
        let created = events.iter().filter(|event| event.name == "user_thread:create").count();
        let is_whole = recording.lost() == 0;
        assert!(
            created == tasks || !is_whole && created < tasks,
            "{options:?}, {before:?}: {created} of {tasks}"
        );
    }
}

#[test]
fn of_a_program_that_is_killed_at_once() {
    for (options, before) in WAYS {
        let example = example();
        let script = format!("{} {} killed; true", before.join(" "), example.display());
        let recording = record(&[&RULES, options].concat(), &["sh", "-c", &script]);
        assert_eq!(recording.lost(), 0, "{options:?}, {before:?}: {}", recording.summary);
        is_whole(&recording.events(), &(options, before));
    }
}

/// A child that shares its parent's buffers. Its own name is not known: it has ended before the recorder
/// looks.
#[test]
fn of_a_forked_child_that_ends_at_once() {
    for options in [&[][..], &["--process", "tracing_sandbox"]] {
        let recording = play("forked", &[], options);
        assert_eq!(recording.lost(), 0, "{options:?}: {}", recording.summary);
        is_whole(&recording.events(), &options);
    }
}

#[test]
fn of_other_programs_are_left_out() {
    let recording = play("filtered", &[], &["--process", "another"]);
    assert_eq!((recording.lost(), numbers(&recording.events())), (0, vec![]));
}

/// Descriptions of classes take more than half of a sub-buffer: the recorder asks for them.
#[test]
fn whose_descriptions_are_too_large() {
    let options = ["--sub-buffers", "64", "--sub-buffer-size", "256"];
    let recording = play("answered", &[], &options);
    assert_eq!(recording.stdout, "ready\nanswered\n", "{}", recording.summary);
}

#[test]
fn programs_get_ids_for_their_classes() {
    let flight: &[&str] = &["--flight-recorder"];
    for (options, before) in WAYS.into_iter().chain([(flight, &[][..])]) {
        let recording = play("answered", before, options);
        assert_eq!(recording.stdout, "ready\nanswered\n", "{options:?}: {}", recording.summary);
    }
}

#[test]
fn are_in_snapshots() {
    for scene in ["filtered", "killed", "forked"] {
        for before in [&[][..], &["env", NO_RSEQ]] {
            let script = format!("{} {} {scene}; true", before.join(" "), example().display());
            let events = record(&[&RULES[..], &FLIGHT].concat(), &["sh", "-c", &script]).snapshot();
            if scene == "forked" && !before.is_empty() {
                continue; // such a child has no buffers of its own yet
            }
            is_whole(&events, &(scene, before));
        }
    }
}

/// The recorder is stopped from before the first event until after the program's end. What waited for it
/// would wait for an hour, in which the program is ended.
#[test]
fn wait_for_no_recorder() {
    for (options, before) in WAYS.into_iter().chain([(&FLIGHT[..], &[][..])]) {
        let script = format!(
            "TRACEWING_WAIT=3600000 {} {} stopped $PPID && echo ended; kill -CONT $PPID",
            before.join(" "),
            example().display()
        );
        let recording = record(&[&RULES, options].concat(), &["sh", "-c", &script]);
        assert!(recording.stdout.ends_with("ended\n"), "{options:?}, {before:?}: {}", recording.stdout);
        assert_eq!(recording.lost(), 0, "{options:?}, {before:?}: {}", recording.summary);
        let is_flight = options == FLIGHT;
        is_whole(&if is_flight { recording.snapshot() } else { recording.events() }, &(options, before));
    }
}

/// Recorder and program are dead, and the recorder has read nothing. Which classes the rules leave out, it
/// has decided for none.
#[test]
fn are_recovered() {
    for before in [&[][..], &["env", NO_RSEQ]] {
        let folder = tempfile::tempdir().unwrap();
        let options = [&RULES[..], &["--buffers-in", "b"]].concat();
        let mut command = recorder(folder.path(), &options);
        let child = command.args(before).arg(example()).arg("alone").spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGKILL));
        let mut recover = harness::tracewing();
        recover.current_dir(folder.path()).args(["recover", "b", "-o", "r"]).succeeds();
        let events = list(&folder.path().join("r"));
        let expected: Vec<u64> = (0..10).flat_map(|number| [number; 2]).chain(10..40).collect();
        assert_eq!(numbers(&events), expected, "{before:?}");
        let unknown = events.iter().find(|event| event.name == "?" || event.name == "tracewing:first");
        assert_eq!(unknown.map(|event| &event.name), None);
    }
}
