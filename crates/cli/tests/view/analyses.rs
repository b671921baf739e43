//! Analyses of a selection: why something took so long is what `critical-path` prints, and the samples of an
//! area are those of `profile`.

use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use tracewing_testing::{Printed, RunExt, wait_until};

/// The result of an analysis, or why there is none.
pub fn result(viewer: &Viewer, path: &str, asked: &Value) -> Result<Value, Value> {
    let job = viewer.ask(path, &asked.to_string());
    let mut state = Value::Null;
    wait_until("the analysis is done", || {
        state = viewer.ask("job", &job.to_string());
        !state["result"].is_null() || !state["failure"].is_null()
    });
    viewer.ask("end", &job.to_string());
    if state["failure"].is_null() { Ok(state["result"].take()) } else { Err(state["failure"].take()) }
}

pub fn printed(name: &str, arguments: &[&str]) -> Value {
    let text = harness::of(&stored(name), arguments).args(["--format", "json"]).succeeds().text();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn what_it_waited_for_is_its_critical_path() {
    let mut compared = 0;
    for name in ["server", "clerks"] {
        let viewer = Viewer::start(&stored(name));
        let state = viewer.ask("state", "{}");
        let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
        let length = state["length"].as_u64().unwrap();
        let tracks = viewer.ask("tracks", "{}");
        let rows = tracks["rows"].as_array().unwrap();
        let own = |kind: &str| {
            let mut own: Vec<&Value> =
                rows.iter().filter(|row| row["kind"] == kind && row["is_followed"] == true).collect();
            own.sort_by_key(|row| std::cmp::Reverse(row["used"].as_u64()));
            own.into_iter().take(3).collect::<Vec<_>>()
        };
        for row in own("thread").into_iter().chain(own("task")) {
            let (number, kind) = (row["number"].as_str().unwrap(), row["kind"].as_str().unwrap());
            let process =
                rows.iter().find(|of| of["id"] == row["parent"]).unwrap()["number"].as_str().unwrap();
            let (option, chosen) = match kind {
                "thread" => ("--tid", number.to_owned()),
                _ => ("--task", format!("{process}/{number}")),
            };
            for (from, to) in [(0, length), (length / 2, length - length / 20)] {
                let [since, until] = [from, to].map(|time| format!("+{time}ns"));
                let arguments = ["critical-path", option, &chosen, "--from", &since, "--to", &until];
                let asked = object!({ "row": row["id"], "from": from, "to": to });
                let found = result(&viewer, "why", &asked);
                let theirs = harness::of(&stored(name), &arguments).args(["--format", "json"]).ran();
                let Ok(found) = found else {
                    assert!(!theirs.status.success(), "{name} {arguments:?} {found:?}");
                    continue;
                };
                let theirs = printed(name, &arguments);
                let steps = theirs["steps"].as_array().unwrap();
                let ours = found["steps"].as_array().unwrap();
                assert_eq!(ours.len().min(2000), steps.len().min(2000), "{name} {arguments:?}");
                for (ours, theirs) in ours.iter().rev().zip(steps.iter().rev()) {
                    let time = |name: &str| theirs[name].as_i64().unwrap() - begin;
                    assert_eq!(ours["from"].as_i64(), Some(time("begin_ns")), "{theirs}");
                    assert_eq!(ours["to"].as_i64(), Some(time("end_ns")), "{theirs}");
                    assert_eq!(ours["actor"]["name"], theirs["subject"]);
                    assert_eq!(ours["activity"]["name"], theirs["activity"]);
                    assert_eq!(ours["reason"], theirs["reason"]);
                    // A row that is given is the actor's.
                    if let Some(id) = ours["actor"]["row"].as_u64() {
                        let of = rows.iter().find(|row| row["id"] == id).unwrap();
                        let number = of["number"].as_str().unwrap();
                        let column = if of["kind"] == "task" { "task" } else { "tid" };
                        assert_eq!(theirs[column].to_string(), number, "{theirs}");
                    }
                    compared += 1;
                }
                // The causes are the same times, summed up.
                let sum = |rows: &Value, name: &str| -> BTreeMap<String, u64> {
                    let mut sums = BTreeMap::new();
                    for row in rows.as_array().unwrap() {
                        let key = row.pointer(name).unwrap().as_str().unwrap().to_owned();
                        let time = row["time"].as_u64().or(row["duration_ns"].as_u64()).unwrap();
                        *sums.entry(key).or_default() += time;
                    }
                    sums
                };
                if found["causes_left_out"] == 0 {
                    let (causes, by) = (&found["causes"], |name: &str| &theirs[name]);
                    assert_eq!(sum(causes, "/actor/name"), sum(by("by_subject"), "/subject"));
                    assert_eq!(sum(causes, "/activity/name"), sum(by("by_activity"), "/activity"));
                }
            }
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn samples_of_an_area_are_those_of_profile() {
    let viewer = Viewer::start(&stored("pipeline"));
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let count = |arguments: &[&str]| {
        let all: Vec<&str> = ["profile", "--by", "thread"].iter().chain(arguments).copied().collect();
        let out = harness::of(&stored("pipeline"), &all).args(["--format", "json"]).ran();
        let table: Value = serde_json::from_slice(&out.stdout).unwrap_or(Value::Null);
        let rows = table.as_object().and_then(|table| table.values().find_map(Value::as_array));
        rows.into_iter().flatten().map(|row| row["self_samples"].as_u64().unwrap()).sum::<u64>()
    };
    let whole = result(&viewer, "flame", &object!({ "from": 0, "to": length })).unwrap();
    assert_eq!(whole["samples"].as_u64(), Some(count(&[])));
    assert!(whole["samples"].as_u64() > Some(10), "{whole}");
    // What is in a function is in those that called it.
    let nodes = whole["nodes"].as_array().unwrap();
    let number = |node: &Value, name: &str| node[name].as_u64().unwrap();
    let roots = nodes.iter().filter(|node| node["depth"] == 0).map(|node| number(node, "samples"));
    assert_eq!(Some(roots.sum::<u64>()), whole["samples"].as_u64());
    for (at, node) in nodes.iter().enumerate() {
        let below = nodes[at + 1..].iter().take_while(|other| number(other, "depth") > number(node, "depth"));
        let direct = below.filter(|other| number(other, "depth") == number(node, "depth") + 1);
        let sum: u64 = direct.map(|other| number(other, "samples")).sum();
        assert_eq!(number(node, "samples"), sum + number(node, "own"), "{node}");
    }
    let mut own = 0;
    for row in rows.iter().filter(|row| row["kind"] == "thread") {
        let asked = object!({ "from": length / 4, "to": length / 2, "rows": [row["id"]] });
        let found = result(&viewer, "flame", &asked).unwrap()["samples"].as_u64().unwrap();
        let [from, to] = [length / 4, length / 2].map(|time| format!("+{time}ns"));
        let tid = row["number"].as_str().unwrap();
        assert_eq!(found, count(&["--tid", tid, "--from", &from, "--to", &to]), "{row}");
        own += found;
    }
    assert!(own > 0);
}

#[test]
fn analyses_end_few_are_kept_and_nonsense_is_refused() {
    let viewer = Viewer::start(&stored("clerks"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    let status = |path: &str, asked: &Value| viewer.post(path, &[&cookie], &asked.to_string()).0;
    let tracks = viewer.ask("tracks", "{}");
    let row = |kind: &str| {
        tracks["rows"].as_array().unwrap().iter().find(|row| row["kind"] == kind).unwrap()["id"].clone()
    };
    for (row, from, to) in [
        (row("cpu"), 0, 9),
        (row("process"), 0, 9),
        (row("thread"), 9, 9),
        (object!(4_000_000_000_u32), 0, 9),
    ] {
        assert_eq!(status("why", &object!({ "row": row, "from": from, "to": to })), 400, "{row}");
    }
    assert_eq!(status("why", &object!({ "row": row("thread"), "from": 1, "to": u64::MAX })), 400);
    assert_eq!(status("flame", &object!({ "from": 2, "to": 1 })), 400);
    assert_eq!(status("flame", &object!({ "from": 0, "to": 1, "rows": [row("task")] })), 400);
    assert_eq!(status("flame", &object!({ "from": 0, "to": 1, "rows": [4_000_000_000_u32] })), 400);
    // A thread that is not there in that time has no path, and no samples are none.
    let asked = object!({ "row": row("thread"), "from": 0, "to": 1 });
    assert!(
        result(&viewer, "why", &asked).is_ok_and(|path| !path["steps"].as_array().unwrap().is_empty())
            || result(&viewer, "why", &asked).is_err()
    );
    assert_eq!(result(&viewer, "flame", &object!({ "from": 0, "to": 9 })).unwrap()["samples"], 0);
    let ended = |_| {
        let job = viewer.ask("flame", &object!({ "from": 0, "to": 9 }).to_string());
        wait_until("the analysis is done", || !viewer.ask("job", &job.to_string())["result"].is_null());
        job
    };
    let jobs: Vec<Value> = (0..6).map(ended).collect();
    assert_eq!(jobs.iter().map(|job| status("job", job)).collect::<Vec<_>>(), [410, 410, 200, 200, 200, 200]);
    viewer.ask("end", &jobs[5].to_string());
    assert_eq!(status("job", &jobs[5]), 410);
}
