//! A part of the time lasts from its begin to its end, wherever its events are: threads continue with what
//! they did before it until an event, or a loss, says otherwise.

#[path = "../../trace/tests/common/mod.rs"]
mod common;
mod harness;

use common::{Event, Packet, class, write_trace};
use harness::{Json, Printed, RunExt};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};

/// When the clock is 0, in milliseconds, as `write` has it.
const ORIGIN_MS: u64 = 1_795_235_140_123;

/// On one CPU, 11 runs from 1 to 2 ms, 12 from there to 8 ms, 11 until 9 ms, nothing until 12 ms, and 11
/// until 13 ms. Packets end at 3 and 9.5 ms, and five events or a packet are lost after the first.
fn write(folder: &Path, has_loss: bool) {
    let mut class = class(Some(1), 1_000_000_000);
    class.set_env("domain", "kernel".to_owned());
    class.clock_classes[0].offset_cycles = tracewing_units::Cycles(123_000_000);
    let number = || FieldClass::signed(32);
    let payload = StructureClass::new()
        .with("prev_comm", FieldClass::string())
        .with("prev_tid", number())
        .with("prev_state", FieldClass::signed(64))
        .with("next_comm", FieldClass::string())
        .with("next_tid", number());
    class.data_stream_classes[0].event_record_classes =
        vec![EventRecordClass::new(0, "sched_switch").with_payload(payload)];
    let switch = |us: u64, prev: i32, state: i64, next: i32| {
        let named = |tid: i32| [&b"name\0"[..], &tid.to_le_bytes()].concat();
        let payload = [named(prev), state.to_le_bytes().to_vec(), named(next)].concat();
        Event { stamp: us * 1000, id: 0, tid: prev, payload }
    };
    let lost = if has_loss { 5 } else { 0 };
    let begin = if has_loss { 7000 } else { 3000 };
    let packets = [
        (500, 3000, 0, [switch(1000, 0, 0, 11), switch(2000, 11, 1, 12)]),
        (begin, 9500, lost, [switch(8000, 12, 1, 11), switch(9000, 11, 1, 0)]),
        (11_000, 14_000, lost, [switch(12_000, 0, 0, 11), switch(13_000, 11, 1, 0)]),
    ];
    let bytes = packets.into_iter().zip(0..).flat_map(|((begin, end, discarded, events), seq)| {
        Packet { seq, discarded, ..Packet::new(1, 0, begin * 1000, end * 1000) }.bytes(&events)
    });
    write_trace(folder, &class, &[("kernel_0", bytes.collect())]);
}

/// What a command prints of the time between two points, in microseconds.
fn of(trace: &Path, command: &[&str], (from, to): (u64, u64)) -> Output {
    let point = |us: u64| {
        let us = ORIGIN_MS * 1000 + us;
        format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
    };
    harness::of(trace, command).args(["--from", &point(from), "--to", &point(to)]).succeeds()
}

/// How long thread 11, then 12, ran, and was in an unknown state, in microseconds; and the whole time.
fn times(trace: &Path, range: (u64, u64)) -> [u64; 5] {
    let table = of(trace, &["threads", "--format", "json"], range).json();
    let threads = table["threads"].as_array().unwrap();
    let us = |of: &Value, name: &str| of[name].as_u64().unwrap() / 1000;
    let time =
        |tid: i32, name: &str| threads.iter().find(|row| row["tid"] == tid).map_or(0, |row| us(row, name));
    let [running, unknown] = ["running_ns", "unknown_ns"];
    [time(11, running), time(11, unknown), time(12, running), time(12, unknown), us(&table, "duration_ns")]
}

#[test]
fn a_window_without_an_event_lasts_from_its_begin_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path();
    write(trace, false);
    // Without wakes, what 11 does until it runs again is unknown.
    assert_eq!(times(trace, (2500, 3000)), [0, 500, 500, 0, 500]);
    assert_eq!(times(trace, (10_000, 11_000)), [0, 1000, 0, 1000, 1000]);
    // Before and after all events, nothing is known.
    assert_eq!(times(trace, (100, 200)), [0; 5]);
    assert_eq!(times(trace, (15_000, 16_000)), [0; 5]);
    let window = (2500, 3000);
    let json = |command: &[&str]| of(trace, &[command, &["--format", "json"]].concat(), window).json();
    assert_eq!(json(&["sched", "latency"])["threads"][0]["running_ns"], 500_000);
    let breakdown = json(&["breakdown"]);
    assert_eq!(breakdown["duration_ns"], 500_000, "{breakdown}");
    let printed = of(trace, &["breakdown"], window).text();
    assert!(printed.contains("unknown       0.500  100.0"), "{printed}");
    let chrome = of(trace, &["export", "-o", "-", "--format", "chrome"], window).text();
    assert!(chrome.contains("\"tid\":12,\"ts\":0.000,\"dur\":500.000,\"name\":\"running\""), "{chrome}");
}

#[test]
fn no_event_has_no_time_and_the_chosen_time_is_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), false);
    let statistics = of(folder.path(), &["stats"], (2500, 3000)).text();
    assert!(statistics.contains("0 events, 0 bytes, - s, 0 events lost"), "{statistics}");
    let statistics = of(folder.path(), &["stats", "--format", "json"], (2500, 3000)).json();
    assert_eq!((&statistics["duration_ns"], &statistics["total"]["events"]), (&Value::Null, &json!(0)));
    for (range, why) in [
        ((2500, 3000), "None of them happened in the chosen time."),
        ((15_000, 16_000), "--from is after the last event ("),
        ((100, 200), "--to is before the first event ("),
    ] {
        let notes = of(folder.path(), &["list"], range).notes();
        let line = format!("The filter leaves out all of the recording's 6 events. {why}");
        assert!(notes.contains(&line), "{range:?}: {notes}");
        let notes = of(folder.path(), &["list", "-e", "sched_switch"], range).notes();
        assert!(notes.contains(&line), "{range:?}: {notes}");
    }
}

#[test]
fn time_before_a_loss_is_known_though_no_event_comes_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path();
    write(trace, true);
    // The loss lasts from 3 to 9.5 ms; of the whole time, 12 ran from 2 ms on.
    assert_eq!(times(trace, (500, 14_000)), [3000, 9000, 1000, 11_000, 12_000]);
    assert_eq!(times(trace, (2500, 14_000)), [2000, 8500, 500, 10_000, 10_500]);
    assert_eq!(times(trace, (2500, 2900)), [0, 400, 400, 0, 400]);
    assert_eq!(times(trace, (2500, 4000)), [0, 1500, 500, 1000, 1500]);
    // All of it is lost.
    assert_eq!(times(trace, (4000, 5000)), [0, 1000, 0, 1000, 1000]);
    let latency = of(trace, &["sched", "latency", "--format", "json"], (2500, 14_000)).json();
    let running: u64 =
        latency["threads"].as_array().unwrap().iter().map(|row| row["running_ns"].as_u64().unwrap()).sum();
    assert_eq!(running, 2_500_000, "{latency}");
}
