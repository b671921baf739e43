//! A newcomer finds the cause of a slow server with the mouse alone: the lock that a task holds while others
//! wait.

use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use crate::harness::json;
use tracewing_testing::installed;

/// Where the first thing is that a selector finds and that has a text, in the page.
const PLACE: &str = "(selector, text) => {
    const found = [...document.querySelectorAll(selector)].find((one) => one.textContent.includes(text) && one.getBoundingClientRect().width > 0);
    if (!found) return null;
    found.scrollIntoView({ block: 'nearest' });
    const box = found.getBoundingClientRect();
    return [box.left + Math.min(box.width / 2, 40), (box.top + box.bottom) / 2];
}";

/// Clicks what a selector finds with the mouse, as soon as it is there.
fn click(browser: &mut Browser, selector: &str, text: &str) {
    let place = format!("({PLACE})({}, {})", serde_json::json!(selector), serde_json::json!(text));
    browser.wait(&format!("{place} !== null"));
    browser.settle();
    let place = browser.value(&place);
    browser.click(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
}

#[test]
fn the_lock_that_makes_a_server_slow_is_found_with_the_mouse() {
    if !installed(&["chromium"]) {
        return;
    }
    let locks = json(&stored("server"), &["locks"]);
    let worst =
        locks["locks"].as_array().unwrap().iter().max_by_key(|lock| lock["wait_ns"].as_u64()).unwrap();
    let address = worst["lock"].as_str().unwrap();
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    // A button leads to the numbers of what is seen, and tabs to other ones.
    click(&mut browser, "header button", "Statistics");
    click(&mut browser, "#details .tabs button", "Locks");
    // The first line is the lock that was waited for the longest in total.
    let first = "document.querySelector('#details .figures tbody tr')";
    browser.wait(&format!("{first}?.textContent.includes('waits')"));
    let lines = "[...document.querySelectorAll('#details .figures tbody tr')]";
    let line = browser.value(&format!("{lines}.map((line) => line.textContent).find((line) => line.startsWith('mutex') && line.includes('waits'))"));
    assert!(line.as_str().unwrap().contains(address), "{line} {address}");
    click(&mut browser, "#details .figures tbody th .link", &format!("mutex {address}"));
    // Its longest wait leads to the task that waited, and that to the one that had the lock.
    browser.wait("document.querySelector('#details h2').textContent.startsWith('Longest mutex') && document.querySelectorAll('#details tbody .link').length > 3");
    click(&mut browser, "#details tbody .link", "");
    browser.wait("!!document.querySelector('#details dd[data-holders] .link')");
    let owner = browser.value("document.querySelector('#details dd[data-holders] .link').textContent");
    assert!(owner.as_str().unwrap().starts_with("connection/"), "{owner}");
    click(&mut browser, "#details dd[data-holders] .link", "");
    browser.wait("tracewing.view.state !== null && !document.querySelector('#details dd[data-holders]')");
    // It was idle while it had the lock: the cause.
    let named = browser.value("document.querySelector('#details h2').textContent");
    assert!(named.as_str().unwrap().starts_with(owner.as_str().unwrap()), "{named}");
    click(&mut browser, "#details h2 .link", "Why so long?");
    browser.wait("document.querySelectorAll('#details .causes li').length > 0");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
