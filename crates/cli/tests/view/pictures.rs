//! Nothing on the page overlaps or is cut off; and the pictures of the docs, which
//! `cargo xtask demo --pictures` makes from the demo's recording, and from a stored one with locks.

use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};
use std::path::{Path, PathBuf};
use tracewing_testing::installed;

/// Writes what is seen into a folder.
pub fn take(browser: &mut Browser, folder: &Path, name: &str) {
    // Away from the picture, the pointer hides nothing.
    browser.call("Input.dispatchMouseEvent", object!({ "type": "mouseMoved", "x": 300, "y": 4 }));
    browser.settle();
    browser.wait("document.querySelector('#tip').hidden");
    let picture = browser.call("Page.captureScreenshot", object!({ "format": "png" }));
    let bytes = decoded(picture["data"].as_str().unwrap());
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// The bytes of a text in base 64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |sign: u8| match sign {
        b'A'..=b'Z' => sign - b'A',
        b'a'..=b'z' => sign - b'a' + 26,
        b'0'..=b'9' => sign - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let signs: Vec<u32> = text.bytes().filter(|sign| *sign != b'=').map(|sign| value(sign).into()).collect();
    let bytes = signs.chunks(4).flat_map(|four| {
        let all = four.iter().enumerate().fold(0, |sum, (at, six)| sum | six << (18 - 6 * at));
        all.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

/// Parts of the page that overlap, or reach out of it.
const FAULTS: &str = "(() => {
    const boxes = (selector) => [...document.querySelectorAll(selector)].map((one) => [one.id || one.textContent.slice(0, 30), one.getBoundingClientRect()]).filter(([, box]) => box.width > 1 && box.height > 1);
    const faults = [];
    for (const selector of ['header > *', '#legend li', '#details h2 > *', '#details .tabs > button']) {
        const all = boxes(selector);
        for (const [at, [name, box]] of all.entries()) {
            if (box.right > innerWidth + 0.5 || box.left < -0.5) faults.push(`${selector} ${name} is cut off`);
            const next = all[at + 1];
            if (next && Math.abs(next[1].top - box.top) < 12 && next[1].left < box.right - 0.5) faults.push(`${name} overlaps ${next[0]}`);
        }
    }
    const facts = document.querySelector('#name');
    if (facts.getBoundingClientRect().width < 20) faults.push('the name is hidden');
    return faults;
})()";

#[test]
fn pictures_of_the_page_have_no_faults() {
    if !installed(&["chromium"]) {
        return;
    }
    let other = tempfile::tempdir().unwrap();
    let folder = match std::env::var_os("UPDATE") {
        Some(_) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images"),
        None => PathBuf::from(other.path()),
    };
    // `cargo xtask demo --pictures` has one of its own.
    let recording = std::env::var_os("PICTURES_OF").map_or_else(|| stored("server"), PathBuf::from);
    let viewer = Viewer::start(&recording);
    for (width, height) in [(1280, 720), (1920, 1080), (3840, 2160)] {
        let mut browser = Browser::start(width, height);
        browser.open(&viewer.address());
        assert_eq!(browser.value(FAULTS), object!([]), "{width} at first");
        // A part of the work, with its statistics: of a long recording, so little that states are seen one by
        // one.
        browser.value(
            "(({ view }) => view.set(view.length * 0.3, view.length * 0.3 + Math.min(view.length * 0.32, 12e6)))(tracewing)",
        );
        browser.settle();
        let x = f64::from(width);
        let y = browser
            .value("document.querySelector('.track').getBoundingClientRect().top + 4")
            .as_f64()
            .unwrap();
        browser.drag((x * 0.45, y), (x * 0.72, y + 110.0));
        browser.wait("document.querySelectorAll('#details tbody tr').length > 0");
        assert_eq!(browser.value(FAULTS), object!([]), "{width} with statistics");
        if width == 1280 {
            take(&mut browser, &folder, "view.png");
        }
        for kind in ["calls", "waits", "locks", "tasks", "samples"] {
            browser.value(&format!("document.querySelector('#details [data-tab={kind}]').click()"));
            browser.wait(&format!(
                "document.querySelector('#details [aria-current]')?.dataset.tab === '{kind}'"
            ));
            browser.wait("!!document.querySelector('#details .figures, #details .tabs ~ * p, #details .tabs ~ p, #details .flame')");
            assert_eq!(browser.value(FAULTS), object!([]), "{width} {kind}");
            if width == 1280 && kind == "locks" {
                browser.wait("!document.querySelector('#details progress')");
                take(&mut browser, &folder, "view-statistics.png");
            }
        }
        browser.value("document.querySelector('#notes').click()");
        assert_eq!(browser.value(FAULTS), object!([]), "{width} notes");
        // An analysis that the next tab ended is asked for once more.
        browser.errors.retain(|error| !error.contains("410"));
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }
    lock(&folder);
}

/// A wait for a lock, with an arrow from the thread that released it.
fn lock(folder: &Path) {
    let viewer = Viewer::start(&stored("clerks"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let wait = browser.value(
        "(async () => {
            const ask = async (path, asked) => (await fetch(`/api/${path}`, { method: 'POST', body: JSON.stringify(asked) })).json();
            const place = (id) => tracewing.shown().findIndex((track) => track.id === id);
            let best = null;
            for (const row of (await ask('tracks', {})).rows.filter(({ kind, id }) => kind === 'locks' && place(id) >= 0)) {
                const found = await ask('longest', { from: 0, to: tracewing.view.length, rows: [row.id], classes: [11], most: 20 });
                for (const [, , from] of found.spans) {
                    const at = await ask('at', { row: row.id, time: from, step: 0 });
                    if (at.released?.row == null || at.from !== from) continue;
                    const [here, there] = [place(row.id), place(at.released.row)];
                    const far = Math.abs(here - there);
                    // With room for the arrow's name.
                    if (there >= 0 && far > 3 && (best === null || far < best[4])) best = [row.id, at.from, at.to, Math.min(here, there), far];
                }
            }
            return best;
        })()",
    );
    let [row, from, to] = [0, 1, 2].map(|at| wait[at].as_f64().unwrap());
    let margin = (to - from) * 0.8;
    browser.value(&format!("tracewing.view.set({}, {})", from - margin, to + margin));
    browser.settle();
    browser.value(&format!("tracewing.select({row}, {from})"));
    browser.wait("document.querySelectorAll('#details .listing tr.within').length > 0");
    browser.value(&format!("document.querySelector('#scroll').scrollTop = 24 * ({} - 2)", wait[3]));
    browser.settle();
    assert_eq!(browser.value("tracewing.arrows().length"), 1);
    assert_eq!(browser.value(FAULTS), Value::Array(Vec::new()));
    take(&mut browser, folder, "view-lock.png");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Texts that are read badly: their contrast, as WCAG 2 defines it, is below 4.5.
const DIM: &str = "(async () => {
    const { CLASSES, color, contrast, textOn } = await import('/classes.js');
    const rgba = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const hex = (all) => '#' + all.map((one) => Math.round(one).toString(16).padStart(2, '0')).join('');
    const mixed = (above, below, share) => above.map((one, at) => one * share + below[at] * (1 - share));
    const ground = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const [r, g, b, a = 1] = rgba(getComputedStyle(at).backgroundColor);
            if (a > 0.99) return [r, g, b];
        }
        return rgba(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    };
    const faults = CLASSES.flatMap(({ name }, of) => (contrast(textOn(of), color(of)) < 4.5 ? [name] : []));
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let count = 0;
    while (texts.nextNode()) {
        const one = texts.currentNode.parentElement;
        if (!texts.currentNode.textContent.trim() || !one.checkVisibility() || one.closest('option, .unseen, :disabled')) continue;
        let share = 1;
        for (let at = one; at; at = at.parentElement) share *= Number(getComputedStyle(at).opacity);
        const below = ground(one), above = rgba(getComputedStyle(one).color).slice(0, 3);
        const found = contrast(hex(mixed(above, below, share)), hex(below));
        if (found < 4.5) faults.push(`${one.className || one.tagName} ${texts.currentNode.textContent.trim().slice(0, 20)}: ${found.toFixed(2)}`);
        count++;
    }
    return [count > 50, [...new Set(faults)]];
})()";

#[test]
fn all_texts_are_read_well() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    for scheme in ["light", "dark"] {
        let mut browser = Browser::start(1280, 720);
        let feature = object!({ "name": "prefers-color-scheme", "value": scheme });
        browser.call("Emulation.setEmulatedMedia", object!({ "features": [feature] }));
        browser.open(&viewer.address());
        assert_eq!(browser.value(DIM), object!([true, []]), "{scheme} at first");
        // A state, with the events around it.
        browser.key("ArrowDown");
        browser.key("ArrowDown");
        browser.key("Enter");
        browser.wait("document.querySelectorAll('#details .listing tr').length > 0");
        assert_eq!(browser.value(DIM), object!([true, []]), "{scheme} with a state");
        browser.key("Escape");
        browser.key("m");
        browser.wait("document.querySelectorAll('#details tbody tr').length > 0");
        browser.value("document.querySelector('#details [data-tab=events]').click()");
        browser.wait("document.querySelectorAll('#details .figures tbody tr').length > 3");
        browser.value("[...document.querySelectorAll('#details .figures tbody tr .link')].at(2).click()");
        browser.wait("tracewing.marks().isDone");
        assert_eq!(browser.value(DIM), object!([true, []]), "{scheme} with a table");
        browser.key("?");
        assert_eq!(browser.value(DIM), object!([true, []]), "{scheme} with keys");
        assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    }
}

#[test]
fn keys_say_what_they_need_and_dialogs_fit() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let said = "!document.querySelector('#notice').hidden && document.querySelector('#notice span').textContent.startsWith(";
    for (key, what) in
        [("y", "Select a state of"), (".", "Select a state first"), ("i", "Choose a track first")]
    {
        browser.key(key);
        browser.wait(&format!("{said}'{what}')"));
    }
    // The next key does what it says, and nothing is in the way any more.
    browser.key("ArrowDown");
    assert_eq!(browser.value("document.querySelector('#notice').hidden"), true);
    browser.key("?");
    browser.wait("document.querySelector('#keys').open");
    let fits =
        "(({ scrollHeight, clientHeight }) => scrollHeight <= clientHeight)(document.querySelector('#keys'))";
    assert_eq!(browser.value(fits), true);
    browser.value("document.querySelector('#keys').close()");
    // The begin of the command is seen, and all of it is selected.
    browser.key("c");
    browser.wait("document.querySelector('#sharing').open");
    let shown = browser.value("(({ scrollLeft, selectionStart, selectionEnd, value }) => [scrollLeft, selectionStart, selectionEnd === value.length])(document.querySelector('#command'))");
    assert_eq!(shown, object!([0, 0, true]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
