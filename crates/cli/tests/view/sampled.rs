//! A function of a flame graph leads to its samples, or to its calls.

use crate::analyses::result;
use crate::cdp::opened;
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};

/// The names from the outermost to that of a node.
fn chain(nodes: &[Value], at: usize) -> Vec<&str> {
    let depth = |at: usize| nodes[at]["depth"].as_u64().unwrap();
    let mut chain = vec![nodes[at]["name"].as_str().unwrap()];
    for level in (0..depth(at)).rev() {
        let above = (0..at).rev().find(|above| depth(*above) == level).unwrap();
        chain.insert(0, nodes[above]["name"].as_str().unwrap());
    }
    chain
}

#[test]
fn samples_of_a_function_are_those_that_the_graph_counts() {
    let viewer = Viewer::start(&stored("pipeline"));
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let tracks = viewer.ask("tracks", "{}");
    let row = |tid: &Value| {
        let rows = tracks["rows"].as_array().unwrap();
        rows.iter().find(|row| row["kind"] == "thread" && row["number"] == *tid).unwrap()["id"].clone()
    };
    let mut compared = 0;
    for (from, to) in [(0, length), (length / 4, length / 2)] {
        let graph = result(&viewer, "flame", &object!({ "from": from, "to": to })).unwrap();
        let nodes = graph["nodes"].as_array().unwrap();
        for at in (0..nodes.len()).step_by(nodes.len() / 9 + 1) {
            let chain = chain(nodes, at);
            let found =
                result(&viewer, "sampled", &object!({ "from": from, "to": to, "chain": chain })).unwrap();
            assert_eq!(found["count"], nodes[at]["samples"], "{chain:?}");
            let samples = found["samples"].as_array().unwrap();
            assert_eq!(samples.len() as u64, found["count"].as_u64().unwrap().min(300));
            let times: Vec<u64> = samples.iter().map(|sample| sample["at"].as_u64().unwrap()).collect();
            assert!(times.is_sorted() && times.iter().all(|time| (from..to).contains(time)), "{times:?}");
            // Alone, the first one has this chain.
            let (time, rows) = (times[0], object!([row(&samples[0]["tid"])]));
            let one =
                result(&viewer, "flame", &object!({ "from": time, "to": time + 1, "rows": rows })).unwrap();
            let names = one["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap());
            assert_eq!(names.take(chain.len()).collect::<Vec<_>>(), chain);
            compared += 1;
        }
    }
    assert!(compared > 8, "{compared}");
    let cookie = format!("Cookie: {}", viewer.cookie());
    for chain in [object!([]), object!(vec!["main"; 129]), object!("main")] {
        let asked = object!({ "from": 0, "to": 9, "chain": chain }).to_string();
        assert_eq!(viewer.post("sampled", &[&cookie], &asked).0, 400, "{asked}");
    }
    let none =
        result(&viewer, "sampled", &object!({ "from": 0, "to": length, "chain": ["no such process"] }));
    assert_eq!(none.unwrap(), object!({ "count": 0, "samples": [] }));
}

#[test]
fn functions_of_a_flame_graph_lead_to_samples_and_calls() {
    let Some((_viewer, mut browser)) = opened("pipeline") else { return };
    browser.key("g");
    browser.wait("document.querySelectorAll('#details .flame button').length > 3");
    let leads = "[...document.querySelectorAll('#details .flame + p .link')].filter((one) => one.getBoundingClientRect().height > 0)";
    assert_eq!(browser.value(&format!("{leads}.length")), 0);
    let third = "document.querySelectorAll('#details .flame button')[3]";
    let counted =
        browser.value(&format!("/: ([\\d,]+) samples?,/.exec({third}.title)[1].replaceAll(',', '')"));
    browser.value(&format!("{third}.click()"));
    browser.value(&format!("{leads}[0].click()"));
    browser.wait("document.querySelector('#details table')?.ariaLabel === 'Samples, by time'");
    let count = browser.value("document.querySelector('#details p[data-count]').dataset.count");
    assert_eq!(count, counted);
    // The sample, with its functions.
    let time = browser.value("Number(document.querySelector('#details tbody th').dataset.time)");
    browser.value("document.querySelector('#details tbody .link').click()");
    browser.wait(&format!("tracewing.found()?.from === {time}"));
    browser.wait("!!document.querySelector('#details dd[data-functions]')");
    browser.value("document.querySelector('#back').click()");
    browser.wait("document.querySelectorAll('#details .flame button').length > 3");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);

    let Some((_viewer, mut browser)) = opened("clerks") else { return };
    browser.key("m");
    browser.wait("!!document.querySelector('#details .tabs')");
    browser.value("document.querySelector('#details .tabs [data-tab=graph]').click()");
    browser.wait("document.querySelectorAll('#details .flame button').length > 1");
    let name = browser.value("document.querySelectorAll('#details .flame button')[1].textContent");
    browser.value("document.querySelectorAll('#details .flame button')[1].click()");
    browser.value(&format!("{leads}[0].click()"));
    browser.wait("document.querySelector('#details table')?.ariaLabel === 'The longest ones'");
    let title = browser.value("document.querySelector('#details h2').firstChild.textContent");
    assert_eq!(title, format!("Longest {}", name.as_str().unwrap()));
    browser.value("document.querySelector('#details tbody .link').click()");
    browser.wait("tracewing.found()?.state.class === 10");
    assert_eq!(browser.value("tracewing.found().state.name"), name);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
