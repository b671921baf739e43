//! Records C tracepoints of every field kind with LTTng in several ways, and compares with babeltrace2.

use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_trace::babeltrace2::{
    assert_always_same_as_babeltrace2, assert_same_as_babeltrace2, is_available,
};

/// Records everything `record.sh` records; `None`, with a line on stderr, where LTTng is missing.
fn record(out: &Path) -> Option<()> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lttng/record.sh");
    let status = Command::new(script).arg(out).status().expect("bash runs record.sh");
    match status.code() {
        Some(0) => Some(()),
        Some(77) => {
            eprintln!("skipped: LTTng is not installed");
            None
        }
        _ => panic!("record.sh: {status}"),
    }
}

#[test]
fn lttng_traces_print_as_babeltrace2_prints_them() {
    let out = tempfile::tempdir().unwrap();
    if !is_available() || record(out.path()).is_none() {
        return;
    }
    for name in ["uid", "pid", "lossy", "rotated", "snapshot"] {
        assert_always_same_as_babeltrace2(out.path().join(name));
    }
    // All of them at once: several traces, and chunks that belong together.
    assert_always_same_as_babeltrace2(out.path());

    let lossy = out.path().join("lossy");
    let report = {
        let recording = tracewing_trace::Recording::open(&[&lossy]).unwrap();
        let (report, errors) = tracewing_trace::Report::new(&recording);
        assert!(errors.is_empty(), "{errors:?}");
        report
    };
    let streams = || report.traces.iter().flat_map(|trace| &trace.streams);
    let lost: u64 = streams().map(|stream| stream.lost_events).sum();
    let seen: u64 = report
        .traces
        .iter()
        .flat_map(|trace| &trace.event_classes)
        .filter(|class| class.name.as_deref() == Some("kinds:big"))
        .map(|class| class.count)
        .sum();
    assert!(lost > 0, "the sub-buffers were meant to overflow");
    // 4 threads of 5000 and 2 of 2000; the state dump's events are in the losses too, at most.
    assert!(seen + lost >= 24_000, "{seen} seen, {lost} lost");

    // Ranges that begin and end in the middle of losses.
    let losses: Vec<_> = streams().flat_map(|stream| &stream.losses).collect();
    let seconds = |ns: i64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    for loss in losses.iter().take(4) {
        let (begin, end) = (loss.begin_ns.unwrap(), loss.end_ns.unwrap());
        let middle = seconds(begin + (end - begin) / 2);
        let begin_option = format!("--begin={middle}");
        let end_option = format!("--end={middle}");
        assert_same_as_babeltrace2(&lossy, &[&begin_option]);
        assert_same_as_babeltrace2(&lossy, &[&end_option]);
        assert_same_as_babeltrace2(&lossy, &[&begin_option, &format!("--end={}", seconds(end + 50_000))]);
    }
}
