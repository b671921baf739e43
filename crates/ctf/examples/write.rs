//! Writes a CTF trace of its own events, of either version, and reads it back.
//!
//! `cargo run -p tracewing-ctf --example write -- FOLDER [1|2]`; then `tracewing list FOLDER`, or babeltrace2
//! for version 1.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tracewing_ctf::convert::to_ctf2;
use tracewing_ctf::decode::{Decoder, Step, StreamReader, Value};
use tracewing_ctf::encode::{FieldValue, PacketEnd, PacketStart, Record, StreamWriter};
use tracewing_ctf::model::{
    ClockClass, DataStreamClass, EnumerationClass, EventRecordClass, FieldClass, IntegerClass, Scope,
    StructureClass, TraceClass,
};
use tracewing_ctf::{json, tsdl};
use tracewing_units::Cycles;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: write FOLDER [1|2]")?;
    let folder = Path::new(&folder);
    let mut class = trace_class();
    let metadata = match arguments.next().as_deref() {
        Some("2") => {
            class = to_ctf2(&class)?;
            json::print(&class)
        }
        _ => tsdl::print(&class),
    };
    let classes = Decoder::new(Arc::new(class))?;
    let stream = write(&classes)?;
    std::fs::create_dir(folder)?;
    std::fs::write(folder.join("metadata"), metadata)?;
    std::fs::write(folder.join("stream"), &stream)?;
    println!("{} bytes; {} items in the orders", stream.len(), count_items(&classes, &stream)?);
    Ok(())
}

/// What packets and events consist of. Members with names that CTF 1.8 knows are filled in by the writer.
fn trace_class() -> TraceClass {
    let stamp = |size| IntegerClass::unsigned(size).with_clock("monotonic");
    let mut trace = TraceClass::new();
    trace.uuid = Some(*b"an-example-trace");
    trace.clock_classes.push(ClockClass::new("monotonic", 1_000_000_000));
    trace.packet_header = Some(
        StructureClass::new()
            .with("magic", FieldClass::unsigned(32))
            .with("uuid", FieldClass::array(IntegerClass::unsigned(8), 16)),
    );
    let mut stream = DataStreamClass::new(0);
    stream.packet_context = Some(
        StructureClass::new()
            .with("timestamp_begin", stamp(64))
            .with("timestamp_end", stamp(64))
            .with("content_size", FieldClass::unsigned(32))
            .with("packet_size", FieldClass::unsigned(32))
            .with("packet_seq_num", FieldClass::unsigned(32))
            .with("events_discarded", FieldClass::unsigned(32))
            .with("cpu_id", FieldClass::unsigned(16)),
    );
    stream.event_header =
        Some(StructureClass::new().with("id", FieldClass::unsigned(16)).with("timestamp", stamp(64)));
    let state = EnumerationClass::new(IntegerClass::unsigned(8)).with("new", 0, 0).with("paid", 1, 2);
    let order = StructureClass::new()
        .with("customer", FieldClass::string())
        .with("state", state)
        .with("count", FieldClass::unsigned(8))
        .with("items", FieldClass::sequence(FieldClass::unsigned(32), "count"));
    stream.event_record_classes.push(EventRecordClass::new(0, "shop:order").with_payload(order));
    trace.data_stream_classes.push(stream);
    trace
}

/// Two hundred orders in packets of at most 4096 bytes.
fn write(classes: &Arc<Decoder>) -> Result<Vec<u8>, tracewing_ctf::Error> {
    let mut writer = StreamWriter::new(classes.clone(), 0).with_packet_bytes(4096);
    let context = Record::new().with(Scope::PacketContext, "cpu_id", 0_u16);
    let start = |stamp, seq| PacketStart { begin: Some(stamp), seq: Some(seq), ..PacketStart::default() };
    let mut packets = 0;
    writer.begin_packet(&start(Cycles::ZERO, packets), &context)?;
    for number in 0..200_u32 {
        let stamp = Cycles(u64::from(number) * 1_000_000);
        let order = Record::new()
            .with(Scope::Payload, "customer", format!("customer {number}"))
            .with(Scope::Payload, "state", 1_u8)
            .with(Scope::Payload, "count", 2_u8)
            .with(Scope::Payload, "items", FieldValue::array([number, 2 * number]));
        while !writer.event(0, Some(stamp), &order)? {
            writer.end_packet(&PacketEnd::default())?;
            packets += 1;
            writer.begin_packet(&start(stamp, packets), &context)?;
        }
    }
    writer.end_packet(&PacketEnd::default())?;
    Ok(writer.take())
}

/// The sum of `count` over all orders.
fn count_items(classes: &Arc<Decoder>, stream: &[u8]) -> Result<u64, tracewing_ctf::Error> {
    let mut reader = StreamReader::new(classes.clone(), stream);
    let mut sum = 0;
    loop {
        match reader.advance()? {
            Step::Event => {
                if let Some(Value::Unsigned(count, _)) = reader.event().field(Scope::Payload, "count") {
                    sum += count;
                }
            }
            Step::End => return Ok(sum),
            Step::Packet | Step::PacketEnd => {}
        }
    }
}
