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

/// A thread is woken on a chosen CPU and switched to on another: its next switch on the chosen one is not the
/// end of that. What threads did in a period is not filtered.
#[test]
fn periods_of_a_cpu_are_among_those_of_all() {
    if !has_kernel() {
        return;
    }
    let latency = |filter: &[&str]| -> Value {
        let question = ["latency", "trace", "--begin", "sched_waking", "--end", "sched_switch"];
        let options = ["--match", "tid=next_tid", "-n", "1000000", "--format", "json"];
        serde_json::from_str(&run(&[&question, &options, filter].concat())).expect("JSON")
    };
    let key = |period: &Value| [&period["begin"]["ns"], &period["end"]["ns"]].map(|ns| ns.as_i64().unwrap());
    let periods = |table: &Value| -> HashMap<[i64; 2], Value> {
        let worst = table["worst"].as_array().expect("a list").iter();
        worst.map(|period| (key(period), period.clone())).collect()
    };
    let whole = latency(&[]);
    assert_eq!(whole["across_left_out"], 0);
    let whole = periods(&whole);
    let cpus: BTreeSet<u64> = super_trace(&[]).iter().filter_map(|event| event["cpu"].as_u64()).collect();
    for cpu in cpus {
        let table = latency(&["--cpu", &cpu.to_string()]);
        assert!(table["across_left_out"].is_u64(), "{table}");
        for (key, period) in periods(&table) {
            assert_eq!(Some(&period), whole.get(&key));
        }
    }
}

/// Columns of a row that are 0 or more.
fn known(row: &Value, columns: &[&'static str]) -> Vec<&'static str> {
    columns.iter().copied().filter(|column| !row[*column].is_null()).collect()
}

#[test]
fn counts_of_all_cpus_add_up_and_waits_are_of_none() {
    const COUNTS: [&str; 6] =
        ["switches", "preemptions", "system_calls", "page_faults", "user_events", "polls"];
    const WAITS: [&str; 7] =
        ["ready_ns", "blocked_ns", "nested_ns", "unknown_ns", "blocked_on", "migrations", "wakeups"];
    if !has_kernel() {
        return;
    }
    let process = tasks().0.to_string();
    let cpus: BTreeSet<u64> = super_trace(&[]).iter().filter_map(|event| event["cpu"].as_u64()).collect();
    let parts = |by: &str, filter: &dyn Fn(u64) -> [String; 2]| -> Vec<Value> {
        let of = |cpu| {
            let [option, value] = filter(cpu);
            threads(by, &["--process", &process, &option, &value])
        };
        cpus.iter().flat_map(|cpu| of(*cpu)).collect()
    };
    let filters: [&dyn Fn(u64) -> [String; 2]; 2] = [&|cpu| ["--cpu".to_owned(), cpu.to_string()], &|cpu| {
        ["--where".to_owned(), format!("$cpu == {cpu}")]
    }];
    for filter in filters {
        let (whole, of_cpus) = (threads("thread", &["--process", &process]), parts("thread", filter));
        for count in COUNTS {
            assert_eq!(sum(&of_cpus, &[count]), sum(&whole, &[count]), "{count}");
        }
        assert!(of_cpus.iter().all(|row| known(row, &WAITS).is_empty()), "{of_cpus:?}");
        let (whole, of_cpus) = (threads("task", &["--process", &process]), parts("task", filter));
        assert_eq!(sum(&of_cpus, &["polls"]), sum(&whole, &["polls"]));
        assert!(of_cpus.iter().all(|row| known(row, &WAITS).is_empty()), "{of_cpus:?}");
    }
}

/// Where the kernel's events are not recorded, those of the program still say on which CPU they were.
#[test]
fn without_the_kernel_polls_of_all_cpus_add_up_and_their_time_is_unknown() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filters-no-kernel");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("a folder");
    let mut record = harness::tracewing();
    record.current_dir(&folder).args(["record", "--no-kernel", "-o", "trace", "--"]).arg(program());
    record.args(["--tasks", "4", "--quantum", "1", "--messages", "3"]).stdout(Stdio::null()).succeeds();
    let rows = |arguments: &[&str]| -> Vec<Value> {
        let mut command = harness::tracewing();
        command.current_dir(&folder).args(["tasks", "trace", "--format", "json"]).args(arguments);
        let all: Value = serde_json::from_str(&command.succeeds().text()).expect("JSON");
        all["tasks"].as_array().expect("rows").clone()
    };
    let files = std::fs::read_dir(folder.join("trace/user")).expect("a folder");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("UTF-8"));
    let cpus = names.filter_map(|name| Some(name.rsplit_once('_')?.1.to_owned()));
    let of_cpus: Vec<Value> = cpus.flat_map(|cpu| rows(&["--cpu", &cpu])).collect();
    let whole = rows(&[]);
    assert!(sum(&whole, &["polls"]) > 0);
    assert_eq!(sum(&of_cpus, &["polls"]), sum(&whole, &["polls"]));
    assert!(of_cpus.iter().all(|row| row["busy_ns"].is_null()), "{of_cpus:?}");
    assert!(whole.iter().all(|row| row["busy_ns"].is_u64()), "{whole:?}");
}

#[test]
fn counts_of_a_task_are_of_what_threads_did_for_it() {
    let (process, ..) = tasks();
    let process = process.to_string();
    let whole = threads("thread", &["--process", &process]);
    let number = |row: &Value| row["task"].as_u64().expect("a number").to_string();
    let of_tasks: Vec<Value> = threads("task", &["--process", &process])
        .iter()
        .flat_map(|row| threads("thread", &["--process", &process, "--task", &number(row)]))
        .collect();
    assert_eq!(sum(&of_tasks, &["polls"]), sum(&whole, &["polls"]));
    if has_kernel() {
        let calls = ["system_calls"];
        assert!(sum(&of_tasks, &calls) < sum(&whole, &calls), "the workers make calls between tasks");
        assert!(of_tasks.iter().all(|row| known(row, &["migrations", "wakeups"]).is_empty()));
    }
}

#[test]
fn what_is_on_no_cpu_is_unknown_with_its_reason() {
    if !has_kernel() {
        return;
    }
    // Columns that are unknown of chosen CPUs, and one that is not.
    let cases: [(&[&str], &str, &[&'static str], &str); 4] = [
        (
            &["sched", "latency"],
            "threads",
            &["avg_delay_ns", "max_delay_ns", "switches", "unknown_ns"],
            "running_ns",
        ),
        (
            &["tasks"],
            "tasks",
            &[
                "busy_ns",
                "scheduled_ns",
                "idle_ns",
                "nested_ns",
                "unknown_ns",
                "avg_delay_ns",
                "longest_poll_ns",
                "slept_ns",
                "long_polls",
                "blocking_polls",
                "spurious_polls",
            ],
            "running_ns",
        ),
        (&["threads"], "threads", &["ready_ns", "blocked_ns", "unknown_ns"], "running_ns"),
        (&["breakdown"], "rows", &["ipc_ns", "ipc_waits", "blocked_ns", "ready_ns", "woke"], "running_ns"),
    ];
    for (command, key, unknown, is_known) in cases {
        for filter in [["--cpu", "0-1000000"], ["--where", "$cpu < 1000000"]] {
            let mut tracewing = harness::tracewing();
            tracewing.current_dir(recording()).args(command).args(["trace", "--format", "json"]).args(filter);
            let output = tracewing.ran();
            let table: Value = serde_json::from_str(&output.text()).expect("JSON");
            let rows = table[key].as_array().expect("a list");
            assert!(rows.iter().any(|row| !row[is_known].is_null()), "{command:?}: {rows:?}");
            let some: Vec<_> =
                rows.iter().map(|row| known(row, unknown)).filter(|row| !row.is_empty()).collect();
            assert!(some.is_empty(), "{command:?} {filter:?}: {some:?}");
            let said = output.notes();
            assert!(said.contains("The filter chooses CPUs, and threads wait on none: "), "{said}");
        }
    }
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
