//! A program that records itself. One test at a time: a process has one recording.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracewing::{Event, Session, SessionError, emit};

#[derive(Event)]
#[event(provider = "own")]
struct Step {
    number: u64,
}

#[derive(Event)]
#[event(provider = "other")]
struct Noise {
    number: u64,
}

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
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
    assert!(!text.contains("other:noise"));
    let number = |line: &str| line.split_once("number = ")?.1.split(' ').next()?.parse().ok();
    Some(text.lines().filter(|line| line.contains("own:step")).filter_map(number).collect())
}

#[test]
fn what_is_emitted_between_start_and_stop_is_recorded() {
    let _alone = alone();
    for clock in ["tsc", "monotonic"] {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        emit!(Step { number: 999 });
        let builder = Session::builder().output(&trace).event("own:*");
        let builder = if clock == "monotonic" { builder.monotonic_clock() } else { builder };
        let session = builder.start().unwrap();
        for number in 0..1000 {
            emit!(Step { number });
            emit!(Noise { number });
        }
        std::thread::spawn(|| emit!(Step { number: 1000 })).join().unwrap();
        let summary = session.stop().unwrap();
        emit!(Step { number: 998 });
        assert_eq!(summary.lost, 0);
        assert!(summary.events >= 1001);
        if let Some(mut found) = numbers(&trace) {
            found.sort_unstable();
            assert!(found.into_iter().eq(0..=1000));
        }
    }
}

#[test]
fn sessions_follow_each_other_and_overlap() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let trace = folder.path().join(round.to_string());
        let session = Session::builder().output(&trace).start().unwrap();
        let within = folder.path().join(format!("{round}-within"));
        let second = Session::builder().output(&within).start().unwrap();
        emit!(Step { number: round });
        drop(second);
        emit!(Step { number: round + 100 });
        drop(session);
        assert!(numbers(&trace).is_none_or(|found| found == [round, round + 100]));
        assert!(numbers(&within).is_none_or(|found| found == [round]));
    }
    let start =
        |number: usize| Session::builder().output(folder.path().join(format!("many-{number}"))).start();
    let sessions: Vec<_> = (0..8).map(start).collect::<Result<_, _>>().unwrap();
    assert!(matches!(start(8), Err(SessionError::CannotTakePart)));
    assert!(!folder.path().join("many-8").exists());
    emit!(Step { number: 7 });
    for session in sessions {
        let summary = session.stop().unwrap();
        assert!(numbers(&summary.folder).is_none_or(|found| found == [7]));
    }
    let error = Session::builder().output(folder.path()).start().unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
    let odd = Session::builder().output(folder.path().join("odd")).sub_buffers(3).start().unwrap_err();
    assert!(odd.to_string().contains("power of two"), "{odd}");
}

#[test]
fn events_reach_the_folder_while_the_session_runs() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    let session = Session::builder().output(&trace).flush(Duration::from_millis(20)).start().unwrap();
    emit!(Step { number: 1 });
    let begin = Instant::now();
    let has_packets = || {
        let files = fs::read_dir(trace.join("user")).unwrap().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("pid"))
    };
    while !has_packets() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing was written");
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(session);
}

#[test]
fn a_forked_child_can_drop_its_parents_session() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let session = Session::builder().output(folder.path().join("t")).start().unwrap();
    // SAFETY: the child drops the session, which takes no lock there, and exits.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let result = session.stop();
        let status = i32::from(!matches!(result, Err(SessionError::OfParent)));
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    assert_eq!(status, 0);
    emit!(Step { number: 5 });
    assert_eq!(session.stop().unwrap().lost, 0);
}
