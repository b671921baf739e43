//! Errors of the server are shown to the user, wherever an answer is waited for.

use crate::cdp::{Browser, opened};

/// Makes the server refuse what is asked at these paths.
const REFUSE: &str = "window.refuse = (...paths) => {
    const real = window.real ??= window.fetch;
    window.fetch = (path, options) => paths.includes(path) ? Promise.resolve(new Response('<b id=own>no room', { status: 503 })) : real(path, options);
}";

/// Waits for the error, as text, and closes it.
fn closes(browser: &mut Browser) {
    browser.wait("!document.querySelector('#notice').hidden");
    assert_eq!(browser.value("document.querySelector('#notice span').textContent"), "<b id=own>no room");
    browser.value("document.querySelector('#notice button').click()");
    assert_eq!(browser.value("document.querySelector('#notice').hidden"), true);
}

#[test]
fn errors_of_a_search_a_key_and_a_click_are_shown() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    browser.value("void tracewing.search.start('sched_switch', false)");
    browser.wait("tracewing.search.state?.is_done === true");
    browser.value(&format!("void ({REFUSE})"));
    browser.value("refuse('/api/match')");
    browser.key("j");
    closes(&mut browser);
    // The match after the last one is the first one: it may fail, too.
    browser.value("tracewing.search.at = tracewing.search.state.marked - 1");
    browser.key("j");
    closes(&mut browser);
    browser.value("refuse('/api/at')");
    browser.key("ArrowDown");
    browser.key("ArrowDown");
    browser.key("Enter");
    closes(&mut browser);
    // A panel shows its own.
    browser.value("refuse('/api/statistics')");
    browser.key("m");
    browser.wait("document.querySelector('#details .lost')?.textContent === '<b id=own>no room'");
    assert_eq!(browser.value("document.querySelector('#notice').hidden"), true);
    assert_eq!(browser.value("document.querySelector('#own')"), serde_json::Value::Null);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
