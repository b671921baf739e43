//! Random trace classes of both versions, and values for them.

use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use tracewing_ctf::encode::{FieldValue, Record};
use tracewing_ctf::model::{
    BitArrayClass, BitMapClass, BitOrder, ByteOrder, ClockClass, DEFAULT_MEDIA_TYPE, DataStreamClass,
    DisplayBase, DynamicBlobClass, DynamicStringClass, Encoding, EnumerationClass, EventRecordClass,
    FieldClass, FieldLocation, Flag, FloatClass, IntegerClass, OptionalClass, Role, Scope, StaticBlobClass,
    StaticStringClass, StringClass, StructureClass, TraceClass, VariantClass, VariantOption, Version,
};

/// SplitMix64.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

const NAMES: [&str; 5] = ["a", "int", "_b", "id", "magic"];

const ENCODINGS: [Encoding; 5] =
    [Encoding::Utf8, Encoding::Utf16Be, Encoding::Utf16Le, Encoding::Utf32Be, Encoding::Utf32Le];

fn integer(version: Version, order: ByteOrder) -> impl Strategy<Value = IntegerClass> {
    (1..=64_u32, 0..5_u32, any::<bool>(), any::<bool>()).prop_map(move |(size, align, signed, reversed)| {
        let base = [DisplayBase::Decimal, DisplayBase::Hexadecimal][(size % 2) as usize];
        let mut class = IntegerClass { signed, base, byte_order: order, ..IntegerClass::unsigned(size) };
        class.align = 1 << align;
        if reversed && version == Version::V2 && class.align >= 8 && size % 8 == 0 {
            class.bit_order = Some(opposite(order));
        }
        class
    })
}

/// The bit order that the byte order does not suggest.
fn opposite(order: ByteOrder) -> BitOrder {
    if order == ByteOrder::Little { BitOrder::LastToFirst } else { BitOrder::FirstToLast }
}

fn leaf(version: Version, order: ByteOrder) -> BoxedStrategy<FieldClass> {
    let float = |sizes: &'static [u32]| {
        (prop::sample::select(sizes), 0..4_u32).prop_map(move |(size, align)| {
            FieldClass::Float(FloatClass { align: 1 << align, byte_order: order, ..FloatClass::new(size) })
        })
    };
    let labelled = integer(version, order).prop_map(|class| {
        let one = if class.signed { -1 } else { 1 };
        EnumerationClass::new(class).with("one", one, one).with("a \"label\"", 0, 0).with("one", 0, 0)
    });
    let labelled = labelled.boxed();
    let text_byte = IntegerClass::unsigned(8).with_byte_order(order).with_encoding(Encoding::Utf8);
    let both = prop_oneof![
        4 => integer(version, order).prop_map(FieldClass::from),
        1 => labelled.clone().prop_map(FieldClass::from),
        1 => float(&[32, 64]),
        1 => Just(FieldClass::string()),
    ];
    if version == Version::V1_8 {
        return prop_oneof![5 => both, 1 => (0..9_u64).prop_map(move |length| FieldClass::array(text_byte.clone(), length))]
            .boxed();
    }
    let bits = (1..=64_u32, 0..4_u32).prop_map(move |(size, align)| BitArrayClass {
        align: 1 << align,
        byte_order: order,
        ..BitArrayClass::new(size)
    });
    let variable = |class: IntegerClass| IntegerClass {
        signed: class.signed,
        base: class.base,
        ..variable_integer(class.signed)
    };
    prop_oneof![
        5 => both,
        1 => bits.clone().prop_map(FieldClass::BitArray),
        1 => bits.clone().prop_map(FieldClass::Boolean),
        1 => bits.prop_map(|bits| {
            let flags = vec![Flag { name: "low".to_owned(), ranges: vec![(0, 0)] }];
            FieldClass::BitMap(Arc::new(BitMapClass { bits, flags }))
        }),
        1 => integer(version, order).prop_map(move |class| FieldClass::VariableInteger(variable(class))),
        1 => labelled.prop_map(move |class| {
            let integer = variable(class.integer.clone());
            FieldClass::VariableEnumeration(Arc::new(EnumerationClass { integer, ..class }))
        }),
        1 => float(&[16]),
        1 => prop::sample::select(&ENCODINGS[..]).prop_map(|encoding| FieldClass::String(StringClass::new(encoding))),
        1 => (prop::sample::select(&ENCODINGS[..]), 0..5_u64).prop_map(|(encoding, units)| {
            let length = units * encoding.unit() as u64;
            FieldClass::StaticString(Arc::new(StaticStringClass { length, encoding, attributes: Default::default() }))
        }),
        1 => (0..5_u64).prop_map(|length| FieldClass::StaticBlob(Arc::new(StaticBlobClass {
            length,
            media_type: "image/png".to_owned(),
            roles: Default::default(),
            attributes: Default::default(),
        }))),
    ]
    .boxed()
}

/// An integer of variable length as a parser makes it.
fn variable_integer(signed: bool) -> IntegerClass {
    IntegerClass { signed, ..IntegerClass::unsigned(64) }
}

/// What a member of a structure becomes.
#[derive(Debug, Clone)]
enum Shape {
    Plain,
    Sequence,
    Array,
    Text(Encoding),
    Blob,
    Optional { boolean: bool },
    Variant,
}

fn shape(version: Version) -> BoxedStrategy<Shape> {
    let both = prop_oneof![4 => Just(Shape::Plain), 1 => Just(Shape::Sequence), 1 => Just(Shape::Array), 1 => Just(Shape::Variant)];
    if version == Version::V1_8 {
        return prop_oneof![6 => both, 1 => Just(Shape::Text(Encoding::Utf8))].boxed();
    }
    prop_oneof![
        6 => both,
        1 => prop::sample::select(&ENCODINGS[..]).prop_map(Shape::Text),
        1 => Just(Shape::Blob),
        2 => any::<bool>().prop_map(|boolean| Shape::Optional { boolean }),
    ]
    .boxed()
}

/// A structure of members and what they refer to; in CTF 2 the reference may be to a field one structure
/// further out.
fn structure(
    version: Version,
    order: ByteOrder,
    inner: BoxedStrategy<FieldClass>,
) -> impl Strategy<Value = StructureClass> {
    (prop::collection::vec((inner, shape(version)), 0..5), 0..7_u32).prop_map(move |(members, align)| {
        let mut class =
            StructureClass { min_align: if align == 0 { 0 } else { 1 << align }, ..Default::default() };
        for ((inner, shape), name) in members.into_iter().zip(NAMES) {
            class = add(class, version, order, name, inner, &shape);
        }
        class
    })
}

fn add(
    class: StructureClass,
    version: Version,
    order: ByteOrder,
    name: &str,
    inner: FieldClass,
    shape: &Shape,
) -> StructureClass {
    let small = IntegerClass::unsigned(2).with_byte_order(order);
    let other = format!("{name}_of");
    let place: FieldLocation = match version {
        Version::V1_8 => other.as_str().into(),
        Version::V2 => FieldLocation::relative(0, [other.clone()]),
    };
    match shape {
        Shape::Plain => class.with(name, inner),
        Shape::Array => class.with(name, FieldClass::array(inner, 2)),
        Shape::Sequence => class.with(other, small).with(name, FieldClass::sequence(inner, place)),
        Shape::Text(_) if version == Version::V1_8 => {
            let byte = IntegerClass::unsigned(8).with_byte_order(order).with_encoding(Encoding::Utf8);
            class.with(other, small).with(name, FieldClass::sequence(byte, place))
        }
        Shape::Text(encoding) => {
            let text =
                DynamicStringClass { length: place, encoding: *encoding, attributes: Default::default() };
            class
                .with(other, FieldClass::VariableInteger(variable_integer(false)))
                .with(name, FieldClass::DynamicString(Arc::new(text)))
        }
        Shape::Blob => {
            let media_type = DEFAULT_MEDIA_TYPE.to_owned();
            let blob = DynamicBlobClass { length: place, media_type, attributes: Default::default() };
            class.with(other, small).with(name, FieldClass::DynamicBlob(Arc::new(blob)))
        }
        Shape::Optional { boolean: true } => {
            let bits = BitArrayClass { byte_order: order, ..BitArrayClass::new(3) };
            class.with(other, FieldClass::Boolean(bits)).with(name, OptionalClass::new(place, inner))
        }
        Shape::Optional { boolean: false } => {
            let selector = IntegerClass { signed: true, ..small };
            let optional =
                OptionalClass { ranges: vec![(-2, -2), (1, 1)], ..OptionalClass::new(place, inner) };
            class.with(other, selector).with(name, optional)
        }
        Shape::Variant => {
            let tag = IntegerClass { signed: true, ..small };
            let (nothing, first) = (FieldClass::from(StructureClass::new()), vec![(-2, -1)]);
            match version {
                Version::V1_8 => {
                    let tag = EnumerationClass::new(tag).with("_x", -2, -2).with("y", -1, 1);
                    class
                        .with(other, tag)
                        .with(name, VariantClass::new(place).with("y", nothing).with("_x", inner))
                }
                Version::V2 => {
                    let mut variant = VariantClass::new(place);
                    variant
                        .options
                        .push(VariantOption { ranges: vec![(0, 1)], ..VariantOption::new("void", nothing) });
                    variant.options.push(VariantOption { ranges: first, ..VariantOption::new("", inner) });
                    class.with(other, tag).with(name, variant)
                }
            }
        }
    }
}

fn class(version: Version, order: ByteOrder) -> BoxedStrategy<FieldClass> {
    leaf(version, order)
        .prop_recursive(3, 24, 4, move |inner| structure(version, order, inner).prop_map(FieldClass::from))
        .boxed()
}

/// A trace class with one data stream class of two event record classes.
pub fn trace_class() -> impl Strategy<Value = TraceClass> {
    let order = prop_oneof![Just(ByteOrder::Little), Just(ByteOrder::Big)];
    let version = prop_oneof![Just(Version::V1_8), Just(Version::V2)];
    (version, order, 0..3_u8).prop_flat_map(|(version, order, header)| {
        let root = move || structure(version, order, class(version, order));
        (root(), root(), root())
            .prop_map(move |(context, first, second)| trace(version, order, header, [context, first, second]))
    })
}

fn trace(
    version: Version,
    order: ByteOrder,
    header: u8,
    [context, first, second]: [StructureClass; 3],
) -> TraceClass {
    let is_2 = version == Version::V2;
    let number = |size, role| {
        let class = IntegerClass::unsigned(size).with_byte_order(order);
        let stamp = matches!(role, Role::DefaultClockTimestamp | Role::PacketEndDefaultClockTimestamp);
        match is_2 {
            true => class.with_role(role),
            false if stamp => class.with_clock("tsc"),
            false => class,
        }
    };
    let mut trace =
        TraceClass { version, uuid: Some(*b"0123456789abcdef"), byte_order: order, ..TraceClass::new() };
    if is_2 {
        trace.byte_order = ByteOrder::Little;
    }
    trace.set_env("hostname", "vm");
    trace.set_env("number", -3);
    trace.clock_classes.push(ClockClass::new("tsc", 1_000_000_000));
    let uuid = match is_2 {
        true => FieldClass::StaticBlob(Arc::new(StaticBlobClass {
            length: 16,
            media_type: DEFAULT_MEDIA_TYPE.to_owned(),
            roles: Role::MetadataStreamUuid.into(),
            attributes: Default::default(),
        })),
        false => FieldClass::array(IntegerClass::unsigned(8).with_byte_order(order), 16),
    };
    // Names mean nothing in CTF 2.
    let own = |name: &str| if is_2 { format!("my_{name}") } else { name.to_owned() };
    trace.packet_header = Some(
        StructureClass::new()
            .with(own("magic"), number(32, Role::PacketMagicNumber))
            .with(own("uuid"), uuid)
            .with(own("stream_id"), number(16, Role::DataStreamClassId))
            .with(own("stream_instance_id"), number(16, Role::DataStreamId)),
    );
    let mut stream = DataStreamClass::new(5);
    stream.default_clock = Some("tsc".to_owned());
    let length = match (is_2, header) {
        (true, 0) => {
            FieldClass::VariableInteger(variable_integer(false).with_role(Role::PacketContentLength))
        }
        _ => number(32, Role::PacketContentLength).into(),
    };
    stream.packet_context = Some(
        StructureClass::new()
            .with(own("timestamp_begin"), number(64, Role::DefaultClockTimestamp))
            .with(own("timestamp_end"), number(64, Role::PacketEndDefaultClockTimestamp))
            .with(own("content_size"), length)
            .with(own("packet_size"), number(24, Role::PacketTotalLength))
            .with(own("packet_seq_num"), number(8, Role::PacketSequenceNumber))
            .with(own("events_discarded"), number(7, Role::DiscardedEventRecordCounterSnapshot))
            .with("cpu_id", IntegerClass::unsigned(16).with_byte_order(order)),
    );
    if is_2 && let Some(context) = stream.packet_context.take() {
        // A name that means something in CTF 1.8, of a field that means nothing.
        stream.packet_context =
            Some(context.with("packet_size", IntegerClass::unsigned(8).with_byte_order(order)));
    }
    stream.event_header = Some(match header {
        0 => StructureClass::new()
            .with("id", number(16, Role::EventRecordClassId))
            .with("timestamp", number(64, Role::DefaultClockTimestamp)),
        1 if is_2 => StructureClass::new()
            .with(
                "id",
                FieldClass::VariableInteger(variable_integer(false).with_role(Role::EventRecordClassId)),
            )
            .with(
                "timestamp",
                FieldClass::VariableInteger(variable_integer(false).with_role(Role::DefaultClockTimestamp)),
            ),
        _ => compact_header(version, &number),
    });
    stream.common_context = Some(context);
    let event = |id, name, payload| EventRecordClass::new(id, name).with_payload(payload);
    stream.event_record_classes.push(EventRecordClass {
        specific_context: Some(
            StructureClass::new().with("x", IntegerClass::unsigned(3).with_byte_order(order)),
        ),
        ..event(2, "first", first)
    });
    stream.event_record_classes.push(event(40, "second \"two\"", second));
    trace.data_stream_classes.push(stream);
    trace
}

/// As LTTng has it: ids up to 30 and stamps of 27 bits, or whole ones.
fn compact_header(version: Version, number: &impl Fn(u32, Role) -> IntegerClass) -> StructureClass {
    let id = number(5, Role::EventRecordClassId).with_align(8);
    let (compact, extended) = (vec![(0, 30)], vec![(31, 31)]);
    let tag = EnumerationClass::new(id).with("compact", 0, 30).with("extended", 31, 31);
    let name = if version == Version::V2 { "kind" } else { "id" };
    let short = StructureClass::new().with("timestamp", number(27, Role::DefaultClockTimestamp));
    let long = StructureClass::new()
        .with(name, number(32, Role::EventRecordClassId))
        .with("timestamp", number(64, Role::DefaultClockTimestamp));
    let variant = match version {
        Version::V1_8 => VariantClass::new("id").with("compact", short).with("extended", long),
        Version::V2 => {
            let mut variant = VariantClass::new(FieldLocation::relative(0, [name]));
            variant.options.push(VariantOption { ranges: compact, ..VariantOption::new("compact", short) });
            variant.options.push(VariantOption { ranges: extended, ..VariantOption::new("extended", long) });
            variant
        }
    };
    StructureClass::new().with(name, tag).with("v", variant)
}

/// Random values for the fields of an event record, but for its header.
pub fn event_values(stream: &DataStreamClass, event: usize, rng: &mut Rng) -> Record {
    let class = &stream.event_record_classes[event];
    let mut record = Record::new();
    let scopes = [
        (Scope::CommonContext, &stream.common_context),
        (Scope::SpecificContext, &class.specific_context),
        (Scope::Payload, &class.payload),
    ];
    for (scope, class) in scopes {
        let mut values = Values { rng, latest: HashMap::new() };
        for (name, value) in class.iter().flat_map(|class| values.members(class)) {
            record.push(scope, name, value);
        }
    }
    record
}

struct Values<'r> {
    rng: &'r mut Rng,
    /// The latest value of each field that may be a length or a tag.
    latest: HashMap<String, i128>,
}

impl Values<'_> {
    fn members(&mut self, class: &StructureClass) -> Vec<(String, FieldValue)> {
        class
            .members
            .iter()
            .map(|member| (member.name.clone(), self.value(&member.name, &member.class)))
            .collect()
    }

    fn integer(&mut self, name: &str, class: &IntegerClass, variable: bool) -> FieldValue {
        let raw = match variable {
            // Often short.
            true => {
                let shift = self.rng.next() % 64;
                self.rng.next() >> shift
            }
            false => self.rng.next() >> (64 - class.size),
        };
        // A length is to be one that tests can bear, of whole code units of any encoding.
        let raw = if variable && name.ends_with("_of") { raw % 4 * 4 } else { raw };
        if class.signed {
            let shift = if variable { 0 } else { 64 - class.size };
            let value = (raw << shift) as i64 >> shift;
            self.latest.insert(name.to_owned(), value.into());
            return value.into();
        }
        self.latest.insert(name.to_owned(), raw.into());
        raw.into()
    }

    fn text(&mut self, encoding: Encoding, room: usize) -> FieldValue {
        const CHARACTERS: [char; 5] = ['a', 'z', 'ä', '€', '😀'];
        let mut text = String::new();
        let size = |text: &str| match encoding.unit() {
            1 => text.len(),
            2 => text.encode_utf16().count() * 2,
            _ => text.chars().count() * 4,
        };
        for _ in 0..self.rng.next() % 6 {
            let character = CHARACTERS[self.rng.next() as usize % CHARACTERS.len()];
            text.push(character);
            if size(&text) > room {
                text.pop();
            }
        }
        text.into()
    }

    fn bytes(&mut self, length: u64) -> FieldValue {
        FieldValue::Blob((0..length).map(|_| self.rng.next() as u8).collect())
    }

    fn of(&self, location: &FieldLocation) -> i128 {
        self.latest[&location.path[0]]
    }

    fn array(&mut self, element: &FieldClass, length: u64) -> FieldValue {
        if let FieldClass::Integer(class) = element
            && class.encoding != Encoding::None
        {
            return self.text(Encoding::Utf8, length as usize);
        }
        FieldValue::Array((0..length).map(|_| self.value("", element)).collect())
    }

    fn value(&mut self, name: &str, class: &FieldClass) -> FieldValue {
        match class {
            FieldClass::Integer(class) => self.integer(name, class, false),
            FieldClass::Enumeration(class) => self.integer(name, &class.integer, false),
            FieldClass::VariableInteger(class) => self.integer(name, class, true),
            FieldClass::VariableEnumeration(class) => self.integer(name, &class.integer, true),
            FieldClass::BitArray(class) => FieldValue::Unsigned(self.rng.next() >> (64 - class.size)),
            FieldClass::BitMap(class) => FieldValue::Unsigned(self.rng.next() >> (64 - class.bits.size)),
            FieldClass::Boolean(_) => {
                let value = self.rng.next().is_multiple_of(2);
                self.latest.insert(name.to_owned(), value.into());
                value.into()
            }
            FieldClass::Float(class) => match class.size {
                16 => (self.rng.next() as i8 as f32 / 16.0).into(),
                32 => f32::from_bits(self.rng.next() as u32).into(),
                64 => f64::from_bits(self.rng.next()).into(),
                _ => FieldValue::Real128(u128::from(self.rng.next()) << 64 | 1),
            },
            FieldClass::String(class) => self.text(class.encoding, usize::MAX),
            FieldClass::StaticString(class) => self.text(class.encoding, class.length as usize),
            FieldClass::DynamicString(class) => {
                let room = self.of(&class.length) as usize;
                self.text(class.encoding, room)
            }
            FieldClass::StaticBlob(class) => self.bytes(class.length),
            FieldClass::DynamicBlob(class) => {
                let length = self.of(&class.length) as u64;
                self.bytes(length)
            }
            FieldClass::Structure(class) => FieldValue::Structure(self.members(class)),
            FieldClass::StaticArray(class) => self.array(&class.element, class.length),
            FieldClass::DynamicArray(class) => {
                let length = self.of(&class.length) as u64;
                self.array(&class.element, length)
            }
            FieldClass::Optional(class) => {
                let selector = self.of(&class.selector);
                let present = match class.ranges.as_slice() {
                    [] => selector != 0,
                    ranges => ranges.iter().any(|(first, last)| (*first..=*last).contains(&selector)),
                };
                FieldValue::Optional(present.then(|| Box::new(self.value("", &class.class))))
            }
            FieldClass::Variant(class) => {
                let tag = self.of(&class.tag);
                let chosen = class.options.iter().find(|option| match option.ranges.as_slice() {
                    [] => (option.name == "_x") == (tag < -1),
                    ranges => ranges.iter().any(|(first, last)| (*first..=*last).contains(&tag)),
                });
                let option = chosen.unwrap();
                FieldValue::Variant(option.name.clone(), Box::new(self.value("", &option.class)))
            }
        }
    }
}
