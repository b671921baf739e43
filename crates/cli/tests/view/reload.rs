//! A page that is loaded again (F5) shows what it has shown, and nothing in it jumps while it opens and while
//! data arrives.

use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};
use tracewing_testing::installed;

/// What is seen: all but the time that the page has taken.
const SEEN: &str = "({
    window: [tracewing.view.from, tracewing.view.to],
    hash: location.hash,
    tracks: tracewing.shown().map(({ id, isPinned }) => [id, isPinned]),
    chosen: tracewing.chosen(),
    scroll: document.querySelector('#scroll').scrollTop,
    filter: document.querySelector('#filter').value,
    order: document.querySelector('#order').value,
    find: [document.querySelector('#find').value, document.querySelector('#matches').textContent],
    counted: document.querySelector('#counted').textContent,
    details: document.querySelector('#details').innerText,
    drawn: tracewing.drawn(),
})";

/// What a page runs first: `isStill()` says that nothing is in flight, no timer runs, and what is seen is in
/// the address.
const REST: &str = "(() => {
    let open = 0;
    const timers = new Set();
    const counted = (promise) => {
        const ends = () => open--;
        open++;
        promise.then(ends, ends);
        return promise;
    };
    const [ask, set, clear] = [window.fetch, window.setTimeout, window.clearTimeout];
    window.fetch = (...asked) => counted(ask(...asked));
    for (const body of ['json', 'text', 'arrayBuffer']) {
        const read = Response.prototype[body];
        Response.prototype[body] = function () {
            return counted(read.call(this));
        };
    }
    window.setTimeout = (act, ms) => {
        const timer = set(() => [timers.delete(timer), act()], ms);
        timers.add(timer);
        return timer;
    };
    window.clearTimeout = (timer) => [timers.delete(timer), clear(timer)];
    window.isStill = () => open === 0 && timers.size === 0 && tracewing.isIdle() && location.hash === `#${tracewing.view.link()}`;
})()";

/// Waits until nothing will change by itself; what is drawn may ask for more.
fn rest(browser: &mut Browser) {
    for _ in 0..2 {
        browser.settle();
        browser.wait("isStill()");
    }
}

/// Loads the page again: it shows the same.
fn reload(browser: &mut Browser, expected: &Value) {
    browser.value("window.isOld = true");
    browser.call("Page.reload", object!({}));
    browser.wait("!window.isOld && document.readyState === 'complete'");
    let now = seen(browser);
    for (name, was) in expected.as_object().unwrap() {
        assert_eq!(&now[name], was, "{name}");
    }
}

fn seen(browser: &mut Browser) -> Value {
    rest(browser);
    browser.value(SEEN)
}

#[test]
fn a_page_that_is_loaded_again_shows_the_same() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.call("Page.addScriptToEvaluateOnNewDocument", object!({ "source": REST }));
    browser.open(&viewer.address());
    let tracks = viewer.ask("tracks", "{}");
    let thread = tracks["rows"].as_array().unwrap().iter().find(|row| row["number"] == "27137").unwrap();
    // Another window, order and filter, a pinned track, a search, marks, and a selected state.
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    browser.value(&format!("tracewing.view.set({}, {})", length / 4, length / 2));
    browser.value("const order = document.querySelector('#order'); order.value = 'name'; order.dispatchEvent(new Event('change'));");
    browser.value(&format!("tracewing.choose({})", thread["id"]));
    browser.key("i");
    browser.value("void tracewing.search.start('mutex', false)");
    browser.wait("tracewing.search.state?.is_done");
    browser.key("u");
    browser.value("const name = document.querySelector('#name-of-events'); name.value = 'sched_switch'; name.dispatchEvent(new Event('change'));");
    browser.wait("tracewing.marks().isDone");
    browser.value("document.activeElement.blur()");
    browser.value(&format!("tracewing.select({}, {})", thread["id"], length / 3));
    browser.wait("document.querySelectorAll('#details .listing .within').length > 0");
    let state = seen(&mut browser);
    reload(&mut browser, &state);
    // An event that no track has.
    browser.value("document.querySelector('#details .listing tr:not(.fields) .link').click()");
    browser.wait("!!document.querySelector('#details .fields .steps')");
    browser.value("document.querySelector('#details .fields .steps button:nth-of-type(2)').click()");
    browser.wait("document.querySelectorAll('#details .fields').length === 1 && !!location.hash");
    let event = seen(&mut browser);
    reload(&mut browser, &event);
    // An area, and one of its tables.
    browser.key("Escape");
    browser.key("m");
    browser.wait("tracewing.view.area !== null && document.querySelector('#details').ariaBusy === 'false' && !!document.querySelector('#details td[data-ns]')");
    let area = seen(&mut browser);
    reload(&mut browser, &area);
    // Folded tracks, and a place among them.
    browser.key("Escape");
    browser.value("tracewing.choose(tracewing.shown().find(({ kind }) => kind === 'process').id)");
    browser.key(" ");
    browser.value("document.querySelector('#scroll').scrollTop = 100");
    let folded = seen(&mut browser);
    assert_ne!(folded["tracks"], area["tracks"]);
    assert_ne!(folded["scroll"], 0);
    reload(&mut browser, &folded);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// A port may be another recording's later, and its page in the same tab.
#[test]
fn another_recording_at_the_same_address_does_not_show_what_was_kept() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    let port = viewer.port;
    // A page that gives way to one of another origin ends while that one is there.
    let leave = |browser: &mut Browser| {
        browser.value("window.dispatchEvent(new Event('pagehide'))");
        browser.call("Page.navigate", object!({ "url": "about:blank" }));
        browser.wait("location.href === 'about:blank'");
    };
    // Few tracks of each are seen.
    let open = |browser: &mut Browser, viewer: &Viewer, link: &str| {
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            object!({ "width": 1280, "height": 500, "deviceScaleFactor": 1, "mobile": false }),
        );
        leave(browser);
        browser.open(&format!("{}&{link}", viewer.address()));
    };
    // What links have is the same for both; the chosen track is kept by recording.
    let is_kept =
        "tracewing.chosen() === 0xffffffff && !tracewing.shown().some(({ kind }) => kind === 'cpu')";
    open(&mut browser, &viewer, "v=1&from=0&to=1000000");
    browser.value("tracewing.choose(0xffffffff)");
    browser.key(" ");
    browser.wait("location.hash.includes('fold=')");
    let link = browser.value("location.hash.slice(1)");
    let link = link.as_str().unwrap();
    assert_eq!(browser.value(is_kept), true);
    open(&mut browser, &viewer, link);
    browser.wait(is_kept);
    leave(&mut browser);
    drop(viewer);
    let start = |name: &str| Viewer::within(&stored(name), tempfile::tempdir().unwrap(), port);
    let other = start("clerks");
    open(&mut browser, &other, link);
    assert_eq!(browser.value("tracewing.chosen()"), Value::Null);
    leave(&mut browser);
    drop(other);
    let again = start("server");
    open(&mut browser, &again, link);
    browser.wait(is_kept);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Nothing but a few pixels.
const STILL: f64 = 0.0005;

/// What a page runs first: it keeps what has moved without the user.
const SHIFTS: &str = "(() => {
    window.shifts = [];
    const of = ({ node, previousRect: from, currentRect: to }) => `${node?.parentElement?.id ?? ''}>${node?.id || node?.className || node?.nodeName} ${from.x},${from.y} ${from.width}x${from.height} -> ${to.x},${to.y} ${to.width}x${to.height}`;
    new PerformanceObserver((list) => {
        for (const { value, hadRecentInput, sources } of list.getEntries()) if (!hadRecentInput) shifts.push([value, sources.map(of)]);
    }).observe({ type: 'layout-shift', buffered: true });
})()";

/// Less than [`STILL`] has moved, as browsers measure it: the share of the page, times how far.
fn is_still(browser: &mut Browser, what: &str) {
    browser
        .value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
    let shifts = browser.value("shifts");
    let sum: f64 = shifts.as_array().unwrap().iter().filter_map(|shift| shift[0].as_f64()).sum();
    assert!(sum < STILL, "{what}: {sum} {shifts}");
    browser.value("shifts.length = 0");
}

#[test]
fn nothing_jumps_while_the_page_opens_and_data_arrives() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.call("Page.addScriptToEvaluateOnNewDocument", object!({ "source": SHIFTS }));
    browser.open(&viewer.address());
    assert_eq!(browser.value("PerformanceObserver.supportedEntryTypes.includes('layout-shift')"), true);
    is_still(&mut browser, "opening");
    let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
    let tracks = viewer.ask("tracks", "{}");
    let thread = tracks["rows"].as_array().unwrap().iter().find(|row| row["number"] == "27137").unwrap();
    browser.value(&format!("tracewing.select({}, {})", thread["id"], length / 3));
    browser.wait("document.querySelectorAll('#details .listing .within').length > 0");
    is_still(&mut browser, "a state");
    browser.value("tracewing.view.set(0, tracewing.view.length / 3)");
    browser.settle();
    is_still(&mut browser, "a window");
    browser.value("void tracewing.search.start('mutex', true)");
    browser.wait("tracewing.search.state?.is_done && document.querySelectorAll('#details .listing .within').length > 0");
    is_still(&mut browser, "a search");
    // A link to a table of an area.
    browser.open(&format!("http://127.0.0.1:{}/#v=1&area=0-{length}&show=events", viewer.port));
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    is_still(&mut browser, "a table");
    // What moves is found.
    browser.value("document.querySelector('#top').style.marginTop = '200px'");
    browser.wait("shifts.length > 0");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
