//! Plug-ins with a copy of tracewing of their own that are loaded while the process is recorded.

use super::*;
use std::path::Path;
use std::time::Duration;

/// The plug-in's file, of which a copy is another one to the dynamic linker.
fn plugin() -> String {
    PROGRAM.with_file_name("libplugin.so").display().to_string()
}

/// A program whose plug-ins wait for their recorders, however busy the machine is.
fn patient() -> Resident {
    Resident::of(Command::new(&*PROGRAM).env("TRACEWING_WAIT", "60000"))
}

fn load(program: &mut Resident, path: &str) {
    assert_eq!(program.order(&format!("load {path}")), "loaded");
}

/// Whether no thread, connection or buffer of tracewing is in it.
fn is_left(program: &Resident) -> bool {
    let (threads, files) = program.state();
    // The plug-in has memory of its own to count in.
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", program.pid)).unwrap();
    threads == 1 && !files.iter().any(|file| file.contains("socket:")) && !maps.contains("memfd:tracewing")
}

/// It learns of the recorder from the copy that is recorded, and misses nothing.
#[test]
fn one_joins_when_it_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = patient();
    // It stays loaded, and is attached to from the second round on.
    for (round, copies) in [("1", 1), ("2", 2), ("3", 2)] {
        let recorder = Recorder::start(&folder.path().join(round), program.pid, &[], copies);
        load(&mut program, &plugin());
        assert_eq!(program.order("plugin 7"), "emitted");
        assert_eq!(agents(program.pid), 2);
        program.order("emit 5");
        let trace = recorder.trace().to_owned();
        let said = recorder.stop();
        assert!(said.contains("\"lost_events\":0") && !said.contains("unknown"), "{said}");
        assert_eq!((count(&trace, "resident:step"), count(&trace, "plugin:step")), (5, 7));
        wait_until("the agents have ended", || is_left(&program));
        // What was loaded a moment ago is left for a later look.
        std::thread::sleep(Duration::from_millis(1100));
    }
    // There is no recorder that it could learn of.
    let other = folder.path().join("other.so");
    std::fs::copy(plugin(), &other).unwrap();
    load(&mut program, &other.display().to_string());
    program.order("plugin 7");
    assert!(is_left(&program));
    program.end();
}

/// Each copy that a recorder has attached to has a door of its own to it.
#[test]
fn one_of_a_program_with_several_copies_joins_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = patient();
    load(&mut program, &plugin());
    std::thread::sleep(Duration::from_millis(1500));
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 2);
    let other = folder.path().join("other.so");
    std::fs::copy(plugin(), &other).unwrap();
    load(&mut program, &other.display().to_string());
    program.order("plugin 7");
    assert_eq!(agents(program.pid), 3);
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "plugin:step"), 7);
    program.end();
}

#[test]
fn two_recorders_both_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = patient();
    let recorders = ["1", "2"].map(|name| (name, name.parse().unwrap()));
    let recorders =
        recorders.map(|(name, copies)| Recorder::start(&folder.path().join(name), program.pid, &[], copies));
    load(&mut program, &plugin());
    program.order("plugin 7");
    for recorder in recorders {
        let trace = recorder.trace().to_owned();
        recorder.stop();
        assert_eq!(count(&trace, "plugin:step"), 7);
    }
    program.end();
}

#[test]
fn a_forked_child_may_load_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = patient();
    let recorder = Recorder::start(&folder.path().join("t"), program.pid, &[], 1);
    assert_eq!(program.order(&format!("fork_load {}", plugin())), "0");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "plugin:step"), 3);
    program.end();
}

/// A program that has no copy at first, so that none knows its recorder.
fn host() -> Resident {
    let host = recorded::build(&["-p", "tracewing", "--example", "loader"]).join("examples/loader");
    Resident::of(&mut Command::new(host))
}

fn plugin_events(trace: &Path) -> usize {
    count(trace, "plugin:step")
}

/// The recorder looks for it, and says from when on it is recorded.
#[test]
fn the_first_copy_of_a_program_is_attached_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = host();
    let recorder = Recorder::spawn(&folder.path().join("t"), program.pid, &[]);
    std::thread::sleep(Duration::from_millis(500));
    load(&mut program, &plugin());
    program.order("plugin 3");
    wait_until("it is recorded", || agents(program.pid) == 1);
    wait_until("it has joined", || {
        program.order("plugin 1");
        plugin_events(recorder.trace()) > 0
    });
    let emitted = plugin_events(recorder.trace());
    program.order("plugin 10");
    // No further look finds it once more.
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(agents(program.pid), 1);
    let trace = recorder.trace().to_owned();
    let said = recorder.stop();
    assert!(plugin_events(&trace) >= emitted + 10, "{said}");
    let notes = said.lines().filter(|line| line.starts_with("tracewing: "));
    let notes: Vec<&str> =
        notes.filter(|line| line.contains("libplugin.so, which it has loaded at ")).collect();
    assert!(
        matches!(notes[..], [note] if note.ends_with(" s on: what it emitted before that is unknown")),
        "{said}"
    );
    wait_until("the agent has ended", || is_left(&program));
    program.end();
}

/// What is unloaded within a second is not attached to: that could be the end of the program.
#[test]
fn plugins_that_come_and_go_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = host();
    // A busy machine can stop the program while it has the plug-in, but not each time.
    let is_left_alone = |attempt: usize| {
        let recorder = Recorder::spawn(&folder.path().join(format!("t{attempt}")), program.pid, &[]);
        let answer = program.order(&format!("reload {}", plugin()));
        let said = recorder.stop();
        assert!(answer == "stalled" || !said.contains("libplugin"), "{said}");
        answer == "reloaded"
    };
    assert!((0..10).any(is_left_alone));
    program.end();
}
