//! Events by name: those of an area, and those of chosen names, which are marked in the tracks.

use crate::analyses::result;
use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use crate::harness::json;
use serde_json::{Value, json as object};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracewing_testing::installed;

/// How many events of each name `tracewing stats` counts.
fn counted(name: &str, more: &[&str]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in json(&stored(name), &[&["stats"], more].concat())["events"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap().to_owned();
        *counts.entry(name).or_insert(0) += row["events"].as_u64().unwrap();
    }
    counts
}

fn length(viewer: &Viewer) -> u64 {
    viewer.ask("state", "{}")["length"].as_u64().unwrap()
}

/// A row of a kind: the one that was used the longest.
fn busiest(viewer: &Viewer, kind: &str) -> Value {
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == kind);
    rows.max_by_key(|row| row["used"].as_u64()).unwrap().clone()
}

#[test]
fn an_area_has_the_events_that_stats_counts() {
    let mut compared = 0;
    for name in ["server", "pipeline"] {
        let viewer = Viewer::start(&stored(name));
        let length = length(&viewer);
        let (thread, cpu) = (busiest(&viewer, "thread"), busiest(&viewer, "cpu"));
        let number = |row: &Value| row["number"].as_str().unwrap().to_owned();
        let (tid, cpu_number) = (number(&thread), number(&cpu));
        for (from, to, row, more) in [
            (0, length, None, None),
            (length / 3, length / 2, None, None),
            (length / 4, length / 2, Some(&thread), Some(["--tid", &tid])),
            (length / 4, length / 2, Some(&cpu), Some(["--cpu", &cpu_number])),
        ] {
            let [since, until] = [from, to].map(|time| format!("+{time}ns"));
            let mut arguments = vec!["--from", &since, "--to", &until];
            arguments.extend(more.into_iter().flatten());
            let theirs = counted(name, &arguments);
            let mut asked = object!({ "from": from, "to": to });
            if let Some(row) = row {
                asked["rows"] = object!([row["id"]]);
            }
            let answer = result(&viewer, "classes", &asked).unwrap();
            let lines = answer["names"].as_array().unwrap();
            let line =
                |line: &Value| (line["name"].as_str().unwrap().to_owned(), line["count"].as_u64().unwrap());
            assert_eq!(lines.iter().map(line).collect::<BTreeMap<_, _>>(), theirs, "{name} {arguments:?}");
            assert!(lines.is_sorted_by(|one, other| one["count"].as_u64() >= other["count"].as_u64()));
            compared += theirs.len();
            // A number leads to the first of its events.
            let Some((of, count)) = theirs.iter().max_by_key(|(_, count)| **count) else { continue };
            asked["name"] = of.as_str().into();
            let listed = result(&viewer, "classes", &asked).unwrap();
            assert_eq!(listed["names"], object!([{ "name": of, "count": count }]));
            let times: Vec<u64> = listed["events"]
                .as_array()
                .unwrap()
                .iter()
                .map(|event| event["at"].as_u64().unwrap())
                .collect();
            assert_eq!(times.len() as u64, (*count).min(300));
            assert!(times.is_sorted() && times.iter().all(|at| (from..=to).contains(at)), "{of}");
        }
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn chosen_names_are_marked_where_their_events_are() {
    let viewer = Viewer::start(&stored("server"));
    let length = length(&viewer);
    let all = counted("server", &[]);
    let names = viewer.ask("names", "{}")["names"].clone();
    assert!(all.keys().all(|name| names.as_array().unwrap().iter().any(|known| known == name.as_str())));
    let mut chosen: Vec<&String> = all.keys().collect();
    chosen.sort_by_key(|name| std::cmp::Reverse(all[*name]));
    chosen.truncate(3);
    chosen.insert(1, all.keys().find(|name| name.contains(':')).unwrap());
    let marks = viewer.ask("mark", &object!({ "names": chosen }).to_string())["marks"].clone();
    let tracks = viewer.ask("tracks", "{}");
    let threads = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "thread");
    let rows: Vec<&Value> = threads.map(|row| &row["id"]).take(200).collect();
    let ask = |from: u64, to: u64, count: u64, rows: &[&Value]| {
        let asked = object!({ "marks": marks, "from": from, "to": to, "count": count, "rows": rows });
        viewer.ask("marked", &asked.to_string())
    };
    tracewing_testing::wait_until("all are found", || ask(0, length, 1, &[])["is_done"] == true);
    let whole = ask(0, length, 1, &[]);
    assert_eq!(whole["failure"], Value::Null);
    for (name, found) in chosen.iter().zip(whole["names"].as_array().unwrap()) {
        assert_eq!(
            *found,
            object!({ "count": all[*name], "marked": all[*name], "within": all[*name] }),
            "{name}"
        );
    }
    // Each window has what `stats` counts in it, and each row of a thread what is the thread's.
    let (from, to) = (length / 3, length / 3 + 2_000_000);
    let [since, until] = [from, to - 1].map(|time| format!("+{time}ns"));
    let within = counted("server", &["--from", &since, "--to", &until]);
    let part = ask(from, to, 100, &rows);
    let mut compared = 0;
    for (at, name) in chosen.iter().enumerate() {
        assert_eq!(part["names"][at]["within"], within.get(*name).copied().unwrap_or(0), "{name}");
    }
    for row in tracks["rows"].as_array().unwrap().iter().filter(|row| rows.contains(&&row["id"])) {
        let Some(runs) = part["rows"].get(row["id"].to_string()) else { continue };
        for run in runs.as_array().unwrap() {
            let name = chosen[run[0].as_u64().unwrap() as usize];
            let tid = row["number"].as_str().unwrap();
            let own = counted("server", &["-e", name, "--tid", tid, "--from", &since, "--to", &until]);
            assert!(own[name.as_str()] > 0, "{name} of {tid}");
            compared += 1;
        }
    }
    assert!(compared > 2, "{part}");
    // What makes no sense is refused, and what is ended is gone.
    let cookie = format!("Cookie: {}", viewer.cookie());
    for wrong in [
        object!({ "names": [] }),
        object!({ "names": ["a", "b", "c", "d", "e", "f", "g"] }),
        object!({ "names": ["x".repeat(300)] }),
    ] {
        assert_eq!(viewer.post("mark", &[&cookie], &wrong.to_string()).0, 400, "{wrong}");
    }
    viewer.ask("unmark", &object!({ "marks": marks }).to_string());
    let asked = object!({ "marks": marks, "from": 0, "to": 9, "count": 1, "rows": [] });
    assert_eq!(viewer.post("marked", &[&cookie], &asked.to_string()).0, 410);
}

/// Cuts the largest file of a recording in half.
fn cut(folder: &Path) {
    let mut folders = vec![folder.to_owned()];
    let mut largest = (0, PathBuf::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.metadata().unwrap() {
                of if of.is_dir() => folders.push(entry.path()),
                of => largest = largest.max((of.len(), entry.path())),
            }
        }
    }
    fs::File::options().write(true).open(&largest.1).unwrap().set_len(largest.0 / 2).unwrap();
}

#[test]
fn of_a_recording_that_is_cut_off_the_events_before_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t");
    assert!(Command::new("cp").arg("-r").arg(stored("server")).arg(&trace).status().unwrap().success());
    cut(&trace);
    let viewer = Viewer::start(&trace);
    let length = length(&viewer);
    let row = busiest(&viewer, "thread")["id"].clone();
    for asked in [object!({ "from": 0, "to": length }), object!({ "from": 0, "to": length, "rows": [row] })] {
        let answer = result(&viewer, "classes", &asked).unwrap();
        assert!(answer["names"][0]["count"].as_u64() > Some(0), "{answer}");
        assert!(answer["failure"].is_string(), "{answer}");
    }
}

#[test]
fn names_are_chosen_in_the_table_and_in_the_bar() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let all = counted("server", &[]);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    browser.key("m");
    browser.wait("document.querySelectorAll('#details tbody tr').length > 0");
    browser.value("document.querySelector('#details [data-tab=events]').click()");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    let first = "[...document.querySelector('#details .figures tbody tr').querySelectorAll('.link')]";
    let name = browser.value(&format!("{first}[0].textContent")).as_str().unwrap().to_owned();
    let most = all.iter().max_by_key(|(_, count)| **count).unwrap();
    assert_eq!(all[&name], *most.1);
    assert_eq!(
        browser.value("Number(document.querySelector('#details .figures td[data-ns]').dataset.ns)"),
        all[&name]
    );

    // Marked from the table: counted below the picture, and drawn in the tracks.
    browser.value(&format!("{first}.at(-1).click()"));
    browser.wait("tracewing.marks().isDone");
    browser.wait(&format!(
        "document.querySelector('#counted output').textContent === '{0} of {0}'",
        grouped(all[&name])
    ));
    assert_eq!(browser.value(&format!("{first}.at(-1).textContent")), "do not mark");
    let cpu = "tracewing.shown().find(({ kind }) => kind === 'cpu').id";
    browser.wait(&format!("tracewing.marks().runs({cpu}).length > 0"));
    let colour = "(() => {
        const sample = getComputedStyle(document.querySelector('#counted i')).backgroundColor.match(/\\d+/g).map(Number);
        const at = tracewing.shown().findIndex(({ kind }) => kind === 'cpu');
        const box = document.querySelector(`#track-${at}`).getBoundingClientRect(), canvas = document.querySelector('#overlay');
        const top = box.top - canvas.getBoundingClientRect().top;
        const { data } = canvas.getContext('2d').getImageData(0, top * devicePixelRatio, canvas.width, 24 * devicePixelRatio);
        let same = 0;
        for (let at = 0; at < data.length; at += 4) same += sample.every((value, of) => value === data[at + of]);
        return same;
    })()";
    browser.settle();
    assert!(browser.value(colour).as_u64().unwrap() > 20);
    assert!(browser.value("tracewing.svg()").as_str().unwrap().contains(&format!("data-name=\"{name}\"")));

    // Another one is typed; a name that there is not is refused.
    let second = all.keys().find(|other| other.contains(':') && **other != name).unwrap();
    browser.key("u");
    browser.wait("document.querySelectorAll('#names-of-events option').length > 3");
    browser.call("Input.insertText", object!({ "text": "no such event" }));
    browser.key("Enter");
    browser.wait("document.querySelector('#notice').textContent.includes('no such event')");
    browser.value("document.querySelector('#name-of-events').value = ''");
    browser.call("Input.insertText", object!({ "text": second }));
    browser.key("Enter");
    browser.wait(&format!("tracewing.marks().names.length === 2 && tracewing.marks().isDone && document.querySelectorAll('#counted output')[1].textContent.endsWith(' of {}')", grouped(all[second])));

    // Zoomed in, fewer are counted; the link has the names; without them, nothing is marked.
    browser.value("tracewing.view.set(tracewing.view.length * 0.4, tracewing.view.length * 0.45)");
    browser.wait(&format!(
        "document.querySelector('#counted output').textContent !== '{0} of {0}'",
        grouped(all[&name])
    ));
    browser.settle();
    let [from, to] = [0, 1].map(|at| {
        browser.value("[tracewing.marks().of.from, tracewing.marks().of.to - 1]")[at].as_u64().unwrap()
    });
    let [since, until] = [from, to].map(|time| format!("+{time}ns"));
    let within = counted("server", &["-e", &name, "--from", &since, "--to", &until]);
    let within = within.get(&name).copied().unwrap_or(0);
    browser.wait(&format!(
        "document.querySelector('#counted output').textContent === '{} of {}'",
        grouped(within),
        grouped(all[&name])
    ));
    let link = browser.value("tracewing.view.link()").as_str().unwrap().to_owned();
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    browser.wait("tracewing.marks().names.length === 2 && tracewing.marks().isDone");
    assert_eq!(browser.value("tracewing.marks().names"), object!([name, second]));
    browser.value("document.querySelector('#no-counts').click()");
    assert_eq!(
        browser.value("[tracewing.marks().names.length, document.querySelector('#counts').hidden]"),
        object!([0, true])
    );

    // A number in the table leads to its events.
    browser.key("m");
    browser.wait("document.querySelectorAll('#details tbody tr').length > 0");
    browser.value("document.querySelector('#details [data-tab=events]').click()");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    browser.value(&format!("{first}[1].click()"));
    browser.wait("document.querySelector('#details table')?.ariaLabel.startsWith('Events ')");
    browser.value(&format!("{first}[0].click()"));
    browser.wait("document.querySelectorAll('#details .listing .within + .fields dt').length > 3");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A number with separators, as the page writes it.
fn grouped(number: u64) -> String {
    let text = number.to_string();
    let first = text.len() % 3;
    let groups =
        text.as_bytes()[first..].chunks(3).map(|group| std::str::from_utf8(group).unwrap().to_owned());
    let all: Vec<String> =
        [text[..first].to_owned()].into_iter().chain(groups).filter(|part| !part.is_empty()).collect();
    all.join(",")
}
