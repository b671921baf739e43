//! Prints a field like the `expect` files of the field cases: members by name, elements after dashes, two
//! spaces per level.

use std::fmt::Write;
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::{DisplayBase, IntegerClass};

/// Is shown the one member of a payload and prints it.
#[derive(Default)]
pub struct FieldText {
    out: String,
    frames: Vec<Frame>,
    /// Whether the next member follows on the line of its structure's dash.
    inline: bool,
}

/// A compound around the next field.
enum Frame {
    Members {
        indent: usize,
    },
    Elements {
        indent: usize,
    },
    /// An optional or a variant: its content is printed in its place.
    Through {
        name: Option<String>,
    },
}

impl FieldText {
    /// The text, with a newline at its end.
    pub fn finish(self) -> String {
        self.out + "\n"
    }

    /// Prints the text before a field; returns the indentation of its content, and whether a dash precedes
    /// it.
    fn lead(&mut self, name: Option<&str>) -> (usize, bool) {
        let mut name = name;
        for frame in self.frames.iter().rev() {
            let (indent, dash) = match frame {
                Frame::Through { name: outer } => {
                    name = outer.as_deref();
                    continue;
                }
                Frame::Members { indent } => (*indent, false),
                Frame::Elements { indent } => (*indent, true),
            };
            let inline = std::mem::take(&mut self.inline);
            if inline {
                self.out.push(' ');
            } else {
                if !self.out.is_empty() {
                    self.out.push('\n');
                }
                self.out.extend(std::iter::repeat_n(' ', indent));
            }
            match name {
                Some(name) if !dash => self.out.extend([name, ":"]),
                _ => self.out.push('-'),
            }
            // What is in a member on its dash's line is indented as that line is.
            return (if inline { indent } else { indent + 2 }, dash);
        }
        (0, false)
    }

    /// Prints a field of one line.
    fn line(&mut self, name: Option<&str>, text: &str) {
        self.lead(name);
        if !self.out.is_empty() {
            self.out.push(' ');
        }
        self.out.push_str(text);
    }
}

impl Visitor for FieldText {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        let text = match value {
            Value::Unsigned(value, class) => integer(value.into(), class),
            Value::Signed(value, class) => integer(value.into(), class),
            Value::UnsignedEnumeration(value, class) => integer(value.into(), &class.integer),
            Value::SignedEnumeration(value, class) => integer(value.into(), &class.integer),
            Value::Float32(_) | Value::Float64(_) | Value::Float128(_) => {
                format!("{:.6}", value.real().unwrap_or(f64::NAN)).to_lowercase()
            }
            Value::Boolean(truth) => if truth { "yes" } else { "no" }.to_owned(),
            Value::BitArray(bits, class) => bit_list(bits, class.size),
            Value::BitMap(bits, class) => bit_list(bits, class.bits.size),
            Value::Text(bytes) => format!("\"{}\"", String::from_utf8_lossy(bytes)),
            Value::WideText(text) => format!("\"{text}\""),
            Value::Blob([]) => "∅".to_owned(),
            Value::Blob(bytes) => {
                let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                digits.join(" ")
            }
        };
        self.line(name, &text);
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        let frame = match compound {
            Compound::Structure(class) if class.members.is_empty() => {
                self.line(name, "∅");
                Frame::Members { indent: 0 }
            }
            Compound::Array { length: 0 } => {
                self.line(name, "∅");
                Frame::Elements { indent: 0 }
            }
            Compound::Structure(_) => {
                let (indent, dash) = self.lead(name);
                self.inline = dash;
                Frame::Members { indent }
            }
            Compound::Array { .. } => Frame::Elements { indent: self.lead(name).0 },
            Compound::Optional { present } => {
                if !present {
                    self.line(name, "~");
                }
                Frame::Through { name: name.map(str::to_owned) }
            }
            Compound::Variant { .. } => Frame::Through { name: name.map(str::to_owned) },
        };
        self.frames.push(frame);
    }

    fn end(&mut self, _: Compound<'_>) {
        self.frames.pop();
    }
}

fn integer(value: i128, class: &IntegerClass) -> String {
    let (sign, size) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
    match class.base {
        DisplayBase::Binary => format!("{sign}0b{size:b}"),
        DisplayBase::Octal => format!("{sign}0o{size:o}"),
        DisplayBase::Decimal => format!("{value}"),
        DisplayBase::Hexadecimal => format!("{sign}0x{size:x}"),
    }
}

/// The most significant bit first.
fn bit_list(bits: u64, size: u32) -> String {
    let mut text = String::from("[");
    for bit in (0..size).rev() {
        // Writing to memory cannot fail.
        let _ = write!(text, "{}{}", bits >> bit & 1, if bit > 0 { ", " } else { "" });
    }
    text + "]"
}
