//! Turns an event's `format` into a CTF event record class and a program that copies its records into that
//! shape.
//!
//! | kernel field | in the trace |
//! |---|---|
//! | number of 1, 2, 4 or 8 bytes | integer; hexadecimal for pointers and where the kernel prints it so |
//! | number with `__print_symbolic` labels | enumeration over it |
//! | `char x[N]` | array of UTF-8 characters, shown up to the first NUL |
//! | `T x[N]` | array |
//! | `__data_loc char[] x`, `__rel_loc`, `char x[]` | string |
//! | `__data_loc T[] x`, `__rel_loc`, `T x[]` | `_x_length` (16 bits, elements) and a sequence |
//! | `__data_loc cpumask_t x` and other bit masks | the same, of machine words in hexadecimal |
//! | anything else | array of bytes |
//!
//! The arguments of system calls are machine words in the record; they become what the C type says, as an
//! `int` argument has only 32 bits that mean something. `__syscall_nr` is left out, it is in the name. Of the
//! common fields `common_flags` and `common_pid` are kept, as the event context `flags` and `tid`: whether an
//! interrupt had the CPU, and which thread it had or interrupted.

use crate::error::FormatError;
use crate::format::{self, Element, Field, Format, Origin, Shape};
use crate::lttng;
use crate::print::Hints;
use tracewing_ctf::model::{
    DisplayBase, Encoding, EnumerationClass, EventRecordClass, FieldClass, IntegerClass, StructureClass,
};
use tracewing_units::Tid;

/// An event as it stands in the metadata, and how to get it there.
#[derive(Debug, Clone)]
pub struct Class {
    /// The number in `common_type` of its records.
    pub kernel_id: u16,
    /// Its class in the trace; the class's id is the caller's.
    pub record: EventRecordClass,
    /// Fields that are `bool`.
    pub booleans: Vec<String>,
    pub(crate) program: Program,
}

/// How to copy one kind of record: event context and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// Bytes that a record has at least.
    least: usize,
    steps: Box<[Step]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Copy {
        from: usize,
        len: usize,
    },
    /// A number of 4 bytes, [`lttng::MAX_RT_PRIO`] less.
    Priority(usize),
    Text(Place),
    Elements(Place, usize),
}

/// Where the bytes of a field of variable length are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Rest(usize),
    Elsewhere(usize, Origin),
}

impl Place {
    /// The field's bytes; none where the record contradicts itself.
    fn bytes(self, record: &[u8]) -> &[u8] {
        let found = match self {
            Place::Rest(from) => record.get(from..),
            Place::Elsewhere(at, origin) => record.get(at..).and_then(|r| r.first_chunk()).and_then(|word| {
                let word = u32::from_ne_bytes(*word);
                let (offset, len) = ((word & 0xffff) as usize, (word >> 16) as usize);
                let from = match origin {
                    Origin::Record => offset,
                    Origin::Field => at + 4 + offset,
                };
                record.get(from..from + len)
            }),
        };
        found.unwrap_or_default()
    }
}

impl Program {
    /// The context's `tid`, which is the second step: after the flags.
    pub(crate) fn tid(&self, record: &[u8]) -> Option<Tid> {
        let Some(Step::Copy { from, .. }) = self.steps.get(1) else { return None };
        record.get(*from..)?.first_chunk().copied().map(|bytes| Tid(i32::from_ne_bytes(bytes)))
    }

    /// The first text of the payload.
    pub(crate) fn text<'r>(&self, record: &'r [u8]) -> Option<&'r [u8]> {
        let place = self
            .steps
            .iter()
            .find_map(|step| if let Step::Text(place) = step { Some(*place) } else { None })?;
        place.bytes(record).split(|&byte| byte == 0).next()
    }

    /// Appends context and payload of `record` to `out`. `false`, and nothing appended, if the record is too
    /// short.
    #[inline]
    pub(crate) fn run(&self, record: &[u8], out: &mut Vec<u8>) -> bool {
        if record.len() < self.least {
            return false;
        }
        for step in &self.steps {
            match *step {
                Step::Copy { from, len } => out.extend_from_slice(&record[from..from + len]),
                Step::Priority(from) => {
                    let priority = record[from..].first_chunk().copied().map_or(0, i32::from_ne_bytes);
                    out.extend_from_slice(&priority.wrapping_sub(lttng::MAX_RT_PRIO).to_le_bytes());
                }
                Step::Text(place) => {
                    let text = place.bytes(record);
                    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
                    out.extend_from_slice(&text[..end]);
                    out.push(0);
                }
                Step::Elements(place, size) => {
                    let bytes = place.bytes(record);
                    let count = (bytes.len() / size).min(usize::from(u16::MAX));
                    out.extend_from_slice(&(count as u16).to_le_bytes());
                    out.extend_from_slice(&bytes[..count * size]);
                }
            }
        }
        true
    }
}

/// Compiles the event `system:format.name` as class `id`. `word`: bytes of the kernel's `long`.
pub fn compile(id: u16, system: &str, format: &Format, word: usize) -> Result<Class, FormatError> {
    let outside = |name: &str| FormatError::Outside(name.to_owned());
    match format.common("common_type") {
        Some(Field { offset: 0, size: 2, .. }) => {}
        _ => return Err(outside("common_type")),
    }
    let tid = format.common("common_pid").filter(|f| f.size == 4).ok_or_else(|| outside("common_pid"))?;
    let flags =
        format.common("common_flags").filter(|f| f.size == 1).ok_or_else(|| outside("common_flags"))?;
    let mut compiler = Compiler {
        system,
        word,
        hints: Hints::parse(&format.print),
        least: 0,
        steps: Vec::new(),
        payload: StructureClass::new(),
        booleans: Vec::new(),
    };
    compiler.copy(flags.offset, 1);
    compiler.copy(tid.offset, 4);
    for field in &format.fields {
        if system != "syscalls" || field.name != "__syscall_nr" {
            compiler.field(field)?;
        }
    }
    let record = EventRecordClass::new(u64::from(id), lttng::event_name(system, &format.name));
    Ok(Class {
        kernel_id: format.id,
        record: record.with_payload(compiler.payload),
        booleans: compiler.booleans,
        program: Program { least: compiler.least, steps: compiler.steps.into() },
    })
}

struct Compiler<'a> {
    system: &'a str,
    word: usize,
    hints: Hints,
    least: usize,
    steps: Vec<Step>,
    payload: StructureClass,
    booleans: Vec<String>,
}

impl Compiler<'_> {
    fn field(&mut self, field: &Field) -> Result<(), FormatError> {
        // `__data_loc` words point with 16 bits; nothing of a record lies further.
        if field.offset + field.size > 1 << 16 {
            return Err(FormatError::Outside(field.name.clone()));
        }
        let name = self.unused(lttng::field_name(self.system, &field.name));
        match field.shape {
            Shape::One(element) => {
                let (element, hex) = self.scalar(field, element);
                let mut class = integer(element, hex);
                if lttng::is_priority(self.system, &field.name) && element.size == 4 {
                    self.steps.push(Step::Priority(field.offset));
                } else {
                    self.copy(field.offset, element.size);
                }
                if !lttng::keeps_plain_numbers(self.system)
                    && let Some(labels) = self.hints.labels(&field.name)
                {
                    class.base = DisplayBase::Decimal;
                    let mut enumeration = EnumerationClass::new(class);
                    for (value, label) in labels {
                        if fits(*value, element) {
                            enumeration.add(label.clone(), i128::from(*value), i128::from(*value));
                        }
                    }
                    self.add(name, enumeration);
                } else {
                    if matches!(field.c_type.as_str(), "bool" | "_Bool") {
                        self.booleans.push(name.clone());
                    }
                    self.add(name, class);
                }
            }
            Shape::Array(element, count) => {
                self.copy(field.offset, field.size);
                let class = integer(element, self.hints.is_hex(&field.name));
                self.add(name, FieldClass::array(class, count as u64));
            }
            Shape::Rest(element) => self.variable(name, field, element, Place::Rest(field.offset)),
            Shape::Elsewhere(element, origin) => {
                self.variable(name, field, element, Place::Elsewhere(field.offset, origin));
            }
        }
        self.least = self.least.max(field.offset + field.size);
        Ok(())
    }

    fn variable(&mut self, name: String, field: &Field, element: Element, place: Place) {
        if element.text {
            self.steps.push(Step::Text(place));
            self.add(name, FieldClass::string());
            return;
        }
        self.steps.push(Step::Elements(place, element.size));
        // A mask of machine words is no list of numbers.
        let mask = format::element(&field.c_type, self.word).is_none() && element.size == self.word;
        let length = self.unused(format!("_{name}_length"));
        self.add(length.clone(), FieldClass::unsigned(16));
        let class = integer(element, mask || self.hints.is_hex(&field.name));
        self.add(name, FieldClass::sequence(class, length.as_str()));
    }

    /// What a number in place is in the trace, and whether it is shown in hexadecimal.
    fn scalar(&self, field: &Field, stored: Element) -> (Element, bool) {
        let pointer = field.c_type.ends_with('*');
        if self.system != "syscalls" {
            return (stored, pointer || self.hints.is_hex(&field.name));
        }
        match format::element(&field.c_type, self.word) {
            Some(argument) if argument.size <= stored.size => (Element { text: false, ..argument }, pointer),
            _ if field.c_type.starts_with("enum ") && stored.size >= 4 => {
                (Element { size: 4, signed: false, text: false }, false)
            }
            // A `typedef`: most of these are pointers.
            _ => (stored, true),
        }
    }

    fn copy(&mut self, offset: usize, size: usize) {
        self.least = self.least.max(offset + size);
        match self.steps.last_mut() {
            Some(Step::Copy { from, len }) if *from + *len == offset => *len += size,
            _ => self.steps.push(Step::Copy { from: offset, len: size }),
        }
    }

    fn add(&mut self, name: String, class: impl Into<FieldClass>) {
        let payload = std::mem::take(&mut self.payload);
        self.payload = payload.with(name, class);
    }

    /// `name`, with underscores appended where the event has that name already.
    fn unused(&self, mut name: String) -> String {
        while self.payload.member(&name).is_some() {
            name.push('_');
        }
        name
    }
}

fn integer(element: Element, hex: bool) -> IntegerClass {
    let bits = element.size as u32 * 8;
    let class = if element.signed { IntegerClass::signed(bits) } else { IntegerClass::unsigned(bits) };
    match (element.text, hex) {
        (true, _) => class.with_encoding(Encoding::Utf8),
        (false, true) => class.with_base(DisplayBase::Hexadecimal),
        (false, false) => class,
    }
}

/// Whether an integer class can hold a label's value.
fn fits(value: i64, element: Element) -> bool {
    let bits = element.size as u32 * 8;
    let value = i128::from(value);
    if element.signed {
        (-(1i128 << (bits - 1))..1 << (bits - 1)).contains(&value)
    } else {
        (0..1i128 << bits).contains(&value)
    }
}

#[cfg(test)]
mod tests;
