//! Turns an event's `format` into a CTF event record class and a program that copies its records into that shape.
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
//! The arguments of system calls are machine words in the record; they become what the C type says, as an `int`
//! argument has only 32 bits that mean something. `__syscall_nr` is left out, it is in the name. Of the common fields
//! only `common_pid` is kept, as the event context `tid`.

use crate::error::FormatError;
use crate::format::{self, Element, Field, Format, Origin, Shape};
use crate::lttng;
use crate::print::Hints;
use tracewing_ctf::model::{
    DisplayBase, Encoding, EnumerationClass, EventRecordClass, FieldClass, IntegerClass, StructureClass,
};

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
    /// Appends context and payload of `record` to `out`. `false`, and nothing appended, if the record is too short.
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
    let mut compiler = Compiler {
        system,
        word,
        hints: Hints::parse(&format.print),
        least: 0,
        steps: Vec::new(),
        payload: StructureClass::new(),
        booleans: Vec::new(),
    };
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

    /// `name`, or with underscores behind it where the event has that name already.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMMON: &str = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

    fn class(system: &str, name: &str, fields: &[(&str, usize, usize, u8)], print: &str) -> Class {
        let mut text = format!("name: {name}\nID: 9\n{COMMON}");
        for (declaration, offset, size, signed) in fields {
            text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        text += &format!("\nprint fmt: {print}\n");
        compile(3, system, &Format::parse(&text, 8).unwrap(), 8).unwrap()
    }

    fn run(class: &Class, record: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        let done = class.program.run(record, &mut out);
        assert!(out.starts_with(b"before"));
        assert!(done || out == b"before");
        done.then(|| out.split_off(6))
    }

    fn record(parts: &[&[u8]]) -> Vec<u8> {
        [&[9, 0, 1, 2][..], &77i32.to_ne_bytes()]
            .iter()
            .chain(parts)
            .flat_map(|p| p.iter().copied())
            .collect()
    }

    fn metadata(class: &Class) -> String {
        let mut stream = tracewing_ctf::model::DataStreamClass::new(0);
        stream.event_record_classes.push(class.record.clone());
        let mut trace = tracewing_ctf::model::TraceClass::new();
        trace.data_stream_classes.push(stream);
        tracewing_ctf::tsdl::print(&trace)
    }

    #[test]
    fn a_switch_has_lttngs_names_and_priorities() {
        let class = class(
            "sched",
            "sched_switch",
            &[
                ("char prev_comm[16]", 8, 16, 0),
                ("pid_t prev_pid", 24, 4, 1),
                ("int prev_prio", 28, 4, 1),
                ("long prev_state", 32, 8, 1),
            ],
            "\"\"",
        );
        // The task's number, its name and the previous task's number lie side by side.
        assert_eq!(class.program.steps.len(), 3);
        let comm = *b"worker\0\0\0\0\0\0\0\0\0\0";
        let parts: [&[u8]; 4] = [&comm, &5i32.to_ne_bytes(), &120i32.to_ne_bytes(), &2i64.to_ne_bytes()];
        let expected =
            [&77i32.to_le_bytes()[..], &comm, &5i32.to_le_bytes(), &20i32.to_le_bytes(), &2i64.to_le_bytes()]
                .concat();
        assert_eq!(run(&class, &record(&parts)), Some(expected));
        assert_eq!(run(&class, &record(&parts)[..39]), None);
        let text = metadata(&class);
        assert!(text.contains("prev_tid;") && text.contains("encoding = UTF8; } prev_comm[16];"), "{text}");
    }

    #[test]
    fn system_call_arguments_have_the_width_of_their_type() {
        let class = class(
            "syscalls",
            "sys_enter_openat",
            &[
                ("int __syscall_nr", 8, 4, 1),
                ("int dfd", 16, 8, 0),
                ("const char * filename", 24, 8, 0),
                ("umode_t mode", 32, 8, 0),
            ],
            "\"dfd: 0x%08lx\", ((unsigned long)(REC->dfd))",
        );
        let words = [257u64, 0xffff_ff9c, 0x7fff_1234, 0o644].map(u64::to_ne_bytes).concat();
        let expected = [
            &77i32.to_le_bytes()[..],
            &(-100i32).to_le_bytes(),
            &0x7fff_1234u64.to_le_bytes(),
            &0o644u16.to_le_bytes(),
        ]
        .concat();
        assert_eq!(run(&class, &record(&[&words])), Some(expected));
        let text = metadata(&class);
        assert!(text.contains("name = \"syscall_entry_openat\""), "{text}");
        assert!(text.contains("signed = true; } dfd;") && text.contains("base = 16; } filename;"), "{text}");
        assert!(!text.contains("syscall_nr"), "{text}");
    }

    #[test]
    fn fields_of_variable_length_are_found_wherever_they_are() {
        let class = class(
            "demo",
            "demo",
            &[
                ("__data_loc char[] name", 8, 4, 0),
                ("__rel_loc u16[] numbers", 12, 4, 0),
                ("__data_loc cpumask_t cpus", 16, 4, 0),
                ("int after", 20, 4, 1),
                ("char rest[]", 24, 0, 0),
            ],
            "\"%s\", __get_str(name)",
        );
        let word = |offset: u32, len: u32| (len << 16 | offset).to_ne_bytes();
        let head = [word(28, 4), word(32 - 16, 4), word(36, 8), 5i32.to_ne_bytes()].concat();
        let record = record(&[&head, b"x\0\0\0", b"abc\0", &[1, 0, 2, 0], &[3, 0, 0, 0, 0, 0, 0, 0]]);
        let expected = [
            &77i32.to_le_bytes()[..],
            b"abc\0",
            &[2, 0, 1, 0, 2, 0],
            &[1, 0, 3, 0, 0, 0, 0, 0, 0, 0],
            &5i32.to_le_bytes(),
            b"x\0",
        ]
        .concat();
        assert_eq!(run(&class, &record), Some(expected));
        let text = metadata(&class);
        assert!(text.contains("numbers[__numbers_length];") && text.contains("base = 16; } cpus["), "{text}");
    }

    #[test]
    fn a_place_outside_of_the_record_gives_an_empty_field() {
        let class = class("demo", "demo", &[("__data_loc char[] name", 8, 4, 0)], "\"\"");
        let record = record(&[&(9u32 << 16 | 4000).to_ne_bytes()]);
        assert_eq!(run(&class, &record), Some([&77i32.to_le_bytes()[..], &[0]].concat()));
    }

    #[test]
    fn labels_hexadecimal_and_booleans_reach_the_metadata() {
        let print = r#""%s %x", __print_symbolic(REC->mode, { 0, "off" }, { 300, "never" }, { 1, "on" }), REC->flags"#;
        let fields = [("u8 mode", 8, 1, 0), ("bool ok", 9, 1, 0), ("u16 flags", 10, 2, 0)];
        let labelled = class("demo", "demo", &fields, print);
        let text = metadata(&labelled);
        assert!(text.contains("{ \"off\" = 0, \"on\" = 1 } mode;"), "{text}");
        assert!(text.contains("base = 16; } flags;"), "{text}");
        assert_eq!(labelled.booleans, ["ok"]);
        // LTTng has plain numbers there, and its readers expect them.
        assert!(!metadata(&class("irq", "demo", &fields, print)).contains("enum"));
    }

    proptest! {
        #[test]
        fn any_record_is_copied_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..100),
            word in any::<u32>(),
        ) {
            let class = class(
                "demo",
                "demo",
                &[
                    ("__data_loc u64[] a", 8, 4, 0),
                    ("__rel_loc char[] b", 12, 4, 0),
                    ("int prio", 16, 4, 1),
                    ("u32 rest[]", 20, 0, 0),
                ],
                "\"\"",
            );
            let mut bytes = bytes;
            if bytes.len() > 12 {
                bytes[8..12].copy_from_slice(&word.to_ne_bytes());
            }
            prop_assert_eq!(run(&class, &bytes).is_some(), bytes.len() >= 20);
        }
    }
}
