//! Searches among events find the lines of `list` that have the words.

use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use tracewing_testing::{Printed, RunExt, wait_until};

/// Starts a search and waits for its end; gives its number, and what it has found in the whole recording.
fn search(viewer: &Viewer, text: &str) -> (u64, Value) {
    let number = viewer.ask("find", &object!({ "text": text }).to_string())["search"].as_u64().unwrap();
    let mut found = Value::Null;
    wait_until("the search is done", || {
        let asked = object!({ "search": number, "from": 0, "to": 1_u64 << 50, "count": 64 });
        found = viewer.ask("found", &asked.to_string());
        found["is_done"] == true
    });
    assert_eq!(found["failure"], Value::Null);
    (number, found)
}

/// The times of the events of a recording whose lines have all words.
fn listed(name: &str, begin: i64, words: &[&str]) -> Vec<u64> {
    let print = |arguments: &[&str]| harness::of(&stored(name), arguments).succeeds().text();
    let (lines, events) = (print(&["list", "--pretty", "--no-delta"]), print(&["list", "--format", "json"]));
    let pairs = lines.lines().zip(events.lines());
    let fits = pairs.filter(|(line, _)| {
        let (_, line) = line.split_once("] host ").unwrap();
        words.iter().all(|word| line.to_lowercase().contains(word))
    });
    fits.map(|(_, event)| {
        let event: Value = serde_json::from_str(event).unwrap();
        u64::try_from(event["ns"].as_i64().unwrap() - begin).unwrap()
    })
    .collect()
}

#[test]
fn matches_are_the_lines_of_list() {
    let viewer = Viewer::start(&stored("server"));
    let state = viewer.ask("state", "{}");
    let begin: i64 = state["begin_ns"].as_str().unwrap().parse().unwrap();
    let length = state["length"].as_u64().unwrap();
    for words in [&["sched_switch"][..], &["mutex", "27136"], &["lock:"], &["nothing has this"], &["{"]] {
        let times = listed("server", begin, words);
        let (search, found) = search(&viewer, &words.join("  ").to_uppercase());
        assert_eq!(found["count"].as_u64(), Some(times.len() as u64), "{words:?}");
        assert_eq!((&found["marked"], &found["within"]), (&found["count"], &found["count"]));
        // Each is where it is.
        let ask = |asked: Value| viewer.ask("match", &asked.to_string());
        for (number, at) in times.iter().enumerate().step_by(1 + times.len() / 30) {
            let expected = object!({ "number": number, "at": at });
            assert_eq!(ask(object!({ "search": search, "number": number })), expected);
            let next = ask(object!({ "search": search, "time": at, "step": 1 }));
            assert_eq!(&next["at"], at);
            let last = ask(object!({ "search": search, "time": at, "step": -1 }));
            assert_eq!(&last["at"], at);
        }
        assert_eq!(ask(object!({ "search": search, "number": times.len() })), Value::Null);
        let late = ask(object!({ "search": search, "time": length + 1, "step": 1 }));
        assert_eq!(late, Value::Null);
        // The parts of a window have those in it.
        let (from, to, count) = (length / 3, length / 2, 50);
        let asked = object!({ "search": search, "from": from, "to": to, "count": count });
        let found = viewer.ask("found", &asked.to_string());
        let mut expected = vec![0; count as usize];
        for at in times.iter().filter(|at| (from..to).contains(at)) {
            // The part that ends after it.
            let ends = |part: &u64| from + (to - from) * (part + 1) / count > *at;
            expected[(0..count).find(ends).unwrap() as usize] += 1;
        }
        let mut parts = vec![0; count as usize];
        for part in found["parts"].as_array().unwrap() {
            parts[part[0].as_u64().unwrap() as usize] = part[1].as_u64().unwrap();
        }
        assert_eq!(parts, expected, "{words:?}");
        assert_eq!(found["within"].as_u64(), Some(parts.iter().sum()));
    }
}

#[test]
fn searches_end_and_few_are_kept() {
    let viewer = Viewer::start(&stored("clerks"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    let asked = |search: u64| object!({ "search": search, "from": 0, "to": 9, "count": 1 }).to_string();
    let status = |search: u64| viewer.post("found", &[&cookie], &asked(search)).0;
    let searches: Vec<u64> = (0..6).map(|_| search(&viewer, "a").0).collect();
    assert_eq!(
        searches.iter().map(|search| status(*search)).collect::<Vec<_>>(),
        [410, 410, 200, 200, 200, 200]
    );
    viewer.ask("forget", &object!({ "search": searches[5] }).to_string());
    assert_eq!(status(searches[5]), 410);
    assert_eq!(status(searches[4]), 200);
}
