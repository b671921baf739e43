//! The page in Debian's Chromium: what it draws is what the server says, and each interaction does what it
//! should.

use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use crate::harness::{self, tracewing};
use serde_json::Value;
use tracewing_testing::{RunExt, installed};

/// Where the middle of the track of this name is, in the page.
const PLACE: &str = "(name) => {
    const label = [...document.querySelectorAll('.track')].find((label) => label.querySelector('.what').firstChild.textContent === name || label.querySelector('.number')?.textContent === name);
    const box = label.getBoundingClientRect();
    return (box.top + box.bottom) / 2;
}";

fn view(browser: &mut Browser) -> (f64, f64) {
    let view = browser.value("[tracewing.view.from, tracewing.view.to]");
    (view[0].as_f64().unwrap(), view[1].as_f64().unwrap())
}

fn place(browser: &mut Browser, name: &str) -> f64 {
    browser.value(&format!("({PLACE})({})", Value::from(name))).as_f64().unwrap()
}

fn text(browser: &mut Browser, selector: &str) -> String {
    let found = browser.value(&format!("document.querySelector('{selector}').textContent"));
    found.as_str().unwrap().to_owned()
}

#[test]
fn what_is_drawn_is_what_happened() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let tracks = viewer.ask("tracks", "{}");
    let processes = tracks["rows"].as_array().unwrap().iter().filter(|track| track["kind"] == "process");
    let mut groups: Vec<String> = processes.map(|track| track["id"].to_string()).collect();
    groups.push(u32::MAX.to_string());
    assert!(!browser.value("location.hash").as_str().unwrap().contains("token"));
    for zoomed in [false, true] {
        if zoomed {
            let (from, to) = view(&mut browser);
            let third = (to - from) / 3.0;
            browser.value(&format!("tracewing.view.set({}, {})", from + third, to - third));
            browser.settle();
        }
        let (from, to) = view(&mut browser);
        let drawn = browser.value("tracewing.drawn()");
        let mut compared = 0;
        for (row, heights) in drawn.as_object().unwrap() {
            if groups.iter().any(|group| group == row) {
                continue;
            }
            let asked = format!("{{\"from\":{},\"to\":{},\"rows\":[{row}]}}", from.round(), to.round());
            let sums = viewer.ask("statistics", &asked);
            let heights = heights.as_array().unwrap();
            for class in 0..13 {
                let ns = sums["rows"][0]["classes"][class].as_f64();
                let Some(ns) = ns else { continue };
                let pixels: u64 =
                    heights.iter().skip(class).step_by(13).map(|height| height.as_u64().unwrap()).sum();
                let columns = heights.len() as f64 / 13.0;
                let share = pixels as f64 / (18.0 * columns);
                // Within a pixel in each column.
                assert!(
                    (share - ns / (to - from)).abs() <= 1.0 / 18.0,
                    "row {row} class {class}: {share} {ns}"
                );
                compared += 1;
            }
        }
        assert!(compared > 50, "{compared}");
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn keys_and_mouse_zoom_select_and_mark() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let whole = view(&mut browser);
    browser.key("w");
    browser.settle();
    let closer = view(&mut browser);
    assert!(closer.1 - closer.0 < whole.1 - whole.0, "{closer:?} {whole:?}");
    std::thread::sleep(std::time::Duration::from_millis(600));
    browser.value("document.querySelector('#back').click()");
    browser.wait("tracewing.view.to - tracewing.view.from === tracewing.view.length");

    // A state of a CPU: the panel has its exact times.
    let y = place(&mut browser, "CPU 0");
    browser.click(700.0, y);
    browser.wait("document.querySelectorAll('#details dd').length > 4");
    let times = browser
        .value("[...document.querySelectorAll('#details dd[data-ns]')].map((one) => Number(one.dataset.ns))");
    let [from, to, length] = [0, 1, 2].map(|at| times[at].as_u64().unwrap());
    assert_eq!(to - from, length);
    browser.key("f");
    browser.settle();
    let (begin, end) = view(&mut browser);
    assert!(
        begin <= from as f64 && to as f64 <= end && end - begin < 1.3 * length.max(50) as f64,
        "{begin} {end} {times}"
    );
    browser.key(".");
    browser.wait(&format!("document.querySelector('#details dd[data-ns]')?.dataset.ns !== '{from}'"));

    // The link shows the same again.
    std::thread::sleep(std::time::Duration::from_millis(600));
    let link = browser.value("location.hash").as_str().unwrap().to_owned();
    let selected = text(&mut browser, "#details dl");
    browser.open(&format!("http://127.0.0.1:{}/{link}", viewer.port));
    browser.wait("!document.querySelector('#details').hidden");
    assert_eq!(text(&mut browser, "#details dl"), selected);

    // An area of two CPUs: a table with what the server says.
    browser.key("Escape");
    browser.key("Home");
    browser.settle();
    let (first, second) = (place(&mut browser, "CPU 0"), place(&mut browser, "CPU 1"));
    browser.drag((500.0, first), (800.0, second));
    browser.wait("document.querySelectorAll('#details tbody tr').length === 2");
    let area = browser.value("tracewing.view.area");
    for row in 0..2 {
        let line = format!("document.querySelectorAll('#details tbody tr')[{row}]");
        let id = browser.value(&format!("Number({line}.dataset.row)"));
        let shown = browser.value(&format!("Number({line}.querySelector('td').dataset.ns)"));
        let asked = serde_json::json!({ "from": area["from"], "to": area["to"], "rows": [id] });
        let sums = viewer.ask("statistics", &asked.to_string());
        let on_cpu: u64 = (1..5).map(|class| sums["rows"][0]["classes"][class].as_u64().unwrap()).sum();
        assert_eq!(shown.as_u64(), Some(on_cpu));
    }
    let saved = tempfile::tempdir().unwrap();
    let allowed = serde_json::json!({ "behavior": "allow", "downloadPath": saved.path() });
    browser.call("Browser.setDownloadBehavior", allowed);
    browser.value("document.querySelector('#details h2 a').click()");
    let file = saved.path().join("statistics.csv");
    tracewing_testing::wait_until("the table is saved", || file.exists());
    let table = std::fs::read_to_string(&file).unwrap();
    assert!(table.starts_with("track,on CPU ns,user ns,") && table.lines().count() == 3, "{table}");
    let shown = browser.value("document.querySelector('#details tbody td').dataset.ns");
    assert_eq!(table.lines().nth(1).unwrap().split(',').nth(1), shown.as_str(), "{table}");

    // A number leads to its states, and a state to its events; Back leads to each of them again.
    let number = browser.value("document.querySelector('#details tbody td .link').closest('td').dataset.ns");
    browser.value("document.querySelector('#details tbody td .link').click()");
    browser.wait("!!document.querySelector('#details p[data-ns]')");
    assert_eq!(browser.value("document.querySelector('#details p').dataset.ns"), number);
    let listed = "document.querySelector('#details h2').textContent.includes('on CPU of ')";
    assert_eq!(browser.value(listed), true);
    browser.value("document.querySelector('#details tbody .link').click()");
    browser.wait("document.querySelectorAll('#details .listing .within').length > 0");
    let outside =
        "[...document.querySelectorAll('#details .listing .within')].filter(({ dataset: { at } }) =>
        !(tracewing.found().from <= Number(at) && Number(at) <= tracewing.found().to)).length";
    assert_eq!(browser.value(outside), 0);
    browser.value("document.querySelector('#details .listing .link').click()");
    browser.wait("document.querySelectorAll('#details .fields dt').length > 3");
    for expected in [listed, "!!document.querySelector('#details tbody td .link')"] {
        browser.value("document.querySelector('#back').click()");
        browser.wait(expected);
    }

    // A wait leads to its waker, and keys to others of its kind.
    browser.key("Escape");
    browser.key("Home");
    browser.settle();
    let y = place(&mut browser, "27137");
    browser.click(690.0, y);
    browser.wait("!!document.querySelector('#details dd[data-waker] .link')");
    let first =
        browser.value("[tracewing.found().number, tracewing.found().from, tracewing.found().waker.row]");
    browser.key("n");
    browser.wait(&format!("tracewing.found().from > {}", first[1]));
    assert_eq!(browser.value("tracewing.found().number"), first[0]);
    browser.key("p");
    browser.wait(&format!("tracewing.found().from === {}", first[1]));
    browser.wait("!!document.querySelector('#details dd[data-waker] .link')");
    browser.value("document.querySelector('#details dd[data-waker] .link').click()");
    browser.wait(&format!("tracewing.view.state.row === {}", first[2]));

    // A wait for a lock leads to its owner.
    browser.value("tracewing.view.set(0, tracewing.view.length)");
    browser.settle();
    let waits = "(async () => {
        const ask = async (path, asked) => (await fetch(`/api/${path}`, { method: 'POST', body: JSON.stringify(asked) })).json();
        for (const row of (await ask('tracks', {})).rows.filter(({ kind }) => kind === 'locks')) {
            const found = await ask('longest', { from: 0, to: tracewing.view.length, rows: [row.id], classes: [11], most: 9 });
            for (const [, , from] of found.spans) {
                const at = await ask('at', { row: row.id, time: from, step: 0 });
                if (at.holders?.length === 1) return [row.id, from, at.holders[0]];
            }
        }
    })()";
    let wait = browser.value(waits);
    browser.value(&format!("tracewing.select({}, {})", wait[0], wait[1]));
    browser.wait(&format!(
        "document.querySelector('#details dd[data-holders]')?.dataset.holders === '{}'",
        wait[2]
    ));
    browser.value("document.querySelector('#details dd[data-holders] .link').click()");
    browser.wait(&format!("tracewing.view.state.row === {}", wait[2]));

    // A group stands for its members.
    browser.key("Escape");
    browser.key("Home");
    browser.value("document.querySelector('#scroll').scrollTop = 0");
    browser.settle();
    let group = place(&mut browser, "CPUs");
    browser.click(700.0, group);
    browser.wait("tracewing.view.area?.rows?.[0] === 0xffffffff");
    browser.wait("document.querySelectorAll('#details tbody tr').length === 2");
    browser.key("?");
    browser.wait("document.querySelector('#keys').open");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_search_counts_marks_and_visits_its_matches() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    browser.key("/");
    for key in ["m", "u", "t", "e", "x"] {
        browser.key(key);
    }
    browser.key("Enter");
    browser.wait("tracewing.search.state?.is_done && tracewing.search.at === 0");
    let count = browser.value("tracewing.search.state.count").as_u64().unwrap();
    assert!(count > 20, "{count}");
    assert_eq!(text(&mut browser, "#matches"), format!("1 of {count}"));
    let marked = "tracewing.search.seen.parts.reduce((sum, [, count]) => sum + count, 0)";
    assert_eq!(browser.value(marked), count);
    // The panel has the event.
    browser.wait(
        "document.querySelector('#details .listing .within')?.textContent.toLowerCase().includes('mutex')",
    );
    browser.key("Enter");
    browser.wait("tracewing.search.at === 1");
    browser.value("document.activeElement.blur()");
    browser.key("k");
    browser.wait("tracewing.search.at === 0");
    // Before the first comes none; a link searches again.
    let link = browser.value("location.hash").as_str().unwrap().to_owned();
    assert!(link.contains("find=mutex"), "{link}");
    browser.open(&format!("http://127.0.0.1:{}/{link}", viewer.port));
    browser.wait(&format!("tracewing.search.state?.is_done && tracewing.search.state.count === {count}"));
    browser.value("document.querySelector('#end').click()");
    assert_eq!(browser.value("tracewing.search.seen.parts.length"), 0);
    assert_eq!(text(&mut browser, "#matches"), "");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_page_without_the_token_shows_nothing() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("clerks"));
    let mut browser = Browser::start(1280, 720);
    browser.call("Page.navigate", serde_json::json!({ "url": format!("http://127.0.0.1:{}/", viewer.port) }));
    browser.wait("document.querySelector('#phase')?.textContent === 'This browser is not known'");
    assert!(!text(&mut browser, "body").contains("clerks"));
}

#[test]
fn a_page_continues_when_the_server_is_there_again() {
    if !installed(&["chromium"]) {
        return;
    }
    let mut viewer = Viewer::start(&stored("clerks"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    browser.key("w");
    browser.settle();
    let seen = view(&mut browser);
    let (home, port) = (std::mem::replace(&mut viewer.home, tempfile::tempdir().unwrap()), viewer.port);
    drop(viewer);
    browser.key("m");
    browser.wait("document.querySelector('#phase').textContent === 'The server has ended' && !document.querySelector('#cover').hidden");
    let _again = Viewer::within(&stored("clerks"), home, port);
    browser.settle();
    assert_eq!(view(&mut browser), seen);
}

#[test]
fn marks_of_the_axis_differ_at_every_zoom() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("clerks"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    // From ten days to 50 ns, at several beginnings.
    let wrong = browser.value(
        "import('/time.js').then(({ marks }) => {
            const wrong = [];
            for (let length = 864e12; length >= 50; length /= 1.7) {
                for (const from of [0, 1e3, 123456789, 36e11 + 7, 5e14 + 1]) {
                    const to = from + length;
                    const found = marks(from, to, length / 9);
                    const texts = found.marks.map(({ text }) => text);
                    const differ = new Set(texts).size === texts.length;
                    const inside = found.marks.every(({ time }) => time >= from && time <= to);
                    const short = texts.every((text) => text.length < 15);
                    if (!differ || !inside || !short || texts.length < 3 || texts.length > 11) wrong.push([from, length, texts]);
                }
            }
            return wrong;
        })",
    );
    assert_eq!(wrong, serde_json::json!([]));
    // Rounding carries over, and nothing that is shown is rounded away.
    let texts = browser.value(
        "import('/time.js').then(({ duration, exact }) => [
            ...[0, 999, 1234, 59.94e9, 119.7e9, 3599.96e9, 90061e9].map(duration),
            ...[0, 61.5e9, 86400e9 + 1].map(exact),
        ])",
    );
    let durations = ["0 ns", "999 ns", "1.234 µs", "59.94 s", "119.7 s", "1:00:00", "1 d 1:01:01"];
    let times = ["0.000 000 000 s", "0:01:01.500 000 000", "1 d 0:00:00.000 000 001"];
    assert_eq!(texts, serde_json::json!([&durations[..], &times[..]].concat()));
}

#[test]
fn names_of_programs_stay_text() {
    if !installed(&["chromium"]) || !harness::traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace<img src=x>");
    let script = "printf '<b id=own>&quot;' > /proc/$$/comm; for i in 1 2 3 4 5; do sleep 0.02; done; :";
    tracewing().args(["record", "-q", "-o"]).arg(&trace).args(["--", "sh", "-c", script]).succeeds();
    let viewer = Viewer::start(&trace);
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    assert!(text(&mut browser, "#name").contains("<img src=x>"));
    let name = "<b id=own>&quot";
    let y = place(&mut browser, name);
    browser.click(700.0, y + 24.0);
    browser.wait("document.querySelectorAll('#details dd').length > 4");
    browser.wait("document.querySelectorAll('#details .listing tr').length > 4");
    assert!(text(&mut browser, "#details .listing").contains(name));
    browser.value("document.querySelectorAll('#details .listing .link').forEach((one) => one.click())");
    let fields =
        "[...document.querySelectorAll('#details .fields dd')].map(({ textContent }) => textContent)";
    let fields = browser.value(fields);
    assert!(fields.as_array().unwrap().iter().any(|value| value == name), "{fields}");
    browser.key("m");
    browser.wait("!!document.querySelector('#details td[data-ns]')");
    assert!(text(&mut browser, "#details table").contains(name));
    assert_eq!(browser.value("document.querySelector('#own, body img:not(h1 img)') === null"), true);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
