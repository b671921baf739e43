//! What a recording holds by default, without `--system-wide`: compared event by event with a recording of
//! everything that is made at the same time. All that members of the command's process tree did, and all that
//! happened on a CPU while one of them ran there; all wake-ups of members by any thread; nothing else.

mod harness;
mod kernel_common;

use harness::{Printed, traceable};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kernel_common::{Event, end, events, listing, record};

/// A child computes for long enough to be interrupted, a grandchild reads what a stranger writes into a fifo.
const SCRIPT: &str = "(n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done; true) & \
                      sh -c 'sh -c \"cat fifo >/dev/null; sleep 0.01\"; true'; wait";

/// Threads of the tree: those that members forked, and the first.
fn members(events: &[Event<'_>]) -> BTreeSet<i64> {
    let mut members = BTreeSet::new();
    for event in events.iter().filter(|event| event.name == "sched_process_fork") {
        let (parent, child) = (event.number("parent_tid"), event.number("child_tid"));
        if members.is_empty() || members.contains(&parent) {
            members.extend([parent, child]);
        }
    }
    members
}

/// Threads that a scheduler event is about.
fn subject(event: &Event<'_>) -> Vec<i64> {
    match event.name {
        "sched_switch" => vec![event.number("prev_tid"), event.number("next_tid")],
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => vec![event.number("tid")],
        _ => Vec::new(),
    }
}

#[test]
fn the_default_is_what_concerns_the_tree() {
    if !traceable() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    // Recorded by the outer recorder: everything. The stranger waits until the fifo has a reader.
    let script = "mkfifo inner/fifo; echo x >inner/fifo & cd inner && \
                  exec \"$0\" record --quiet -o t -- sh -c \"$1\"";
    let command = ["sh", "-c", script, harness::TRACEWING, SCRIPT];
    let output = end(record(folder.path(), &["--system-wide"], &command).spawn().unwrap());
    assert!(output.status.success(), "{}", output.notes());
    assert_eq!(kernel_common::summary(&output)["lost_events"], 0);
    let ((all, _), (tree, warnings)) = (listing(&folder.path().join("t")), listing(&inner.join("t")));
    assert_eq!(warnings, "");
    let (all, tree) = (events(&all), events(&tree));

    let members = members(&tree);
    assert!(members.len() >= 6, "{members:?}");
    let is_member = |tid: i64| members.contains(&tid);
    for event in &tree {
        let concerns = is_member(event.tid.into()) || subject(event).into_iter().any(is_member);
        assert!(concerns, "of a stranger: {event:?}");
    }

    // Of those that were born and died in the tree, which the root was not.
    let root = i64::from(tree.iter().find(|event| event.name == "sched_process_exec").unwrap().tid);
    let (mut compared, mut kinds) = (0, BTreeMap::new());
    for tid in members.iter().copied().filter(|tid| *tid != root) {
        let own = |event: &&Event<'_>| i64::from(event.tid) == tid;
        let about = |event: &&Event<'_>| subject(event).contains(&tid);
        compare(&all, &tree, tid, &own);
        compare(&all, &tree, tid, &about);
        for event in tree.iter().filter(|event| own(event) || about(event)) {
            compared += 1;
            *kinds.entry(event.name.split("_entry").next().unwrap()).or_insert(0) += 1;
        }
    }
    println!("{compared} events of {} threads agree", members.len() - 1);
    for kind in ["sched_switch", "sched_waking", "sched_wakeup", "sched_process_exec"] {
        assert!(kinds.contains_key(kind), "no {kind}: {kinds:?}");
    }
    assert!(kinds.keys().any(|kind| kind.contains("irq")), "no interrupt: {kinds:?}");
    let by_stranger = |event: &&Event<'_>| event.name == "sched_waking" && !is_member(event.tid.into());
    assert!(tree.iter().any(|event| by_stranger(&event)), "no thread was woken by a stranger");
}

/// Both recordings have the same events of a thread: CPU by CPU, those of each kind in the same order. (An
/// interrupt may come between the two recordings of one event, so that there is no order among kinds.)
fn compare<'a>(all: &[Event<'a>], tree: &[Event<'a>], tid: i64, wanted: &dyn Fn(&&Event<'_>) -> bool) {
    let sequences = |events: &[Event<'a>]| {
        let mut sequences: BTreeMap<(u32, &str), Vec<String>> = BTreeMap::new();
        for event in events.iter().filter(wanted) {
            // A thread's last switch: its parent may reap it between the two recordings (zombie, dead).
            let fields = event.fields.replace("prev_state = 16,", "prev_state = 32,");
            sequences.entry((event.cpu, event.name)).or_default().push(fields);
        }
        sequences
    };
    let (all, tree) = (sequences(all), sequences(tree));
    let count = |sequences: &BTreeMap<_, Vec<_>>| sequences.values().map(Vec::len).sum::<usize>();
    assert_eq!(count(&tree), count(&all), "events of thread {tid}");
    for (kind, fields) in &all {
        assert_eq!(tree.get(kind), Some(fields), "{kind:?} of thread {tid}");
    }
}
