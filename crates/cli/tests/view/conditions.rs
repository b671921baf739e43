//! A search takes the conditions of `list --where`, and says where one is wrong.

use crate::cdp::Browser;
use crate::client::{Viewer, stored};
use crate::harness;
use serde_json::{Value, json as object};
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
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("server"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
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
    if !installed(&["chromium"]) {
        return;
    }
    let viewer = Viewer::start(&stored("clerks"));
    let mut browser = Browser::start(1280, 720);
    browser.open(&viewer.address());
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
