//! What is recorded of a process that was not built for it.

use super::*;
use harness::traceable;
use std::collections::BTreeMap;

const PAUSE: Duration = Duration::from_millis(400);

#[test]
fn all_threads_are_recorded_from_the_attach_on() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut target = Target::start(folder.path(), "subject");
    let known: BTreeMap<i64, String> = target.threads().into_iter().collect();
    let pid = target.pid();
    let recorder = Attached::start(folder.path(), &["--pid", &pid.to_string()]);
    std::thread::sleep(PAUSE);
    target.order("thread");
    std::thread::sleep(PAUSE);
    assert_eq!(target.end(), Some(7));
    let recording = recorder.ended();

    let summary = recording.summary();
    assert_eq!((&summary["state"], &summary["lost_events"]), (&"complete".into(), &0.into()));
    assert_eq!(recording.attached(), [u64::from(pid)]);
    assert_eq!(summary["attached"][0]["name"], "subject");
    // Nothing is called in it.
    assert!(summary["longest_stop_ns"].is_null(), "{summary}");
    let rows: BTreeMap<i64, Value> =
        recording.threads().into_iter().map(|row| (row["tid"].as_i64().unwrap(), row)).collect();
    for (tid, name) in &known {
        let row = rows.get(tid).unwrap_or_else(|| panic!("{name} ({tid}) is missing: {rows:?}"));
        assert_eq!((&row["name"], &row["process"]), (&name.as_str().into(), &pid.into()));
        assert_eq!(row["user_events"], 0);
    }
    let named = |name: &str| rows.values().find(|row| row["name"] == name).unwrap();
    let pause = PAUSE.as_nanos() as u64;
    for worker in ["worker-0", "worker-1"] {
        let row = named(worker);
        assert!(number(row, "running_ns") > 0 && number(row, "switches") > 10, "{row}");
        // It sleeps 2 ms at a time.
        assert!(number(row, "unknown_ns") < pause, "{row}");
    }
    // This thread waited for its input since before the recording, until it was asked to start another one.
    let waiting =
        known.iter().find(|(_, name)| name.starts_with("target::is_run")).map(|(tid, _)| &rows[tid]);
    let waiting = waiting.unwrap();
    assert!(number(waiting, "blocked_ns") >= pause, "{waiting}");
    // A thread that began during the recording is known from its beginning.
    let late = named("late");
    assert!(number(late, "unknown_ns") < pause / 4 && number(late, "switches") > 10, "{late}");

    let info = harness::of(&recording.trace, &["info"]).succeeds().text();
    assert!(info.contains(&format!("attached  process {pid} (subject), recorded since ")), "{info}");
    assert!(info.contains(&format!("attached_processes {pid}")), "{info}");
}

#[test]
fn of_a_process_that_only_sleeps_it_is_known_what_for() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = sleep.id();
    let file = format!("/proc/{pid}/syscall");
    let call = libc::SYS_clock_nanosleep.to_string();
    wait_until("it sleeps", || std::fs::read_to_string(&file).is_ok_and(|text| text.starts_with(&call)));
    let recorder = Attached::start(folder.path(), &["--pid", &pid.to_string()]);
    std::thread::sleep(PAUSE);
    let recording = recorder.stop();
    let rows = recording.threads();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((&row["name"], &row["process"]), (&"sleep".into(), &pid.into()));
    assert_eq!(row["blocked_on"][0]["on"], "clock_nanosleep", "{row}");
    assert!(number(row, "blocked_ns") >= PAUSE.as_nanos() as u64, "{row}");
    assert_eq!((number(row, "running_ns"), number(row, "switches")), (0, 0), "{row}");
    sleep.kill().unwrap();
    sleep.wait().unwrap();
}

#[test]
fn what_it_forks_is_recorded_unless_it_is_not_wanted() {
    if !traceable() {
        return;
    }
    for (options, has_children) in [(&[][..], true), (&["--children"], true), (&["--no-children"], false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut target = Target::start(folder.path(), "subject");
        let pid = target.pid().to_string();
        let recorder = Attached::start(folder.path(), &[&["--pid", &pid], options].concat());
        target.order("fork");
        target.order("thread");
        let late = target.threads().into_iter().find(|(_, name)| name == "late").unwrap().0;
        wait_until("the new thread is recorded", || is_listed("set_event_pid", late));
        assert_eq!(target.end(), Some(7));
        let recording = recorder.ended();
        assert_eq!(recording.has("sleep"), has_children, "{options:?}");
        let names = recording.names(pid.parse().unwrap());
        for name in ["worker-0", "worker-1", "late"] {
            assert!(names.iter().any(|other| other == name), "{options:?}: {name} in {names:?}");
        }
    }
}

/// What a list of the recorder's instance has, of which there is no other at the time.
fn is_listed(list: &str, tid: i64) -> bool {
    let instances = std::fs::read_dir("/sys/kernel/tracing/instances").unwrap().flatten();
    let lists = instances.filter_map(|one| std::fs::read_to_string(one.path().join(list)).ok());
    lists
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .any(|line| line == tid.to_string())
}

/// A process that gets this number; `None` if another one was faster.
fn with_number(tid: i64) -> Option<Child> {
    std::fs::write("/proc/sys/kernel/ns_last_pid", (tid - 1).to_string()).ok()?;
    let mut child = Command::new("sleep").arg("0.3").spawn().unwrap();
    if i64::from(child.id()) == tid {
        return Some(child);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn without_children_a_number_that_another_process_gets_is_not_recorded() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut target = Target::start(folder.path(), "subject");
    let pid = target.pid().to_string();
    let recorder = Attached::start(folder.path(), &["--pid", &pid, "--no-children"]);
    target.order("brief");
    let brief = target.threads().into_iter().find(|(_, name)| name == "brief").unwrap().0;
    wait_until("the thread is recorded", || is_listed("set_event_pid", brief));
    target.order("over");
    wait_until("it is recorded no longer", || is_listed("set_event_notrace_pid", brief));
    let other = (0..100).find_map(|_| with_number(brief));
    if let Some(mut other) = other {
        other.wait().unwrap();
    }
    assert_eq!(target.end(), Some(7));
    let recording = recorder.ended();
    assert!(!recording.has("sleep"), "{:?}", recording.threads());
    assert!(recording.names(pid.parse().unwrap()).iter().any(|name| name == "brief"));
}

#[test]
fn samples_are_of_all_threads_and_each_is_taken_once() {
    if !traceable() {
        return;
    }
    const HERTZ: u64 = 500;
    let folder = tempfile::tempdir().unwrap();
    let mut target = Target::start(folder.path(), "subject");
    let pid = target.pid();
    let options = ["--profile", &HERTZ.to_string(), "--no-kernel", "--pid", &pid.to_string()];
    let recorder = Attached::start(folder.path(), &options);
    std::thread::sleep(PAUSE);
    target.order("thread");
    target.order("fork");
    std::thread::sleep(4 * PAUSE);
    assert_eq!(target.end(), Some(7));
    let recording = recorder.ended();
    recording.summary();

    let list = harness::of(&recording.trace, &["list", "--format", "json"]).succeeds().text();
    let mut periods: BTreeMap<i64, u64> = BTreeMap::new();
    let mut clock = 0;
    let mut children = 0;
    for line in list.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let (context, payload) = (&event["common_context"], &event["payload"]);
        match event["event"].as_str().unwrap() {
            "profile:sample" if context["pid"] == pid => {
                *periods.entry(context["tid"].as_i64().unwrap()).or_default() +=
                    payload["period"].as_u64().unwrap();
            }
            "profile:counters" => clock = payload["task_clock"].as_u64().unwrap(),
            "profile:thread" if payload["name"] == "sleep" => children += 1,
            _ => {}
        }
    }
    // The first thread waits for orders, and may be sampled while it takes one.
    let workers = periods.keys().filter(|tid| **tid != i64::from(pid)).count();
    assert_eq!(workers, 3, "two workers and a later one: {periods:?}");
    assert!(children > 0, "what it forks");
    // By the CPU's clock, a sample's period is nanoseconds of CPU time, so that a thread that was sampled by
    // two events would have twice the time that it ran.
    let sampled: u64 = periods.values().sum();
    let found = harness::json(&recording.trace, &["profile"]);
    if found["trigger"] == "cpu-clock" {
        assert!(sampled < clock + clock / 2, "{sampled} ns sampled, {clock} ns of CPU time");
    }
    let functions = found["profile"].as_array().unwrap();
    assert!(functions.iter().any(|row| row["function"] == "tracewing_test_step"), "{found}");
}

#[test]
fn probes_are_those_of_the_process_alone() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (target, other) = (Target::start(folder.path(), "subject"), Target::start(folder.path(), "subject"));
    let pid = target.pid();
    let probe = format!("{}:tracewing_test_step", folder.path().join("subject").display());
    let options = ["--no-kernel", "--pid", &pid.to_string(), "--probe", &probe];
    let recorder = Attached::start(folder.path(), &options);
    let threads: Vec<i64> = target.threads().into_iter().map(|(tid, _)| tid).collect();
    std::thread::sleep(PAUSE);
    assert_eq!((target.end(), other.end()), (Some(7), Some(7)));
    let recording = recorder.ended();
    if recording.output.notes().contains("no probes") {
        return tracewing_testing::skip(tracewing_testing::Cause::Uprobes, "this kernel has no uprobes");
    }
    recording.summary();
    let list = harness::of(&recording.trace, &["list", "--format", "json"]).succeeds().text();
    let events: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let hits: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "subject:tracewing_test_step").collect();
    assert!(hits.len() > 20, "{}", hits.len());
    for hit in hits {
        assert!(threads.contains(&hit["common_context"]["tid"].as_i64().unwrap()), "{hit}");
    }
}

#[test]
fn a_flight_recorder_has_their_last_events() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = Target::start(folder.path(), "subject");
    let pid = target.pid();
    let recorder = Attached::start(
        folder.path(),
        &["--flight-recorder", "--snapshot-on", "exit", "--pid", &pid.to_string()],
    );
    std::thread::sleep(PAUSE);
    assert!(harness::run(&["snapshot", &recorder.pid().to_string()]).status.success());
    assert_eq!(target.end(), Some(7));
    let recording = recorder.ended();
    let summary = recording.summary();
    assert_eq!(summary["snapshots"].as_array().unwrap().len(), 2, "{summary}");
    for snapshot in ["snapshot-1", "snapshot-2"] {
        let rows = harness::json(&recording.trace.join(snapshot), &["threads"]);
        let names: Vec<&str> =
            rows["threads"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
        assert!(names.contains(&"worker-0") && names.contains(&"worker-1"), "{snapshot}: {names:?}");
        let info = harness::of(&recording.trace.join(snapshot), &["info"]).succeeds().text();
        assert!(info.contains(&format!("attached  process {pid} (subject)")), "{info}");
    }
}
