//! Answers that come late: the panel has what the user asked for last, however long the answers to earlier
//! questions take.

use crate::cdp::{Browser, opened, opened_with};
use crate::client::Viewer;
use crate::compare::of_two;
use crate::held::HOLD;
use serde_json::Value;

/// Does something whose answer is held back, then marks an area: that is what the panel has afterwards.
fn area_stays(browser: &mut Browser, what: &str, held: &str, act: impl FnOnce(&mut Browser)) {
    browser.key("Escape");
    browser.value(&format!("hold('{held}')"));
    act(browser);
    browser.wait("held > 0");
    browser.value("document.activeElement.blur()");
    browser.key("m");
    browser.wait("document.querySelectorAll('#details tbody tr[data-row]').length > 0");
    let before = browser.value("tracewing.chosen()");
    browser.value("release()");
    browser.value("quiet()");
    let has = "tracewing.view.area !== null && document.querySelector('#details h2').textContent.startsWith('Statistics')";
    assert_eq!(browser.value(has), true, "{what}");
    assert_eq!(browser.value("tracewing.chosen()"), before, "{what}");
}

/// The thread that was on CPUs the longest, and a time at which it was.
fn busiest(viewer: &Viewer) -> Value {
    let tracks = viewer.ask("tracks", "{}");
    let threads = tracks["rows"].as_array().unwrap().iter().filter(|row| row["kind"] == "thread");
    threads.max_by_key(|row| row["used"].as_u64()).unwrap()["id"].clone()
}

#[test]
fn what_was_asked_for_last_is_shown() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    let row = busiest(&viewer);
    // A counter is a track of its own.
    let link = "v=1&counter=sched_switch/payload.prev_prio";
    browser.open(&format!("http://127.0.0.1:{}/#{link}", viewer.port));
    browser.wait("tracewing.series()[0]?.isDone && tracewing.shown().some(({ kind }) => kind === 'counter')");
    browser.value(HOLD);
    browser.value("void tracewing.search.start('mutex', true)");
    browser.wait("tracewing.search.state?.is_done && tracewing.search.at === 0");

    let enter = |row: String| {
        move |browser: &mut Browser| {
            browser.value(&format!("tracewing.choose({row})"));
            browser.key("Enter");
        }
    };
    let middle = "tracewing.view.length / 2";
    area_stays(&mut browser, "a state", "/api/at", |browser| {
        browser.value(&format!("void tracewing.select({row}, Math.floor({middle}))"));
    });
    area_stays(&mut browser, "a track's state", "/api/at", enter(row.to_string()));
    area_stays(&mut browser, "a value", "/api/valued", enter("tracewing.series()[0].row".to_owned()));
    area_stays(&mut browser, "a match", "/api/match", |browser| browser.key("j"));
    assert_eq!(browser.value("tracewing.search.at"), 0);
    area_stays(&mut browser, "the first match", "/api/find", |browser| {
        browser.value("void tracewing.search.start('sched_switch', true)");
    });
    browser.wait("tracewing.search.state?.is_done");
    assert_eq!(browser.value("tracewing.search.at"), Value::Null);
    area_stays(&mut browser, "a note", "/api/note", |browser| {
        browser.key("o");
        browser.wait("!!document.querySelector('#details textarea')");
        browser.value("document.querySelector('#details textarea').value = 'a note'");
        browser.value("document.querySelector('#details .tabs button').click()");
    });
    assert_eq!(viewer.ask("notes", "{}")["notes"].as_array().unwrap().len(), 1);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// While an area is marked, the panel may still have the numbers of another one.
#[test]
fn a_panel_says_that_its_area_is_an_earlier_one() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    browser.value(HOLD);
    browser.key("m");
    browser.wait("document.querySelectorAll('#details tbody tr[data-row]').length > 0");
    let is_busy = "document.querySelector('#details').ariaBusy === 'true'";
    let from = "document.querySelector('#details h2 small').textContent.includes(`from ${tracewing.exact(tracewing.view.area.from)} `)";
    assert_eq!(browser.value(&format!("[{is_busy}, {from}]")), serde_json::json!([false, true]));
    // No timer comes before the end of the expression.
    let marked = "(() => {
        const canvas = document.querySelector('#axis'), box = canvas.getBoundingClientRect();
        const send = (kind, x) => canvas.dispatchEvent(new PointerEvent(kind, { clientX: box.left + x, clientY: box.top + 5, pointerId: 1, buttons: 1, bubbles: true }));
        canvas.setPointerCapture = () => {};
        send('pointerdown', 300);
        send('pointermove', 500);
        send('pointerup', 500);
    })()";
    browser.value("hold('/api/statistics')");
    let seen = browser.value(&format!("({marked}, [{is_busy}, {from}])"));
    assert_eq!(seen, serde_json::json!([true, false]));
    // The numbers of the new one are on their way: those of the other one are gone.
    browser.wait("held > 0");
    let rows = "document.querySelectorAll('#details tbody tr').length";
    assert_eq!(browser.value(&format!("[{is_busy}, {from}, {rows}]")), serde_json::json!([false, true, 0]));
    browser.value("release()");
    browser.wait(&format!("{rows} > 0"));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn back_leads_to_what_was_seen_before_however_soon() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let is_whole = "tracewing.view.to - tracewing.view.from === tracewing.view.length";
    let back = "document.querySelector('#back').click()";
    // No timer comes before the end of the expression.
    browser.value(&format!("(tracewing.view.set(0, tracewing.view.length / 2), {back})"));
    browser.wait(is_whole);
    // An address that has the same in other words is no other view.
    browser.value("tracewing.view.set(0, tracewing.view.length / 2)");
    browser.wait("'#' + tracewing.view.link() === location.hash");
    browser.value("location.hash += '&nothing=1'");
    browser.wait("tracewing.view.link() !== location.hash.slice(1)");
    browser.settle();
    browser.value(back);
    browser.wait("'#' + tracewing.view.link() === location.hash");
    browser.value(back);
    browser.wait(is_whole);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Timers of 100 ms and more come only when `late()` is called.
const TIMERS: &str = "(() => {
    const [set, clear, held] = [window.setTimeout, window.clearTimeout, new Map()];
    let last = 0;
    window.setTimeout = (act, ms) => {
        if (ms < 100) return set(act, ms);
        held.set(--last, act);
        return last;
    };
    window.clearTimeout = (id) => held.delete(id) || clear(id);
    window.late = () => {
        const all = [...held.values()];
        held.clear();
        for (const act of all) act();
    };
})()";

/// What the panel has is shown again where B is now once B is still, but not what was opened there.
#[test]
fn what_was_opened_since_b_was_moved_stays() {
    let Some((_viewer, mut browser)) = opened_with(|| of_two("server", "clerks")) else { return };
    browser.value(HOLD);
    browser.value(TIMERS);
    browser.value("(() => { const input = document.querySelector('#offset'); input.value = '3 ms'; input.dispatchEvent(new Event('change')); })()");
    browser.key("m");
    browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
    browser.value("[...document.querySelectorAll('#details .measures button')].find((one) => one.textContent === 'blocked').click()");
    let measure = "document.querySelector('#details .figures thead').textContent.includes('blocked A')";
    assert_eq!(browser.value(measure), true);
    browser.value("late()");
    browser.value("quiet()");
    assert_eq!(browser.value(measure), true);
    // What was there before B was moved is shown again.
    browser.key(">");
    browser.value("late()");
    browser
        .wait("document.querySelector('#details .figures thead')?.textContent.includes('on CPU A') === true");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
