//! Several copies of tracewing in one process: a program and its plug-in, and plug-ins of a program that has
//! none (`crates/tracewing/tests/programs/host.rs` and `plugin.rs`), unloaded while other threads emit.

mod harness;
mod recorded;

use harness::{Printed, RunExt};
use std::fs;
use std::process::Command;
use tracewing_testing::am_root;

use recorded::{UNREADY, build, counts, record};

const WAYS: [&[&str]; 3] = [&["--buffers", "program"], &["--buffers", "process"], &["--clock", "mono"]];
const ROUNDS: u64 = 20;

struct Programs {
    _folder: tempfile::TempDir,
    tasks: String,
    host: String,
    plugin: String,
    /// The same library to the eye; to the loader another one.
    other: String,
}

fn programs() -> Programs {
    let examples = ["tasks", "plugin", "host"].map(|name| ["--example", name]).concat();
    let folder = build(&[&["-p", "tracewing"], &examples[..]].concat()).join("examples");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let copies = tempfile::tempdir().unwrap();
    let other = copies.path().join("other.so");
    fs::copy(folder.join("libplugin.so"), &other).unwrap();
    let other = other.to_str().unwrap().to_owned();
    Programs {
        tasks: path("tasks"),
        host: path("host"),
        plugin: path("libplugin.so"),
        other,
        _folder: copies,
    }
}

/// Whether a program's children need buffers of their own, and lose what they emit before they have them.
/// Root's always do.
fn children_may_lose(options: &[&str]) -> bool {
    am_root() || !options.contains(&"program")
}

/// What a line of the program's output says after `name`.
fn said(stdout: &str, name: &str) -> u64 {
    stdout.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
}

#[test]
fn plugins_come_and_go_while_others_emit() {
    let Programs { host, plugin, other, .. } = &programs();
    for options in WAYS {
        let recording = record(options, &[host, plugin, &ROUNDS.to_string(), other]);
        recording.account(None);
        let (lost, may_lose) = (recording.reasons(), children_may_lose(options));
        assert!(lost.keys().all(|reason| may_lose && *reason == UNREADY), "{}", recording.summary);
        for (place, each) in [(10, 50), (11, 50), (12, 20)] {
            assert_eq!(*recording.counts()[&place].start(), each * ROUNDS);
        }
        recording.compare_with_babeltrace2();
        // What is recorded stays loaded, and joins once; the second mapping is the other copy's.
        assert!(said(&recording.stdout, "loaded ") > 0, "the plug-in was unloaded");
        assert_eq!(said(&recording.stdout, "mapped "), 2, "buffers are mapped over and over");
        assert_eq!(recording.summary["processes"], 1, "one program with two copies of the library");
    }
}

#[test]
fn plugins_that_no_recording_uses_are_unloaded() {
    let Programs { host, plugin, other, .. } = &programs();
    let output = Command::new(host).args([plugin, "5", other]).succeeds();
    let stdout = output.text();
    assert_eq!((said(&stdout, "mapped "), said(&stdout, "loaded ")), (0, 0), "{stdout}");
    assert_eq!(*counts(&stdout)[&10].start(), 250);
}

#[test]
fn a_program_and_its_plugin_are_both_recorded() {
    let Programs { tasks, plugin, .. } = &programs();
    for options in WAYS {
        let recording = record(options, &[tasks, "with_plugin", plugin]);
        let unready =
            if children_may_lose(options) { recording.reasons().remove(UNREADY).unwrap_or(0) } else { 0 };
        assert_eq!(recording.lost(), unready, "{}", recording.summary);
        // Three threads, each announced by both copies.
        recording.account((unready == 0).then_some(6));
        let events = recording.events();
        let count = |name: &str| events.iter().filter(|event| event.name.starts_with(name)).count() as u64;
        let found = (count("tasks:"), count("plugin:"));
        assert!(found.0 <= 1050 && found.1 <= 1050 && found.0 + found.1 + unready == 2100, "{found:?}");
    }
}
