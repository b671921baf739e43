//! What the server says is what `threads` says, to the nanosecond, and a picture is the statistics of its
//! buckets.

use crate::client::{Viewer, stored};
use crate::harness::json;
use serde_json::{Value, json as object};
use std::path::Path;

const CLASSES: usize = 14;
/// Of a run in the answer of `rows`.
const RUN: usize = 28;

/// Threads of an answer: number, and time on CPUs, ready, blocked and unknown.
type Times = Vec<(i64, [u64; 4])>;

/// What the viewer says of the threads that the recording follows.
fn viewed(viewer: &Viewer, tracks: &Value, from: u64, to: u64) -> Times {
    let answer = viewer.ask("statistics", &object!({ "from": from, "to": to }).to_string());
    let tracks = tracks["rows"].as_array().unwrap();
    let mut found = Vec::new();
    for sums in answer["rows"].as_array().unwrap() {
        let track = tracks.iter().find(|track| track["id"] == sums["row"]).unwrap();
        if track["kind"] != "thread" || track["is_followed"] != true {
            continue;
        }
        let class = |of: &[usize]| of.iter().map(|of| sums["classes"][*of].as_u64().unwrap()).sum::<u64>();
        let number = track["number"].as_str().unwrap().parse().unwrap();
        found.push((number, [class(&[1, 2, 3, 4]), class(&[5, 6]), class(&[7]), class(&[0])]));
    }
    found.sort_unstable();
    found
}

fn analysed(name: &str, from: u64) -> Times {
    let answer = json(&stored(name), &["threads", "-n", "1000", "--from", &format!("+{from}ns")]);
    let rows = answer["threads"].as_array().unwrap().iter().map(|row| {
        let ns = |name: &str| row[name].as_u64().unwrap_or(0);
        (row["tid"].as_i64().unwrap(), ["running_ns", "ready_ns", "blocked_ns", "unknown_ns"].map(ns))
    });
    let mut rows: Times = rows.filter(|(_, times)| times.iter().any(|ns| *ns > 0)).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn statistics_are_those_of_threads() {
    for name in ["server", "clerks", "pipeline"] {
        let viewer = Viewer::start(&stored(name));
        let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
        let tracks = viewer.ask("tracks", "{}");
        let mut compared = 0;
        // Up to the end: `threads --to` does not know what later events show.
        for from in [0, length / 3, length / 2 + 12_345] {
            let (ours, theirs) = (viewed(&viewer, &tracks, from, length), analysed(name, from));
            assert_eq!(ours, theirs, "{name} from {from}");
            compared += ours.len();
        }
        assert!(compared > 3, "{name}: {compared}");
    }
}

/// The shares of a row by bucket.
fn shares(bytes: &[u8], buckets: usize) -> Vec<[u8; CLASSES]> {
    let number = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let mut shares = vec![[0; CLASSES]; buckets];
    let count = number(4);
    assert_eq!(bytes.len(), 8 + count * RUN);
    for at in (0..count).map(|run| 8 + run * RUN) {
        shares[number(at)..][..number(at + 4)].fill(*bytes[at + 12..].first_chunk().unwrap());
    }
    shares
}

#[test]
fn a_picture_is_the_statistics_of_its_buckets() {
    let viewer = Viewer::start(&stored("server"));
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] != "process");
    let shift = (0..).find(|shift| length >> shift < 64).unwrap();
    let (mut seen, count) = (0, (length >> shift) + 1);
    for row in rows.map(|row| row["id"].as_u64().unwrap()).take(12) {
        let asked = object!({ "shift": shift, "first": 0, "count": count, "rows": [row] });
        let drawn = shares(&viewer.bytes("rows", &asked.to_string()), count as usize);
        for (bucket, shares) in (0..).zip(&drawn) {
            let (from, to) = (bucket << shift, (bucket + 1) << shift);
            let asked = object!({ "from": from, "to": to, "rows": [row] });
            let sums = viewer.ask("statistics", &asked.to_string());
            for (class, share) in shares.iter().enumerate() {
                let ns = sums["rows"][0]["classes"][class].as_u64().unwrap_or(0);
                let exact = ns as f64 * 255.0 / (to - from) as f64;
                // A class that occurs has at least one; together they have at most all.
                assert_eq!(ns > 0, *share > 0, "row {row} bucket {bucket} class {class}: {ns}");
                assert!(
                    (f64::from(*share) - exact).abs() <= 3.0,
                    "row {row} bucket {bucket}: {share} {exact}"
                );
                seen += u64::from(ns > 0);
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn states_have_names_neighbours_and_events() {
    let viewer = Viewer::start(&stored("server"));
    let tracks = viewer.ask("tracks", "{}");
    let busiest = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "thread");
    let busiest = busiest.max_by_key(|row| row["used"].as_u64()).unwrap();
    let at = |time: u64, step: i8| {
        viewer.ask("at", &object!({ "row": busiest["id"], "time": time, "step": step }).to_string())
    };
    let first = at(0, 1);
    let next = at(first["to"].as_u64().unwrap(), 1);
    assert!(next["from"].as_u64() >= first["to"].as_u64());
    assert_eq!(at(next["from"].as_u64().unwrap(), -1), first);
    assert_eq!(at(next["from"].as_u64().unwrap(), 0), next);
    assert!(!next["state"]["name"].as_str().unwrap().is_empty());
    let asked = object!({ "from": 0, "to": viewer.ask("state", "{}")["length"], "most": 10 });
    let events = viewer.ask("events", &asked.to_string());
    assert_eq!((events["events"].as_array().unwrap().len(), &events["is_cut"]), (10, &Value::Bool(true)));
    let found = viewer.ask("search", &object!({ "text": busiest["number"], "most": 0 }).to_string());
    assert!(found["rows"].as_array().unwrap().iter().any(|row| row["id"] == busiest["id"]));
}

#[test]
fn the_paths_of_a_recording_are_right_in_every_folder() {
    let relative = Path::new("tests/golden/recordings/clerks");
    let viewer = Viewer::start(relative);
    let absolute = std::env::current_dir().unwrap().join(relative);
    assert_eq!(viewer.ask("state", "{}")["inputs"], object!([absolute]));
}
