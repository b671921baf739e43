//! Of a recording with thousands of losses, each is drawn where it is, and a list leads to it.

use crate::cdp::opened_with;
use crate::client::Viewer;
use crate::common::{Packet, class, tick, write_trace};
use serde_json::{Value, json as object};

/// Losses of the recording.
const LOSSES: u64 = 3000;
/// Time between two packets, in nanoseconds.
const PERIOD: u64 = 50_000;

/// A program's recording in which one event is missing before every second packet.
fn lossy() -> (tempfile::TempDir, Viewer) {
    let folder = tempfile::tempdir().unwrap();
    let packet = |number: u64| {
        let begin = 1_000_000 + number * PERIOD;
        let packet = Packet { seq: number, discarded: number / 2, ..Packet::new(1, 0, begin, begin + 1000) };
        packet.bytes(&[tick(begin, 1), tick(begin + 1000, 2)])
    };
    let bytes = (0..=2 * LOSSES).flat_map(packet).collect();
    let trace = folder.path().join("trace");
    write_trace(&trace, &class(Some(1), 1_000_000_000), &[("stream", bytes)]);
    let viewer = Viewer::start(&trace);
    (folder, viewer)
}

#[test]
fn the_last_of_thousands_are_drawn_and_listed() {
    let mut folder = None;
    let start = || {
        let (kept, viewer) = lossy();
        folder = Some(kept);
        viewer
    };
    let Some((viewer, mut browser)) = opened_with(start) else { return };
    let state = viewer.ask("state", "{}");
    assert_eq!(
        (state["losses"].as_array().unwrap().len(), &state["losses_left_out"]),
        (1000, &object!(2000))
    );
    let list =
        |first: u64, most: u64| viewer.ask("lost", &object!({ "first": first, "most": most }).to_string());
    let whole: Vec<Value> =
        (0..3).flat_map(|part| list(part * 1000, 1000)["losses"].as_array().unwrap().clone()).collect();
    assert_eq!((whole.len() as u64, &list(0, 0)["count"]), (LOSSES, &object!(LOSSES)));
    assert!(whole.is_sorted_by_key(|loss| loss["from"].as_u64()));
    // In the whole picture, all are there; those of a pixel are one.
    browser.wait("tracewing.losses().reduce((sum, { places }) => sum + (places ?? 1), 0) === 3000");
    browser.settle();
    assert!(browser.value("tracewing.losses().length").as_u64().unwrap() < LOSSES);
    // At the end, each is drawn by itself.
    let (last, length) = (&whole[2999], state["length"].as_u64().unwrap());
    let from = whole[2990]["from"].as_u64().unwrap() - 1000;
    browser.value(&format!("tracewing.view.set({from}, {length})"));
    let seen = format!("tracewing.losses().filter(({{ from, to }}) => from >= {from} && to <= {length})");
    browser.wait(&format!("{seen}.length === 10 && {seen}.at(-1).from === {}", last["from"]));
    browser.settle();
    let stripes = browser.value(
        "[...new DOMParser().parseFromString(tracewing.svg(), 'image/svg+xml').querySelectorAll('g[data-row] rect[height=\"3\"]')].length",
    );
    assert!(stripes.as_u64().unwrap() >= 10, "{stripes}");
    // The number at the top leads to a list, and that to the last one.
    let text = "document.querySelector('#about').textContent";
    assert!(browser.value(text).as_str().unwrap().contains("events missing in 3,000 places"));
    browser.value("tracewing.view.set(0, tracewing.view.length)");
    browser.value("document.querySelector('#about button').click()");
    for page in 0..10 {
        let first = format!("{} to {}", grouped(page * 300 + 1), grouped(page * 300 + 300));
        browser.wait(&format!(
            "document.querySelector('#details h2')?.textContent.includes('in 3,000 places; {first}')"
        ));
        assert_eq!(browser.value("document.querySelectorAll('#details tbody tr').length"), 300);
        if page < 9 {
            browser.value("[...document.querySelectorAll('#details h2 button')].find(({ textContent }) => textContent === 'later ones').click()");
        }
    }
    browser.value("document.querySelector('#details tbody tr:last-child button').click()");
    browser.wait(&format!("tracewing.view.from <= {} && tracewing.view.to >= {} && tracewing.view.to - tracewing.view.from < 600000", last["from"], last["to"]));
    browser.wait(&format!("{seen}.some(({{ from }}) => from === {})", last["from"]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    drop(folder);
}

/// A number as the page has it.
fn grouped(number: u64) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}
