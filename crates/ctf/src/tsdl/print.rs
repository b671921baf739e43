//! Prints a trace class as CTF 1.8 metadata text.
//!
//! What differs from TSDL's defaults is written, nothing else. A field name that TSDL would not take is
//! protected by an underscore, which readers strip again; characters that no identifier has become
//! underscores. A variant's option is to be named like an identifier that is no keyword.

use std::fmt::Write;

use super::KEYWORDS;
use crate::model::{
    ByteOrder, ClockClass, ClockOrigin, DataStreamClass, DisplayBase, Encoding, EnumerationClass, EnvValue,
    EventRecordClass, FieldClass, FieldLocation, FloatClass, IntegerClass, Origin, Scope, StructureClass,
    TraceClass, Uuid,
};
use tracewing_units::Cycles;

/// The metadata text of `class`; its first line is `/* CTF 1.8 */`.
///
/// # Panics
///
/// If the class has a field class that only CTF 2 has.
///
/// ```
/// use tracewing_ctf::model::{DataStreamClass, EventRecordClass, FieldClass, StructureClass, TraceClass};
///
/// let mut stream = DataStreamClass::new(0);
/// let payload = StructureClass::new().with("depth", FieldClass::unsigned(32));
/// stream.event_record_classes.push(EventRecordClass::new(0, "enqueued").with_payload(payload));
/// let mut trace = TraceClass::new();
/// trace.data_stream_classes.push(stream);
/// assert!(tracewing_ctf::tsdl::print(&trace).starts_with("/* CTF 1.8 */\n"));
/// ```
pub fn print(class: &TraceClass) -> String {
    let mut printer = Printer { out: String::with_capacity(4096), depth: 0, byte_order: class.byte_order };
    printer.trace(class);
    printer.out
}

struct Printer {
    out: String,
    depth: usize,
    byte_order: ByteOrder,
}

impl Printer {
    fn trace(&mut self, class: &TraceClass) {
        self.line("/* CTF 1.8 */");
        self.open("trace {");
        self.line("major = 1;");
        self.line("minor = 8;");
        if let Some(id) = &class.uuid {
            self.line(&format!("uuid = \"{}\";", uuid_text(id)));
        }
        self.line(&format!("byte_order = {};", byte_order(class.byte_order)));
        self.scope("packet.header", class.packet_header.as_ref());
        self.close("};");
        if !class.env.is_empty() {
            self.open("env {");
            for (name, value) in &class.env {
                match value {
                    EnvValue::String(text) => self.line(&format!("{} = {};", identifier(name), quoted(text))),
                    EnvValue::Integer(number) => self.line(&format!("{} = {number};", identifier(name))),
                }
            }
            self.close("};");
        }
        for clock in &class.clock_classes {
            self.clock(clock);
        }
        for stream in &class.data_stream_classes {
            self.stream(class, stream);
        }
    }

    fn clock(&mut self, clock: &ClockClass) {
        self.open("clock {");
        self.line(&format!("name = {};", identifier(&clock.id)));
        if let Some(id) = &clock.uuid {
            self.line(&format!("uuid = \"{}\";", uuid_text(id)));
        }
        if let Some(text) = &clock.description {
            self.line(&format!("description = {};", quoted(text)));
        }
        self.line(&format!("freq = {};", clock.frequency));
        if let Some(Cycles(precision @ 1..)) = clock.precision {
            self.line(&format!("precision = {precision};"));
        }
        if clock.offset_seconds != 0 {
            self.line(&format!("offset_s = {};", clock.offset_seconds));
        }
        if clock.offset_cycles != Cycles::ZERO {
            self.line(&format!("offset = {};", clock.offset_cycles));
        }
        if clock.origin == ClockOrigin::UnixEpoch {
            self.line("absolute = true;");
        }
        self.close("};");
    }

    fn stream(&mut self, trace: &TraceClass, stream: &DataStreamClass) {
        // A single class without an id field in the packet header needs no id, and babeltrace2 wants none
        // there.
        let implicit = trace.data_stream_classes.len() == 1
            && stream.id == 0
            && trace.packet_header.as_ref().is_none_or(|header| header.member("stream_id").is_none());
        self.open("stream {");
        if !implicit {
            self.line(&format!("id = {};", stream.id));
        }
        self.scope("packet.context", stream.packet_context.as_ref());
        self.scope("event.header", stream.event_header.as_ref());
        self.scope("event.context", stream.common_context.as_ref());
        self.close("};");
        for event in &stream.event_record_classes {
            self.event(if implicit { None } else { Some(stream.id) }, event);
        }
    }

    fn event(&mut self, stream: Option<u64>, event: &EventRecordClass) {
        self.open("event {");
        // Readers require a name; an empty one is read as none.
        self.line(&format!("name = {};", quoted(event.name.as_deref().unwrap_or_default())));
        self.line(&format!("id = {};", event.id));
        if let Some(stream) = stream {
            self.line(&format!("stream_id = {stream};"));
        }
        if let Some(level) = event.log_level {
            self.line(&format!("loglevel = {level};"));
        }
        if let Some(uri) = &event.emf_uri {
            self.line(&format!("model.emf.uri = {};", quoted(uri)));
        }
        self.scope("context", event.specific_context.as_ref());
        self.scope("fields", event.payload.as_ref());
        self.close("};");
    }

    fn scope(&mut self, name: &str, class: Option<&StructureClass>) {
        if let Some(class) = class {
            self.indent();
            let _ = write!(self.out, "{name} := ");
            self.structure(class);
            self.out.push_str(";\n");
        }
    }

    fn structure(&mut self, class: &StructureClass) {
        self.out.push_str("struct {\n");
        self.members(class.members.iter().map(|member| (identifier(&member.name), &member.class)));
        self.indent();
        self.out.push('}');
        if class.min_align > 1 {
            let _ = write!(self.out, " align({})", class.min_align);
        }
    }

    fn members<'c>(&mut self, members: impl Iterator<Item = (String, &'c FieldClass)>) {
        self.depth += 1;
        for (name, mut class) in members {
            self.indent();
            // Dimensions follow the name, outermost first; the element class precedes it.
            let mut dimensions = String::new();
            loop {
                match class {
                    FieldClass::StaticArray(array) => {
                        let _ = write!(dimensions, "[{}]", array.length);
                        class = &array.element;
                    }
                    FieldClass::DynamicArray(array) => {
                        let _ = write!(dimensions, "[{}]", location(&array.length));
                        class = &array.element;
                    }
                    _ => break,
                }
            }
            self.class(class);
            let _ = writeln!(self.out, " {name}{dimensions};");
        }
        self.depth -= 1;
    }

    fn class(&mut self, class: &FieldClass) {
        match class {
            FieldClass::Integer(class) => self.integer(class),
            FieldClass::Float(class) => self.float(class),
            FieldClass::Enumeration(class) => self.enumeration(class),
            FieldClass::String(class) => match class.encoding {
                Encoding::Ascii => self.out.push_str("string { encoding = ASCII; }"),
                Encoding::None => self.out.push_str("string { encoding = none; }"),
                _ => self.out.push_str("string"),
            },
            FieldClass::Structure(class) => self.structure(class),
            FieldClass::Variant(class) => {
                let _ = writeln!(self.out, "variant <{}> {{", location(&class.tag));
                let options = class.options.iter();
                self.members(options.map(|option| (option_identifier(&option.name), &option.class)));
                self.indent();
                self.out.push('}');
            }
            FieldClass::StaticArray(_) | FieldClass::DynamicArray(_) => {
                unreachable!("members() takes the dimensions off")
            }
            other => panic!("TSDL has no such field class: {other:?}"),
        }
    }

    fn integer(&mut self, class: &IntegerClass) {
        let _ = write!(self.out, "integer {{ size = {}; align = {};", class.size, class.align);
        if class.signed {
            self.out.push_str(" signed = true;");
        }
        self.number_byte_order(class.byte_order);
        match class.base {
            DisplayBase::Binary => self.out.push_str(" base = 2;"),
            DisplayBase::Octal => self.out.push_str(" base = 8;"),
            DisplayBase::Decimal => {}
            DisplayBase::Hexadecimal => self.out.push_str(" base = 16;"),
        }
        match class.encoding {
            Encoding::None => {}
            Encoding::Ascii => self.out.push_str(" encoding = ASCII;"),
            _ => self.out.push_str(" encoding = UTF8;"),
        }
        if let Some(clock) = &class.mapped_clock {
            let _ = write!(self.out, " map = clock.{}.value;", identifier(clock));
        }
        self.out.push_str(" }");
    }

    fn float(&mut self, class: &FloatClass) {
        let (exponent, mantissa) = if class.size == 32 { (8, 24) } else { (11, 53) };
        let _ = write!(
            self.out,
            "floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = {};",
            class.align
        );
        self.number_byte_order(class.byte_order);
        self.out.push_str(" }");
    }

    fn number_byte_order(&mut self, order: ByteOrder) {
        if order != self.byte_order {
            let _ = write!(self.out, " byte_order = {};", byte_order(order));
        }
    }

    fn enumeration(&mut self, class: &EnumerationClass) {
        self.out.push_str("enum : ");
        self.integer(&class.integer);
        self.out.push_str(" {");
        let ranges = class
            .mappings
            .iter()
            .flat_map(|mapping| mapping.ranges.iter().map(move |range| (mapping, range)));
        for (i, (mapping, (first, last))) in ranges.enumerate() {
            let _ =
                write!(self.out, "{} {} = {first}", if i == 0 { "" } else { "," }, quoted(&mapping.label));
            if first != last {
                let _ = write!(self.out, " ... {last}");
            }
        }
        self.out.push_str(" }");
    }

    fn line(&mut self, text: &str) {
        self.indent();
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn open(&mut self, text: &str) {
        if self.depth == 0 && !self.out.is_empty() {
            self.out.push('\n');
        }
        self.line(text);
        self.depth += 1;
    }

    fn close(&mut self, text: &str) {
        self.depth -= 1;
        self.line(text);
    }

    fn indent(&mut self) {
        self.out.extend(std::iter::repeat_n('\t', self.depth));
    }
}

fn byte_order(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

/// The 36 characters of a UUID.
pub(crate) fn uuid_text(id: &Uuid) -> String {
    let mut text = String::with_capacity(36);
    for (i, byte) in id.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A name as TSDL takes it; one more underscore where the reader would strip a real one.
pub(crate) fn identifier(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 1);
    let first_is_letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !first_is_letter || KEYWORDS.contains(&name) {
        text.push('_');
    }
    text.extend(name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
    text
}

/// The name of a variant's option. It has to be the same as the tag's label, so readers strip nothing from
/// it; a label that is no identifier cannot name an option.
pub(crate) fn option_identifier(name: &str) -> String {
    let protected = identifier(name);
    match protected.strip_prefix('_') {
        Some(plain) if name.starts_with('_') && !KEYWORDS.contains(&plain) => plain.to_owned(),
        _ => protected,
    }
}

/// A place as TSDL takes it.
fn location(location: &FieldLocation) -> String {
    let mut parts: Vec<String> = Vec::with_capacity(location.path.len() + 1);
    if let Origin::Scope(origin) = location.origin {
        parts.push(
            match origin {
                Scope::PacketHeader => "trace.packet.header",
                Scope::PacketContext => "stream.packet.context",
                Scope::EventHeader => "stream.event.header",
                Scope::CommonContext => "stream.event.context",
                Scope::SpecificContext => "event.context",
                Scope::Payload => "event.fields",
            }
            .to_owned(),
        );
    }
    parts.extend(location.path.iter().map(|name| identifier(name)));
    parts.join(".")
}

/// A string literal. Control characters are written as octal escapes, the only ones that end by themselves.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_ascii_control() => {
                let _ = write!(out, "\\{:03o}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
