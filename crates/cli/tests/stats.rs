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
    assert_eq!((&json["duration_ns"], &json["total"]), (&2_000_000_000_u64.into(), &count));
    for (kind, more) in [
        ("events", json!({"trace": "", "name": "test:tick"})),
        ("streams", json!({"trace": "", "stream": "0:0", "lost_events": 3, "lost_packets": 0})),
        ("processes", json!({"process": null})),
    ] {
        let mut expected = count.clone();
        expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(json[kind], json!([expected]), "{kind}");
    }

    let csv = stats(&["--format", "csv"], folder.path()).text();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "kind,trace,name,events,per_second,bytes,lost_events,lost_packets");
    assert!(lines[1].starts_with("event,,test:tick,5,2.5") && lines[1].ends_with(",80,,"), "{csv}");
    assert!(lines[2].starts_with("stream,,0:0,5,2.5") && lines[2].ends_with(",80,3,0"), "{csv}");
    assert!(lines[3].starts_with("process,,,5,2.5") && lines.len() == 4, "{csv}");

    let table = stats(&[], folder.path()).text();
    assert!(
        table.contains("test:tick") && table.contains("5 events, 80 bytes, 2.000000000 s, 3 events lost"),
        "{table}"
    );
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
    assert_eq!(json["total"]["events"], 5);
}
