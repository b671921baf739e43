//! `tracewing record --locks`: locks of C programs of all kinds, and `tracewing locks`; `lock_truth.rs` has
//! each call.

mod kernel_common;
mod lock_programs;
mod recorded;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lock_programs::{program, record_locks, table};
use recorded::{Event, build, ended, is_root, record, recorder};
use serde_json::Value;

#[test]
fn chains_of_all_acquisitions_or_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    for chains in ["all", "contended", "none"] {
        let recording = record_locks(&["--lock-chains", chains, "-e", "none:*"], &program);
        assert_eq!(recording.stdout, "1000 and more\n");
        let events = recording.events();
        // The program's own thread: where that ends the process, the agent's can be between any two events.
        let own = events.iter().find(|event| event.name == "lock:acquired").expect("is told").tid;
        let of_own = events.iter().filter(|event| event.tid == own);
        let count = |name: &str| of_own.clone().filter(|event| event.name == name).count();
        // The allocator's lock, before and after `main` begins; whatever -e says.
        let acquired = count("lock:acquired");
        assert!(acquired >= 1000, "{acquired}");
        let brings = |event: &&Event| event.name == "lock:shadowed" && event.payload["function"] == "malloc";
        let path = events.iter().find(brings).expect("is told").payload["path"].as_str();
        assert_eq!(path.map(Path::new), Some(&*program));
        let expected = match chains {
            "all" => acquired,
            "contended" => count("lock:requested"),
            _ => 0,
        };
        assert_eq!(count("lock:called_from"), expected, "{chains}");
    }
}

#[test]
fn a_flight_recorder_has_what_its_chains_mean_however_fast_it_forgets() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let buffers = ["--flight-recorder", "--sub-buffer-size", "4K", "--sub-buffers", "2"];
    let mut recorder = recorder(place.path(), &[&["--locks", "--lock-chains", "all"], &buffers[..]].concat());
    assert!(recorder.arg(program).output().unwrap().status.success());
    let events = recorded::list(&place.path().join("t/snapshot-1"));
    let of = |name: &'static str| events.iter().filter(move |event| event.name == name);
    let told: BTreeSet<u64> = of("lock:call_chain").map(|event| event.number("chain")).collect();
    let named: BTreeSet<u64> = of("lock:called_from").map(|event| event.number("chain")).collect();
    assert!((1..1000).contains(&of("lock:called_from").count()), "only the last are there");
    assert!(named.is_subset(&told), "{named:x?} are named, and {told:x?} told");
}

#[test]
fn chains_go_on_through_code_without_tables() {
    let folder = tempfile::tempdir().unwrap();
    let without_tables = [
        "-fno-omit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-fcf-protection=none",
    ];
    let Some(program) = program(folder.path(), "frames", &without_tables) else { return };
    let recording = record_locks(&["--lock-chains", "all", "-e", "none:*"], &program);
    assert_eq!(recording.stdout, "done\n", "{}", recording.stderr);
    let found = table(&recording, &["--by", "chain"]);
    // The C library's functions have tables, and need no frame pointers; which there are is its own affair.
    let own = ["takes", "wild", "compares", "sorts", "in_thread", "on_stack", "main", "_start", "clone3"];
    let chains: BTreeSet<String> = found["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let names = row["at"].as_str().unwrap().split(" < ").map(|at| at.split('+').next().unwrap());
            names.filter(|name| own.contains(name)).collect::<Vec<_>>().join(" < ")
        })
        .filter(|chain| chain.starts_with("takes"))
        .collect();
    let expected = [
        "takes < compares < sorts < in_thread < clone3",
        "takes < compares < sorts < main < _start",
        "takes < main < _start",
        "takes < wild",
    ];
    assert_eq!(chains.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn code_that_a_program_has_made_itself_has_addresses_for_names() {
    let folder = tempfile::tempdir().unwrap();
    // Its own code has frame pointers, so that chains go on behind what has no tables.
    let Some(program) = program(folder.path(), "jit", &["-fno-omit-frame-pointer"]) else { return };
    let recording = record_locks(&["--lock-chains", "all"], &program);
    let made: BTreeSet<&str> = recording.stdout.lines().collect();
    assert_eq!(made.len(), 1, "both at the same place: {}", recording.stdout);
    let page = made.first().unwrap().strip_suffix("000").unwrap();
    let acquired = |by: &str| -> Vec<(String, u64)> {
        let found = table(&recording, &["--by", by]);
        let rows = found["locks"].as_array().unwrap().iter();
        let row = |row: &Value| (row["at"].as_str().unwrap().to_owned(), row["acquired"].as_u64().unwrap());
        let mut own: Vec<_> = rows.map(row).filter(|(at, _)| at.starts_with(page)).collect();
        own.sort();
        own
    };
    let offsets = ["00c", "010"]; // behind the calls
    let callers = offsets.map(|offset| (format!("{page}{offset}"), 100));
    assert_eq!(acquired("caller"), callers);
    let chains = acquired("chain");
    let [(with_frame, 100), (without, 100)] = &chains[..] else { panic!("{chains:?}") };
    let (with_frame, own) = with_frame.split_once(" < ").expect("its caller is there");
    assert!(
        with_frame == callers[0].0 && own.starts_with("takes+") && own.contains(" < main+"),
        "{chains:?}"
    );
    assert_eq!(*without, callers[1].0, "nothing leads on");
}

#[test]
fn what_chooses_other_events_leaves_locks_alone() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    for choice in [["--level", "error"], ["--major", "63"], ["--process", "nobody"], ["--provider", "none"]] {
        let events = record_locks(&choice, &program).events();
        let count = |name: &str| events.iter().filter(|event| event.name == name).count();
        assert!(count("lock:acquired") >= 1000 && count("lock:released") >= 1000, "{choice:?}");
    }
}

#[test]
fn what_is_excluded_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    let recording = record_locks(&["-e", "none:*", "--exclude", "lock:rel*"], &program);
    let events = recording.events();
    let count = |name: &str| events.iter().filter(|event| event.name == name).count();
    assert!(count("lock:acquired") >= 1000 && count("lock:released") == 0);
}

#[test]
fn a_program_that_dies_with_a_lock_leaves_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "crash", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let output = recorder(place.path(), &["--locks"]).arg(program).output().unwrap();
    assert_eq!(output.status.code(), Some(134), "{}", String::from_utf8_lossy(&output.stderr));
    let events = recorded::list(&place.path().join("t"));
    let find = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
    let ([has], [wants]) = (&find("lock:acquired")[..], &find("lock:requested")[..]) else { panic!() };
    assert_eq!(has.number("lock"), wants.number("lock"));
    assert_eq!(wants.payload["owner"], has.tid);
    assert!(find("lock:released").is_empty());
}

#[test]
fn a_program_that_dies_within_a_lock_leaves_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "crash", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let output = recorder(place.path(), &["--locks"]).arg(program).arg("wild").output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(128 + libc::SIGSEGV),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let events = recorded::list(&place.path().join("t"));
    assert_eq!(events.iter().filter(|event| event.name == "lock:acquired").count(), 1);
}

#[test]
fn locks_are_told_from_where_programs_begin_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let Some(ends) = program(folder.path(), "ends", &["-rdynamic"]) else { return };
    let Some(plugin) = program(folder.path(), "plugin", &["-shared", "-fPIC"]) else { return };
    let recording = record(&["--locks"], &[ends, plugin]);
    let events = recording.events();
    // Those of the child of `vfork`, which runs on its parent's thread block.
    const LOST: usize = 3;
    assert_eq!(recording.reasons(), [("thread not protected", 2 * LOST as u64)].into());
    let (mut count, mut lost) = (0, 0);
    for line in recording.stdout.lines() {
        let (lock, expected) = line.split_once(' ').unwrap();
        let (lock, expected): (u64, usize) = (lock.parse().unwrap(), expected.parse().unwrap());
        for name in ["lock:acquired", "lock:released"] {
            let is_it = |event: &&Event| event.name == name && event.number("lock") == lock;
            let found = events.iter().filter(is_it).count();
            assert!(
                found == expected || (found == 0 && expected == LOST),
                "{name} of {lock:#x} in {}",
                recording.stdout
            );
            lost += expected - found;
        }
        count += 1;
    }
    assert_eq!((count, lost), (5, 2 * LOST));
}

/// Has a flight recorder take a snapshot; then its program ends, which waits for the end of its input.
fn snapshot_and_end(mut recorder: Child) -> PathBuf {
    let mut snapshot = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let snapshot = snapshot.args(["snapshot", &recorder.id().to_string()]).output().unwrap();
    assert!(snapshot.status.success(), "{}", String::from_utf8_lossy(&snapshot.stderr));
    drop(recorder.stdin.take());
    assert!(recorder.wait().unwrap().success());
    PathBuf::from(String::from_utf8(snapshot.stdout).unwrap().trim_end())
}

#[test]
fn processes_of_threads_are_known_where_a_flight_recorder_has_overwritten_what_they_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "twins", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let small = ["--locks", "--flight-recorder", "--sub-buffer-size", "16K", "--sub-buffers", "2"];
    let mut recorder = recorder(place.path(), &small).arg(program).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(recorder.stdout.take().unwrap()).lines();
    let mut twins = || -> BTreeSet<String> { lines.by_ref().take(2).map(Result::unwrap).collect() };
    let expected = twins();
    // The second child may get its buffers late, and loses what it does before.
    kernel_common::wait_until("both children take part", || {
        let rules = recorded::confirmed("rules", &recorder.id().to_string(), &["--format", "json"]);
        serde_json::from_slice::<Value>(&rules).unwrap()["programs"] == 3
    });
    recorder.stdin.as_mut().unwrap().write_all(b".").unwrap();
    assert_eq!(twins(), expected);
    let snapshot = snapshot_and_end(recorder);
    let locks = || {
        let mut locks = Command::new(env!("CARGO_BIN_EXE_tracewing"));
        let output = locks.args(["locks", "--format", "json"]).arg(&snapshot).output().unwrap();
        let warnings = String::from_utf8(output.stderr).unwrap();
        (serde_json::from_slice::<Value>(&output.stdout).unwrap(), warnings)
    };
    let (table, warnings) = locks();
    assert!(!warnings.contains("No event tells the process"), "{warnings}");
    let rows = table["locks"].as_array().unwrap();
    let found =
        rows.iter().map(|row| format!("{} {}", row["process"], row["lock"].as_str().unwrap())).collect();
    assert_eq!(expected, found, "{table}");
    assert!(rows.iter().all(|row| row["name"] == "twins"), "{table}");
    for file in ["threads", "index/threads.idx"] {
        fs::remove_file(snapshot.join("user").join(file)).unwrap();
    }
    let (table, warnings) = locks();
    assert!(warnings.contains("No event tells the process of 2 threads"), "{warnings}");
    assert_eq!(table["locks"].as_array().unwrap().len(), 1, "{table}");
}

#[test]
fn threads_that_wait_for_each_other_for_ever_are_told() {
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
        let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
        let output = command.arg("locks").arg(&snapshot).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table: Value = serde_json::from_str(&graph(&["--graph", "--format", "json"])).unwrap();
    let mut waits: Vec<(&str, &str, Option<u64>)> = Vec::new();
    let number = |party: &'_ Value| party.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let rows: Vec<_> =
        table["graph"].as_array().unwrap().iter().filter(|row| !row["lasts_ns"].is_null()).collect();
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
fn a_deadlock_is_told_also_if_younger_events_of_others_were_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "deadlock", &["-g"]) else { return };
    let place = tempfile::tempdir().unwrap();
    let small = ["--locks", "--flight-recorder", "--sub-buffers", "2", "--sub-buffer-size", "4K"];
    let mut recorder = recorder(place.path(), &small);
    let mut recorder = recorder.arg(program).arg("noise").stdin(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(recorder.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let snapshot = snapshot_and_end(recorder);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let output = command.args(["locks", "--graph"]).arg(&snapshot).output().unwrap();
    let [text, warning] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    if !warning.contains("buffers begin at different times") {
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
    // Where the last one of four tells where it waits; nothing follows.
    let part = ["--from", "lock:called_from#4"];
    let graph = table(&recording, &[&part[..], &["--graph"]].concat());
    let rows = graph["graph"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{graph}");
    let is_known =
        |row: &&Value| !row["lasts_ns"].is_null() && row["at"].as_str().unwrap().contains("(deadlock.c:");
    assert_eq!(rows.iter().filter(is_known).count(), 4, "{graph}");
    assert_eq!(rows.iter().filter(|row| row["deadlock"] == 1).count(), 3, "{graph}");
    let threads = table(&recording, &[&part[..], &["--by", "thread"]].concat());
    // How often each held a lock that none gave back is not known.
    let sum = |count: &str| {
        let rows = threads["locks"].as_array().unwrap().iter();
        rows.map(|row| row[count].as_u64().unwrap_or(0)).sum::<u64>()
    };
    assert_eq!(["acquired", "waited", "refused", "held"].map(sum), [0, 4, 4, 0], "{threads}");
    // Four waits lack their begin and their end, three critical sections lack both.
    assert_eq!(threads["incomplete"], 4 + 4 + 3, "{threads}");
    let behind = table(&recording, &["--from", "+1h", "--graph"]);
    assert_eq!(behind["graph"], Value::Array(Vec::new()));
}

#[test]
fn who_has_died_waits_no_longer_but_has_waited() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_) = program(folder.path(), "deadlock", &[]).filter(|_| kernel_common::traceable()) else {
        return;
    };
    // They have died before `sleep` begins.
    let script = format!("{}/deadlock </dev/null; sleep 1", folder.path().display());
    let place = tempfile::tempdir().unwrap();
    let recorder = kernel_common::record(place.path(), &["--locks"], &["sh", "-c", &script]).spawn().unwrap();
    let recording = ended(place, recorder);
    let found = table(&recording, &["--graph"]);
    let longest = found["duration_ns"].as_u64().unwrap() - 500_000_000;
    let lasts = found["graph"].as_array().unwrap().iter().filter(|row| !row["lasts_ns"].is_null());
    let lasts: Vec<&Value> = lasts.collect();
    assert_eq!(lasts.len(), 4, "{found}");
    assert_eq!(lasts.iter().filter(|row| row["deadlock"] == 1).count(), 3, "{found}");
    assert!(lasts.iter().all(|row| row["lasts_ns"].as_u64().unwrap() < longest), "{found}");
    let threads = table(&recording, &["--by", "thread"]);
    let rows = threads["locks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["kind"].as_str().unwrap().starts_with("mutex, barrier"));
    let waits: Vec<u64> = rows.map(|row| row["wait_max_ns"].as_u64().unwrap()).collect();
    assert!(waits.len() == 4 && waits.iter().all(|wait| *wait < longest), "{threads}");
    let mut export = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    export.args(["export", "--format", "chrome", "--output", "-"]).arg(recording.trace());
    let output = export.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let chrome: Value = serde_json::from_slice(&output.stdout).unwrap();
    let slices = chrome["traceEvents"].as_array().unwrap().iter();
    let waits =
        slices.filter(|slice| slice["name"].as_str().is_some_and(|name| name.starts_with("waits for mutex")));
    let waits: Vec<f64> = waits.map(|slice| slice["dur"].as_f64().unwrap() * 1e3).collect();
    assert!(waits.len() == 4 && waits.iter().all(|wait| *wait < longest as f64), "{waits:?}");
}

#[test]
fn the_crates_own_locks_are_told_by_their_lines() {
    let folder = build(&["-p", "tracewing", "--example", "locks", "--features", "tracewing/parking_lot"]);
    let recording = record(&[], &[folder.join("examples/locks")]);
    let mut expected: Vec<(String, u64, u64)> = Vec::new();
    for line in recording.stdout.lines() {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        let place = format!("crates/tracewing/tests/programs/locks.rs:{}", numbers[0]);
        expected.push((place, numbers[1], numbers[2]));
    }
    assert!(expected.len() > 15, "{}", recording.stdout);
    let callers = table(&recording, &["--by", "caller"]);
    let mut found = Vec::new();
    for row in callers["locks"].as_array().unwrap() {
        let number = |field: &str| row[field].as_u64().unwrap();
        found.push((row["at"].as_str().unwrap().to_owned(), number("acquired"), number("waited")));
        // Who sleeps has tried as often as is done before; conditions are not tried.
        let tries = if row["kind"] == "condition" { 0 } else { 7 };
        assert_eq!(row["spins"].as_u64().unwrap_or(0), number("waited") * tries, "{row}");
    }
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    recording.compare_with_babeltrace2();
}

#[test]
fn locks_that_no_library_sees_are_waits_for_futexes() {
    if !kernel_common::traceable() {
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
    let Some(program) = program(folder.path(), "futex", &[]).filter(|_| kernel_common::traceable()) else {
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
    assert_eq!(counts, [0, 1, 1], "{row}");
    assert_eq!(found["incomplete"], 1, "{found}");
}

/// What the recorder says, where the program itself does what it does in any case.
fn said(program: &Path) -> String {
    let place = tempfile::tempdir().unwrap();
    let child = recorder(place.path(), &["--locks"]).arg(program).spawn().unwrap();
    let recording = ended(place, child);
    assert_eq!(recording.stdout, "1000 and more\n");
    recording.stderr
}

#[test]
fn programs_whose_locks_cannot_be_seen_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(ordinary) = program(folder.path(), "allocator", &[]) else { return };
    assert!(!said(&ordinary).contains("locks:"));
    let script = folder.path().join("script");
    fs::write(&script, format!("#!/bin/sh\nexec {}\n", ordinary.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!said(&script).contains("locks:"));
    if is_root() {
        chown(&ordinary, Some(65534), None).unwrap();
        fs::set_permissions(&ordinary, fs::Permissions::from_mode(0o4755)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let said = said(&ordinary);
        assert!(said.contains("gets privileges when it is executed"), "{said}");
    }
    if let Some(without_loader) = program(folder.path(), "allocator", &["-static"]) {
        let said = said(&without_loader);
        assert!(said.contains("is statically linked"), "{said}");
    }
}

#[test]
fn so_are_programs_that_the_command_starts() {
    let folder = tempfile::tempdir().unwrap();
    if !kernel_common::traceable() {
        return;
    }
    let Some(without_loader) = program(folder.path(), "allocator", &["-static"]) else { return };
    let privileged = folder.path().join("privileged");
    tracewing_testing::copy_program("/bin/true", &privileged);
    chown(&privileged, Some(65534), None).unwrap();
    fs::set_permissions(&privileged, fs::Permissions::from_mode(0o4755)).unwrap();
    let name = without_loader.file_name().unwrap().to_str().unwrap();
    for options in [&["--locks"][..], &["--functions"], &["--locks", "-k", "sched_switch"]] {
        let place = tempfile::tempdir().unwrap();
        let script =
            format!("cd {}; ./{name}; ./{name}; ./privileged; sleep 0.2; true", folder.path().display());
        let child = kernel_common::record(place.path(), options, &["sh", "-c", &script]).spawn().unwrap();
        let recording = ended(place, child);
        let notes: Vec<_> = recording.summary["notes"].as_array().unwrap().iter().collect();
        let has = |text: &str| {
            notes.iter().filter(|note| note.as_str().is_some_and(|note| note.contains(text))).count()
        };
        let of_static = has(&format!(" ./{name} is statically linked"));
        assert_eq!((of_static, has(" ./privileged gets privileges")), (1, 1), "{options:?}: {notes:?}");
    }
}

#[test]
fn without_a_library_that_can_be_loaded_nothing_begins() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |to: &str| {
        let place = folder.path().join(to);
        fs::create_dir(&place).unwrap();
        tracewing_testing::copy_program(env!("CARGO_BIN_EXE_tracewing"), place.join("tracewing"));
        place
    };
    let Some(_) = program(folder.path(), "allocator", &[]) else { return };
    let own = Path::new(env!("CARGO_BIN_EXE_tracewing")).with_file_name("libtracewing_preload.so");
    let own = fs::read(own).unwrap();
    let with = |to: &str, library: &[u8]| {
        let place = copy(to);
        fs::write(place.join("libtracewing_preload.so"), library).unwrap();
        place
    };
    for (place, told) in [
        (copy("without"), "`cargo build --release -p tracewing-preload` makes it"),
        (with("un usual", b""), "spaces"),
        (with("junk", b"no library"), "is not the library that locks and functions need"),
        (with("half", &own[..own.len() / 2]), "or not all of it"),
        (with("other", &fs::read("/bin/true").unwrap()), "is not the library"),
    ] {
        let mut command = Command::new(place.join("tracewing"));
        command.current_dir(&place).args([
            "record",
            "--no-kernel",
            "--locks",
            "-o",
            "t",
            "--",
            "touch",
            "began",
        ]);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && stderr.contains(told), "{stderr}");
        assert!(!place.join("t").exists() && !place.join("began").exists());
    }
}

#[test]
fn sanitizers_work_as_they_do_without() {
    let folder = tempfile::tempdir().unwrap();
    if let Some(program) = program(folder.path(), "crash", &["-fsanitize=address"]) {
        let program = program.to_str().unwrap();
        for command in [&[program][..], &["sh", "-c", program]] {
            let place = tempfile::tempdir().unwrap();
            let mut recorder = recorder(place.path(), &["--locks"]);
            let output = recorder.args(command).env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let told = "AddressSanitizer, which lets no other library be loaded before its own: it gets \
                        ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0";
            assert_eq!(said.contains(told), command == [program], "{said}");
            assert_eq!(output.status.code(), Some(134), "{said}");
            let events = recorded::list(&place.path().join("t"));
            assert!(events.iter().any(|event| event.name == "lock:requested"), "{command:?}: {said}");
        }
    }
    // Its locks are behind ours.
    if let Some(program) = program(folder.path(), "crash", &["-fsanitize=thread"]) {
        let place = tempfile::tempdir().unwrap();
        let output = recorder(place.path(), &["--locks"]).arg(program).output().unwrap();
        assert_eq!(output.status.code(), Some(134), "{}", String::from_utf8_lossy(&output.stderr));
        let events = recorded::list(&place.path().join("t"));
        assert!(events.iter().any(|event| event.name == "lock:requested"));
    }
}

#[test]
fn a_child_under_a_sanitizer_that_ends_it_for_a_thread_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "forked", &["-fsanitize=thread"]) else { return };
    let place = tempfile::tempdir().unwrap();
    let output = recorder(place.path(), &["--locks"]).arg(program).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn programs_with_locks_of_their_own_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "own", &["-rdynamic"]) else { return };
    let recording = record_locks(&[], &program);
    assert_eq!(recording.stdout, "1\n");
    let events = recording.events();
    let shadowed = events.iter().find(|event| event.name == "lock:shadowed").expect("is told");
    assert_eq!(shadowed.payload["function"], "pthread_mutex_lock");
    assert_eq!(shadowed.payload["path"].as_str().map(Path::new), Some(&*program));
}

#[test]
fn stubs_in_the_program_are_not_taken_for_functions() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "pointers", &["-no-pie", "-fno-pie"]) else { return };
    let events = record_locks(&[], &program).events();
    let shadowed: Vec<_> =
        events.iter().filter(|event| event.name == "lock:shadowed").map(|event| &event.payload).collect();
    assert!(shadowed.is_empty(), "{shadowed:?}");
    assert!(events.iter().any(|event| event.name == "lock:acquired"));
}

#[test]
fn a_wait_for_a_lock_is_what_its_thread_is_blocked_on() {
    let folder = tempfile::tempdir().unwrap();
    if !kernel_common::traceable() {
        return;
    }
    let Some(program) = program(folder.path(), "truth", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let mut record = kernel_common::record(place.path(), &["--locks"], &[program.to_str().unwrap()]);
    let recording = ended(place, record.spawn().unwrap());
    let tracewing = |command: &str, options: &[&str]| {
        let mut tracewing = Command::new(env!("CARGO_BIN_EXE_tracewing"));
        let output = tracewing.arg(command).arg(recording.trace()).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
