//! tracewing's own packet layout, read back by babeltrace2 and by this crate's decoder.

#[cfg(feature = "read")]
mod common;

use std::path::Path;
use std::process::Command;

use tracewing_ctf::model::{
    ClockClass, DataStreamClass, DisplayBase, Encoding, EnumerationClass, EventRecordClass, FieldClass,
    IntegerClass, StructureClass, TraceClass, VariantClass,
};
use tracewing_ctf::write::{self, PacketHeader};
use tracewing_ctf::{index, tsdl};
use tracewing_units::{Cpu, Cycles};

const UUID: [u8; 16] = *b"0123456789abcdef";

/// A trace folder that goes away with it.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("index")).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn trace(event_header: StructureClass) -> TraceClass {
    let payload = StructureClass::new()
        .with("addr", IntegerClass::unsigned(64).with_base(DisplayBase::Hexadecimal))
        .with("comm", FieldClass::array(IntegerClass::unsigned(8).with_encoding(Encoding::Utf8), 4))
        .with("_data_length", FieldClass::unsigned(8))
        .with("data", FieldClass::sequence(FieldClass::signed(16), "_data_length"))
        .with("event", FieldClass::string())
        .with(
            "state",
            EnumerationClass::new(IntegerClass::signed(8)).with("idle", -1, 0).with("a \"b\"", 1, 3),
        );
    let option =
        VariantClass::new("has").with("none", StructureClass::new()).with("some", FieldClass::unsigned(16));
    let optional = StructureClass::new()
        .with("has", EnumerationClass::new(IntegerClass::unsigned(8)).with("none", 0, 0).with("some", 1, 1))
        .with("value", option)
        .with("x", FieldClass::float(64));
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(write::packet_context_class("tsc"));
    stream.event_header = Some(event_header);
    stream.common_context = Some(StructureClass::new().with("tid", FieldClass::signed(32)));
    stream.event_record_classes.push(EventRecordClass::new(7, "shop:all \"kinds\"").with_payload(payload));
    stream.event_record_classes.push(EventRecordClass {
        log_level: Some(6),
        emf_uri: Some("http://example.com/a".to_owned()),
        ..EventRecordClass::new(65535, "shop:optional").with_payload(optional)
    });
    let mut trace = TraceClass::new();
    trace.uuid = Some(UUID);
    trace.set_env("note", "a \\ \"box\"\twith\nspecials");
    trace.set_env("tracer_major", -1);
    trace.clock_classes.push(ClockClass {
        uuid: Some(UUID),
        description: Some("a clock".to_owned()),
        precision: Some(Cycles(1)),
        offset_seconds: 1_700_000_000,
        offset_cycles: Cycles(12),
        ..ClockClass::new("tsc", 2_000_000_000)
    });
    trace.packet_header = Some(write::packet_header_class());
    trace.data_stream_classes.push(stream);
    trace
}

fn first_payload(out: &mut Vec<u8>) {
    out.extend(0xbeef_u64.to_le_bytes());
    out.extend(b"ab\0\0");
    out.push(2);
    out.extend([1, 0, 0xff, 0xff]);
    out.extend(b"hi\0");
    out.push(2);
}

fn second_payload(out: &mut Vec<u8>) {
    out.push(1);
    out.extend(513_u16.to_le_bytes());
    out.extend(1.5_f64.to_le_bytes());
}

/// Writes one packet with the given records, runs babeltrace2 and returns its output; `None` if it is not
/// installed.
fn babeltrace(name: &str, trace: &TraceClass, records: &[u8]) -> Option<String> {
    let folder = Folder::new(name);
    let packet = PacketHeader {
        uuid: UUID,
        stream_id: 0,
        stream_instance_id: 3,
        begin: Cycles(0x1_ffff_fff0),
        end: Cycles(0x5_0000_0000),
        content_bytes: (write::PACKET_HEADER_SIZE + records.len()) as u64,
        packet_bytes: 4096,
        seq: 0,
        discarded: 0,
        cpu: Cpu(5),
    };
    let mut data = packet.encode().to_vec();
    data.extend(records);
    data.resize(4096, 0);
    let entry = index::Entry {
        packet_bits: packet.packet_bytes * 8,
        content_bits: packet.content_bytes * 8,
        begin: packet.begin,
        end: packet.end,
        stream_instance_id: Some(3),
        seq: Some(0),
        ..index::Entry::default()
    };
    std::fs::write(folder.0.join("metadata"), tsdl::print(trace)).unwrap();
    std::fs::write(folder.0.join("stream_0"), data).unwrap();
    std::fs::write(
        folder.0.join("index/stream_0.idx"),
        [&index::encode_header()[..], &index::encode_entry(&entry)].concat(),
    )
    .unwrap();
    let run = Command::new("babeltrace2").args(["--clock-cycles", "--no-delta"]).arg(&folder.0).output();
    let Ok(run) = run else {
        tracewing_testing::skip(
            tracewing_testing::Cause::Program("babeltrace2"),
            "babeltrace2 is not installed",
        );
        return None;
    };
    assert_eq!(String::from_utf8_lossy(&run.stderr), "", "{}", tsdl::print(trace));
    #[cfg(feature = "read")]
    common::same_as_babeltrace(&folder.0);
    Some(String::from_utf8(run.stdout).unwrap())
}

const FIRST: &str = "{ cpu_id = 5 }, { tid = 42 }, { addr = 0xBEEF, comm = \"ab\", _data_length = 2, \
                     data = [ [0] = 1, [1] = -1 ], event = \"hi\", state = ( \"a \\\"b\\\"\" : container = 2 ) }";
const SECOND: &str =
    "{ cpu_id = 5 }, { tid = 43 }, { has = ( \"some\" : container = 1 ), value = { 513 }, x = 1.5 }";

#[test]
fn user_events() {
    let mut records = Vec::new();
    // The low half of the stamp is below the packet's beginning: it has wrapped.
    records.extend(0x10_u32.to_le_bytes());
    records.extend(7_u16.to_le_bytes());
    let mut body = 42_i32.to_le_bytes().to_vec();
    first_payload(&mut body);
    records.extend((8 + body.len() as u16).to_le_bytes());
    records.extend(body);
    records.extend([0, 0, 0, 0]);
    records.extend(write::EXTENDED_ID.to_le_bytes());
    let mut body = 0x4_0000_0000_u64.to_le_bytes().to_vec();
    body.extend(65535_u16.to_le_bytes());
    body.extend(43_i32.to_le_bytes());
    second_payload(&mut body);
    records.extend((8 + body.len() as u16).to_le_bytes());
    records.extend(body);
    let Some(text) = babeltrace("write-user", &trace(write::user_event_header_class("tsc")), &records) else {
        return;
    };
    let expected = format!(
        "[00000000008589934608] shop:all \"kinds\": {FIRST}\n[00000000017179869184] shop:optional: {SECOND}\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn kernel_events() {
    let mut records = 7_u16.to_le_bytes().to_vec();
    records.extend(0x10_u32.to_le_bytes());
    records.extend(42_i32.to_le_bytes());
    first_payload(&mut records);
    records.extend(write::EXTENDED_ID.to_le_bytes());
    records.extend([0; 4]);
    records.extend(0x4_0000_0000_u64.to_le_bytes());
    records.extend(65535_u16.to_le_bytes());
    records.extend(43_i32.to_le_bytes());
    second_payload(&mut records);
    let Some(text) = babeltrace("write-kernel", &trace(write::kernel_event_header_class("tsc")), &records)
    else {
        return;
    };
    let expected = format!(
        "[00000000008589934608] shop:all \"kinds\": {FIRST}\n[00000000017179869184] shop:optional: {SECOND}\n"
    );
    assert_eq!(text, expected);
}
