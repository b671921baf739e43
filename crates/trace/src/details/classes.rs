//! Trace classes: data stream classes, clock classes, event record classes, field classes.

use super::location::Place;
use super::page::{Page, decimal};
use super::values::real;
use crate::uuid_text;
use tracewing_ctf::model::{
    Attribute, Attributes, ClockClass, ClockOrigin, DataStreamClass, DisplayBase, Encoding, EnumerationClass,
    EventRecordClass, FieldClass, IntegerClass, Role, Scope, StructureClass, TraceClass, Version,
};

/// Names of log levels, by LTTng's number.
const LOG_LEVELS: [&str; 15] = [
    "Emergency",
    "Alert",
    "Critical",
    "Error",
    "Warning",
    "Notice",
    "Info",
    "Debug (system)",
    "Debug (program)",
    "Debug (process)",
    "Debug (module)",
    "Debug (unit)",
    "Debug (function)",
    "Debug (line)",
    "Debug",
];

/// A trace class to be written.
pub(super) struct Classes<'c> {
    class: &'c TraceClass,
}

impl<'c> Classes<'c> {
    pub(super) fn new(class: &'c TraceClass) -> Self {
        Classes { class }
    }

    pub(super) fn write(&self, page: &mut Page) {
        page.line("Trace class:");
        page.indented(|page| {
            attributes(page, &self.class.attributes);
            let mut streams: Vec<_> = self.class.data_stream_classes.iter().collect();
            streams.sort_by_key(|class| class.id);
            streams.into_iter().for_each(|class| self.stream(page, class));
        });
    }

    fn stream(&self, page: &mut Page, class: &'c DataStreamClass) {
        let stream = class;
        let clock = class.default_clock.as_ref().and_then(|id| self.class.clock_class(id));
        let has = |role| class.packet_context_bits(role).is_some();
        let begin = clock.is_some() && has(Role::DefaultClockTimestamp);
        let end = clock.is_some() && has(Role::PacketEndDefaultClockTimestamp);
        let events = has(Role::DiscardedEventRecordCounterSnapshot);
        let packets = has(Role::PacketSequenceNumber);
        page.line(&format!("Stream class{}:", identity(&class.name, &class.namespace, &class.uid, class.id)));
        page.indented(|page| {
            attributes(page, &class.attributes);
            let mut truth = |name: &str, truth: bool| {
                page.line(&format!("{name}: {}", if truth { "Yes" } else { "No" }));
            };
            truth("Supports packets", true);
            truth("Packets have beginning default clock snapshot", begin);
            truth("Packets have end default clock snapshot", end);
            truth("Supports discarded events", events);
            if events {
                truth("Discarded events have default clock snapshots", begin && end);
            }
            truth("Supports discarded packets", packets);
            if packets {
                truth("Discarded packets have default clock snapshots", begin && end);
            }
            if let Some(clock) = clock {
                page.line("Default clock class:");
                page.indented(|page| clock_lines(page, clock, self.class.version));
            }
            let scope = |page: &mut Page, name, class: Option<&'c StructureClass>, scope, event| {
                let Some(structure) = class else { return };
                let header = self.class.packet_header.as_ref();
                let place = Place { scope, structures: Vec::new(), header, stream, event };
                let plain_names = self.class.version == Version::V1_8;
                FieldWriter { page, place, plain_names }.root(name, structure);
            };
            let context = class.packet_context.as_ref().filter(|context| is_shown(context));
            scope(page, "Packet context field class", context, Scope::PacketContext, None);
            let context = class.common_context.as_ref();
            scope(page, "Event common context field class", context, Scope::CommonContext, None);
            let mut events: Vec<_> = class.event_record_classes.iter().collect();
            events.sort_by_key(|event| event.id);
            for event in events {
                page.line(&format!(
                    "Event class{}:",
                    identity(&event.name, &event.namespace, &event.uid, event.id)
                ));
                page.indented(|page| {
                    event_lines(page, event);
                    let context = event.specific_context.as_ref();
                    scope(page, "Specific context field class", context, Scope::SpecificContext, Some(event));
                    scope(page, "Payload field class", event.payload.as_ref(), Scope::Payload, Some(event));
                });
            }
        });
    }
}

/// Whether a packet context has something besides what serves the reader.
pub(super) fn is_shown(class: &StructureClass) -> bool {
    class.members.is_empty() || class.members.iter().any(|member| is_shown_field(&member.class))
}

fn is_shown_field(class: &FieldClass) -> bool {
    match class {
        FieldClass::Integer(class) | FieldClass::VariableInteger(class) => class.roles.is_empty(),
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
            class.integer.roles.is_empty()
        }
        FieldClass::Structure(class) => is_shown(class),
        _ => true,
    }
}

/// ` \`name\` (Namespace \`…\`, UID \`…\`, ID 5)`, as far as there is any.
fn identity(name: &Option<String>, namespace: &Option<String>, uid: &Option<String>, id: u64) -> String {
    let name = name.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
    let part = |what: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!("{what} `{value}`, ")).unwrap_or_default()
    };
    let (namespace, uid) = (part("Namespace", namespace), part("UID", uid));
    format!("{name} ({namespace}{uid}ID {})", decimal(id.into()))
}

fn event_lines(page: &mut Page, class: &EventRecordClass) {
    attributes(page, &class.attributes);
    let level = class.log_level.and_then(|level| usize::try_from(level).ok());
    if let Some(level) = level.and_then(|level| LOG_LEVELS.get(level)) {
        page.line(&format!("Log level: {level}"));
    }
    if let Some(uri) = &class.emf_uri {
        page.line(&format!("EMF URI: {uri}"));
    }
}

fn clock_lines(page: &mut Page, clock: &ClockClass, version: Version) {
    let uid = match version {
        Version::V1_8 => clock.uuid.as_ref().map(uuid_text),
        Version::V2 => clock.uid.clone(),
    };
    let texts = [("Namespace", &clock.namespace), ("Name", &clock.name), ("UID", &uid)];
    for (name, text) in texts {
        if let Some(text) = text {
            page.line(&format!("{name}: {text}"));
        }
    }
    attributes(page, &clock.attributes);
    if let Some(text) = &clock.description {
        page.line(&format!("Description: {text}"));
    }
    page.line(&format!("Frequency (Hz): {}", decimal(clock.frequency.into())));
    for (name, cycles) in [("Precision", clock.precision), ("Accuracy", clock.accuracy)] {
        if let Some(cycles) = cycles {
            page.line(&format!("{name} (cycles): {}", decimal(cycles.into())));
        }
    }
    // Cycles of a whole second count as such.
    let whole = i128::from(clock.offset_cycles.checked_div(clock.frequency).unwrap_or(0));
    let rest = clock.offset_cycles.checked_rem(clock.frequency).unwrap_or(0);
    page.line(&format!("Offset from origin (s): {}", decimal(i128::from(clock.offset_seconds) + whole)));
    page.line(&format!("Offset from origin (cycles): {}", decimal(rest.into())));
    match &clock.origin {
        ClockOrigin::Unknown => {}
        ClockOrigin::UnixEpoch => page.line("Origin: Unix epoch"),
        ClockOrigin::Custom { namespace, name, uid } => {
            page.line("Origin:");
            page.indented(|page| {
                if let Some(namespace) = namespace {
                    page.line(&format!("Namespace: {namespace}"));
                }
                page.line(&format!("Name: {name}"));
                page.line(&format!("UID: {uid}"));
            });
        }
    }
}

/// User attributes, in the order of their names.
fn attributes(page: &mut Page, attributes: &Attributes) {
    if attributes.is_empty() {
        return;
    }
    page.begin_line();
    page.text("User attributes:");
    entries(page, attributes.namespaces());
    page.newline();
}

fn entries(page: &mut Page, entries: &[(String, Attribute)]) {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    page.indented(|page| {
        for (name, value) in entries {
            page.newline();
            page.begin_line();
            page.text(&format!("{name}:"));
            attribute(page, value);
        }
    });
}

fn attribute(page: &mut Page, value: &Attribute) {
    let text = match value {
        Attribute::Null => "Null".to_owned(),
        Attribute::Boolean(truth) => if *truth { "Yes" } else { "No" }.to_owned(),
        Attribute::Integer(number) => decimal((*number).into()),
        Attribute::Unsigned(number) => decimal((*number).into()),
        Attribute::Real(number) => real(*number),
        Attribute::String(text) => text.clone(),
        Attribute::Map(map) if !map.is_empty() => return entries(page, map),
        Attribute::Array(items) if !items.is_empty() => {
            page.text(&format!(" Length {}:", decimal(items.len() as i128)));
            return page.indented(|page| {
                for (index, item) in items.iter().enumerate() {
                    page.newline();
                    page.begin_line();
                    page.text(&format!("[{}]:", decimal(index as i128)));
                    attribute(page, item);
                }
            });
        }
        Attribute::Array(_) | Attribute::Map(_) => "Empty".to_owned(),
    };
    page.text(&format!(" {text}"));
}

/// Writes the field classes of a scope.
struct FieldWriter<'p, 'c> {
    page: &'p mut Page,
    place: Place<'c>,
    /// Whether options are named like labels, with an underscore that protects the name.
    plain_names: bool,
}

impl<'c> FieldWriter<'_, 'c> {
    fn root(&mut self, name: &str, class: &'c StructureClass) {
        self.page.begin_line();
        self.page.text(&format!("{name}: "));
        self.structure(None, class);
        self.page.newline();
    }

    fn structure(&mut self, name: Option<&'c str>, class: &'c StructureClass) {
        let in_context = self.place.scope == Scope::PacketContext;
        let shown = |class: &FieldClass| !in_context || is_shown_field(class);
        let count = class.members.iter().filter(|member| shown(&member.class)).count();
        self.page.text(&format!("Structure ({} member{})", decimal(count as i128), plural(count)));
        let listed = self.begin(&class.attributes, "Members", count > 0);
        for (index, member) in class.members.iter().enumerate().filter(|(_, member)| shown(&member.class)) {
            self.place.structures.push((name, class, index));
            self.named(&member.name, "", &member.attributes, &member.class);
            self.place.structures.pop();
        }
        self.end(listed);
    }

    /// A line for a member or an option.
    fn named(&mut self, name: &'c str, ranges: &str, attributes_of: &Attributes, class: &'c FieldClass) {
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{name}:{ranges}"));
        if attributes_of.is_empty() {
            self.page.text(" ");
            return self.field(Some(name), class);
        }
        self.page.newline();
        self.page.deeper();
        self.page.begin_line();
        self.page.text("Field class: ");
        self.field(Some(name), class);
        self.page.newline();
        self.page.begin_line();
        self.page.text("User attributes:");
        entries(self.page, attributes_of.namespaces());
        self.page.shallower();
    }

    /// Begins what stands below a class's own line: attributes, and a list under `title`, which needs one only behind
    /// attributes. Gives how many levels that took.
    fn begin(&mut self, attributes: &Attributes, title: &str, has_list: bool) -> usize {
        self.page.deeper();
        if attributes.is_empty() {
            if has_list {
                self.page.text(":");
            }
            return 1;
        }
        self.page.text(":\n");
        self.page.begin_line();
        self.page.text("User attributes:");
        entries(self.page, attributes.namespaces());
        if !has_list || title.is_empty() {
            return 1;
        }
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{title}:"));
        self.page.deeper();
        2
    }

    fn end(&mut self, levels: usize) {
        (0..levels).for_each(|_| self.page.shallower());
    }

    fn field(&mut self, name: Option<&'c str>, class: &'c FieldClass) {
        match class {
            FieldClass::BitArray(class) => self.leaf("Bit array", &class.attributes),
            FieldClass::BitMap(class) => {
                self.page.text("Bit array");
                let listed = self.begin(&class.bits.attributes, "Flags", true);
                let mut flags: Vec<_> = class.flags.iter().collect();
                flags.sort_by(|left, right| left.name.cmp(&right.name));
                for flag in flags {
                    let wide = flag.ranges.iter().map(|&(first, last)| (first.into(), last.into()));
                    self.labelled(&flag.name, wide.collect());
                }
                self.end(listed);
            }
            FieldClass::Boolean(class) => self.leaf("Boolean", &class.attributes),
            FieldClass::Integer(class) | FieldClass::VariableInteger(class) => {
                let sign = if class.signed { "Signed" } else { "Unsigned" };
                self.leaf(&format!("{sign} integer ({})", integer(class)), &class.attributes);
            }
            FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
                self.enumeration(class)
            }
            FieldClass::Float(class) => {
                let precision = if class.size <= 32 { "Single" } else { "Double" };
                self.leaf(&format!("{precision}-precision real"), &class.attributes);
            }
            FieldClass::String(class) => self.leaf("String", &class.attributes),
            FieldClass::StaticString(class) => self.leaf("String", &class.attributes),
            FieldClass::DynamicString(class) => self.leaf("String", &class.attributes),
            FieldClass::StaticBlob(class) => {
                let length = decimal(class.length.into());
                let text = format!("Static BLOB (Length {length}, Media type `{}`)", class.media_type);
                self.leaf(&text, &class.attributes);
            }
            FieldClass::DynamicBlob(class) => {
                let place = self.place.find(&class.length).text;
                let media = &class.media_type;
                let text = format!(
                    "Dynamic BLOB (with length field) (Length field location {place}, Media type `{media}`)"
                );
                self.leaf(&text, &class.attributes);
            }
            FieldClass::Structure(class) => self.structure(name, class),
            FieldClass::StaticArray(class) if is_text(&class.element) => {
                self.leaf("String", &class.attributes)
            }
            FieldClass::DynamicArray(class) if is_text(&class.element) => {
                self.leaf("String", &class.attributes);
            }
            FieldClass::StaticArray(class) => {
                self.page.text(&format!("Static array (Length {})", decimal(class.length.into())));
                self.content(name, "Element", &class.attributes, &class.element);
            }
            FieldClass::DynamicArray(class) => {
                let place = self.place.find(&class.length).text;
                self.page.text(&format!("Dynamic array (with length field) (Length field location {place})"));
                self.content(name, "Element", &class.attributes, &class.element);
            }
            FieldClass::Optional(class) => {
                let selector = self.place.find(&class.selector);
                let kind = match selector.class {
                    _ if class.ranges.is_empty() => "boolean",
                    Some(class) if is_signed(class) => "signed integer",
                    _ => "unsigned integer",
                };
                let place = selector.text;
                self.page.text(&format!("Option ({kind} selector) (Selector field location {place})"));
                let listed = self.begin(&class.attributes, "", true);
                self.page.newline();
                self.page.line(&match class.ranges.is_empty() {
                    true => "Selector is reversed: No".to_owned(),
                    false => format!("Selector ranges:{}", ranges(class.ranges.clone())),
                });
                self.page.begin_line();
                self.page.text("Content: ");
                self.field(name, &class.class);
                self.end(listed);
            }
            FieldClass::Variant(class) => {
                let tag = self.place.find(&class.tag);
                let kind = if tag.class.is_some_and(is_signed) { "signed" } else { "unsigned" };
                let (count, place) = (class.options.len(), tag.text);
                let options = format!("{} option{}", decimal(count as i128), plural(count));
                self.page.text(&format!(
                    "Variant ({kind} integer selector) ({options}, Selector field location {place})"
                ));
                let listed = self.begin(&class.attributes, "Options", count > 0);
                for option in &class.options {
                    let own = match option.ranges.as_slice() {
                        [] => tag.class.map_or(Vec::new(), |tag| labelled_ranges(tag, &option.name)),
                        ranges => ranges.to_vec(),
                    };
                    let plain = option.name.strip_prefix('_').filter(|_| self.plain_names);
                    let name = plain.unwrap_or(&option.name);
                    self.named(name, &format!("{}:", ranges(own)), &option.attributes, &option.class);
                }
                self.end(listed);
            }
        }
    }

    /// A class of one line and its attributes.
    fn leaf(&mut self, text: &str, attributes: &Attributes) {
        self.page.text(text);
        let listed = self.begin(attributes, "", false);
        self.end(listed);
    }

    /// What an array consists of.
    fn content(
        &mut self,
        name: Option<&'c str>,
        title: &str,
        attributes: &Attributes,
        class: &'c FieldClass,
    ) {
        let listed = self.begin(attributes, "", true);
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{title}: "));
        self.field(name, class);
        self.end(listed);
    }

    fn enumeration(&mut self, class: &EnumerationClass) {
        let sign = if class.integer.signed { "Signed" } else { "Unsigned" };
        let count = class.mappings.len();
        let mappings = format!("{} mapping{}", decimal(count as i128), plural(count));
        self.page.text(&format!("{sign} enumeration ({}, {mappings})", integer(&class.integer)));
        let listed = self.begin(&class.integer.attributes, "Mappings", count > 0);
        let mut mappings: Vec<_> = class.mappings.iter().collect();
        mappings.sort_by(|left, right| left.label.cmp(&right.label));
        for mapping in mappings {
            self.labelled(&mapping.label, mapping.ranges.clone());
        }
        self.end(listed);
    }

    /// A line with a label and its ranges.
    fn labelled(&mut self, label: &str, of: Vec<(i128, i128)>) {
        self.page.newline();
        self.page.begin_line();
        self.page.text(&format!("{label}:{}", ranges(of)));
    }
}

/// Whether an integer is signed.
fn is_signed(class: &FieldClass) -> bool {
    match class {
        FieldClass::Integer(class) | FieldClass::VariableInteger(class) => class.signed,
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => class.integer.signed,
        _ => false,
    }
}

/// The values that a tag has a label for.
fn labelled_ranges(tag: &FieldClass, label: &str) -> Vec<(i128, i128)> {
    match tag {
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => {
            let mapping = class.mappings.iter().find(|mapping| mapping.label == label);
            mapping.map_or(Vec::new(), |mapping| mapping.ranges.clone())
        }
        _ => Vec::new(),
    }
}

/// Ranges in order, each behind a blank.
fn ranges(mut ranges: Vec<(i128, i128)>) -> String {
    ranges.sort_unstable();
    let range = |(first, last): (i128, i128)| match first == last {
        true => format!(" [{}]", decimal(first)),
        false => format!(" [{}, {}]", decimal(first), decimal(last)),
    };
    ranges.into_iter().map(range).collect()
}

fn integer(class: &IntegerClass) -> String {
    let base = match class.base {
        DisplayBase::Binary => 2,
        DisplayBase::Octal => 8,
        DisplayBase::Decimal => 10,
        DisplayBase::Hexadecimal => 16,
    };
    format!("{}-bit, Base {base}", class.size)
}

fn is_text(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Integer(class) if class.size == 8 && class.align == 8 && class.encoding != Encoding::None)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
