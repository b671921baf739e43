//! Extracts: what they know of names, times and switches that are not in them.

use super::*;

/// Threads of a part of the recording.
fn threads_of(trace: &str, options: &[&str]) -> Vec<Value> {
    let printed = run(&[&["threads", trace, "--format", "json"], options].concat());
    let mut table: Value = serde_json::from_str(&printed).expect("one JSON object");
    table["threads"].as_array_mut().expect("rows").drain(..).collect()
}

#[test]
fn an_extract_has_names_and_its_beginning() {
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
    let reported = run(&["list", "late", "-e", "tracewing:thread", "--from", "2001-01-01"]);
    assert_eq!(reported, run(&["list", "trace", "-e", "tracewing:thread"]), "recorded before it begins");
    let first = |trace: &str, options: &[&str]| {
        let listed = run(&[&["list", trace, "-n", "1", "--clock-cycles"], options].concat());
        listed.split(']').next().expect("a date").to_owned()
    };
    assert_eq!(first("late", &[]), first("trace", &filter));
    assert_eq!(first("late", &["--from", "+0s"]), first("trace", &filter));
    let report: Value = serde_json::from_str(&run(&["info", "late", "--format", "json"])).expect("JSON");
    let begin = super_trace(&filter).first().expect("it has events")["ns"].clone();
    assert_eq!(report["begin_ns"], begin, "what is recorded before it does not extend its time");
    // Without its beginning, a part of the part is the same.
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
fn an_extract_names_tasks_created_before_it() {
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
fn an_extract_without_switches_has_the_threads_own_names() {
    if !traceable() {
        return;
    }
    // Only a switch has the name that a worker gave itself.
    let filter = ["-e", "syscall_*", "--from", "reactivity:received_msg#2"];
    let of = |trace: &str, filter: &[&str]| {
        let options = ["--clock-cycles", "-e", "syscall_*", "--where", "$comm == 'tokio-rt-worker'"];
        run(&[&["list", trace], &options[..], filter].concat())
    };
    run(&[&["extract", "trace", "-o", "called"], &filter[..]].concat());
    let whole = of("trace", &filter[2..]);
    assert!(!whole.is_empty());
    assert_eq!(of("called", &[]), whole);
    // For threads that begin in it, the thread that made them gives at least their first name.
    run(&["extract", "trace", "-o", "made", "-e", "syscall_*"]);
    let rows = threads_of("made", &["--process", "reactivity"]);
    assert!(rows.len() > 2 && rows.iter().all(|row| row["name"] != ""), "{rows:?}");
}

#[test]
fn what_an_extract_leaves_out_is_unknown_in_it() {
    if !traceable() {
        return;
    }
    let (_, work, _) = tasks();
    // Threads that were created before it are in their process.
    run(&["extract", "trace", "-o", "of-kernel", "--kernel", "--from", "reactivity:received_msg#2"]);
    assert!(threads_of("of-kernel", &["--process", "reactivity"]).len() > 2);
    let known = |row: &Value| sum(std::slice::from_ref(row), &["running_ns", "ready_ns", "blocked_ns"]);
    // What workers did for the task, and nothing else. Events of others may show that one of the task's is
    // missing, for example where a kernel does not record when a CPU's idle thread stops: time that looked
    // like running without them is then unknown.
    run(&["extract", "trace", "-o", "of-task", "--task", "work/1"]);
    let [rows, whole] = [threads_of("of-task", &[]), threads("thread", &["--task", "work/1"])];
    let doubtful = sum(&whole, &["unknown_ns"]);
    let part: u64 = rows.iter().map(known).sum();
    assert!(part > 0 && part <= whole.iter().map(known).sum::<u64>() + doubtful, "{rows:?} of {whole:?}");
    let running = |rows: &[Value]| sum(rows, &["running_ns"]);
    let difference = running(&rows).abs_diff(running(&whole));
    assert!(difference <= doubtful + running(&whole) / 1000, "{rows:?} of {whole:?}");
    // Where a CPU or an LWP was left out: what happened there to a thread that was elsewhere before.
    let cpu = cpu_of(tasks().0).to_string();
    run(&["extract", "trace", "-o", "of-cpu", "--cpu", &cpu]);
    let rows = threads_of("of-cpu", &[]);
    assert!(running(&rows) > 0);
    assert!(rows.iter().all(|row| row["ready_ns"] == 0 && row["blocked_ns"] == 0), "{rows:?}");
    let whole = threads("thread", &["--cpu", &cpu]);
    assert!(running(&rows) <= running(&whole), "{rows:?} of {whole:?}");
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
fn an_extract_has_times_of_its_own_threads_only() {
    if !traceable() {
        return;
    }
    let (process, work, _) = tasks();
    let all = places();
    let tid = all.iter().find(|(.., next)| next.2 == Some(work)).and_then(|(_, here, _)| here.1);
    let tid = tid.expect("a worker runs the task").to_string();
    let is_stranger = |place: &Place| place.0 != Some(process) && place.1.is_some_and(|tid| tid != 0);
    let stranger = all.iter().map(|(_, here, _)| here).find(|here| is_stranger(here));
    let stranger = stranger.and_then(|here| here.1).expect("another process appears").to_string();
    let pid = process.to_string();
    let known = ["running_ns", "ready_ns", "blocked_ns"];
    let number = |row: &Value| row["tid"].as_i64().expect("a number");
    let filters: [&[&str]; 4] =
        [&["--tid", &tid], &["--process", &pid], &["--process", "react*"], &["--tid", &stranger]];
    for (place, filter) in filters.into_iter().enumerate() {
        let part = format!("of-filter-{place}");
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
            let reported = numbers(table["threads"].as_array().expect("rows"));
            assert!(reported.is_subset(&numbers(&whole)), "{filter:?}: {reported:?}");
        }
    }
}

#[test]
fn no_thread_is_reported_as_running_where_switches_were_left_out() {
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
