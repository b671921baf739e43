//! Tables of states add up to the time of their area, are sorted by each column in both orders, and are saved
//! whole.

use crate::cdp::{Browser, opened};
use serde_json::{Value, json as object};

/// The panel has an area's table of states.
const STATES: &str = "tracewing.view.area !== null && document.querySelector('#details').ariaBusy === 'false' && document.querySelectorAll('#details tbody tr[data-row]').length > 3";

/// What "Save as CSV" saves, as lines of fields.
fn saved(browser: &mut Browser) -> Vec<Vec<String>> {
    browser.value("document.querySelector('#details h2 a').click()");
    let text = browser.value("window.saved.text()");
    text.as_str().unwrap().lines().map(fields).collect()
}

/// Texts are quoted and may have commas; no text here has a quote.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    for sign in line.chars() {
        match sign {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            sign => fields.last_mut().unwrap().push(sign),
        }
    }
    fields
}

/// Keeps what is saved, in a folder that a test does not look into.
fn keep(browser: &mut Browser, folder: &tempfile::TempDir) {
    browser.value("(() => { const real = URL.createObjectURL; URL.createObjectURL = (file) => real(window.saved = file); })()");
    let allowed = object!({ "behavior": "allow", "downloadPath": folder.path() });
    browser.call("Browser.setDownloadBehavior", allowed);
}

/// The titles of the columns.
fn titles(browser: &mut Browser) -> Vec<String> {
    let found = browser
        .value("[...document.querySelectorAll('#details thead th')].map(({ textContent }) => textContent)");
    serde_json::from_value(found).unwrap()
}

/// Clicks each title twice: what is in its column is sorted, then the other way round.
fn sorts(browser: &mut Browser) {
    for at in 0..titles(browser).len() {
        let mut orders = Vec::new();
        for _ in 0..2 {
            browser.value(&format!(
                "document.querySelectorAll('#details thead th')[{at}].querySelector('button').click()"
            ));
            let state = browser.value(&format!(
                "(() => {{
                    const of = (cell) => cell.dataset.time ?? cell.dataset.ns;
                    const cells = [...document.querySelectorAll('#details tbody tr')].map((line) => line.children[{at}]);
                    const numbers = cells.every((cell) => of(cell) !== undefined);
                    const values = cells.map((cell) => (numbers ? Number(of(cell)) : (cell.firstChild?.textContent ?? '')));
                    const order = document.querySelectorAll('#details thead th')[{at}].ariaSort;
                    const compare = (a, b) => (numbers ? a - b : a.localeCompare(b, 'en', {{ numeric: true }}));
                    const isSorted = values.every((value, at) => at === 0 || (order === 'ascending' ? 1 : -1) * compare(values[at - 1], value) <= 0);
                    return [order, isSorted, document.querySelectorAll('#details thead [aria-sort=none]').length];
                }})()"
            ));
            let title = &titles(browser)[at];
            // What is unknown comes last in both orders.
            assert!(state[1] == true || title == "mostly", "{title}: {state}");
            assert_eq!(state[2].as_u64(), Some(titles(browser).len() as u64 - 1), "{title}");
            orders.push(state[0].as_str().unwrap().to_owned());
        }
        orders.sort_unstable();
        assert_eq!(orders, ["ascending", "descending"]);
    }
}

#[test]
fn states_add_up_and_are_sorted_both_ways() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let folder = tempfile::tempdir().unwrap();
    keep(&mut browser, &folder);
    // Time on a CPU whose mode is unknown, and nested polls: both are rare in recordings.
    browser.value(
        "(() => {
            const real = window.fetch;
            window.fetch = async (path, options) => {
                const answer = await real(path, options);
                if (path !== '/api/statistics') return answer;
                const said = await answer.json();
                said.rows[1].classes[4] += 1234;
                said.rows[2].classes[8] += 4321;
                return new Response(JSON.stringify(window.said = said));
            };
        })()",
    );
    browser.key("m");
    browser.wait(STATES);
    let shown = titles(&mut browser);
    for title in ["on CPU", "mode unknown", "nested", "blocked"] {
        assert!(shown.contains(&title.to_owned()), "{shown:?}");
    }
    assert_eq!(shown[0], "track");
    assert_eq!(shown.last().unwrap(), "mostly");
    // The columns of each line, and the numbers of classes: without the sum of some of them, and events.
    let table = saved(&mut browser);
    let said = browser.value("said.rows");
    let lines = said.as_array().unwrap();
    assert_eq!(table.len(), lines.len() + 1);
    let is_part = |title: &&String| !["track", "on CPU ns", "events"].contains(&title.as_str());
    let sum = |line: &[String]| -> u64 {
        table[0]
            .iter()
            .zip(line)
            .filter(|(title, _)| is_part(title))
            .map(|(_, ns)| ns.parse::<u64>().unwrap())
            .sum()
    };
    for (line, sums) in table[1..].iter().zip(lines) {
        let classes: Vec<u64> = serde_json::from_value(sums["classes"].clone()).unwrap();
        assert_eq!(sum(line), classes[..13].iter().sum::<u64>(), "{line:?}");
        let on_cpu: u64 = classes[1..5].iter().sum();
        assert_eq!(line[1], on_cpu.to_string());
    }
    sorts(&mut browser);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn lists_and_critical_paths_are_sorted_and_saved() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    let folder = tempfile::tempdir().unwrap();
    keep(&mut browser, &folder);
    browser.key("m");
    browser.wait(STATES);
    browser.value("document.querySelector('#details tbody td .link').click()");
    browser.wait("!!document.querySelector('#details p[data-ns]') && document.querySelectorAll('#details .narrow tbody tr').length > 3");
    assert_eq!(titles(&mut browser), ["begin", "duration", "share", "state"]);
    // The longest comes first.
    assert_eq!(browser.value("document.querySelectorAll('#details thead th')[1].ariaSort"), "descending");
    let lines = browser.value("document.querySelectorAll('#details tbody tr').length").as_u64().unwrap();
    let table = saved(&mut browser);
    assert_eq!(table[0], ["begin ns", "duration ns", "share %", "state"]);
    assert_eq!(table.len() as u64, lines + 1);
    sorts(&mut browser);

    // The critical path of a thread.
    browser.value("document.querySelector('#back').click()");
    browser.wait(STATES);
    browser.value("[...document.querySelectorAll('#details tbody th .link')].find(({ textContent }) => textContent === 'why?').click()");
    browser.wait("document.querySelectorAll('#details .path tbody tr').length > 3");
    assert_eq!(titles(&mut browser), ["at", "time", "thread or task", "did", "reason", "waiter"]);
    assert_eq!(browser.value("document.querySelectorAll('#details thead th')[0].ariaSort"), "ascending");
    let steps = browser.value("tracewing.path().steps");
    let table = saved(&mut browser);
    assert_eq!(table.len(), steps.as_array().unwrap().len() + 1);
    let path: u64 = table[1..].iter().map(|line| line[1].parse::<u64>().unwrap()).sum();
    let ns = |step: &Value| step["to"].as_u64().unwrap() - step["from"].as_u64().unwrap();
    assert_eq!(path, steps.as_array().unwrap().iter().map(ns).sum::<u64>());
    sorts(&mut browser);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
