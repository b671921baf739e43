//! Times in exported files: each lies within the recording, and no slice ends before it begins.

use crate::harness::Printed;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use tracewing_testing::installed;

/// From the recording's beginning, ns; and from where.
type Moment = (i128, String);

/// What a file of this format has; none where nothing reads it here.
pub fn moments(format: &str, file: &Path) -> Vec<Moment> {
    match format {
        "chrome" => chrome(&fs::read(file).unwrap()),
        "paje" => paje(&fs::read_to_string(file).unwrap()),
        _ => perfetto(file),
    }
}

fn chrome(text: &[u8]) -> Vec<Moment> {
    let trace: Value = serde_json::from_slice(text).expect("JSON");
    // Three decimal places.
    let ns = |value: &Value| value.as_f64().map(|micros| (micros * 1000.0).round() as i128);
    let mut found = Vec::new();
    for event in trace["traceEvents"].as_array().expect("a list") {
        let Some(at) = ns(&event["ts"]) else { continue };
        found.push((at, event.to_string()));
        found.extend(ns(&event["dur"]).map(|length| (at + length, format!("end of {event}"))));
        // Never shorter than nothing.
        assert!(ns(&event["dur"]).is_none_or(|length| length >= 0), "{event}");
    }
    found
}

/// Lines of events have their number, then the time in seconds with nine decimal places.
fn paje(text: &str) -> Vec<Moment> {
    let time = |line: &str| {
        let (number, rest) = line.split_once(' ')?;
        let is_timed = number.parse::<u32>().is_ok_and(|number| (6..=14).contains(&number));
        let seconds = rest.split(' ').next().filter(|_| is_timed)?;
        let ns: i128 = seconds.replace('.', "").parse().unwrap_or_else(|_| panic!("{line}"));
        Some((ns, line.to_owned()))
    };
    text.lines().filter_map(time).collect()
}

/// Stamps are those of the recording: here, from the first.
fn perfetto(file: &Path) -> Vec<Moment> {
    if !installed(&["protoc"]) {
        return Vec::new();
    }
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/export_formats");
    let mut protoc = Command::new("protoc");
    protoc.arg("--decode=Trace").arg(format!("--proto_path={}", schema.display())).arg("perfetto.proto");
    let output = protoc.stdin(File::open(file).unwrap()).output().unwrap();
    assert!(output.status.success(), "{}", output.notes());
    let text = String::from_utf8_lossy(&output.stdout);
    let stamps = text.lines().filter_map(|line| line.trim().strip_prefix("timestamp: "));
    let stamps: Vec<i128> =
        stamps.map(|stamp| i128::from(stamp.parse::<u64>().unwrap().cast_signed())).collect();
    let first = stamps.iter().min().copied().unwrap_or_default();
    stamps.into_iter().map(|stamp| (stamp - first, format!("timestamp {stamp}"))).collect()
}
