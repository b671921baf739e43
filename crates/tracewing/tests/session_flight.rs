//! A program that is its own flight recorder. One test at a time: a process has one recording.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracewing::{Event, Session, SessionBuilder, SessionError, SnapshotError, emit};
use tracewing_testing::build;

#[derive(Event)]
#[event(provider = "own")]
struct Step {
    number: u64,
}

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn small() -> SessionBuilder {
    Session::builder().flight_recorder().sub_buffers(4).sub_buffer_size(4096)
}

/// Numbers of the `own:step` events in a trace, as babeltrace2 reads it; `None` where it is not installed.
fn numbers(trace: &Path) -> Option<Vec<u64>> {
    let Ok(output) = Command::new("babeltrace2").arg(trace).output() else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
        return None;
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).unwrap();
    let number = |line: &str| line.split_once("number = ")?.1.split(' ').next()?.parse().ok();
    Some(text.lines().filter(|line| line.contains("own:step")).filter_map(number).collect())
}

/// Stays on the CPU that it runs on.
fn pin() {
    // SAFETY: an all-zero set is a valid one; the calling thread alone is moved.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(usize::try_from(libc::sched_getcpu()).unwrap(), &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set), 0);
    }
}

#[test]
fn snapshots_hold_the_newest_events_and_overlap() {
    let _alone = alone();
    pin();
    for builder in [small(), small().monotonic_clock()] {
        let folder = tempfile::tempdir().unwrap();
        let session = builder.start().unwrap();
        let mut last = 0;
        let mut previous: Option<Vec<u64>> = None;
        for round in 0..4_u64 {
            // The first rounds fit into the buffers, the others do not.
            for _ in 0..if round < 2 { 50 } else { 1000 } {
                last += 1;
                emit!(Step { number: last });
                if round == 3 && last.is_multiple_of(10) {
                    break;
                }
            }
            let path = folder.path().join(round.to_string());
            let summary = session.snapshot(&path).unwrap();
            assert_eq!((summary.folder.as_path(), summary.lost), (path.as_path(), 0));
            let Some(found) = numbers(&path) else { return };
            assert!(found.len() as u64 <= summary.events && summary.events <= found.len() as u64 + 1);
            assert!(found.iter().copied().eq(found[0]..=last), "{:?} to {:?}", found.first(), found.last());
            assert_eq!(found[0] == 1, round < 2, "{}", found[0]);
            if round != 2
                && let Some(before) = &previous
            {
                assert!(found[0] <= *before.last().unwrap(), "no overlap");
            }
            previous = Some(found);
        }
        let stopped = session.stop().unwrap();
        assert_eq!(stopped.folder, folder.path().join("3"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}

#[test]
fn what_is_no_flight_recorder_takes_no_snapshots() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let session = Session::builder().output(folder.path().join("t")).start().unwrap();
    let error = session.snapshot(folder.path().join("s")).unwrap_err();
    assert!(matches!(error, SessionError::NotFlightRecorder), "{error}");
    drop(session);
    assert!(!folder.path().join("s").exists());
    assert_eq!(tracewing::snapshot(), Err(SnapshotError::NotRecorded));
}

#[test]
fn a_folder_that_is_not_empty_is_refused_and_recording_continues() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let session = small().start().unwrap();
    emit!(Step { number: 1 });
    let error = session.snapshot(folder.path()).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    let error = session.snapshot("/proc/no/such/place").unwrap_err();
    assert!(error.to_string().contains("/proc/no"), "{error}");
    let summary = session.snapshot(folder.path().join("s")).unwrap();
    assert!(summary.events >= 1);
    assert_eq!(session.stop().unwrap(), summary);
}

#[test]
fn threads_and_a_panic_hook_can_ask_at_the_same_time() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let session = small().start().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (session, folder) = (&session, folder.path());
            scope.spawn(move || {
                for round in 0..5 {
                    emit!(Step { number: round });
                    session.snapshot(folder.join(format!("{thread}-{round}"))).unwrap();
                }
            });
        }
    });
    drop(session);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 20);
}

/// The example: recorded by itself.
#[test]
fn the_example_panics_and_leaves_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let built = build(env!("CARGO_TARGET_TMPDIR"), &["-p", "tracewing", "--example", "panic"]);
    let output = Command::new(built.join("examples/panic")).arg(&trace).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("cannot divide by 0"), "{errors}");
    let Ok(listed) = Command::new("babeltrace2").arg(&trace).output() else {
        return tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
    };
    let text = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(text.matches("panic:divide").count(), 10, "{text}");
    assert!(text.trim_end().ends_with("{ dividend = 100, divisor = 0 }"), "{text}");
}
