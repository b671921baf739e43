//! Waits: deadlocks, futexes, and waits at the ends of threads and extracts.

use super::*;

/// Has a flight recorder take a snapshot; then its program ends, which waits for the end of its input.
fn snapshot_and_end(mut recorder: Child) -> PathBuf {
    let mut snapshot = harness::tracewing();
    let snapshot = snapshot.args(["snapshot", &recorder.id().to_string()]).succeeds();
    drop(recorder.stdin.take());
    assert!(recorder.wait().unwrap().success());
    PathBuf::from(snapshot.text().trim_end())
}

#[test]
fn processes_of_threads_are_known_where_a_flight_recorder_has_overwritten_the_events_that_named_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "twins", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let small = ["--locks", "--flight-recorder", "--sub-buffer-size", "16K", "--sub-buffers", "2"];
    let mut recorder = recorder(place.path(), &small).arg(program).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
    let mut twins = || -> BTreeSet<String> { lines.by_ref().take(2).map(Result::unwrap).collect() };
    let expected = twins();
    // The second child may get its buffers late, and loses what it does before.
    tracewing_testing::wait_until("both children take part", || {
        let rules = recorded::confirmed("rules", &recorder.id().to_string(), &["--format", "json"]);
        serde_json::from_slice::<Value>(&rules).unwrap()["programs"] == 3
    });
    recorder.stdin.as_mut().unwrap().write_all(b".").unwrap();
    assert_eq!(twins(), expected);
    let snapshot = snapshot_and_end(recorder);
    let locks = || {
        let mut locks = harness::tracewing();
        let output = locks.args(["locks", "--format", "json"]).arg(&snapshot).ran();
        let warnings = output.notes();
        (output.json(), warnings)
    };
    let (table, warnings) = locks();
    assert!(!warnings.contains("No event shows the process"), "{warnings}");
    let rows = table["locks"].as_array().unwrap();
    let found =
        rows.iter().map(|row| format!("{} {}", row["process"], row["lock"].as_str().unwrap())).collect();
    assert_eq!(expected, found, "{table}");
    assert!(rows.iter().all(|row| row["name"] == "twins"), "{table}");
    for file in ["threads", "index/threads.idx"] {
        fs::remove_file(snapshot.join("user").join(file)).unwrap();
    }
    let (table, warnings) = locks();
    assert!(warnings.contains("No event shows the process of 2 threads"), "{warnings}");
    assert_eq!(table["locks"].as_array().unwrap().len(), 1, "{table}");
}

#[test]
fn threads_that_wait_for_each_other_are_reported_as_a_deadlock() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "deadlock", &["-g"]) else { return };
    let place = tempfile::tempdir().unwrap();
    let mut recorder = recorder(place.path(), &["--locks", "--flight-recorder"]);
    let mut recorder = recorder.arg(program).stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let tids: Vec<&str> = line.split_whitespace().collect();
    let snapshot = snapshot_and_end(recorder);
    let graph = |options: &[&str]| {
        let mut command = harness::tracewing();
        command.arg("locks").arg(&snapshot).args(options).succeeds().text()
    };
    let table: Value = serde_json::from_str(&graph(&["--graph", "--format", "json"])).unwrap();
    let mut waits: Vec<(&str, &str, Option<u64>)> = Vec::new();
    let number = |party: &'_ Value| party.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let rows: Vec<_> =
        table["graph"].as_array().unwrap().iter().filter(|row| !row["pending_ns"].is_null()).collect();
    let numbers: Vec<_> = rows.iter().map(|row| (number(&row["waiter"]), number(&row["owner"]))).collect();
    for ((waiter, owner), row) in numbers.iter().zip(&rows) {
        assert!(row["at"].as_str().unwrap().contains("(deadlock.c:"), "{row}");
        waits.push((waiter, owner, row["deadlock"].as_u64()));
    }
    waits.sort_unstable();
    let mut expected = vec![
        (tids[0], tids[1], Some(1)),
        (tids[1], tids[2], Some(1)),
        (tids[2], tids[0], Some(1)),
        (tids[3], tids[1], None),
    ];
    expected.sort_unstable();
    assert_eq!(waits, expected);
    let text = graph(&["--graph"]);
    assert!(text.contains("deadlock 1: none of these can continue\n"), "{text}");
    let dot = graph(&["--graph=dot"]);
    assert_eq!(dot.matches(" -> ").count(), 4, "{dot}");
    assert_eq!(dot.matches("color=red").count(), 3, "{dot}");
}

#[test]
fn a_deadlock_is_reported_even_if_younger_events_of_others_were_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "deadlock", &["-g"]) else { return };
    let place = tempfile::tempdir().unwrap();
    let small = ["--locks", "--flight-recorder", "--sub-buffers", "2", "--sub-buffer-size", "4K"];
    let mut recorder = recorder(place.path(), &small);
    let mut recorder = recorder.arg(program).arg("noise").stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let snapshot = snapshot_and_end(recorder);
    let mut command = harness::tracewing();
    let output = command.args(["locks", "--graph"]).arg(&snapshot).ran();
    let [text, warning] = [output.text(), output.notes()];
    if !warning.contains("older events were overwritten in some buffers") {
        tracewing_testing::skip(tracewing_testing::Cause::OneCpu, "there is one CPU only");
        return;
    }
    assert!(text.contains("deadlock 1: none of these can continue\n"), "{text}");
    assert_eq!(text.matches(" has waited for ").count(), 3, "{text}");
    // Of the fourth, which waits for them, it is not known.
    assert_eq!(text.lines().filter(|line| line.contains("mutex  0x")).count(), 3, "{text}");
}

#[test]
fn what_was_waited_for_before_a_part_begins_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "deadlock", &["-g"]) else { return };
    let recording = record_locks(&[], &program);
    // From the place where the last one of four reports where it waits; nothing follows.
    let part = ["--from", "lock:called_from#4"];
    let graph = table(&recording, &[&part[..], &["--graph"]].concat());
    let rows = graph["graph"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{graph}");
    let is_known =
        |row: &&Value| !row["pending_ns"].is_null() && row["at"].as_str().unwrap().contains("(deadlock.c:");
    assert_eq!(rows.iter().filter(is_known).count(), 4, "{graph}");
    assert_eq!(rows.iter().filter(|row| row["deadlock"] == 1).count(), 3, "{graph}");
    let threads = table(&recording, &[&part[..], &["--by", "thread"]].concat());
    // How often each held a lock that none gave back is not known.
    let sum = |count: &str| {
        let rows = threads["locks"].as_array().unwrap().iter();
        rows.map(|row| row[count].as_u64().unwrap_or(0)).sum::<u64>()
    };
    assert_eq!(["acquired", "waited", "refused", "held"].map(sum), [0, 4, 0, 0], "{threads}");
    // Four waits lack their beginning and their end, three critical sections lack both.
    assert_eq!(threads["incomplete"], 4 + 4 + 3, "{threads}");
    let after_the_end = table(&recording, &["--from", "+1h", "--graph"]);
    assert_eq!(after_the_end["graph"], Value::Array(Vec::new()));
}

#[test]
fn threads_that_have_ended_no_longer_wait_but_have_waited() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_) = program(folder.path(), "deadlock", &[]).filter(|_| harness::traceable()) else {
        return;
    };
    // They have died before `sleep` begins.
    let script = format!("{}/deadlock </dev/null; sleep 1", folder.path().display());
    let place = tempfile::tempdir().unwrap();
    let options = ["--locks", "--clock", "mono"];
    let recorder = kernel_common::record(place.path(), &options, &["sh", "-c", &script]).spawn().unwrap();
    let recording = ended(place, recorder);
    let events = recorded::list(&recording.trace());
    let stamp = |name: &str, tid: i64| {
        let event = events.iter().find(|event| event.name == name && event.tid == tid);
        event.unwrap_or_else(|| panic!("no {name} of {tid}")).stamp
    };
    // From its request until it exits, however long the kernel is busy with its end.
    let waited = |tid: i64| stamp("sched_process_exit", tid) - stamp("lock:requested", tid);
    let found = table(&recording, &["--graph"]);
    let longest = found["duration_ns"].as_u64().unwrap() - 500_000_000;
    let lasts = found["graph"].as_array().unwrap().iter().filter(|row| !row["pending_ns"].is_null());
    let lasts: Vec<&Value> = lasts.collect();
    assert_eq!(lasts.len(), 4, "{found}");
    assert_eq!(lasts.iter().filter(|row| row["deadlock"] == 1).count(), 3, "{found}");
    let mut expected = Vec::new();
    for row in lasts {
        let (_, tid) = row["waiter"].as_str().unwrap().split_once('/').unwrap();
        expected.push(waited(tid.parse().unwrap()));
        assert_eq!(row["pending_ns"], *expected.last().unwrap(), "{row}");
    }
    assert!(expected.iter().all(|wait| *wait < longest), "{found}");
    let threads = table(&recording, &["--by", "thread"]);
    let rows = threads["locks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["kind"].as_str().unwrap().starts_with("mutex, barrier"));
    let waits: Vec<u64> = rows.map(|row| row["wait_max_ns"].as_u64().unwrap()).collect();
    assert!(waits.len() == 4 && waits.iter().all(|wait| *wait < longest), "{threads}");
    let mut export = harness::tracewing();
    export.args(["export", "--format", "chrome", "--output", "-"]).arg(recording.trace());
    let output = export.succeeds();
    let chrome: Value = output.json();
    let slices = chrome["traceEvents"].as_array().unwrap().iter();
    let waits =
        slices.filter(|slice| slice["name"].as_str().is_some_and(|name| name.starts_with("waits for mutex")));
    let mut waits: Vec<u64> =
        waits.map(|slice| (slice["dur"].as_f64().unwrap() * 1e3).round() as u64).collect();
    waits.sort_unstable();
    expected.sort_unstable();
    assert_eq!(waits, expected);
}

#[test]
fn locks_that_no_library_sees_are_waits_for_futexes() {
    if !harness::traceable() {
        return;
    }
    let folder = build(&["-p", "tracewing", "--example", "locks", "--features", "tracewing/parking_lot"]);
    let program = folder.join("examples/locks");
    let place = tempfile::tempdir().unwrap();
    let command = [program.to_str().unwrap(), "plain"];
    let record = kernel_common::record(place.path(), &["-k", "syscalls:sys_*_futex*"], &command);
    let recording = ended(place, { record }.spawn().unwrap());
    let (lock, least) = recording.stdout.trim_end().split_once(' ').unwrap();
    let (lock, least) = (format!("{:#x}", lock.parse::<u64>().unwrap()), least.parse::<u64>().unwrap());
    let found = table(&recording, &[]);
    let rows = found["locks"].as_array().unwrap();
    let row =
        rows.iter().find(|row| row["lock"] == *lock && row["kind"] == "futex").expect("a row of the lock");
    assert_eq!((&row["acquired"], &row["waited"]), (&1.into(), &1.into()), "{row}");
    assert!(row["wait_ns"].as_u64().unwrap() >= least, "{row}, at least {least}");
}

#[test]
fn a_wait_for_a_futex_that_ends_with_its_thread_is_one_without_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "futex", &[]).filter(|_| harness::traceable()) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let script = format!("{}; true", program.display());
    let options = ["-k", "syscalls:sys_*_futex*"];
    let recorder = kernel_common::record(place.path(), &options, &["sh", "-c", &script]).spawn().unwrap();
    let recording = ended(place, recorder);
    let found = table(&recording, &[]);
    let rows = found["locks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["lock"] == recording.stdout.trim_end()).expect("a row of the futex");
    let counts = ["acquired", "waited", "refused"].map(|count| row[count].as_u64().unwrap());
    assert_eq!(counts, [0, 1, 0], "{row}");
    assert_eq!(found["incomplete"], 1, "{found}");
}

#[test]
fn a_wait_for_a_lock_is_what_its_thread_is_blocked_on() {
    let folder = tempfile::tempdir().unwrap();
    if !harness::traceable() {
        return;
    }
    let Some(program) = program(folder.path(), "truth", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let mut record = kernel_common::record(place.path(), &["--locks"], &[program.to_str().unwrap()]);
    let recording = ended(place, record.spawn().unwrap());
    let tracewing = |command: &str, options: &[&str]| {
        let mut tracewing = harness::tracewing();
        let output = tracewing.arg(command).arg(recording.trace()).args(options).succeeds();
        output.stdout
    };
    let threads: Value = serde_json::from_slice(&tracewing("threads", &["--format", "json"])).unwrap();
    let threads = threads["threads"].as_array().unwrap();
    let causes = threads.iter().flat_map(|thread| thread["blocked_on"].as_array().unwrap());
    let causes: Vec<&str> = causes.filter_map(|cause| cause["on"].as_str()).collect();
    let picture = recording.folder.path().join("picture");
    tracewing("export", &["--format", "chrome", "-o", picture.to_str().unwrap()]);
    let picture = fs::read_to_string(picture).unwrap();
    for kind in ["mutex", "read", "write", "semaphore", "condition", "barrier"] {
        assert!(causes.contains(&kind), "{kind}: {causes:?}");
        assert!(picture.contains(&format!("\"blocked on {kind}\"")), "{kind}");
    }
}
