//! What a writer refuses, and what it makes up by itself.

use std::sync::Arc;
use tracewing_ctf::Error;
use tracewing_ctf::decode::{Decoder, Step, StreamReader};
use tracewing_ctf::encode::{FieldValue, PacketEnd, PacketStart, Record, StreamWriter};
use tracewing_ctf::model::{
    BitArrayClass, ClockClass, DataStreamClass, Encoding, EnumerationClass, EventRecordClass, FieldClass,
    FieldLocation, FloatClass, IntegerClass, OptionalClass, Role, Scope, StringClass, StructureClass,
    TraceClass, VariantClass, VariantOption, Version,
};
use tracewing_units::Cycles;

/// Classes of CTF 2 with one event, whose payload this is.
fn classes(payload: StructureClass) -> Arc<Decoder> {
    let mut stream = DataStreamClass::new(0);
    stream.event_record_classes.push(EventRecordClass::new(0, "e").with_payload(payload));
    let mut trace = TraceClass { version: Version::V2, ..TraceClass::new() };
    trace.data_stream_classes.push(stream);
    Decoder::new(Arc::new(trace)).unwrap()
}

fn record(members: Vec<(&str, FieldValue)>) -> Record {
    members.into_iter().fold(Record::new(), |record, (name, value)| record.with(Scope::Payload, name, value))
}

/// The error for an event, and that nothing of it was written.
fn refused(payload: StructureClass, members: Vec<(&str, FieldValue)>) -> String {
    let mut writer = StreamWriter::new(classes(payload), 0);
    writer.begin_packet(&PacketStart::default(), &Record::new()).unwrap();
    let error = writer.event(0, None, &record(members)).unwrap_err();
    assert!(matches!(error, Error::Value { .. }), "{error:?}");
    writer.end_packet(&PacketEnd::default()).unwrap();
    assert_eq!(writer.bytes(), b"");
    error.to_string()
}

fn relative(name: &str) -> FieldLocation {
    FieldLocation::relative(0, [name])
}

#[test]
fn values_that_do_not_fit_their_classes() {
    let one = |class: FieldClass, value: FieldValue| {
        refused(StructureClass::new().with("x", class), vec![("x", value)])
    };
    let field = "event \"e\", field `x`: ";
    let number = FieldClass::unsigned(8);
    assert_eq!(one(number.clone(), 256_u32.into()), format!("{field}256 does not fit in 8 unsigned bits"));
    assert_eq!(one(number.clone(), (-1).into()), format!("{field}-1 does not fit in 8 unsigned bits"));
    assert_eq!(
        one(FieldClass::signed(8), 128_u8.into()),
        format!("{field}128 does not fit in 8 signed bits")
    );
    assert_eq!(
        one(FieldClass::signed(8), (-129).into()),
        format!("{field}-129 does not fit in 8 signed bits")
    );
    assert_eq!(one(number.clone(), "text".into()), format!("{field}text, but the class has an integer"));
    assert_eq!(
        one(number.clone(), FieldValue::array([1_u8])),
        format!("{field}an array, but the class has an integer")
    );
    assert_eq!(one(FieldClass::string(), "a\0b".into()), format!("{field}a string with a null in it"));
    let half = FieldClass::Float(FloatClass::new(16));
    assert_eq!(one(half, 0.1_f32.into()), format!("{field}0.1 is no floating point number of 16 bits"));
    let wide = FieldClass::String(StringClass::new(Encoding::Utf16Le));
    let bytes = FieldValue::Text(vec![0xff]);
    assert_eq!(
        one(wide, bytes),
        format!("{field}text that is not UTF-8, but the class has another encoding")
    );
    let two = FieldClass::array(number, 2);
    assert_eq!(
        one(two.clone(), FieldValue::array([1_u8])),
        format!("{field}1 elements, but the class says 2")
    );
    assert_eq!(
        one(two, FieldValue::array([1_u32, 256])),
        "event \"e\", field `x[1]`: 256 does not fit in 8 unsigned bits"
    );
    let structure =
        StructureClass::new().with("a", FieldClass::unsigned(8)).with("b", FieldClass::unsigned(8));
    let value = FieldValue::structure([("a", 1_u32), ("b", 256)]);
    assert_eq!(
        one(structure.clone().into(), value),
        "event \"e\", field `x.b`: 256 does not fit in 8 unsigned bits"
    );
    let value = FieldValue::structure([("a", 1_u8)]);
    assert!(one(structure.clone().into(), value).ends_with("`b` is missing"));
    let value = FieldValue::structure([("a", 1_u8), ("b", 2), ("c", 3)]);
    assert!(one(structure.into(), value).ends_with("`c`, which the class does not have here"));
}

#[test]
fn values_that_disagree_with_their_lengths_and_selectors() {
    let sequence = StructureClass::new()
        .with("n", FieldClass::unsigned(8))
        .with("x", FieldClass::sequence(FieldClass::unsigned(8), relative("n")));
    assert_eq!(
        refused(sequence, vec![("n", 3_u8.into()), ("x", FieldValue::array([1_u8, 2]))]),
        "event \"e\", field `x`: 2 elements, but the length field says 3"
    );
    let optional = StructureClass::new()
        .with("has", FieldClass::Boolean(BitArrayClass::new(1)))
        .with("x", OptionalClass::new(relative("has"), FieldClass::unsigned(8)));
    assert_eq!(
        refused(optional, vec![("has", true.into()), ("x", FieldValue::Optional(None))]),
        "event \"e\", field `x`: a field that is not there, but its selector says that it is there"
    );
    let mut variant = VariantClass::new(relative("tag"));
    let option =
        |name, range| VariantOption { ranges: vec![range], ..VariantOption::new(name, FieldClass::string()) };
    variant.options.extend([option("a", (0, 0)), option("b", (1, 1))]);
    let variant = StructureClass::new().with("tag", FieldClass::unsigned(8)).with("x", variant);
    let value = FieldValue::Variant("a".to_owned(), Box::new("text".into()));
    assert_eq!(
        refused(variant.clone(), vec![("tag", 1_u8.into()), ("x", value.clone())]),
        "event \"e\", field `x`: option `a`, but the tag selects `b`"
    );
    assert_eq!(
        refused(variant, vec![("tag", 2_u8.into()), ("x", value)]),
        "event \"e\", field `x`: a variant, but its tag selects nothing"
    );
}

#[test]
fn an_event_that_was_refused_leaves_no_bits() {
    let payload =
        StructureClass::new().with("a", IntegerClass::unsigned(3)).with("b", IntegerClass::unsigned(7));
    let mut writer = StreamWriter::new(classes(payload), 0);
    writer.begin_packet(&PacketStart::default(), &Record::new()).unwrap();
    let event = |a: u8, b: u8| record(vec![("a", a.into()), ("b", b.into())]);
    for (a, b) in [(5, 1), (2, 127), (7, 64), (1, 2)] {
        writer.event(0, None, &event(7, 128)).unwrap_err();
        assert!(writer.event(0, None, &event(a, b)).unwrap());
    }
    writer.end_packet(&PacketEnd::default()).unwrap();
    // Ten bits each, from the least significant one.
    let bits =
        [(5, 1), (2, 127), (7, 64), (1, 2)].iter().rev().fold(0_u64, |bits, (a, b)| bits << 10 | b << 3 | a);
    assert_eq!(writer.bytes(), &bits.to_le_bytes()[..5]);
}

/// Ids and stamps as `header` has them, with a clock and packet sizes around it.
fn with_header(header: StructureClass) -> Arc<Decoder> {
    let mut stream = DataStreamClass::new(0);
    let size = |role| IntegerClass::unsigned(32).with_role(role);
    stream.default_clock = Some("c".to_owned());
    stream.packet_context = Some(
        StructureClass::new()
            .with("content", size(Role::PacketContentLength))
            .with("begin", IntegerClass::unsigned(64).with_role(Role::DefaultClockTimestamp)),
    );
    stream.event_header = Some(header);
    for id in [3, 100] {
        let payload = StructureClass::new().with("x", FieldClass::unsigned(8));
        stream.event_record_classes.push(EventRecordClass::new(id, "e").with_payload(payload));
    }
    let mut trace = TraceClass { version: Version::V2, ..TraceClass::new() };
    trace.clock_classes.push(ClockClass::new("c", 1_000_000_000));
    trace.data_stream_classes.push(stream);
    Decoder::new(Arc::new(trace)).unwrap()
}

#[test]
fn a_header_takes_the_shortest_form_that_holds_id_and_stamp() {
    let stamp = |size| IntegerClass::unsigned(size).with_role(Role::DefaultClockTimestamp);
    let id = |size| IntegerClass::unsigned(size).with_role(Role::EventRecordClassId);
    let compact = StructureClass::new().with("stamp", stamp(24));
    let extended = StructureClass::new().with("real", id(16)).with("stamp", stamp(64));
    let mut variant = VariantClass::new(relative("id"));
    let option = |name, range, class: StructureClass| VariantOption {
        ranges: vec![range],
        ..VariantOption::new(name, FieldClass::from(class))
    };
    variant.options.extend([option("compact", (0, 30), compact), option("extended", (31, 31), extended)]);
    let tag = EnumerationClass::new(id(8)).with("compact", 0, 30).with("extended", 31, 31);
    let classes = with_header(StructureClass::new().with("id", tag).with("v", variant));
    let mut writer = StreamWriter::new(classes.clone(), 0);
    writer
        .begin_packet(&PacketStart { begin: Some(Cycles(1000)), ..PacketStart::default() }, &Record::new())
        .unwrap();
    let mut ends = vec![12];
    let events = [(0, 1001), (0, 1001 + 0xff_ffff), (0, 1001 + 0x2ff_ffff), (1, 1001 + 0x2ff_ffff)];
    for (event, stamp) in events {
        writer.event(event, Some(Cycles(stamp)), &record(vec![("x", 9_u8.into())])).unwrap();
    }
    writer.end_packet(&PacketEnd::default()).unwrap();
    let bytes = writer.take();
    let mut reader = StreamReader::new(classes.clone(), bytes.as_slice());
    let mut read = Vec::new();
    loop {
        match reader.advance().unwrap() {
            Step::Event => read.push((reader.event().class_index(), reader.event().clock_value().unwrap().0)),
            Step::End => break,
            Step::Packet | Step::PacketEnd => {}
        }
    }
    assert_eq!(read, events);
    // Two compact ones of 5 bytes, two extended ones of 12.
    ends.extend([17, 22, 34, 46]);
    assert_eq!(bytes.len(), 46);
    assert_eq!(ends[1..3].iter().map(|end| bytes[end - 5]).collect::<Vec<_>>(), [3, 3]);
    assert_eq!((bytes[22], bytes[34]), (31, 31));
}

#[test]
fn a_header_that_cannot_hold_the_stamp_is_refused() {
    let header = StructureClass::new()
        .with("id", IntegerClass::unsigned(8).with_role(Role::EventRecordClassId))
        .with("stamp", IntegerClass::unsigned(16).with_role(Role::DefaultClockTimestamp));
    let mut writer = StreamWriter::new(with_header(header), 0);
    writer
        .begin_packet(&PacketStart { begin: Some(Cycles(0)), ..PacketStart::default() }, &Record::new())
        .unwrap();
    let event = record(vec![("x", 9_u8.into())]);
    assert!(writer.event(0, Some(Cycles(0xffff)), &event).unwrap());
    let error = writer.event(0, Some(Cycles(0x2_0000)), &event).unwrap_err();
    assert_eq!(
        error.to_string(),
        "event \"e\", header: it has no form that holds the id 3 and the stamp 131072"
    );
    assert!(writer.event(0, Some(Cycles(0x1_0000)), &event).unwrap());
}

#[test]
fn packets_end_before_they_are_too_large() {
    let stamp = IntegerClass::unsigned(64).with_role(Role::DefaultClockTimestamp);
    let id = IntegerClass::unsigned(8).with_role(Role::EventRecordClassId);
    let classes = with_header(StructureClass::new().with("id", id).with("stamp", stamp));
    let mut writer = StreamWriter::new(classes, 0).with_packet_bytes(32);
    let event = record(vec![("x", 9_u8.into())]);
    let start = PacketStart { begin: Some(Cycles(0)), ..PacketStart::default() };
    writer.begin_packet(&start, &Record::new()).unwrap();
    // 12 bytes of context, 10 of each event.
    assert!(writer.event(0, Some(Cycles(1)), &event).unwrap());
    assert!(writer.event(0, Some(Cycles(2)), &event).unwrap());
    assert!(!writer.event(0, Some(Cycles(3)), &event).unwrap());
    writer.end_packet(&PacketEnd { least_bytes: 40, ..PacketEnd::default() }).unwrap();
    assert_eq!(writer.bytes().len(), 40);
    // One record alone may be larger.
    let mut writer = writer.with_packet_bytes(16);
    writer.clear();
    writer.begin_packet(&start, &Record::new()).unwrap();
    assert!(writer.event(0, Some(Cycles(1)), &event).unwrap());
    writer.end_packet(&PacketEnd::default()).unwrap();
    assert_eq!(writer.bytes().len(), 22);
}
