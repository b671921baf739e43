//! `tracewing stats` as a shell sees it: a table, JSON and CSV that say the same.

#[path = "../../trace/tests/common/mod.rs"]
mod common;
mod harness;

use common::{Packet, class, tick, write_trace};
use harness::{Json, Printed, RunExt};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

fn stats(args: &[&str], trace: &Path) -> Output {
    harness::tracewing().arg("stats").args(args).arg(trace).ran()
}

/// Five events of 16 bytes in two seconds, and three lost ones.
fn trace(folder: &Path) -> Vec<u8> {
    let ticks: Vec<_> = (0..5).map(|number| tick(1000 + u64::from(number) * 500_000_000, number)).collect();
    let mut bytes = Packet::new(1, 0, 1000, 2_000_001_000).bytes(&ticks);
    bytes.extend(
        Packet { seq: 1, discarded: 3, ..Packet::new(1, 0, 2_000_001_000, 3_000_000_000) }.bytes(&[]),
    );
    write_trace(folder, &class(Some(1), 1_000_000_000), &[("s0", bytes.clone())]);
    bytes
}

#[test]
fn three_formats_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    trace(folder.path());
    let json: Value = serde_json::from_slice(&stats(&["--format", "json"], folder.path()).stdout).unwrap();
    let count = json!({"events": 5, "bytes": 80, "per_second": 2.5});
    let lost = json!({"lost_events": 3, "lost_packets": 0, "least_lost_events": 3, "least_lost_packets": 0});
    let with = |one: &Value, more: &Value| {
        let mut all = one.as_object().unwrap().clone();
        all.extend(more.as_object().unwrap().clone());
        Value::Object(all)
    };
    let total = with(&with(&count, &lost), &json!({"state_events": null}));
    assert_eq!((&json["duration_ns"], &json["total"]), (&2_000_000_000_u64.into(), &total));
    for (kind, more) in [
        ("events", json!({"trace": "", "name": "test:tick"})),
        ("streams", with(&json!({"trace": "", "stream": "0:0"}), &lost)),
        ("processes", json!({"process": null})),
    ] {
        assert_eq!(json[kind], json!([with(&count, &more)]), "{kind}");
    }

    let csv = stats(&["--format", "csv"], folder.path()).text();
    let lines: Vec<_> = csv.lines().collect();
    let heads = "kind,trace,name,events,per_second,bytes,lost_events,lost_packets,least_lost_events,least_lost_packets";
    assert_eq!(lines[0], heads);
    assert!(lines[1].starts_with("event,,test:tick,5,2.5") && lines[1].ends_with(",80,,,,"), "{csv}");
    assert!(lines[2].starts_with("stream,,0:0,5,2.5") && lines[2].ends_with(",80,3,0,3,0"), "{csv}");
    assert!(lines[3].starts_with("process,,,5,2.5") && lines.len() == 4, "{csv}");

    let table = stats(&[], folder.path()).text();
    assert!(
        table.contains("test:tick") && table.contains("5 events, 80 bytes, 2.000000000 s, 3 events lost"),
        "{table}"
    );
}

/// What `stats` and `info` say of a stream of these packets, each with its number and its counter of lost
/// events: lost events and packets, the same as far as known, and the last line of `stats`.
fn lost(packets: &[(u64, u64)], has_events: bool) -> (Vec<Value>, String) {
    let folder = tempfile::tempdir().unwrap();
    let packet = |(at, &(seq, discarded)): (usize, &(u64, u64))| {
        let begin = 1000 + 1000 * at as u64;
        let ticks: Vec<_> = (0..u32::from(has_events)).map(|number| tick(begin + 10, number)).collect();
        Packet { seq, discarded, ..Packet::new(1, 0, begin, begin + 500) }.bytes(&ticks)
    };
    let bytes: Vec<u8> = packets.iter().enumerate().flat_map(packet).collect();
    write_trace(folder.path(), &class(Some(1), 1_000_000_000), &[("s0", bytes)]);
    let names = ["lost_events", "lost_packets", "least_lost_events", "least_lost_packets"];
    let numbers = |of: &Value| names.map(|name| of[name].clone()).to_vec();
    let json: Value = stats(&["--format", "json"], folder.path()).json();
    let info: Value = harness::tracewing().args(["info", "--format", "json"]).arg(folder.path()).ran().json();
    let of_stream = numbers(&json["streams"][0]);
    assert_eq!(of_stream, numbers(&info["traces"][0]["streams"][0]), "info");
    assert_eq!(of_stream, numbers(&json["total"]), "total");
    let csv = stats(&["--format", "csv"], folder.path()).text();
    let cell = |value: &Value| value.as_u64().map(|number| number.to_string()).unwrap_or_default();
    let cells: Vec<_> = of_stream.iter().map(cell).collect();
    assert!(csv.lines().any(|line| line.ends_with(&format!(",{}", cells.join(",")))), "{csv}");
    let text = stats(&[], folder.path()).text();
    let printed = text.lines().filter(|line| line.contains("lost") && !line.starts_with("events"));
    (of_stream, printed.collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_number_that_is_unknown_is_no_zero() {
    let check = |packets: &[(u64, u64)], numbers: Value, text: &str| {
        let (found, last) = lost(packets, true);
        assert_eq!(Value::Array(found), numbers, "{packets:?}");
        assert!(last.ends_with(&format!(" s, {text} lost")), "{packets:?}: {last}");
    };
    check(&[(0, 0), (1, 0)], json!([0, 0, 0, 0]), "0 events");
    // Before the first packet, or in it.
    check(&[(0, 5), (1, 5)], json!([null, 0, 0, 0]), "an unknown number of events");
    check(&[(0, 0), (3, 0)], json!([null, 2, 0, 2]), "an unknown number of events and 2 packets");
    check(&[(0, 0), (3, 7)], json!([null, 2, 7, 2]), "at least 7 events and 2 packets");
    // Its counter goes back.
    check(&[(0, 20), (1, 5), (2, 6)], json!([null, 0, 1, 0]), "at least 1 event");
    let unknown = "an unknown number of events and an unknown number of packets";
    check(&[(5, 0), (3, 0)], json!([null, null, 0, 0]), unknown);
}

#[test]
fn what_was_lost_may_have_been_all_that_happened() {
    let (_, said) = lost(&[(0, 4)], false);
    assert!(said.contains("no events at all, but an unknown number of events were lost"), "{said}");
    assert!(!said.contains("nothing happened"), "{said}");
}

/// A packet may have held any number of samples.
#[test]
fn lost_packets_of_samples_are_no_samples() {
    let folder = tempfile::tempdir().unwrap();
    let packet =
        |seq| Packet { seq, ..Packet::new(1, 0, 1000 + seq, 1000 + seq) }.bytes(&[tick(1000 + seq, 0)]);
    let mut class = class(Some(1), 1_000_000_000);
    class.set_env("domain", "profile");
    write_trace(folder.path(), &class, &[("cpu_0", [packet(0), packet(3)].concat())]);
    let profile = harness::tracewing().args(["profile", "--format", "json"]).arg(folder.path()).ran();
    let json: Value = profile.json();
    assert_eq!((&json["lost_samples"], &json["least_lost_samples"]), (&Value::Null, &json!(0)));
}

#[test]
fn what_comes_before_damage_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = trace(folder.path());
    std::fs::write(folder.path().join("s0"), &bytes[..bytes.len() - 1]).unwrap();
    let output = stats(&["--format", "json"], folder.path());
    assert!(!output.status.success());
    assert!(output.notes().contains("the file ends"), "{}", output.notes());
    let json: Value = output.json();
    assert_eq!((&json["total"]["events"], &json["total"]["lost_events"]), (&json!(5), &Value::Null));
    let info: Value = harness::of(folder.path(), &["info", "--format", "json"]).ran().json();
    assert_eq!(info["traces"][0]["streams"][0]["lost_events"], Value::Null, "{info}");
    let threads: Value = harness::of(folder.path(), &["threads", "--format", "json"]).ran().json();
    assert_eq!(threads["lost_events"], Value::Null, "{threads}");
}
