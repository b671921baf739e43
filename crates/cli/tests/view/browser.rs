//! The page in Debian's Chromium: what it draws is what the server says, and each interaction does what it
//! should.

use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use crate::harness::{self, tracewing};
use crate::held::HOLD;
use serde_json::Value;
use tracewing_testing::{RunExt, installed};

/// Where the middle of the track of this name is, in the page.
const PLACE: &str = "(name) => {
    const label = [...document.querySelectorAll('.track')].find((label) => label.querySelector('.what').firstChild.textContent === name || label.querySelector('.number')?.textContent === name);
    const box = label.getBoundingClientRect();
    return (box.top + box.bottom) / 2;
}";

/// Whether the panel has the marked area, and none that was marked on the way to it.
const SHOWN: &str = "tracewing.view.area !== null && document.querySelector('#details').ariaBusy === 'false'";

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
    let Some((viewer, mut browser)) = opened("server") else { return };
    let tracks = viewer.ask("tracks", "{}");
    // Of these, heights are shares of as many members as live, and statistics are sums.
    let is_group = |track: &&Value| ["process", "tasks", "all"].iter().any(|kind| track["kind"] == *kind);
    let groups = tracks["rows"].as_array().unwrap().iter().filter(is_group);
    let mut groups: Vec<String> = groups.map(|track| track["id"].to_string()).collect();
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
            for class in 0..14 {
                let ns = sums["rows"][0]["classes"][class].as_f64();
                let Some(ns) = ns else { continue };
                let pixels: u64 =
                    heights.iter().skip(class).step_by(14).map(|height| height.as_u64().unwrap()).sum();
                let columns = heights.len() as f64 / 14.0;
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
    let Some((viewer, mut browser)) = opened("server") else { return };
    let whole = view(&mut browser);
    browser.key("w");
    browser.settle();
    let closer = view(&mut browser);
    assert!(closer.1 - closer.0 < whole.1 - whole.0, "{closer:?} {whole:?}");
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
    browser.wait("location.hash === `#${tracewing.view.link()}`");
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
    browser.wait(&format!("{SHOWN} && document.querySelectorAll('#details tbody tr').length === 2"));
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
    assert!(
        table.starts_with("\"track\",\"on CPU ns\",\"user ns\",") && table.lines().count() == 3,
        "{table}"
    );
    let shown = browser.value("document.querySelector('#details tbody td').dataset.ns");
    assert_eq!(table.lines().nth(1).unwrap().split(',').nth(1), shown.as_str(), "{table}");

    // A number leads to its states, and a state to its events; Back leads to each of them again.
    let number = browser.value("document.querySelector('#details tbody td .link').closest('td').dataset.ns");
    browser.value("document.querySelector('#details tbody td .link').click()");
    browser.wait("!!document.querySelector('#details p[data-ns]')");
    assert_eq!(browser.value("document.querySelector('#details p').dataset.ns"), number);
    let listed = "document.querySelector('#details h2')?.textContent.includes('on CPU of ')";
    assert_eq!(browser.value(listed), true);
    browser.value("document.querySelector('#details tbody .link').click()");
    browser.wait("document.querySelectorAll('#details .listing .within').length > 0");
    let outside =
        "[...document.querySelectorAll('#details .listing .within')].filter(({ dataset: { at } }) =>
        !(tracewing.found().from <= Number(at) && Number(at) <= tracewing.found().to)).length";
    assert_eq!(browser.value(outside), 0);
    browser.value("document.querySelector('#details .listing .link').click()");
    browser.wait("document.querySelectorAll('#details .fields dt').length > 3");
    let table = format!("{SHOWN} && !!document.querySelector('#details tbody tr[data-row] td .link')");
    for expected in [listed, &table] {
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
    browser.wait(&format!("{SHOWN} && document.querySelectorAll('#details tbody tr').length === 2"));
    browser.key("?");
    browser.wait("document.querySelector('#keys').open");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_search_counts_marks_and_visits_its_matches() {
    let Some((viewer, mut browser)) = opened("server") else { return };
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
fn a_late_answer_to_an_earlier_search_changes_nothing() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let started = |browser: &mut Browser, text: &str| {
        browser.value(&format!("void tracewing.search.start('{text}', false)"));
    };
    let found = "[tracewing.search.number, tracewing.search.text, tracewing.search.state?.count]";
    browser.value(HOLD);
    browser.value("hold('/api/find', 'sched_switch')");
    started(&mut browser, "sched_switch");
    browser.wait("held === 1");
    started(&mut browser, "lock:");
    browser.wait("tracewing.search.state?.is_done");
    // Once more, while one is there that ends.
    started(&mut browser, "sched_switch");
    browser.wait("held === 2");
    started(&mut browser, "mutex");
    browser.wait("tracewing.search.state?.is_done && tracewing.search.text === 'mutex'");
    let newest = browser.value(found);
    browser.value("release()");
    // Both late ones are ended in the server, and the search for locks was when the next began.
    let forgotten =
        "asked.flatMap(([path, body]) => (path === '/api/forget' ? [JSON.parse(body).search] : []))";
    browser.wait(&format!("{forgotten}.length === 3"));
    assert_eq!(browser.value(found), newest);
    assert_eq!(browser.value(&format!("{forgotten}.includes(tracewing.search.number)")), false);
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
    browser.wait("document.querySelector('#phase')?.textContent === 'This browser has no access'");
    assert!(!text(&mut browser, "body").contains("clerks"));
}

#[test]
fn a_page_continues_when_the_server_is_there_again() {
    let Some((mut viewer, mut browser)) = opened("clerks") else { return };
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
    let Some((_viewer, mut browser)) = opened("clerks") else { return };
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

/// A stored recording whose own events have other names, in a folder of its own.
pub fn renamed(folder: &std::path::Path, from: &str, to: &str) -> std::path::PathBuf {
    let trace = folder.join("trace");
    let status = std::process::Command::new("cp").arg("-r").arg(stored("clerks")).arg(&trace).status();
    assert!(status.unwrap().success());
    let metadata = trace.join("user/metadata");
    let text = std::fs::read_to_string(&metadata).unwrap();
    assert!(text.contains(from));
    std::fs::write(&metadata, text.replace(from, to)).unwrap();
    trace
}

#[test]
fn events_of_programs_are_marks_that_lead_to_their_fields() {
    if !installed(&["chromium"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "<b id=own>shop:<img src=x>";
    let viewer = Viewer::start(&renamed(folder.path(), "clerks:request", name));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["kind"] == "events" && row["name"] == "<b id=own>shop").unwrap();
    // Pinned, it is seen whatever is folded.
    let link = format!("http://127.0.0.1:{}/#v=1&pin={}", viewer.port, row["id"]);
    browser.open(&link);
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let asked = serde_json::json!({ "from": 0, "to": length, "rows": [row["id"]] });
    let sums = viewer.ask("statistics", &asked.to_string());
    let count = sums["rows"][0]["classes"][13].as_u64().unwrap();
    let counted = format!("tracewing.counted()[{}].reduce((sum, count) => sum + count, 0)", row["id"]);
    assert_eq!(browser.value(&counted).as_u64(), Some(count));
    let drawn = format!(
        "tracewing.drawn()[{}].filter((height, at) => at % 14 === 13 && height > 0).length",
        row["id"]
    );
    let marks = browser.value(&drawn).as_u64().unwrap();
    assert!(marks > 0 && marks <= count, "{marks} of {count}");
    // A click on a mark shows the event, with all its fields.
    let column =
        browser.value(&format!("tracewing.counted()[{}].findIndex((count) => count > 0)", row["id"]));
    let y = browser.value("document.querySelector('.track.pinned').getBoundingClientRect().top + 12");
    let column = column.as_f64().unwrap();
    browser.click(270.0 + column, y.as_f64().unwrap());
    browser.wait("document.querySelectorAll('#details .fields dd').length > 3");
    assert_eq!(text(&mut browser, "#details dd"), name);
    let first = browser.value("tracewing.found().from");
    browser.key("n");
    browser.wait(&format!("tracewing.found().from > {first}"));
    browser.key("m");
    browser.wait("!!document.querySelector('#details td[data-ns]')");
    assert_eq!(browser.value("document.querySelector('#own, body img:not(h1 img)') === null"), true);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn tracks_are_pinned_ordered_filtered_and_walked_by_keys_alone() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    // Down to the first thread, pinned, and still there in a link.
    browser.value("document.querySelector('#labels').focus()");
    let at = browser.value("tracewing.shown().findIndex(({ kind }) => kind === 'thread')").as_u64().unwrap();
    (0..=at).for_each(|_| browser.key("ArrowDown"));
    let thread = browser.value("tracewing.chosen()");
    assert_eq!(browser.value(&format!("tracewing.shown()[{at}].id")), thread);
    browser.key("i");
    assert_eq!(browser.value("tracewing.shown()[0].id"), thread);
    assert_eq!(browser.value("tracewing.shown()[0].isPinned"), true);
    // It stays at the top, and is drawn as in its place.
    browser.value("document.querySelector('#scroll').scrollTop = 9999");
    browser.settle();
    let top = "document.querySelector('.track.pinned').getBoundingClientRect().top - document.querySelector('#scroll').getBoundingClientRect().top";
    assert_eq!(browser.value(top), 0);
    assert!(browser.value(&format!("tracewing.drawn()[{thread}].some((height) => height > 0)")) == true);
    // A state of it by keys, its details, and back to the tracks.
    browser.key("Enter");
    browser.wait("document.querySelectorAll('#details dd').length > 4");
    assert_eq!(browser.value("tracewing.view.state.row"), thread);
    browser.key("e");
    assert_eq!(browser.value("document.activeElement.closest('#details') !== null"), true);
    browser.key("Escape");
    assert_eq!(browser.value("document.activeElement.id"), "labels");
    // An area by keys.
    browser.key("1");
    browser.key("d");
    browser.settle();
    browser.key("2");
    browser.wait("tracewing.view.area?.from < tracewing.view.area?.to");
    browser.wait("!!document.querySelector('#details td[data-ns]')");

    browser.value("const order = document.querySelector('#order'); order.value = 'number'; order.dispatchEvent(new Event('change'));");
    let numbers = "tracewing.shown().filter(({ kind, isPinned }) => kind === 'thread' && !isPinned).map(({ number }) => Number(number))";
    let all = browser.value(numbers);
    let first: Vec<u64> =
        all.as_array().unwrap().iter().take(3).map(|number| number.as_u64().unwrap()).collect();
    assert!(first.is_sorted(), "{first:?}");
    browser.wait("location.hash.includes('order=number')");
    let link = browser.value("location.hash").as_str().unwrap().to_owned();
    browser.open(&format!("http://127.0.0.1:{}/{link}", viewer.port));
    assert_eq!(browser.value("tracewing.shown()[0].id"), thread);
    assert_eq!(browser.value(numbers), all);

    // The tracks that a filter hides are counted.
    browser.key("t");
    for key in ["2", "7", "1", "3", "7"] {
        browser.key(key);
    }
    let last = browser.value("tracewing.shown().at(-1)");
    let tracks = viewer.ask("tracks", "{}");
    let kinds = ["cpu", "process", "thread", "task"];
    let whole = tracks["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| kinds.contains(&row["kind"].as_str().unwrap()));
    let fit = browser.value("tracewing.shown().filter(({ kind, isPinned }) => ['cpu', 'process', 'thread', 'task'].includes(kind) && !isPinned).length");
    let hidden = whole.count() as u64 - fit.as_u64().unwrap();
    assert_eq!(last["name"], format!("{hidden} tracks do not match the filter"));

    // A match of a search leads to the track of its thread, even if the filter hides that.
    browser.value("document.activeElement.blur()");
    browser.key("/");
    for key in ["s", "e", "r", "v", "e", "r", ":"] {
        browser.key(key);
    }
    browser.key("Enter");
    browser.wait("tracewing.search.at === 0 && !!document.querySelector('#details .listing .within')");
    browser.wait("tracewing.shown().find(({ id }) => id === tracewing.chosen())?.kind === 'thread'");
    let tid = browser.value("[...document.querySelectorAll('#details .listing .within')].find((line) => line.textContent.includes('server:')).querySelector('.tid').textContent");
    browser.wait(&format!(
        "tracewing.shown().find(({{ id }}) => id === tracewing.chosen())?.number === '{}'",
        tid.as_str().unwrap()
    ));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_selection_says_why_it_took_so_long() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    // A wait that another thread ended.
    let wait = "(async () => {
        const ask = async (path, asked) => (await fetch(`/api/${path}`, { method: 'POST', body: JSON.stringify(asked) })).json();
        for (const row of (await ask('tracks', {})).rows.filter(({ kind, is_followed }) => kind === 'thread' && is_followed)) {
            const found = await ask('longest', { from: 0, to: tracewing.view.length, rows: [row.id], classes: [7], most: 9 });
            for (const [, , from] of found.spans) {
                const at = await ask('at', { row: row.id, time: from, step: 0 });
                if (at.waker?.row != null && at.from === from) return [row.id, from, at.to];
            }
        }
    })()";
    let wait = browser.value(wait);
    browser.value(&format!("tracewing.select({}, {})", wait[0], wait[1]));
    browser.wait(&format!("tracewing.found()?.from === {}", wait[1]));
    browser.key("y");
    browser.wait("document.querySelectorAll('#details .causes li').length > 0");
    // The causes add up to the wait, and the path is drawn on its tracks.
    let length = wait[2].as_u64().unwrap() - wait[1].as_u64().unwrap();
    let sum = |selector: &str| {
        format!(
            "[...document.querySelectorAll('{selector}')].reduce((sum, one) => sum + Number(one.dataset.ns), 0)"
        )
    };
    let causes = browser.value(&sum("#details .causes b")).as_u64().unwrap();
    assert!(causes <= length && causes > length / 2, "{causes} of {length}");
    assert_eq!(
        browser.value("tracewing.path().steps.at(-1).to - tracewing.path().steps[0].from").as_u64(),
        Some(length)
    );
    let link = browser.value("location.hash").as_str().unwrap().to_owned();
    assert!(link.contains("why="), "{link}");
    // A cause leads to what it was, and Back to the causes; so does the link.
    browser.wait("!!document.querySelector('#details .causes .link')");
    browser.value("document.querySelector('#details .causes .link').click()");
    browser.wait("document.querySelectorAll('#details dd').length > 4 && tracewing.path() === null");
    browser.value("document.querySelector('#back').click()");
    browser.wait("document.querySelectorAll('#details .causes li').length > 0");
    browser.open(&format!("http://127.0.0.1:{}/{link}", viewer.port));
    browser.wait("document.querySelectorAll('#details .causes li').length > 0");
    assert_eq!(browser.value(&sum("#details .causes b")), causes);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn samples_of_an_area_are_a_flame_graph() {
    let Some((_viewer, mut browser)) = opened("pipeline") else { return };
    browser.key("g");
    browser.wait("document.querySelectorAll('#details .flame button').length > 3");
    // Each is as wide as its samples, and lies within its caller.
    let wrong = "(() => {
        const boxes = [...document.querySelectorAll('#details .flame button')].map((one) => [parseFloat(one.style.left), parseFloat(one.style.width), parseInt(one.style.top), Number(/: ([\\d,]+) samples?,/.exec(one.title)[1].replaceAll(',', ''))]);
        const all = Number(document.querySelector('#details .flame').dataset.samples);
        const inside = ([left, width, top]) => top === 0 || boxes.some(([x, w, y]) => y === top - 19 && x <= left + 1e-3 && left + width <= x + w + 1e-3);
        return boxes.filter((box) => Math.abs(box[1] - (box[3] / all) * 100) > 0.01 || !inside(box)).length;
    })()";
    assert_eq!(browser.value(wrong), 0);
    let second = "document.querySelectorAll('#details .flame button')[2]";
    let name = browser.value(&format!("{second}.textContent"));
    browser.value(&format!("{second}.click()"));
    let zoomed = "[...document.querySelectorAll('#details .flame button')].filter((one) => one.style.width === '100%').map((one) => one.textContent)";
    let zoomed = browser.value(zoomed);
    assert!(zoomed.as_array().unwrap().contains(&name), "{zoomed} {name}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn an_analysis_whose_number_comes_late_is_ended() {
    let Some((_viewer, mut browser)) = opened("pipeline") else { return };
    // The number of the first one comes only when the second one is already asked how far it is.
    browser.value(
        "(() => {
            const real = window.fetch;
            let late, isAsked;
            const asked = new Promise((done) => (isAsked = done));
            window.ended = [];
            window.fetch = async (path, options) => {
                const answer = await real(path, options);
                if (path.endsWith('/end')) window.ended.push(JSON.parse(options.body).job);
                if (path.endsWith('/flame') && !late) {
                    late = answer.clone().json().then(({ job }) => (window.late = job));
                    await asked;
                } else if (path.endsWith('/job') && isAsked) {
                    isAsked();
                    isAsked = null;
                    await late;
                    await new Promise((done) => setTimeout(done, 100));
                }
                return answer;
            };
        })()",
    );
    browser.key("g");
    browser.wait("window.late !== undefined");
    browser.key("g");
    browser.wait("document.querySelectorAll('#details .flame button').length > 3");
    browser.wait("window.ended.includes(window.late)");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_view_is_shared_as_a_command_and_as_a_picture() {
    if !installed(&["chromium"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let viewer = Viewer::start(&renamed(folder.path(), "clerks:request", "<b>shop:it's & <so>"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    browser.value("tracewing.view.set(tracewing.view.length * 0.94, tracewing.view.length * 0.96)");
    browser.settle();
    browser.wait("tracewing.svg().includes('font-size=\"11\"')");
    // The command shows the same again.
    browser.key("c");
    browser.wait("document.querySelector('#sharing').open");
    let command = browser.value("document.querySelector('#command').value");
    let (command, link) = command.as_str().unwrap().split_once(" --at '").unwrap();
    assert_eq!(command, format!("tracewing view {}", folder.path().join("trace").display()));
    // Its link has only signs that `--at` takes, whatever was typed.
    let hard = browser.value(
        "(() => {
            const { view } = tracewing;
            [view.filter, view.find] = ['main()', `!~*'`];
            const link = view.link();
            [view.filter, view.find] = ['', ''];
            return link;
        })()",
    );
    let hard = hard.as_str().unwrap();
    assert!(hard.ends_with("&filter=main%28%29&find=%21~%2A%27"), "{hard}");
    let seen = view(&mut browser);
    browser.open(&format!("http://127.0.0.1:{}/#{}", viewer.port, link.trim_end_matches('\'')));
    let again = view(&mut browser);
    assert!((again.0 - seen.0).abs() <= 1.0 && (again.1 - seen.1).abs() <= 1.0, "{again:?} {seen:?}");
    // The picture is well-formed, has nothing of a name as markup, and its areas are those of the pixels.
    let compared = browser.value(
        "(() => {
            const parsed = new DOMParser().parseFromString(tracewing.svg(), 'image/svg+xml');
            const names = [...parsed.querySelectorAll('*')].map(({ localName }) => localName);
            const drawn = tracewing.drawn();
            const ratio = devicePixelRatio, wrong = [];
            let compared = 0;
            for (const group of parsed.querySelectorAll('g[data-row]')) {
                const heights = drawn[group.dataset.row];
                if (!heights) continue;
                const sum = (of) => heights.filter((_, at) => at % 14 === of).reduce((sum, high) => sum + high, 0);
                const areas = [...group.querySelectorAll('path')].map((path) => [...path.getAttribute('d').matchAll(/v-([\\d.]+)h([\\d.]+)/g)].reduce((sum, [, v, h]) => sum + v * h, 0));
                const expected = [...Array(13).keys()].map(sum).filter((sum) => sum > 0).map((sum) => sum / ratio / ratio);
                const sorted = (all) => [...all].sort((a, b) => a - b);
                if (sorted(areas).some((area, at) => Math.abs(area - sorted(expected)[at]) > 0.01 * area + 1) || areas.length !== expected.length) wrong.push([group.dataset.row, areas, expected]);
                compared += areas.length;
            }
            return { wrong, compared, isForeign: names.some((name) => !['svg', 'title', 'rect', 'text', 'g', 'path'].includes(name)) };
        })()",
    );
    assert_eq!(
        (&compared["wrong"], &compared["isForeign"]),
        (&serde_json::json!([]), &Value::from(false)),
        "{compared}"
    );
    assert!(compared["compared"].as_u64() > Some(20), "{compared}");
    let saved = tempfile::tempdir().unwrap();
    let allowed = serde_json::json!({ "behavior": "allow", "downloadPath": saved.path() });
    browser.call("Browser.setDownloadBehavior", allowed);
    for (id, start) in [("svg", &b"<svg"[..]), ("png", b"\x89PNG")] {
        browser.value(&format!("document.querySelector('#{id}').click()"));
        let file = saved.path().join(format!("tracewing.{id}"));
        tracewing_testing::wait_until("the picture is saved", || {
            std::fs::read(&file).is_ok_and(|bytes| bytes.starts_with(start))
        });
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
