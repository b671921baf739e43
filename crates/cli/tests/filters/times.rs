//! Times of analyses under filters.

use super::*;

#[test]
fn the_nth_occurrence_bounds_a_time_range() {
    let range = ["--from", "reactivity:received_msg#2", "--to", "reactivity:*_msg#6", "-e", "reactivity:*"];
    let names = |filter: &[&str]| -> Vec<Value> {
        super_trace(filter).into_iter().map(|event| event["name"].clone()).collect()
    };
    let all = names(&["-e", "reactivity:*"]);
    let received: Vec<usize> =
        (0..all.len()).filter(|index| all[*index] == "reactivity:received_msg").collect();
    assert_eq!(received.len(), 3, "{all:?}");
    assert_eq!(names(&range), all[received[1]..=5]);
    let mut never = harness::tracewing();
    never.current_dir(recording()).args(["list", "trace", "--from", "reactivity:*#99"]);
    let output = never.ran();
    let said = output.notes();
    assert!(said.contains("`reactivity:*#99` is not a time: the recording has only 6 such events"), "{said}");
    assert!(!output.status.success());
}

#[test]
fn analyses_get_only_the_selected_threads() {
    let (process, work, _) = tasks();
    let all = threads("task", &[]);
    let row = all.iter().find(|row| row["task"] == work).expect("the task has a row");
    assert_eq!(threads("task", &["--task", "work/1"]), std::slice::from_ref(row));
    let where_task = format!("$task == {work}");
    let on_lwps = threads("task", &["--where", &where_task]);
    assert_eq!(on_lwps, std::slice::from_ref(row));
    if !has_kernel() {
        return;
    }
    // What the workers did for the task is what it did while they ran it.
    let for_task = threads("thread", &["--task", "work/1"]);
    assert!(!for_task.is_empty());
    assert_eq!(sum(&for_task, &["running_ns"]), row["running_ns"].as_u64().expect("ns"));
    let process = process.to_string();
    let cpus: BTreeSet<u64> = super_trace(&[]).iter().filter_map(|event| event["cpu"].as_u64()).collect();
    let running = |filter: &[&str]| {
        sum(&threads("thread", &[&["--process", &process], filter].concat()), &["running_ns"])
    };
    let parts: u64 = cpus.iter().map(|cpu| running(&["--cpu", &cpu.to_string()])).sum();
    assert_eq!(parts, running(&[]));
}

#[test]
fn slices_are_those_of_the_selected_threads() {
    if !has_kernel() {
        return;
    }
    let (process, ..) = tasks();
    let slices = |filter: &[&str]| -> Vec<[Value; 3]> {
        let text = run(&[&["sched", "timehist", "trace", "--format", "json"], filter].concat());
        assert!(!text.contains(r#""waker":"""#), "a name that is not known is null");
        let slices = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        slices.map(|slice| ["process", "tid", "time_ns"].map(|name| slice[name].clone())).collect()
    };
    let mut wanted = slices(&[]);
    wanted.retain(|[of, ..]| *of == process);
    assert!(!wanted.is_empty());
    assert_eq!(slices(&["--process", &process.to_string()]), wanted);
    assert!(slices(&["--process", "reactiv?ty"]).iter().all(|slice| wanted.contains(slice)));
    let latencies =
        run(&["sched", "latency", "trace", "--format", "json", "--process", &process.to_string()]);
    let table: Value = serde_json::from_str(&latencies).expect("JSON");
    let rows = table["threads"].as_array().expect("a list");
    assert!(!rows.is_empty() && rows.iter().all(|row| row["process"] == process), "{rows:?}");
}

#[test]
fn times_are_clipped_to_the_range() {
    const ALL: [&str; 5] = ["running_ns", "ready_ns", "blocked_ns", "nested_ns", "unknown_ns"];
    let range = ["--from", "reactivity:received_msg#1", "--to", "reactivity:received_msg#3"];
    let received = super_trace(&["-e", "reactivity:received_msg"]);
    let time = |index: usize| received[index]["ns"].as_u64().expect("a time");
    let length = time(2) - time(0);
    for by in ["task", "thread"] {
        let (inside, whole) = (threads(by, &range), threads(by, &[]));
        assert!(!inside.is_empty());
        for row in &inside {
            assert!(sum(std::slice::from_ref(row), &ALL) <= length, "{row}");
            if by == "task" {
                let same = whole.iter().find(|other| other["task"] == row["task"]).expect("it has a row");
                assert!(row["polls"].as_u64() <= same["polls"].as_u64(), "{row}");
            }
        }
        if by == "task" {
            // The tasks live all the time, and run before and after it.
            assert_eq!(inside.len(), 5);
            assert_eq!(sum(&inside, &ALL), 5 * length);
            assert!(sum(&inside, &["polls"]) < sum(&whole, &["polls"]));
        }
    }
}

#[test]
fn no_time_lies_outside_of_the_recording() {
    let duration = |filter: &[&str]| {
        let text = run(&[&["threads", "trace", "--format", "json"], filter].concat());
        let table: Value = serde_json::from_str(&text).expect("JSON");
        (table["duration_ns"].clone(), table["threads"].clone())
    };
    assert_eq!(duration(&["--from", "2000-01-01"]), duration(&[]));
    for outside in [["--to", "2000-01-01"], ["--from", "+1h"]] {
        assert_eq!(duration(&outside), (Value::from(0), Value::Array(Vec::new())), "{outside:?}");
    }
}
