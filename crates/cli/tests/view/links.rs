//! Links show the tracks as they were seen: folded, unfolded and scrolled. They name rows by what these are,
//! and areas of very many tracks by their groups; what they lack is said.

use crate::cdp::opened;
use crate::client::{Viewer, stored};
use serde_json::json as object;

/// What is seen of the tracks.
const TRACKS: &str =
    "[tracewing.shown().map(({ id, name }) => [id, name]), document.querySelector('#scroll').scrollTop]";

/// Folds or unfolds the first track for which a condition holds, if there is one; whether there is.
const TOGGLE: &str = "(fits) => {
    const at = tracewing.shown().findIndex(fits);
    if (at < 0) return false;
    document.querySelector('#scroll').scrollTop = at * 24 - 24;
    return new Promise((done) => setTimeout(() => {
        document.querySelector(`.track[data-at=\"${at}\"]`).click();
        done(true);
    }, 200));
}";

#[test]
fn a_link_folds_and_scrolls_as_it_was() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    let before = browser.value(TRACKS);
    let entries = browser.value("history.length");
    // The CPUs, the tasks of a name, and a thread with parts.
    let mut toggled = Vec::new();
    for fits in [
        "({ id }) => id === 0xffffffff",
        "({ kind }) => kind === 'tasks'",
        "({ kind }, at, all) => kind === 'thread' && ['locks', 'events'].includes(all[at + 1]?.kind)",
    ] {
        if browser.value(&format!("({TOGGLE})({fits})")) == true {
            toggled.push(fits);
        }
        browser.settle();
    }
    assert!(toggled.len() > 2, "{toggled:?}");
    browser.value("document.querySelector('#scroll').scrollTop = 5 * 24");
    browser.settle();
    browser.wait("location.hash === `#${tracewing.view.link()}`");
    let seen = browser.value(TRACKS);
    assert_ne!(seen[0], before[0]);
    assert_eq!(seen[1], 5 * 24);
    // It is the same view: Back leads to the one before.
    assert_eq!(browser.value("history.length"), entries);
    let link = browser.value("location.hash.slice(1)").as_str().unwrap().to_owned();
    for part in ["&fold=", "&top="] {
        assert!(link.contains(part), "{link}");
    }
    // Another address: the browser has kept nothing of it.
    let again = Viewer::start(&stored("server"));
    browser.open(&format!("{}&{link}", again.address()));
    assert_eq!(browser.value(TRACKS), seen, "{link}");
    assert_eq!(browser.value("tracewing.view.link()"), object!(link));
    // What does not exist is ignored.
    browser.open(&format!("{}&v=1&fold=p0.in-p0.x.-.others-1&open=t0&top=in-t0", again.address()));
    assert_eq!(browser.value(TRACKS), before);
    drop(viewer);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn an_area_of_many_tracks_is_named_by_their_groups() {
    let Some((_viewer, mut browser)) = opened("clerks") else { return };
    let found = browser.value(
        "Promise.all([import('/place.js'), import('/tracks.js'), import('/names.js')]).then(([{ grouped, members }, { tree }, { ofLink }]) => {
            const row = (id, kind, number, parent) => ({ id, kind, number: String(number), name: 'a', parent, begin: id, end: 1e9, is_followed: true, used: 1, counter: null });
            const threads = Array.from({ length: 300 }, (_, at) => row(10 + at, 'thread', 700 + at, 1));
            const others = [row(400, 'thread', 1800, 2), row(401, 'thread', 1801, 2)];
            const strangers = [3, 4].map((id) => ({ ...row(id, 'process', 20 + id, null), is_followed: false }));
            const all = [...strangers, row(1, 'process', 7, null), ...threads, row(2, 'process', 8, null), ...others];
            const [rows, roots] = [new Map(all.map((row) => [row.id, row])), tree(all)];
            const marked = [...threads.map(({ id }) => id), 3, 401, 4];
            const names = grouped(roots, rows, marked);
            const again = names.flatMap((name) => (name.startsWith('all-') ? members(roots, rows, name.slice(4)) : [ofLink(rows, name)]));
            const isSame = again.length === marked.length && marked.every((id) => again.includes(id));
            return [names, isSame, members(roots, rows, 'p9')];
        })",
    );
    assert_eq!(found, object!([["all-p7", "all-others-0", "t1801"], true, []]));
    // One that has no groups is not in the link, which is said.
    browser.value("tracewing.view.area = { from: 1000, to: 2000, rows: Array.from({ length: 201 }, (_, at) => 5000 + at) }");
    assert_eq!(browser.value("/area=|rows=/.test(tracewing.view.link())"), false);
    browser.value("document.querySelector('#share').click()");
    let lacks = "document.querySelector('#lacks').getBoundingClientRect().height > 0";
    assert_eq!(browser.value(lacks), true);
    browser.value("document.querySelector('#sharing').close()");
    browser.value("tracewing.view.area.rows.pop()");
    assert_eq!(browser.value("/area=.*rows=/.test(tracewing.view.link())"), true);
    browser.value("document.querySelector('#share').click()");
    assert_eq!(browser.value(lacks), false);
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn rows_have_names_and_other_versions_are_reported() {
    let Some((viewer, mut browser)) = opened("clerks") else { return };
    let tracks = viewer.ask("tracks", "{}");
    let thread = tracks["rows"].as_array().unwrap().iter().find(|row| row["kind"] == "thread").unwrap();
    let number = thread["number"].as_str().unwrap();
    browser.value(&format!("tracewing.choose({})", thread["id"]));
    browser.key("i");
    browser.wait("location.hash.includes('pin=')");
    assert_eq!(browser.value(&format!("location.hash.includes('pin=t{number}')")), true);
    // Earlier links have numbers.
    let shown = "!document.querySelector('#notice').hidden && document.querySelector('#notice span').textContent.includes('another version of tracewing (v=9)')";
    for (version, is_said) in [(1, false), (9, true)] {
        browser.open(&format!("{}&v={version}&pin={}", viewer.address(), thread["id"]));
        assert_eq!(browser.value("tracewing.shown()[0].id"), thread["id"]);
        assert_eq!(browser.value(shown), is_said, "{version}");
    }
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
