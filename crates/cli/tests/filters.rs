//! Filters, end to end: a program whose tasks share two workers is recorded, and each filter gives the events
//! that a plain reading of `tracewing list --super` gives, with every command, and in what
//! `tracewing extract` writes. As root with the events of the kernel, else without.

mod recorded;

use recorded::{build, traceable};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const TRACEWING: &str = env!("CARGO_BIN_EXE_tracewing");

/// A recording that all tests read.
fn recording() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let program = build(&["-p", "reactivity"]).join("reactivity");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filters");
        // From an earlier run, if there was one.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder");
        let mut record = Command::new(TRACEWING);
        record.args(["record", "-o"]).arg(folder.join("trace"));
        if !traceable() {
            record.arg("--no-kernel");
        }
        record.arg("--").arg(program).args(["--tasks", "4", "--quantum", "4", "--messages", "3"]);
        let output = record.stdout(Stdio::null()).output().expect("tracewing starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder
    })
}

#[track_caller]
fn run(arguments: &[&str]) -> String {
    let output = Command::new(TRACEWING).current_dir(recording()).args(arguments).output();
    let output = output.expect("tracewing starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn has_kernel() -> bool {
    recording().join("trace/kernel").exists()
}

/// Lines of `list --super`, in their order.
fn super_trace(filter: &[&str]) -> Vec<Value> {
    let text = run(&[&["list", "trace", "--super", "--format", "json"], filter].concat());
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Whom an event belongs to, and whom a switch leads to: (process, LWP, task).
type Place = (Option<i64>, Option<i64>, Option<u64>);

/// All events with their places, by the switches alone.
fn places() -> Vec<(Value, Place, Place)> {
    let mut carried: HashMap<i64, u64> = HashMap::new();
    let mut processes: HashMap<i64, i64> = HashMap::new();
    let mut found = Vec::new();
    // Of the command the recording says it before all events.
    let metadata = std::fs::read_to_string(recording().join("trace/kernel/metadata")).unwrap_or_default();
    let root =
        metadata.split_once("root_process = ").and_then(|(_, rest)| rest.split_once(';')?.0.parse().ok());
    processes.extend(root.map(|root: i64| (root, root)));
    for event in super_trace(&[]) {
        let (process, tid, task) = (event["pid"].as_i64(), event["tid"].as_i64(), event["thr"].as_u64());
        let mut next = (None, None, None);
        if let (Some(process), Some(tid)) = (process, tid) {
            processes.insert(tid, process);
        }
        match (event["name"].as_str().expect("a name"), tid) {
            ("user_thread:switch", Some(tid)) => {
                let to = event["params"]["next"].as_u64().expect("a number");
                carried.insert(tid, to);
                next = (process, None, Some(to));
            }
            // What is created belongs to itself, too.
            ("user_thread:create", Some(_)) => {
                next = (process, None, event["params"]["thread"].as_u64());
            }
            ("sched_switch", _) => {
                let to = event["params"]["next_tid"].as_i64().expect("a number");
                next = (processes.get(&to).copied(), Some(to), carried.get(&to).copied());
            }
            // What a process begins belongs to it, if it says so (CLONE_THREAD).
            ("task_newtask", Some(_)) => {
                let process = process.unwrap_or_default();
                let number = |field: &str| event["params"][field].as_i64();
                let child = number("tid").or_else(|| number("pid")).expect("a number");
                let is_thread = number("clone_flags").expect("a number") & 0x1_0000 != 0;
                processes.insert(child, if is_thread { process } else { child });
                next = (processes.get(&child).copied(), Some(child), None);
            }
            ("sched_process_fork", _) => {
                let child = event["params"]["child_tid"].as_i64().expect("a number");
                next = (processes.get(&child).copied(), Some(child), None);
            }
            _ => {}
        }
        found.push((event, (process, tid, task), next));
    }
    found
}

/// Two tasks' numbers and the process, as the program tells them.
fn tasks() -> (i64, u64, u64) {
    let created = super_trace(&["-e", "user_thread:create", "-e", "user_thread:origin"]);
    let task = |name: &str| {
        let origin = created.iter().find(|event| event["params"]["name"] == name).expect("it is told");
        let is_its = |event: &&Value| {
            event["name"] == "user_thread:create" && event["params"]["origin"] == origin["params"]["origin"]
        };
        let event = created.iter().find(is_its).expect("it is created");
        (event["pid"].as_i64().expect("a process"), event["params"]["thread"].as_u64().expect("a number"))
    };
    let (work, daemon) = (task("work/1"), task("daemon"));
    (work.0, work.1, daemon.1)
}

/// A CPU on which a worker of the process runs a task: a machine that is busy may have left it only one.
fn cpu_of(process: i64) -> u64 {
    let switches = super_trace(&["-e", "user_thread:switch", "--where", "next != 0"]);
    let switch = switches.iter().find(|event| event["pid"] == process).expect("a task runs");
    switch["cpu"].as_u64().expect("a number")
}

#[test]
fn events_belong_to_whom_they_happen_in_and_to_whom_they_switch() {
    let (process, work, _) = tasks();
    let all = places();
    let tid = all.iter().find(|(.., next)| next.2 == Some(work)).and_then(|(_, here, _)| here.1);
    let tid = tid.expect("a worker runs the task");
    let same = |filter: &[&str], fits: &dyn Fn(&Value, Place) -> bool| {
        let chosen = all.iter().filter(|(event, here, next)| fits(event, *here) || fits(event, *next));
        let chosen: Vec<&Value> = chosen.map(|(event, ..)| event).collect();
        assert!(!chosen.is_empty(), "{filter:?} chooses nothing");
        assert_eq!(super_trace(filter).iter().collect::<Vec<_>>(), chosen, "{filter:?}");
    };
    let of_task = |_: &Value, place: Place| place.2 == Some(work);
    same(&["--task", "work/1"], &of_task);
    same(&["--task", &work.to_string()], &of_task);
    same(&["--task", &format!("{process}/{work}")], &of_task);
    same(&["--tid", &tid.to_string()], &|_, place| place.1 == Some(tid));
    same(&["--process", &process.to_string()], &|_, place| place.0 == Some(process));
    // With the program's events alone, its name is known only when its first thread has told it.
    if has_kernel() {
        // It is called so once it has executed the program.
        let is_exec = |event: &Value| event["name"] == "sched_process_exec" && event["pid"] == process;
        let exec = all.iter().find(|(event, ..)| is_exec(event)).map(|(event, ..)| event["ns"].as_i64());
        let is_called_so = |event: &Value| event["ns"].as_i64() > exec.flatten();
        same(&["--process", "react*"], &|event, place| place.0 == Some(process) && is_called_so(event));
    }
    let cpu = cpu_of(process);
    same(&["--process", &process.to_string(), "--cpu", &cpu.to_string()], &|event, place| {
        place.0 == Some(process) && event["cpu"] == cpu
    });
    same(&["--user"], &|event, _| event["type"] == "USER");
    same(&["--cpu", &cpu.to_string()], &|event, _| event["cpu"] == cpu);
    assert!(super_trace(&["--task", &format!("{}/{work}", process + 1)]).is_empty());
    assert_eq!(super_trace(&["--cpu", "0-1000000"]).len(), all.len());
    if has_kernel() {
        same(&["--kernel"], &|event, _| event["type"] == "KERN");
    }
}

#[test]
fn conditions_ask_for_derived_columns() {
    let (process, work, _) = tasks();
    let same = |condition: &str, fits: &dyn Fn(&Value) -> bool| {
        let mut all = super_trace(&[]);
        all.retain(|event| fits(event));
        assert_eq!(super_trace(&["--where", condition]), all, "{condition}");
        all.len()
    };
    assert!(same("$task_name == 'work/1'", &|event| event["thr_name"] == "work/1") > 0);
    assert!(
        same(&format!("$task == {work} && $mode == 'user'"), &|event| {
            event["thr"] == work && event["mode"] == "user"
        }) > 0
    );
    assert!(
        same(&format!("$pid == {process} && $task == 0"), &|event| event["pid"] == process
            && event["thr"] == 0)
            > 0
    );
    if has_kernel() {
        assert!(
            same("$call =~ 'cl*'", &|event| event["call"]
                .as_str()
                .is_some_and(|call| call.starts_with("cl")))
                > 0
        );
        assert!(same("$mode == 'interrupt'", &|event| event["mode"] == "interrupt") > 0);
    }
}

#[test]
fn every_command_chooses_the_same_and_an_extract_holds_it() {
    let (process, work, _) = tasks();
    let cpu = cpu_of(process).to_string();
    let (process, work) = (process.to_string(), work.to_string());
    let on_cpu = format!("next != 0 && $cpu == {cpu}");
    let filters: &[&[&str]] = &[
        &["--task", &work],
        &["--task", "work/*", "--exclude", "user_thread:wake"],
        &["--process", &process, "--cpu", &cpu],
        &["--process", "reactivity", "--user", "--from", "+1ms", "--to", "+1min"],
        &["--where", "$task_name == 'daemon'", "--from", "reactivity:received_msg#1"],
        &["--from", "reactivity:received_msg#1", "--to", "reactivity:received_msg#3"],
        &["-e", "user_thread:switch", "--where", &on_cpu],
    ];
    for (number, filter) in filters.iter().enumerate() {
        let part = format!("part-{number}");
        // OUT with a name, or the last one of those without.
        let out = if number % 2 == 0 { vec!["-o", &part] } else { vec![part.as_str()] };
        run(&[&["extract", "trace"], &out[..], filter].concat());
        let options = &["--clock-cycles", "--fields", "trace:hostname,trace:domain"];
        let list = |trace: &str, filter: &[&str]| run(&[&["list", trace], &options[..], filter].concat());
        let count = list("trace", filter).lines().count();
        assert!(count > 0, "{filter:?}");
        // Those that tell names are in it whatever is chosen.
        let names = ["lttng_statedump_*", "tracewing:thread", "user_thread:origin", "user_thread:create"];
        let of_kernel = ["task_newtask", "sched_process_fork", "sched_process_exec"];
        let others: Vec<&str> =
            names.iter().chain(&of_kernel).flat_map(|name| ["--exclude", *name]).collect();
        assert!(list(&part, &others) == list("trace", &[&others[..], *filter].concat()), "{filter:?}");
        let statistics: Value =
            serde_json::from_str(&run(&[&["stats", "trace", "--format", "json"], *filter].concat()))
                .expect("JSON");
        assert_eq!(statistics["total"]["events"], count, "{filter:?}");
        let json = format!("{part}.json");
        run(&[&["convert", "trace", "--format", "json", "-o", &json], *filter].concat());
        let converted = std::fs::read_to_string(recording().join(json)).expect("it was written");
        assert!(converted == run(&[&["list", "trace", "--format", "json"], *filter].concat()), "{filter:?}");
        if let Ok(peer) = Command::new("babeltrace2").args(options).arg(recording().join(&part)).output() {
            let all = list(&part, &["--from", "2001-01-01"]);
            assert!(peer.stdout == all.into_bytes(), "babeltrace2 reads {part} otherwise");
        }
    }
}

/// Threads of a part of the recording.
fn threads_of(trace: &str, options: &[&str]) -> Vec<Value> {
    let printed = run(&[&["threads", trace, "--format", "json"], options].concat());
    let mut table: Value = serde_json::from_str(&printed).expect("one JSON object");
    table["threads"].as_array_mut().expect("rows").drain(..).collect()
}

#[test]
fn a_part_knows_names_and_when_it_begins() {
    let filter = ["--from", "reactivity:received_msg#2"];
    run(&[&["extract", "trace", "-o", "late"], &filter[..]].concat());
    let named = |trace, options: &[&str]| -> BTreeSet<(i64, String)> {
        let row = |row: &Value| Some((row["tid"].as_i64()?, row["name"].as_str()?.to_owned()));
        threads_of(trace, options).iter().filter_map(row).collect()
    };
    let of_program = ["--process", "reactivity"];
    let of_part = named("late", &of_program);
    let of_whole = named("trace", &[filter, of_program].concat());
    assert!(!of_part.is_empty() && of_part.is_subset(&of_whole), "{of_part:?} {of_whole:?}");
    let told = run(&["list", "late", "-e", "tracewing:thread", "--from", "2001-01-01"]);
    assert_eq!(told, run(&["list", "trace", "-e", "tracewing:thread"]), "told before it begins");
    let first = |trace: &str, options: &[&str]| {
        let listed = run(&[&["list", trace, "-n", "1", "--clock-cycles"], options].concat());
        listed.split(']').next().expect("a date").to_owned()
    };
    assert_eq!(first("late", &[]), first("trace", &filter));
    assert_eq!(first("late", &["--from", "+0s"]), first("trace", &filter));
    let report: Value = serde_json::from_str(&run(&["info", "late", "--format", "json"])).expect("JSON");
    let begin = super_trace(&filter).first().expect("it has events")["ns"].clone();
    assert_eq!(report["begin_ns"], begin, "what is told before it is no time of it");
    // Without its begin, a part of the part is the same.
    run(&["extract", "late", "-o", "later", "--to", "+1min"]);
    assert_eq!(
        run(&["list", "later", "--from", "2001-01-01"]),
        run(&["list", "late", "--from", "2001-01-01"])
    );
}

/// Tasks of a part of the recording with their names.
fn names_of_tasks(trace: &str, options: &[&str]) -> BTreeSet<(u64, String)> {
    let printed = run(&[&["tasks", trace, "--format", "json"], options].concat());
    let table: Value = serde_json::from_str(&printed).expect("one JSON object");
    let rows = table["tasks"].as_array().expect("rows").iter();
    rows.map(|row| {
        (row["task"].as_u64().expect("a number"), row["name"].as_str().unwrap_or_default().to_owned())
    })
    .collect()
}

#[test]
fn a_part_names_tasks_that_were_created_before_it() {
    let from = ["--from", "reactivity:received_msg#2"];
    let of_whole = names_of_tasks("trace", &from);
    assert!(of_whole.len() == 5 && of_whole.iter().all(|(_, name)| !name.is_empty()), "{of_whole:?}");
    run(&[&["extract", "trace", "-o", "named"], &from[..]].concat());
    assert_eq!(names_of_tasks("named", &[]), of_whole);
    // Only those that it is about.
    run(&[&["extract", "trace", "-o", "named-work", "--task", "work/1"], &from[..]].concat());
    let of_part = names_of_tasks("named-work", &[]);
    assert!(of_part.is_subset(&of_whole), "{of_part:?}");
    assert!(of_part.iter().any(|(_, name)| name == "work/1"), "{of_part:?}");
    // Those that have ended before are no matter of it: when the last message is there, `main` goes to its
    // end.
    let exits =
        super_trace(&["-e", "user_thread:exit", "-e", "user_thread:switch", "--where", "cause == 'ended'"]);
    let end = exits.first().expect("a task ends")["ns"].as_u64().expect("a time") + 1;
    let end = format!("{}.{:09}", end / 1_000_000_000, end % 1_000_000_000);
    run(&["extract", "trace", "-o", "named-late", "--from", &end]);
    assert_eq!(names_of_tasks("named-late", &[]), names_of_tasks("trace", &["--from", &end]));
    assert!(names_of_tasks("named-late", &[]).len() < of_whole.len());
}

#[test]
fn a_part_without_switches_knows_what_threads_call_themselves() {
    if !traceable() {
        return;
    }
    // Only a switch tells what a worker calls itself.
    let filter = ["-e", "syscall_*", "--from", "reactivity:received_msg#2"];
    let of = |trace: &str, filter: &[&str]| {
        let options = ["--clock-cycles", "-e", "syscall_*", "--where", "$comm == 'tokio-rt-worker'"];
        run(&[&["list", trace], &options[..], filter].concat())
    };
    run(&[&["extract", "trace", "-o", "called"], &filter[..]].concat());
    let whole = of("trace", &filter[2..]);
    assert!(!whole.is_empty());
    assert_eq!(of("called", &[]), whole);
    // Of those that begin in it, who made them tells at least how they were called first.
    run(&["extract", "trace", "-o", "made", "-e", "syscall_*"]);
    let rows = threads_of("made", &["--process", "reactivity"]);
    assert!(rows.len() > 2 && rows.iter().all(|row| row["name"] != ""), "{rows:?}");
}

#[test]
fn what_a_part_leaves_out_is_unknown_in_it() {
    if !traceable() {
        return;
    }
    let (_, work, _) = tasks();
    // Threads that were created before it are in their process.
    run(&["extract", "trace", "-o", "of-kernel", "--kernel", "--from", "reactivity:received_msg#2"]);
    assert!(threads_of("of-kernel", &["--process", "reactivity"]).len() > 2);
    let known = |row: &Value| sum(std::slice::from_ref(row), &["running_ns", "waiting_ns", "blocked_ns"]);
    // What workers did for the task, and nothing else. Others' events may show that one of its is missing, as
    // where a kernel does not tell when a CPU's idle thread stops: what was taken for running without them is
    // unknown then.
    run(&["extract", "trace", "-o", "of-task", "--task", "work/1"]);
    let [rows, whole] = [threads_of("of-task", &[]), threads("thread", &["--task", "work/1"])];
    let doubtful = sum(&whole, &["unknown_ns"]);
    let part: u64 = rows.iter().map(known).sum();
    assert!(part > 0 && part <= whole.iter().map(known).sum::<u64>() + doubtful, "{rows:?} of {whole:?}");
    let running = |rows: &[Value]| sum(rows, &["running_ns"]);
    let difference = running(&rows).abs_diff(running(&whole));
    assert!(difference <= doubtful + running(&whole) / 1000, "{rows:?} of {whole:?}");
    // Where a CPU or an LWP was left out, what happened there to who was elsewhere before.
    let cpu = cpu_of(tasks().0).to_string();
    run(&["extract", "trace", "-o", "of-cpu", "--cpu", &cpu]);
    let rows = threads_of("of-cpu", &[]);
    assert!(running(&rows) > 0);
    assert!(rows.iter().all(|row| row["waiting_ns"] == 0 && row["blocked_ns"] == 0), "{rows:?}");
    let whole = threads("thread", &["--cpu", &cpu]);
    assert!(running(&rows) <= running(&whole) + sum(&whole, &["unknown_ns"]), "{rows:?} of {whole:?}");
    let all = places();
    let tid = all.iter().find(|(.., next)| next.2 == Some(work)).and_then(|(_, here, _)| here.1);
    let tid = tid.expect("a worker runs the task").to_string();
    run(&["extract", "trace", "-o", "of-worker", "--tid", &tid]);
    let by_task = run(&["tasks", "of-worker", "--format", "json"]);
    let by_task: Value = serde_json::from_str(&by_task).expect("JSON");
    for row in by_task["tasks"].as_array().expect("rows") {
        assert!(row["scheduled_ns"] == 0 && row["idle_ns"] == 0, "{row}");
    }
}

#[test]
fn a_part_tells_times_of_whom_it_is_of_only() {
    if !traceable() {
        return;
    }
    let (process, work, _) = tasks();
    let all = places();
    let tid = all.iter().find(|(.., next)| next.2 == Some(work)).and_then(|(_, here, _)| here.1);
    let tid = tid.expect("a worker runs the task").to_string();
    let is_stranger = |place: &Place| place.0 != Some(process) && place.1.is_some_and(|tid| tid != 0);
    let stranger = all.iter().map(|(_, here, _)| here).find(|here| is_stranger(here));
    let stranger = stranger.and_then(|here| here.1).expect("another process is met").to_string();
    let pid = process.to_string();
    let known = ["running_ns", "waiting_ns", "blocked_ns"];
    let number = |row: &Value| row["tid"].as_i64().expect("a number");
    let filters: [&[&str]; 4] =
        [&["--tid", &tid], &["--process", &pid], &["--process", "react*"], &["--tid", &stranger]];
    for (place, filter) in filters.into_iter().enumerate() {
        let part = format!("of-whom-{place}");
        run(&[&["extract", "trace", "-o", &part], filter].concat());
        // A part of the part with the same filter is the same.
        let again = format!("{part}-again");
        run(&[&["extract", &part, "-o", &again], filter].concat());
        let whole = threads("thread", filter);
        for part in [&part, &again] {
            let rows = threads_of(part, &[]);
            let numbers = |rows: &[Value]| rows.iter().map(number).collect::<BTreeSet<_>>();
            assert_eq!(numbers(&rows), numbers(&whole), "{filter:?}");
            for row in &rows {
                let same = whole.iter().find(|other| number(other) == number(row)).expect("it has a row");
                for column in known {
                    let [part, whole] = [row, same].map(|row| row[column].as_u64().expect("ns"));
                    assert!(part <= whole, "{filter:?}: {column} {part} ns of {whole} ns: {row}");
                }
            }
            assert_eq!(sum(&rows, &["running_ns"]) > 0, sum(&whole, &["running_ns"]) > 0, "{filter:?}");
            let latencies = run(&["sched", "latency", part, "--format", "json"]);
            let table: Value = serde_json::from_str(&latencies).expect("JSON");
            let told = numbers(table["threads"].as_array().expect("rows"));
            assert!(told.is_subset(&numbers(&whole)), "{filter:?}: {told:?}");
        }
    }
}

#[test]
fn nobody_is_told_to_have_run_where_switches_were_left_out() {
    if !traceable() {
        return;
    }
    let filters: &[&[&str]] = &[
        &["--exclude", "sched_switch"],
        &["--where", "$mode == 'syscall'"],
        &["--user"],
        &["-e", "syscall_*"],
    ];
    for (number, filter) in filters.iter().enumerate() {
        let part = format!("switchless-{number}");
        run(&[&["extract", "trace", "-o", &part], *filter].concat());
        let rows = threads_of(&part, &[]);
        assert!(!rows.is_empty(), "{filter:?}");
        assert!(rows.iter().all(|row| row["running_ns"].is_null()), "{filter:?}: {rows:?}");
    }
    run(&["extract", "trace", "-o", "with-switches", "--exclude", "irq_*"]);
    assert!(threads_of("with-switches", &[]).iter().any(|row| row["running_ns"].as_u64() > Some(0)));
}

#[test]
fn a_word_that_a_column_never_has_is_refused() {
    let cases = [
        ("$state == 'bogus'", "running, runnable, preempted"),
        ("$mode != 'kernel'", "user, syscall, interrupt"),
    ];
    for (condition, words) in cases {
        for command in ["list", "threads", "stats"] {
            let mut tracewing = Command::new(TRACEWING);
            tracewing.current_dir(recording()).args([command, "trace", "--where", condition]);
            let output = tracewing.output().expect("tracewing starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && said.contains(words), "{command} {condition}: {said}");
            assert_eq!(said.matches("has no label").count(), 1, "one reason for all events: {said}");
        }
    }
    let mut tracewing = Command::new(TRACEWING);
    tracewing.current_dir(recording()).args(["list", "trace", "--where", "nosuch == 5"]);
    let said = String::from_utf8_lossy(&tracewing.output().expect("tracewing starts").stderr).into_owned();
    assert_eq!(said.matches("`nosuch`").count(), 1, "{said}");
    assert!(!run(&["list", "trace", "--where", "$state != 'blocked' || $mode =~ 'sys*'"]).is_empty());
}

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
    let mut never = Command::new(TRACEWING);
    never.current_dir(recording()).args(["list", "trace", "--from", "reactivity:*#99"]);
    let output = never.output().expect("tracewing starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("`reactivity:*#99` is no time: 6 such events are in the recording"), "{said}");
    assert!(!output.status.success());
}

/// Rows of `threads --format json`.
fn threads(by: &str, filter: &[&str]) -> Vec<Value> {
    let text = run(&[&["threads", "trace", "--format", "json", "--by", by], filter].concat());
    let table: Value = serde_json::from_str(&text).expect("JSON");
    let key = if by == "task" { "user_threads" } else { "threads" };
    table[key].as_array().expect("a list").clone()
}

fn sum(rows: &[Value], columns: &[&str]) -> u64 {
    rows.iter().flat_map(|row| columns.iter().map(|column| row[column].as_u64().expect("ns"))).sum()
}

#[test]
fn analyses_are_told_of_whom_is_wanted_only() {
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
fn slices_are_those_of_whom_is_wanted_only() {
    if !has_kernel() {
        return;
    }
    let (process, ..) = tasks();
    let slices = |filter: &[&str]| -> Vec<[Value; 3]> {
        let text = run(&[&["sched", "timehist", "trace", "--format", "json"], filter].concat());
        assert!(!text.contains(r#""waker":"""#), "a name that is not known is null");
        let slices = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        slices.map(|slice| ["process", "tid", "time"].map(|name| slice[name].clone())).collect()
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
    const ALL: [&str; 5] = ["running_ns", "waiting_ns", "blocked_ns", "nested_ns", "unknown_ns"];
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
            // The tasks live all the time, and are run before and behind it.
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
