//! A selected event shows where the program's source declares it, and a sample where the code is that it has
//! hit, or why that is unknown.

use crate::browser::renamed;
use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::path::Path;
use tracewing_testing::{Printed, RunExt, installed};

/// The sources of classes by name, as `info` prints them.
fn sources(trace: &Path) -> BTreeMap<String, Value> {
    let out = harness::of(trace, &["info", "--format", "json"]).succeeds().text();
    let report: Value = serde_json::from_str(&out).unwrap();
    let classes =
        report["traces"].as_array().unwrap().iter().flat_map(|trace| trace["event_classes"].as_array());
    classes
        .flatten()
        .map(|class| (class["name"].as_str().unwrap().to_owned(), class["source"].clone()))
        .collect()
}

/// The events of a time, with their sources.
fn events(viewer: &Viewer, from: u64, to: u64, last: bool, most: u64) -> Vec<Value> {
    let asked = object!({ "from": from, "to": to, "most": most, "last": last });
    viewer.ask("events", &asked.to_string())["events"].as_array().unwrap().clone()
}

#[test]
fn an_event_has_the_source_that_info_prints() {
    for name in ["clerks", "server", "pipeline"] {
        let (viewer, expected) = (Viewer::start(&stored(name)), sources(&stored(name)));
        let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
        let (mut some, mut none) = (0, 0);
        for (from, to, last) in [(0, length, true), (length / 2, length, false), (0, length, false)] {
            for event in events(&viewer, from, to, last, 500) {
                assert_eq!(event["source"], expected[event["name"].as_str().unwrap()], "{name} {event}");
                *if event["source"].is_null() { &mut none } else { &mut some } += 1;
            }
        }
        // The kernel's events have none.
        assert!(none > 50 && (some > 50 || name == "pipeline"), "{name} {some} {none}");
    }
}

#[test]
fn classes_of_one_name_have_sources_of_their_own() {
    let plain = sources(&stored("clerks"));
    let folder = tempfile::tempdir().unwrap();
    // Now two classes are called so.
    let both = renamed(folder.path(), "\"clerks:response\"", "\"clerks:request\"");
    let (viewer, renamed) = (Viewer::start(&stored("clerks")), Viewer::start(&both));
    assert_ne!(plain["clerks:response"], plain["clerks:request"]);
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let mut found = [0, 0];
    for (from, to, last, most) in
        [(0, length, true, 500), (length / 3, length, false, 400), (0, length, true, 40)]
    {
        let all = events(&viewer, from, to, last, most);
        let now = events(&renamed, from, to, last, most);
        assert_eq!(all.len(), now.len());
        for (event, now) in all.iter().zip(&now) {
            let name = event["name"].as_str().unwrap();
            assert_eq!(now["source"], plain[name], "{event} {now}");
            for (count, of) in found.iter_mut().zip(["clerks:request", "clerks:response"]) {
                *count += usize::from(name == of);
            }
        }
    }
    assert!(found.iter().all(|count| *count > 3), "{found:?}");
}

/// Two streams, of which one has no clock. All classes have the same name; the number says where each is
/// declared.
const METADATA: &str = "/* CTF 1.8 */
    typealias integer { size = 8; align = 8; signed = false; } := u8;
    clock { name = c; freq = 1000000000; };
    typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp;
    trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u8 stream_id; }; };
    env { event_0_file = \"0.rs\"; event_1_file = \"1.rs\"; event_2_file = \"2.rs\"; };
    stream { id = 0; event.header := struct { u8 id; stamp timestamp; }; };
    stream { id = 1; event.header := struct { u8 id; }; };
    event { stream_id = 0; id = 0; name = tick; fields := struct { u8 number; }; };
    event { stream_id = 0; id = 1; name = tick; fields := struct { u8 number; }; };
    event { stream_id = 1; id = 2; name = tick; fields := struct { u8 number; }; };";

#[test]
fn events_without_a_time_leave_others_their_sources() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), METADATA).unwrap();
    let stamped = (0..60_u64).flat_map(|at| {
        let id = u8::from(at % 3 == 0);
        [&[id][..], &(at * 10).to_le_bytes(), &[id]].concat()
    });
    std::fs::write(folder.path().join("stamped"), [0].into_iter().chain(stamped).collect::<Vec<u8>>())
        .unwrap();
    std::fs::write(folder.path().join("unstamped"), [&[1_u8][..], &[2, 2].repeat(7)].concat()).unwrap();
    let viewer = Viewer::start(folder.path());
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let mut seen = BTreeMap::new();
    for (from, last, most) in [
        (0, false, 500),
        (0, true, 500),
        (0, false, 30),
        (0, true, 30),
        (length / 2, false, 10),
        (length / 2, true, 500),
    ] {
        for event in events(&viewer, from, length, last, most) {
            let fields = event["fields"].as_array().unwrap();
            let number =
                fields.iter().find(|field| field[0] == "payload.number").unwrap()[1].as_str().unwrap();
            assert_eq!(event["source"], format!("{number}.rs"), "{from} {last} {most} {event}");
            assert_eq!(event["at"].is_null(), number == "2", "{event}");
            *seen.entry(number.to_owned()).or_insert(0) += 1;
        }
    }
    assert!(seen.len() == 3 && seen.values().all(|count| *count > 10), "{seen:?}");
}

#[test]
fn the_page_shows_the_source_of_a_selected_event() {
    let Some((viewer, mut browser)) = opened("clerks") else { return };
    let expected = sources(&stored("clerks"));
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let shown = "document.querySelector('#details .fields dd[data-source]')?.dataset.source ?? null";
    for name in ["clerks:request", "lock:acquired", "sched_switch"] {
        let some = events(&viewer, 0, length, true, 500);
        let Some(event) = some.iter().rev().find(|event| event["name"] == name) else {
            assert!(name.starts_with("lock:"), "{name}");
            continue;
        };
        let link = format!("event={name}&at={}", event["at"]).replace(':', "%3A");
        browser.open(&format!("http://127.0.0.1:{}/#v=1&{link}", viewer.port));
        browser.wait("document.querySelectorAll('#details .fields dd').length > 2");
        assert_eq!(browser.value(shown), expected[name], "{name}");
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_sample_has_a_source_or_a_reason() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("pipeline"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "samples");
    let mut files = 0;
    for row in rows {
        let asked =
            object!({ "from": 0, "to": u64::MAX >> 12, "rows": [row["id"]], "classes": [13], "most": 4 });
        for span in viewer.ask("longest", &asked.to_string())["spans"].as_array().unwrap() {
            let at = span[2].as_u64().unwrap();
            let asked = object!({ "from": at, "to": at + 1, "rows": [row["parent"]] });
            let hit = crate::analyses::result(&viewer, "flame", &asked).unwrap()["hit"].take();
            browser.value(&format!("tracewing.select({}, {at})", row["id"]));
            let functions = "document.querySelector('#details dd[data-functions]')";
            browser.wait(&format!("tracewing.found()?.from === {at} && !!{functions}?.dataset.functions"));
            let shown = browser
                .value("document.querySelector('#details > div dd[data-source]')?.textContent ?? null");
            let text = match (&hit["source"], &hit["why"]) {
                (Value::String(source), Value::Null) => object!(source),
                (Value::Null, Value::String(why)) => object!(format!("unknown: {why}")),
                _ => Value::Null,
            };
            assert_eq!(shown, text, "{hit}");
            files += usize::from(!hit.is_null());
        }
    }
    assert!(files > 0, "no sample is in a file");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
