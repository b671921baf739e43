//! `tracewing record --locks`: what C programs say that they did with locks, against what was recorded, call by call.

mod kernel_common;
mod recorded;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::iter::{Copied, Peekable};
use std::ops::RangeInclusive;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::slice::Iter;

use recorded::{Event, Recording, build, ended, is_root, record, recorder};
use serde_json::Value;

/// Events about call chains, which come between the others.
const CHAINS: [&str; 3] = ["lock:image", "lock:call_chain", "lock:called_from"];

/// As in `errno`.
const EOWNERDEAD: i64 = 130;

/// Largest difference of times, ns, where nothing disturbs. Without optimisation there is more between the program's stamps and ours.
const PRECISION: u64 = if cfg!(debug_assertions) { 5_000 } else { 1_000 };

/// Compiles a program of `crates/preload/tests/programs`, and builds the library; `None` where there is no such compiler.
fn program(folder: &Path, name: &str, options: &[&str]) -> Option<PathBuf> {
    let optimised: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    build(&[&["-p", "tracewing-preload"], optimised].concat());
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../preload/tests/programs")
        .join(name)
        .with_extension("c");
    let program = folder.join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).args(options);
    match gcc.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) if options.is_empty() => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        _ => {
            eprintln!("skipped: gcc cannot make this with {options:?}");
            None
        }
    }
}

fn record_locks(options: &[&str], program: &Path) -> Recording {
    record(&[&["--locks"], options].concat(), &[program])
}

/// A call that the program made.
#[derive(Debug)]
struct Call {
    operation: String,
    lock: u64,
    /// ns.
    before: u64,
    after: u64,
    result: i64,
    /// `None` where nobody knows.
    waited: Option<bool>,
    owner: Option<u64>,
    line: u64,
}

/// The calls of each thread.
fn calls(stdout: &str) -> BTreeMap<i64, Vec<Call>> {
    let mut calls: BTreeMap<i64, Vec<Call>> = BTreeMap::new();
    for line in stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<i64>().unwrap();
        calls.entry(number(0)).or_default().push(Call {
            operation: words[1].to_owned(),
            lock: words[2].parse().unwrap(),
            before: words[3].parse().unwrap(),
            after: words[4].parse().unwrap(),
            result: number(5),
            waited: [Some(false), Some(true)].get(usize::try_from(number(6)).unwrap_or(2)).copied().flatten(),
            owner: u64::try_from(number(7)).ok(),
            line: words[8].parse().unwrap(),
        });
    }
    calls
}

/// A thread's events, one behind the other.
struct Told<'a> {
    events: Peekable<Copied<Iter<'a, &'a Event>>>,
    tid: i64,
}

impl<'a> Told<'a> {
    /// The next one, which has to be this one, and within the call.
    fn take(&mut self, call: &Call, name: &str) -> &'a Event {
        let event = self.events.next().unwrap_or_else(|| panic!("{}: no {name} for {call:?}", self.tid));
        assert_eq!(event.name, format!("lock:{name}"), "{}: {call:?}, {}", self.tid, event.payload);
        let object = ["lock", "condition", "barrier"].iter().find_map(|field| match *field {
            "lock" if event.payload.get("condition").is_some() => None,
            field => event.payload.get(field)?.as_u64(),
        });
        assert_eq!(object, Some(call.lock), "{name} of {call:?}");
        let within = call.before..=call.after;
        assert!(within.contains(&event.stamp), "{name} at {} of {call:?}", event.stamp);
        event
    }

    /// How the thread came to have the lock, or not. Gives how long it waited, and when it had it.
    fn take_acquisition(&mut self, call: &Call) -> Acquisition {
        let kind = call.operation.trim_start_matches("try");
        let is_kind = |event: &Event| {
            assert_eq!(event.payload["kind"]["labels"][0], *kind, "{call:?}: {}", event.payload)
        };
        let is_try = call.operation != kind;
        let requested = self.events.peek().is_some_and(|event| event.name == "lock:requested" && !is_try);
        assert!(is_try || call.waited.is_none_or(|waited| waited == requested), "{call:?}");
        let request = requested.then(|| self.take(call, "requested"));
        if let Some(request) = request {
            is_kind(request);
            assert!(
                call.owner.is_none_or(|owner| owner == request.number("owner")),
                "{call:?}: {}",
                request.payload
            );
        }
        let is_acquired = call.result == 0 || call.result == EOWNERDEAD;
        let end = self.take(call, if is_acquired { "acquired" } else { "refused" });
        is_kind(end);
        match is_acquired {
            true => assert_eq!(end.number("waited") != 0, requested, "{call:?}"),
            false => assert_eq!(end.payload["error"], call.result, "{call:?}"),
        }
        Acquisition {
            wait: request.map(|request| end.stamp - request.stamp),
            at: is_acquired.then_some(end.stamp),
        }
    }
}

struct Acquisition {
    wait: Option<u64>,
    at: Option<u64>,
}

/// How far a time is from the program's own.
#[derive(Debug)]
struct Difference {
    ns: u64,
    tid: i64,
    /// From the end of the call before to the last of the stamps.
    within: RangeInclusive<u64>,
    /// Whether the thread has not been there before, so that what it does is in none of the processor's caches.
    is_first: bool,
}

#[derive(Default)]
struct Differences {
    waits: Vec<Difference>,
    holds: Vec<Difference>,
}

/// Compares a thread's events with what it did.
fn compare<'a>(tid: i64, calls: &[Call], events: &'a [&'a Event], differences: &mut Differences) {
    let mut told = Told { events: events.iter().copied().peekable(), tid };
    // Locks that the thread has: since when, as the program says and as the trace does, and more of that call.
    let mut held: HashMap<u64, (u64, u64, u64, bool)> = HashMap::new();
    let mut lines = HashSet::new();
    let mut end_of_last = 0;
    for call in calls {
        let (before, is_first) = (std::mem::replace(&mut end_of_last, call.after), lines.insert(call.line));
        match call.operation.as_str() {
            "unlock" => {
                let released = told.take(call, "released").stamp;
                if call.result != 0 {
                    assert_eq!(told.take(call, "not_released").payload["error"], call.result);
                } else if let Some((since, acquired, before, was_first)) = held.remove(&call.lock) {
                    differences.holds.push(Difference {
                        ns: (call.before - since).abs_diff(released - acquired),
                        tid,
                        within: before..=released,
                        is_first: is_first || was_first,
                    });
                }
            }
            "condition" => {
                told.take(call, "condition_wait");
                assert_eq!(told.take(call, "condition_woken").payload["error"], call.result);
            }
            "cancelled" => drop(told.take(call, "condition_wait")),
            "signal" | "broadcast" => {
                let all = told.take(call, "condition_signalled").number("all");
                assert_eq!(all != 0, call.operation == "broadcast");
            }
            "post" => drop(told.take(call, "posted")),
            "barrier" => {
                told.take(call, "barrier_wait");
                let serial = told.take(call, "barrier_passed").number("serial");
                assert_eq!(serial != 0, call.result != 0, "PTHREAD_BARRIER_SERIAL_THREAD is -1");
            }
            _ => {
                let Acquisition { wait, at } = told.take_acquisition(call);
                differences.waits.extend(wait.map(|wait| Difference {
                    ns: (call.after - call.before).abs_diff(wait),
                    tid,
                    within: before..=call.after,
                    is_first,
                }));
                if let Some(at) = at {
                    held.insert(call.lock, (call.after, at, before, is_first));
                }
            }
        }
    }
    let rest: Vec<_> = told.events.map(|event| (&event.name, &event.payload)).collect();
    assert!(rest.is_empty(), "{tid}: {rest:?}");
}

/// Every wait has a chain, which is described before and begins where the program called; of each caller, the file is told.
fn check_chains(events: &[Event]) {
    let mut chains = HashMap::new();
    let mut images = Vec::new();
    let mut callers = Vec::new();
    let mut requests: HashMap<i64, &Event> = HashMap::new();
    let mut count = 0;
    for event in events {
        match event.name.as_str() {
            "lock:image" => {
                let path = event.payload["path"].as_str().unwrap();
                assert!(Path::new(path).is_file(), "{path}");
                images.push(event.number("begin")..event.number("end"));
            }
            "lock:call_chain" => {
                let frames = event.payload["frames"].as_array().unwrap();
                let frames: Vec<u64> = frames.iter().map(|frame| frame.as_u64().unwrap()).collect();
                let is_known = |frame: &u64| images.iter().any(|image| image.contains(frame));
                assert!(frames.len() > 1 && frames.iter().all(is_known), "{}", event.payload);
                chains.insert(event.number("chain"), frames);
            }
            "lock:acquired" => callers.push(event.number("caller")),
            "lock:requested" => drop(requests.insert(event.tid, event)),
            "lock:called_from" => {
                let request = requests.remove(&event.tid).expect("a request in front");
                assert_eq!(event.number("lock"), request.number("lock"));
                assert_eq!(chains[&event.number("chain")][0], request.number("caller"));
                count += 1;
            }
            _ => {}
        }
    }
    assert!(requests.is_empty() && count > 5, "{count}");
    let is_known = |caller: &u64| images.iter().any(|image| image.contains(caller));
    assert!(callers.iter().all(is_known), "{images:x?}");
}

#[test]
fn every_call_is_told_as_the_program_made_it() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "truth", &[]) else { return };
    let recording = record_locks(&["--clock", "mono"], &program);
    let all = recording.events();
    assert_eq!(recording.lost(), 0);
    let Differences { waits, holds } = compare_all(&recording, &all);
    for times in [waits, holds] {
        assert!(times.iter().any(|difference| difference.ns <= PRECISION), "{times:?}");
    }
    check_chains(&all);
    recording.compare_with_babeltrace2();
}

/// Compares the events of all threads with what they did.
fn compare_all(recording: &Recording, all: &[Event]) -> Differences {
    let mut by_thread: BTreeMap<i64, Vec<&Event>> = BTreeMap::new();
    for event in all.iter().filter(|event| event.name.starts_with("lock:")) {
        if !CHAINS.contains(&event.name.as_str()) {
            by_thread.entry(event.tid).or_default().push(event);
        }
    }
    let calls = calls(&recording.stdout);
    assert!(calls.values().map(Vec::len).sum::<usize>() > 5_000, "{}", recording.stdout);
    assert!(calls.keys().eq(by_thread.keys()), "threads: {:?}, {:?}", calls.keys(), by_thread.keys());
    let mut differences = Differences::default();
    for (tid, calls) in &calls {
        compare(*tid, calls, &by_thread[tid], &mut differences);
    }
    differences
}

/// Times are the program's own, but for where something lies between its stamps and the recorded ones, and the kernel's events tell
/// what: a switch to another thread, an interrupt, a page fault; or where the thread has not been before.
#[test]
fn times_are_those_that_the_program_measured() {
    let folder = tempfile::tempdir().unwrap();
    if !kernel_common::traceable() {
        return;
    }
    let Some(program) = program(folder.path(), "truth", &[]) else { return };
    let place = tempfile::tempdir().unwrap();
    let options = ["--locks", "--clock", "mono"];
    let mut record = kernel_common::record(place.path(), &options, &[program.to_str().unwrap()]);
    let recording = ended(place, record.spawn().unwrap());
    assert_eq!(recording.lost(), 0);
    let all = recorded::list(&recording.trace());
    let differences = compare_all(&recording, &all);
    let mut disturbances: HashMap<i64, Vec<u64>> = HashMap::new();
    for event in all.iter().filter(|event| disturbs(&event.name)) {
        disturbances.entry(event.tid).or_default().push(event.stamp);
    }
    for (what, mut all) in [("waits", differences.waits), ("holds", differences.holds)] {
        all.sort_unstable_by_key(|difference| difference.ns);
        let (near, far) = all.split_at(all.partition_point(|difference| difference.ns <= PRECISION));
        let (first, later): (Vec<&Difference>, Vec<&Difference>) =
            far.iter().partition(|difference| difference.is_first);
        let is_disturbed = |difference: &&Difference| {
            let mut stamps = disturbances.get(&difference.tid).into_iter().flatten();
            stamps.any(|stamp| difference.within.contains(stamp))
        };
        let (disturbed, unexplained): (Vec<&Difference>, Vec<_>) = later.into_iter().partition(is_disturbed);
        println!(
            "{what}: {}, median of differences {} ns, {} within {PRECISION} ns; beyond it {} where a thread was first, {} disturbed, {} \
             unexplained: {unexplained:?}",
            all.len(),
            all[all.len() / 2].ns,
            near.len(),
            first.len(),
            disturbed.len(),
            unexplained.len(),
        );
        assert!(all.len() > 500 && first.len() < 100, "{what}: {first:?}");
        // The host of a virtual machine disturbs without an event, which is seldom.
        assert!(unexplained.len() * 100 <= all.len(), "{what}: {unexplained:?}");
    }
}

/// Whether a thread does something else meanwhile, by the event's name.
fn disturbs(event: &str) -> bool {
    let is_interrupt = event.starts_with("irq_") || event.starts_with("x86_irq_vectors_");
    event == "sched_switch"
        || event.starts_with("x86_exceptions_page_fault_")
        || (is_interrupt && event.ends_with("_entry"))
}

#[test]
fn it_is_as_true_with_restartable_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "truth", &[]) else { return };
    let recording = record_locks(&[], &program);
    let (mut told, mut called) = (0, 0);
    for event in recording.events() {
        told += usize::from(event.name == "lock:released");
    }
    for call in calls(&recording.stdout).into_values().flatten() {
        called += usize::from(call.operation == "unlock");
    }
    assert_eq!(told, called);
    assert_eq!(recording.lost(), 0);
}

#[test]
fn chains_of_all_acquisitions_or_of_none() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "allocator", &[]) else { return };
    for chains in ["all", "contended", "none"] {
        let recording = record_locks(&["--lock-chains", chains, "-e", "none:*"], &program);
        assert_eq!(recording.stdout, "1000 and more\n");
        let events = recording.events();
        let count = |name: &str| events.iter().filter(|event| event.name == name).count();
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
    assert_eq!(recording.lost(), 0);
    let mut count = 0;
    for line in recording.stdout.lines() {
        let (lock, expected) = line.split_once(' ').unwrap();
        let (lock, expected): (u64, usize) = (lock.parse().unwrap(), expected.parse().unwrap());
        for name in ["lock:acquired", "lock:released"] {
            let is_it = |event: &&Event| event.name == name && event.number("lock") == lock;
            assert_eq!(
                events.iter().filter(is_it).count(),
                expected,
                "{name} of {lock:#x} in {}",
                recording.stdout
            );
        }
        count += 1;
    }
    assert_eq!(count, 5);
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
    let mut snapshot = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let snapshot = snapshot.args(["snapshot", &recorder.id().to_string()]).output().unwrap();
    assert!(snapshot.status.success(), "{}", String::from_utf8_lossy(&snapshot.stderr));
    let snapshot = PathBuf::from(String::from_utf8(snapshot.stdout).unwrap().trim_end());
    drop(recorder.stdin.take());
    assert!(recorder.wait().unwrap().success());
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
    assert!(text.contains("deadlock 1: none of these can go on\n"), "{text}");
    let dot = graph(&["--graph=dot"]);
    assert_eq!(dot.matches(" -> ").count(), 4, "{dot}");
    assert_eq!(dot.matches("color=red").count(), 3, "{dot}");
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
    fs::copy("/bin/true", &privileged).unwrap();
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
        fs::copy(env!("CARGO_BIN_EXE_tracewing"), place.join("tracewing")).unwrap();
        place
    };
    let (without, unusual) = (copy("without"), copy("un usual"));
    fs::write(unusual.join("libtracewing_preload.so"), "").unwrap();
    for (place, told) in
        [(without, "`cargo build --release -p tracewing-preload` makes it"), (unusual, "spaces")]
    {
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

/// What `tracewing locks` says of a recording.
fn table(recording: &Recording, options: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let output = command
        .arg("locks")
        .arg(recording.trace())
        .args(["--format", "json"])
        .args(options)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What the table is to say of a lock.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    acquired: u64,
    refused: u64,
    waited: u64,
}

#[test]
fn the_table_counts_what_the_program_did() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "truth", &["-g"]) else { return };
    let recording = record_locks(&["--clock", "mono"], &program);
    let calls = calls(&recording.stdout);
    let mut expected: BTreeMap<u64, Counts> = BTreeMap::new();
    let mut waits: BTreeMap<u64, u64> = BTreeMap::new();
    for call in calls.values().flatten() {
        if ["unlock", "signal", "broadcast", "post"].contains(&&*call.operation) {
            continue;
        }
        let counts = expected.entry(call.lock).or_default();
        let is_acquired = call.result == 0 || call.result == EOWNERDEAD || call.operation == "barrier";
        let is_acquired = is_acquired || call.operation == "condition";
        match is_acquired && call.operation != "cancelled" {
            true => counts.acquired += 1,
            false => counts.refused += 1,
        }
        let waits_always = ["condition", "barrier", "cancelled"].contains(&&*call.operation);
        let waited = waits_always || (call.waited == Some(true) && !call.operation.starts_with("try"));
        counts.waited += u64::from(waited);
        if waited && call.operation != "cancelled" {
            *waits.entry(call.lock).or_default() += call.after - call.before;
        }
    }
    let found = table(&recording, &[]);
    let mut counted: BTreeMap<u64, Counts> = BTreeMap::new();
    let mut waited: BTreeMap<u64, u64> = BTreeMap::new();
    for row in found["locks"].as_array().unwrap() {
        let number = |field: &str| row[field].as_u64().unwrap();
        let lock = u64::from_str_radix(row["lock"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        // A forked child's lock of the same address is a line of its own.
        let counts = counted.entry(lock).or_default();
        counts.acquired += number("acquired");
        counts.refused += number("refused");
        counts.waited += number("waited");
        *waited.entry(lock).or_default() += number("wait_ns");
    }
    // Who spins may have to wait, or not; who is cancelled waits for a time that nobody knows, and is left out.
    let spins: Vec<u64> =
        calls.values().flatten().filter(|call| call.waited.is_none()).map(|call| call.lock).collect();
    let cancelled = calls.values().flatten().find(|call| call.operation == "cancelled").unwrap().lock;
    let is_certain = |lock: &u64| !spins.contains(lock) && *lock != cancelled;
    expected.retain(|lock, _| is_certain(lock));
    counted.retain(|lock, _| is_certain(lock));
    assert_eq!(counted, expected);
    for (lock, ns) in waits.iter().filter(|(lock, _)| is_certain(lock)) {
        assert!(waited[lock] <= *ns, "{lock:#x}: {} of {ns}", waited[lock]);
    }
    // Three deep, as often as the program says; otherwise once deep, and recursive ones.
    let histogram = table(&recording, &["--histogram"]);
    let depths: Vec<(u64, u64)> = histogram["histogram"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|bin| bin["what"] == "depth")
        .map(|bin| (bin["from"].as_u64().unwrap(), bin["count"].as_u64().unwrap()))
        .collect();
    let [(0, _), (1, one), (2, two)] = depths[..] else { panic!("{depths:?}") };
    assert!((500..510).contains(&one) && two == 500, "{depths:?}");
    let chains = table(&recording, &["--by", "chain", "--sort", "waited"]);
    let first = chains["locks"][0]["at"].as_str().unwrap();
    assert!(first.starts_with("mutexes+") || first.starts_with("main+"), "{chains}");
    for (by, column) in [("thread", "tid"), ("caller", "at")] {
        let rows = table(&recording, &["--by", by]);
        let sum = |table: &Value| -> u64 {
            table["locks"].as_array().unwrap().iter().map(|row| row["acquired"].as_u64().unwrap()).sum()
        };
        assert!(!rows["locks"][0][column].is_null());
        assert_eq!(sum(&rows), sum(&found));
    }
    let mut text = Command::new(env!("CARGO_BIN_EXE_tracewing"));
    let text = text.arg("locks").arg(recording.trace()).args(["--sort", "wait-min"]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    let titles: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert!(titles.windows(4).any(|titles| titles == ["wait", "wait-avg", "wait-max", "wait-min"]), "{text}");
    // A filter leaves out what others do, but not what they are called.
    let threads = table(&recording, &["--by", "thread"]);
    let waits = |row: &&Value| !row["owner_tid"].is_null() && row["owner_tid"] != row["tid"];
    let tid = threads["locks"].as_array().unwrap().iter().find(waits).unwrap()["tid"].to_string();
    let alone = table(&recording, &["--by", "thread", "--tid", &tid]);
    let row = &alone["locks"][0];
    assert_eq!(row["name"], "truth");
    assert!(row["owner"].as_str().unwrap().starts_with("truth/"), "{row}");
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
