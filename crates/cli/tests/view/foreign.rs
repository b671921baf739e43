//! A trace of LTTng opens like any other: its threads and their events have tracks, and each event leads to
//! its fields and to others of its kind.

use crate::cdp::opened_with;
use crate::client::Viewer;
use crate::harness;
use serde_json::{Value, json as object};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tracewing_testing::{Printed, RunExt};

/// A trace that lttng-ust 2.13 has written.
fn lttng() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data/lttng-ust-kinds")
}

fn listed() -> Vec<Value> {
    let out = harness::of(&lttng(), &["list", "--format", "json"]).succeeds().text();
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn tid(event: &Value) -> String {
    event["common_context"]["vtid"].to_string()
}

/// The rows with the events of each thread.
fn rows_of_events(viewer: &Viewer) -> BTreeMap<String, Value> {
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let thread =
        |row: &Value| rows.iter().find(|thread| thread["id"] == row["parent"]).unwrap()["number"].clone();
    let of_events = rows.iter().filter(|row| row["kind"] == "events");
    of_events.map(|row| (thread(row).as_str().unwrap().to_owned(), row["id"].clone())).collect()
}

#[test]
fn the_events_of_an_lttng_trace_are_those_of_list() {
    let (viewer, all) = (Viewer::start(&lttng()), listed());
    let state = viewer.ask("state", "{}");
    let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
    let length = state["length"].as_u64().unwrap();
    let at = |event: &Value| (event["ns"].as_i64().unwrap() - begin) as u64;
    let rows = rows_of_events(&viewer);
    assert_eq!(rows.keys().cloned().collect::<BTreeSet<_>>(), all.iter().map(tid).collect());
    for (from, to) in [(0, length), (length / 4, length / 2), (length / 100, length / 50)] {
        // The numbers of a window, by thread and name.
        let mut expected: BTreeMap<(String, String), u64> = BTreeMap::new();
        for event in all.iter().filter(|event| (from..to).contains(&at(event))) {
            *expected.entry((tid(event), event["event"].as_str().unwrap().to_owned())).or_default() += 1;
        }
        let mut found = BTreeMap::new();
        for (tid, row) in &rows {
            let sums =
                viewer.ask("statistics", &object!({ "from": from, "to": to, "rows": [row] }).to_string());
            for state in sums["rows"][0]["states"].as_array().into_iter().flatten() {
                let name = sums["states"][state[0].to_string()]["name"].as_str().unwrap().to_owned();
                found.insert((tid.clone(), name), state[1].as_u64().unwrap());
            }
        }
        assert_eq!(found, expected, "{from} {to}");
        // And its events.
        let asked = object!({ "from": from, "to": to, "most": 500 });
        let events = viewer.ask("events", &asked.to_string())["events"].take();
        let expected: Vec<Value> = all
            .iter()
            .filter(|event| (from..=to).contains(&at(event)))
            .map(|event| {
                object!([
                    at(event),
                    event["event"],
                    tid(event),
                    event["packet_context"]["cpu_id"].to_string()
                ])
            })
            .collect();
        let found: Vec<Value> = events
            .as_array()
            .unwrap()
            .iter()
            .map(|event| object!([event["at"], event["name"], event["tid"], event["cpu"]]))
            .collect();
        assert_eq!(found, expected);
        assert!(from > 0 || found.len() > 50, "{found:?}");
    }
}

#[test]
fn the_page_draws_an_lttng_trace_and_selects_its_events() {
    let Some((viewer, mut browser)) = opened_with(|| Viewer::start(&lttng())) else { return };
    let begin: i64 = viewer.ask("state", "{}")["begin_ns"].as_str().unwrap().parse().unwrap();
    let all = listed();
    let at = |event: &Value| (event["ns"].as_i64().unwrap() - begin) as u64;
    let rows = rows_of_events(&viewer);
    let (thread, row) = rows.iter().next().unwrap();
    browser.open(&format!("http://127.0.0.1:{}/#v=1&pin={row}", viewer.port));
    let own: Vec<&Value> = all.iter().filter(|event| tid(event) == *thread).collect();
    let counted = format!("tracewing.counted()[{row}]?.reduce((sum, count) => sum + count, 0)");
    browser.wait(&format!("{counted} === {}", own.len()));
    let shown = browser.value("document.querySelector('.track.pinned .what').textContent");
    assert!(shown.as_str().unwrap().contains("ctf_kinds events"), "{shown}");
    // A click on a mark selects its event.
    let column = browser.value(&format!("tracewing.counted()[{row}].findIndex((count) => count > 0)"));
    let y = browser.value("document.querySelector('.track.pinned').getBoundingClientRect().top + 12");
    browser.click(270.0 + column.as_f64().unwrap(), y.as_f64().unwrap());
    browser.wait("document.querySelectorAll('#details .fields dd').length > 3");
    let from = browser.value("tracewing.found().from").as_u64().unwrap();
    let first = own.iter().find(|event| at(event) == from).unwrap();
    assert_eq!(browser.value("document.querySelector('#details dd').textContent"), first["event"]);
    let field = "Object.fromEntries([...document.querySelectorAll('#details .fields dt')].map((term) => [term.textContent, term.nextElementSibling.firstChild.textContent]))";
    let fields = browser.value(field);
    assert_eq!(fields["common_context.vpid"], first["common_context"]["vpid"].to_string());
    for (name, value) in first["payload"].as_object().unwrap().iter().filter(|(_, value)| value.is_i64()) {
        assert_eq!(fields[format!("payload.{name}")], value.to_string(), "{fields}");
    }
    // The next ones of its kind.
    let of_kind: Vec<u64> = all.iter().filter(|event| event["event"] == first["event"]).map(at).collect();
    let place = of_kind.iter().position(|at| *at == from).unwrap();
    for next in &of_kind[place + 1..][..3] {
        browser.key("n");
        browser.wait(&format!("tracewing.found()?.from === {next}"));
    }
    // An area of the whole: its events by name.
    browser.key("Escape");
    browser.key("m");
    browser.wait("tracewing.view.area !== null && document.querySelector('#details').ariaBusy === 'false'");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn the_first_event_of_a_thread_has_a_mark_also_if_none_follows() {
    const METADATA: &str = "/* CTF 1.8 */
        typealias integer { size = 8; align = 8; signed = false; } := u8;
        typealias integer { size = 32; align = 8; signed = true; } := i32;
        clock { name = c; freq = 1000000000; };
        typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp;
        trace { major = 1; minor = 8; byte_order = le; };
        typealias integer { size = 32; align = 8; signed = false; } := u32;
        stream {
            packet.context := struct { u32 cpu_id; };
            event.header := struct { stamp timestamp; };
            event.context := struct { i32 vtid; };
        };
        event { name = \"shop:order\"; fields := struct { u8 n; }; };";
    let threads = [5, 6, 6, 5, 7, 5, 8];
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
    let event = |(n, tid): (usize, &i32)| {
        [&(1000 * (n as u64 + 1)).to_le_bytes()[..], &tid.to_le_bytes(), &[n as u8]].concat()
    };
    let cpu = 0_u32.to_le_bytes();
    let bytes: Vec<u8> = cpu.into_iter().chain(threads.iter().enumerate().flat_map(event)).collect();
    std::fs::write(folder.path().join("stream"), bytes).unwrap();
    let viewer = Viewer::start(folder.path());
    let rows = rows_of_events(&viewer);
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["5", "6", "7", "8"]);
    for (tid, row) in rows {
        let asked =
            object!({ "from": 0, "to": 1_000_000, "rows": [row], "classes": [13], "most": 9 }).to_string();
        let longest = viewer.ask("longest", &asked);
        let times: Vec<usize> = longest["spans"]
            .as_array()
            .unwrap()
            .iter()
            .map(|span| span[2].as_u64().unwrap() as usize)
            .collect();
        let expected: Vec<usize> =
            (0..threads.len()).filter(|n| threads[*n].to_string() == tid).map(|n| 1000 * n).collect();
        assert_eq!(times, expected, "{tid}");
    }
}
