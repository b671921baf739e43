//! The numbers of the tab "Tasks" lead to the polls of which they are made.

use crate::analyses::result;
use crate::cdp::opened;
use crate::client::{Viewer, stored};
use serde_json::{Value, json as object};

/// The polls of a task in an area.
fn polls(viewer: &Viewer, (from, to): (u64, u64), row: &Value, by: &str) -> (u64, Vec<Value>) {
    let asked = object!({ "from": from, "to": to, "rows": [row], "by": by });
    let found = result(viewer, "polls", &asked).unwrap();
    (found["count"].as_u64().unwrap(), found["polls"].as_array().unwrap().clone())
}

#[test]
fn polls_are_those_that_tasks_counts() {
    let mut compared = [0; 5];
    for name in ["server", "clerks", "pipeline"] {
        let viewer = Viewer::start(&stored(name));
        let length = viewer.ask("state", "{}")["length"].as_u64().unwrap();
        for area in [(0, length), (length / 3, length / 2)] {
            let found = result(&viewer, "tasks", &object!({ "from": area.0, "to": area.1 })).unwrap();
            for task in
                found["tasks"].as_array().unwrap().iter().filter(|task| !task["row"].is_null()).take(12)
            {
                let of = |by: &str| polls(&viewer, area, &task["row"], by);
                let ns = |poll: &Value, name: &str| poll[name].as_u64().unwrap();
                let (count, all) = of("duration");
                assert_eq!(all.len() as u64, count.min(300), "{name} {task}");
                let ended: Vec<&Value> = all.iter().filter(|poll| !poll["to"].is_null()).collect();
                if let (Some(longest), Some(first)) = (task["longest_poll_ns"].as_u64(), ended.first()) {
                    assert_eq!(
                        (ns(first, "busy_ns"), &first["from"]),
                        (longest, &task["longest_poll_begin"]),
                        "{name} {task}"
                    );
                    assert!(
                        ended.iter().all(|poll| ns(poll, "to") - ns(poll, "from") >= ns(poll, "busy_ns"))
                    );
                    compared[0] += 1;
                }
                let (count, delayed) = of("delay");
                if let (Some(max), Some(first)) = (task["max_delay_ns"].as_u64(), delayed.first()) {
                    assert_eq!(
                        (ns(first, "delay_ns"), &first["from"]),
                        (max, &task["max_delay_end"]),
                        "{name} {task}"
                    );
                    let sum: u64 = delayed.iter().map(|poll| ns(poll, "delay_ns")).sum();
                    if count == delayed.len() as u64 {
                        assert_eq!(task["avg_delay_ns"], sum / count, "{name} {task}");
                        compared[1] += 1;
                    }
                }
                if let Some(slept) = task["slept_ns"].as_u64() {
                    let (count, asleep) = of("slept");
                    let sum: u64 = asleep.iter().map(|poll| ns(poll, "slept_ns")).sum();
                    // Polls that began before the area are not listed.
                    assert!(
                        sum <= slept && (area.0 > 0 || count > 300 || sum == slept),
                        "{name} {task} {sum}"
                    );
                    compared[2] += 1;
                }
                for (at, by, column) in [(3, "long", "long_polls"), (4, "blocking", "blocking_polls")] {
                    let Some(expected) = task[column].as_u64() else { continue };
                    let (count, listed) = of(by);
                    assert_eq!(count, expected, "{name} {column} {task}");
                    let (least, key) =
                        if by == "long" { (10_000_000, "running_ns") } else { (1_000_000, "slept_ns") };
                    assert!(listed.iter().all(|poll| ns(poll, key) >= least), "{name} {listed:?}");
                    assert!(
                        listed.is_sorted_by(|one, other| ns(one, key) >= ns(other, key)),
                        "{name} {listed:?}"
                    );
                    compared[at] += expected;
                }
            }
        }
    }
    assert!(compared[..3].iter().all(|count| *count > 10), "{compared:?}");
    println!("compared {compared:?}");
}

#[test]
fn polls_of_what_is_no_task_are_refused() {
    let viewer = Viewer::start(&stored("server"));
    let cookie = format!("Cookie: {}", viewer.cookie());
    let tracks = viewer.ask("tracks", "{}");
    let row = |kind: &str| {
        tracks["rows"].as_array().unwrap().iter().find(|row| row["kind"] == kind).unwrap()["id"].clone()
    };
    let (task, thread) = (row("task"), row("thread"));
    for (rows, by) in [
        (object!([thread]), "long"),
        (object!([task, task]), "long"),
        (object!([]), "long"),
        (object!([4_000_000_000_u32]), "long"),
        (Value::Null, "long"),
        (object!([task]), "short"),
    ] {
        let asked = object!({ "from": 0, "to": 9, "rows": rows, "by": by });
        assert_eq!(viewer.post("polls", &[&cookie], &asked.to_string()).0, 400, "{asked}");
    }
    assert_eq!(viewer.post("polls", &[], "{}").0, 401);
}

/// Waits for the tab "Tasks".
const TASKS: &str = "document.querySelector('#details [aria-current]')?.dataset.tab === 'tasks' && document.querySelector('#details table')?.ariaLabel === 'Tasks' && document.querySelectorAll('#details .figures tbody tr').length > 3";

/// Clicks the number of a column in the line that has the greatest, and gives that.
const CLICK: &str = "(title) => {
    const at = [...document.querySelectorAll('#details .figures thead th')].findIndex((head) => head.textContent === title);
    const cells = [...document.querySelectorAll('#details .figures tbody tr')].map((line) => line.children[at]);
    const cell = cells.reduce((one, other) => (Number(other.dataset.ns ?? -1) > Number(one.dataset.ns ?? -1) ? other : one));
    cell.querySelector('.link').click();
    return Number(cell.dataset.ns);
}";

#[test]
fn numbers_of_tasks_lead_to_polls_and_these_to_events() {
    let Some((_viewer, mut browser)) = opened("server") else { return };
    browser.key("m");
    browser.wait("!!document.querySelector('#details .tabs')");
    for (title, label) in [
        ("polls", "Longest polls"),
        ("busy", "Longest polls"),
        ("scheduled", "Polls with the longest delays"),
        ("mean delay", "Polls with the longest delays"),
        ("slept", "Polls that slept the longest"),
    ] {
        browser.value("document.querySelector('#details .tabs [data-tab=tasks]').click()");
        browser.wait(TASKS);
        let number = browser.value(&format!("({CLICK})('{title}')"));
        browser.wait(&format!("document.querySelector('#details table')?.ariaLabel === '{label}'"));
        let count = browser.value("Number(document.querySelector('#details p[data-count]').dataset.count)");
        assert!(count.as_u64().unwrap() > 0, "{title}");
        if title == "polls" {
            assert_eq!(count, number);
        }
    }
    // A poll leads to what the task did then, and to the events.
    let begin = browser.value("Number(document.querySelector('#details tbody th').dataset.time)");
    browser.value("document.querySelector('#details tbody .link').click()");
    browser.wait(
        "tracewing.found() !== null && document.querySelectorAll('#details .listing .within').length > 0",
    );
    assert_eq!(
        browser.value(&format!("tracewing.found().from <= {begin} && {begin} < tracewing.found().to")),
        true
    );
    browser.value("document.querySelector('#back').click()");
    browser.wait(TASKS);
    // What a task waited for are its states; Back leads to the tasks.
    browser.value(&format!("({CLICK})('idle')"));
    browser.wait("document.querySelector('#details table')?.ariaLabel === 'States'");
    assert_eq!(
        browser.value("document.querySelector('#details h2').textContent.startsWith('blocked of ')"),
        true
    );
    let link = browser.value("tracewing.view.link()").as_str().unwrap().to_owned();
    assert!(link.contains("list=") && !link.contains("show="), "{link}");
    browser.value("document.querySelector('#back').click()");
    browser.wait(TASKS);
    // Those that the answer lacks are counted.
    browser.value(
        "(() => {
            const real = window.fetch;
            window.fetch = async (path, options) => {
                const answer = await real(path, options);
                if (path !== '/api/job') return answer;
                const job = await answer.json();
                if (job.result?.tasks) job.result.left_out = 1234;
                return new Response(JSON.stringify(job));
            };
        })()",
    );
    browser.value("document.querySelector('#details .tabs [data-tab=tasks]').click()");
    browser.wait("[...document.querySelectorAll('#details p')].some(({ textContent }) => textContent.startsWith('1,234 more tasks were polled for less time'))");
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
}
