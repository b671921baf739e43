//! A search takes the conditions of `list --where`, and says where one is wrong; tracks are filtered by names
//! and options.

use crate::cdp::{Browser, opened};
use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
use std::collections::BTreeSet;
use tracewing_testing::{Printed, RunExt, installed, wait_until};

/// What a search has found at its end.
fn found(viewer: &Viewer, text: &str) -> Value {
    let search = viewer.ask("find", &object!({ "text": text }).to_string())["search"].clone();
    let asked = object!({ "search": search, "from": 0, "to": 1_u64 << 50, "count": 1 }).to_string();
    let mut state = Value::Null;
    wait_until("the search is done", || {
        state = viewer.ask("found", &asked);
        state["is_done"] == true
    });
    viewer.ask("forget", &object!({ "search": search }).to_string());
    state
}

#[test]
fn a_condition_finds_what_list_prints() {
    let viewer = Viewer::start(&stored("server"));
    for (words, condition) in [
        ("", "next_tid > 0"),
        ("sched_switch", "prev_state == 1 || $cpu == 0"),
        ("user_thread", "thread >= 2 && $process =~ \"*\""),
        ("", "$state == \"blocked\""),
        ("", "$event =~ \"user_thread:w*\" && $tid != 1"),
    ] {
        let printed = harness::of(&stored("server"), &["list", "--where", condition]).succeeds().text();
        let expected = printed.lines().filter(|line| line.contains(words)).count();
        let state = found(&viewer, &format!("{words} where {condition}"));
        assert_eq!(state["count"].as_u64(), Some(expected as u64), "{words} where {condition}: {state}");
        assert!(expected > 0, "{condition}");
    }
    // What the recording does not have is said when it is searched, what is no condition at once.
    assert!(found(&viewer, "where nix == 3")["failure"].as_str().unwrap().contains("it has no `nix`"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    for (text, why) in [("where next_tid ==", "a field or a value"), ("a where b ==", "a field or a value")] {
        let asked = object!({ "text": text }).to_string();
        let (status, _, body) = viewer.post("find", &[&cookie], &asked);
        let body = String::from_utf8(body).unwrap();
        assert!(status == 400 && body.contains(why) && body.lines().last().unwrap().trim() == "^", "{body}");
    }
}

#[test]
fn a_wrong_condition_is_shown_with_its_place_and_can_be_mended() {
    let Some((viewer, mut browser)) = opened("server") else { return };
    let type_in = |browser: &mut Browser, text: &str| {
        browser.value(&format!(
            "(() => {{ const field = document.querySelector('#find'); field.focus(); field.value = {}; }})()",
            Value::from(text)
        ));
        browser.key("Enter");
    };
    type_in(&mut browser, "where next_tid == <b id=own>");
    browser.wait("!document.querySelector('#notice').hidden");
    let said = browser.value("document.querySelector('#notice span').textContent");
    let said = said.as_str().unwrap();
    assert!(said.contains("next_tid == <b id=own>") && said.ends_with('^'), "{said}");
    assert_eq!(browser.value("document.querySelector('#own')"), Value::Null);
    assert_eq!(browser.value("document.querySelector('#find').value"), "where next_tid == <b id=own>");
    browser.value("document.querySelector('#notice button').click()");
    type_in(&mut browser, "sched_switch where next_tid > 0");
    browser.wait("document.querySelector('#matches').textContent.includes(' of ')");
    browser.wait("tracewing.search.state.is_done");
    let count = found(&viewer, "sched_switch where next_tid > 0")["count"].as_u64().unwrap();
    assert_eq!(browser.value("tracewing.search.state.count").as_u64(), Some(count));
    // The match that is shown is one of these, in the track of its thread.
    browser.wait("document.querySelectorAll('#details .listing tr.within').length > 0");
    // A name that the recording does not have.
    type_in(&mut browser, "where nix == 3");
    browser.wait("document.querySelector('#notice span').textContent.includes('it has no `nix`')");
    browser.errors.retain(|error| !error.contains("400"));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn the_filter_of_tracks_matches_as_the_command_line_does() {
    let Some((_viewer, mut browser)) = opened("clerks") else { return };
    let wrong = browser.value(
        r#"import('/filter.js').then(({ glob }) => [
            ["", "", true], ["", "a", false], ["*", "", true], ["?", "", false], ["*a*b*c", "xxaxxbxxbxc", true],
            ["*a*b*c", "xxaxxbxxbxcd", false], ["*a*b", "xaxxbxb", true], ["*a*b", "xaxxbxbc", false],
            ["e[!0-9]", "e7", false], ["sys_[a-d]*", "sys_exit", false], ["[^a-c]x", "dx", true], ["[]a]", "]", true],
            ["a[]]b", "a]b", true], ["[a-]", "-", true], ["[ab", "[ab", true], ["a[b*", "a[bc", true], ["a\\*", "a*", true],
            ["a\\*", "ab", false], ["a\\", "a\\", true], ["gr?n", "grün", true], ["*[!ü]", "ü", false], ["[ä-ü]", "ö", true],
            ["[z-a]", "m", false], ["a.c", "abc", false], ["*a".repeat(60) + "b", "a".repeat(4000), false],
        ].filter(([pattern, text, matches]) => glob(pattern)(text) !== matches))"#,
    );
    assert_eq!(wrong, object!([]));
    // A number is that of a process, and no name; what cannot be is said.
    let chosen = browser.value(
        "import('/filter.js').then(({ isChosen, parsed }) => {
            const is = (text, number, name) => {
                const node = { kind: 'process', number, name, children: [] };
                return isChosen(node, node, parsed(text));
            };
            const wrong = ['--cpu 0,2-3', '--cpu 3-2', '--tid 7,8', '--tid sh'].map((text) => parsed(text).wrong !== null);
            return [is('--process 4*', '41', 'sh'), is('--process 41', '7', '41'), is('--process 41', '41', 'sh'), is('--process s*', '41', 'sh'), ...wrong];
        })",
    );
    assert_eq!(chosen, object!([false, false, true, true, false, true, false, true]));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

/// Texts that would take hours, or all of the stack, if they were matched or read in a simple way. None is
/// longer than a search may be.
fn hostile() -> Vec<String> {
    let stars = "*a".repeat(150);
    vec![
        format!("where next_comm =~ \"{stars}b\""),
        format!("where next_comm =~ \"{}\"", "[a-".repeat(100)),
        format!("-e {stars}b"),
        format!("--process {stars}b"),
        format!("--task {stars}b"),
        format!("where {}next_tid == 1{}", "(".repeat(180), ")".repeat(180)),
        format!("where {}(next_tid == 1)", "!".repeat(370)),
        format!("where next_tid == {}", "9".repeat(370)),
        "(a+)+$".repeat(60),
    ]
}

#[test]
fn a_hostile_pattern_is_refused_or_ends() {
    let viewer = Viewer::start(&stored("server"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    let mut refused = 0;
    for text in hostile() {
        for path in ["find", "search"] {
            let (status, _, body) = viewer.post(path, &[&cookie], &object!({ "text": text }).to_string());
            assert!([200, 400].contains(&status), "{path} {text}: {status}");
            refused += usize::from(status == 400);
            if path == "find" && status == 200 {
                let search = serde_json::from_slice::<Value>(&body).unwrap()["search"].clone();
                let asked = object!({ "search": search, "from": 0, "to": 9, "count": 1 }).to_string();
                wait_until("the search ends", || viewer.ask("found", &asked)["is_done"] == true);
            }
        }
    }
    // "where" is refused for tracks, and so is what is too long for them.
    assert!(refused > 5, "{refused}");
    let long = object!({ "text": "a".repeat(401) }).to_string();
    assert_eq!(viewer.post("find", &[&cookie], &long).0, 400);
    if !installed(&["chromium"]) {
        return;
    }
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    for text in hostile() {
        let text = Value::from(text);
        browser.value(&format!(
            "(() => {{ for (const id of ['find', 'filter']) {{
                const field = document.querySelector(`#${{id}}`);
                [field.value] = [{text}];
                field.dispatchEvent(new Event('input'));
            }} document.querySelector('#find').focus(); }})()"
        ));
        browser.key("Enter");
        browser.wait("tracewing.isIdle() && (tracewing.search.state?.is_done || !document.querySelector('#notice').hidden)");
        browser.value("document.querySelector('#notice').hidden = true");
    }
    // The page still works.
    browser.value("document.querySelector('#filter').value = ''; document.querySelector('#filter').dispatchEvent(new Event('input'))");
    browser.wait("tracewing.shown().some(({ kind }) => kind === 'thread')");
    browser.errors.retain(|error| !error.contains("400"));
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}

#[test]
fn tracks_are_filtered_by_name() {
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("clerks"));
    let tracks = viewer.ask("tracks", "{}");
    let rows = tracks["rows"].as_array().unwrap();
    let kinds = ["process", "thread", "task"];
    let named = |row: &Value| row["name"].as_str().unwrap().to_lowercase();
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
    let shown = "tracewing.shown().filter(({ kind }) => ['process', 'thread', 'task'].includes(kind)).map(({ id }) => id)";
    let mut seen = Vec::new();
    for text in ["clerk", "KWORKER", "no such track"] {
        browser.value(&format!(
            "(() => {{ const field = document.querySelector('#filter'); field.value = '{text}'; field.dispatchEvent(new Event('input')); }})()"
        ));
        browser.settle();
        let ids = browser.value(shown);
        let ids: Vec<u64> = ids.as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        seen.push(ids.len());
        let text = text.to_lowercase();
        let fits = |row: &Value| named(row).contains(&text);
        let parent = |row: &Value| rows.iter().find(|one| one["id"] == row["parent"]);
        // What is in a process with the name is shown, too, and the process of what has it.
        let expected =
            rows.iter().filter(|row| kinds.contains(&row["kind"].as_str().unwrap())).filter(|row| {
                fits(row)
                    || parent(row).is_some_and(fits)
                    || rows.iter().any(|child| child["parent"] == row["id"] && fits(child))
            });
        let expected: BTreeSet<u64> = expected.map(|row| row["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.iter().copied().collect::<BTreeSet<_>>(), expected, "{text}");
    }
    assert!(seen[0] > 80 && (3..80).contains(&seen[1]) && seen[2] == 0, "{seen:?}");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
