//! `tracewing latency` and `tracewing critical-path` on recordings of `examples/reactivity`, in which a task
//! treats messages later than they come.

mod harness;
mod recorded;

use harness::{Printed, RunExt, traceable};
use recorded::build;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Output;
use std::sync::OnceLock;

const MESSAGES: usize = 5;

/// A recording of the example on one worker; with the kernel's events where they can be had.
fn recording() -> &'static tempfile::TempDir {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let program = build(&["-p", "reactivity"]).join("reactivity");
        let folder = tempfile::tempdir().unwrap();
        let mut record = harness::tracewing();
        record.arg("record").arg("-o").arg(folder.path().join("t")).args(if traceable() {
            &[][..]
        } else {
            &["--no-kernel"]
        });
        let messages = MESSAGES.to_string();
        record.arg("--").arg(program).args(["--workers", "1", "--tasks", "4", "--messages", &messages]);
        record.succeeds();
        folder
    })
}

fn has_kernel() -> bool {
    recording().path().join("t/kernel").exists()
}

fn tracewing(arguments: &[&str]) -> Output {
    harness::of(&recording().path().join("t"), arguments).ran()
}

fn printed(arguments: &[&str]) -> String {
    let output = tracewing(arguments);
    assert!(output.status.success(), "{}", output.notes());
    output.text()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(&[arguments, &["--format", "json"]].concat())).unwrap()
}

/// How late each message was treated, by what `tracewing list` prints.
fn late() -> BTreeMap<u64, u64> {
    let (mut sent, mut late) = (BTreeMap::new(), BTreeMap::new());
    for line in printed(&["list", "-e", "reactivity:*", "--format", "json"]).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let (ns, message) = (event["ns"].as_u64().unwrap(), event["payload"]["message"].as_u64().unwrap());
        match event["event"].as_str().unwrap() {
            "reactivity:sent_msg" => drop(sent.insert(message, ns)),
            _ => drop(late.insert(message, ns - sent[&message])),
        }
    }
    assert_eq!(late.len(), MESSAGES);
    late
}

const SENT: [&str; 4] = ["--begin", "reactivity:sent_msg", "--end", "reactivity:received_msg"];

#[test]
fn figures_are_those_of_the_events() {
    let late = late();
    let mut sorted: Vec<u64> = late.values().copied().collect();
    sorted.sort_unstable();
    // Messages are treated in their order, so a queue finds the same without asking for their numbers.
    let by_message = json(&[&["latency"], &SENT[..], &["--match", "message", "-n", "2"]].concat());
    let in_order = json(&[&["latency"], &SENT[..], &["--nested", "queue", "-n", "2"]].concat());
    for table in [&by_message, &in_order] {
        let figure = |name: &str| table[name].as_u64().unwrap();
        assert_eq!((figure("count"), figure("unmatched_begins"), figure("unmatched_ends")), (5, 0, 0));
        let figures = ["min_ns", "p50_ns", "p90_ns", "max_ns"].map(figure);
        assert_eq!(figures, [sorted[0], sorted[2], sorted[4], sorted[4]]);
        let mean = sorted.iter().sum::<u64>() as f64 / 5.0;
        assert!((table["avg_ns"].as_f64().unwrap() - mean).abs() < 1.0);
        let bars = table["histogram"].as_array().unwrap().iter();
        assert_eq!(bars.map(|bar| bar["count"].as_u64().unwrap()).sum::<u64>(), 5);
        let worst = table["worst"].as_array().unwrap();
        let longest: Vec<u64> = worst.iter().map(|period| period["duration_ns"].as_u64().unwrap()).collect();
        assert_eq!(longest, [sorted[4], sorted[3]]);
    }
    let message: u64 = by_message["worst"][0]["key"][0][1].as_str().unwrap().parse().unwrap();
    assert_eq!(late[&message], sorted[4]);

    let csv = printed(&[&["latency"], &SENT[..], &["--match", "message", "--format", "csv"]].concat());
    assert!(csv.starts_with("count,min_ns,avg_ns,"), "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with(&format!("5,{},", sorted[0])), "{csv}");
    let one = json(&[
        "latency",
        "--begin",
        "reactivity:sent_msg where message == 2",
        "--end",
        "*:received_msg",
        "--match",
        "message",
    ]);
    assert_eq!((&one["count"], &one["unmatched_ends"]), (&Value::from(1), &Value::from(4)));
}

#[test]
fn groups_are_those_of_the_ends() {
    let late = late();
    let of_messages = [&["latency"], &SENT[..], &["--match", "message", "--by", "message"]].concat();
    let table = json(&of_messages);
    let groups = table["groups"].as_array().unwrap();
    let group = |group: &Value| {
        assert_eq!((&group["count"], &group["group"][0][0]), (&Value::from(1), &Value::from("message")));
        assert_eq!(group["min_ns"], group["max_ns"]);
        (group["group"][0][1].as_str().unwrap().parse().unwrap(), group["max_ns"].as_u64().unwrap())
    };
    assert_eq!(groups.iter().map(group).collect::<BTreeMap<u64, u64>>(), late);
    assert!(
        groups.is_sorted_by_key(|group| std::cmp::Reverse(group["max_ns"].as_u64())),
        "longest in all first"
    );
    let whole =
        json(&[&["latency"], &SENT[..], &["--match", "message", "--by", "$event,message,$process"]].concat());
    assert_eq!(whole["groups"][0]["group"][0][1], "reactivity:received_msg");
    assert_eq!(whole["groups"].as_array().unwrap().len(), MESSAGES);
    let csv = printed(&[&of_messages[..], &["--format", "csv"]].concat());
    assert_eq!((csv.lines().count(), csv.starts_with("group,count,")), (1 + MESSAGES, true), "{csv}");
    let output = tracewing(&[&["latency"], &SENT[..], &["--by", "nothing"]].concat());
    assert!(!output.status.success() && output.notes().contains("`nothing` to group by"));
}

#[test]
fn a_switch_that_ends_a_wait_is_grouped_by_its_next_thread() {
    let ends = ["--begin", "user_thread:wake", "--end", "user_thread:switch", "--nested", "latest"];
    let table = json(
        &[&["latency"], &ends[..], &["--match", "thread=next", "--by", "next,$task,$task_name"]].concat(),
    );
    let groups = table["groups"].as_array().unwrap();
    assert!(groups.len() > 1, "{table}");
    for group in groups {
        let [next, task, name] = [0, 1, 2].map(|place| group["group"][place][1].as_str().unwrap_or_default());
        let (_, number) = task.split_once('/').unwrap();
        assert_eq!(next, number, "{group}");
        assert!(name == "daemon" || name.starts_with("work/") || name == "main", "{group}");
    }
    if has_kernel() {
        let ends = ["--begin", "sched_waking", "--end", "sched_switch", "--nested", "latest"];
        let groups =
            json(&[&["latency"], &ends[..], &["--match", "tid=next_tid", "--by", "next_tid,$tid"]].concat());
        let groups = groups["groups"].as_array().unwrap();
        assert!(!groups.is_empty());
        assert!(groups.iter().all(|group| group["group"][0][1] == group["group"][1][1]), "{groups:?}");
    }
}

/// Periods of events that `tracewing list` prints: each end has the latest begin with an equal key. Sorted
/// lengths.
fn periods(begin: &str, end: &str, key: impl Fn(&Value) -> [Value; 2]) -> Vec<u64> {
    let (mut open, mut periods) = (BTreeMap::<String, Vec<u64>>::new(), Vec::new());
    for line in printed(&["list", "-e", begin, "-e", end, "--format", "json"]).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let (ns, name) = (event["ns"].as_u64().unwrap(), event["event"].as_str().unwrap());
        let [begin_key, end_key] = key(&event).map(|key| key.to_string());
        if name.starts_with(end.trim_end_matches('*')) {
            periods.extend(open.get_mut(&end_key).and_then(Vec::pop).map(|begin| ns - begin));
        }
        if name.starts_with(begin.trim_end_matches('*')) {
            open.entry(begin_key).or_default().push(ns);
        }
    }
    periods.sort_unstable();
    periods
}

#[test]
fn events_are_matched_by_fields_of_any_type_and_by_their_owner() {
    let received = "reactivity:received_msg";
    let of = |begin: &str, end: &str, by: &str| {
        json(&["latency", "--begin", begin, "--end", end, "--match", by, "-n", "1"])
    };
    // Only one task receives messages, so that it is the same one adds nothing; the event is end and
    // beginning.
    let table = of(received, received, "$task");
    let expected = periods(received, received, |_| [Value::Null, Value::Null]);
    assert_eq!((table["count"].as_u64(), table["max_ns"].as_u64()), (Some(4), expected.last().copied()));
    let key = &table["worst"][0]["key"][0];
    assert!(key[0] == "$task" && key[1].as_str().is_some_and(|key| key.split_once('/').is_some()), "{key}");
    if !has_kernel() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            "no kernel events were recorded",
        );
    }
    let check = |table: &Value, expected: &[u64]| {
        let figures = ["count", "min_ns", "p50_ns", "max_ns"].map(|name| table[name].as_u64().unwrap());
        let middle = expected[expected.len().div_ceil(2) - 1];
        assert_eq!(figures, [expected.len() as u64, expected[0], middle, expected[expected.len() - 1]]);
    };
    let by_thread = |event: &Value| [0; 2].map(|_| event["common_context"]["tid"].clone());
    check(
        &of("syscall_entry_*", "syscall_exit_*", "$tid"),
        &periods("syscall_entry_*", "syscall_exit_*", by_thread),
    );
    for (begin, end) in [("tid", "next_tid"), ("comm", "next_comm")] {
        let by_field = |event: &Value| [begin, end].map(|field| event["payload"][field].clone());
        let expected = periods("sched_waking", "sched_switch", by_field);
        let table = of("sched_waking", "sched_switch", &format!("{begin}={end}"));
        check(&table, &expected);
        // The event is about the thread that gets the CPU, unless that thread was not seen before: another
        // one of its name was woken.
        let worst = &table["worst"][0];
        if begin == "tid" || !worst["thread"].is_null() {
            assert_eq!(worst["thread"]["subject"]["tid"], worst["end"]["tid"]);
        }
        if begin == "tid" {
            assert_eq!(sum(&worst["thread"]), worst["duration_ns"].as_u64().unwrap());
            assert_eq!(worst["key"][0][1], worst["end"]["tid"].to_string());
        }
    }
}

#[test]
fn contradictory_options_are_reported() {
    for (options, reported) in [
        (&["--begin", "nothing", "--end", "*"][..], "no event is called `nothing`"),
        (&["--begin", "*:sent_msg", "--end", "*:received_msg", "--match", "size"], "has `size`"),
        (&["--begin", "*:sent_msg where x >", "--end", "*"], "expected a field or a value"),
        (&["--begin", "*:sent_msg where", "--end", "*"], "expected a field or a value"),
        (&["--begin", "*:sent_msg", "--end", "nothing", "--by", "a"], "no event is called `nothing`"),
        (&["--begin", "*:sent_msg where x > 1", "--end", "*"], "no event has what the condition asks for"),
        (&["--begin", "*:sent_msg", "--end", "*", "--match", "a=b=c"], "write `==` to compare"),
    ] {
        let output = tracewing(&[&["latency"], options].concat());
        let error = output.notes();
        assert!(!output.status.success() && error.contains(reported), "{options:?}: {error}");
    }
    for (options, reported) in [
        (&["--tid", "1"][..], "thread 1 does not appear"),
        (&["--task", "work/*"], "ambiguous"),
        (&[], "--task"),
        (&["--task", "1", "--task", "2"], "one task or thread"),
        (&["--task", "1", "--cpu", "0"], "--cpu cannot leave out"),
        (&["--task", "1", "--where", "$mode == 'user'"], "--where cannot leave out"),
        (
            &["--task", "daemon", "--process", "nobody"],
            "the requested task of the requested process does not appear",
        ),
    ] {
        let output = tracewing(&[&["critical-path"], options].concat());
        let error = output.notes();
        assert!(!output.status.success() && error.contains(reported), "{options:?}: {error}");
    }
}

/// The sum of the parts of a task's, or a thread's, time.
fn sum(episode: &Value) -> u64 {
    let times = &episode["times"];
    let parts = ["running_ns", "ready_ns", "blocked_ns", "nested_ns", "unknown_ns"];
    parts.iter().map(|part| times[*part].as_u64().unwrap_or(0)).sum()
}

#[test]
fn the_worst_period_is_taken_apart_and_its_path_leads_over_other_tasks() {
    if !has_kernel() {
        return tracewing_testing::skip(
            tracewing_testing::Cause::KernelEvents,
            "no kernel events were recorded",
        );
    }
    // The kernel has the message when its softirq for received packets runs.
    let begin = "irq_softirq_entry where vec == 3";
    let question =
        ["latency", "--begin", begin, "--end", "reactivity:received_msg", "--nested", "queue", "-n", "1"];
    let table = json(&question);
    assert!(table["count"].as_u64().unwrap() >= 1, "{table}");
    let worst = &table["worst"][0];
    let ns = worst["duration_ns"].as_u64().unwrap();
    assert_eq!(worst["task"]["subject"]["task_name"], "daemon");
    assert_eq!((sum(&worst["task"]), sum(&worst["thread"])), (ns, ns), "{worst}");
    assert!(printed(&question).contains("(daemon): "));

    let seconds = |at: &Value| {
        let ns = at["ns"].as_i64().unwrap();
        format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
    };
    let (from, to) = (seconds(&worst["begin"]), seconds(&worst["end"]));
    let path = json(&["critical-path", "--task", "daemon", "--from", &from, "--to", &to]);
    let same = ["--task", "daemon", "--process", "reactivity", "--from", &from, "--to", &to];
    assert_eq!(path, json(&[&["critical-path"], &same[..]].concat()));
    let steps = path["steps"].as_array().unwrap();
    assert_eq!(steps.iter().map(|step| step["duration_ns"].as_u64().unwrap()).sum::<u64>(), ns);
    for sums in [&path["by_subject"], &path["by_activity"]] {
        let sums = sums.as_array().unwrap().iter();
        assert_eq!(sums.map(|sum| sum["duration_ns"].as_u64().unwrap()).sum::<u64>(), ns);
    }
    let times = |step: &Value| [&step["begin_ns"], &step["end_ns"]].map(|ns| ns.as_i64().unwrap());
    assert!(steps.windows(2).all(|pair| times(&pair[0])[1] == times(&pair[1])[0]));
    // It came while another task had the only worker, or waited for that.
    let others =
        steps.iter().filter(|step| step["task_name"].as_str().is_some_and(|name| name.starts_with("work/")));
    let others: Vec<_> = others.collect();
    assert!(others.iter().all(|step| step["reason"] == "has the thread for"), "{others:?}");
    assert!(!others.is_empty(), "{path}");
}
