//! Random classes survive printing and parsing; random values survive encoding (by the slow bit-by-bit
//! encoder here) and decoding; no bytes make the parser or the decoder panic.

use std::collections::HashMap;
use std::sync::Arc;

use proptest::prelude::*;
use tracewing_ctf::decode::{
    Compound, Decoder, Event, PathStep, Position, Step, StreamReader, Value as Field, Visitor,
};
use tracewing_ctf::model::{
    ByteOrder, ClockClass, ClockOrigin, DataStreamClass, DisplayBase, Encoding, EnumerationClass,
    EventRecordClass, FieldClass, FloatClass, IntegerClass, Scope, StringClass, StructureClass, TraceClass,
    VariantClass,
};
use tracewing_ctf::tsdl;
use tracewing_units::Cycles;

fn any_order() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)]
}

/// Packed fields of both byte orders cannot share a byte, so a trace has one.
fn integer(order: ByteOrder) -> impl Strategy<Value = IntegerClass> {
    let base = prop_oneof![
        Just(DisplayBase::Binary),
        Just(DisplayBase::Octal),
        Just(DisplayBase::Decimal),
        Just(DisplayBase::Hexadecimal)
    ];
    let encoding =
        prop_oneof![4 => Just(Encoding::None), 1 => Just(Encoding::Utf8), 1 => Just(Encoding::Ascii)];
    let whole = (3..7_u32, 3..5_u32).prop_map(|(size, align)| (1 << size, align));
    let size = prop_oneof![(1..=64_u32, 0..7_u32), whole];
    (size, any::<bool>(), Just(order), base, encoding).prop_map(
        |((size, align), signed, byte_order, base, encoding)| IntegerClass {
            size,
            align: 1 << align,
            signed,
            byte_order,
            base,
            encoding,
            ..IntegerClass::unsigned(size)
        },
    )
}

fn enumeration(order: ByteOrder) -> impl Strategy<Value = EnumerationClass> {
    (integer(order), proptest::collection::vec(("[a-z_\"\\\\ é\u{1}]{1,4}", any::<[u64; 2]>()), 1..4))
        .prop_map(|(integer, labels)| {
            let value = |bits: u64| match integer.signed {
                true => i128::from((bits << (64 - integer.size)) as i64 >> (64 - integer.size)),
                false => i128::from(bits >> (64 - integer.size)),
            };
            labels.into_iter().fold(EnumerationClass::new(integer.clone()), |class, (label, [a, b])| {
                class.with(label, value(a).min(value(b)), value(a).max(value(b)))
            })
        })
}

fn class(order: ByteOrder) -> BoxedStrategy<FieldClass> {
    let float =
        (prop_oneof![Just(32), Just(64)], 0..5_u32, Just(order)).prop_map(|(size, align, byte_order)| {
            FloatClass { align: 1 << align, byte_order, ..FloatClass::new(size) }
        });
    let leaf = prop_oneof![
        4 => integer(order).prop_map(FieldClass::from),
        1 => float.prop_map(FieldClass::from),
        1 => Just(FieldClass::string()),
        1 => Just(FieldClass::String(StringClass::new(Encoding::Ascii))),
        1 => enumeration(order).prop_map(FieldClass::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            3 => structure(order, inner.clone()).prop_map(FieldClass::from),
            1 => (inner, 0..4_u64).prop_map(|(element, length)| FieldClass::array(element, length)),
        ]
    })
    .boxed()
}

/// Member names that collide with nothing, keywords among them.
const NAMES: [&str; 6] = ["int", "_a", "__b", "event", "d9", "align"];

/// What a member of a random structure becomes.
#[derive(Debug, Clone)]
enum Shape {
    Plain,
    Sequence,
    Variant,
}

fn structure(order: ByteOrder, inner: BoxedStrategy<FieldClass>) -> impl Strategy<Value = StructureClass> {
    let shape = prop_oneof![6 => Just(Shape::Plain), 1 => Just(Shape::Sequence), 1 => Just(Shape::Variant)];
    let small = move |size| IntegerClass::unsigned(size).with_byte_order(order);
    (proptest::collection::vec((inner, shape), 0..5), 0..7_u32).prop_map(move |(members, align)| {
        let start =
            StructureClass { min_align: if align == 0 { 0 } else { 1 << align }, ..StructureClass::new() };
        members.into_iter().zip(NAMES).fold(start, |structure, ((class, shape), name)| match shape {
            Shape::Plain => structure.with(name, class),
            Shape::Sequence => {
                let length = format!("{name}_length");
                structure.with(&length, small(2)).with(name, FieldClass::sequence(class, length.as_str()))
            }
            Shape::Variant => {
                let tag = format!("{name}_tag");
                let labels = EnumerationClass::new(IntegerClass { signed: true, ..small(2) })
                    .with("_x", -2, -1)
                    .with("y", 0, 1);
                let variant =
                    VariantClass::new(tag.as_str()).with("y", StructureClass::new()).with("_x", class);
                structure.with(tag, labels).with(name, variant)
            }
        })
    })
}

fn trace() -> impl Strategy<Value = TraceClass> {
    any_order().prop_flat_map(trace_of)
}

fn trace_of(order: ByteOrder) -> impl Strategy<Value = TraceClass> {
    (
        structure(order, class(order)),
        structure(order, class(order)),
        any::<Option<[u8; 16]>>(),
        any_order(),
        "[ -~é\n\t\r\u{7f}]{0,9}",
        any::<i64>(),
        (any::<bool>(), prop_oneof![0..7_u32, Just(6)]),
    )
        .prop_map(move |(payload, context, uuid, byte_order, text, number, (compact, align))| {
            let mut trace = TraceClass { uuid, byte_order, ..TraceClass::new() };
            trace.set_env("text", text.as_str());
            trace.set_env("number", number);
            trace.clock_classes.push(ClockClass {
                uuid,
                description: Some(text.clone()),
                offset_seconds: number,
                offset_cycles: Cycles(number.unsigned_abs()),
                origin: if number % 2 == 0 { ClockOrigin::UnixEpoch } else { ClockOrigin::Unknown },
                ..ClockClass::new("tsc", 1 + number.unsigned_abs() / 2)
            });
            let mut stream = DataStreamClass::new(0);
            stream.event_header = Some(header(order, compact, 1 << align));
            stream.common_context = Some(context);
            stream.event_record_classes.push(EventRecordClass {
                log_level: Some(number),
                emf_uri: Some(text.clone()),
                // An empty name is read as none.
                name: Some(text).filter(|name| !name.is_empty()),
                ..EventRecordClass::new(0, "").with_payload(payload)
            });
            trace.data_stream_classes.push(stream);
            trace.fill_roles();
            trace
        })
}

/// An event record header, plain or with a variant as LTTng's.
fn header(order: ByteOrder, compact: bool, min_align: u32) -> StructureClass {
    let number = |size| IntegerClass::unsigned(size).with_byte_order(order);
    let min_align = if min_align == 1 { 0 } else { min_align };
    let header = StructureClass { min_align, ..StructureClass::new() };
    if !compact {
        return header.with("id", number(8)).with("int", number(24));
    }
    let id = EnumerationClass::new(number(5)).with("compact", 0, 30).with("extended", 31, 31);
    let compact = StructureClass::new().with("int", number(27));
    let extended = StructureClass::new().with("id", number(13)).with("int", number(46));
    let variant = VariantClass::new("id").with("compact", compact).with("extended", extended);
    header.with("id", id).with("v", variant)
}

/// Writes fields one bit at a time.
struct Encoder {
    bytes: Vec<u8>,
    at: usize,
    seed: u64,
    /// The latest value of each field that may be a length or a tag.
    values: HashMap<String, i128>,
    /// What a decoder is to show.
    shown: Vec<String>,
}

impl Encoder {
    fn random(&mut self) -> u64 {
        // SplitMix64.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn align(&mut self, align: u32) {
        self.at = self.at.next_multiple_of(align as usize);
        self.bytes.resize(self.at.div_ceil(8), 0xa5);
    }

    fn bits(&mut self, value: u64, size: u32, order: ByteOrder) {
        for i in 0..size {
            let at = self.at + i as usize;
            self.bytes.resize(self.bytes.len().max(at / 8 + 1), 0xa5);
            let (bit, shift) = match order {
                ByteOrder::Little => (value >> i & 1, at % 8),
                ByteOrder::Big => (value >> (size - 1 - i) & 1, 7 - at % 8),
            };
            let byte = &mut self.bytes[at / 8];
            *byte = (*byte & !(1 << shift)) | (bit as u8) << shift;
        }
        self.at += size as usize;
    }

    fn integer(&mut self, name: Option<&str>, class: &IntegerClass) -> i128 {
        self.align(class.align);
        let raw = self.random() >> (64 - class.size);
        self.bits(raw, class.size, class.byte_order);
        let value = match class.signed {
            true => i128::from((raw << (64 - class.size)) as i64 >> (64 - class.size)),
            false => i128::from(raw),
        };
        if let Some(name) = name {
            self.values.insert(name.to_owned(), value);
        }
        value
    }

    fn show(&mut self, name: Option<&str>, value: impl std::fmt::Display) {
        self.shown.push(format!("{} = {value}", name.unwrap_or("-")));
    }

    fn array(&mut self, name: Option<&str>, element: &FieldClass, length: u64) {
        if let FieldClass::Integer(class) = element
            && (class.size, class.align) == (8, 8)
            && class.encoding != Encoding::None
        {
            self.align(8);
            let text: Vec<u8> = (0..length).map(|_| self.random() as u8 & 0x43).collect();
            for byte in &text {
                self.bits(u64::from(*byte), 8, ByteOrder::Little);
            }
            let shown: Vec<_> = text.iter().take_while(|byte| **byte != 0).collect();
            return self.show(name, format!("{shown:?}"));
        }
        self.align(element.alignment());
        self.show(name, format!("[{length}"));
        for _ in 0..length {
            self.field(None, element);
        }
        self.shown.push("]".to_owned());
    }

    fn field(&mut self, name: Option<&str>, class: &FieldClass) {
        match class {
            FieldClass::Integer(class) => {
                let value = self.integer(name, class);
                self.show(name, value);
            }
            FieldClass::Enumeration(class) => {
                let value = self.integer(name, &class.integer);
                let labels: Vec<_> = class.labels(value).map(str::to_owned).collect();
                self.show(name, format!("{value} {labels:?}"));
            }
            FieldClass::Float(class) => {
                self.align(class.align);
                let raw = self.random() >> (64 - class.size);
                self.bits(raw, class.size, class.byte_order);
                self.show(name, format!("float {raw:x}"));
            }
            FieldClass::String(_) => {
                self.align(8);
                let text: Vec<u8> = (0..self.random() % 20).map(|_| self.random() as u8 | 1).collect();
                for byte in text.iter().chain([&0]) {
                    self.bits(u64::from(*byte), 8, ByteOrder::Little);
                }
                self.show(name, format!("{text:?}"));
            }
            FieldClass::Structure(class) => {
                self.align(class.alignment());
                self.show(name, format!("{{{}", class.members.len()));
                self.members(class);
                self.shown.push("}".to_owned());
            }
            FieldClass::StaticArray(class) => self.array(name, &class.element, class.length),
            FieldClass::DynamicArray(class) => {
                self.array(name, &class.element, self.values[&class.length.path[0]] as u64);
            }
            FieldClass::Variant(class) => {
                let option = if self.values[&class.tag.path[0]] < 0 { "_x" } else { "y" };
                self.show(name, format!("<{option}"));
                let member = class.options.iter().find(|member| member.name == option).unwrap();
                self.field(Some(option), &member.class);
                self.shown.push(">".to_owned());
            }
            other => unreachable!("these classes have no {other:?}"),
        }
    }

    fn members(&mut self, class: &StructureClass) {
        for member in &class.members {
            self.field(Some(&member.name), &member.class);
        }
    }
}

/// Writes down what it is shown as the encoder does.
#[derive(Default)]
struct Recorder(Vec<String>);

impl Visitor for Recorder {
    fn value(&mut self, name: Option<&str>, value: Field<'_>) {
        let labels = |value: i128, class: &EnumerationClass| {
            let labels: Vec<_> = class.labels(value).collect();
            format!("{value} {labels:?}")
        };
        let value = match value {
            Field::Unsigned(value, _) => value.to_string(),
            Field::Signed(value, _) => value.to_string(),
            Field::UnsignedEnumeration(value, class) => labels(value.into(), class),
            Field::SignedEnumeration(value, class) => labels(value.into(), class),
            Field::Float32(value) => format!("float {:x}", value.to_bits()),
            Field::Float64(value) => format!("float {:x}", value.to_bits()),
            Field::Text(bytes) => format!("{bytes:?}"),
            other => format!("{other:?}"),
        };
        self.0.push(format!("{} = {value}", name.unwrap_or("-")));
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        let what = match compound {
            Compound::Structure(class) => format!("{{{}", class.members.len()),
            Compound::Array { length } => format!("[{length}"),
            Compound::Variant { option } => format!("<{option}"),
            Compound::Optional { present } => format!("?{present}"),
        };
        self.0.push(format!("{} = {what}", name.unwrap_or("-")));
    }

    fn end(&mut self, compound: Compound<'_>) {
        self.0.push(
            match compound {
                Compound::Structure(_) => "}",
                Compound::Array { .. } => "]",
                Compound::Variant { .. } => ">",
                Compound::Optional { .. } => "?",
            }
            .to_owned(),
        );
    }
}

/// Everything that a reader shows of a data stream up to its end or an error.
fn read_all(decoder: &Arc<Decoder>, data: &[u8]) -> Vec<Vec<String>> {
    let mut events = Vec::new();
    let mut reader = StreamReader::new(decoder.clone(), data);
    loop {
        match reader.advance() {
            Ok(Step::Event) => {
                let mut recorder = Recorder::default();
                for scope in [Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
                    reader.event().visit(scope, &mut recorder);
                }
                for name in NAMES {
                    let event = reader.event();
                    let by_name = event.field(Scope::Payload, name);
                    let by_handle = decoder.member(0, event.class_index(), Scope::Payload, name);
                    let by_handle = by_handle.and_then(|member| event.member(member));
                    // Text, because NaN differs from itself.
                    assert_eq!(format!("{by_name:?}"), format!("{by_handle:?}"));
                    let path = decoder.path(0, event.class_index(), Scope::Payload, &[PathStep::Name(name)]);
                    let by_path = path.and_then(|path| event.at(&path));
                    assert_eq!(format!("{by_name:?}"), format!("{by_path:?}"));
                    if let Some(value) = by_name {
                        let mut one = Recorder::default();
                        one.value(Some(name), value);
                        assert!(recorder.0.contains(&one.0[0]), "{:?} has no {:?}", recorder.0, one.0);
                    }
                }
                events.push(recorder.0);
            }
            Ok(Step::Packet) => {
                for scope in [Scope::PacketHeader, Scope::PacketContext] {
                    reader.visit_packet(scope, &mut Recorder::default());
                }
            }
            Ok(Step::PacketEnd) => {}
            Ok(Step::End) | Err(_) => return events,
        }
    }
}

/// The same by [`StreamReader::for_each_in_packet`] and [`Event::visit_all`].
fn read_packets(decoder: &Arc<Decoder>, data: &[u8]) -> Vec<Vec<String>> {
    let mut events = Vec::new();
    let mut reader = StreamReader::new(decoder.clone(), data);
    while let Ok(Step::Packet) = reader.advance() {
        let each = |event: Event<'_>| {
            let mut recorder = Recorder::default();
            event.visit_all(&mut recorder);
            events.push(recorder.0);
        };
        if reader.for_each_in_packet(each).is_err() {
            break;
        }
    }
    events
}

/// The same for data that arrive `part` bytes at a time; bytes between the packet's header and the current
/// event record are wiped first.
fn read_parts(decoder: &Arc<Decoder>, data: &[u8], part: usize) -> Vec<Vec<String>> {
    let mut events = Vec::new();
    let mut reader = StreamReader::new(decoder.clone(), Vec::new());
    reader.replace_part(data[..part.min(data.len())].to_vec(), 0, 0, data.len() as u64);
    loop {
        match reader.advance() {
            Ok(Step::Event) => {
                let mut recorder = Recorder::default();
                reader.event().visit_all(&mut recorder);
                events.push(recorder.0);
            }
            Ok(Step::Packet | Step::PacketEnd) => {}
            Err(_) if reader.wants_more() => {
                let begin = (reader.position().bits / 8) as usize;
                let grown = reader.extend(|held| {
                    let from = held.len();
                    held.extend(data[from..].iter().take(part));
                    held[..begin].fill(0xA5);
                    held.len() > from
                });
                if !grown {
                    return events;
                }
            }
            Ok(Step::End) | Err(_) => return events,
        }
    }
}

/// The same from a position on, without what lies before it.
fn read_from(decoder: &Arc<Decoder>, data: &[u8], position: Position) -> usize {
    let mut data = data.to_vec();
    data[..(position.bits / 8) as usize].fill(0xA5);
    let mut reader = StreamReader::new(decoder.clone(), data);
    assert!(
        !reader.go_to(position) && matches!(reader.advance(), Ok(Step::Packet)) && reader.go_to(position)
    );
    let mut events = 0;
    while let Ok(Step::Event) = reader.advance() {
        events += 1;
    }
    events
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lttng-ust-kinds/").to_owned() + name)
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn print_then_parse(trace in trace()) {
        let text = tsdl::print(&trace);
        let parsed = tsdl::parse(text.as_bytes()).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(parsed, trace, "{}", text);
    }

    #[test]
    fn encode_then_decode(
        (order, trace) in any_order().prop_flat_map(|order| (Just(order), trace_of(order))), seed in any::<u64>(), part in 1..40_usize
    ) {
        let stream = &trace.data_stream_classes[0];
        let (context, payload) = (stream.common_context.clone().unwrap(), stream.event_record_classes[0].payload.clone().unwrap());
        let header = stream.event_header.clone().unwrap();
        let mut encoder = Encoder { bytes: vec![], at: 0, seed, values: HashMap::new(), shown: vec![] };
        let mut expected = Vec::new();
        let is_compact = header.members.len() == 2 && header.members[1].name == "v";
        // The last ones are too close to the end for loads that are larger than their fields.
        for number in 0..6 {
            encoder.align(header.alignment());
            match number % 3 {
                1 if is_compact => [(31, 5), (0, 59)].into_iter().for_each(|(value, size)| encoder.bits(value, size, order)),
                _ => encoder.bits(0, 32, order),
            }
            encoder.align(context.alignment());
            encoder.members(&context);
            encoder.align(payload.alignment());
            encoder.members(&payload);
            expected.push(std::mem::take(&mut encoder.shown));
        }
        let decoder = Decoder::new(Arc::new(trace)).unwrap();
        let events = read_all(&decoder, &encoder.bytes);
        prop_assert_eq!(&events, &expected);
        prop_assert_eq!(&read_packets(&decoder, &encoder.bytes), &expected);
        prop_assert_eq!(&read_parts(&decoder, &encoder.bytes, part), &expected);
        let mut reader = StreamReader::new(decoder.clone(), &encoder.bytes);
        prop_assert!(matches!(reader.advance(), Ok(Step::Packet)));
        for left in (0..expected.len()).rev() {
            prop_assert!(matches!(reader.advance(), Ok(Step::Event)));
            prop_assert_eq!(read_from(&decoder, &encoder.bytes, reader.position()), left);
        }
        // One byte less, and the last record is not there.
        let events = read_all(&decoder, &encoder.bytes[..encoder.bytes.len() - 1]);
        prop_assert!(events.len() < 6 && expected.starts_with(&events));
        prop_assert_eq!(read_packets(&decoder, &encoder.bytes[..encoder.bytes.len() - 1]), events);
    }

    #[test]
    fn any_metadata_is_parsed_or_refused(bytes in any::<Vec<u8>>()) {
        let _ = tsdl::parse(&[b"/* CTF 1.8 */", bytes.as_slice()].concat());
        let _ = tsdl::parse(&bytes);
    }

    #[test]
    fn damaged_metadata_is_parsed_or_refused(
        trace in trace(), damage in proptest::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..8)
    ) {
        for mut bytes in [tsdl::print(&trace).into_bytes(), fixture("metadata")] {
            for (at, kind, byte) in &damage {
                let at = at.index(bytes.len());
                match kind {
                    0 => bytes[at] = *byte,
                    1 => drop(bytes.drain(at..(at + usize::from(*byte)).min(bytes.len() - 1).max(at))),
                    _ => bytes.insert(at, b"{}[]<>;:=.,\"*"[usize::from(*byte) % 13]),
                }
            }
            if let Ok(class) = tsdl::parse(&bytes)
                && let Ok(decoder) = Decoder::new(Arc::new(class))
            {
                read_all(&decoder, &fixture("c_1"));
            }
        }
    }

    #[test]
    fn any_packet_is_decoded_or_refused(trace in trace(), bytes in any::<Vec<u8>>()) {
        read_all(&Decoder::new(Arc::new(trace)).unwrap(), &bytes);
    }

    #[test]
    fn damaged_packets_are_decoded_or_refused(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20), cut in any::<prop::sample::Index>()
    ) {
        let decoder = Decoder::new(Arc::new(tsdl::parse(&fixture("metadata")).unwrap())).unwrap();
        let mut bytes = fixture("c_1");
        let whole = read_all(&decoder, &bytes).len();
        prop_assert!(whole > 0);
        bytes.truncate(bytes.len() - cut.index(bytes.len() / 2));
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_all(&decoder, &bytes);
    }
}
