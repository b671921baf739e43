//! Prints events with their places in the super-trace, one line each, in the columns of the paper's sigmund
//! (Figure 2): as text, JSON or comma-separated values.
//! | column | JSON and CSV | |
//! |---|---|---|
//! | `type` | `type` | `KERN` or `USER` |
//! | `date` | `ns`, `cycles` | as in the other formats |
//! | `pid`, `tid` | the same | the process, the LWP |
//! | `cpu` | the same | |
//! | `thr` | `thr`, `thr_name` | the user thread's number, 0 (in text `-`) for none, and its name |
//! | | `mode`, `call` | `user`, `syscall` and which one, `interrupt` |
//! | `code` | the same | the event class's id |
//! | `name` | the same | |
//! | `param(s)` | `params` | the payload |
//!
//! What is unknown is `?` in text, `null` in JSON, empty in CSV.

use crate::append::number;
use crate::append::quote::shown;
use crate::merge::event::EventRef;
use crate::open::recording::Recording;
use crate::print::csv::cell;
use crate::print::stamp::StampPrinter;
use crate::print::style::Format;
use crate::print::style::{ClockStyle, Style};
use crate::print::{json, text_value};
use crate::super_trace::{Carried, Mode, Place, Seen, is_kernel, mode_word};
use std::io::Write;
use tracewing_ctf::model::Scope;

/// The columns after the date.
const COLUMNS: &str =
    "     pid     tid  cpu  thr                 code  name                             param(s)\n";
const CSV_HEADER: &str = "type,ns,cycles,pid,tid,cpu,thr,thr_name,mode,call,code,name,params\n";

/// Prints events with their places.
#[derive(Debug)]
pub(crate) struct SuperPrinter {
    format: Format,
    cycles: bool,
    date_width: usize,
    /// Whether payloads are printed with the names of their fields.
    names: bool,
    stamps: StampPrinter,
    frames: text_value::Frames,
    started: Vec<bool>,
    params: Vec<u8>,
    /// For each trace, whether it is the kernel's.
    kernel: Vec<bool>,
}

impl SuperPrinter {
    pub(crate) fn new(format: Format, style: &Style, recording: &Recording) -> Self {
        SuperPrinter {
            format,
            cycles: style.clock.cycles,
            // 2026-11-21 04:25:40.123456789, 1795235140.123456789, 04:25:40.123456789
            date_width: match style.clock {
                ClockStyle { cycles: false, seconds: false, date: true, .. } => 29,
                ClockStyle { cycles: false, seconds: true, .. } => 20,
                _ => 18,
            },
            names: style.names.payload,
            stamps: StampPrinter::new(style),
            frames: text_value::Frames::default(),
            started: Vec::new(),
            params: Vec::new(),
            kernel: recording.traces().iter().map(is_kernel).collect(),
        }
    }

    /// Appends what comes before all events.
    pub(crate) fn header(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::Text | Format::Pretty => {
                out.extend_from_slice(b"type  date");
                fill(out, 6, self.date_width);
                out.extend_from_slice(COLUMNS.as_bytes());
            }
            Format::Csv => out.extend_from_slice(CSV_HEADER.as_bytes()),
            Format::Json => {}
        }
    }

    /// Appends an event as one line.
    pub(crate) fn event(&mut self, out: &mut Vec<u8>, seen: &Seen<'_>) {
        match self.format {
            Format::Text | Format::Pretty => self.text(out, seen),
            Format::Json => self.json(out, seen),
            Format::Csv => self.csv(out, seen),
        }
        out.push(b'\n');
    }

    fn text(&mut self, out: &mut Vec<u8>, seen: &Seen<'_>) {
        let (event, place) = (seen.event, &seen.place);
        out.extend_from_slice(self.level(event).as_bytes());
        out.extend_from_slice(b"  ");
        let start = out.len();
        match event.stamp() {
            None => out.push(b'?'),
            Some(stamp) if self.cycles => number::unsigned(out, stamp.cycles.0),
            Some(stamp) => self.stamps.wall(out, stamp.time),
        }
        fill(out, start, self.date_width);
        right(out, place.process.map(|pid| pid.0.into()), 8);
        right(out, place.tid.map(|tid| tid.0.into()), 8);
        right(out, place.cpu.map(|cpu| cpu.0.into()), 5);
        out.extend_from_slice(b"  ");
        let start = out.len();
        match place.thread {
            Carried::Unknown => out.push(b'?'),
            Carried::None => out.push(b'-'),
            Carried::Thread { id, name } => {
                number::unsigned(out, id.0);
                if !name.is_empty() {
                    // A program may give it any name.
                    out.push(b'(');
                    out.extend_from_slice(shown(name).as_bytes());
                    out.push(b')');
                }
            }
        }
        fill(out, start, 16);
        let class = event.decoded().class();
        right(out, class.id.try_into().ok(), 7);
        out.extend_from_slice(b"  ");
        let start = out.len();
        out.extend_from_slice(shown(class.name.as_deref().unwrap_or("?")).as_bytes());
        fill(out, start, 32);
        let mut printer = text_value::ValuePrinter::new(out, &mut self.frames, self.names, &[]);
        event.decoded().visit(Scope::Payload, &mut printer);
        if !printer.finish() {
            out.truncate(out.trim_ascii_end().len());
        }
    }

    fn json(&mut self, out: &mut Vec<u8>, seen: &Seen<'_>) {
        let (event, place) = (seen.event, &seen.place);
        // Writing to memory cannot fail.
        let _ = write!(out, "{{\"type\":\"{}\"", self.level(event));
        let _ = match event.stamp() {
            Some(stamp) => write!(out, ",\"ns\":{},\"cycles\":{}", stamp.time.as_ns(), stamp.cycles),
            None => write!(out, ",\"ns\":null,\"cycles\":null"),
        };
        nullable(out, "pid", place.process);
        nullable(out, "tid", place.tid);
        nullable(out, "cpu", place.cpu);
        nullable(out, "thr", thread(place));
        let (mode, call) = running(seen);
        let name = thread_name(place);
        for (key, value) in [("thr_name", name), ("mode", mode), ("call", call)] {
            let _ = write!(out, ",\"{key}\":");
            match value {
                Some(value) => json::text(out, value.as_bytes()),
                None => out.extend_from_slice(b"null"),
            }
        }
        let class = event.decoded().class();
        let _ = write!(out, ",\"code\":{},\"name\":", class.id);
        json::text(out, class.name.as_deref().unwrap_or_default().as_bytes());
        out.extend_from_slice(b",\"params\":");
        json_params(out, &mut self.started, event);
        out.push(b'}');
    }

    fn csv(&mut self, out: &mut Vec<u8>, seen: &Seen<'_>) {
        let (event, place) = (seen.event, &seen.place);
        out.extend_from_slice(self.level(event).as_bytes());
        let stamp = event.stamp();
        optional(out, stamp.map(|stamp| stamp.time.as_ns()));
        optional(out, stamp.map(|stamp| stamp.cycles));
        optional(out, place.process);
        optional(out, place.tid);
        optional(out, place.cpu);
        optional(out, thread(place));
        let (mode, call) = running(seen);
        for text in [thread_name(place), mode, call] {
            out.push(b',');
            cell(out, text.unwrap_or_default().as_bytes());
        }
        let class = event.decoded().class();
        optional(out, Some(class.id));
        out.push(b',');
        cell(out, class.name.as_deref().unwrap_or_default().as_bytes());
        out.push(b',');
        self.params.clear();
        json_params(&mut self.params, &mut self.started, event);
        cell(out, &self.params);
    }

    fn level(&self, event: &EventRef<'_>) -> &'static str {
        if self.kernel[event.trace_index()] { "KERN" } else { "USER" }
    }
}

/// The user thread's number, 0 for none.
fn thread(place: &Place<'_>) -> Option<u64> {
    match place.thread {
        Carried::Unknown => None,
        Carried::None => Some(0),
        Carried::Thread { id, .. } => Some(id.0),
    }
}

fn thread_name<'s>(place: &Place<'s>) -> Option<&'s str> {
    match place.thread {
        Carried::Thread { name, .. } => Some(name).filter(|name| !name.is_empty()),
        Carried::Unknown | Carried::None => None,
    }
}

/// What was running, and of a system call which one.
fn running<'s>(seen: &Seen<'s>) -> (Option<&'static str>, Option<&'s str>) {
    let call = match seen.place.mode {
        Mode::SystemCall(call) => Some(seen.adapter.name(call)),
        _ => None,
    };
    (mode_word(seen.place.mode), call)
}

fn json_params(out: &mut Vec<u8>, started: &mut Vec<bool>, event: &EventRef<'_>) {
    out.push(b'{');
    started.clear();
    started.push(false);
    let mut printer = json::ValuePrinter { out, started, hidden: &[] };
    event.decoded().visit(Scope::Payload, &mut printer);
    out.push(b'}');
}

/// Fills a column that began at `start`, and separates it from the next one.
fn fill(out: &mut Vec<u8>, start: usize, width: usize) {
    out.resize(out.len().max(start + width) + 1, b' ');
}

/// Appends a number, or that there is none, at the right of a column.
fn right(out: &mut Vec<u8>, number: Option<i64>, width: usize) {
    let start = out.len();
    match number {
        Some(number) => number::signed(out, number),
        None => out.push(b'?'),
    }
    let missing = width.saturating_sub(out.len() - start).max(1);
    out.splice(start..start, std::iter::repeat_n(b' ', missing));
}

fn nullable<N: std::fmt::Display>(out: &mut Vec<u8>, key: &str, number: Option<N>) {
    // Writing to memory cannot fail.
    let _ = match number {
        Some(number) => write!(out, ",\"{key}\":{number}"),
        None => write!(out, ",\"{key}\":null"),
    };
}

fn optional<N: std::fmt::Display>(out: &mut Vec<u8>, number: Option<N>) {
    out.push(b',');
    // Writing to memory cannot fail.
    let _ = number.map(|number| write!(out, "{number}"));
}
