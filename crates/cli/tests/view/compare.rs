//! Two recordings are shown above each other on one time scale, and their numbers side by side.

use crate::cdp::{Browser, opened, opened_with};
use crate::client::{self, Viewer, stored};
use serde_json::{Value, json as object};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use tracewing_testing::{Printed, RunExt, installed};

/// The first of B's rows in the page.
const SECOND: u64 = 1 << 33;

pub fn of_two(a: &str, b: &str) -> Viewer {
    let other = stored(b);
    Viewer::with(&stored(a), tempfile::tempdir().unwrap(), 0, &[other.to_str().unwrap()])
}

#[test]
fn the_second_one_is_answered_like_the_first_and_is_as_safe() {
    let viewer = of_two("server", "clerks");
    let (first, second) = (Viewer::start(&stored("server")), Viewer::start(&stored("clerks")));
    for (path, alone) in [("", &first), ("other/", &second)] {
        for asked in ["tracks", "statistics"] {
            let body = if asked == "tracks" { "{}" } else { r#"{"from":0,"to":9000000000}"# };
            assert_eq!(viewer.ask(&format!("{path}{asked}"), body), alone.ask(asked, body), "{path}{asked}");
        }
        let mut state = viewer.ask(&format!("{path}state"), "{}");
        assert_eq!(state["is_compared"], true);
        state["is_compared"] = false.into();
        assert_eq!(state, alone.ask("state", "{}"));
    }
    // Nothing without the token, and no second one where there is none.
    assert_eq!(viewer.post("other/state", &[], "{}").0, 401);
    let cookie = format!("Cookie: {}", viewer.cookie());
    assert_eq!(viewer.post("other/state", &[&cookie, "Origin: http://127.0.0.1:1"], "{}").0, 403);
    for path in ["other/other/state", "other/", "other/enter"] {
        assert_eq!(viewer.post(path, &[&cookie], "{}").0, 404, "{path}");
    }
    let cookie = format!("Cookie: {}", first.cookie());
    assert_eq!(first.post("other/state", &[&cookie], "{}").0, 404);
    // Each has notes of its own.
    let note = object!({ "time": 7, "track": null, "text": "of the second" });
    viewer.ask("other/note", &object!({ "add": [note] }).to_string());
    assert_eq!(viewer.ask("notes", "{}")["notes"], object!([]));
    assert_eq!(viewer.ask("other/notes", "{}")["notes"], object!([note]));
}

#[test]
fn several_folders_are_one_recording_only_if_that_is_said() {
    let parts: Vec<PathBuf> = ["kernel", "user"].iter().map(|part| stored("clerks").join(part)).collect();
    let [kernel, user] = &parts[..] else { unreachable!() };
    let home = || tempfile::tempdir().unwrap();
    let together = Viewer::with(kernel, home(), 0, &[user.to_str().unwrap(), "--together"]);
    let whole = Viewer::start(&stored("clerks"));
    let state = together.ask("state", "{}");
    assert_eq!(state["is_compared"], false);
    assert_eq!(state["events"], whole.ask("state", "{}")["events"]);
    let run = |more: &[&str]| client::command(kernel, home().path(), more).ran();
    let user = user.to_str().unwrap();
    for (more, why) in [
        (&["--no-open", user, "--follow"][..], "--follow shows one recording"),
        (&["--no-open", user, user], "two recordings are compared"),
    ] {
        let out = run(more);
        assert!(!out.status.success() && out.notes().contains(why), "{more:?}");
    }
    // What it does with two is said.
    let home = home();
    let mut command = client::command(kernel, home.path(), &["--no-open", user]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let said = format!("comparing {} with {user}", kernel.display());
    // A line may be broken between words.
    let mut text = String::new();
    let is_said = lines.into_iter().any(|line| {
        text.extend([line.trim(), " "]);
        text.contains(&said)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_said, "{text}");
}

fn number(browser: &mut Browser, expression: &str) -> f64 {
    browser.value(expression).as_f64().unwrap_or_else(|| panic!("{expression}"))
}

/// The tracks of B that are drawn have the heights that the server's statistics of the same time have.
fn compare_heights(viewer: &Viewer, browser: &mut Browser) {
    let view = browser.value("[tracewing.view.from, tracewing.view.to, ...tracewing.compare().begins]");
    let [from, to, a, b] = [0, 1, 2, 3].map(|at| view[at].as_f64().unwrap());
    let leaf = "Object.fromEntries(tracewing.shown().filter(({ kind }) => kind === 'cpu' || kind === 'thread').map(({ id }) => [id, tracewing.drawn()[id]]).filter(([, heights]) => heights))";
    let drawn = browser.value(leaf);
    let mut compared = [0, 0];
    for (row, heights) in drawn.as_object().unwrap() {
        let row: u64 = row.parse().unwrap();
        let side = usize::from(row >= SECOND);
        let (path, begin) = [("statistics", a), ("other/statistics", b)][side];
        let [from, to] = [from, to].map(|time| (time - begin).round().max(0.0) as u64);
        let asked = object!({ "from": from, "to": to, "rows": [row % SECOND] });
        let sums = viewer.ask(path, &asked.to_string());
        let heights = heights.as_array().unwrap();
        let columns = heights.len() as f64 / 14.0;
        for class in 0..13 {
            let ns = sums["rows"][0]["classes"][class].as_f64().unwrap_or(0.0);
            let pixels: f64 = heights.iter().skip(class).step_by(14).map(|high| high.as_f64().unwrap()).sum();
            let whole = view[1].as_f64().unwrap() - view[0].as_f64().unwrap();
            let (share, expected) = (pixels / (18.0 * columns), ns / whole);
            assert!((share - expected).abs() <= 1.0 / 18.0, "{row} {class}: {share} {expected}");
            compared[side] += 1;
        }
    }
    assert!(compared.iter().all(|count| *count > 20), "{compared:?}");
}

/// Each pixel of a track of each is where the server has its states: a column shows a class only if that was
/// in it or next to it, and shows it whole only if nothing else was there.
fn compare_columns(viewer: &Viewer, browser: &mut Browser) {
    for (side, tracks, path) in [(0, "tracks", "spans"), (1, "other/tracks", "other/spans")] {
        // The track that changes the most of those that are seen.
        let all = viewer.ask(tracks, "{}");
        let seen = browser.value("tracewing.drawn()");
        let is_seen = |row: &&Value| {
            let id = row["id"].as_u64().unwrap() + side as u64 * SECOND;
            ["cpu", "thread"].iter().any(|kind| row["kind"] == **kind) && !seen[id.to_string()].is_null()
        };
        let changes = |row: &Value| {
            let asked = object!({ "from": 0, "to": 900_000_000, "rows": [row["id"]] });
            let spans = viewer.ask(path, &asked.to_string());
            let of = spans["rows"][row["id"].to_string()].as_array().cloned().unwrap_or_default();
            let class = |span: &Value| spans["states"][span[0].to_string()]["class"].as_u64();
            let count = of.windows(2).filter(|two| class(&two[0]) != class(&two[1])).count();
            (count, row["id"].as_u64().unwrap(), of)
        };
        let rows = all["rows"].as_array().unwrap().iter().filter(is_seen).map(changes);
        let (_, row, spans) = rows.max_by_key(|(count, ..)| *count).unwrap();
        let begin = browser.value("tracewing.compare().begins")[side].as_f64().unwrap();
        // So close that a wrong place would be seen, however little B is moved.
        let middle = spans[spans.len() / 2][1].as_f64().unwrap();
        browser.value(&format!("tracewing.view.set({begin} + {middle} - 2e6, {begin} + {middle} + 2e6)"));
        browser.settle();
        let view = browser.value("[tracewing.view.from, tracewing.view.to]");
        let [from, to] = [0, 1].map(|at| view[at].as_f64().unwrap() - begin);
        let drawn = browser.value("tracewing.drawn()");
        let asked = object!({ "from": from.max(0.0) as u64, "to": to as u64, "rows": [row] });
        let spans = viewer.ask(path, &asked.to_string());
        let heights = drawn[(row + side as u64 * SECOND).to_string()].as_array().unwrap();
        let columns = heights.len() / 14;
        let wide = (to - from) / columns as f64;
        let (mut seen, mut whole, mut mixed) = (0, 0, 0);
        for column in 0..columns {
            let middle = from + (column as f64 + 0.5) * wide;
            let (left, right) = (middle - 1.5 * wide, middle + 1.5 * wide);
            let is_near =
                |span: &&Value| span[1].as_f64().unwrap() < right && span[2].as_f64().unwrap() > left;
            let class =
                |span: &Value| spans["states"][span[0].to_string()]["class"].as_u64().unwrap() as usize;
            let near = spans["rows"][row.to_string()].as_array().unwrap().iter().filter(is_near);
            let near: Vec<usize> = near.map(class).collect();
            for class in 0..13 {
                let high = heights[column * 14 + class].as_u64().unwrap();
                assert!(high == 0 || near.contains(&class), "{side} {column} of {columns}: {class} {near:?}");
                let is_alone = !near.is_empty() && near.iter().all(|of| *of == class);
                whole += usize::from(is_alone && high == 18);
                seen += usize::from(high > 0);
            }
            mixed += usize::from(near.iter().any(|of| *of != near[0]));
        }
        assert!(seen > 20 && whole > 20 && mixed > 2, "{side}: {seen} {whole} {mixed}");
    }
}

#[test]
fn both_are_drawn_on_one_scale_and_the_second_one_is_moved() {
    let Some((viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    // A's tracks are above B's, and both are seen.
    let names =
        browser.value("tracewing.shown().filter(({ kind }) => kind === 'recording').map(({ name }) => name)");
    assert_eq!(names, object!(["A: server", "B: clerks"]));
    let sides = browser.value("tracewing.shown().map(({ side }) => side)");
    assert!(sides.as_array().unwrap().iter().map(|side| side.as_u64().unwrap()).is_sorted());
    browser.wait("[...document.querySelectorAll('.track')].some((label) => label.textContent.includes('B: clerks') && label.getBoundingClientRect().bottom < document.querySelector('#legend').getBoundingClientRect().top)");
    let lengths = browser.value("tracewing.compare().lengths");
    for (side, path) in ["state", "other/state"].into_iter().enumerate() {
        assert_eq!(lengths[side], viewer.ask(path, "{}")["length"]);
    }
    let most = lengths.as_array().unwrap().iter().map(|length| length.as_u64().unwrap()).max();
    assert_eq!(browser.value("tracewing.view.length").as_u64(), most);
    compare_heights(&viewer, &mut browser);

    // A time that is typed moves B; A stays where it is on the screen.
    browser.value("tracewing.view.set(tracewing.view.length * 0.2, tracewing.view.length * 0.5)");
    browser.settle();
    for (typed, offset) in [("20 ms", 20_000_000_i64), ("1.5ms before", -1_500_000), ("−20 µs", -20_000)] {
        let before = number(&mut browser, "tracewing.view.from - tracewing.compare().begins[0]");
        browser.value(&format!("(() => {{ const input = document.querySelector('#offset'); input.value = '{typed}'; input.dispatchEvent(new Event('change')); }})()"));
        assert_eq!(browser.value("tracewing.compare().offset"), offset);
        let said = ["20 ms after", "1.5 ms before", "20 µs before"];
        assert!(said.contains(&browser.value("document.querySelector('#offset').value").as_str().unwrap()));
        browser.settle();
        let after = number(&mut browser, "tracewing.view.from - tracewing.compare().begins[0]");
        assert!((before - after).abs() <= 1.0, "{typed}: {before} {after}");
        compare_heights(&viewer, &mut browser);
    }
    compare_columns(&viewer, &mut browser);
    browser.value("tracewing.view.set(tracewing.view.length * 0.2, tracewing.view.length * 0.5)");
    browser.settle();
    browser.value("(() => { const input = document.querySelector('#offset'); input.value = 'soon'; input.dispatchEvent(new Event('change')); })()");
    assert_eq!(browser.value("tracewing.compare().offset"), -20_000);
    assert_eq!(browser.value("document.querySelector('#notice').hidden"), false);
    browser.value("document.querySelector('#notice button').click()");

    // So do the mouse, on B's line, and keys.
    let bar = browser.value("(() => { const box = [...document.querySelectorAll('.track')].find((label) => label.textContent.includes('B: clerks')).getBoundingClientRect(); return (box.top + box.bottom) / 2; })()");
    let y = bar.as_f64().unwrap();
    let pixel = number(
        &mut browser,
        "(tracewing.view.to - tracewing.view.from) / document.querySelector('#overlay').clientWidth",
    );
    browser.drag((600.0, y), (650.0, y));
    let moved = number(&mut browser, "tracewing.compare().offset");
    assert!((moved + 20_000.0 - 50.0 * pixel).abs() <= pixel, "{moved} {pixel}");
    browser.key(">");
    assert!(number(&mut browser, "tracewing.compare().offset") > moved);
    browser.settle();
    compare_heights(&viewer, &mut browser);

    // The link and the command have all of it.
    browser.wait("location.hash.includes('offset=')");
    let offset = browser.value("tracewing.compare().offset");
    let link = browser.value("tracewing.view.link()").as_str().unwrap().to_owned();
    let command = browser.value("tracewing.command()").as_str().unwrap().to_owned();
    let inputs = [stored("server"), stored("clerks")].map(|path| path.display().to_string()).join(" ");
    assert_eq!(command, format!("tracewing view {inputs} --at '{link}'"));
    let seen = browser.value("[tracewing.view.from, tracewing.view.to].map(Math.round)");
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    assert_eq!(browser.value("tracewing.compare().offset"), offset);
    let again = browser.value("[tracewing.view.from, tracewing.view.to].map(Math.round)");
    for at in 0..2 {
        assert!(seen[at].as_i64().unwrap().abs_diff(again[at].as_i64().unwrap()) <= 1, "{seen} {again}");
    }
    browser.value("document.querySelector('#begins').click()");
    assert_eq!(browser.value("tracewing.compare().offset"), 0);

    // What a link marks is where it says, also if B begins first.
    let marked = "v=1&from=1000000&to=90000000&area=2000000-80000000&offset=-3000000";
    browser.open(&format!("http://127.0.0.1:{}/#{marked}", viewer.port));
    assert_eq!(browser.value("tracewing.view.link()"), marked);
    assert_eq!(browser.value("tracewing.compare().begins"), object!([3_000_000, 0]));
    // A stays where it is, and so does the area.
    let marked = "[tracewing.view.area.from, tracewing.view.area.to].map((time) => time - tracewing.compare().begins[0])";
    let before = browser.value(marked);
    browser.key("<");
    browser.wait("tracewing.compare().offset < -3000000");
    assert_eq!(browser.value(marked), before);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// The busiest thread of a recording: its row there.
fn busiest(viewer: &Viewer, path: &str) -> u64 {
    let tracks = viewer.ask(path, "{}");
    let threads = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "thread");
    threads.max_by_key(|row| row["used"].as_u64()).unwrap()["id"].as_u64().unwrap()
}

#[test]
fn what_is_selected_in_both_is_aligned_and_leads_on_in_its_recording() {
    let Some((viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    let rows = [busiest(&viewer, "tracks"), SECOND + busiest(&viewer, "other/tracks")];
    assert_eq!(browser.value("document.querySelector('#align').disabled"), true);
    let length = number(&mut browser, "Math.min(...tracewing.compare().lengths)");
    let mut times = Vec::new();
    for (side, path) in ["at", "other/at"].into_iter().enumerate() {
        let row = rows[side] % SECOND;
        let asked = object!({ "row": row, "time": (length * 0.4) as u64, "step": 1 });
        let found = viewer.ask(path, &asked.to_string());
        let from = found["from"].as_u64().unwrap();
        browser.value(&format!("tracewing.select({}, {from})", rows[side]));
        browser.wait(&format!(
            "tracewing.found()?.from === {from} && tracewing.view.state.row === {}",
            rows[side]
        ));
        // The names of B's states are B's, and its neighbours are its own.
        assert_eq!(browser.value("tracewing.found().state.name"), found["state"]["name"]);
        assert_eq!(
            browser.value("tracewing.found().after?.state.name ?? null"),
            found["after"]["state"]["name"]
        );
        browser.wait("document.querySelectorAll('#details .listing .within').length > 0");
        times.push(from as i64);
    }
    let in_b = "document.querySelector('#details h2').textContent.includes(' in B')";
    assert_eq!(browser.value(in_b), true);
    browser.key("b");
    browser.wait(&format!("tracewing.compare().offset === {}", times[0] - times[1]));
    // The selection has moved with B, and the next one of it is B's, too.
    browser.wait(&format!("tracewing.found()?.from === {} + tracewing.compare().begins[0]", times[0]));
    browser.key(".");
    browser.wait(&format!("tracewing.found()?.from > {} + tracewing.compare().begins[0]", times[0]));
    assert_eq!(browser.value("tracewing.view.state.row"), rows[1]);
    // Its events are those that B has around the state.
    browser.wait("document.querySelectorAll('#details .listing .within').length > 0");
    let own =
        "[tracewing.found().from, tracewing.found().to].map((time) => time - tracewing.compare().begins[1])";
    let span = browser.value(own);
    let asked = object!({ "from": span[0], "to": span[1], "most": 200 });
    let count = viewer.ask("other/events", &asked.to_string())["events"].as_array().unwrap().len();
    assert_eq!(browser.value("document.querySelectorAll('#details .listing .within').length"), count);
    // So is why it took so long.
    browser.key("y");
    browser.wait("tracewing.path() !== null");
    let rows = "tracewing.path().steps.every(({ actor }) => actor.row === null || actor.row >= 2 ** 33)";
    assert_eq!(browser.value(rows), true);

    // A search finds what the chosen recording has.
    for (side, path) in ["find", "other/find"].into_iter().enumerate() {
        if side == 1 {
            browser.value("document.querySelector('#within').click()");
        }
        browser.value("void tracewing.search.start('mutex', true)");
        browser.wait("tracewing.search.state?.is_done && tracewing.search.at === 0");
        let found = viewer.ask(path, r#"{"text":"mutex"}"#)["search"].clone();
        let path = path.replace("find", "found");
        let asked = object!({ "search": found, "from": 0, "to": 1_000_000_000, "count": 100 }).to_string();
        let mut state = Value::Null;
        tracewing_testing::wait_until("the search ends", || {
            state = viewer.ask(&path, &asked);
            state["is_done"] == true
        });
        assert_eq!(browser.value("tracewing.search.state.count"), state["count"], "{path}");
    }
    browser.wait("tracewing.shown().find(({ id }) => id === tracewing.chosen())?.side === 1");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn an_area_of_both_is_compared_by_name_and_by_number() {
    let Some((viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    browser.value("(() => { const input = document.querySelector('#offset'); input.value = '3 ms'; input.dispatchEvent(new Event('change')); })()");
    browser.settle();
    browser.key("m");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    // What is said of the CPUs is what the server says of those of each, in its own time.
    let area = browser.value("[tracewing.view.area.from, tracewing.view.area.to]");
    let [from, to] = [0, 1].map(|at| area[at].as_u64().unwrap());
    let shown = browser.value("[...[...document.querySelectorAll('#details .figures tbody tr')].find((line) => line.firstElementChild.textContent === 'CPUs').querySelectorAll('td[data-ns]')].map(({ dataset }) => Number(dataset.ns))");
    let mut sums = Vec::new();
    for (path, begin) in [("statistics", 0), ("other/statistics", 3_000_000)] {
        let asked = object!({ "from": from.saturating_sub(begin), "to": to - begin, "rows": [u32::MAX] });
        let rows = viewer.ask(path, &asked.to_string())["rows"].as_array().unwrap().clone();
        let of = |row: &Value| (1..5).map(|class| row["classes"][class].as_i64().unwrap()).sum::<i64>();
        sums.push((rows.len() as i64, rows.iter().map(of).sum::<i64>()));
    }
    let [(few, a), (more, b)] = sums[..] else { unreachable!() };
    assert_eq!(shown, object!([few, more, a, b, b - a]));
    // Other measures, and the other tabs.
    browser.value("[...document.querySelectorAll('#details .measures button')].find((one) => one.textContent === 'blocked').click()");
    browser.wait("document.querySelector('#details .figures thead').textContent.includes('blocked A')");
    for (kind, column) in
        [("waits", "count A"), ("locks", "p99 B"), ("calls", "total B"), ("tasks", "busy A")]
    {
        browser.value(&format!("document.querySelector('#details [data-tab={kind}]').click()"));
        browser
            .wait(&format!("document.querySelector('#details [data-tab={kind}]')?.ariaCurrent === 'true'"));
        browser.wait(&format!("(document.querySelector('#details .figures thead')?.textContent ?? document.querySelector('#details .tabs + div p')?.textContent ?? '').match(/{column}|Neither/) !== null"));
    }
    browser.value("document.querySelector('#details [data-tab=samples]').click()");
    // Each has its graph, or a text that says that it has none.
    let flames = "[...document.querySelectorAll('#details h3')].map((head) => head.nextElementSibling)";
    browser.wait(&format!(
        "{flames}.length === 2 && {flames}.every((one) => one && !one.querySelector('progress'))"
    ));
    // A number leads to the tracks that it sums up, of one recording.
    browser.value("document.querySelector('#details [data-tab=\"\"]').click()");
    browser.wait("!!document.querySelector('#details .figures tbody td .link')");
    browser.value("[...document.querySelectorAll('#details .figures tbody tr')].find((line) => line.firstElementChild.textContent === 'CPUs').querySelectorAll('td .link')[1].click()");
    browser.wait("tracewing.view.area.rows?.every((row) => row >= 2 ** 33)");
    browser.wait("document.querySelectorAll('#details tbody tr[data-row]').length > 0");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Answers are changed on their way to the page by the functions in `window.changes`, by path.
pub const CHANGED: &str = "(() => {
    const real = window.fetch;
    window.changes = {};
    window.fetch = async (path, asked) => {
        const response = await real(path, asked);
        if (!window.changes[path] || !response.ok) return response;
        const answer = await response.json();
        window.changes[path](answer);
        return new Response(JSON.stringify(answer));
    };
})()";

/// The cells of a line of the table: what it shows, by its name and, if one is given, its kind.
fn line(browser: &mut Browser, name: &str, kind: Option<&str>) -> Vec<String> {
    let (name, kind) = (object!(name), object!(kind));
    let line = format!(
        "[...document.querySelectorAll('#details .figures tbody tr')].map((line) => [...line.children].map((cell) => cell.textContent)).find((cells) => cells[0] === {name} && ({kind} === null || cells[1] === {kind})) ?? []"
    );
    let cells = browser.value(&line);
    cells.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
}

pub fn tab(browser: &mut Browser, kind: &str) {
    browser.value(&format!("document.querySelector('#details [data-tab={kind}]').click()"));
    browser.wait(&format!("document.querySelector('#details [data-tab={kind}]')?.ariaCurrent === 'true' && !!document.querySelector('#details .figures')"));
}

#[test]
fn what_may_lack_something_has_no_difference() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = of_two("server", "server");
    let mut browser = Browser::start(1280, 720);
    let mut source = CHANGED.to_owned();
    // A thread is called like the line of all CPUs.
    source.push_str("; window.changes['/api/tracks'] = window.changes['/api/other/tracks'] = ({ rows }) => { rows.find(({ kind, used }) => kind === 'thread' && used > 0).name = 'CPUs'; };");
    browser.call("Page.enable", object!({}));
    browser.call("Page.addScriptToEvaluateOnNewDocument", object!({ "source": source }));
    browser.open(&viewer.address());
    let tracks = viewer.ask("tracks", "{}")["rows"].as_array().unwrap().clone();
    let threads: Vec<&Value> =
        tracks.iter().filter(|row| row["kind"] == "thread" && row["used"] != 0).collect();
    let lost = threads.iter().rev().find(|row| row["name"] != "").unwrap();
    let name = lost["name"].as_str().unwrap();
    assert_ne!(lost["id"], threads[0]["id"]);
    browser.value(&format!("void (changes['/api/other/statistics'] = (answer) => {{ answer.rows = answer.rows.filter(({{ row }}) => row !== {}); answer.left_out = 7; }})", lost["id"]));
    browser.key("m");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    let cpus = tracks.iter().filter(|row| row["kind"] == "cpu").count().to_string();
    let all = line(&mut browser, "CPUs", Some("CPU"));
    assert_eq!([&all[2], &all[3]], [&cpus, &cpus]);
    assert!(all[4] == all[5] && all[6].starts_with('0'), "{all:?}");
    assert_eq!(line(&mut browser, "CPUs", Some("thread"))[2..4], ["1", "1"]);
    let some = line(&mut browser, name, Some("thread"));
    assert!(some[5].starts_with("≥ ") && some[6] == "–" && !some[4].contains('≥'), "{some:?}");
    browser.wait("document.querySelector('#details').textContent.includes('there are 7 more in B')");

    // A name that the server left out is unknown; one that is not there is 0 times there.
    for (left_out, count) in [(3, "–"), (0, "0")] {
        browser.value(&format!("void (changes['/api/other/job'] = ({{ result }}) => {{ if (result) [window.dropped, result.left_out] = [result.names.shift().name, {left_out}]; }})"));
        tab(&mut browser, "waits");
        let name = browser.value("window.dropped").as_str().unwrap().to_owned();
        let cells = browser.value(&format!("[...document.querySelectorAll('#details .figures tbody tr')].map((line) => [...line.children].map((cell) => cell.textContent)).filter((cells) => cells[0] === {} && cells[3] === '{count}')", object!(name)));
        assert_eq!(cells.as_array().unwrap().len(), 1, "{name}: {cells}");
        let difference = cells[0][6].as_str().unwrap();
        assert!(if left_out > 0 { difference == "–" } else { difference.starts_with('−') }, "{cells}");
        assert_eq!(cells[0][8], "–");
        tab(&mut browser, "locks");
        browser.wait("document.querySelector('#details').textContent.includes('compared by the place')");
    }

    // A sum of which a part is unknown is unknown.
    let task = |name: &str, busy: Option<u64>| object!({ "name": name, "polls": 1, "busy_ns": busy, "longest_poll_ns": 1, "max_delay_ns": null });
    let a = object!([task("one", None), task("one", Some(5)), task("two", Some(5))]);
    let b = object!([task("one", Some(7)), task("two", Some(6)), task("three", Some(9))]);
    for left_out in [0, 2] {
        browser.value(&format!("void ([changes['/api/job'], changes['/api/other/job']] = [{a}, {b}].map((tasks, side) => ({{ result }}) => {{ if (result) [result.tasks, result.left_out] = [tasks, side * {left_out}]; }}))"));
        browser.value("document.querySelector('#details [data-tab=waits]').click()");
        tab(&mut browser, "tasks");
        let busy = |browser: &mut Browser, name| line(browser, name, None)[5..8].to_vec();
        assert_eq!(busy(&mut browser, "one")[0], "–");
        assert_eq!(busy(&mut browser, "one")[2], "–");
        let expected = if left_out == 0 {
            [["5 ns", "6 ns", "+1 ns"], ["0 ns", "9 ns", "+9 ns"]]
        } else {
            [["5 ns", "≥ 6 ns", "–"], ["0 ns", "≥ 9 ns", "–"]]
        };
        assert_eq!([busy(&mut browser, "two"), busy(&mut browser, "three")], expected);
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn before_the_second_one_begins_there_is_nothing_of_it() {
    let Some((viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    let link = "v=1&from=0&to=90000000&area=0-20000000&offset=50000000";
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    let nothing = "document.querySelector('#details').textContent.includes('B has nothing in this area')";
    browser.wait(nothing);
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    assert_eq!(browser.value("[...document.querySelectorAll('#details .figures tbody tr')].every((line) => line.lastElementChild.textContent === '–')"), true);
    for kind in ["calls", "waits", "tasks", "samples", "graph"] {
        browser.value(&format!("document.querySelector('#details [data-tab={kind}]').click()"));
        browser
            .wait(&format!("document.querySelector('#details [data-tab={kind}]')?.ariaCurrent === 'true'"));
        browser.wait(nothing);
        assert_eq!(browser.value("document.querySelector('#details .lost')"), Value::Null, "{kind}");
    }

    // Nor is a state selected there.
    let row = busiest(&viewer, "tracks");
    browser.value(&format!("tracewing.select({row}, 10000000)"));
    browser.wait("tracewing.found() !== null");
    let y = number(
        &mut browser,
        "(() => { const at = tracewing.shown().findIndex(({ side, kind }) => side === 1 && kind === 'cpu'); const box = document.querySelector(`#track-${at}`).getBoundingClientRect(); return (box.top + box.bottom) / 2; })()",
    );
    browser.click(280.0, y);
    browser.wait("tracewing.view.state === null");

    // A hint goes with the next key, and with it what waited for that.
    let is_hidden = "document.querySelector('#notice').hidden";
    browser.key("b");
    browser.wait("document.querySelector('#notice').textContent.includes('one in B first')");
    browser.key("q");
    browser.wait(is_hidden);
    browser.value("(() => { const input = document.querySelector('#offset'); input.value = 'soon'; input.dispatchEvent(new Event('change')); })()");
    browser.click(280.0, y);
    assert_eq!(browser.value(is_hidden), false);

    // The list of notes stays while B is moved.
    browser.value("document.querySelector('#notes').click()");
    browser.wait("document.querySelector('#details h2')?.textContent.startsWith('Notes')");
    let before = browser.value("location.hash");
    browser.key(">");
    browser.wait(&format!("location.hash !== {before}"));
    browser.settle();
    assert_eq!(browser.value("document.querySelector('#details h2')?.textContent.startsWith('Notes')"), true);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn events_of_the_second_one_are_counted_wherever_it_is() {
    let Some((viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    let link = "v=1&from=0&to=40000000&offset=50000000&count=sched_switch";
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    browser.wait("tracewing.marks().isDone");
    let counts = "tracewing.marks().answers.map(({ names: [{ count, within }] }) => [count, within])";
    // In what is seen there is none of B.
    let seen = browser.value(counts);
    assert!([&seen[0][1], &seen[1][0]].iter().all(|count| count.as_u64() > Some(0)), "{seen}");
    assert_eq!(seen[1][1], 0);
    // B's first events are seen, though they are less than a part after its begin.
    let to = browser.value("tracewing.view.length").as_u64().unwrap();
    browser.value("tracewing.view.set(0, tracewing.view.length)");
    browser.wait(&format!("tracewing.marks().answers.every(({{ of }}) => of.to === {to})"));
    let seen = browser.value(counts);
    assert!(seen.as_array().unwrap().iter().all(|side| side[0] == side[1]), "{seen}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// The result of an analysis of one of the two.
pub fn result_of(viewer: &Viewer, other: &str, path: &str, asked: &Value) -> Value {
    let job = viewer.ask(&format!("{other}{path}"), &asked.to_string());
    let mut state = Value::Null;
    tracewing_testing::wait_until("the analysis is done", || {
        state = viewer.ask(&format!("{other}job"), &job.to_string());
        !state["result"].is_null()
    });
    viewer.ask(&format!("{other}end"), &job.to_string());
    state["result"].take()
}

#[test]
fn the_tabs_of_both_have_the_numbers_of_each() {
    let Some((viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    browser.value("(() => { const input = document.querySelector('#offset'); input.value = '3 ms'; input.dispatchEvent(new Event('change')); })()");
    browser.settle();
    browser.key("m");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    let area = browser.value("[tracewing.view.area.from, tracewing.view.area.to]");
    let [from, to] = [0, 1].map(|at| area[at].as_u64().unwrap());
    let mut compared = 0;
    for (kind, path, columns) in [
        ("events", "classes", &["count"][..]),
        ("calls", "calls", &["count", "total_ns", "p50_ns", "p99_ns", "max_ns"]),
        ("waits", "durations", &["count", "total_ns", "p50_ns", "p99_ns", "max_ns"]),
        ("locks", "durations", &["count", "total_ns", "p50_ns", "p99_ns", "max_ns"]),
    ] {
        browser.value(&format!("document.querySelector('#details [data-tab={kind}]').click()"));
        browser.wait(&format!("document.querySelector('#details [data-tab={kind}]')?.ariaCurrent === 'true' && !document.querySelector('#details progress') && !!document.querySelector('#details .figures, #details .tabs + div p')"));
        let answers = [("", 0), ("other/", 3_000_000)].map(|(other, begin)| {
            let mut asked = object!({ "from": from.saturating_sub(begin), "to": to - begin });
            if path == "durations" {
                asked["what"] = kind.into();
                asked["by_place"] = (kind == "locks").into();
            }
            let mut answer = result_of(&viewer, other, path, &asked);
            answer[if kind == "calls" { "calls" } else { "names" }].take()
        });
        let lines = browser.value("[...document.querySelectorAll('#details .figures tbody tr')].map((line) => ({ name: line.firstElementChild.textContent, state: line.children[1].className === 'text' ? line.children[1].textContent : '', numbers: [...line.children].slice(1).filter(({ className }) => className !== 'text').map(({ dataset }) => dataset.ns === undefined ? null : Number(dataset.ns)) }))");
        for line in lines.as_array().unwrap() {
            let states = ["ready", "preempted", "blocked", "waits", "holds"];
            let class = states.iter().zip([5, 6, 7, 11, 12]).find(|(state, _)| line["state"] == **state);
            let sides = answers.each_ref().map(|lines| {
                let is_it = |one: &&Value| {
                    one["name"] == line["name"] && class.is_none_or(|(_, class)| one["class"] == class)
                };
                lines.as_array().unwrap().iter().find(is_it)
            });
            assert!(sides.iter().any(Option::is_some), "{kind} {line}");
            let value = |side: usize, column: &str| match (sides[side], answers[side] == object!([])) {
                (Some(one), _) => one[column].clone(),
                // There is none, or none is recorded.
                (None, false) if ["count", "total_ns"].contains(&column) => object!(0),
                (None, _) => Value::Null,
            };
            let mut expected = Vec::new();
            for (at, column) in columns.iter().enumerate() {
                let [a, b] = [0, 1].map(|side| value(side, column));
                let difference = a.as_i64().zip(b.as_i64()).map(|(a, b)| b - a);
                expected.extend([a, b]);
                if at == usize::from(columns.len() > 1) {
                    expected.push(object!(difference));
                }
            }
            assert_eq!(line["numbers"], object!(expected), "{kind} {line}");
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");

    // An event has the same colour in both.
    let colours = browser.value(
        "import('/classes.js').then(({ markColor, nameMarks }) => {
        nameMarks([[1, 'a'], [2, 'b'], [2 ** 33 + 1, 'b'], [2 ** 33 + 5, 'a']]);
        return [1, 2, 2 ** 33 + 1, 2 ** 33 + 5].map(markColor);
    })",
    );
    assert!(colours[0] == colours[3] && colours[1] == colours[2] && colours[0] != colours[1], "{colours}");
    for (side, path) in ["tracks", "other/tracks"].into_iter().enumerate() {
        for mark in viewer.ask(path, "{}")["marks"].as_array().unwrap() {
            let state = mark[0].as_u64().unwrap() + side as u64 * SECOND;
            let known =
                browser.value(&format!("import('/classes.js').then(({{ markName }}) => markName({state}))"));
            assert_eq!(known, mark[1]);
        }
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn what_the_panel_has_moves_with_b() {
    let Some((viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    viewer.ask("other/note", r#"{"add":[{"time":5000000,"track":null,"text":"of B"}]}"#);
    browser.open(&viewer.address());
    let offset = |browser: &mut Browser, text: &str| {
        browser.value(&format!("(() => {{ const input = document.querySelector('#offset'); input.value = '{text}'; input.dispatchEvent(new Event('change')); }})()"));
    };
    // Its notes, which are listed.
    browser.value("document.querySelector('#notes').click()");
    let listed = |time: &str| {
        format!("document.querySelector('#details .figures tbody th')?.textContent === '{time}'")
    };
    browser.wait(&listed("0.005 000 000 s"));
    offset(&mut browser, "2 ms");
    browser.wait(&listed("0.007 000 000 s"));
    // And a match of the search.
    browser.value("document.querySelector('#within').click()");
    browser.value("void tracewing.search.start('mutex', true)");
    browser.wait("tracewing.search.state?.is_done && tracewing.search.at === 0 && document.querySelector('#details h2')?.textContent.startsWith('Match 1')");
    let title = "document.querySelector('#details h2 small').textContent";
    let before = browser.value(title);
    offset(&mut browser, "4 ms");
    browser.wait(&format!("{title} !== {before}"));
    let shown = browser.value("(async () => (await fetch('/api/other/match', { method: 'POST', body: JSON.stringify({ search: tracewing.search.number, number: 0 }) })).json())()");
    let at = shown["at"].as_u64().unwrap() + 4_000_000;
    assert_eq!(browser.value(title), browser.value(&format!("tracewing.exact({at})")));

    // Dragged, it moves once before each frame, and is where it was dropped.
    browser.key("Escape");
    offset(&mut browser, "0");
    browser.settle();
    let y = number(
        &mut browser,
        "(() => { const box = [...document.querySelectorAll('.track')].find((label) => label.textContent.includes('B: clerks')).getBoundingClientRect(); return (box.top + box.bottom) / 2; })()",
    );
    let moves = browser.value(&format!("new Promise((done) => {{
        const canvas = document.querySelector('#overlay'), box = canvas.getBoundingClientRect();
        const send = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, {{ clientX: x, clientY: {y}, pointerId: 1, buttons: 1, bubbles: true }}));
        canvas.setPointerCapture = () => {{}};
        const pixel = (tracewing.view.to - tracewing.view.from) / canvas.clientWidth;
        let moves = 0, last = tracewing.compare().offset;
        const look = () => {{ const {{ offset }} = tracewing.compare(); moves += Number(offset !== last); last = offset; }};
        send('pointerdown', box.left + 300);
        for (let x = 0; x <= 90; x++) {{ send('pointermove', box.left + 300 + x); look(); }}
        requestAnimationFrame(() => requestAnimationFrame(() => {{
            look();
            send('pointerup', box.left + 390);
            done([moves, tracewing.compare().offset / pixel]);
        }}));
    }})"));
    assert_eq!(moves[0], 1, "{moves}");
    assert!((moves[1].as_f64().unwrap() - 90.0).abs() < 2.0, "{moves}");

    // Only B's tracks, before B begins: each tab says so.
    let row = SECOND + busiest(&viewer, "other/tracks");
    let link = format!("v=1&from=0&to=90000000&area=0-20000000&rows={row}&offset=50000000");
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    let nothing = "document.querySelector('#details')?.textContent.includes('B has nothing in this area')";
    browser.wait(nothing);
    for kind in ["events", "waits", "tasks", "samples", "graph"] {
        browser.value(&format!("document.querySelector('#details [data-tab={kind}]').click()"));
        browser
            .wait(&format!("document.querySelector('#details [data-tab={kind}]')?.ariaCurrent === 'true'"));
        browser.wait(nothing);
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_link_of_two_recordings_says_so_in_one() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    let row = busiest(&viewer, "tracks");
    for (link, left) in [
        (format!("area=1000-2000&rows={row}.{}&pin={SECOND}.{row}", SECOND + row), [true, false, false]),
        (format!("area=1000-2000&rows={}&pin={row}", SECOND + row), [false, false, false]),
        (format!("row={SECOND}&at=5&pin={row}&offset=7"), [false, false, false]),
        (format!("why={SECOND}-5-90&pin={row}"), [false, false, false]),
    ] {
        browser.open(&format!("http://127.0.0.1:{}/#v=1&from=0&to=90000000&{link}", viewer.port));
        browser
            .wait("document.querySelector('#notice').textContent.includes('This link is of two recordings')");
        let has =
            "[tracewing.view.area, tracewing.view.state, tracewing.view.why].map((one) => one !== null)";
        assert_eq!(browser.value(has), object!(left), "{link}");
        assert_eq!(browser.value("tracewing.view.pins"), object!([row]));
        if left[0] {
            assert_eq!(browser.value("tracewing.view.area.rows"), object!([row]));
        }
    }
    browser.open(&format!("http://127.0.0.1:{}/#v=1&from=0&to=90000000&pin={row}", viewer.port));
    assert_eq!(browser.value("document.querySelector('#notice').hidden"), true);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
