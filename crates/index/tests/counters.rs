//! Counters and frequencies of CPUs in an index are those that the events report.

#[path = "../../trace/tests/common/mod.rs"]
mod common;

use common::{Event, Packet, class, write_trace};
use std::ops::ControlFlow;
use std::path::Path;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass, TraceClass};
use tracewing_index::{Cache, Index, RowId, RowKind};
use tracewing_trace::Recording;
use tracewing_units::{Cycles, Duration};
use tracewing_vocabulary::environment;

/// A trace of a domain, whose events have one class with fields of this size in bits.
fn of_domain(uuid: u8, domain: &str, name: &str, fields: &[(&str, u32)]) -> TraceClass {
    let mut class = class(Some(uuid), 1_000_000_000);
    class.set_env(environment::DOMAIN, domain.to_owned());
    class.clock_classes[0].offset_cycles = Cycles(123_000_000);
    let payload =
        |all: StructureClass, (name, bits): &(&str, u32)| all.with(*name, FieldClass::unsigned(*bits));
    let payload = fields.iter().fold(StructureClass::new(), payload);
    class.data_stream_classes[0].event_record_classes =
        vec![EventRecordClass::new(0, name).with_payload(payload)];
    class
}

/// Frequencies of two CPUs in kHz. On CPU 0, five events are lost between 3 and 10 ms, the end of the packet
/// that says so.
fn write_frequencies(folder: &Path) {
    let class = of_domain(1, "kernel", "power_cpu_frequency", &[("state", 32), ("cpu_id", 32)]);
    let event = |ms: u64, khz: u32, cpu: u32| {
        let payload = [khz.to_le_bytes(), cpu.to_le_bytes()].concat();
        Event { stamp: ms * 1_000_000, id: 0, tid: 0, payload }
    };
    let packet = |cpu, from: u64, to: u64, (seq, discarded)| Packet {
        seq,
        discarded,
        ..Packet::new(1, cpu, from * 1_000_000, to * 1_000_000)
    };
    let first = packet(0, 0, 3, (0, 0)).bytes(&[event(1, 1_000_000, 0), event(2, 2_000_000, 1)]);
    let second = packet(0, 7, 10, (1, 5)).bytes(&[event(8, 1_500_000, 0)]);
    let third = packet(0, 11, 14, (2, 5)).bytes(&[event(12, 3_000_000, 0), event(13, 3_000_000, 0)]);
    let other = packet(1, 0, 10, (0, 0)).bytes(&[event(5, 2_500_000, 1)]);
    write_trace(folder, &class, &[("kernel_0", [first, second, third].concat()), ("kernel_1", other)]);
}

/// Readings of counters; `of` says what they are of.
fn write_counters(folder: &Path, of: &str) {
    let mut class = of_domain(2, "profile", "profile:counters", &[("cycles", 64), ("task_clock", 64)]);
    class.set_env(environment::PROFILE_COUNTERS, of.to_owned());
    let event = |ms: u64, cycles: u64, ns: u64| {
        let payload = [cycles.to_le_bytes(), ns.to_le_bytes()].concat();
        Event { stamp: ms * 1_000_000, id: 0, tid: 0, payload }
    };
    // The last reading is of a new archive, which counts from 0.
    let events = [
        event(1, 1_000, 0),
        event(2, 3_000, 500_000),
        event(4, 3_000, 2_500_000),
        event(8, 13_000, 2_500_001),
        event(9, 10, 10),
    ];
    write_trace(folder, &class, &[("cpu_0", Packet::new(2, 0, 0, 10_000_000).bytes(&events))]);
}

fn index_of(trace: &Path) -> Index {
    let (recording, folder) = (Recording::open(&[trace]).unwrap(), tempfile::tempdir().unwrap());
    let cache = Cache::new(Some(&folder.path().join("cache"))).unwrap();
    cache.make(&recording, &mut |_| ControlFlow::Continue(())).unwrap();
    let index = cache.find(&recording).unwrap();
    index.check().unwrap();
    index
}

/// What a counter is called, of what it is, its unit, and its values from one time to another in ms.
type Counter = (String, Option<RowKind>, String, Vec<(u64, u64, u64)>);

fn counters(index: &Index) -> Vec<Counter> {
    // Its begin is the first event's, at 1 ms.
    let ms = |time: Duration| time.as_ns() / 1_000_000 + 1;
    let values = |id: RowId| {
        let mut values = Vec::new();
        let all = |value: tracewing_index::Value| {
            values.push((value.value, ms(value.from), ms(value.to)));
            ControlFlow::Continue(())
        };
        index.each_value(id, Duration::ZERO, Duration::MAX, all).unwrap();
        values
    };
    let found = index.rows().filter(|(_, row)| matches!(row.kind, RowKind::Counter(_)));
    found
        .map(|(id, row)| {
            let of = row.parent.map(|parent| index.row(parent).kind);
            (row.name.clone(), of, row.counter.as_ref().unwrap().unit.clone(), values(id))
        })
        .collect()
}

#[test]
fn a_frequency_holds_until_the_next_one_or_until_events_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    write_frequencies(&folder.path().join("kernel"));
    let index = index_of(folder.path());
    let end = index.tail().length.as_ns() / 1_000_000 + 1;
    let cpu = |number| Some(RowKind::Cpu(tracewing_units::Cpu(number)));
    let named = |number, values| ("frequency".to_owned(), cpu(number), "kHz".to_owned(), values);
    let expected =
        [named(0, vec![(1_000_000, 1, 3), (3_000_000, 12, end)]), named(1, vec![(2_000_000, 2, 3)])];
    assert_eq!(counters(&index), expected);
    assert!(end >= 13);
}

#[test]
fn counts_are_rates_between_readings() {
    for (of, cpu) in
        [(environment::OF_CPU, Some(RowKind::Cpu(tracewing_units::Cpu(0)))), (environment::OF_TREE, None)]
    {
        let folder = tempfile::tempdir().unwrap();
        write_counters(&folder.path().join("profile"), of);
        let cycles = vec![(2_000_000, 1, 2), (0, 2, 4), (2_500_000, 4, 8)];
        let clock = vec![(500_000_000, 1, 2), (1_000_000_000, 2, 4), (250, 4, 8)];
        let expected = [
            ("cycles".to_owned(), cpu, "/s".to_owned(), cycles),
            ("task_clock".to_owned(), cpu, "ns/s".to_owned(), clock),
        ];
        assert_eq!(counters(&index_of(folder.path())), expected);
    }
}

/// Readings of a recorder's counter on CPU 0 in ms.
fn write_cycles(folder: &Path, uuid: u8, readings: &[(u64, u64)]) {
    let mut class = of_domain(uuid, "profile", "profile:counters", &[("cycles", 64)]);
    class.set_env(environment::PROFILE_COUNTERS, environment::OF_CPU.to_owned());
    let event = |&(ms, cycles): &(u64, u64)| Event {
        stamp: ms * 1_000_000,
        id: 0,
        tid: 0,
        payload: cycles.to_le_bytes().to_vec(),
    };
    let events: Vec<Event> = readings.iter().map(event).collect();
    write_trace(folder, &class, &[("cpu_0", Packet::new(uuid, 0, 0, 10_000_000).bytes(&events))]);
}

#[test]
fn recorders_at_the_same_time_have_rows_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name, uuid, readings: &[_]| write_cycles(&folder.path().join(name), uuid, readings);
    write("one", 3, &[(1, 0), (3, 2_000), (5, 4_000)]);
    write("other", 4, &[(2, 1_000_000), (4, 1_000_001), (6, 1_000_002)]);
    // Another archive follows; its last reading cannot be.
    write("later", 5, &[(7, 10), (8, 20), (9, 10_000_000_000_000_000)]);
    let found: Vec<_> = counters(&index_of(folder.path())).into_iter().map(|(.., values)| values).collect();
    let first = vec![(1_000_000, 1, 5), (10_000, 7, 8)];
    assert_eq!(found, [first, vec![(500, 2, 6)]]);
}
