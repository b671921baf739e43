//! Events and spans of programs, samples and system calls are those of `list`, each counted and timed
//! exactly, at every zoom.

use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use tracewing_testing::{Printed, RunExt, installed};

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

#[test]
fn a_thread_is_in_a_system_call_from_its_entry_to_its_exit() {
    let mut compared = 0;
    for name in ["pipeline", "server", "clerks", "system"] {
        let viewer = Viewer::start(&stored(name));
        let state = viewer.ask("state", "{}");
        let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
        let length = state["length"].as_u64().unwrap();
        let mut open: BTreeMap<String, (u64, String)> = BTreeMap::new();
        let mut expected: BTreeMap<String, Vec<(u64, u64, String)>> = BTreeMap::new();
        for event in listed(name) {
            let at = (event["ns"].as_i64().unwrap() - begin) as u64;
            let (class, tid) = (event["event"].as_str().unwrap(), event["common_context"]["tid"].to_string());
            if let Some(call) = class.strip_prefix("syscall_entry_") {
                open.insert(tid, (at, call.to_owned()));
            } else if let Some(call) = class.strip_prefix("syscall_exit_")
                && let Some((from, _)) = open.remove(&tid).filter(|(_, begun)| begun == call)
            {
                expected.entry(tid).or_default().push((from, at, call.to_owned()));
            }
        }
        let rows = rows(&viewer, "system calls");
        // The others have only some system calls, so a thread may be in others at any time.
        if name != "pipeline" {
            assert!(rows.is_empty() && !expected.is_empty(), "{rows:?}");
            continue;
        }
        for (row, tid) in rows {
            let asked =
                object!({ "from": 0, "to": length, "rows": [row["id"]], "classes": [CALL], "most": 1000 });
            let longest = viewer.ask("longest", &asked.to_string());
            let span = |span: &Value| {
                let named = &longest["states"][span[1].to_string()]["name"];
                (span[2].as_u64().unwrap(), span[3].as_u64().unwrap(), named.as_str().unwrap().to_owned())
            };
            let found: Vec<_> = longest["spans"].as_array().unwrap().iter().map(span).collect();
            let calls = expected.remove(&tid).unwrap_or_default();
            // Of calls that begin or end outside of the recording, that end with a program or thread, or in
            // which a thread begins, one event is missing.
            const OTHERS: [&str; 7] = ["execve", "exit", "exit_group", "fork", "vfork", "clone", "clone3"];
            let is_cut = |(from, to, call): &(u64, u64, String)| {
                *from == 0 || *to == length || OTHERS.contains(&call.as_str())
            };
            for span in found.iter().filter(|span| !is_cut(span)) {
                assert!(calls.contains(span), "{name} {tid} {span:?} {calls:?}");
            }
            for call in calls.iter().filter(|call| !is_cut(call)) {
                assert!(found.contains(call), "{name} {tid} {call:?} {found:?}");
                compared += 1;
            }
        }
        let left = expected.values().flatten().filter(|(_, _, call)| call != "execve").count();
        assert_eq!(left, 0, "{name} {expected:?}");
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn samples_are_in_the_track_of_their_thread() {
    let viewer = Viewer::start(&stored("pipeline"));
    let state = viewer.ask("state", "{}");
    let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
    let mut expected: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for event in listed("pipeline").iter().filter(|event| event["event"] == "profile:sample") {
        let at = (event["ns"].as_i64().unwrap() - begin) as u64;
        expected.entry(event["common_context"]["tid"].to_string()).or_default().push(at);
    }
    let mut found = BTreeMap::new();
    for (row, tid) in rows(&viewer, "samples") {
        let asked = object!({ "from": 0, "to": u64::MAX >> 12, "rows": [row["id"]], "classes": [EVENT], "most": 1000 });
        let longest = viewer.ask("longest", &asked.to_string());
        let spans = longest["spans"].as_array().unwrap();
        let state = spans[0][1].to_string();
        assert_eq!(longest["states"][state]["name"], "profile:sample");
        let times: Vec<u64> = spans.iter().map(|span| span[2].as_u64().unwrap()).collect();
        found.insert(tid, times);
    }
    assert_eq!(found, expected);
    assert!(found.len() > 1, "{found:?}");
}

/// How many events a row has.
fn count(viewer: &Viewer, row: &Value) -> u64 {
    let asked = object!({ "from": 0, "to": u64::MAX >> 12, "rows": [row], "classes": [EVENT], "most": 0 });
    viewer.ask("longest", &asked.to_string())["count"].as_u64().unwrap()
}

#[test]
fn the_page_draws_samples_as_marks_and_names_system_calls() {
    let Some((viewer, mut browser)) = opened("pipeline") else { return };
    let first = |kind: &str| {
        let rows = rows(&viewer, kind);
        rows.into_iter().max_by_key(|(row, _)| row["end"].as_u64()).unwrap().0
    };
    let (samples, calls) = (first("samples"), first("system calls"));
    // Pinned, they are seen whatever is folded.
    let (id, of) = (&samples["id"], &calls["id"]);
    browser.open(&format!("http://127.0.0.1:{}/#v=1&pin={id}.{of}", viewer.port));
    let times = count(&viewer, id);
    let counted = format!("tracewing.counted()[{id}]?.reduce((sum, count) => sum + count, 0)");
    browser.wait(&format!("{counted} === {times}"));
    browser.wait(&format!("tracewing.drawn()[{of}]?.some((height, at) => at % 14 === {CALL} && height > 0)"));
    // One of a kind: it has the name of its thread, and no number of its own.
    let labels = "[...document.querySelectorAll('.track.pinned .what')].map((label) => label.textContent)";
    let labels = browser.value(labels);
    for (label, start) in labels.as_array().unwrap().iter().zip(["samples of ", "system calls of "]) {
        assert!(label.as_str().unwrap().starts_with(start), "{labels}");
    }
    assert_eq!(labels.as_array().unwrap().len(), 2, "{labels}");

    // A selected sample shows its functions: those that the flame graph has at its time.
    let asked = object!({ "from": 0, "to": u64::MAX >> 12, "rows": [id], "classes": [EVENT], "most": 1000 });
    let spans = viewer.ask("longest", &asked.to_string())["spans"].clone();
    let mut named = 0;
    for span in spans.as_array().unwrap().iter().take(3) {
        let at = span[2].as_u64().unwrap();
        let asked = object!({ "from": at, "to": at + 1, "rows": [samples["parent"]] });
        let flame = crate::analyses::result(&viewer, "flame", &asked).unwrap();
        assert_eq!(flame["samples"], 1);
        let mut names: Vec<&str> = flame["nodes"].as_array().unwrap()[1..]
            .iter()
            .map(|node| node["name"].as_str().unwrap())
            .collect();
        names.reverse();
        browser.value(&format!("tracewing.select({id}, {at})"));
        let shown = "document.querySelector('#details dd[data-functions]')?.dataset.functions";
        browser.wait(&format!("tracewing.found()?.from === {at} && {shown} !== undefined"));
        assert_eq!(browser.value(shown), names.join("\n"));
        named += names.len();
    }
    assert!(named > 0, "{spans}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn what_a_thread_was_in_before_its_first_call_is_unknown() {
    let viewer = Viewer::start(&stored("pipeline"));
    let state = viewer.ask("state", "{}");
    let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
    let length = state["length"].as_u64().unwrap();
    // When each thread enters or leaves a system call for the first time.
    let mut first: BTreeMap<String, u64> = BTreeMap::new();
    for event in listed("pipeline") {
        if event["event"].as_str().unwrap().starts_with("syscall_") {
            let at = (event["ns"].as_i64().unwrap() - begin) as u64;
            first.entry(event["common_context"]["tid"].to_string()).or_insert(at);
        }
    }
    let tracks = viewer.ask("tracks", "{}");
    let born = |row: &Value| {
        let mut all = tracks["rows"].as_array().unwrap().iter();
        all.find(|thread| thread["id"] == row["parent"]).unwrap()["begin"].as_u64().unwrap()
    };
    let (mut before, mut since) = (Vec::new(), 0);
    for (row, tid) in rows(&viewer, "system calls") {
        let id = row["id"].to_string();
        let asked = object!({ "from": 0, "to": length, "rows": [row["id"]] }).to_string();
        let spans = viewer.ask("spans", &asked);
        let all = spans["rows"][&id].as_array().unwrap();
        let class = |span: &Value| spans["states"][span[0].to_string()]["class"].as_u64().unwrap();
        let unknown: Vec<_> = all.iter().filter(|span| class(span) == 0).collect();
        if born(&row) > 0 {
            // Its beginning is recorded: so is what it is in, until it enters a call.
            assert!(unknown.iter().all(|span| span[1].as_u64() > Some(first[&tid])), "{tid}: {unknown:?}");
            since += 1;
        } else {
            assert_eq!(object!([unknown[0][1], unknown[0][2]]), object!([0, first[&tid]]), "{tid}");
            before.push((row["id"].as_u64().unwrap(), first[&tid]));
        }
    }
    assert!(!before.is_empty() && since > 1, "{before:?} {since}");
    if !installed(&["chromium"]) {
        return;
    }
    // The page draws it as unknown, and not as no call.
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let (row, until) = before[0];
    browser.open(&format!("http://127.0.0.1:{}/#v=1&from=0&to={}&pin={row}", viewer.port, 2 * until));
    browser.settle();
    let heights = browser.value(&format!("tracewing.drawn()[{row}]"));
    let heights: Vec<u64> =
        heights.as_array().unwrap().iter().map(|height| height.as_u64().unwrap()).collect();
    let columns: Vec<&[u64]> = heights.chunks(EVENT + 1).collect();
    let half = columns.len() / 2;
    assert!(columns[..half - 2].iter().all(|column| column[0] > 0 && column[CALL] == 0));
    assert!(columns[half + 2..].iter().all(|column| column[0] == 0), "it is known since");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
