//! `tracewing record --locks`: the log of a C program about its locks compared with the recording, call by
//! call.

mod comparison;
#[path = "../harness/mod.rs"]
mod harness;
#[path = "../kernel_common/mod.rs"]
mod kernel_common;
#[path = "../lock_programs/mod.rs"]
mod lock_programs;
#[path = "../recorded/mod.rs"]
mod recorded;

use comparison::*;
use harness::{Printed, RunExt};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::{Copied, Peekable};
use std::ops::RangeInclusive;
use std::path::Path;
use std::slice::Iter;

use lock_programs::{Call, calls, program, record_locks, table};
use recorded::{Event, Recording, ended};
use serde_json::Value;

#[test]
fn every_call_is_reported_as_the_program_made_it() {
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

/// Times are the program's own, except where the kernel's events show what lies between its stamps and the
/// recorded ones (a switch to another thread, an interrupt, a page fault), or the thread is there for the
/// first time.
#[test]
fn times_are_those_that_the_program_measured() {
    let folder = tempfile::tempdir().unwrap();
    if !harness::traceable() {
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
    let (mut reported, mut called) = (0, 0);
    for event in recording.events() {
        reported += usize::from(event.name == "lock:released");
    }
    for call in calls(&recording.stdout).into_values().flatten() {
        called += usize::from(call.operation == "unlock");
    }
    assert_eq!(reported, called);
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
    // A thread that spins may have to wait, or not. A cancelled one waits for an unknown time, and is left
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
        .filter(|bin| bin["measure"] == "depth")
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
    let mut text = harness::tracewing();
    let text = text.arg("locks").arg(recording.trace()).args(["--sort", "wait-min"]).ran();
    let text = text.text();
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
