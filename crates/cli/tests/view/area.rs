//! What the tabs of an area say is what the analyses print for the same time and threads, and each number
//! leads to what it counts.

use crate::analyses::{printed, result};
use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};
use std::collections::{BTreeMap, BTreeSet};

/// Times of a table's line.
fn figures(row: &Value) -> Vec<u64> {
    ["count", "total_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"]
        .map(|name| row[name].as_u64().unwrap())
        .to_vec()
}

fn length(viewer: &Viewer) -> u64 {
    viewer.ask("state", "{}")["length"].as_u64().unwrap()
}

/// The rows of a kind.
fn rows_of(viewer: &Viewer, kind: &str) -> Vec<Value> {
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == kind);
    rows.map(|row| row["id"].clone()).collect()
}

/// The threads that the recording follows, those that ran the longest first.
fn threads(viewer: &Viewer) -> Vec<Value> {
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let is_own = |row: &&Value| row["kind"] == "thread" && row["is_followed"] == true;
    let mut own: Vec<Value> = rows.iter().filter(is_own).cloned().collect();
    own.sort_by_key(|row| std::cmp::Reverse(row["used"].as_u64()));
    own
}

#[test]
fn system_calls_take_what_latency_says() {
    let viewer = Viewer::start(&stored("pipeline"));
    let length = length(&viewer);
    let threads = threads(&viewer);
    let mut compared = 0;
    for (row, from, to) in [
        (None, 0, length),
        (None, length / 3, length / 2),
        (Some(&threads[0]), 0, length),
        (Some(&threads[1]), length / 4, length - length / 4),
    ] {
        let mut asked = object!({ "from": from, "to": to });
        let [since, until] = [from, to].map(|time| format!("+{time}ns"));
        let mut arguments = vec!["latency", "--begin", "syscall_entry_*", "--end", "syscall_exit_*"];
        arguments.extend(["--match", "$tid", "--by", "$event", "--from", &since, "--to", &until]);
        if let Some(row) = row {
            asked["rows"] = object!([row["id"]]);
            arguments.extend(["--tid", row["number"].as_str().unwrap()]);
        }
        let found = result(&viewer, "calls", &asked).unwrap();
        let theirs = printed("pipeline", &arguments);
        let theirs: BTreeMap<String, Vec<u64>> = theirs["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let event = row["group"][0][1].as_str().unwrap();
                (event.strip_prefix("syscall_exit_").unwrap().to_owned(), figures(row))
            })
            .collect();
        let ours: BTreeMap<String, Vec<u64>> = found["calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["name"].as_str().unwrap().to_owned(), figures(row)))
            .collect();
        assert_eq!(ours, theirs, "{arguments:?}");
        compared += ours.len();
        // The longest ones of a name are as long as it says.
        if let Some((name, figures)) = ours.iter().max_by_key(|(_, figures)| figures[0]) {
            asked["name"] = name.as_str().into();
            let calls = result(&viewer, "calls", &asked).unwrap();
            let longest = calls["longest"].as_array().unwrap();
            let took = |call: &Value| call["to"].as_u64().unwrap() - call["from"].as_u64().unwrap();
            assert_eq!(took(&longest[0]), *figures.last().unwrap(), "{name}");
            assert_eq!(longest.len() as u64, figures[0].min(300), "{name}");
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn functions_take_what_functions_says() {
    let viewer = Viewer::start(&stored("clerks"));
    let length = length(&viewer);
    let whole = object!({ "from": 0, "to": length + 1, "what": "functions" });
    let found = result(&viewer, "durations", &whole).unwrap();
    let theirs = printed("clerks", &["functions"]);
    let mut compared = 0;
    for row in theirs["functions"].as_array().unwrap() {
        let name = &row["function"];
        let ours = found["names"].as_array().unwrap().iter().find(|line| line["name"] == *name);
        // Calls that had not returned at the end are not drawn.
        let Some(ours) = ours.filter(|ours| ours["count"] == row["calls"]) else { continue };
        assert_eq!(ours["min_ns"], row["total_min_ns"], "{row}");
        assert_eq!(ours["max_ns"], row["total_max_ns"], "{row}");
        compared += 1;
    }
    assert!(compared > 0, "{compared} {theirs} {found}");
    let graph = result(&viewer, "graph", &object!({ "from": 0, "to": length + 1 })).unwrap();
    let nodes = graph["nodes"].as_array().unwrap();
    let tree = printed("clerks", &["functions", "--graph"]);
    let number = |node: &Value, name: &str| node[name].as_u64().unwrap();
    let roots: u64 = nodes.iter().filter(|node| node["depth"] == 0).map(|node| number(node, "samples")).sum();
    assert_eq!(number(&graph, "samples"), roots);
    let lines = tree.as_object().unwrap().values().find_map(Value::as_array).unwrap();
    let theirs: Vec<u64> = lines.iter().map(|line| line["total_ns"].as_u64().unwrap()).collect();
    let mut ours: Vec<u64> = nodes.iter().map(|node| number(node, "samples")).collect();
    let mut theirs_sorted = theirs;
    ours.sort_unstable();
    theirs_sorted.sort_unstable();
    assert_eq!(ours, theirs_sorted);
}

#[test]
fn waits_locks_and_spans_are_the_states_that_lie_within() {
    let mut compared = 0;
    for (name, what, is_whole) in [
        ("server", "waits", false),
        ("server", "waits", true),
        ("server", "locks", false),
        ("clerks", "locks", false),
        ("clerks", "functions", false),
        ("pipeline", "waits", false),
    ] {
        let viewer = Viewer::start(&stored(name));
        let length = length(&viewer);
        let (from, to) = if is_whole { (0, length + 1) } else { (length / 5, length - length / 5) };
        // Of waits during which the recording begins or ends, the length is unknown.
        let is_cut = |begin, end| what == "waits" && (begin == 0 || end == length);
        let tracks = viewer.ask("tracks", "{}");
        let is_own =
            |row: &&Value| row["kind"] == "task" || row["kind"] == "thread" && row["is_followed"] == true;
        let own: Vec<Value> =
            tracks["rows"].as_array().unwrap().iter().filter(is_own).map(|row| row["id"].clone()).collect();
        let asked = object!({ "from": from, "to": to, "rows": own, "what": what });
        let found = result(&viewer, "durations", &asked).unwrap();
        let sums = viewer.ask("statistics", &object!({ "from": 0, "to": length + 1 }).to_string());
        for line in found["names"].as_array().unwrap().iter().take(12) {
            // A slow model: all states of all rows, one by one.
            let mut model = Vec::new();
            let is_of = |state: &Value| {
                let name = if state["about"] == "" { &state["name"] } else { &state["about"] };
                state["class"] == line["class"] && *name == line["name"]
            };
            let states = sums["states"].as_object().unwrap().iter().filter(|(_, state)| is_of(state));
            let states: Vec<u32> = states.map(|(state, _)| state.parse().unwrap()).collect();
            for row in tracks["rows"].as_array().unwrap() {
                let is_in = match what {
                    "waits" => own.contains(&row["id"]),
                    what => row["kind"] == what && own.contains(&row["parent"]),
                };
                if !is_in {
                    continue;
                }
                for state in &states {
                    let asked = object!({ "from": 0, "to": length + 1, "rows": [row["id"]],
                        "classes": [line["class"]], "state": state, "most": 1000 });
                    let spans = viewer.ask("longest", &asked.to_string());
                    assert!(spans["count"].as_u64() <= Some(1000), "{spans}");
                    for span in spans["spans"].as_array().unwrap() {
                        let [begin, end] = [2, 3].map(|at| span[at].as_u64().unwrap());
                        if begin >= from && end <= to && !is_cut(begin, end) {
                            model.push((end - begin, row["id"].as_u64().unwrap(), begin));
                        }
                    }
                }
            }
            model.sort_by_key(|(length, row, begin)| (std::cmp::Reverse(*length), *begin, *row));
            let quantile = |thousandths: usize| {
                let rank = (model.len() * thousandths).div_ceil(1000).max(1);
                model[model.len() - rank].0
            };
            assert_eq!(line["count"].as_u64(), Some(model.len() as u64), "{name} {line}");
            assert_eq!(line["total_ns"].as_u64(), Some(model.iter().map(|(length, ..)| length).sum()));
            for (column, thousandths) in [("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990), ("max_ns", 1000)]
            {
                assert_eq!(line[column].as_u64(), Some(quantile(thousandths)), "{name} {column} {line}");
            }
            let key = object!({ "class": line["class"], "name": line["name"] });
            let asked = object!({ "from": from, "to": to, "rows": own, "what": what, "longest": key });
            let longest = result(&viewer, "durations", &asked).unwrap();
            let longest = longest["longest"].as_array().unwrap();
            assert_eq!(longest.len(), model.len().min(300));
            for (span, (length, row, begin)) in longest.iter().zip(&model) {
                assert_eq!(*span, object!([row, begin, begin + length]), "{name} {line}");
            }
            compared += 1;
        }
    }
    assert!(compared > 12, "{compared}");
}

#[test]
fn tasks_did_what_tasks_says() {
    let mut compared = 0;
    for name in ["server", "clerks", "pipeline"] {
        let viewer = Viewer::start(&stored(name));
        let length = length(&viewer);
        for (from, to) in [(0, length), (length / 3, length / 2)] {
            let [since, until] = [from, to].map(|time| format!("+{time}ns"));
            let found = result(&viewer, "tasks", &object!({ "from": from, "to": to })).unwrap();
            let theirs = printed(name, &["tasks", "--from", &since, "--to", &until]);
            let theirs = theirs["tasks"].as_array().unwrap();
            let ours = found["tasks"].as_array().unwrap();
            assert_eq!(ours.len(), theirs.len(), "{name}");
            for line in ours {
                let is_it = |row: &&Value| {
                    row["task"].as_u64() == line["task"].as_str().unwrap().parse().ok()
                        && row["process"].as_u64() == line["process"].as_str().unwrap().parse().ok()
                };
                let row = theirs.iter().find(is_it).unwrap_or_else(|| panic!("{line}"));
                for column in
                    ["polls", "busy_ns", "scheduled_ns", "idle_ns", "longest_poll_ns", "avg_delay_ns"]
                        .into_iter()
                        .chain(["max_delay_ns", "slept_ns", "long_polls", "blocking_polls"])
                {
                    assert_eq!(line[column], row[column], "{name} {column} {line} {row}");
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 10, "{compared}");
}

#[test]
fn locks_are_taken_where_locks_says() {
    let viewer = Viewer::start(&stored("server"));
    let length = length(&viewer);
    let mut compared = 0;
    for (from, to) in [(0, length), (length / 3, length / 2)] {
        let [since, until] = [from, to].map(|time| format!("+{time}ns"));
        let theirs = printed("server", &["locks", "--from", &since, "--to", &until]);
        let mut expected: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in theirs["locks"].as_array().unwrap() {
            let [lock, at] = ["lock", "at"].map(|name| row[name].as_str().unwrap());
            if !at.is_empty() {
                expected.entry(lock).or_default().push(at);
            }
        }
        let found = |locks: &[&str]| {
            result(&viewer, "held", &object!({ "from": from, "to": to, "locks": locks })).unwrap()
        };
        let all: Vec<&str> = expected.keys().copied().collect();
        assert_eq!(found(&all), object!(expected), "{from} {to}");
        assert_eq!(found(&all[..1]), object!({ all[0]: expected[all[0]] }), "{from} {to}");
        compared += expected.len();
    }
    assert!(compared > 2, "{compared}");
}

#[test]
fn locks_of_a_place_are_added_up() {
    for name in ["server", "clerks"] {
        let viewer = Viewer::start(&stored(name));
        let (from, to) = (0, length(&viewer));
        let mut asked = object!({ "from": from, "to": to, "what": "locks" });
        let alone = result(&viewer, "durations", &asked).unwrap();
        asked["by_place"] = true.into();
        let together = result(&viewer, "durations", &asked).unwrap();
        let of_lock = printed(name, &["locks"]);
        let of_place = printed(name, &["locks", "--by", "caller"]);
        let mut expected: BTreeMap<(String, u64), (u64, u64, u64)> = BTreeMap::new();
        for line in alone["names"].as_array().unwrap() {
            let (kind, lock) = line["name"].as_str().unwrap().rsplit_once(' ').unwrap();
            let row = of_lock["locks"].as_array().unwrap().iter().find(|row| row["lock"] == lock).unwrap();
            // Without lines of the source, all of its mutexes were taken at one place.
            let at = match (row["at"].as_str().unwrap(), kind) {
                ("", "mutex") => {
                    let is_it = |row: &&Value| {
                        row["kind"] == "mutex" && row["hold_ns"] == of_lock["locks"][1]["hold_ns"]
                    };
                    let place = of_place["locks"].as_array().unwrap().iter().find(is_it).unwrap();
                    place["at"].as_str().unwrap()
                }
                (at, _) => at,
            };
            let named = if at.is_empty() { kind.to_owned() } else { format!("{at} ({kind})") };
            let [count, total, max] = ["count", "total_ns", "max_ns"].map(|key| line[key].as_u64().unwrap());
            let sums = expected.entry((named, line["class"].as_u64().unwrap())).or_default();
            *sums = (sums.0 + count, sums.1 + total, sums.2.max(max));
        }
        let found = together["names"].as_array().unwrap().iter().map(|line| {
            let numbers = ["count", "total_ns", "max_ns"].map(|key| line[key].as_u64().unwrap());
            ((line["name"].as_str().unwrap().to_owned(), line["class"].as_u64().unwrap()), numbers.into())
        });
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "{name}");
        // Whatever is marked, these are the places of all of them.
        for (kind, is_all) in [("process", true), ("thread", false), ("task", false)] {
            asked["rows"] = rows_of(&viewer, kind).into();
            let marked = result(&viewer, "durations", &asked).unwrap()["names"].take();
            let names = |lines: &Value| -> BTreeSet<String> {
                lines
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|line| line["name"].as_str().unwrap().to_owned())
                    .collect()
            };
            let all = names(&together["names"]);
            assert!(names(&marked).is_subset(&all), "{name} {kind}: {marked}");
            assert!(!is_all || marked == together["names"], "{name}: {marked}");
        }
        assert!(expected.len() > 3 && expected.len() < alone["names"].as_array().unwrap().len(), "{name}");
    }
}

#[test]
fn nonsense_is_refused() {
    let viewer = Viewer::start(&stored("server"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    let status = |path: &str, asked: Value| viewer.post(path, &[&cookie], &asked.to_string()).0;
    for path in ["calls", "tasks", "graph", "durations", "held"] {
        let (nowhere, backwards) =
            (object!({ "from": 0, "to": 9, "rows": [4_000_000_000_u32] }), object!({ "from": 9, "to": 1 }));
        for mut asked in [nowhere, backwards, object!({ "from": 0 })] {
            match path {
                "durations" => asked["what"] = "waits".into(),
                "held" => asked["locks"] = object!(["0x1"]),
                _ => {}
            }
            assert_eq!(status(path, asked.clone()), 400, "{path} {asked}");
        }
        // Others get nothing.
        assert_eq!(viewer.post(path, &[], "{\"from\":0,\"to\":9}").0, 401);
    }
    for name in ["re*d", "read where true", "../x", &"x".repeat(65)] {
        assert_eq!(status("calls", object!({ "from": 0, "to": 9, "name": name })), 400, "{name}");
    }
    assert_eq!(status("durations", object!({ "from": 0, "to": 9, "what": "all" })), 400);
    assert_eq!(status("durations", object!({ "from": 0, "to": 9, "what": "waits", "by_place": true })), 400);
    let many: Vec<String> = (0..1001).map(|lock| format!("{lock:#x}")).collect();
    assert_eq!(status("held", object!({ "from": 0, "to": 9, "locks": many })), 400);
}

#[test]
fn tabs_of_an_area_are_sorted_saved_and_lead_to_events() {
    let Some((viewer, mut browser)) = opened("pipeline") else { return };
    // The page may not read what it saves.
    browser.value("(() => { const real = URL.createObjectURL; URL.createObjectURL = (file) => real(window.saved = file); })()");
    browser.key("m");
    browser.wait("document.querySelectorAll('#details .tabs button').length > 5");
    let tab = |browser: &mut Browser, kind: &str| {
        browser.value(&format!("document.querySelector('#details .tabs [data-tab={kind}]').click()"));
    };
    tab(&mut browser, "functions");
    browser.wait("document.querySelector('#details p')?.textContent.includes('Record with --functions')");
    let shown = "document.querySelectorAll('#details .figures tbody tr').length > 2";
    for kind in ["waits", "calls"] {
        tab(&mut browser, kind);
        browser.wait(&format!(
            "document.querySelector('#details [aria-current]')?.dataset.tab === '{kind}' && {shown}"
        ));
        // At first, what took the longest in total is at the top.
        let totals = browser.value(
            "(() => {
                const heads = [...document.querySelectorAll('#details .figures thead th')];
                const at = heads.findIndex((head) => head.textContent === 'total');
                const lines = [...document.querySelectorAll('#details .figures tbody tr')];
                return [heads[at].getAttribute('aria-sort'), lines.map((line) => Number(line.children[at].dataset.ns))];
            })()",
        );
        assert_eq!(totals[0], "descending", "{kind}");
        let totals: Vec<u64> = totals[1].as_array().unwrap().iter().map(|ns| ns.as_u64().unwrap()).collect();
        assert!(totals.is_sorted_by(|one, other| one >= other), "{kind} {totals:?}");
    }
    // What is shown is what the server says, in the order of the column that was clicked.
    let length = length(&viewer);
    let found = result(&viewer, "calls", &object!({ "from": 0, "to": length })).unwrap();
    let column = |at: u32| {
        format!(
            "[...document.querySelectorAll('#details .figures tbody tr')].map((line) => Number(line.children[{at}].dataset.ns))"
        )
    };
    for (at, name) in [(1, "count"), (7, "p99_ns")] {
        browser.value(&format!("document.querySelectorAll('#details .figures thead button')[{at}].click()"));
        let mut expected: Vec<u64> =
            found["calls"].as_array().unwrap().iter().map(|call| call[name].as_u64().unwrap()).collect();
        expected.sort_unstable_by_key(|value| std::cmp::Reverse(*value));
        assert_eq!(browser.value(&column(at)), object!(expected), "{name}");
        assert_eq!(browser.value("document.querySelectorAll('#details [aria-sort=descending]').length"), 1);
    }
    let folder = tempfile::tempdir().unwrap();
    let allowed = object!({ "behavior": "allow", "downloadPath": folder.path() });
    browser.call("Browser.setDownloadBehavior", allowed);
    let save = |browser: &mut Browser| {
        browser.value("document.querySelector('#details h2 a').click()");
        browser.value("window.saved.text()")
    };
    let csv = save(&mut browser);
    let csv = csv.as_str().unwrap();
    assert!(csv.starts_with("\"system call\",\"count\",\"total ns\",\"mean ns\""), "{csv}");
    assert_eq!(csv.lines().count(), found["calls"].as_array().unwrap().len() + 1);
    // A number leads to the longest ones, these to the events; Back, and a link, to the tab.
    browser.value("document.querySelector('#details .figures tbody td .link').click()");
    browser.wait("document.querySelector('#details h2').textContent.startsWith('Longest ')");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 0");
    browser.value("document.querySelector('#details .figures tbody .link').click()");
    browser.wait("document.querySelectorAll('#details .listing tr.within').length > 0");
    browser.value("document.querySelector('#back').click()");
    browser.wait(&format!(
        "document.querySelector('#details [aria-current]')?.dataset.tab === 'calls' && {shown}"
    ));
    let link = browser.value("tracewing.view.link()").as_str().unwrap().to_owned();
    assert!(link.contains("show=calls"), "{link}");
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    browser.wait(&format!(
        "document.querySelector('#details [aria-current]')?.dataset.tab === 'calls' && {shown}"
    ));
    // Names stay text.
    browser.value(
        "(() => {
            const real = window.fetch;
            const took = { count: 1, min_ns: 1, avg_ns: 1, p50_ns: 1, p90_ns: 1, p99_ns: 1, p999_ns: 1, max_ns: 1, total_ns: 1, class: 7 };
            const answer = { names: [{ ...took, name: '=<img src=x id=own>' }], left_out: 0, longest: [] };
            const mocked = { '/api/durations': { job: 1 }, '/api/job': { done: 0, total: 0, failure: null, result: answer } };
            window.fetch = (path, options) => path in mocked ? Promise.resolve(new Response(JSON.stringify(mocked[path]))) : real(path, options);
        })()",
    );
    tab(&mut browser, "waits");
    browser
        .wait("document.querySelector('#details .figures tbody th')?.textContent === '=<img src=x id=own>'");
    // A spreadsheet does not run it as a formula.
    browser.value("(() => { const real = URL.createObjectURL; URL.createObjectURL = (file) => real(window.saved = file); })()");
    let csv = save(&mut browser);
    assert!(csv.as_str().unwrap().contains("\n\"'=<img src=x id=own>\","), "{csv}");
    browser.value("document.querySelector('#details .figures tbody .link').click()");
    browser.wait("document.querySelector('#details h2').textContent.includes('<img src=x id=own>')");
    assert_eq!(browser.value("document.querySelector('#own')"), Value::Null);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_flame_graph_is_walked_by_keys() {
    let Some((_viewer, mut browser)) = opened("pipeline") else { return };
    browser.key("m");
    browser.wait("!!document.querySelector('#details .tabs')");
    browser.value("document.querySelector('#details .tabs [data-tab=samples]').click()");
    browser.wait("document.querySelectorAll('#details .flame button').length > 3");
    let focused = |browser: &mut Browser| {
        let about = "[document.activeElement.getAttribute('aria-label'), Number(document.activeElement.getAttribute('aria-level'))]";
        browser.value(about)
    };
    // One box is reached by Tab, the others by the arrow keys.
    assert_eq!(browser.value("document.querySelectorAll('#details .flame [tabindex=\"0\"]').length"), 1);
    browser.value("document.querySelector('#details .flame [tabindex=\"0\"]').focus()");
    let all = focused(&mut browser);
    assert!(all[0].as_str().unwrap().starts_with("all: ") && all[1] == 1, "{all}");
    browser.key("ArrowDown");
    let process = focused(&mut browser);
    assert_eq!(process[1], 2, "{process}");
    browser.key("ArrowDown");
    let function = focused(&mut browser);
    let whole = browser.value("[tracewing.view.from, tracewing.view.to]");
    for key in ["ArrowRight", "ArrowLeft"] {
        browser.key(key);
    }
    assert_eq!(browser.value("[tracewing.view.from, tracewing.view.to]"), whole, "the picture does not move");
    browser.key("ArrowUp");
    assert_eq!(focused(&mut browser)[1], 2);
    browser.key("ArrowDown");
    // Enter enlarges it, and it keeps the focus.
    browser.value("document.activeElement.click()");
    let enlarged = focused(&mut browser);
    assert_eq!((enlarged[0].as_str(), enlarged[1].as_u64()), (function[0].as_str(), function[1].as_u64()));
    assert_eq!(browser.value("document.activeElement.style.width"), "100%");
    browser.key("Home");
    assert_eq!(focused(&mut browser), all);
    browser.key("Escape");
    assert_eq!(browser.value("document.activeElement.id"), "labels");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn numbers_of_locks_lead_to_their_states_and_events() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    browser.key("m");
    browser.wait("document.querySelectorAll('#details tbody tr').length > 0");
    browser.value("document.querySelector('#details [data-tab=locks]').click()");
    let lines = "[...document.querySelectorAll('#details .figures tbody tr')]";
    browser.wait(&format!("{lines}.length > 3"));
    let line =
        format!("{lines}.find((line) => /mutex/.test(line.textContent) && /holds/.test(line.textContent))");
    let lock = browser.value(&format!("{line}.querySelector('.link').textContent"));
    let lock = lock.as_str().unwrap().to_owned();
    // The address says little: where it is taken comes from the events, and leads to its states, too.
    let place = format!("{line}.querySelectorAll('.link')[1]");
    browser.wait(&format!("/^crates\\/tokio\\/examples\\/server.rs:\\d+$/.test({place}?.textContent)"));
    browser.value(&format!("{place}.click()"));
    browser.wait("document.querySelector('#details table')?.ariaLabel === 'The longest ones'");
    let longest = "Number(document.querySelector('#details tbody td[data-ns]').dataset.ns)";
    let longest = browser.value(longest).as_u64().unwrap();
    browser.value("document.querySelector('#details tbody .link').click()");
    browser.wait("tracewing.found() !== null");
    let found =
        browser.value("[tracewing.found().state.class, tracewing.found().to - tracewing.found().from]");
    assert_eq!(found, object!([12, longest]));
    let about = browser.value("[tracewing.found().state.name, tracewing.found().state.about].join(' ')");
    assert!(about.as_str().unwrap().contains(&lock), "{about} {lock}");
    // Its events are those of acquiring and releasing that lock.
    browser.wait("document.querySelectorAll('#details .listing .within').length > 1");
    let address = lock.rsplit(' ').next().unwrap().to_uppercase().replacen("0X", "0x", 1);
    let within =
        "[...document.querySelectorAll('#details .listing .within')].map((line) => line.textContent)";
    let within = browser.value(within);
    let of_lock = within.as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    let of_lock = of_lock.filter(|line| line.contains(&address)).count();
    assert!(of_lock >= 2, "{address} {within}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
