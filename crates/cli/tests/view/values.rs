//! Recordings that are well-formed but nonsensical: the server answers each question, with numbers that lie
//! within the recording, and still runs afterwards.

use crate::client::Viewer;
use crate::hostile;
use serde_json::{Value, json as object};
use tracewing_testing::wait_until;

/// Numbers and sizes that a page might send.
const TIMES: [u64; 4] = [0, 1, 1 << 40, u64::MAX];

/// The answers to questions that a page does not ask; a refusal is one.
fn survives(viewer: &Viewer, rows: &[u64]) {
    let cookie = format!("Cookie: {}", viewer.cookie());
    for from in TIMES {
        for to in TIMES {
            for (path, question) in [
                ("statistics", object!({ "from": from, "to": to })),
                ("spans", object!({ "from": from, "to": to, "rows": rows })),
                (
                    "at",
                    object!({ "row": rows.first().unwrap_or(&0), "time": from, "step": 1, "kind": to % 9 }),
                ),
                (
                    "longest",
                    object!({ "from": from, "to": to, "rows": rows, "classes": [0, 1, 7], "most": 3 }),
                ),
                ("events", object!({ "from": from, "to": to, "most": 5, "last": true, "buffer": 0 })),
                ("events", object!({ "from": from, "to": to, "most": 5 })),
                ("why", object!({ "row": rows.first().unwrap_or(&0), "from": from, "to": to })),
                ("flame", object!({ "from": from, "to": to, "rows": rows })),
                ("rows", object!({ "shift": from % 80, "first": to, "count": 5, "rows": rows })),
                ("at", object!({ "row": rows.first().unwrap_or(&0), "time": from, "step": 0 })),
            ] {
                // Only so many analyses work at a time.
                let mut answer = (503, String::new(), Vec::new());
                wait_until("there is a thread for it", || {
                    answer = viewer.post(path, &[&cookie], &question.to_string());
                    answer.0 != 503
                });
                let (status, _, body) = answer;
                let answer = String::from_utf8_lossy(&body);
                // The index is made of what comes before a stamp that no time has.
                let is_unreadable = path == "events" && answer.contains("is outside the range");
                let is_answer = [200, 400].contains(&status) || status == 500 && is_unreadable;
                assert!(is_answer, "{path} {question}: {status} {answer}");
            }
        }
    }
}

#[test]
fn no_value_brings_it_down() {
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("t");
        hostile::write_recording(&trace, seed);
        let mut viewer = Viewer::start(&trace);
        let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
        let tracks = viewer.ask("tracks", "{}");
        let rows = tracks["rows"].as_array().unwrap().iter().filter_map(|row| row["id"].as_u64());
        let rows: Vec<u64> = rows.take(64).collect();
        let answer = viewer.ask("statistics", &object!({ "from": 0, "to": length }).to_string());
        for sums in answer["rows"].as_array().unwrap() {
            let sum: u64 = sums["classes"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
            assert!(sum <= length, "seed {seed}: {sums} in {length}");
        }
        survives(&viewer, &rows);
        viewer.ask("search", &object!({ "text": "a" }).to_string());
        assert!(viewer.child.try_wait().unwrap().is_none(), "seed {seed}: it has ended");
    }
}
