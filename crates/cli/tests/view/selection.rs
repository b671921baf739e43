//! What the server says of a selected state: its waker is that of `sched timehist`, its neighbours are of its
//! kind, the states of a number in the statistics add up to it, and events are those of `list`.

use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use tracewing_testing::{Printed, RunExt};

/// What a command prints, a value a line.
fn json_lines(name: &str, command: &[&str]) -> Vec<Value> {
    let out = harness::of(&stored(name), command).args(["--format", "json"]).succeeds().text();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of threads by number.
fn thread<'t>(tracks: &'t Value, number: &str) -> Vec<&'t Value> {
    let rows = tracks["rows"].as_array().unwrap().iter();
    rows.filter(|row| row["kind"] == "thread" && row["number"] == number).collect()
}

#[test]
fn wakers_are_those_of_sched_timehist() {
    let (mut threads, mut interrupts) = (0, 0);
    for name in ["server", "clerks", "system"] {
        let viewer = Viewer::start(&stored(name));
        let begin: i64 = viewer.ask("state", "{}")["begin_ns"].as_str().unwrap().parse().unwrap();
        let tracks = viewer.ask("tracks", "{}");
        for slice in json_lines(name, &["sched", "timehist"]) {
            let ns = |name: &str| slice[name].as_i64();
            let (Some(delay), Some(run), Some(wait)) = (ns("delay_ns"), ns("run_ns"), ns("wait_ns")) else {
                continue;
            };
            let [row] = thread(&tracks, &slice["tid"].to_string())[..] else { continue };
            // It slept, was woken, and waited for a CPU.
            if delay == 0 || wait <= delay {
                continue;
            }
            let time = ns("time_ns").unwrap() - begin - run - 1;
            let found = viewer.ask("at", &object!({ "row": row["id"], "time": time, "step": 0 }).to_string());
            let waker = &found["waker"];
            assert_eq!(found["state"]["name"], "ready", "{name} {slice} {found}");
            if let Some(tid) = slice["waker_tid"].as_i64() {
                let by = tracks["rows"].as_array().unwrap().iter().find(|row| row["id"] == waker["row"]);
                let by = by.unwrap_or_else(|| panic!("{name} {slice} {found}"));
                if slice["waker_task"].is_null() {
                    assert_eq!(by["number"], tid.to_string(), "{name} {slice} {found}");
                } else {
                    assert_eq!(by["number"], slice["waker_task"].to_string(), "{name} {slice} {found}");
                }
                threads += 1;
            } else if let Some(interrupt) = slice["waker_interrupt"].as_str() {
                assert!(waker["text"].as_str().unwrap().contains(interrupt), "{name} {slice} {found}");
                interrupts += 1;
            } else {
                assert!(waker.is_null() || waker["text"] == "unknown", "{name} {slice} {found}");
            }
        }
    }
    assert!(threads > 50 && interrupts > 50, "{threads} {interrupts}");
}

#[test]
fn the_states_of_a_number_add_up_to_it() {
    let viewer = Viewer::start(&stored("server"));
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let mut compared = 0;
    for (from, to) in [(0, length), (length / 3, length / 2)] {
        let sums = viewer.ask("statistics", &object!({ "from": from, "to": to }).to_string());
        for sums in sums["rows"].as_array().unwrap() {
            for classes in [&[1, 2, 3, 4][..], &[5], &[6], &[7], &[9], &[0]] {
                let ns: u64 = classes.iter().map(|class| sums["classes"][*class].as_u64().unwrap()).sum();
                let asked = object!({ "from": from, "to": to, "rows": [sums["row"]], "classes": classes, "most": 1000 });
                let found = viewer.ask("longest", &asked.to_string());
                let spans = found["spans"].as_array().unwrap();
                let lengths: Vec<u64> =
                    spans.iter().map(|span| span[3].as_u64().unwrap() - span[2].as_u64().unwrap()).collect();
                assert_eq!(found["sum"].as_u64(), Some(ns), "{asked}");
                assert!(lengths.is_sorted_by(|one, other| one >= other), "{asked}");
                assert_eq!(found["count"].as_u64(), Some(lengths.len() as u64), "{asked}");
                assert_eq!(lengths.iter().sum::<u64>(), ns, "{asked}");
                compared += lengths.len();
            }
            // A reason to wait.
            let (state, ns) = (&sums["states"][0][0], &sums["states"][0][1]);
            let classes: Vec<_> = (0..14).collect();
            let asked = object!({ "from": from, "to": to, "rows": [sums["row"]], "classes": classes, "state": state, "most": 2 });
            let found = viewer.ask("longest", &asked.to_string());
            assert_eq!(&found["sum"], ns, "{asked}");
            assert!(found["spans"].as_array().unwrap().len() <= 2);
        }
    }
    assert!(compared > 500, "{compared}");
}

#[test]
fn a_state_leads_to_others_of_its_kind_and_to_what_ran() {
    let viewer = Viewer::start(&stored("server"));
    let tracks = viewer.ask("tracks", "{}");
    let ask = |row: &Value, time: &Value, step: i8, kind: &Value| {
        viewer.ask("at", &object!({ "row": row, "time": time, "step": step, "kind": kind }).to_string())
    };
    let (mut kin, mut on) = (0, 0);
    for row in tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "thread") {
        let id = &row["id"];
        let mut found = ask(id, &Value::from(0), 1, &Value::Null);
        while !found.is_null() {
            let next = ask(id, &found["to"], 1, &found["number"]);
            if !next.is_null() {
                assert_eq!(next["number"], found["number"]);
                assert!(next["from"].as_u64() >= found["to"].as_u64());
                let last = ask(id, &next["from"], -1, &found["number"]);
                assert_eq!(last, found);
                kin += 1;
            }
            if let Some(cpu) = found["ran_on"].as_u64() {
                let ran = ask(&Value::from(cpu), &found["from"], 0, &Value::Null);
                assert_eq!(&ran["state"]["thread"], id);
                on += 1;
            }
            let after = &found["after"];
            found = if after.is_null() { Value::Null } else { ask(id, &after["from"], 0, &Value::Null) };
            if kin > 400 {
                break;
            }
        }
    }
    assert!(kin > 100 && on > 50, "{kin} {on}");
}

#[test]
fn events_are_those_of_list() {
    let viewer = Viewer::start(&stored("clerks"));
    let state = viewer.ask("state", "{}");
    let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
    let length = state["length"].as_u64().unwrap();
    let all = json_lines("clerks", &["list"]);
    let at = |event: &Value| (event["ns"].as_i64().unwrap() - begin) as u64;
    let mut listed = 0;
    for (from, to) in
        [(0, length / 2), (length / 2, length / 2 + length / 40), (length - length / 30, length)]
    {
        for cpu in [None, Some(1)] {
            let inside = |event: &&Value| (from..=to).contains(&at(event));
            let of_cpu = |event: &&Value| cpu.is_none() || event["packet_context"]["cpu_id"] == cpu.unwrap();
            let expected: Vec<&Value> = all.iter().filter(inside).filter(of_cpu).collect();
            listed += expected.len();
            for (last, most) in [(false, 500), (false, 7), (true, 7), (true, 500)] {
                let asked = object!({ "from": from, "to": to, "most": most, "buffer": cpu, "last": last });
                let found = viewer.ask("events", &asked.to_string());
                let count = expected.len().min(most);
                let expected = if last { &expected[expected.len() - count..] } else { &expected[..count] };
                let found = found["events"].as_array().unwrap();
                assert_eq!(found.len(), expected.len(), "{asked}");
                for (found, expected) in found.iter().zip(expected) {
                    assert_eq!(found["at"], at(expected), "{asked}");
                    assert_eq!(found["name"], expected["event"]);
                    assert_eq!(found["tid"], expected["common_context"]["tid"].to_string());
                }
            }
        }
    }
    assert!(listed > 100, "{listed}");
    // All fields have their values.
    let asked = object!({ "from": 0, "to": length, "most": 500 });
    let found = viewer.ask("events", &asked.to_string());
    for (found, expected) in found["events"].as_array().unwrap().iter().zip(&all) {
        for (name, value) in expected["payload"].as_object().unwrap() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let path = format!("payload.{name}");
            let shown = found["fields"].as_array().unwrap().iter().find(|field| field[0] == path.as_str());
            let is_whole = value.starts_with(['{', '[']);
            assert!(is_whole || shown.is_some_and(|field| field[1] == value.as_str()), "{expected} {found}");
        }
    }
}
