//! Records C tracepoints of every field kind with LTTng in several ways, and compares with babeltrace2.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_oracle::{assert_always_same_as_babeltrace2, assert_same_as_babeltrace2, is_available};
use tracewing_trace::{Filter, Format, Listing, Predicate, Recording};
use tracewing_units::Duration;

/// Records everything `record.sh` records; `None`, with a line on stderr, where LTTng is missing.
fn record(out: &Path) -> Option<()> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/lttng/record.sh");
    let status = Command::new(script).arg(out).status().expect("bash runs record.sh");
    match status.code() {
        Some(0) => Some(()),
        Some(77) => {
            tracewing_testing::skip(tracewing_testing::Cause::Program("lttng"), "LTTng is not installed");
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

    predicates_choose_what_they_say(&out.path().join("uid"));

    let lossy = out.path().join("lossy");
    let report = {
        let recording = tracewing_trace::Recording::open(&[&lossy]).unwrap();
        let (report, errors) = tracewing_trace::Report::new(&recording);
        assert!(errors.is_empty(), "{errors:?}");
        report
    };
    let streams = || report.traces.iter().flat_map(|trace| &trace.streams);
    let lost: u64 = streams().map(|stream| stream.lost.least_events).sum();
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
        let middle = seconds((begin + (end - begin) / 2).as_ns());
        let begin_option = format!("--begin={middle}");
        let end_option = format!("--end={middle}");
        assert_same_as_babeltrace2(&lossy, &[&begin_option]);
        assert_same_as_babeltrace2(&lossy, &[&end_option]);
        assert_same_as_babeltrace2(
            &lossy,
            &[&begin_option, &format!("--end={}", seconds((end + Duration::from_ns(50_000)).as_ns()))],
        );
    }
}

/// The events of a trace as JSON, all or those for which a predicate holds.
fn as_json(recording: &Recording, predicate: Option<&str>) -> Vec<Value> {
    let predicate = predicate.map(|text| Predicate::parse(text).unwrap());
    let listing = Listing {
        format: Format::Json,
        filter: Filter { predicate, ..Filter::default() },
        ..Listing::default()
    };
    let mut out = (Vec::new(), Vec::new());
    listing.print(recording, &mut out).unwrap();
    out.0
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// Compares each predicate with an equivalent test on the event's JSON.
fn predicates_choose_what_they_say(trace: &Path) {
    type Meaning = fn(&Value, &Value) -> bool;
    let cases: [(&str, Meaning); 14] = [
        ("u64 > 9223372036854775807", |payload, _| payload["u64"].as_u64() > Some(i64::MAX as u64)),
        ("u64 == i64 && i64 >= 0", |payload, _| {
            payload["u64"].as_u64().is_some() && payload["u64"].as_u64() == payload["i64"].as_u64()
        }),
        ("i8 < 0 && u8 & 0x80", |payload, _| payload["i8"].as_i64() < Some(0) && !payload["i8"].is_null()),
        ("nh16 == 0xff00 || n32 == 0x0700_0000", |payload, _| {
            payload["nh16"] == 0xff00 || payload["n32"] == 0x0700_0000
        }),
        ("twice > 0.1 && twice <= 123457", |payload, _| {
            payload["twice"].as_f64().is_some_and(|real| real > 0.1 && real <= 123_457.0)
        }),
        ("single != single", |_, _| false),
        ("twice == twice", |payload, _| !payload["twice"].is_null() && payload["twice"] != "nan"),
        ("string =~ '*words' || text == 'plain'", |payload, _| {
            payload["string"] == "two words" || payload["text"] == "plain"
        }),
        ("len(seqtext) == 5 && string != ''", |payload, _| payload["seqtext"] == "plain"),
        ("seq[2] == -9223372036854775808", |payload, _| payload["seq"][2] == i64::MIN),
        ("len(seqhex) > 1 && bytes[0] == 255 && after != 3", |payload, _| {
            payload["seqhex"].as_array().is_some_and(|seq| seq.len() > 1) && payload["after"] != 3
        }),
        ("colour == 'warm' && colour !~ 'co*'", |payload, _| {
            let labels = payload["colour"]["labels"].as_array();
            labels.is_some_and(|labels| {
                labels.contains(&"warm".into()) && !labels.contains(&"cold \"quoted\"".into())
            })
        }),
        ("$procname == 'kinds' && $tid != $pid && $level == 0", |payload, event| {
            let context = &event["common_context"];
            !payload["twice"].is_null() && context["vtid"] != context["vpid"]
        }),
        ("$event =~ 'kinds:*' && $cpu == 0 && !($vtid == $vpid)", |_, event| {
            let context = &event["common_context"];
            event["event"].as_str().is_some_and(|name| name.starts_with("kinds:"))
                && event["packet_context"]["cpu_id"] == 0
                && context["vtid"] != context["vpid"]
        }),
    ];
    let recording = Recording::open(&[trace]).unwrap();
    let all = as_json(&recording, None);
    for (predicate, meaning) in cases {
        let expected: Vec<_> = all.iter().filter(|event| meaning(&event["payload"], event)).collect();
        let chosen = as_json(&recording, Some(predicate));
        assert_eq!(chosen.iter().collect::<Vec<_>>(), expected, "{predicate}");
        // On which CPU a thread ran is the scheduler's business.
        let may_be_empty = predicate == "single != single" || predicate.contains("$cpu");
        assert!(chosen.len() < all.len() && (may_be_empty || !chosen.is_empty()), "{predicate}");
    }
}
