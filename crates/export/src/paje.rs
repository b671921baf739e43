//! Pajé's trace format (Schnorr: Paje Trace File Format, version 1.2.5): text, one line per event, sorted by
//! time.
//!
//! Containers are nested: a machine contains CPUs and processes, and processes contain threads, tasks, and
//! their functions and locks. Each has one state, functions are nested, a wake is a link to a thread or task,
//! and events carry their fields, samples their call chains, as text. Times are in seconds since the
//! beginning of the export, with nine decimals: readers that store them in a `double` have nanosecond
//! precision for 100 days.
//!
//! The format cannot escape quotation marks in a text, so they become apostrophes.

use crate::change::LinkId;
use crate::encoder::Encoder;
use crate::model::{ContainerId, CounterId, Kind, Model, NameId, Use};
use std::io::Write;
use tracewing_trace::{EventRef, JsonPrinter, number};
use tracewing_units::Timestamp;

/// The event definitions; their numbers begin each line of the file.
const DEFINITIONS: &str = "\
%EventDef PajeDefineContainerType 0
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineStateType 1
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineEventType 2
% Alias string
% Type string
% Name string
%EndEventDef
%EventDef PajeDefineVariableType 3
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeDefineLinkType 4
% Alias string
% Type string
% StartContainerType string
% EndContainerType string
% Name string
%EndEventDef
%EventDef PajeDefineEntityValue 5
% Alias string
% Type string
% Name string
% Color color
%EndEventDef
%EventDef PajeCreateContainer 6
% Time date
% Alias string
% Type string
% Container string
% Name string
%EndEventDef
%EventDef PajeDestroyContainer 7
% Time date
% Type string
% Name string
%EndEventDef
%EventDef PajeSetState 8
% Time date
% Type string
% Container string
% Value string
%EndEventDef
%EventDef PajePopState 9
% Time date
% Type string
% Container string
%EndEventDef
%EventDef PajeSetVariable 10
% Time date
% Type string
% Container string
% Value double
%EndEventDef
%EventDef PajeNewEvent 11
% Time date
% Type string
% Container string
% Value string
% Fields string
%EndEventDef
%EventDef PajeStartLink 12
% Time date
% Type string
% Container string
% StartContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajeEndLink 13
% Time date
% Type string
% Container string
% EndContainer string
% Value string
% Key string
%EndEventDef
%EventDef PajePushState 14
% Time date
% Type string
% Container string
% Value string
%EndEventDef
0 M 0 \"Machine\"
0 C M \"CPU\"
0 P M \"Process\"
0 L P \"Thread\"
0 T P \"Task\"
0 F P \"Functions\"
0 K P \"Locks\"
1 SC C \"CPU State\"
1 SL L \"Thread State\"
1 ST T \"Task State\"
1 SF F \"Function\"
1 SK K \"Lock\"
2 EC C \"CPU Event\"
2 EL L \"Thread Event\"
2 ET T \"Task Event\"
4 LCL M C L \"Interrupt Wakes Thread\"
4 LLL M L L \"Thread Wakes Thread\"
4 LTL M T L \"Task Wakes Thread\"
4 LCT M C T \"Interrupt Wakes Task\"
4 LLT M L T \"Thread Wakes Task\"
4 LTT M T T \"Task Wakes Task\"
5 w LCL \"wake\" \"0.4 0.4 0.4\"
5 w LLL \"wake\" \"0.4 0.4 0.4\"
5 w LTL \"wake\" \"0.4 0.4 0.4\"
5 w LCT \"wake\" \"0.4 0.4 0.4\"
5 w LLT \"wake\" \"0.4 0.4 0.4\"
5 w LTT \"wake\" \"0.4 0.4 0.4\"
";

#[derive(Debug, Default)]
pub(crate) struct Paje {
    json: JsonPrinter,
}

/// The letter of a kind in aliases.
fn letter(kind: Kind) -> char {
    match kind {
        Kind::Cpu { .. } => 'C',
        Kind::Process { .. } => 'P',
        Kind::Lwp { .. } => 'L',
        Kind::Task { .. } => 'T',
        Kind::Functions { .. } => 'F',
        Kind::Locks { .. } => 'K',
    }
}

/// Red, green and blue of a state's color.
fn color(used: Use) -> &'static str {
    match used {
        Use::User => "0.2 0.7 0.2",
        Use::SystemCall => "0.2 0.4 0.8",
        Use::Interrupt => "0.8 0.2 0.8",
        Use::Function | Use::Sampled => "0.9 0.5 0.1",
        Use::Held => "0.6 0.2 0.2",
        Use::Spinning => "0.9 0.3 0.5",
        Use::Running | Use::Container => "0.5 0.8 0.5",
        Use::Waiting => "0.9 0.7 0.1",
        Use::Blocked | Use::Awaited => "0.8 0.4 0.4",
        Use::Nested => "0.6 0.6 0.8",
        Use::Idle => "0.9 0.9 0.9",
        Use::Unknown | Use::Event => "0.6 0.6 0.6",
    }
}

/// Appends a text in quotation marks.
fn text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    let plain = |byte: &u8| match byte {
        b'"' => b'\'',
        0..b' ' | 0x7f => b' ',
        other => *other,
    };
    out.extend(text.iter().map(plain));
    out.push(b'"');
}

/// Appends the beginning of a line: event and time.
fn line(out: &mut Vec<u8>, event: &str, model: &Model, at: Timestamp) {
    out.extend_from_slice(event.as_bytes());
    out.push(b' ');
    let ns = (at - model.begin).as_ns();
    number::unsigned(out, ns / 1_000_000_000);
    out.push(b'.');
    number::padded::<9>(out, ns % 1_000_000_000);
    out.push(b' ');
}

/// Appends a letter, a number and a space.
fn word(out: &mut Vec<u8>, letter: char, id: u64) {
    out.push(letter as u8);
    number::unsigned(out, id);
    out.push(b' ');
}

impl Paje {
    /// Appends the type of what a container has, and the container.
    fn of(out: &mut Vec<u8>, what: char, model: &Model, id: ContainerId) {
        let kind = letter(model.containers[id as usize].kind);
        out.extend_from_slice(&[what as u8, kind as u8, b' ']);
        word(out, kind, id.into());
    }

    fn link(
        out: &mut Vec<u8>,
        model: &Model,
        from: ContainerId,
        to: ContainerId,
        here: ContainerId,
        link: LinkId,
    ) {
        let letter = |id: ContainerId| letter(model.containers[id as usize].kind);
        out.extend_from_slice(&[b'L', letter(from) as u8, letter(to) as u8]);
        out.extend_from_slice(b" m ");
        word(out, letter(here), here.into());
        out.extend_from_slice(b"w ");
        number::unsigned(out, link);
        out.push(b'\n');
    }
}

impl Encoder for Paje {
    fn fields(&mut self, event: &EventRef<'_>, out: &mut Vec<u8>) {
        self.json.payload(out, event);
    }

    fn begin(&mut self, out: &mut Vec<u8>, model: &Model) {
        out.extend_from_slice(DEFINITIONS.as_bytes());
        for (name, shown, used) in model.names.all() {
            let types: &[&str] = match used {
                Use::Event | Use::Sampled => &["EC", "EL", "ET"],
                Use::Function => &["SF"],
                Use::Held | Use::Awaited => &["SK"],
                Use::Container | Use::Idle => &["SC"],
                _ => &["SL", "ST"],
            };
            for of in types {
                out.extend_from_slice(b"5 ");
                word(out, 'n', name.into());
                // Writing to memory cannot fail.
                let _ = write!(out, "{of} ");
                text(out, shown.as_bytes());
                let _ = writeln!(out, " \"{}\"", color(used));
            }
        }
        for (number, counter) in model.counters.iter().enumerate() {
            out.extend_from_slice(b"3 ");
            word(out, 'v', number as u64);
            out.extend_from_slice(b"M ");
            text(out, counter.label().as_bytes());
            out.extend_from_slice(b" \"0.9 0.7 0.1\"\n");
        }
        line(out, "6", model, model.begin);
        out.extend_from_slice(b"m M 0 \"Machine\"\n");
    }

    fn container(&mut self, out: &mut Vec<u8>, model: &Model, id: ContainerId, at: Timestamp) {
        let container = &model.containers[id as usize];
        line(out, "6", model, at);
        let kind = letter(container.kind);
        word(out, kind, id.into());
        out.extend_from_slice(&[kind as u8, b' ']);
        match container.parent {
            Some(parent) => word(out, 'P', parent.into()),
            None => out.extend_from_slice(b"m "),
        }
        text(out, model.names.get(container.label).as_bytes());
        out.push(b'\n');
    }

    fn container_ends(&mut self, out: &mut Vec<u8>, model: &Model, id: ContainerId, at: Timestamp) {
        line(out, "7", model, at);
        let kind = letter(model.containers[id as usize].kind);
        out.extend_from_slice(&[kind as u8, b' ']);
        word(out, kind, id.into());
        out.push(b'\n');
    }

    fn state(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: Option<NameId>,
        woken: Option<(LinkId, ContainerId)>,
        at: Timestamp,
    ) {
        line(out, if name.is_some() { "8" } else { "9" }, model, at);
        Paje::of(out, 'S', model, of);
        if let Some(name) = name {
            word(out, 'n', name.into());
        }
        out.push(b'\n');
        if let Some((link, by)) = woken {
            line(out, "13", model, at);
            Paje::link(out, model, by, of, of, link);
        }
    }

    fn function(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: Option<NameId>,
        at: Timestamp,
    ) {
        line(out, if name.is_some() { "14" } else { "9" }, model, at);
        Paje::of(out, 'S', model, of);
        name.into_iter().for_each(|name| word(out, 'n', name.into()));
        out.push(b'\n');
    }

    fn wake(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        woken: ContainerId,
        link: LinkId,
        at: Timestamp,
    ) {
        line(out, "12", model, at);
        Paje::link(out, model, of, woken, of, link);
    }

    fn event(
        &mut self,
        out: &mut Vec<u8>,
        model: &Model,
        of: ContainerId,
        name: NameId,
        fields: &[u8],
        at: Timestamp,
    ) {
        line(out, "11", model, at);
        Paje::of(out, 'E', model, of);
        word(out, 'n', name.into());
        text(out, fields);
        out.push(b'\n');
    }

    fn sample(&mut self, out: &mut Vec<u8>, model: &Model, of: ContainerId, chain: &[NameId], at: Timestamp) {
        let Some(innermost) = chain.first() else { return };
        let names: Vec<&str> = chain.iter().map(|name| model.names.get(*name)).collect();
        self.event(out, model, of, *innermost, names.join(" < ").as_bytes(), at);
    }

    fn counter(&mut self, out: &mut Vec<u8>, model: &Model, counter: CounterId, value: u64, at: Timestamp) {
        line(out, "10", model, at);
        word(out, 'v', counter.into());
        out.extend_from_slice(b"m ");
        number::unsigned(out, value);
        out.push(b'\n');
    }

    fn end(&mut self, out: &mut Vec<u8>, model: &Model) {
        line(out, "7", model, model.end);
        out.extend_from_slice(b"M m\n");
    }
}
