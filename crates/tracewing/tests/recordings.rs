//! Several recordings of one program at once, each with its own rules; rules that change; pauses; and that
//! beginning and ending recordings, however often, takes no memory for good.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracewing::rules::{Action, Glob, Majors, Predicate, Rule};
use tracewing::{Event, Session, SessionError, emit, event};

/// Sessions of a program see each other's events: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Event)]
#[event(provider = "recordings")]
struct Sold<'a> {
    number: u64,
    customer: &'a str,
}

#[derive(Event)]
#[event(provider = "recordings", level = "debug", major = 5)]
struct Detail {
    number: u64,
}

fn emit_all(numbers: std::ops::Range<u64>) {
    for number in numbers {
        emit!(Sold { number, customer: if number % 2 == 0 { "Ada" } else { "Grace" } });
        emit!(Detail { number });
        event!(level: Warn, "recordings:odd", number);
    }
}

/// `sold 1`, `detail 1`, … in the order of the trace. `None`, with a line on stderr, where babeltrace2 is not
/// installed.
fn names(trace: &Path) -> Option<Vec<String>> {
    let output = match std::process::Command::new("babeltrace2").arg(trace).output() {
        Ok(output) => output,
        Err(error) => {
            tracewing_testing::skip(
                tracewing_testing::Cause::Program("babeltrace2"),
                format_args!("babeltrace2: {error}"),
            );
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let name = |line: &str| {
        let name = line.split("recordings:").nth(1)?.split(':').next()?.to_owned();
        let number = line.split("number = ").nth(1)?.split([',', ' ']).next()?.to_owned();
        Some(format!("{name} {number}"))
    };
    Some(text.lines().filter_map(name).collect())
}

fn check(trace: &Path, expected: &[&str]) {
    assert!(names(trace).is_none_or(|found| found == expected), "{:?} instead of {expected:?}", names(trace));
}

fn session(folder: &Path, name: &str, rules: impl IntoIterator<Item = Rule>) -> (PathBuf, Session) {
    let trace = folder.join(name);
    let builder = Session::builder().output(&trace);
    let session = rules.into_iter().fold(builder, |builder, rule| builder.rule(rule)).start().unwrap();
    (trace, session)
}

fn only_if(predicate: &str, events: &str) -> Rule {
    let action = Action::Enable(Some(Predicate::parse(predicate).unwrap()));
    Rule { action, ..Rule::enable([events]) }
}

#[test]
fn each_recording_has_its_own_rules() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let all = session(folder, "all", []);
    let excluded = session(
        folder,
        "excluded",
        [Rule { exclude: vec![Glob::new("*:detail")], ..Rule::enable(["recordings:*"]) }],
    );
    let severe = session(folder, "severe", [Rule { levels: "warn".parse().unwrap(), ..Rule::default() }]);
    let major = session(folder, "major", [Rule { majors: Majors(1 << 5), ..Rule::default() }]);
    let customer =
        session(folder, "customer", [only_if("number > 1 && customer == \"Ada\"", "recordings:sold")]);
    let absent = session(folder, "absent", [only_if("customer == \"Ada\"", "recordings:*")]);
    let nothing = session(folder, "nothing", [Rule::enable(["other:*"])]);
    emit_all(0..3);
    let expected: [(_, &[&str]); 7] = [
        (all, &["sold 0", "detail 0", "odd 0", "sold 1", "detail 1", "odd 1", "sold 2", "detail 2", "odd 2"]),
        (excluded, &["sold 0", "odd 0", "sold 1", "odd 1", "sold 2", "odd 2"]),
        (severe, &["odd 0", "odd 1", "odd 2"]),
        (major, &["detail 0", "detail 1", "detail 2"]),
        (customer, &["sold 2"]),
        (absent, &["sold 0", "sold 2"]),
        (nothing, &[]),
    ];
    for ((trace, session), expected) in expected {
        assert_eq!(session.stop().unwrap().lost, 0);
        check(&trace, expected);
    }
}

#[test]
fn rules_change_while_a_recording_runs() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (other, undisturbed) = session(folder.path(), "other", [Rule::enable(["recordings:sold"])]);
    let (trace, session) = session(folder.path(), "t", [Rule::enable(["recordings:sold"])]);
    emit_all(0..1);
    session.rule(Rule::disable(["recordings:*"])).unwrap();
    emit_all(1..2);
    session.rule(Rule::enable(["*:detail"])).unwrap();
    emit_all(2..3);
    session.rule(only_if("number & 4", "recordings:sold")).unwrap();
    emit_all(3..6);
    session.rule(only_if("number == 7", "recordings:*")).unwrap();
    emit_all(6..8);
    let mut others = (0..).map(|number| session.rule(Rule::disable([format!("other:{number}").as_str()])));
    let refused = others.by_ref().take(300).find_map(Result::err);
    assert!(matches!(refused, Some(SessionError::Rules(_))), "{refused:?}");
    session.stop().unwrap();
    let expected = ["sold 0", "detail 2", "detail 3", "sold 4", "detail 4", "sold 5", "detail 5"];
    check(&trace, &[&expected[..], &["sold 7", "detail 7", "odd 7"]].concat());
    emit_all(8..9);
    undisturbed.stop().unwrap();
    let expected: Vec<String> = (0..9).map(|number| format!("sold {number}")).collect();
    check(&other, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_forked_child_begins_a_session_while_its_parent_changes_one() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (_, session) = session(folder.path(), "t", [Rule::enable(["other:*"])]);
    let stop = AtomicBool::new(false);
    let badly = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                session.rule(Rule::enable(["*:detail"])).unwrap();
            }
        });
        let fork = |_| {
            // SAFETY: the child begins a session, ends it, and ends; if it takes too long, the alarm ends it.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    libc::alarm(20);
                    let builder = Session::builder().flight_recorder().sub_buffers(2).sub_buffer_size(4096);
                    libc::_exit(i32::from(builder.start().and_then(Session::stop).is_err()));
                }
                let mut status = -1;
                libc::waitpid(child, &raw mut status, 0);
                status
            }
        };
        let badly = (0..10).map(fork).find(|end| *end != 0);
        stop.store(true, Relaxed);
        badly
    });
    assert_eq!(badly, None);
    session.stop().unwrap();
}

#[test]
fn a_pause_is_without_events_also_of_new_threads() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (trace, session) = session(folder.path(), "t", [Rule::enable(["*:detail"])]);
    emit_all(0..1);
    session.pause();
    std::thread::scope(|scope| {
        scope.spawn(|| emit_all(1..2));
    });
    emit_all(2..3);
    session.resume();
    std::thread::scope(|scope| {
        scope.spawn(|| emit_all(3..4));
    });
    emit_all(4..5);
    let summary = session.stop().unwrap();
    // Two threads are announced.
    assert_eq!((summary.events, summary.lost), (5, 0));
    check(&trace, &["detail 0", "detail 3", "detail 4"]);
}

/// Bytes of memory that are the process's own, and the number of its mappings.
fn memory() -> (usize, usize) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages = |field: usize| statm.split(' ').nth(field).unwrap().parse::<usize>().unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    ((pages(1) - pages(2)) * 4096, maps)
}

/// `TRACEWING_CYCLES` says how many; 10,000 take half a minute.
#[test]
fn recordings_come_and_go_without_trace_in_memory() {
    let _alone = alone();
    let cycles: u64 =
        std::env::var("TRACEWING_CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let mut before = memory();
    for cycle in 0..cycles + 100 {
        if cycle == 100 {
            before = memory();
        }
        let rule = only_if("number > 3", "recordings:*");
        let builder = Session::builder().flight_recorder().sub_buffers(2).sub_buffer_size(4096);
        let session = builder.rule(rule).start().unwrap();
        emit_all(cycle..cycle + 2);
        session.rule(Rule::disable(["recordings:odd"])).unwrap();
        session.stop().unwrap();
    }
    let after = memory();
    assert!(after.0 < before.0 + (1 << 20), "{before:?} before, {after:?} after {cycles} recordings");
    assert!(after.1 < before.1 + 8, "{before:?} before, {after:?} after {cycles} recordings");
}
