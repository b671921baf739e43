//! Parses the `format` files of tracefs: where each field of an event lies in its record, and of what type.
//!
//! ```text
//! name: sched_wakeup
//! ID: 370
//! format:
//!         field:unsigned short common_type;       offset:0;       size:2; signed:0;
//!         ...
//!                                                             (an empty line ends the common fields)
//!         field:char comm[16];    offset:8;       size:16;        signed:0;
//!         field:__data_loc char[] name;   offset:24;      size:4; signed:0;
//!
//! print fmt: "comm=%s name=%s", REC->comm, __get_str(name)
//! ```
//!
//! The lines are written by `kernel/trace/trace_events.c` (`f_show`), the types are the C types of the
//! tracepoint's `TP_STRUCT__entry` as text. What the print format adds (labels, hexadecimal) is read by
//! [`crate::print`]; what becomes of a field in the trace is decided by [`crate::compile`].

use crate::error::FormatError;

/// What one `format` file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// The event's name, without its system.
    pub name: String,
    /// The number that stands in `common_type` of its records.
    pub id: u16,
    /// The fields every event begins with (`common_type`, `common_pid`, …).
    pub common: Vec<Field>,
    /// The event's own fields, in the kernel's order.
    pub fields: Vec<Field>,
    /// The print format, without the words `print fmt: `.
    pub print: String,
}

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name, as in the kernel's `format` file.
    pub name: String,
    /// Its C type (of one element, where there are several), without the words `__data_loc` and `__rel_loc`.
    pub c_type: String,
    /// Bytes from the record's begin.
    pub offset: usize,
    /// Bytes in the fixed part of the record.
    pub size: usize,
    /// What these bytes are.
    pub shape: Shape,
}

/// One element of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Element {
    /// Bytes: 1, 2, 4 or 8.
    pub size: usize,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Whether it is a character of a text.
    pub text: bool,
}

/// How a field's elements are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One, in place.
    One(Element),
    /// This many, in place.
    Array(Element, usize),
    /// From the field's offset to the end of the record (a flexible array, size 0).
    Rest(Element),
    /// Elsewhere in the record; a 4-byte word in place says where: bits 0..16 offset, 16..32 bytes.
    Elsewhere(Element, Origin),
}

/// From where the offset in a `__data_loc` or `__rel_loc` word counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The record's begin (`__data_loc`).
    Record,
    /// The end of the word itself (`__rel_loc`).
    Field,
}

impl Format {
    /// Parses the text of one `format` file. `word`: bytes of the kernel's `long` (4 or 8).
    pub fn parse(text: &str, word: usize) -> Result<Self, FormatError> {
        let (mut name, mut id, mut print) = (None, None, String::new());
        let mut groups = [Vec::new(), Vec::new()];
        let mut own = false;
        for (number, line) in text.lines().enumerate() {
            let number = number + 1;
            let at = |e: FormatError| e.at_line(number);
            if let Some(rest) = line.strip_prefix("name: ") {
                name = Some(rest.to_owned());
            } else if let Some(rest) = line.strip_prefix("ID: ") {
                let parsed = rest.trim().parse().map_err(|_| FormatError::Id(rest.to_owned()));
                id = Some(parsed.map_err(at)?);
            } else if let Some(rest) = line.strip_prefix("print fmt: ") {
                // Some print formats hold line ends.
                let begin = rest.as_ptr() as usize - text.as_ptr() as usize;
                text[begin..].clone_into(&mut print);
                break;
            } else if let Some(line) = FieldLine::parse(line).map_err(at)? {
                groups[usize::from(own)].push(line.field(word).map_err(at)?);
            } else if line.is_empty() && !groups[0].is_empty() {
                own = true;
            }
        }
        let [common, fields] = groups;
        match (name, id) {
            (Some(name), Some(id)) => Ok(Self { name, id, common, fields, print }),
            (None, _) => Err(FormatError::Without("name")),
            (_, None) => Err(FormatError::Without("ID")),
        }
    }

    /// A common field by its name.
    pub fn common(&self, name: &str) -> Option<&Field> {
        self.common.iter().find(|field| field.name == name)
    }
}

/// The parts of a `field:…; offset:…; size:…; signed:…;` line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldLine<'a> {
    pub(crate) declaration: &'a str,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    signed: bool,
}

impl<'a> FieldLine<'a> {
    /// `None` for a line of another kind.
    pub(crate) fn parse(line: &'a str) -> Result<Option<Self>, FormatError> {
        let Some(rest) = line.trim().strip_prefix("field:") else { return Ok(None) };
        let wrong = || FormatError::Field(line.trim().to_owned());
        let mut parts = rest.split(';').map(str::trim);
        let declaration = parts.next().filter(|d| !d.is_empty()).ok_or_else(wrong)?;
        let mut number = |key: &str| {
            let text = parts.next()?.strip_prefix(key)?.strip_prefix(':')?;
            text.parse::<usize>().ok()
        };
        let (offset, size) = number("offset").zip(number("size")).ok_or_else(wrong)?;
        // Kernels before 2.6.32 leave `signed` out.
        let signed = number("signed") == Some(1);
        // An event is smaller than a page, and no page is larger than this.
        if offset.max(size) > 1 << 20 {
            return Err(wrong());
        }
        Ok(Some(Self { declaration, offset, size, signed }))
    }

    fn field(&self, word: usize) -> Result<Field, FormatError> {
        let wrong = || FormatError::Declaration(self.declaration.to_owned());
        let (origin, rest) = match self.declaration.split_once(' ') {
            Some(("__data_loc", rest)) => (Some(Origin::Record), rest),
            Some(("__rel_loc", rest)) => (Some(Origin::Field), rest),
            _ => (None, self.declaration),
        };
        let (rest, count) = match rest.strip_suffix(']').and_then(|r| r.rsplit_once('[')) {
            Some((rest, count)) => (rest.trim_end(), Some(count)),
            None => (rest, None),
        };
        let split = rest.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').ok_or_else(wrong)? + 1;
        let (c_type, name) = (rest[..split].trim(), &rest[split..]);
        if name.is_empty() || c_type.is_empty() {
            return Err(wrong());
        }
        let many = c_type.ends_with("[]");
        let c_type = c_type.trim_end_matches("[]").trim_end().to_owned();
        let known = element(&c_type, word);
        let or_bytes = known.unwrap_or(Element { size: 1, signed: false, text: false });
        let signed = |e: Element| Element { signed: self.signed, ..e };
        let shape = match (origin, count) {
            (Some(_), None) if self.size != 4 => return Err(wrong()),
            // `cpumask_t` and the other bit masks are whole words.
            (Some(origin), None) if many => Shape::Elsewhere(or_bytes, origin),
            (Some(origin), None) => {
                Shape::Elsewhere(Element { size: word, signed: false, text: false }, origin)
            }
            (Some(_), Some(_)) => return Err(wrong()),
            (None, None) if matches!(self.size, 1 | 2 | 4 | 8) => {
                Shape::One(Element { size: self.size, signed: self.signed, text: false })
            }
            (None, _) if self.size == 0 => Shape::Rest(or_bytes),
            (None, _) => {
                let stated = count.and_then(|c| c.parse().ok()).filter(|&n: &usize| n > 0);
                let size = match stated {
                    Some(n) if self.size.is_multiple_of(n) => Some(self.size / n),
                    _ => known.map(|e| e.size).filter(|&size| self.size.is_multiple_of(size)),
                };
                match size {
                    Some(size @ (1 | 2 | 4 | 8)) => {
                        let text = or_bytes.text && size == 1;
                        Shape::Array(signed(Element { size, signed: false, text }), self.size / size)
                    }
                    _ => Shape::Array(Element { size: 1, signed: false, text: false }, self.size),
                }
            }
        };
        Ok(Field { name: name.to_owned(), c_type, offset: self.offset, size: self.size, shape })
    }
}

/// The C types whose size is known from their name alone. `None` for structures and for `typedef`s of a
/// subsystem.
pub(crate) fn element(c_type: &str, word: usize) -> Option<Element> {
    if c_type.ends_with('*') {
        return Some(Element { size: word, signed: false, text: false });
    }
    let plain = c_type.strip_prefix("const ").unwrap_or(c_type).trim();
    let (size, signed) = match plain {
        "char" => return Some(Element { size: 1, signed: false, text: true }),
        "signed char" | "s8" | "__s8" | "int8_t" => (1, true),
        "unsigned char" | "u8" | "__u8" | "uint8_t" | "bool" | "_Bool" => (1, false),
        "short" | "s16" | "__s16" | "int16_t" => (2, true),
        "unsigned short" | "u16" | "__u16" | "uint16_t" | "__be16" | "__le16" | "umode_t" => (2, false),
        "int" | "s32" | "__s32" | "int32_t" | "pid_t" | "clockid_t" | "key_t" | "key_serial_t"
        | "timer_t" | "mqd_t" | "rwf_t" => (4, true),
        "unsigned" | "unsigned int" | "uint" | "u32" | "__u32" | "uint32_t" | "__be32" | "__le32"
        | "uid_t" | "gid_t" | "qid_t" => (4, false),
        "long" | "ssize_t" | "off_t" => (word, true),
        "unsigned long" | "size_t" | "aio_context_t" => (word, false),
        "long long" | "s64" | "__s64" | "int64_t" | "loff_t" => (8, true),
        "unsigned long long" | "u64" | "__u64" | "uint64_t" | "__be64" | "__le64" => (8, false),
        _ => return None,
    };
    Some(Element { size, signed, text: false })
}

#[cfg(test)]
mod tests;
