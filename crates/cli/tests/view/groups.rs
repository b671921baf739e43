//! Tasks of one name have a track of their own, which is the sum of them.

use crate::cdp::opened;
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};
use std::collections::BTreeMap;

/// The shares that a row has in a window of one bucket, in 255ths.
fn shares(viewer: &Viewer, row: &Value, shift: u32) -> Vec<u8> {
    let asked = object!({ "shift": shift, "first": 0, "count": 1, "rows": [row] });
    let bytes = viewer.bytes("rows", &asked.to_string());
    assert_eq!(bytes.len(), 8 + 28, "one run of one row");
    bytes[8 + 12..8 + 26].to_vec()
}

#[test]
fn tasks_of_a_name_are_drawn_as_their_sum() {
    for recording in ["server", "clerks"] {
        compare(&Viewer::start(&stored(recording)));
    }
}

fn compare(viewer: &Viewer) {
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let shift = length.next_power_of_two().trailing_zeros();
    let tracks = viewer.ask("tracks", "{}");
    let mut members = BTreeMap::<u64, Vec<&Value>>::new();
    let all = tracks["rows"].as_array().unwrap();
    for task in all.iter().filter(|row| row["kind"] == "task") {
        members.entry(task["group"].as_u64().unwrap()).or_default().push(task);
    }
    let groups: Vec<_> = all.iter().filter(|row| row["kind"] == "tasks").collect();
    assert_eq!(groups.len(), members.len());
    let mut several = 0;
    for group in groups {
        let tasks = &members[&group["id"].as_u64().unwrap()];
        assert_eq!(group["members"], tasks.len());
        let name = group["name"].as_str().unwrap();
        let fits = |task: &&&Value| match name.strip_suffix('*') {
            Some(before) => task["name"].as_str().unwrap().starts_with(before),
            None => task["name"] == name,
        };
        assert!(tasks.iter().all(|task| fits(&task) && task["parent"] == group["parent"]));
        several += usize::from(tasks.len() > 1);
        // The statistics of the group are those of its tasks.
        let asked = object!({ "from": 0, "to": length, "rows": [group["id"]] });
        let sums = viewer.ask("statistics", &asked.to_string());
        let sums = sums["rows"].as_array().unwrap();
        assert_eq!(sums.len(), tasks.len());
        let shares = shares(viewer, &group["id"], shift);
        let whole = (tasks.len() as u64) << shift;
        for (class, share) in shares.iter().take(13).enumerate() {
            let ns: u64 = sums.iter().map(|sums| sums["classes"][class].as_u64().unwrap()).sum();
            let expected = (ns * 255) as f64 / whole as f64;
            assert_eq!(*share > 0, ns > 0, "what is there is seen");
            assert!((f64::from(*share) - expected).abs() <= 1.0, "{class}: {share} {expected}");
        }
    }
    assert!(several > 0);
}

#[test]
fn the_page_shows_tasks_of_a_name_as_one_track() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let several = |row: &&Value| row["kind"] == "tasks" && row["members"].as_u64() > Some(1);
    let group = rows.iter().find(several).unwrap();
    browser.value(&format!("tracewing.choose({})", group["id"]));
    browser.settle();
    let shown = format!("tracewing.shown().find(({{ id }}) => id === {})", group["id"]);
    assert_eq!(browser.value(&format!("{shown}.name")), group["name"]);
    let count = format!("{} tasks", group["members"]);
    assert_eq!(browser.value(&format!("{shown}.number")), count.as_str());
    let heights = format!("tracewing.drawn()[{}].some((height) => height > 0)", group["id"]);
    browser.wait(&heights);
    // Its tasks are below it.
    let within = browser.value("tracewing.shown().filter(({ kind }) => kind === 'task').length");
    assert_eq!(within, group["members"]);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
