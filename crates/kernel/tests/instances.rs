//! Every recorder removes its instance, and none touches another's.

mod common;

use common::{Actor, gate, options, role, say, traceable};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tracewing_kernel::{Error, KernelRecorder, Options, Scope, Tracefs};

fn instances_of(pid: u32) -> Vec<PathBuf> {
    let dir = Tracefs::open().unwrap().root().join("instances");
    let prefix = format!("tracewing-{pid}-");
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix)).collect()
}

fn start(dir: &Path) -> KernelRecorder {
    common::start_in(dir, &options(Scope::System, &["sched_switch"])).unwrap()
}

/// An actor: a recorder that records until it is asked to end, or killed.
#[test]
fn recorder() {
    let Some(dir) = role("recorder") else { return };
    let mut recorder = start(&dir);
    say("recording", std::process::id());
    gate();
    recorder.poll(true).unwrap();
    let summary = recorder.finish().unwrap();
    say("events", summary.streams.iter().map(|stream| stream.events).sum::<u64>());
}

/// An actor: a recorder that panics half-way.
#[test]
fn panicking_recorder() {
    let Some(dir) = role("panicking_recorder") else { return };
    let _recorder = start(&dir);
    say("recording", std::process::id());
    gate();
    panic!("half-way");
}

#[test]
fn an_instance_lives_as_long_as_its_recorder_and_several_can_live_in_one_process() {
    if !traceable() {
        return;
    }
    // In an actor, as the other tests of this process record too.
    let dir = tempfile::tempdir().unwrap();
    let mut actor = Actor::start("recorder", &dir.path().join("a"));
    let pid = actor.expect("recording").parse().unwrap();
    assert_eq!(instances_of(pid).len(), 1);

    const KIB: u32 = 176;
    let options = Options { buffer_kib: KIB, ..options(Scope::System, &["sched_switch"]) };
    let two = ["b", "c"].map(|name| common::start_in(&dir.path().join(name), &options).unwrap());
    assert_eq!(common::instances_with(KIB).len(), 2);
    let [finished, dropped] = two;
    finished.finish().unwrap();
    assert_eq!(common::instances_with(KIB).len(), 1);
    drop(dropped);
    assert_eq!(common::instances_with(KIB).len(), 0);

    assert_eq!(instances_of(pid).len(), 1, "a living recorder's instance is left alone");
    actor.go();
    assert!(actor.expect("events").parse::<u64>().unwrap() > 0);
    assert!(actor.wait().success());
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
}

#[test]
fn recorders_that_come_and_go_in_one_process_leave_each_other_alone() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let dir = dir.path();
            scope.spawn(move || {
                for nth in 0..12 {
                    let mut recorder = start(&dir.join(format!("{thread}-{nth}")));
                    recorder.poll(true).unwrap();
                    recorder.finish().unwrap();
                }
            });
        }
    });
}

#[test]
fn a_killed_recorders_instance_is_removed_by_its_guardian() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut killed = Actor::start("recorder", &dir.path().join("killed"));
    let pid = killed.expect("recording").parse().unwrap();
    assert_eq!(instances_of(pid).len(), 1);
    killed.child.kill().unwrap();
    assert_eq!(killed.wait().signal(), Some(9));
    let begin = Instant::now();
    while !instances_of(pid).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it stays");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_whose_guardian_was_killed_too_is_removed_at_the_next_start() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut living = Actor::start("recorder", &dir.path().join("living"));
    let living_pid = living.expect("recording").parse().unwrap();
    let mut killed = Actor::start("recorder", &dir.path().join("killed"));
    let killed_pid: u32 = killed.expect("recording").parse().unwrap();
    assert!(Command::new("pkill").args(["-KILL", "-P", &killed_pid.to_string()]).status().unwrap().success());
    killed.child.kill().unwrap();
    // A parent that does not ask for its end leaves a zombie, which still has a number and a start time.
    while !fs::read_to_string(format!("/proc/{killed_pid}/stat")).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }

    start(&dir.path().join("next")).finish().unwrap();
    assert_eq!(instances_of(killed_pid), Vec::<PathBuf>::new());
    assert_eq!(killed.wait().signal(), Some(9));
    assert_eq!(instances_of(living_pid).len(), 1, "a living recorder's instance is left alone");
    living.go();
    assert!(living.expect("events").parse::<u64>().unwrap() > 0);
    assert!(living.wait().success());
}

#[test]
fn a_process_number_that_is_in_use_again_protects_nothing() {
    if !traceable() {
        return;
    }
    // The init process is alive, but did not start at this time.
    let stale = Tracefs::open().unwrap().root().join("instances/tracewing-1-987654321");
    fs::create_dir(&stale).unwrap();
    let other = stale.with_file_name(format!("tracewing-test-kernel-{}", std::process::id()));
    fs::create_dir(&other).unwrap();
    let dir = tempfile::tempdir().unwrap();
    drop(start(&dir.path().join("a")));
    let (gone, kept) = (!stale.exists(), other.exists());
    fs::remove_dir(&other).unwrap();
    assert!(gone && kept, "removed the stale one: {gone}, kept the foreign one: {kept}");
}

#[test]
fn a_panic_and_a_failed_start_leave_nothing() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut actor = Actor::start("panicking_recorder", &dir.path().join("a"));
    let pid = actor.expect("recording").parse().unwrap();
    actor.go();
    assert!(!actor.wait().success());
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());

    let refused = |error: Error| error.to_string();
    let mut wrong = options(Scope::System, &["no_such_event*"]);
    let error = common::start_in(&dir.path().join("b"), &wrong).map(drop).map_err(refused).unwrap_err();
    assert!(error.contains("no kernel event is named no_such_event*"), "{error}");
    wrong = options(Scope::System, &["sched_switch"]);
    wrong.buffer_kib = u32::MAX;
    let error = common::start_in(&dir.path().join("b"), &wrong).map(drop).map_err(refused).unwrap_err();
    assert!(error.contains("4294967295 KiB"), "{error}");
    wrong.buffer_kib = 64;
    let error = common::start_in(Path::new("/proc/no"), &wrong).map(drop).map_err(refused).unwrap_err();
    assert!(error.contains("/proc/no"), "{error}");
}

#[test]
fn an_instance_in_use_by_another_process_is_removed_afterwards() {
    if !traceable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut actor = Actor::start("recorder", &dir.path().join("a"));
    let pid = actor.expect("recording").parse().unwrap();
    let looking = fs::File::open(instances_of(pid)[0].join("per_cpu/cpu0/trace_pipe_raw")).unwrap();
    actor.go();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(instances_of(pid).len(), 1, "the kernel does not remove an instance in use");
    drop(looking);
    assert!(actor.wait().success());
    assert_eq!(instances_of(pid), Vec::<PathBuf>::new());
}
