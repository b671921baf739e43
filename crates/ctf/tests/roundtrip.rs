//! Random trace classes and values of both versions: what is written is read back, also by way of the other
//! version.

mod generate;

use generate::{Rng, event_values, trace_class};
use proptest::prelude::*;
use std::sync::Arc;
use tracewing_ctf::convert::{to_ctf1, to_ctf2, with_whole_stamps};
use tracewing_ctf::decode::{Decoder, Packet, Step, StreamReader};
use tracewing_ctf::encode::{FieldValue, PacketEnd, PacketStart, Record, StreamWriter};
use tracewing_ctf::model::{
    DataStreamClass, EventRecordClass, FieldClass, FloatClass, IntegerClass, Scope, StructureClass,
    TraceClass, Version,
};
use tracewing_ctf::{Error, json, metadata, tsdl};
use tracewing_units::Cycles;

/// An event record as it is read back: class, stamp, fields.
type Read = (u64, Option<Cycles>, Record);

/// What the writer does not know of a packet.
fn context(class: &TraceClass) -> Record {
    let context = Record::new().with(Scope::PacketContext, "cpu_id", 3_u16);
    match class.version {
        Version::V1_8 => context,
        Version::V2 => context.with(Scope::PacketContext, "packet_size", 9_u8),
    }
}

/// Writes random event records into packets of 100 bytes or little more.
fn write(classes: &Arc<Decoder>, seed: u64) -> Result<(Vec<u8>, Vec<Read>), Error> {
    let class = classes.trace_class().clone();
    let stream = &class.data_stream_classes[0];
    let mut rng = Rng(seed);
    let mut writer = StreamWriter::new(classes.clone(), 0).with_packet_bytes(100);
    let mut written = Vec::new();
    let mut stamp = Cycles(rng.next() >> 8);
    let context = context(&class);
    let begin = |stamp, seq| PacketStart { stream_instance_id: Some(7), begin: Some(stamp), seq: Some(seq) };
    writer.begin_packet(&begin(stamp, 0), &context)?;
    let mut packets = 1;
    for _ in 0..rng.next() % 9 {
        let gap = rng.next() % 64;
        stamp.0 += rng.next() >> gap >> 10;
        let event = rng.next() as usize % stream.event_record_classes.len();
        let record = event_values(stream, event, &mut rng);
        if !writer.event(event, Some(stamp), &record)? {
            writer.end_packet(&PacketEnd { discarded: packets, ..PacketEnd::default() })?;
            writer.begin_packet(&begin(stamp, packets), &context)?;
            packets += 1;
            assert!(writer.event(event, Some(stamp), &record)?, "the first record of a packet always fits");
        }
        written.push((stream.event_record_classes[event].id, Some(stamp), record));
    }
    writer.end_packet(&PacketEnd { end: Some(stamp), discarded: packets, least_bytes: 128 })?;
    Ok((writer.take(), written))
}

fn read(classes: &Arc<Decoder>, bytes: &[u8]) -> Result<(Vec<Packet>, Vec<Read>), Error> {
    let mut reader = StreamReader::new(classes.clone(), bytes);
    let (mut packets, mut events) = (Vec::new(), Vec::new());
    loop {
        match reader.advance()? {
            Step::Packet => packets.push(reader.packet().clone()),
            Step::Event => {
                let event = reader.event();
                events.push((event.class().id, event.clock_value(), Record::of(&event)));
            }
            Step::PacketEnd => {}
            Step::End => return Ok((packets, events)),
        }
    }
}

/// Writes what a reader decodes with other classes, packet by packet.
fn rewrite(from: &Arc<Decoder>, bytes: &[u8], to: &Arc<Decoder>) -> Result<Vec<u8>, Error> {
    let mut reader = StreamReader::new(from.clone(), bytes);
    let mut writer = StreamWriter::new(to.clone(), 0);
    loop {
        let packet = reader.packet().clone();
        match reader.advance()? {
            Step::Packet => {
                let Packet { stream_instance_id, begin, seq, .. } = *reader.packet();
                writer.begin_packet(&PacketStart { stream_instance_id, begin, seq }, &reader)?;
            }
            Step::Event => {
                let event = reader.event();
                writer.event(event.class_index(), event.clock_value(), &event)?;
            }
            Step::PacketEnd => {
                let discarded = packet.discarded.unwrap_or(0);
                writer.end_packet(&PacketEnd { end: packet.end, discarded, least_bytes: 0 })?;
            }
            Step::End => return Ok(writer.take()),
        }
    }
}

/// The values alone, which stay where names and kinds change: what is not there is nothing, a boolean a
/// number, bytes are numbers.
fn leaves(value: &FieldValue, out: &mut Vec<FieldValue>) {
    match value {
        FieldValue::Structure(members) => members.iter().for_each(|(_, value)| leaves(value, out)),
        FieldValue::Array(elements) => elements.iter().for_each(|value| leaves(value, out)),
        FieldValue::Optional(content) => content.iter().for_each(|value| leaves(value, out)),
        FieldValue::Variant(_, value) => leaves(value, out),
        FieldValue::Boolean(value) => out.push(u8::from(*value).into()),
        FieldValue::Blob(bytes) => out.extend(bytes.iter().map(|byte| FieldValue::from(*byte))),
        FieldValue::Text(text) => {
            out.push(FieldValue::Text(String::from_utf8_lossy(text).into_owned().into_bytes()))
        }
        other => out.push(other.clone()),
    }
}

fn all_leaves(events: &[Read]) -> Vec<(u64, Option<Cycles>, String)> {
    let scopes = [Scope::CommonContext, Scope::SpecificContext, Scope::Payload];
    let of_record = |record: &Record| {
        let mut out = Vec::new();
        let members = scopes.iter().flat_map(|scope| record.scope(*scope));
        members.for_each(|(_, value)| leaves(value, &mut out));
        // Text, because NaN differs from itself.
        format!("{out:?}")
    };
    events.iter().map(|(id, stamp, record)| (*id, *stamp, of_record(record))).collect()
}

fn same(left: &[Read], right: &[Read]) -> Result<(), TestCaseError> {
    prop_assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(right) {
        prop_assert_eq!(format!("{left:?}"), format!("{right:?}"));
    }
    Ok(())
}

fn failed(what: &str) -> impl Fn(Error) -> TestCaseError + '_ {
    move |error| TestCaseError::fail(format!("{what}: {error}"))
}

fn compiled(class: TraceClass) -> Result<Arc<Decoder>, TestCaseError> {
    let text = format!("{class:#?}");
    Decoder::new(Arc::new(class))
        .map_err(failed("compile"))
        .map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))
}

fn print(class: &TraceClass) -> String {
    if class.version == Version::V2 { json::print(class) } else { tsdl::print(class) }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(class in trace_class(), seed in any::<u64>()) {
        let classes = compiled(class)?;
        let (bytes, written) = write(&classes, seed).map_err(failed("write"))?;
        let (packets, events) = read(&classes, &bytes).map_err(failed("read"))?;
        same(&events, &written)?;
        for (index, packet) in packets.iter().enumerate() {
            prop_assert_eq!(packet.seq, Some(index as u64));
            prop_assert_eq!(packet.discarded, Some(index as u64 + 1));
            prop_assert_eq!(packet.stream_instance_id, Some(7));
            prop_assert!(packet.begin <= packet.end);
        }
        let last = written.last().and_then(|(_, stamp, _)| *stamp);
        prop_assert!(last.is_none() || packets.last().unwrap().end == last);
        prop_assert!(packets.last().unwrap().packet_bits >= 128 * 8);
    }

    #[test]
    fn what_is_printed_is_parsed(class in trace_class()) {
        let text = print(&class);
        let parsed = metadata::parse(text.as_bytes()).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        let mut class = class;
        if class.version == Version::V1_8 {
            class.fill_roles();
        }
        prop_assert_eq!(format!("{:#?}", parsed), format!("{class:#?}"), "{}", text);
    }

    #[test]
    fn the_other_version_has_the_same_values(class in trace_class(), seed in any::<u64>()) {
        let version = class.version;
        let classes = compiled(class.clone())?;
        let (bytes, written) = write(&classes, seed).map_err(failed("write"))?;
        let convert = if version == Version::V2 { to_ctf1 } else { to_ctf2 };
        let back = if version == Version::V2 { to_ctf2 } else { to_ctf1 };

        let other = convert(&class).map_err(failed("convert"))?;
        let other_bytes = rewrite(&classes, &bytes, &compiled(other.clone())?).map_err(failed("rewrite"))?;
        // The other version's own words, as a reader gets them.
        let other_text = print(&other);
        let other = metadata::parse(other_text.as_bytes())
            .map_err(|error| TestCaseError::fail(format!("{error}\n{other_text}")))?;
        let others = compiled(other.clone())?;
        let (packets, events) = read(&others, &other_bytes).map_err(failed(&other_text))?;
        prop_assert_eq!(all_leaves(&events), all_leaves(&written));
        prop_assert_eq!(packets.last().unwrap().discarded, Some(packets.len() as u64));

        let again = compiled(back(&other).map_err(failed("convert back"))?)?;
        let again_bytes = rewrite(&others, &other_bytes, &again).map_err(failed("rewrite back"))?;
        let (_, events) = read(&again, &again_bytes).map_err(failed("read back"))?;
        if version == Version::V1_8 {
            same(&events, &written)?;
        } else {
            prop_assert_eq!(all_leaves(&events), all_leaves(&written));
        }
    }

    #[test]
    fn event_records_can_be_left_out(class in trace_class(), seed in any::<u64>()) {
        let mut class = class;
        if class.version == Version::V1_8 {
            class.fill_roles();
        }
        let classes = compiled(class.clone())?;
        let (bytes, written) = write(&classes, seed).map_err(failed("write"))?;
        let whole = compiled(with_whole_stamps(&class).map_err(failed("widen"))?)?;
        let mut reader = StreamReader::new(classes, bytes.as_slice());
        let mut writer = StreamWriter::new(whole.clone(), 0);
        let start = PacketStart { stream_instance_id: Some(7), begin: Some(Cycles::ZERO), seq: Some(0) };
        let context = context(whole.trace_class());
        writer.begin_packet(&start, &context).map_err(failed("begin"))?;
        let mut kept = Vec::new();
        let mut number = 0;
        loop {
            match reader.advance().map_err(failed("read"))? {
                Step::Event => {
                    if number % 3 == 2 {
                        let event = reader.event();
                        writer.event(event.class_index(), event.clock_value(), &event).map_err(failed("write again"))?;
                        kept.push(written[number].clone());
                    }
                    number += 1;
                }
                Step::End => break,
                Step::Packet | Step::PacketEnd => {}
            }
        }
        writer.end_packet(&PacketEnd::default()).map_err(failed("end"))?;
        let (_, events) = read(&whole, writer.bytes()).map_err(failed("read what was kept"))?;
        same(&events, &kept)?;
    }
}

/// Metadata files below a folder.
fn metadata_files(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_name() == "metadata" {
            true => found.push(entry.path()),
            false => metadata_files(&entry.path(), found),
        }
    }
}

#[test]
fn metadata_of_the_conformance_suite_is_printed_and_parsed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/ctf-conformance");
    let mut found = Vec::new();
    metadata_files(&folder, &mut found);
    if found.is_empty() {
        tracewing_testing::skip(
            tracewing_testing::Cause::File(&folder),
            "there is no ../shared/ctf-conformance",
        );
    }
    for path in found {
        let Ok(class) = metadata::parse(&std::fs::read(&path).unwrap()) else { continue };
        let text = print(&class);
        let parsed =
            metadata::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(parsed, class, "{}\n{text}", path.display());
        // In the other version too.
        let other = if class.version == Version::V2 { to_ctf1 } else { to_ctf2 };
        let other = other(&class).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let text = print(&other);
        let parsed = metadata::parse(text.as_bytes())
            .unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
        assert_eq!(print(&parsed), text, "{}", path.display());
    }
}

#[test]
fn what_ctf_1_8_cannot_say_is_refused_with_the_name_of_the_field() {
    let refused = |payload: StructureClass| {
        let mut stream = DataStreamClass::new(0);
        stream.event_record_classes.push(EventRecordClass::new(0, "e").with_payload(payload));
        let mut trace = TraceClass { version: Version::V2, ..TraceClass::new() };
        trace.data_stream_classes.push(stream);
        to_ctf1(&trace).unwrap_err().to_string()
    };
    let real = StructureClass::new().with("a", StructureClass::new().with("real", FloatClass::new(128)));
    let error = refused(real);
    assert!(error.contains("event \"e\", event payload, field `a.real`") && error.contains("128"), "{error}");
    let same =
        StructureClass::new().with("a b", FieldClass::unsigned(8)).with("a-b", FieldClass::unsigned(8));
    let error = refused(StructureClass::new().with("x", same));
    assert!(error.contains("field `x`") && error.contains("`a_b`"), "{error}");
}

/// CTF 2 requires a data stream class, TSDL does not; and any structure may be empty.
#[test]
fn next_to_nothing_is_converted() {
    let nothing = to_ctf2(&TraceClass::new()).unwrap();
    let parsed = json::parse(json::print(&nothing).as_bytes()).unwrap();
    assert_eq!(parsed.data_stream_classes.len(), 1);

    let payload = StructureClass::new().with("a", FieldClass::array(StructureClass::new(), 3));
    let mut stream = DataStreamClass::new(0);
    stream.event_record_classes.push(EventRecordClass::new(0, "e").with_payload(payload));
    let mut class = TraceClass::new();
    class.data_stream_classes.push(stream);
    let converted = to_ctf2(&class).unwrap();
    let parsed = json::parse(json::print(&converted).as_bytes()).unwrap();
    let payload = |class: &TraceClass| class.data_stream_classes[0].event_record_classes[0].payload.clone();
    assert_eq!(payload(&parsed), payload(&converted));
}

/// In CTF 1.8 the only class needs no id in the packets, whichever it has, and packets may have a UUID that
/// the trace has not.
#[test]
fn what_packets_lack_is_read_after_the_conversion() {
    let payload = StructureClass::new().with("a", FieldClass::unsigned(8));
    let mut stream = DataStreamClass::new(3);
    stream.event_record_classes.push(EventRecordClass::new(5, "e").with_payload(payload));
    let mut class = TraceClass::new();
    let uuid = FieldClass::array(IntegerClass::unsigned(8), 16);
    class.packet_header = Some(StructureClass::new().with("uuid", uuid));
    class.data_stream_classes.push(stream);
    let bytes: Vec<u8> = (0..18).collect();
    let from = Decoder::new(Arc::new(class)).unwrap();
    let converted = to_ctf2(from.trace_class()).unwrap();
    let to = Decoder::new(Arc::new(json::parse(json::print(&converted).as_bytes()).unwrap())).unwrap();
    let rewritten = rewrite(&from, &bytes, &to).unwrap();
    assert_eq!(rewritten, bytes);
    let fields = |events: Vec<Read>| events.into_iter().map(|(.., record)| record).collect::<Vec<_>>();
    assert_eq!(fields(read(&to, &rewritten).unwrap().1), fields(read(&from, &bytes).unwrap().1));
}

/// In CTF 2, paths do not name options and ranges may go beyond what a selector can be; babeltrace2 takes one
/// name for a tag.
#[test]
fn references_through_options_become_names() {
    let u8 =
        r#"{"type":"fixed-length-unsigned-integer","length":8,"alignment":8,"byte-order":"little-endian"}"#;
    let text = format!(
        r#"{{"type":"preamble","version":2}}{{"type":"data-stream-class"}}
        {{"type":"event-record-class","name":"e","payload-field-class":{{"type":"structure","member-classes":[
          {{"name":"s","field-class":{{"type":"structure","member-classes":[
            {{"name":"tag","field-class":{u8}}},
            {{"name":"v","field-class":{{"type":"variant",
              "selector-field-location":{{"origin":"event-record-payload","path":["s","tag"]}},"options":[
              {{"name":"a","selector-field-ranges":[[1,1000]],"field-class":{{"type":"structure","member-classes":[
                {{"name":"len","field-class":{u8}}},
                {{"name":"data","field-class":{{"type":"dynamic-length-array","element-field-class":{u8},
                  "length-field-location":{{"origin":"event-record-payload","path":["s","v","len"]}}}}}}]}}}},
              {{"name":"b","selector-field-ranges":[[2000,3000]],"field-class":{u8}}}]}}}}]}}}}]}}}}"#
    );
    let text = text
        .replace("}{\"type\":\"data", "}\u{1e}{\"type\":\"data")
        .replace("\n        {\"type\":\"event", "\u{1e}{\"type\":\"event");
    let class = metadata::parse(format!("\u{1e}{text}").as_bytes()).unwrap();
    let bytes = [200, 2, 5, 6, 1, 0];
    let (_, events) = read(&compiled(class.clone()).unwrap(), &bytes).unwrap();
    assert_eq!(events.len(), 2);

    let converted = tsdl::print(&to_ctf1(&class).unwrap());
    assert!(converted.contains("variant <tag>") && converted.contains("data[len]"), "{converted}");
    let other = metadata::parse(converted.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{converted}"));
    let (_, others) = read(&compiled(other.clone()).unwrap(), &bytes).unwrap();
    assert_eq!(all_leaves(&others), all_leaves(&events));

    // From a path that does name them.
    let named = converted.replace("data[len]", "data[event.fields.s.v.a.len]");
    let named = to_ctf2(&metadata::parse(named.as_bytes()).unwrap()).unwrap();
    let (_, others) = read(&compiled(named).unwrap(), &bytes).unwrap();
    assert_eq!(all_leaves(&others), all_leaves(&events));
}
