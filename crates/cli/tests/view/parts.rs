//! Functions and locks of the viewer are those of `functions` and `locks`, to the nanosecond.

use crate::client::{Viewer, stored};
use crate::harness::json;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;

/// Of the classes of states.
const CALL: usize = 10;
const WAITS: usize = 11;
const HOLDS: usize = 12;

/// The time of each thread or task with parts of a kind, by its kind and number: in these classes.
fn sums(viewer: &Viewer, kind: &str) -> BTreeMap<(String, String), [u64; 3]> {
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let mut found: BTreeMap<_, [u64; 3]> = BTreeMap::new();
    for part in rows.iter().filter(|row| row["kind"] == kind) {
        let of = rows.iter().find(|row| row["id"] == part["parent"]).unwrap();
        let key = (of["kind"].as_str().unwrap().to_owned(), of["number"].as_str().unwrap().to_owned());
        let asked = object!({ "from": 0, "to": length, "rows": [part["id"]] });
        let classes = &viewer.ask("statistics", &asked.to_string())["rows"][0]["classes"];
        let sum = found.entry(key).or_default();
        for (sum, class) in sum.iter_mut().zip([CALL, WAITS, HOLDS]) {
            *sum += classes[class].as_u64().unwrap();
        }
    }
    found
}

#[test]
fn locks_are_those_of_locks() {
    for name in ["server", "clerks", "system"] {
        let viewer = Viewer::start(&stored(name));
        let found = sums(&viewer, "locks");
        let table = json(&stored(name), &["locks", "--by", "thread", "-n", "1000"]);
        let rows = table["locks"].as_array().unwrap();
        let total = |name: &str| rows.iter().map(|row| row[name].as_u64().unwrap_or(0)).sum::<u64>();
        let of = |part: usize| found.values().map(|sums| sums[part]).sum::<u64>();
        assert_eq!([of(1), of(2)], [total("wait_ns"), total("hold_ns")], "{name}");
        assert!(of(1) > 0, "{name}");
        if name != "clerks" {
            continue;
        }
        // No task has locks of its own.
        for row in rows {
            let ours = found[&("thread".to_owned(), row["tid"].to_string())];
            let ns = |name: &str| row[name].as_u64().unwrap_or(0);
            assert_eq!([ours[1], ours[2]], [ns("wait_ns"), ns("hold_ns")], "{row}");
        }
        assert_eq!(rows.len(), found.len());
        assert!(of(2) > 0);
    }
}

#[test]
fn functions_are_those_of_functions() {
    let viewer = Viewer::start(&stored("clerks"));
    let table = json(&stored("clerks"), &["functions"]);
    let theirs: u64 =
        table["functions"].as_array().unwrap().iter().map(|row| row["total_ns"].as_u64().unwrap()).sum();
    let ours: u64 = sums(&viewer, "functions").values().map(|sums| sums[0]).sum();
    assert!(ours > 0);
    assert_eq!(ours, theirs, "{table}");
    // Each call has the function's name.
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "functions");
    let ids: Vec<&Value> = rows.map(|row| &row["id"]).collect();
    let asked = object!({ "from": 0, "to": u64::MAX >> 12, "rows": ids, "classes": [CALL], "most": 1000 });
    let calls = viewer.ask("longest", &asked.to_string());
    assert_eq!(calls["count"], table["functions"][0]["calls"]);
    let named = calls["states"].as_object().unwrap().values().map(|state| &state["name"]);
    assert_eq!(named.collect::<Vec<_>>(), [&table["functions"][0]["function"]]);
}

#[test]
fn a_wait_for_a_lock_leads_to_its_owner() {
    let viewer = Viewer::start(&stored("clerks"));
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let mut owned = 0;
    for part in rows.iter().filter(|row| row["kind"] == "locks") {
        let asked = object!({ "from": 0, "to": u64::MAX >> 12, "rows": [part["id"]], "classes": [WAITS], "most": 100 });
        let waits = viewer.ask("longest", &asked.to_string());
        for wait in waits["spans"].as_array().unwrap() {
            let asked = object!({ "row": part["id"], "time": wait[2], "step": 0 });
            let found = viewer.ask("at", &asked.to_string());
            for holder in found["holders"].as_array().unwrap() {
                assert_ne!(holder, &part["parent"]);
                owned += 1;
            }
        }
    }
    assert!(owned > 20, "{owned}");
}
