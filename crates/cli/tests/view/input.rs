//! Wheel, dragging, double click and keys: each moves the window as the table of keys says.

use crate::cdp::{Browser, CTRL, SHIFT, opened};
use serde_json::json as object;

/// The time that is seen, from and to.
type Window = [f64; 2];

fn window(browser: &mut Browser) -> Window {
    let window = browser.value("[tracewing.view.from, tracewing.view.to]");
    [0, 1].map(|at| window[at].as_f64().unwrap())
}

/// Where something is in the page: left, top, width and height.
fn place(browser: &mut Browser, selector: &str) -> [f64; 4] {
    let found = browser.value(&format!(
        "(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect(); return [box.left, box.top, box.width, box.height]; }})()"
    ));
    [0, 1, 2, 3].map(|at| found[at].as_f64().unwrap())
}

/// The second quarter of the recording is seen.
fn reset(browser: &mut Browser) -> Window {
    browser.value("tracewing.view.set(tracewing.view.length / 4, tracewing.view.length / 2)");
    browser.settle();
    window(browser)
}

fn is_near(found: Window, expected: Window, what: &str) {
    let most = (expected[1] - expected[0]) * 1e-6;
    let is = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() <= most);
    assert!(is, "{what}: {found:?} {expected:?}");
}

/// A window of another width, in which the time at a share of it stays in its place.
fn zoomed([from, to]: Window, factor: f64, share: f64) -> Window {
    let (time, width) = (from + (to - from) * share, (to - from) * factor);
    [time - width * share, time + width * (1.0 - share)]
}

/// What the page makes of pixels of a wheel.
fn factor(pixels: f64) -> f64 {
    1.0018_f64.powf(pixels)
}

/// Waits until the window has changed.
fn changed(browser: &mut Browser, before: Window) -> Window {
    browser.wait(&format!("tracewing.view.from !== {} || tracewing.view.to !== {}", before[0], before[1]));
    browser.settle();
    window(browser)
}

#[test]
fn the_wheel_zooms_moves_and_scrolls() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let [left, top, width, _] = place(&mut browser, "#overlay");
    let at = (left + (width / 4.0).round(), top + 100.0);
    let share = (width / 4.0).round() / width;
    for pixels in [-120.0, 90.0] {
        let before = reset(&mut browser);
        browser.wheel(CTRL, at, pixels);
        let found = changed(&mut browser, before);
        is_near(found, zoomed(before, factor(pixels), share), "Ctrl and the wheel zoom at the pointer");
    }
    for selector in ["#axis", "#minimap"] {
        let [left, top, width, height] = place(&mut browser, selector);
        let before = reset(&mut browser);
        browser.wheel(0, (left + (width / 4.0).round(), top + height / 2.0), -150.0);
        let found = changed(&mut browser, before);
        // In the strip, another time is at the pointer.
        let share = if selector == "#axis" { share } else { 0.5 };
        is_near(found, zoomed(before, factor(-150.0), share), selector);
    }
    let before = reset(&mut browser);
    browser.wheel(SHIFT, at, 200.0);
    let found = changed(&mut browser, before);
    let by = 200.0 / width * (before[1] - before[0]);
    is_near(found, before.map(|time| time + by), "Shift and the wheel move it");
    // Without a key, tracks scroll, and the window stays.
    let before = reset(&mut browser);
    browser.wheel(0, at, 72.0);
    browser.wait("document.querySelector('#scroll').scrollTop === 72");
    assert_eq!(window(&mut browser), before);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn dragging_moves_the_window() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let [left, top, width, _] = place(&mut browser, "#overlay");
    let before = reset(&mut browser);
    browser.drag_with(SHIFT, (left + 600.0, top + 100.0), (left + 450.0, top + 130.0));
    let by = 150.0 / width * (before[1] - before[0]);
    let found = window(&mut browser);
    is_near(found, before.map(|time| time + by), "Shift and dragging");
    assert_eq!(browser.value("tracewing.view.area === null"), true, "it marks nothing");
    // In the strip, what is pressed is in the middle.
    let [left, top, width, height] = place(&mut browser, "#minimap");
    let length = browser.value("tracewing.view.length").as_f64().unwrap();
    let (y, half) = (top + height / 2.0, (before[1] - before[0]) / 2.0);
    let middle = |x: f64| [x / width * length - half, x / width * length + half];
    let x = |share: f64| (width * share).round();
    browser.click(left + x(0.75), y);
    is_near(window(&mut browser), middle(x(0.75)), "a click in the strip");
    browser.drag((left + x(0.6), y), (left + x(0.3), y));
    is_near(window(&mut browser), middle(x(0.3)), "dragging in the strip");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn a_double_click_zooms_to_what_it_selects() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let y = browser.value(
        "(() => {
            const label = [...document.querySelectorAll('.track')].find((label) => label.querySelector('.what').firstChild.textContent === 'CPU 0');
            const box = label.getBoundingClientRect();
            return (box.top + box.bottom) / 2;
        })()",
    );
    let y = y.as_f64().unwrap();
    // The answer to the first click comes after the second one.
    browser.value("(() => { const real = window.fetch; window.fetch = async (...asked) => { await new Promise((done) => setTimeout(done, 300)); return real(...asked); }; })()");
    browser.double_click(700.0, y);
    browser.wait(
        "tracewing.found() !== null && tracewing.view.to - tracewing.view.from < tracewing.view.length / 2",
    );
    let found = browser.value("[tracewing.found().from, tracewing.found().to]");
    let [from, to] = [0, 1].map(|at| found[at].as_f64().unwrap());
    let margin = (to - from) * 0.1;
    is_near(window(&mut browser), [from - margin, to + margin], "it is zoomed to");
    browser.settle();
    // Again, all is seen.
    browser.double_click(700.0, y);
    browser.wait("tracewing.view.from === 0 && tracewing.view.to === tracewing.view.length");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn keys_zoom_and_move() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let [left, top, width, _] = place(&mut browser, "#overlay");
    // The time at the pointer stays.
    browser.hover(left + (width * 0.7).round(), top + 100.0);
    for (key, is_closer) in [("w", true), ("+", true), ("=", true), ("s", false), ("-", false)] {
        let before = reset(&mut browser);
        browser.key(key);
        let found = changed(&mut browser, before);
        let factor = (found[1] - found[0]) / (before[1] - before[0]);
        assert_eq!(factor < 1.0, is_closer, "{key}: {before:?} {found:?}");
        is_near(found, zoomed(before, factor, (width * 0.7).round() / width), key);
    }
    for (key, is_later) in [("a", false), ("ArrowLeft", false), ("d", true), ("ArrowRight", true)] {
        let before = reset(&mut browser);
        browser.key(key);
        let found = changed(&mut browser, before);
        let by = found[0] - before[0];
        assert_eq!(by > 0.0, is_later, "{key}: {before:?} {found:?}");
        is_near(found, before.map(|time| time + by), key);
    }
    // The other arrows go from track to track.
    let chosen = "tracewing.shown().findIndex(({ id }) => id === tracewing.chosen())";
    for (key, at) in [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)] {
        browser.key(key);
        assert_eq!(browser.value(chosen), object!(at), "{key}");
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
