//! System calls of a thread that has died without a sign of when it left its program: those that are
//! recorded are shown. One that makes others, too, shows none.

#[path = "../../trace/tests/common/mod.rs"]
mod common;

use common::{Event, Packet, class, write_trace};
use std::ops::ControlFlow;
use std::path::Path;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};
use tracewing_index::{Cache, RowKind};
use tracewing_trace::Recording;
use tracewing_units::{Cycles, Duration};
use tracewing_vocabulary::environment;

/// States of `sched_switch`: the thread sleeps, or has died.
const SLEEPS: i64 = 1;
const DIES: i64 = 16;

/// Thread 11 runs from 1 to 8 ms, with a call from 2 to 3 ms and one from 4 to 5 ms.
fn write(folder: &Path, last: i64) {
    let mut class = class(Some(1), 1_000_000_000);
    for (name, value) in [
        (environment::DOMAIN, "kernel"),
        (environment::TRACER_NAME, environment::TRACEWING),
        (environment::SYSTEM_CALLS, environment::ALL),
    ] {
        class.set_env(name, value.to_owned());
    }
    class.clock_classes[0].offset_cycles = Cycles(123_000_000);
    let payload = StructureClass::new()
        .with("prev_comm", FieldClass::string())
        .with("prev_tid", FieldClass::signed(32))
        .with("prev_state", FieldClass::signed(64))
        .with("next_comm", FieldClass::string())
        .with("next_tid", FieldClass::signed(32));
    class.data_stream_classes[0].event_record_classes = vec![
        EventRecordClass::new(0, "sched_switch").with_payload(payload),
        EventRecordClass::new(1, "syscall_entry_read").with_payload(StructureClass::new()),
        EventRecordClass::new(2, "syscall_exit_read").with_payload(StructureClass::new()),
    ];
    let event = |ms: u64, id: u16, tid: i32, payload| Event { stamp: ms * 1_000_000, id, tid, payload };
    let switch = |ms: u64, prev: i32, state: i64, next: i32| {
        let named = |tid: i32| [&b"name\0"[..], &tid.to_le_bytes()].concat();
        event(ms, 0, prev, [named(prev), state.to_le_bytes().to_vec(), named(next)].concat())
    };
    let call = |ms: u64, id: u16| event(ms, id, 11, Vec::new());
    let events = [
        switch(1, 0, 0, 11),
        call(2, 1),
        call(3, 2),
        call(4, 1),
        call(5, 2),
        switch(8, 11, last, 0),
        switch(9, 0, 0, 12),
    ];
    write_trace(folder, &class, &[("kernel_0", Packet::new(1, 0, 500_000, 10_000_000).bytes(&events))]);
}

/// What the track of system calls shows: the names of states, and their times in ms.
fn shown(last: i64) -> Vec<(String, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), last);
    let (recording, indexes) = (Recording::open(&[folder.path()]).unwrap(), tempfile::tempdir().unwrap());
    let cache = Cache::new(Some(&indexes.path().join("cache"))).unwrap();
    cache.make(&recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let index = cache.find(&recording).unwrap();
    let (id, _) = index.rows().find(|(_, row)| row.kind == RowKind::SystemCalls).unwrap();
    let mut found = Vec::new();
    // The first event is at 1 ms.
    let ms = |time: Duration| time.as_ns() / 1_000_000 + 1;
    index
        .spans(id, Duration::ZERO, Duration::MAX, |span| {
            found.push((index.state(span.state).unwrap().name.clone(), ms(span.from), ms(span.to)));
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

#[test]
fn a_thread_that_was_killed_shows_its_calls() {
    let span = |name: &str, from, to| (name.to_owned(), from, to);
    let found = shown(DIES);
    let expected = [span("read", 2, 3), span("read", 4, 5), span("unknown", 5, 8)];
    assert_eq!(found[found.len() - 3..], expected, "{found:?}");
}

#[test]
fn a_thread_that_makes_unrecorded_calls_shows_none() {
    assert_eq!(shown(SLEEPS), []);
}
