//! A recording of two CPUs that switch threads all the time, as long as a test wants it.

use crate::common::{Event, Packet, class, write_trace};
use std::path::Path;
use tracewing_ctf::model::{EventRecordClass, FieldClass, StructureClass};
use tracewing_units::Cycles;
use tracewing_vocabulary::environment;

/// Events of a packet.
const PACKET: u64 = 1000;
/// Time between two switches of a CPU, in nanoseconds.
pub const PERIOD: u64 = 10_000;
/// The thread that sleeps from the first switches to the last ones.
pub const SLEEPER: i32 = 99;

/// Writes a recording with so many switches on each of two CPUs, between threads 10 to 14 and 20 to 24. A
/// third of its time has twice as many as the rest.
pub fn write_switches(folder: &Path, count: u64) {
    let mut class = class(Some(1), 1_000_000_000);
    for (name, value) in [
        (environment::DOMAIN, "kernel"),
        (environment::TRACER_NAME, environment::TRACEWING),
        (environment::SCOPE, environment::SYSTEM),
    ] {
        class.set_env(name, value.to_owned());
    }
    class.clock_classes[0].offset_cycles = Cycles(0);
    let payload = StructureClass::new()
        .with("prev_comm", FieldClass::string())
        .with("prev_tid", FieldClass::signed(32))
        .with("prev_state", FieldClass::signed(64))
        .with("next_comm", FieldClass::string())
        .with("next_tid", FieldClass::signed(32));
    class.data_stream_classes[0].event_record_classes =
        vec![EventRecordClass::new(0, "sched_switch").with_payload(payload)];
    let files = [0, 1].map(|cpu| (format!("kernel_{cpu}"), stream(cpu, count)));
    let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    write_trace(folder, &class, &files);
}

fn stream(cpu: u64, count: u64) -> Vec<u8> {
    let (mut bytes, mut time, mut prev) = (Vec::new(), 1_000_000 + cpu * (PERIOD / 3), 0);
    for first in (0..count).step_by(PACKET as usize) {
        let begin = time;
        let some = (first..count.min(first + PACKET)).map(|number| {
            let next = match number {
                _ if cpu == 0 && (number == 3 || number + 3 == count) => SLEEPER,
                _ => (10 + 10 * cpu + number % 5) as i32,
            };
            let event = switch(time, prev, next);
            let is_dense = number > count / 3 && number < 2 * count / 3;
            time += if is_dense { PERIOD / 2 } else { PERIOD };
            prev = next;
            event
        });
        let some: Vec<Event> = some.collect();
        let end = time - 1;
        let packet = Packet { seq: first / PACKET, ..Packet::new(1, cpu, begin, end) };
        bytes.extend(packet.bytes(&some));
    }
    bytes
}

/// The earlier thread sleeps.
fn switch(stamp: u64, prev: i32, next: i32) -> Event {
    let named = |tid: i32| {
        let name = if tid == 0 { "swapper".to_owned() } else { format!("thread-{tid}") };
        [name.as_bytes(), b"\0", &tid.to_le_bytes()[..]].concat()
    };
    let state: i64 = i64::from(prev != 0);
    Event {
        stamp,
        id: 0,
        tid: prev,
        payload: [named(prev), state.to_le_bytes().to_vec(), named(next)].concat(),
    }
}
