//! Prints events as comma-separated values (RFC 4180, lines end with LF), with stable columns.
//!
//! The first line names the columns. They follow from the metadata and from the names of the selected events,
//! never from the events that occur: `ns`, `cycles`, `trace`, `stream_class`, `stream` and `event` as the
//! JSON format has them, then a column for each field of these events, in the order of the metadata. It is
//! called after the scope and the field, with dots for structures: `payload.depth`, `packet_context.cpu_id`;
//! fields of one name share a column. With `list --context`, the fields of the thread's context come last:
//! `context.pid`.
//!
//! What an event does not have is empty. An enumeration is its label, or its number where it has none or
//! several; arrays, variants and flags are JSON; bytes are hexadecimal. Texts are UTF-8, with U+FFFD for what
//! is none.

use crate::append::number;
use crate::merge::event::EventRef;
use crate::open::recording::Recording;
use crate::print::context::Shown;
use crate::print::json::{ValuePrinter, print_value};
use crate::print::text_value::{PACKET_BOOKKEEPING, integer_class};
use crate::select::selection::Selection;
use std::collections::HashMap;
use std::io::Write;
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::{EnumerationClass, FieldClass, Roles, Scope, StructureClass};

const FIXED: [&str; 6] = ["ns", "cycles", "trace", "stream_class", "stream", "event"];

const SCOPES: [(Scope, &str); 4] = [
    (Scope::PacketContext, "packet_context"),
    (Scope::CommonContext, "common_context"),
    (Scope::SpecificContext, "specific_context"),
    (Scope::Payload, "payload"),
];

/// Prints events as lines of values.
#[derive(Debug)]
pub(crate) struct CsvPrinter {
    columns: HashMap<String, usize>,
    cells: Vec<Vec<u8>>,
    path: String,
    started: Vec<bool>,
    /// The first line, until it is printed.
    header: Option<Vec<u8>>,
}

impl CsvPrinter {
    /// A printer with the columns for the events of `recording` that `selection` wants by name, and for this
    /// context of threads.
    pub(crate) fn new(recording: &Recording, selection: &Selection, context: &[&str]) -> Self {
        let mut names: Vec<String> = FIXED.map(str::to_owned).to_vec();
        let mut columns = HashMap::new();
        for trace in recording.traces() {
            for stream in &trace.class().data_stream_classes {
                let is_selected = |name: Option<&str>| selection.names(name);
                for event in
                    stream.event_record_classes.iter().filter(|class| is_selected(class.name.as_deref()))
                {
                    let classes = [
                        &stream.packet_context,
                        &stream.common_context,
                        &event.specific_context,
                        &event.payload,
                    ];
                    for ((scope, name), class) in SCOPES.iter().zip(classes) {
                        let hidden = if *scope == Scope::PacketContext { PACKET_BOOKKEEPING } else { &[] };
                        let mut add = |name: String| {
                            columns.entry(name).or_insert_with_key(|name| {
                                names.push(name.clone());
                                names.len() - 1
                            });
                        };
                        class.iter().for_each(|class| add_members(name, class, hidden, &mut add));
                    }
                }
            }
        }
        for name in context {
            let name = format!("context.{name}");
            columns.insert(name.clone(), names.len());
            names.push(name);
        }
        let mut header = Vec::new();
        for (index, name) in names.iter().enumerate() {
            separate(&mut header, index);
            cell(&mut header, name.as_bytes());
        }
        header.push(b'\n');
        CsvPrinter {
            columns,
            cells: vec![Vec::new(); names.len()],
            path: String::new(),
            started: Vec::new(),
            header: Some(header),
        }
    }

    /// Appends the first line, once.
    pub(crate) fn header(&mut self, out: &mut Vec<u8>) {
        out.extend(self.header.take().unwrap_or_default());
    }

    /// Appends an event as one line.
    pub(crate) fn event(&mut self, out: &mut Vec<u8>, event: &EventRef<'_>, context: Option<Shown<'_>>) {
        self.cells.iter_mut().for_each(Vec::clear);
        if let Some(stamp) = event.stamp() {
            number::signed(&mut self.cells[0], stamp.time.as_ns());
            number::unsigned(&mut self.cells[1], stamp.cycles.0);
        }
        let decoded = event.decoded();
        self.cells[2].extend_from_slice(event.trace().name().as_bytes());
        number::unsigned(&mut self.cells[3], event.stream().class_id());
        number::unsigned(&mut self.cells[4], event.stream().id());
        self.cells[5].extend_from_slice(decoded.class().name.as_deref().unwrap_or_default().as_bytes());
        for (scope, name) in SCOPES {
            self.path.clear();
            self.path.push_str(name);
            let mut filler = Filler { printer: self, lengths: Vec::new(), json: None };
            match scope {
                Scope::PacketContext => event.visit_packet_context(&mut filler),
                scope => decoded.visit(scope, &mut filler),
            }
        }
        context.iter().for_each(|context| {
            context.cells(|name, value| {
                let column = self.columns.get(&format!("context.{name}"));
                column.into_iter().for_each(|column| self.cells[*column].extend_from_slice(value));
            });
        });
        for (index, value) in self.cells.iter().enumerate() {
            separate(out, index);
            cell(out, value);
        }
        out.push(b'\n');
    }
}

/// Names the columns of a structure's members.
fn add_members(path: &str, class: &StructureClass, hidden: &[&str], add: &mut impl FnMut(String)) {
    for member in &class.members {
        if roles(&member.class).is_empty() && !hidden.contains(&member.name.as_str()) {
            add_field(format!("{path}.{}", member.name), &member.class, add);
        }
    }
}

fn add_field(path: String, class: &FieldClass, add: &mut impl FnMut(String)) {
    match class {
        FieldClass::Structure(class) => add_members(&path, class, &[], add),
        FieldClass::Optional(class) => add_field(path, &class.class, add),
        _ => add(path),
    }
}

fn roles(class: &FieldClass) -> Roles {
    match class {
        FieldClass::Integer(class) | FieldClass::VariableInteger(class) => class.roles,
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => class.integer.roles,
        _ => Roles::NONE,
    }
}

/// Puts what it is shown into cells.
struct Filler<'p> {
    printer: &'p mut CsvPrinter,
    /// Lengths of the path around the structures and optionals that are open.
    lengths: Vec<usize>,
    /// The cell that a compound is printed into as JSON.
    json: Option<usize>,
}

impl Filler<'_> {
    fn enter(&mut self, name: Option<&str>) -> usize {
        let length = self.printer.path.len();
        if let Some(name) = name {
            self.printer.path.push('.');
            self.printer.path.push_str(name);
        }
        length
    }

    fn json(&mut self, column: usize, print: impl FnOnce(&mut ValuePrinter<'_>)) {
        let CsvPrinter { cells, started, .. } = &mut *self.printer;
        print(&mut ValuePrinter { out: &mut cells[column], started, hidden: &[] });
    }
}

impl Visitor for Filler<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        if let Some(column) = self.json {
            return self.json(column, |printer| printer.value(name, value));
        }
        if integer_class(&value).is_some_and(|class| !class.roles.is_empty()) {
            return;
        }
        let length = self.enter(name);
        if let Some(&column) = self.printer.columns.get(&self.printer.path) {
            print(&mut self.printer.cells[column], value);
        }
        self.printer.path.truncate(length);
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        if let Some(column) = self.json {
            return self.json(column, |printer| printer.begin(name, compound));
        }
        match compound {
            Compound::Structure(_) => {
                let length = self.enter(name);
                self.lengths.push(length);
            }
            // Its content prints the name itself.
            Compound::Optional { .. } => self.lengths.push(self.printer.path.len()),
            Compound::Array { .. } | Compound::Variant { .. } => {
                let length = self.enter(name);
                let column = self.printer.columns.get(&self.printer.path).copied();
                self.printer.path.truncate(length);
                if let Some(column) = column {
                    self.json = Some(column);
                    self.printer.started.clear();
                    self.json(column, |printer| printer.begin(None, compound));
                }
            }
        }
    }

    fn end(&mut self, compound: Compound<'_>) {
        if let Some(column) = self.json {
            self.json(column, |printer| printer.end(compound));
            if self.printer.started.is_empty() {
                self.json = None;
            }
            return;
        }
        if let Some(length) = self.lengths.pop() {
            self.printer.path.truncate(length);
        }
    }
}

fn print(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Text(text) => out.extend_from_slice(String::from_utf8_lossy(text).as_bytes()),
        Value::WideText(text) => {
            // Writing to memory cannot fail.
            let _ = write!(out, "{text}");
        }
        Value::UnsignedEnumeration(value, class) => label(out, value.into(), class),
        Value::SignedEnumeration(value, class) => label(out, value.into(), class),
        Value::Blob(bytes) => bytes.iter().for_each(|byte| {
            let _ = write!(out, "{byte:02x}");
        }),
        value => {
            let start = out.len();
            print_value(out, value);
            // Infinities and NaN are strings in JSON.
            if out[start..].starts_with(b"\"") {
                out.pop();
                out.remove(start);
            }
        }
    }
}

fn label(out: &mut Vec<u8>, value: i128, class: &EnumerationClass) {
    let mut labels = class.labels(value);
    match (labels.next(), labels.next()) {
        (Some(label), None) => out.extend_from_slice(label.as_bytes()),
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

fn separate(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

/// A value, in quotes where it needs them.
pub(crate) fn cell(out: &mut Vec<u8>, value: &[u8]) {
    if !value.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(value);
    }
    out.push(b'"');
    for &byte in value {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
