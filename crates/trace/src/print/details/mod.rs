//! Everything that a recording says, message by message, in the layout of babeltrace2's `sink.text.details`:
//! trace classes, the beginning and end of streams and packets, events with every field, losses.
//!
//! Names of traces and streams are left out; babeltrace2 makes them from paths.

mod attributes;
mod classes;
mod field_classes;
mod location;
mod messages;
mod page;
mod values;

use crate::open::recording::Recording;
use crate::stream::cursor::{Lost, LostKind};
use crate::time::stamp::Stamp;
use crate::{Error, uuid_text};
use classes::Classes;
use messages::{Message, Messages, Source};
use page::{Page, decimal};
use std::io::Write;
use tracewing_ctf::model::{EnvValue, Scope, StructureClass};
use values::Values;

/// Bytes collected before they are written.
const BATCH: usize = 1 << 16;

/// Prints all messages of `recording` to `out`; `compact` for a line each, without fields.
///
/// # Errors
/// A stream is damaged: everything before that has been printed. Or `out` fails ([`Error::Output`]).
pub fn print_details(recording: &Recording, out: &mut impl Write, compact: bool) -> Result<(), Error> {
    let mut details =
        Details { recording, compact, page: Page::default(), seen: Vec::new(), printed: false, started: 0 };
    let mut messages = Messages::new(recording)?;
    loop {
        let next = messages.advance();
        if let Ok(Some((stream, message, source))) = &next {
            details.message(*stream, message, source);
        }
        if details.page.len() >= BATCH || !matches!(next, Ok(Some(_))) {
            out.write_all(details.page.take().as_bytes()).map_err(Error::Output)?;
        }
        if next?.is_none() {
            return Ok(());
        }
    }
}

struct Details<'r> {
    recording: &'r Recording,
    compact: bool,
    page: Page,
    /// Traces in the order in which they were first seen, which numbers them.
    seen: Vec<usize>,
    /// Whether there is a block before the next one.
    printed: bool,
    /// Where the message under way begins.
    started: usize,
}

impl Details<'_> {
    fn message(&mut self, stream: usize, message: &Message, source: &Source) {
        let trace = self.recording.streams()[stream].trace_index();
        if !self.seen.contains(&trace) {
            self.seen.push(trace);
            self.separate(true);
            Classes::new(self.recording.traces()[trace].class()).write(&mut self.page);
            self.printed = true;
            if self.compact {
                self.page.newline();
            }
        }
        self.separate(false);
        self.printed = true;
        self.started = self.page.len();
        let class = source.class();
        let has_clock = class.is_some_and(|class| class.default_clock.is_some());
        match message {
            Message::StreamBegin => {
                self.unknown_time(has_clock);
                self.tag(stream);
                self.page.text("Stream beginning");
                if self.compact {
                    return self.page.newline();
                }
                self.page.end_line(":");
                self.page.indented(|page| trace_lines(page, self.recording, trace));
            }
            Message::StreamEnd => {
                self.unknown_time(has_clock);
                self.tag(stream);
                self.page.end_line("Stream end");
            }
            Message::PacketBegin(stamp) => {
                self.time(*stamp);
                self.tag(stream);
                self.page.text("Packet beginning");
                let context = class.and_then(|class| class.packet_context.as_ref());
                match context.filter(|context| !self.compact && field_classes::is_shown(context)) {
                    None => self.page.newline(),
                    Some(context) => {
                        self.page.end_line(":");
                        self.page.indented(|page| {
                            root(page, "Context", context, |values| source.visit_packet_context(values));
                        });
                    }
                }
            }
            Message::PacketEnd(stamp) => {
                self.time(*stamp);
                self.tag(stream);
                self.page.end_line("Packet end");
            }
            Message::Lost(lost) => self.lost(stream, lost, source),
            Message::Event(stamp) => self.event(stream, *stamp, source),
        }
    }

    fn event(&mut self, stream: usize, stamp: Option<Stamp>, source: &Source) {
        let event = source.event();
        let (class, stream_class) = (event.class(), event.data_stream_class());
        self.time(stamp);
        self.tag(stream);
        self.page.text("Event");
        if let Some(name) = &class.name {
            self.page.text(&format!(" `{name}`"));
        }
        let label = if self.compact { "" } else { "Class ID " };
        self.page.text(&format!(" ({label}{})", decimal(class.id.into())));
        if self.compact {
            return self.page.newline();
        }
        self.page.end_line(":");
        self.page.indented(|page| {
            let scopes = [
                ("Common context", &stream_class.common_context, Scope::CommonContext),
                ("Specific context", &class.specific_context, Scope::SpecificContext),
                ("Payload", &class.payload, Scope::Payload),
            ];
            for (name, class, scope) in scopes {
                if let Some(class) = class {
                    root(page, name, class, |values| event.visit(scope, values));
                }
            }
        });
    }

    fn lost(&mut self, stream: usize, lost: &Lost, source: &Source) {
        if let Some((begin, end)) = source.loss_stamps(lost) {
            self.time(Some(begin));
            self.time(Some(end));
        }
        self.tag(stream);
        let what = match lost.kind {
            LostKind::Events => "events",
            LostKind::Packets => "packets",
        };
        self.page.text(&format!("Discarded {what}"));
        if let Some(count) = lost.count {
            self.page.text(&format!(" ({} {what})", decimal(count.into())));
        }
        self.page.newline();
    }

    /// An empty line between blocks.
    fn separate(&mut self, always: bool) {
        if self.printed && (always || !self.compact) {
            self.page.newline();
        }
    }

    fn unknown_time(&mut self, has_clock: bool) {
        if has_clock {
            self.head("[Unknown]");
        }
    }

    fn time(&mut self, stamp: Option<Stamp>) {
        let Some(Stamp { cycles, time }) = stamp else { return };
        let (cycles, ns) = (decimal(cycles.0.into()), decimal(time.as_ns().into()));
        self.head(&match self.compact {
            true => format!("[{cycles} {ns}]"),
            false => format!("[{cycles} cycles, {ns} ns from origin]"),
        });
    }

    /// Which stream the message is of.
    fn tag(&mut self, stream: usize) {
        let stream = &self.recording.streams()[stream];
        let trace = self.seen.iter().position(|seen| *seen == stream.trace_index()).unwrap_or_default();
        let (class, id) = (stream.class_id(), stream.id());
        self.head(&match self.compact {
            true => format!("{{{trace} {class} {id}}}"),
            false => format!("{{Trace {trace}, Stream class ID {class}, Stream ID {id}}}"),
        });
    }

    /// Prints the head of a message: on a line of its own, unless the message has only one.
    fn head(&mut self, text: &str) {
        match self.compact {
            true => self.page.text(&format!("{text} ")),
            false => self.page.end_line(text),
        }
    }
}

/// A scope's name and fields.
fn root(page: &mut Page, name: &str, class: &StructureClass, visit: impl FnOnce(&mut Values<'_>)) {
    page.begin_line();
    page.text(name);
    page.text(":");
    if class.members.is_empty() {
        page.text(" Empty");
    }
    page.indented(|page| visit(&mut Values::new(page)));
    page.newline();
}

/// What is known about a trace: identity, environment, streams.
fn trace_lines(page: &mut Page, recording: &Recording, trace: usize) {
    let class = recording.traces()[trace].class();
    let uid = class.uid.clone().or_else(|| match class.version {
        tracewing_ctf::model::Version::V1_8 => class.uuid.as_ref().map(uuid_text),
        tracewing_ctf::model::Version::V2 => None,
    });
    let identity = [("Namespace", &class.namespace), ("UID", &uid)];
    let identity: Vec<_> = identity
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name} `{}`", value.as_ref()?)))
        .collect();
    page.begin_line();
    page.text("Trace");
    if !identity.is_empty() {
        page.text(&format!(" ({})", identity.join(", ")));
    }
    page.end_line(":");
    page.indented(|page| {
        let mut env: Vec<_> = class.env.iter().collect();
        env.sort_by(|left, right| left.0.cmp(&right.0));
        if !env.is_empty() {
            let entries = if env.len() == 1 { "entry" } else { "entries" };
            page.line(&format!("Environment ({} {entries}):", decimal(env.len() as i128)));
        }
        page.indented(|page| {
            for (name, value) in env {
                match value {
                    EnvValue::String(text) => page.line(&format!("{name}: {text}")),
                    EnvValue::Integer(number) => page.line(&format!("{name}: {}", decimal((*number).into()))),
                }
            }
        });
        let mut streams: Vec<_> =
            recording.streams().iter().filter(|stream| stream.trace_index() == trace).collect();
        streams.sort_by_key(|stream| (stream.id(), stream.class_id()));
        for stream in streams {
            page.line(&format!(
                "Stream (ID {}, Class ID {})",
                decimal(stream.id().into()),
                decimal(stream.class_id().into())
            ));
        }
    });
}
