//! What led to a poll is the wake that the events report, and a lock is released by its last owner.

use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use std::collections::HashSet;
use tracewing_testing::{Printed, RunExt, installed};

/// The states of a row in these classes.
fn states(viewer: &Viewer, row: &Value, classes: &[usize]) -> Vec<(u64, u64)> {
    let asked =
        object!({ "from": 0, "to": u64::MAX >> 12, "rows": [row["id"]], "classes": classes, "most": 1000 });
    let found = viewer.ask("longest", &asked.to_string());
    let time = |span: &Value, at: usize| span[at].as_u64().unwrap();
    found["spans"].as_array().unwrap().iter().map(|span| (time(span, 2), time(span, 3))).collect()
}

fn rows(viewer: &Viewer, kind: &str) -> Vec<Value> {
    let tracks = viewer.ask("tracks", "{}");
    tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == kind).cloned().collect()
}

#[test]
fn the_cause_of_a_poll_is_a_wake_of_its_task() {
    let viewer = Viewer::start(&stored("server"));
    let begin: u64 = viewer.ask("state", "{}")["begin_ns"].as_str().unwrap().parse().unwrap();
    let arguments = ["list", "-e", "user_thread:wake", "--format", "json"];
    let printed = harness::of(&stored("server"), &arguments).succeeds().text();
    let wakes: HashSet<(u64, u64)> = printed
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            let thread = event.pointer("/fields/thread").or(event.pointer("/payload/thread"));
            let thread = thread.or(event.get("thread")).unwrap_or_else(|| panic!("{line}"));
            (thread.as_u64().unwrap(), event["ns"].as_u64().unwrap() - begin)
        })
        .collect();
    assert!(wakes.len() > 20, "{}", wakes.len());
    let mut caused = 0;
    for row in rows(&viewer, "task") {
        let number: u64 = row["number"].as_str().unwrap().parse().unwrap();
        for (from, _) in states(&viewer, &row, &[1, 2, 4]) {
            let asked = object!({ "row": row["id"], "time": from, "step": 0 });
            let found = viewer.ask("at", &asked.to_string());
            let cause = &found["cause"];
            if cause.is_null() {
                continue;
            }
            let at = cause["at"].as_u64().unwrap();
            assert!(at <= from, "{found}");
            assert!(wakes.contains(&(number, at)), "task {number}: {found}");
            caused += 1;
        }
    }
    assert!(caused > 20, "{caused}");
}

#[test]
fn a_lock_is_released_by_its_last_owner() {
    let viewer = Viewer::start(&stored("clerks"));
    let locks = rows(&viewer, "locks");
    let mut holds = Vec::new();
    for row in &locks {
        let asked =
            object!({ "from": 0, "to": u64::MAX >> 12, "rows": [row["id"]], "classes": [12], "most": 1000 });
        let found = viewer.ask("longest", &asked.to_string());
        for span in found["spans"].as_array().unwrap() {
            let about = found["states"][span[1].to_string()]["about"].clone();
            holds.push((about, row["parent"].clone(), span[2].as_u64().unwrap(), span[3].as_u64().unwrap()));
        }
    }
    let mut released = 0;
    for row in &locks {
        for (from, to) in states(&viewer, row, &[11]) {
            let asked = object!({ "row": row["id"], "time": from, "step": 0 });
            let found = viewer.ask("at", &asked.to_string());
            let about = &found["state"]["about"];
            let of_it = || holds.iter().filter(|(of, ..)| of == about);
            let is_acquired = of_it().any(|(_, by, begin, _)| *by == row["parent"] && *begin == to);
            let others = of_it().filter(|(_, by, _, end)| *by != row["parent"] && *end > from && *end <= to);
            let last = others.map(|(_, by, _, end)| (*end, by.as_u64().unwrap())).max();
            match last.filter(|_| is_acquired) {
                None => assert!(found["released"].is_null(), "{found}"),
                Some((at, by)) => {
                    assert_eq!(
                        (&found["released"]["at"], &found["released"]["row"]),
                        (&at.into(), &by.into())
                    );
                    released += 1;
                }
            }
        }
    }
    assert!(released > 10, "{released}");
}

#[test]
fn arrows_lead_from_what_caused_it() {
    if !installed(&["chromium"]) {
        return;
    }
    let find = "(async (kind, classes, what) => {
        const ask = async (path, asked) => (await fetch(`/api/${path}`, { method: 'POST', body: JSON.stringify(asked) })).json();
        for (const row of (await ask('tracks', {})).rows.filter((row) => row.kind === kind)) {
            const found = await ask('longest', { from: 0, to: tracewing.view.length, rows: [row.id], classes, most: 50 });
            for (const [, , from] of found.spans) {
                const at = await ask('at', { row: row.id, time: from, step: 0 });
                if (at[what]?.row != null && at.from === from) return [row.id, from, at.to, at[what].row, at[what].at];
            }
        }
    })";
    for (name, kind, classes, what, word) in [
        ("server", "task", "[1, 2, 4]", "cause", "wakes"),
        ("clerks", "locks", "[11]", "released", "releases"),
    ] {
        let viewer = Viewer::start(&stored(name));
        let mut browser = Browser::start(1280, 720);
        browser.open(&viewer.address());
        let state = browser.value(&format!("{find}('{kind}', {classes}, '{what}')"));
        assert!(state[4].is_u64(), "{name}: {state}");
        // Pinned, both tracks are seen.
        browser.value(&format!(
            "(() => {{ history.replaceState(null, '', '#v=1&pin={}.{}'); tracewing.view.restore(); }})()",
            state[3], state[0]
        ));
        browser.settle();
        browser.value(&format!("tracewing.select({}, {})", state[0], state[1]));
        let expected = object!([[word, state[3], state[0], state[4]]]);
        browser.wait(&format!(
            "JSON.stringify(tracewing.arrows().filter(([one]) => one === '{word}')) === '{expected}'"
        ));
        let by = browser.value(&format!("document.querySelector('#details dd[data-{what}]').dataset.{what}"));
        assert_eq!(by, state[3].to_string());
        // The panel leads there.
        browser.value(&format!("document.querySelector('#details dd[data-{what}] .link').click()"));
        browser.wait(&format!("tracewing.view.state?.row === {}", state[3]));
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }
}
