//! `tracewing record --locks`: what a C program says that it did with locks, against what was recorded, call
//! by call.

mod kernel_common;
mod lock_programs;
mod recorded;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::{Copied, Peekable};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;
use std::slice::Iter;

use lock_programs::{Call, calls, program, record_locks, table};
use recorded::{Event, Recording, ended};
use serde_json::Value;

/// Events about call chains, which come between the others.
const CHAINS: [&str; 3] = ["lock:image", "lock:call_chain", "lock:called_from"];

/// As in `errno`.
const EOWNERDEAD: i64 = 130;

/// Largest difference of times, ns, where nothing disturbs. Without optimisation there is more between the
/// program's stamps and ours.
const PRECISION: u64 = if cfg!(debug_assertions) { 5_000 } else { 1_000 };

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
    /// Whether the thread has not been there before, so that what it does is in none of the processor's
    /// caches.
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
    // Locks that the thread has: since when, as the program says and as the trace does, and more of that
    // call.
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

/// Every wait has a chain, which is described before and begins where the program called; of each caller, the
/// file is told.
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

/// Times are the program's own, but for where something lies between its stamps and the recorded ones, and
/// the kernel's events tell what: a switch to another thread, an interrupt, a page fault; or where the thread
/// has not been before.
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
    // Who spins may have to wait, or not; who is cancelled waits for a time that nobody knows, and is left
    // out.
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
