//! Prints events and losses line by line, byte for byte as `babeltrace2` 2.0.4 does; but names are [shown] as
//! a terminal may have them.

use crate::append::quote::shown;
use crate::append::{self, Room, number};
use crate::merge::event::EventRef;
use crate::open::recording::{Recording, Stream, Trace};
use crate::print::context::Shown;
use crate::print::pretty::Forms;
use crate::print::stamp::StampPrinter;
use crate::print::style::{FieldStyle, Style};
use crate::print::text_template::Template;
use crate::print::text_value::{Frames, PACKET_BOOKKEEPING, ValuePrinter};
use crate::stream::cursor::{Lost, LostKind};
use std::path::Path;
use tracewing_ctf::model::{EnvValue, EventRecordClass, Scope, TraceClass};
use tracewing_units::Timestamp;
use tracewing_vocabulary::environment;

/// Prints events and losses as lines of text.
#[derive(Debug)]
pub struct TextPrinter {
    style: Style,
    stamps: StampPrinter,
    frames: Frames,
    /// Per trace: the text between stamp and log level, with and without a stamp.
    prefixes: Vec<[Prefix; 2]>,
    /// Per stream, by the index of the event class: all that comes between stamp and contexts.
    heads: Vec<Vec<Vec<u8>>>,
    /// Per stream the packet context.
    packets: Vec<PacketText>,
    /// Per stream, by the index of the event class: the text after the packet context, if its layout is
    /// fixed.
    templates: Vec<Vec<Prepared>>,
    /// Print forms and units, where payloads are printed by them.
    forms: Option<Forms>,
}

/// The template of a class, or how often none could be made: even where all of its events but few are laid
/// out alike, the first may be another.
#[derive(Debug)]
enum Prepared {
    Tried(u8),
    Template(Template),
}

const MOST_TRIES: u8 = 16;

#[derive(Debug)]
struct Prefix {
    text: Vec<u8>,
    /// Whether something stands in it that a colon or a space must follow.
    printed: bool,
}

/// A packet's context as text: the same for all of its events.
#[derive(Debug, Default)]
struct PacketText {
    packet: Option<u64>,
    text: Vec<u8>,
}

impl TextPrinter {
    /// A printer for events of `recording`.
    pub fn new(style: Style, recording: &Recording) -> Self {
        let both = |trace| [true, false].map(|stamped| prefix(&style, trace, stamped));
        TextPrinter {
            style,
            stamps: StampPrinter::new(&style),
            frames: Frames::default(),
            prefixes: recording.traces().iter().map(both).collect(),
            heads: vec![Vec::new(); recording.streams().len()],
            packets: std::iter::repeat_with(PacketText::default).take(recording.streams().len()).collect(),
            templates: std::iter::repeat_with(Vec::new).take(recording.streams().len()).collect(),
            forms: None,
        }
    }

    /// A printer that prints payloads as the events' authors meant them: by their print forms, with units.
    pub fn pretty(style: Style, recording: &Recording) -> Self {
        TextPrinter { forms: Some(Forms::default()), ..TextPrinter::new(style, recording) }
    }

    /// Has the next events be of packets that are not those before, of whatever number.
    pub(crate) fn forget_packets(&mut self) {
        self.packets.iter_mut().for_each(|packet| packet.packet = None);
    }

    pub(crate) fn stamps(&mut self) -> &mut StampPrinter {
        &mut self.stamps
    }

    /// Has the first event's stamp follow the last one of `before`.
    pub(crate) fn continuing(self, before: TextPrinter) -> Self {
        TextPrinter { stamps: before.stamps, ..self }
    }

    /// Appends an event as one line.
    pub fn event(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>) {
        self.event_in(out, event, None);
    }

    /// The same, with the context of its thread.
    pub(crate) fn event_in(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>, context: Option<Shown<'_>>) {
        if context.is_none() && self.prepared(out, event).is_some() {
            return;
        }
        let names = self.style.names;
        let decoded = event.decoded();
        self.head(out, event, decoded.class_index());
        let mut line = Line { out, first: true, scopes: names.scope };

        let packet = self.packet_text(event);
        if !packet.is_empty() {
            line.part("stream.packet.context", |out| {
                append::text(out, packet);
                true
            });
        }
        if let Some(context) = context {
            line.part("thread.context", |out| {
                context.text(out, names.context);
                true
            });
        }
        // Events of a class with a fixed layout differ only in some characters. From the first ones a
        // template is made, which prints the others without a walk over their fields; after some attempts
        // without success the class is always walked. Print forms have texts of their own, so no template.
        let index = decoded.class_index();
        let templates = &mut self.templates[event.stream_index()];
        match (templates.get(index), decoded.record()) {
            (Some(Prepared::Template(template)), Some(record)) => {
                let mut room = Room::new(line.out, template.room());
                template.print(&mut room, record);
                return room.finish();
            }
            (Some(Prepared::Template(_) | Prepared::Tried(MOST_TRIES)), _) => self.frames.places = None,
            _ => self.frames.places = Some(Vec::new()).filter(|_| self.forms.is_none()),
        }
        let start = line.out.len();
        for (scope, label, with_names) in [
            (Scope::CommonContext, "stream.event.context", names.context),
            (Scope::SpecificContext, "event.context", names.context),
            (Scope::Payload, "event.fields", names.payload),
        ] {
            if decoded.has_scope(scope) {
                line.part(label, |out| {
                    if let (Some(forms), Scope::Payload) = (&mut self.forms, scope) {
                        return forms.payload(out, event, &mut self.frames, with_names);
                    }
                    let mut printer = ValuePrinter::new(out, &mut self.frames, with_names, &[]);
                    decoded.visit(scope, &mut printer);
                    printer.finish()
                });
            }
        }
        out.push(b'\n');
        if let Some(mut places) = self.frames.places.take() {
            places.iter_mut().flatten().for_each(|place| *place = place.start - start..place.end - start);
            prepare(templates, index, Template::new(&out[start..], &places, &decoded));
        }
    }

    /// Appends an event whose class, packet and second have been printed before: in one piece of memory,
    /// without a look at what is the same as then. `None`, and nothing has been appended, of any other event.
    #[inline(always)]
    fn prepared(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>) -> Option<()> {
        let decoded = event.decoded();
        let (stream, index) = (event.stream_index(), decoded.class_index());
        let Prepared::Template(template) = self.templates[stream].get(index)? else { return None };
        let (record, head, packet) =
            (decoded.record()?, self.heads[stream].get(index)?, &self.packets[stream]);
        if packet.packet != Some(event.packet_serial()) || self.style.names.scope {
            return None;
        }
        let stamp = self.stamps.common_event(event.stamp()?)?;
        let mut room = Room::new(out, template.room());
        room.array(&stamp, stamp.len());
        room.bytes(head);
        room.bytes(&packet.text);
        template.print(&mut room, record);
        room.finish();
        Some(())
    }

    /// The context of the event's packet, printed once for all its events.
    #[inline(always)]
    fn packet_text(&mut self, event: &EventRef<'_>) -> &[u8] {
        let packet = &mut self.packets[event.stream_index()];
        if packet.packet != Some(event.packet_serial()) {
            packet.packet = Some(event.packet_serial());
            packet.text.clear();
            if event.has_packet_context() {
                let (names, hidden) = (self.style.names.context, PACKET_BOOKKEEPING);
                let mut printer = ValuePrinter::new(&mut packet.text, &mut self.frames, names, hidden);
                event.visit_packet_context(&mut printer);
                printer.finish();
            }
        }
        &packet.text
    }

    /// Appends everything up to the event's name and the colon after it; `index` is that of its class.
    fn head(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>, index: usize) {
        if let Some(stamp) = event.stamp() {
            self.stamps.event(out, stamp);
        }
        let known = self.heads[event.stream_index()].get(index).filter(|head| !head.is_empty());
        match known {
            Some(head) => append::text(out, head),
            None => {
                let head = self.class_head(event);
                out.extend_from_slice(&head);
                let heads = &mut self.heads[event.stream_index()];
                if heads.len() <= index {
                    heads.resize(index + 1, Vec::new());
                }
                heads[index] = head;
            }
        }
    }

    /// What comes between the stamp and the contexts of all events of this stream and class.
    fn class_head(&self, event: &EventRef<'_>) -> Vec<u8> {
        let names = self.style.names.header;
        let stamped = event.stamp().is_some();
        let comma = stamped && names;
        let prefix = &self.prefixes[event.trace_index()][usize::from(!stamped)];
        let mut text = prefix.text.clone();
        let mut head = Head { out: &mut text, names, comma, printed: prefix.printed };
        let class = event.decoded().class();
        head.class(&self.style.fields, class);
        if head.printed && !names {
            text.push(b' ');
        }
        if comma {
            text.extend_from_slice(b", ");
        }
        if names {
            text.extend_from_slice(b"name = ");
        }
        let name = class.name.as_deref().filter(|name| !name.is_empty());
        text.extend_from_slice(shown(name.unwrap_or("<unknown>")).as_bytes());
        text.extend_from_slice(if names { b", " } else { b": " });
        text
    }

    /// Appends a warning of stamps that go back in the packet at a byte of a file, in nanoseconds since the
    /// clock's origin.
    pub(crate) fn backwards(
        &mut self,
        out: &mut Vec<u8>,
        (from, to): (Timestamp, Timestamp),
        (file, offset): (&Path, u64),
    ) {
        out.extend_from_slice(b"WARNING: Stamps go back from [");
        self.stamps.wall(out, from);
        out.extend_from_slice(b"] to [");
        self.stamps.wall(out, to);
        out.extend_from_slice(b"] in the packet at byte ");
        number::unsigned(out, offset);
        out.extend_from_slice(b" of ");
        out.extend_from_slice(shown(&file.to_string_lossy()).as_bytes());
        out.extend_from_slice(b": events of this stream are not in order.\n");
    }

    /// Appends a loss as the warning that babeltrace2 prints on its standard error.
    pub fn lost(&mut self, out: &mut Vec<u8>, lost: &Lost, trace: &Trace, stream: &Stream) {
        let what = match lost.kind {
            LostKind::Events => "event",
            LostKind::Packets => "packet",
        };
        match lost.count {
            Some(count) => {
                out.extend_from_slice(b"WARNING: Tracer discarded ");
                number::unsigned(out, count);
                out.push(b' ');
                out.extend_from_slice(what.as_bytes());
                if count != 1 {
                    out.push(b's');
                }
            }
            None => {
                out.extend_from_slice(b"WARNING: Tracer may have discarded ");
                out.extend_from_slice(what.as_bytes());
                out.push(b's');
            }
        }
        match lost.range {
            Some((begin, end)) => {
                out.extend_from_slice(b" between [");
                self.stamps.wall(out, begin);
                out.extend_from_slice(b"] and [");
                self.stamps.wall(out, end);
                out.push(b']');
            }
            None => out.extend_from_slice(b" (unknown time range)"),
        }
        out.extend_from_slice(b" in trace \"");
        out.extend_from_slice(shown(trace.name()).as_bytes());
        out.extend_from_slice(b"\" (");
        match trace.class().uuid {
            Some(uuid) => {
                out.extend_from_slice(b"UUID: ");
                out.extend_from_slice(crate::uuid_text(&uuid).as_bytes());
            }
            None => out.extend_from_slice(b"no UUID"),
        }
        out.extend_from_slice(b") within stream \"");
        out.extend_from_slice(shown(stream.name()).as_bytes());
        out.extend_from_slice(b"\" (stream class ID: ");
        number::unsigned(out, stream.class_id());
        out.extend_from_slice(b", stream ID: ");
        number::unsigned(out, stream.id());
        out.extend_from_slice(b").\n");
    }
}

/// Keeps the template of a class, or that none could be made.
fn prepare(templates: &mut Vec<Prepared>, index: usize, made: Option<Template>) {
    if templates.len() <= index {
        templates.resize_with(index + 1, || Prepared::Tried(0));
    }
    templates[index] = match (made, &templates[index]) {
        (Some(template), _) => Prepared::Template(template),
        (None, Prepared::Tried(times)) => Prepared::Tried(times + 1),
        (None, Prepared::Template(_)) => return,
    };
}

/// The contexts and the payload of a line.
struct Line<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
    scopes: bool,
}

impl Line<'_> {
    /// Appends a part with its separator and name, and takes all of it back where `print` says it printed
    /// nothing.
    fn part(&mut self, label: &str, print: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.out.len();
        if !self.first {
            self.out.extend_from_slice(b", ");
        }
        if self.scopes {
            self.out.extend_from_slice(label.as_bytes());
            self.out.extend_from_slice(b" = ");
        }
        if print(self.out) {
            self.first = false;
        } else {
            self.out.truncate(start);
        }
    }
}

/// What stands between stamp and name.
struct Head<'o> {
    out: &'o mut Vec<u8>,
    names: bool,
    comma: bool,
    printed: bool,
}

impl Head<'_> {
    fn lead(&mut self, name: &str, joins: bool) {
        if self.comma {
            self.out.extend_from_slice(b", ");
        }
        if self.names {
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b" = ");
        } else if joins && self.printed {
            self.out.push(b':');
        }
        self.printed = true;
    }

    fn class(&mut self, fields: &FieldStyle, class: &EventRecordClass) {
        if let Some((name, level)) = class.log_level.filter(|_| fields.log_level).and_then(log_level) {
            self.lead("loglevel", true);
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b" (");
            number::signed(self.out, level);
            self.out.push(b')');
        }
        if let Some(uri) = class.emf_uri.as_deref().filter(|_| fields.emf) {
            self.lead("model.emf.uri", true);
            self.out.extend_from_slice(shown(uri).as_bytes());
        }
    }
}

/// What the trace alone decides about a line's head.
fn prefix(style: &Style, trace: &Trace, stamped: bool) -> Prefix {
    let names = style.names.header;
    let mut text = Vec::new();
    let mut head = Head { out: &mut text, names, comma: stamped && names, printed: false };
    let fields = &style.fields;
    if fields.trace {
        // babeltrace2 prints no colon after it, but an extra comma.
        head.lead("trace", false);
        head.out.extend_from_slice(shown(trace.name()).as_bytes());
        if names {
            head.out.extend_from_slice(b", ");
        }
        head.printed = false;
    }
    let class = trace.class();
    for (is_shown, name, key, joins) in [
        (fields.hostname, "trace:hostname", environment::HOSTNAME, false),
        (fields.domain, "trace:domain", environment::DOMAIN, true),
        (fields.procname, "trace:procname", environment::PROCNAME, true),
    ] {
        if let Some(value) = env_text(class, key).filter(|_| is_shown) {
            head.lead(name, joins);
            head.out.extend_from_slice(shown(value).as_bytes());
        }
    }
    if let Some(EnvValue::Integer(pid)) = class.env(environment::VPID).filter(|_| fields.vpid) {
        head.lead("trace:vpid", true);
        head.out.push(b'(');
        number::signed(head.out, *pid);
        head.out.push(b')');
    }
    let printed = head.printed;
    Prefix { text, printed }
}

fn env_text<'c>(class: &'c TraceClass, key: &str) -> Option<&'c str> {
    match class.env(key)? {
        EnvValue::String(text) => Some(text),
        EnvValue::Integer(_) => None,
    }
}

/// LTTng's name of a log level, and its number.
fn log_level(level: i64) -> Option<(&'static str, i64)> {
    const NAMES: [&str; 15] = [
        "TRACE_EMERG",
        "TRACE_ALERT",
        "TRACE_CRIT",
        "TRACE_ERR",
        "TRACE_WARNING",
        "TRACE_NOTICE",
        "TRACE_INFO",
        "TRACE_DEBUG_SYSTEM",
        "TRACE_DEBUG_PROGRAM",
        "TRACE_DEBUG_PROCESS",
        "TRACE_DEBUG_MODULE",
        "TRACE_DEBUG_UNIT",
        "TRACE_DEBUG_FUNCTION",
        "TRACE_DEBUG_LINE",
        "TRACE_DEBUG",
    ];
    usize::try_from(level).ok().and_then(|index| NAMES.get(index)).map(|name| (*name, level))
}
