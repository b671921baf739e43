//! Prints a trace class as CTF 2 metadata: a JSON text sequence (RFC 7464) of fragments, indented to be read.
//!
//! What differs from the defaults of CTF2-SPEC-2.0 is written, nothing else.

use super::text::write_value;
use crate::model::{
    Attribute, Attributes, BitArrayClass, BitMapClass, BitOrder, ByteOrder, ClockClass, ClockOrigin,
    DEFAULT_MEDIA_TYPE, DataStreamClass, DisplayBase, Encoding, EnumerationClass, EnvValue, EventRecordClass,
    FieldClass, FieldLocation, FloatClass, IntegerClass, OptionalClass, Origin, Role, Roles, Scope,
    StructureClass, TraceClass, VariantClass,
};
use tracewing_units::Cycles;

/// The record separator before each fragment.
const SEPARATOR: char = '\u{1e}';

/// The metadata text of `class`.
///
/// The class must be expressible in CTF 2: parsed from CTF 2, or converted by
/// [`convert::to_ctf2`](crate::convert::to_ctf2). In other classes, features that only TSDL has (clocks
/// mapped field by field, encodings of integers) are left out, and a name that must be searched for is
/// treated as a member next to the reference.
///
/// ```
/// use tracewing_ctf::model::TraceClass;
///
/// assert!(tracewing_ctf::json::print(&TraceClass::new()).starts_with("\u{1e}{\n  \"type\": \"preamble\""));
/// ```
pub fn print(class: &TraceClass) -> String {
    let mut out = String::with_capacity(4096);
    let mut add = |fragment: Object| {
        out.push(SEPARATOR);
        write_value(&mut out, &Attribute::Map(fragment.0), 0);
        out.push('\n');
    };
    add(preamble(class));
    let mut trace = Object::of_type("trace-class");
    trace.identity(&class.namespace, &class.name, &class.uid);
    trace.scope("packet-header-field-class", &class.packet_header);
    if !class.env.is_empty() {
        let entry = |(name, value): &(String, EnvValue)| {
            let value = match value {
                EnvValue::String(text) => text.as_str().into(),
                EnvValue::Integer(number) => Attribute::Integer(*number),
            };
            (name.clone(), value)
        };
        trace.put("environment", Attribute::Map(class.env.iter().map(entry).collect()));
    }
    trace.attributes(&class.attributes);
    if trace.0.len() > 1 {
        add(trace);
    }
    class.clock_classes.iter().for_each(|clock| add(clock_class(clock)));
    for stream in &class.data_stream_classes {
        add(data_stream_class(stream));
        stream.event_record_classes.iter().for_each(|event| add(event_record_class(stream, event)));
    }
    out
}

/// A JSON object under construction, its keys in order.
struct Object(Vec<(String, Attribute)>);

impl Object {
    fn of_type(name: &str) -> Self {
        Object(vec![("type".to_owned(), name.into())])
    }

    fn put(&mut self, key: &str, value: impl Into<Attribute>) {
        self.0.push((key.to_owned(), value.into()));
    }

    fn put_some<T: Into<Attribute>>(&mut self, key: &str, value: Option<T>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    fn identity(&mut self, namespace: &Option<String>, name: &Option<String>, uid: &Option<String>) {
        self.put_some("namespace", namespace.as_deref());
        self.put_some("name", name.as_deref());
        self.put_some("uid", uid.as_deref());
    }

    fn scope(&mut self, key: &str, class: &Option<StructureClass>) {
        self.put_some(key, class.as_ref().map(structure));
    }

    fn align(&mut self, key: &str, align: u32) {
        self.put_some(key, Some(u64::from(align)).filter(|align| *align > 1));
    }

    fn attributes(&mut self, attributes: &Attributes) {
        if !attributes.is_empty() {
            self.put("attributes", Attribute::Map(attributes.namespaces().to_vec()));
        }
    }

    fn roles(&mut self, roles: Roles) {
        if !roles.is_empty() {
            self.put("roles", Attribute::Array(roles.iter().map(|role: Role| role.name().into()).collect()));
        }
    }

    fn number(&mut self, size: u32, align: u32, byte_order: ByteOrder, bit_order: Option<BitOrder>) {
        self.put("length", u64::from(size));
        self.align("alignment", align);
        self.put("byte-order", if byte_order == ByteOrder::Little { "little-endian" } else { "big-endian" });
        self.put_some(
            "bit-order",
            bit_order.map(|order| match order {
                BitOrder::FirstToLast => "first-to-last",
                BitOrder::LastToFirst => "last-to-first",
            }),
        );
    }

    fn encoding(&mut self, encoding: Encoding) {
        let name = match encoding {
            Encoding::None | Encoding::Utf8 | Encoding::Ascii => return,
            Encoding::Utf16Be => "utf-16be",
            Encoding::Utf16Le => "utf-16le",
            Encoding::Utf32Be => "utf-32be",
            Encoding::Utf32Le => "utf-32le",
        };
        self.put("encoding", name);
    }

    fn media_type(&mut self, media_type: &str) {
        if media_type != DEFAULT_MEDIA_TYPE {
            self.put("media-type", media_type);
        }
    }
}

fn preamble(class: &TraceClass) -> Object {
    let mut object = Object::of_type("preamble");
    object.put("version", 2_u64);
    object.put_some(
        "uuid",
        class.uuid.map(|uuid| Attribute::Array(uuid.iter().map(|byte| u64::from(*byte).into()).collect())),
    );
    object
}

fn clock_class(class: &ClockClass) -> Object {
    let mut object = Object::of_type("clock-class");
    object.put("id", class.id.as_str());
    object.identity(&class.namespace, &class.name, &class.uid);
    object.put("frequency", class.frequency);
    match &class.origin {
        ClockOrigin::Unknown => {}
        ClockOrigin::UnixEpoch => object.put("origin", "unix-epoch"),
        ClockOrigin::Custom { namespace, name, uid } => {
            let mut origin = Object(Vec::new());
            origin.put_some("namespace", namespace.as_deref());
            origin.put("name", name.as_str());
            origin.put("uid", uid.as_str());
            object.put("origin", Attribute::Map(origin.0));
        }
    }
    if class.offset_seconds != 0 || class.offset_cycles != Cycles::ZERO {
        let mut offset = Object(Vec::new());
        offset.put("seconds", Attribute::Integer(class.offset_seconds));
        offset.put("cycles", class.offset_cycles.0);
        object.put("offset-from-origin", Attribute::Map(offset.0));
    }
    object.put_some("precision", class.precision.map(|Cycles(cycles)| cycles));
    object.put_some("accuracy", class.accuracy.map(|Cycles(cycles)| cycles));
    object.put_some("description", class.description.as_deref());
    object.attributes(&class.attributes);
    object
}

fn data_stream_class(class: &DataStreamClass) -> Object {
    let mut object = Object::of_type("data-stream-class");
    object.put_some("id", Some(class.id).filter(|id| *id != 0));
    object.identity(&class.namespace, &class.name, &class.uid);
    object.put_some("default-clock-class-id", class.default_clock.as_deref());
    object.scope("packet-context-field-class", &class.packet_context);
    object.scope("event-record-header-field-class", &class.event_header);
    object.scope("event-record-common-context-field-class", &class.common_context);
    object.attributes(&class.attributes);
    object
}

fn event_record_class(stream: &DataStreamClass, class: &EventRecordClass) -> Object {
    let mut object = Object::of_type("event-record-class");
    object.put_some("id", Some(class.id).filter(|id| *id != 0));
    object.put_some("data-stream-class-id", Some(stream.id).filter(|id| *id != 0));
    object.identity(&class.namespace, &class.name, &class.uid);
    object.scope("specific-context-field-class", &class.specific_context);
    object.scope("payload-field-class", &class.payload);
    object.attributes(&class.attributes);
    object
}

fn field_class(class: &FieldClass) -> Attribute {
    let (object, attributes) = match class {
        FieldClass::BitArray(class) => (bits("fixed-length-bit-array", class), &class.attributes),
        FieldClass::Boolean(class) => (bits("fixed-length-boolean", class), &class.attributes),
        FieldClass::BitMap(class) => (bit_map(class), &class.bits.attributes),
        FieldClass::Integer(class) => (integer("fixed-length", class, None), &class.attributes),
        FieldClass::VariableInteger(class) => (integer("variable-length", class, None), &class.attributes),
        FieldClass::Enumeration(class) => {
            (integer("fixed-length", &class.integer, Some(class)), &class.integer.attributes)
        }
        FieldClass::VariableEnumeration(class) => {
            (integer("variable-length", &class.integer, Some(class)), &class.integer.attributes)
        }
        FieldClass::Float(class) => (float(class), &class.attributes),
        FieldClass::String(class) => {
            (string("null-terminated-string", None, class.encoding), &class.attributes)
        }
        FieldClass::StaticString(class) => {
            let length = ("length", class.length.into());
            (string("static-length-string", Some(length), class.encoding), &class.attributes)
        }
        FieldClass::DynamicString(class) => {
            let length = ("length-field-location", location(&class.length));
            (string("dynamic-length-string", Some(length), class.encoding), &class.attributes)
        }
        FieldClass::StaticBlob(class) => {
            let mut object = blob("static-length-blob", ("length", class.length.into()), &class.media_type);
            object.roles(class.roles);
            (object, &class.attributes)
        }
        FieldClass::DynamicBlob(class) => {
            let length = ("length-field-location", location(&class.length));
            (blob("dynamic-length-blob", length, &class.media_type), &class.attributes)
        }
        FieldClass::Structure(class) => return structure(class),
        FieldClass::StaticArray(class) => {
            let length = ("length", class.length.into());
            (array("static-length-array", length, &class.element, class.min_align), &class.attributes)
        }
        FieldClass::DynamicArray(class) => {
            let length = ("length-field-location", location(&class.length));
            (array("dynamic-length-array", length, &class.element, class.min_align), &class.attributes)
        }
        FieldClass::Optional(class) => (optional(class), &class.attributes),
        FieldClass::Variant(class) => (variant(class), &class.attributes),
    };
    with_attributes(object, attributes)
}

/// `length` is the member that says it; a null-terminated string has none.
fn string(kind: &str, length: Option<(&str, Attribute)>, encoding: Encoding) -> Object {
    let mut object = Object::of_type(kind);
    if let Some((key, length)) = length {
        object.put(key, length);
    }
    object.encoding(encoding);
    object
}

fn blob(kind: &str, (key, length): (&str, Attribute), media_type: &str) -> Object {
    let mut object = Object::of_type(kind);
    object.put(key, length);
    object.media_type(media_type);
    object
}

fn array(kind: &str, (key, length): (&str, Attribute), element: &FieldClass, min_align: u32) -> Object {
    let mut object = Object::of_type(kind);
    object.put(key, length);
    object.put("element-field-class", field_class(element));
    object.align("minimum-alignment", min_align);
    object
}

fn optional(class: &OptionalClass) -> Object {
    let mut object = Object::of_type("optional");
    object.put("selector-field-location", location(&class.selector));
    if !class.ranges.is_empty() {
        object.put("selector-field-ranges", ranges(&class.ranges));
    }
    object.put("field-class", field_class(&class.class));
    object
}

fn with_attributes(mut object: Object, attributes: &Attributes) -> Attribute {
    object.attributes(attributes);
    Attribute::Map(object.0)
}

fn bits(kind: &str, class: &BitArrayClass) -> Object {
    let mut object = Object::of_type(kind);
    object.number(class.size, class.align, class.byte_order, class.bit_order);
    object
}

fn bit_map(class: &BitMapClass) -> Object {
    let mut object = bits("fixed-length-bit-map", &class.bits);
    let flag = |(first, last): &(u64, u64)| Attribute::Array(vec![(*first).into(), (*last).into()]);
    let flags = class.flags.iter();
    let flags = flags.map(|one| (one.name.clone(), Attribute::Array(one.ranges.iter().map(flag).collect())));
    object.put("flags", Attribute::Map(flags.collect()));
    object
}

fn integer(length: &str, class: &IntegerClass, labels: Option<&EnumerationClass>) -> Object {
    let sign = if class.signed { "signed" } else { "unsigned" };
    let mut object = Object::of_type(&format!("{length}-{sign}-integer"));
    if length == "fixed-length" {
        object.number(class.size, class.align, class.byte_order, class.bit_order);
    }
    let base = match class.base {
        DisplayBase::Binary => Some(2_u64),
        DisplayBase::Octal => Some(8),
        DisplayBase::Decimal => None,
        DisplayBase::Hexadecimal => Some(16),
    };
    object.put_some("preferred-display-base", base);
    if let Some(labels) = labels {
        let mappings = labels.mappings.iter();
        let mappings = mappings.map(|mapping| (mapping.label.clone(), ranges(&mapping.ranges)));
        object.put("mappings", Attribute::Map(mappings.collect()));
    }
    object.roles(class.roles);
    object
}

fn float(class: &FloatClass) -> Object {
    let mut object = Object::of_type("fixed-length-floating-point-number");
    object.number(class.size, class.align, class.byte_order, class.bit_order);
    object
}

fn structure(class: &StructureClass) -> Attribute {
    let mut object = Object::of_type("structure");
    let members = class.members.iter().map(|member| {
        let mut object = Object(Vec::new());
        object.put("name", member.name.as_str());
        object.put("field-class", field_class(&member.class));
        with_attributes(object, &member.attributes)
    });
    object.put("member-classes", Attribute::Array(members.collect()));
    object.align("minimum-alignment", class.min_align);
    with_attributes(object, &class.attributes)
}

fn variant(class: &VariantClass) -> Object {
    let mut object = Object::of_type("variant");
    object.put("selector-field-location", location(&class.tag));
    let options = class.options.iter().map(|option| {
        let mut object = Object(Vec::new());
        object.put_some("name", Some(option.name.as_str()).filter(|name| !name.is_empty()));
        object.put("selector-field-ranges", ranges(&option.ranges));
        object.put("field-class", field_class(&option.class));
        with_attributes(object, &option.attributes)
    });
    object.put("options", Attribute::Array(options.collect()));
    object
}

fn ranges(ranges: &[(i128, i128)]) -> Attribute {
    // Each fits 64 bits, signed or not.
    let number = |value: i128| match i64::try_from(value) {
        Ok(value) => Attribute::Integer(value),
        Err(_) => Attribute::Unsigned(value as u64),
    };
    let range = |&(first, last): &(i128, i128)| Attribute::Array(vec![number(first), number(last)]);
    Attribute::Array(ranges.iter().map(range).collect())
}

fn location(location: &FieldLocation) -> Attribute {
    let mut object = Object(Vec::new());
    let mut path = Vec::new();
    match location.origin {
        Origin::Scope(scope) => object.put("origin", scope_name(scope)),
        Origin::Relative { up } => path.resize(up as usize, Attribute::Null),
        Origin::Search => {}
    }
    path.extend(location.path.iter().map(|name| name.as_str().into()));
    object.put("path", Attribute::Array(path));
    Attribute::Map(object.0)
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "packet-header",
        Scope::PacketContext => "packet-context",
        Scope::EventHeader => "event-record-header",
        Scope::CommonContext => "event-record-common-context",
        Scope::SpecificContext => "event-record-specific-context",
        Scope::Payload => "event-record-payload",
    }
}
