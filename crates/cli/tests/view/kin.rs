//! From an event, the page leads to the next and the previous one of its kind: those of `list -e NAME`, in
//! their order.

use crate::analyses::result;
use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use tracewing_testing::{Printed, RunExt};

/// An event of `list`: its time since the recording begins, and its thread.
type Listed = (u64, String);

/// The events with a name.
fn listed(viewer: &Viewer, recording: &str, pattern: &str) -> Vec<Listed> {
    let begin: i64 = viewer.ask("state", "{}")["begin_ns"].as_str().unwrap().parse().unwrap();
    let out = harness::of(&stored(recording), &["list", "--format", "json", "-e", pattern]).succeeds().text();
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let at = u64::try_from(event["ns"].as_i64().unwrap() - begin).unwrap();
        (at, event["common_context"]["tid"].to_string())
    };
    out.lines().map(event).collect()
}

/// The event that the panel shows with its fields: its time, its thread, its name.
const SHOWN: &str = "(() => {
    const line = document.querySelector('#details .listing .fields')?.previousElementSibling;
    return line ? [Number(line.dataset.at), line.querySelector('.tid').textContent, line.querySelector('.link').textContent] : null;
})()";

/// Waits until the panel shows such an event, and nothing else.
fn shows(browser: &mut Browser, (at, tid): &Listed, name: &str) {
    browser.wait(&format!("JSON.stringify({SHOWN}) === {}", object!(object!([at, tid, name]).to_string())));
}

#[test]
fn steps_of_a_kind_are_the_events_of_list() {
    let viewer = Viewer::start(&stored("clerks"));
    for name in ["clerks:request", "clerks:sale_begin", "sched_switch"] {
        let mut expected: Vec<u64> = listed(&viewer, "clerks", name).into_iter().map(|(at, _)| at).collect();
        assert!(expected.len() > 10, "{name}");
        expected.truncate(40);
        let step = |from: &Value, step: i8| {
            let asked = object!({ "name": name, "time": from["at"], "among": from["among"], "step": step });
            result(&viewer, "kin", &asked).unwrap()["event"].take()
        };
        let first = object!({ "at": expected[0], "among": 0 });
        assert_eq!(step(&first, -1), Value::Null);
        let mut walked = vec![first];
        while walked.len() < expected.len() {
            walked.push(step(walked.last().unwrap(), 1));
        }
        let times: Vec<u64> = walked.iter().map(|event| event["at"].as_u64().unwrap()).collect();
        assert_eq!(times, expected, "{name}");
        for pair in walked.windows(2).rev() {
            assert_eq!(step(&pair[1], -1), pair[0], "{name}");
        }
    }
    let asked = object!({ "name": "no such event", "time": 0, "among": 0, "step": 1 });
    assert_eq!(result(&viewer, "kin", &asked).unwrap()["event"], Value::Null);
}

#[test]
fn a_mark_leads_to_the_marks_of_its_kind_in_all_threads() {
    let Some((viewer, mut browser)) = opened("clerks") else { return };
    const NAME: &str = "clerks:request";
    let all = listed(&viewer, "clerks", NAME);
    let threads: std::collections::BTreeSet<&String> = all.iter().map(|(_, tid)| tid).collect();
    assert!(threads.len() > 1 && all.len() > 3, "{all:?}");
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let row_of = |tid: &str| {
        let thread = rows.iter().find(|row| row["kind"] == "thread" && row["number"] == tid).unwrap();
        let is_own = |row: &&Value| row["kind"] == "events" && row["parent"] == thread["id"];
        rows.iter().find(is_own).unwrap()["id"].clone()
    };
    let (at, tid) = &all[0];
    browser.value(&format!("tracewing.select({}, {at})", row_of(tid)));
    shows(&mut browser, &all[0], NAME);
    for event in &all[1..] {
        browser.key("n");
        shows(&mut browser, event, NAME);
        // It is selected in the track of its own thread.
        assert_eq!(browser.value("tracewing.view.state.row"), row_of(&event.1));
        assert_eq!(browser.value("tracewing.found().from"), event.0);
    }
    let status = "document.querySelector('#details .steps output').textContent";
    browser.key("n");
    browser.wait(&format!("{status} === 'no later one'"));
    // The buttons do the same.
    let button =
        |what: &str| format!("document.querySelector('#details .steps [title^=\"{what}\"]').click()");
    for event in all[..all.len() - 1].iter().rev() {
        browser.value(&button("Previous event with this name"));
        shows(&mut browser, event, NAME);
    }
    browser.value(&button("Previous event with this name"));
    browser.wait(&format!("{status} === 'no earlier one'"));
    // In its track, other events of the provider follow, of this thread only.
    let of_track: Vec<Listed> = [NAME, "clerks:response"]
        .iter()
        .flat_map(|name| listed(&viewer, "clerks", name))
        .filter(|(_, of)| of == tid)
        .collect();
    let next = of_track.iter().filter(|(time, _)| time > at).min().unwrap();
    browser.value(&button("Next event of this track"));
    browser.wait(&format!("tracewing.found().from === {}", next.0));
    assert_eq!(browser.value("tracewing.view.state.row"), row_of(tid));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn an_event_of_a_list_leads_to_others_of_its_kind() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    const NAME: &str = "sched_switch";
    let all = listed(&viewer, "server", NAME);
    let middle = all.len() / 2;
    // An event around a state of a CPU, by its name in the list.
    let cpu = viewer.ask("tracks", "{}")["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["kind"] == "cpu")
        .unwrap()["id"]
        .clone();
    browser.value(&format!("tracewing.select({cpu}, {})", all[middle].0));
    let of_name = "[...document.querySelectorAll('#details .listing tr.within')].find((line) => line.querySelector('.link').textContent === 'sched_switch')";
    browser.wait(&format!("!!{of_name}"));
    browser.value(&format!("{of_name}.querySelector('.link').click()"));
    let shown = browser.value(SHOWN);
    let at = all.iter().position(|(at, tid)| object!([at, tid, NAME]) == shown).unwrap();
    let next =
        "document.querySelector('#details .fields .steps [title^=\"Next event sched_switch\"]').click()";
    browser.value(next);
    shows(&mut browser, &all[at + 1], NAME);
    assert_eq!(browser.value("tracewing.view.state"), Value::Null);
    // Keys lead on, and a link shows the same.
    browser.key("n");
    shows(&mut browser, &all[at + 2], NAME);
    browser.key("p");
    shows(&mut browser, &all[at + 1], NAME);
    browser.value("tracewing.view.keep()");
    let link = browser.value("location.hash").as_str().unwrap().to_owned();
    browser.key("Escape");
    browser.open(&format!("http://127.0.0.1:{}/{link}", viewer.port));
    shows(&mut browser, &all[at + 1], NAME);
    // So does Back.
    browser.key("n");
    shows(&mut browser, &all[at + 2], NAME);
    browser.value("document.querySelector('#back').click()");
    shows(&mut browser, &all[at + 1], NAME);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
