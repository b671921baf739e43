//! Tasks of one name have a track of their own, which is the sum of them.

use crate::cdp::{opened, opened_with};
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A copy of a recording, in which half of the tasks have another name.
pub fn of_two_names(folder: &Path) -> PathBuf {
    let trace = folder.join("trace");
    let copied = std::process::Command::new("cp").arg("-r").arg(stored("server")).arg(&trace).status();
    assert!(copied.unwrap().success());
    let stream = trace.join("user/uid0_0");
    let mut bytes = std::fs::read(&stream).unwrap();
    for number in [1, 2, 5, 7] {
        let (from, to) = (format!("connection/{number}"), format!("acceptance/{number}"));
        let at = bytes.windows(from.len()).position(|some| some == from.as_bytes()).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    std::fs::write(&stream, bytes).unwrap();
    trace
}

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

/// Tasks of several names are one track when they are folded.
#[test]
fn all_tasks_of_a_process_have_a_picture() {
    let folder = tempfile::tempdir().unwrap();
    let opened = opened_with(|| Viewer::start(&of_two_names(folder.path())));
    let Some((viewer, mut browser)) = opened else { return };
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let all = rows.iter().find(|row| row["kind"] == "all").unwrap();
    let of = |kind: &str| -> Vec<&Value> {
        rows.iter().filter(|row| row["kind"] == kind && row["parent"] == all["parent"]).collect()
    };
    let (tasks, names) = (of("task"), of("tasks"));
    assert!(names.len() > 1 && tasks.len() > names.len(), "{names:?}");
    assert_eq!(all["members"], tasks.len());
    let sum = |rows: &[&Value], field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(all["used"], sum(&tasks, "used"));
    // Its statistics are those of its tasks.
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let ids = |rows: &[&Value]| rows.iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    let statistics = |rows: Vec<Value>| {
        viewer.ask("statistics", &object!({ "from": 0, "to": length, "rows": rows }).to_string())
    };
    assert_eq!(statistics(ids(&[all])), statistics(ids(&tasks)));
    // While it is folded, its picture says what is below it.
    browser.value(&format!("tracewing.choose({})", all["id"]));
    browser.key(" ");
    browser.settle();
    let shown = format!("tracewing.shown().find(({{ id }}) => id === {})", all["id"]);
    assert_eq!(browser.value(&format!("{shown}.name")), format!("{} tasks", tasks.len()).as_str());
    let is_below = format!("({{ id }}) => {}.includes(id)", object!(ids(&[&tasks[..], &names[..]].concat())));
    assert_eq!(browser.value(&format!("tracewing.shown().some({is_below})")), false);
    browser.wait(&format!("tracewing.drawn()[{}].some((height) => height > 0)", all["id"]));
    // A click on it gives their statistics.
    let place = format!(
        "(() => {{ const box = document.querySelector('.track.chosen').getBoundingClientRect(); return [tracewing.chosen() === {}, box.top + box.height / 2]; }})()",
        all["id"]
    );
    let place = browser.value(&place);
    assert_eq!(place[0], true);
    browser.click(700.0, place[1].as_f64().unwrap());
    browser.wait(&format!("JSON.stringify(tracewing.view.area?.rows) === '[{}]'", all["id"]));
    browser.wait("document.querySelectorAll('#details tbody tr[data-row]').length > 0");
    let lines = browser.value("[...document.querySelectorAll('#details tbody tr[data-row]')].map(({ dataset }) => Number(dataset.row))");
    assert!(lines.as_array().unwrap().iter().all(|row| ids(&tasks).contains(row)), "{lines}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
