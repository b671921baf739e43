//! Recorders that are killed while they attach.

use super::*;
use std::time::Duration;
use tracewing_programs::{entries, image};

/// It has had a door opened, and has not taken it.
#[test]
fn a_door_is_closed_soon_after_its_recorder_has_ended() {
    let recorder =
        recorded::build(&["-p", "tracewing-attach", "--example", "target"]).join("examples/target");
    let mut program = Resident::start();
    let before = program.state();
    let process = image::Process::open(tracewing_units::Pid(program.pid.cast_signed())).unwrap();
    let [entry] = &entries(&process)[..] else { panic!("one copy of tracewing") };
    let mut soonest = Duration::MAX;
    for _ in 0..3 {
        let mut command = Command::new(&recorder);
        let output =
            command.args(["attach", &program.pid.to_string(), &entry.address.to_string()]).output().unwrap();
        let called = Instant::now();
        assert!(output.status.success() && !output.stdout.starts_with(b"process"), "{}", output.notes());
        wait_until("the agent has ended", || program.state() == before);
        soonest = soonest.min(called.elapsed());
    }
    // It looks every 100 ms, and would wait for 10 s for one that may live.
    assert!(soonest < Duration::from_secs(10), "{soonest:?}");
    program.order("emit 10");
    program.end();
}

#[test]
fn a_recorder_that_is_killed_at_any_moment_leaves_nothing_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Resident::start();
    let before = program.state();
    for round in 0..60_u64 {
        let recorder = Recorder::spawn(&folder.path().join(round.to_string()), program.pid, &[]);
        std::thread::sleep(Duration::from_micros(1000 + round * 251));
        recorder.kill();
        wait_until("the agent has ended", || program.state() == before);
        assert_eq!(program.order("emit 10"), "emitted");
    }
    // The next one finds nothing in its way.
    let recorder = Recorder::start(&folder.path().join("last"), program.pid, &[], 1);
    program.order("emit 10");
    let trace = recorder.trace().to_owned();
    recorder.stop();
    assert_eq!(count(&trace, "resident:step"), 10);
    wait_until("the agent has ended", || program.state() == before);
    assert_eq!(program.mappings().1, 0);
    program.end();
}
