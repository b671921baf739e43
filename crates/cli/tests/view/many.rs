//! Of a recording with more tracks than the page can have, the page has the busiest threads with all their
//! parts, and the server finds and names the others. Here, the page asks for few tracks, so that a small
//! recording has too many.

use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use crate::harness::traceable;
use crate::live::{Recorded, follow};
use serde_json::{Value, json as object};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tracewing_testing::installed;

/// Rows that are chosen one by one: all but parts.
const UNITS: [&str; 5] = ["cpu", "process", "tasks", "thread", "task"];

fn rows(answer: &Value) -> Vec<Value> {
    answer["rows"].as_array().unwrap().clone()
}

fn id(row: &Value) -> u64 {
    row["id"].as_u64().unwrap()
}

fn is_one_of(row: &Value, kinds: &[&str]) -> bool {
    kinds.contains(&row["kind"].as_str().unwrap())
}

/// A page that asks for so many tracks.
fn opened(viewer: &Viewer, most: usize, link: &str) -> Browser {
    let mut browser = Browser::start(1280, 720);
    let source = format!(
        "(() => {{
            const real = window.fetch;
            const few = (asked) => ({{ ...asked, body: JSON.stringify({{ ...JSON.parse(asked.body), most: {most} }}) }});
            window.fetch = (path, asked) => real(path, /\\/(tracks|search)$/.test(path) ? few(asked) : asked);
        }})()"
    );
    browser.call("Page.enable", object!({}));
    browser.call("Page.addScriptToEvaluateOnNewDocument", object!({ "source": source }));
    browser.open(&format!("{}&{link}", viewer.address()));
    browser
}

/// What a page shows.
const SHOWN: &str = "tracewing.shown().map(({ id, kind, name, number }) => [id, kind, name, number])";

/// What a page shows, in any order: some tracks used CPUs for the same time, such as none.
fn shown(page: &mut Browser) -> Vec<Value> {
    let mut shown = page.value(SHOWN).as_array().unwrap().clone();
    shown.sort_by_key(Value::to_string);
    shown
}

/// Waits until a page shows this.
fn shows(page: &mut Browser, expected: &[Value], text: &str) {
    let begin = Instant::now();
    while shown(page) != expected && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(shown(page), expected, "{text}");
}

#[test]
fn threads_come_with_all_their_parts_the_busiest_first() {
    let mut parts = 0;
    for name in ["server", "clerks", "pipeline", "system"] {
        let viewer = Viewer::start(&stored(name));
        let all = rows(&viewer.ask("tracks", "{}"));
        for most in [all.len() / 4, all.len() / 2, all.len() - 1, all.len()] {
            let answer = viewer.ask("tracks", &object!({ "most": most }).to_string());
            let some = rows(&answer);
            assert!(some.len() <= most, "{name}: {} of {most}", some.len());
            assert_eq!(some.len() + answer["left_out"].as_u64().unwrap() as usize, all.len());
            let ids: BTreeSet<u64> = some.iter().map(id).collect();
            let has = |row: &Value, key: &str| row[key].as_u64().is_none_or(|above| ids.contains(&above));
            for row in &all {
                let is_in = ids.contains(&id(row));
                if !is_one_of(row, &UNITS) && !row["parent"].is_null() {
                    assert_eq!(is_in, has(row, "parent"), "{name} {most}: {row}");
                    parts += usize::from(is_in && most < all.len() && row["kind"] != "counter");
                }
                assert!(!is_in || has(row, "parent") && has(row, "group"), "{name} {most}: {row}");
            }
            let threads = || all.iter().filter(|row| is_one_of(row, &["thread", "task"]));
            let used = |is_in: bool| {
                let of = threads().filter(|row| ids.contains(&id(row)) == is_in);
                of.map(|row| row["used"].as_u64().unwrap()).collect::<Vec<_>>()
            };
            if let (Some(least), Some(largest)) = (used(true).iter().min(), used(false).iter().max()) {
                assert!(least >= largest, "{name} {most}: {least} {largest}");
            }
            assert!(most < all.len() || some == all);
        }
    }
    assert!(parts > 20, "{parts}");
}

#[test]
fn the_filter_finds_and_counts_what_only_the_server_has() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let all = rows(&viewer.ask("tracks", "{}"));
    let most = all.len() / 4;
    let known: BTreeSet<u64> =
        rows(&viewer.ask("tracks", &object!({ "most": most }).to_string())).iter().map(id).collect();
    let thread = |row: &&Value| row["kind"] == "thread" && !known.contains(&id(row));
    let number = all.iter().find(thread).unwrap()["number"].as_str().unwrap();
    let task = all.iter().find(|row| row["kind"] == "task").unwrap()["name"].as_str().unwrap();
    let texts = ["locks", number, &format!("--tid {number}"), "--task '*'", "--process 'no such*'", task];
    let mut pages = [all.len(), most].map(|most| opened(&viewer, most, "v=1"));
    let mut found = 0;
    for text in texts {
        for page in &mut pages {
            page.value(&format!("{{ const filter = document.querySelector('#filter'); filter.value = {}; filter.dispatchEvent(new Event('input')); }}", object!(text)));
        }
        let expected = shown(&mut pages[0]);
        shows(&mut pages[1], &expected, text);
        let new = |row: &&Value| row[0].as_u64().is_some_and(|id| !known.contains(&id));
        found += expected.iter().filter(new).count();
        // A link with the filter shows the same.
        let link = format!("v=1&filter={}", text.replace(' ', "%20").replace('\'', "%27"));
        shows(&mut opened(&viewer, most, &link), &expected, &link);
    }
    assert!(found > 10, "{found}");
    // What is too much for an answer is said.
    let said = pages[1].value(
        "import('/tracks.js').then(({ shown, tree }) => shown(tree([]), 'x', { hidden: [7], isLeast: false, more: 1200 }).map(({ name }) => name))",
    );
    let more = "1,200 more tracks match: the filter finds too many to show";
    assert_eq!(said, object!(["7 tracks do not match the filter", more]));
    for page in pages {
        assert!(page.errors.is_empty(), "{:?}", page.errors);
    }
}

#[test]
fn what_an_answer_names_has_a_name_and_leads_to_its_track() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let all = rows(&viewer.ask("tracks", "{}"));
    let mut whole = opened(&viewer, all.len(), "v=1");
    let mut few = opened(&viewer, all.len() / 4, "v=1");
    let known: BTreeSet<u64> =
        rows(&viewer.ask("tracks", &object!({ "most": all.len() / 4 }).to_string())).iter().map(id).collect();
    let lines = "[...document.querySelectorAll('#details tbody tr')].map((line) => [line.dataset.row, line.querySelector('th button').textContent])";
    let tables = [&mut whole, &mut few].map(|page| {
        page.key("m");
        page.wait("document.querySelectorAll('#details tbody tr').length > 3");
        page.value(lines)
    });
    assert_eq!(tables[0], tables[1]);
    assert!(!tables[1].to_string().contains("\"row "), "{}", tables[1]);
    // A thread that the page does not have, and that has parts.
    let unknown = |line: &&Value| {
        let row: u64 = line[0].as_str().unwrap().parse().unwrap();
        let is_it = |one: &Value| id(one) == row && one["kind"] == "thread";
        let is_part = |one: &Value| one["parent"] == row && !is_one_of(one, &UNITS);
        !known.contains(&row) && all.iter().any(is_it) && all.iter().any(is_part)
    };
    let line = tables[1].as_array().unwrap().iter().find(unknown).expect("an unknown thread").clone();
    let row = line[0].as_str().unwrap().to_owned();
    let at = format!("tracewing.shown().findIndex(({{ id }}) => id === {row})");
    assert_eq!(few.value(&at), -1);
    few.value(&format!("document.querySelector('#details tr[data-row=\"{row}\"] th button').click()"));
    few.wait(&format!("tracewing.chosen() === {row}"));
    few.settle();
    assert_eq!(few.value(&format!("tracewing.drawn()[{row}].some((height) => height > 0)")), true);
    let kind = format!("tracewing.shown()[{at} + 1].kind");
    let is_part = |kind: &Value| !UNITS.contains(&kind.as_str().unwrap());
    if !is_part(&few.value(&kind)) {
        few.key(" ");
    }
    assert!(is_part(&few.value(&kind)), "{}", few.value(&kind));

    // A link to a state of it.
    let asked = object!({ "row": row.parse::<u64>().unwrap(), "time": 0, "step": 1 });
    let state = viewer.ask("at", &asked.to_string());
    let link = format!("v=1&row={row}&at={}", state["from"]);
    for (link, place) in [
        (link, "tracewing.view.state?.row"),
        (format!("v=1&why={row}-{}-{}", state["from"], state["to"]), "tracewing.view.why?.row"),
        (format!("v=1&pin={row}"), "tracewing.shown()[0].id"),
    ] {
        let mut page = opened(&viewer, all.len() / 4, &link);
        page.wait(&format!("{place} === {row}"));
        if !link.contains("pin") {
            page.wait(&format!("document.querySelector('#details h2')?.textContent.includes({})", line[1]));
        }
        assert!(page.errors.is_empty(), "{:?}", page.errors);
    }
    assert!(few.errors.is_empty(), "{:?}", few.errors);
}

#[test]
fn what_the_filter_has_found_stays_while_the_recording_is_made() {
    if !installed(&["chromium"]) || !traceable() {
        return;
    }
    let script = "for each in 1 2 3 4 5 6 7 8; do tail -f /dev/null & all=\"$all $!\"; done
        while test ! -e stop; do ls > /dev/null; sleep 0.02; done; kill $all";
    let mut recorded = Recorded::with(&[], script);
    let viewer = follow(&recorded.trace(), &["--follow"]);
    let mut page = opened(&viewer, 12, "v=1&filter=--process%20tail");
    // Other programs that are called so are in no known process.
    let found = "tracewing.shown().filter(({ kind }) => kind === 'thread').length";
    page.wait(&format!("{found} === 8"));
    let version = page.value("tracewing.live().version").as_u64().unwrap();
    // Whenever the tracks have been read again, those that were found are still there.
    while page.value("tracewing.live().version").as_u64().unwrap() < version + 8 {
        assert_eq!(page.value(found), 8);
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    recorded.ends();
    page.wait("!tracewing.live().isLive");
    page.wait(&format!("{found} === 8"));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
}
