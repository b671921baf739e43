//! `Merge::for_each` gives what `Merge::advance` does, event by event and loss by loss, wherever it is
//! stopped; the values are those that were written.

mod common;
#[allow(dead_code, reason = "only its numbers are used here")]
mod random;

use common::{Event, Packet, class, write_trace};
use random::{Numbers, ORIGIN};
use std::ops::ControlFlow;
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::{
    ByteOrder, EventRecordClass, FieldClass, IntegerClass, StructureClass, TraceClass,
};
use tracewing_trace::{EventRef, Merge, Message, Recording, TimeRange};
use tracewing_units::Timestamp;

/// Values as texts, one after the other.
#[derive(Default)]
struct Texts(String);

impl Texts {
    fn add(&mut self, value: impl std::fmt::Display) {
        self.0 += &format!("{value} ");
    }
}

impl Visitor for Texts {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        self.0 += name.unwrap_or("-");
        match value {
            Value::Unsigned(value, _) => self.add(value),
            Value::Signed(value, _) => self.add(value),
            Value::Text(text) => self.add(String::from_utf8_lossy(text)),
            other => panic!("{other:?}"),
        }
    }

    fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}
    fn end(&mut self, _: Compound<'_>) {}
}

/// What comes, as a text: of an event its stream, stamp, class and values.
fn shown(message: &Message<'_>) -> String {
    let show = |event: &EventRef<'_>| {
        let mut texts = Texts::default();
        event.visit_all(&mut texts);
        let mut again = Texts::default();
        event.decoded().visit_all(&mut again);
        assert_eq!(texts.0, again.0);
        let at = event.stamp().map(|stamp| (stamp.cycles, stamp.time.as_ns() - ORIGIN));
        assert_eq!(event.decoded().clock_value(), event.stamp().map(|stamp| stamp.cycles));
        let class = event.decoded().class_index();
        format!("{} {at:?} {class} {}bits {}", event.stream_index(), event.decoded().bits(), texts.0)
    };
    match message {
        Message::Event(event) => show(event),
        Message::Lost(lost, _, stream) => format!("{lost:?} {}", stream.name()),
    }
}

/// Classes whose event records have one size, one that is long, strings and sequences, numbers of the other
/// byte order, and one that has to be walked field by field.
fn classes() -> TraceClass {
    let mut class = class(Some(1), 1_000_000_000);
    let number = FieldClass::unsigned;
    let big = |size| IntegerClass::unsigned(size).with_byte_order(ByteOrder::Big);
    let text = StructureClass::new()
        .with("text", FieldClass::string())
        .with("count", number(8))
        .with("halves", FieldClass::sequence(number(16), "count"))
        .with("bytes", FieldClass::sequence(big(24), "count"));
    let long = (0..40).fold(StructureClass::new(), |class, at| class.with(format!("n{at}"), number(64)));
    let mixed = StructureClass::new().with("big", big(32)).with("signed", FieldClass::signed(16));
    let strings = StructureClass::new()
        .with("count", number(8))
        .with("strings", FieldClass::sequence(FieldClass::string(), "count"));
    for (id, name, payload) in [
        (1, "test:text", text),
        (2, "test:long", long),
        (3, "test:mixed", mixed),
        (4, "test:strings", strings),
    ] {
        let stream = &mut class.data_stream_classes[0];
        stream.event_record_classes.push(EventRecordClass::new(id, name).with_payload(payload));
    }
    class
}

/// An event of one of these classes, and its values as [`Texts`] shows them.
fn event(numbers: &mut Numbers, id: u16, stamp: u64) -> (Event, String) {
    let mut payload = Vec::new();
    let mut texts = Texts::default();
    let mut named = |name: &str, value: String| {
        texts.0 += name;
        texts.add(value);
    };
    let tid = numbers.below(1 << 32) as i32;
    named("tid", tid.to_string());
    let random = numbers.below(u64::MAX);
    match id {
        0 => {
            payload.extend((random as u32).to_le_bytes());
            named("n", (random as u32).to_string());
        }
        1 => {
            let text = "x".repeat(numbers.below(70) as usize);
            payload.extend(text.bytes().chain([0]));
            named("text", text);
            let count = numbers.below(6) as u8;
            payload.push(count);
            named("count", count.to_string());
            for at in 0..count {
                payload.extend((random as u16).rotate_left(at.into()).to_le_bytes());
                named("-", (random as u16).rotate_left(at.into()).to_string());
            }
            for at in 0..count {
                payload.extend([at, 2, 3]);
                named("-", (u32::from(at) << 16 | 0x203).to_string());
            }
        }
        2 => {
            for at in 0..40 {
                payload.extend(random.rotate_left(at).to_le_bytes());
                named(&format!("n{at}"), random.rotate_left(at).to_string());
            }
        }
        3 => {
            payload.extend((random as u32).to_be_bytes());
            payload.extend((random as i16).to_le_bytes());
            named("big", (random as u32).to_string());
            named("signed", (random as i16).to_string());
        }
        _ => {
            payload.extend([2, b'a', 0, b'b', b'c', 0]);
            named("count", "2".to_string());
            named("-", "a".to_string());
            named("-", "bc".to_string());
        }
    }
    (Event { stamp, id, tid, payload }, texts.0)
}

/// A stream's file, and the values of its events. Most packets are long; some stamps go back, some packets
/// are missing, and rarely an event has to be walked.
fn stream(numbers: &mut Numbers, instance: u64) -> (Vec<u8>, Vec<String>) {
    let (mut bytes, mut values) = (Vec::new(), Vec::new());
    let (mut time, mut seq, mut discarded) = (1000 + numbers.below(100), 0, 0);
    for _ in 0..3 + numbers.below(5) {
        let begin = time;
        let count = if numbers.below(4) == 0 { numbers.below(4) } else { 100 + numbers.below(400) };
        let only = if numbers.below(3) == 0 { Some(numbers.below(4) as u16) } else { None };
        let mut events = Vec::new();
        for _ in 0..count {
            time += numbers.below(4) * 5;
            let back = if numbers.below(200) == 0 { 3 } else { 0 };
            let id = only.unwrap_or((numbers.below(121) / 30) as u16);
            let (event, text) = event(numbers, id, (time - back).max(begin));
            events.push(event);
            values.push(text);
        }
        seq += 1 + numbers.below(8) / 7;
        discarded += numbers.below(6) / 5;
        bytes.extend(Packet { seq, discarded, ..Packet::new(1, instance, begin, time) }.bytes(&events));
        time += numbers.below(3) * 10;
    }
    (bytes, values)
}

fn by_advance(merge: &mut Merge<'_>, most: usize) -> Vec<String> {
    let mut all = Vec::new();
    while all.len() < most
        && let Some(message) = merge.advance().unwrap()
    {
        all.push(shown(&message));
    }
    all
}

fn by_for_each(merge: &mut Merge<'_>, most: usize) -> Vec<String> {
    let mut all = Vec::new();
    let flow = merge.for_each(|message| {
        all.push(shown(&message));
        if all.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(flow.unwrap().is_break(), all.len() == most);
    all
}

#[test]
fn the_same_as_one_by_one() {
    for seed in 1..40_u32 {
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15_u64.rotate_left(seed));
        let folder = tempfile::tempdir().unwrap();
        let streams: Vec<_> = (0..1 + u64::from(seed % 4)).map(|of| stream(&mut numbers, of)).collect();
        let files: Vec<(String, Vec<u8>)> =
            streams.iter().enumerate().map(|(at, (bytes, _))| (format!("s{at}"), bytes.clone())).collect();
        let files: Vec<_> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
        write_trace(folder.path(), &classes(), &files);
        let recording = Recording::open(&[folder.path()]).unwrap();
        let expected = by_advance(&mut Merge::new(&recording, TimeRange::ALL), usize::MAX);
        for (at, (_, values)) in streams.iter().enumerate() {
            let start = format!("{at} ");
            let of_stream =
                expected.iter().filter(|event| event.starts_with(&start) && event.contains("bits "));
            let found: Vec<&str> = of_stream.map(|event| event.split_once("bits ").unwrap().1).collect();
            assert!(found.iter().eq(values), "seed {seed}, stream {at}");
        }
        let found = by_for_each(&mut Merge::new(&recording, TimeRange::ALL), usize::MAX);
        assert!(found == expected, "seed {seed}");
        // In parts, in turn.
        let (mut merge, mut found) = (Merge::new(&recording, TimeRange::ALL), Vec::new());
        while found.len() < expected.len() {
            found.extend(by_for_each(&mut merge, 1 + numbers.below(900) as usize));
            found.extend(by_advance(&mut merge, numbers.below(5) as usize));
        }
        assert!(found == expected, "seed {seed}, in parts");
        let last = 1000 + numbers.below(20_000).cast_signed();
        let [begin, end] = [last / 2, last].map(|ns| Timestamp::from_ns(ORIGIN + ns));
        let range = TimeRange { begin, end };
        let expected = by_advance(&mut Merge::new(&recording, range), usize::MAX);
        let found = by_for_each(&mut Merge::new(&recording, range), usize::MAX);
        assert!(found == expected, "seed {seed}, up to {last}");
    }
}
