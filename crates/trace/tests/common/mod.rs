//! Makes small traces in tracewing's own layout, for tests: metadata through the printer, packets byte by
//! byte.
#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;
use tracewing_ctf::model::{
    ClockClass, DataStreamClass, EventRecordClass, FieldClass, StructureClass, TraceClass, Uuid,
};
use tracewing_ctf::{tsdl, write};
use tracewing_units::{Cpu, Cycles};

/// An event to be written.
pub struct Event {
    pub stamp: u64,
    pub id: u16,
    pub tid: i32,
    pub payload: Vec<u8>,
}

/// An event of class 0, whose payload is one `u32`.
pub fn tick(stamp: u64, number: u32) -> Event {
    Event { stamp, id: 0, tid: 7, payload: number.to_le_bytes().to_vec() }
}

/// A packet to be written.
#[derive(Clone, Copy)]
pub struct Packet {
    pub uuid: Uuid,
    pub instance: u64,
    pub begin: u64,
    pub end: u64,
    pub seq: u64,
    pub discarded: u64,
    pub cpu: u32,
}

impl Packet {
    pub fn new(uuid: u8, instance: u64, begin: u64, end: u64) -> Self {
        Packet { uuid: [uuid; 16], instance, begin, end, seq: 0, discarded: 0, cpu: instance as u32 }
    }

    /// The packet's bytes, with 24 bytes of padding.
    pub fn bytes(&self, events: &[Event]) -> Vec<u8> {
        let mut content = Vec::new();
        for event in events {
            content.extend_from_slice(&(event.stamp as u32).to_le_bytes());
            content.extend_from_slice(&event.id.to_le_bytes());
            content.extend_from_slice(&(12 + event.payload.len() as u16).to_le_bytes());
            content.extend_from_slice(&event.tid.to_le_bytes());
            content.extend_from_slice(&event.payload);
        }
        let header = |content_bytes, packet_bytes| write::PacketHeader {
            uuid: self.uuid,
            stream_id: 0,
            stream_instance_id: self.instance,
            begin: Cycles(self.begin),
            end: Cycles(self.end),
            content_bytes,
            packet_bytes,
            seq: self.seq,
            discarded: self.discarded,
            cpu: Cpu(self.cpu),
        };
        let head = header(0, 0).encode().len() as u64;
        let size = head + content.len() as u64;
        let mut bytes = header(size, size + 24).encode().to_vec();
        bytes.extend_from_slice(&content);
        bytes.resize(bytes.len() + 24, 0);
        bytes
    }
}

/// A trace class with one stream class, class 0 `test:tick { u32 n }`, and a clock of `frequency`.
pub fn class(uuid: Option<u8>, frequency: u64) -> TraceClass {
    let mut class = TraceClass::new();
    class.uuid = uuid.map(|byte| [byte; 16]);
    class.clock_classes.push(ClockClass {
        uuid: Some([0xCC; 16]),
        offset_seconds: 1_795_235_140,
        offset_cycles: Cycles(123_456_789),
        ..ClockClass::new("tsc", frequency)
    });
    class.packet_header = Some(write::packet_header_class());
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class("tsc"));
    stream.event_header = Some(write::user_event_header_class("tsc"));
    stream.common_context = Some(StructureClass::new().with("tid", FieldClass::signed(32)));
    let payload = StructureClass::new().with("n", FieldClass::unsigned(32));
    stream.event_record_classes.push(EventRecordClass::new(0, "test:tick").with_payload(payload));
    class.data_stream_classes.push(stream);
    class
}

/// Removes the losses that the metadata of a CTF 1.8 trace declares: babeltrace2 does not know them.
pub fn forget_declared_losses(folder: &Path) {
    let metadata = std::fs::read_to_string(folder.join("metadata")).unwrap();
    let lines = metadata.lines().filter(|line| !line.trim_start().starts_with("lost_"));
    std::fs::write(folder.join("metadata"), lines.map(|line| format!("{line}\n")).collect::<String>())
        .unwrap();
}

/// Writes a trace: its metadata, and its stream files by name.
pub fn write_trace(folder: &Path, class: &TraceClass, files: &[(&str, Vec<u8>)]) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("metadata"), tsdl::print(class)).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}
