//! Events and spans of programs are those of `list`, each counted and timed exactly, at every zoom.

use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use tracewing_testing::{Printed, RunExt};

/// Of the classes of states.
const CALL: usize = 10;
const EVENT: usize = 13;

/// Providers of programs' own events in the stored recordings.
const PROVIDERS: [&str; 2] = ["clerks:", "server:"];

fn listed(name: &str) -> Vec<Value> {
    let out = harness::of(&stored(name), &["list", "--format", "json"]).succeeds().text();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of a kind, each with the number of its thread.
fn rows(viewer: &Viewer, kind: &str) -> Vec<(Value, String)> {
    let tracks = viewer.ask("tracks", "{}");
    let all = tracks["rows"].as_array().unwrap();
    let of = |row: &Value| all.iter().find(|parent| parent["id"] == row["parent"]).unwrap()["number"].clone();
    let found = all.iter().filter(|row| row["kind"] == kind);
    found.map(|row| (row.clone(), of(row).as_str().unwrap().to_owned())).collect()
}

#[test]
fn events_of_programs_are_counted_as_list_has_them() {
    for name in ["clerks", "server"] {
        let viewer = Viewer::start(&stored(name));
        let state = viewer.ask("state", "{}");
        let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
        let length = state["length"].as_u64().unwrap();
        let all = listed(name);
        for (from, to) in [(0, length), (length / 3, length / 2), (length - 1, length)] {
            let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
            for event in &all {
                let (at, class) = (event["ns"].as_i64().unwrap() - begin, event["event"].as_str().unwrap());
                let is_own = PROVIDERS.iter().any(|provider| class.starts_with(provider));
                let is_span = class.ends_with("_begin") || class.ends_with("_end");
                if is_own && !is_span && (from..to).contains(&(at as u64)) {
                    let tid = event["common_context"]["tid"].to_string();
                    *expected.entry((tid, class.to_owned())).or_default() += 1;
                }
            }
            let mut found = BTreeMap::new();
            for (row, tid) in rows(&viewer, "events") {
                let asked = object!({ "from": from, "to": to, "rows": [row["id"]] });
                let sums = viewer.ask("statistics", &asked.to_string());
                for sum in sums["rows"].as_array().unwrap() {
                    for state in sum["states"].as_array().unwrap() {
                        let class = &sums["states"][state[0].to_string()]["name"];
                        let class = class.as_str().unwrap().to_owned();
                        assert!(class.starts_with(&format!("{}:", row["name"].as_str().unwrap())), "{row}");
                        found.insert((tid.clone(), class), state[1].as_u64().unwrap());
                    }
                    assert_eq!(sum["classes"].as_array().unwrap().len(), EVENT + 1);
                }
            }
            assert_eq!(found, expected, "{name} {from} {to}");
            assert!(from > 0 || found.values().sum::<u64>() > 50, "{name}: {found:?}");
        }
        // Each has its time.
        let (row, tid) = &rows(&viewer, "events")[0];
        let asked =
            object!({ "from": 0, "to": length, "rows": [row["id"]], "classes": [EVENT], "most": 1000 });
        let longest = viewer.ask("longest", &asked.to_string());
        let spans = longest["spans"].as_array().unwrap();
        let times: Vec<u64> = spans.iter().map(|span| span[2].as_u64().unwrap()).collect();
        let is_of = |event: &&Value| {
            let class = event["event"].as_str().unwrap();
            let is_span = class.ends_with("_begin") || class.ends_with("_end");
            event["common_context"]["tid"].as_i64() == tid.parse().ok()
                && !is_span
                && class.starts_with(&format!("{}:", row["name"].as_str().unwrap()))
        };
        let expected: Vec<u64> =
            all.iter().filter(is_of).map(|event| (event["ns"].as_i64().unwrap() - begin) as u64).collect();
        assert_eq!(times, expected, "{name}");
    }
}

#[test]
fn spans_last_from_their_begin_to_their_end() {
    let viewer = Viewer::start(&stored("clerks"));
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let (mut open, mut expected): (BTreeMap<String, i64>, BTreeMap<String, u64>) = Default::default();
    for event in listed("clerks") {
        let (ns, id) = (event["ns"].as_i64().unwrap(), event["payload"]["span"].to_string());
        match event["event"].as_str().unwrap() {
            "clerks:sale_begin" => _ = open.insert(id, ns),
            "clerks:sale_end" => {
                let sum = expected.entry(event["common_context"]["tid"].to_string()).or_default();
                *sum += (ns - open.remove(&id).unwrap()) as u64;
            }
            _ => {}
        }
    }
    let mut found = BTreeMap::new();
    for (row, tid) in rows(&viewer, "spans") {
        let asked = object!({ "from": 0, "to": length, "rows": [row["id"]] });
        let sums = viewer.ask("statistics", &asked.to_string());
        let state = sums["rows"][0]["states"][0][0].to_string();
        assert_eq!(sums["states"][state]["name"], "clerks:sale");
        *found.entry(tid).or_default() += sums["rows"][0]["classes"][CALL].as_u64().unwrap();
    }
    assert_eq!(found, expected);
    assert!(found.values().sum::<u64>() > 0);
}
