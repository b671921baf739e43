//! Prints values as babeltrace2's `sink.text.pretty` does: numbers in their base, labels, escaped strings,
//! and `{ structures }`, `[ arrays ]`, `{ variants }`.

use crate::append::quote::{quoted, shown};
use crate::append::{self, number};
use std::ops::Range;
use tracewing_ctf::decode::{Compound, Value, Visitor};
use tracewing_ctf::model::{DisplayBase, IntegerClass};

/// Members of a packet context that serve the decoder and are not shown.
pub(crate) const PACKET_BOOKKEEPING: &[&str] = &[
    "timestamp_begin",
    "timestamp_end",
    "events_discarded",
    "packet_seq_num",
    "packet_size",
    "content_size",
];

/// A compound value that is being printed.
#[derive(Debug, Clone, Copy)]
struct Frame {
    kind: Kind,
    /// Values printed in it so far.
    printed: u64,
    /// Length of the output before it and its name.
    start: usize,
    /// Whether its class has members or elements at all.
    empty: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Structure,
    Array,
    Variant,
}

/// The compound values around the next one; kept from event to event for its memory.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    open: Vec<Frame>,
    /// Positions of the values, if requested.
    pub(crate) places: Option<Vec<Place>>,
}

/// Where a value was printed in the output, if it was.
pub(crate) type Place = Option<Range<usize>>;

/// Prints the members of one scope.
pub(crate) struct ValuePrinter<'p> {
    out: &'p mut Vec<u8>,
    frames: &'p mut Frames,
    names: bool,
    /// Names of top-level integers that serve the decoder and are not printed.
    hidden: &'static [&'static str],
}

impl<'p> ValuePrinter<'p> {
    /// Starts a scope's structure.
    pub(crate) fn new(
        out: &'p mut Vec<u8>,
        frames: &'p mut Frames,
        names: bool,
        hidden: &'static [&'static str],
    ) -> Self {
        frames.open.clear();
        frames.open.push(Frame { kind: Kind::Structure, printed: 0, start: out.len(), empty: true });
        out.push(b'{');
        ValuePrinter { out, frames, names, hidden }
    }

    /// Ends the structure; false where all of its members are hidden, and nothing was printed.
    pub(crate) fn finish(self) -> bool {
        let Some(frame) = self.frames.open.pop() else { return false };
        let visible = frame.printed > 0 || frame.empty;
        if visible {
            self.out.extend_from_slice(b" }");
        } else {
            self.out.truncate(frame.start);
        }
        visible
    }

    /// 1 for the scope's own members, 2 for what is in those, and so on.
    pub(crate) fn depth(&self) -> usize {
        self.frames.open.len()
    }

    /// Where the text goes.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Prints what comes before a value: separator, and name or index.
    #[inline]
    pub(crate) fn lead(&mut self, name: Option<&str>) {
        let Some(frame) = self.frames.open.last_mut() else { return };
        let index = frame.printed;
        frame.printed += 1;
        frame.empty = false;
        if frame.kind == Kind::Variant {
            return;
        }
        // Lengths that are known when this is compiled need no call to copy.
        if index == 0 {
            self.out.push(b' ');
        } else {
            self.out.extend_from_slice(b", ");
        }
        if !self.names {
            return;
        }
        match (frame.kind, name) {
            (Kind::Structure, Some(name)) => {
                append::text(self.out, shown(name).as_bytes());
                self.out.extend_from_slice(b" = ");
            }
            _ if index < 10 => {
                let digit = b'0' + index as u8;
                self.out.extend_from_slice(&[b'[', digit, b']', b' ', b'=', b' ']);
            }
            _ => {
                self.out.push(b'[');
                number::unsigned(self.out, index);
                self.out.extend_from_slice(b"] = ");
            }
        }
    }

    /// An integer that carries a clock's value, or serves the decoder, is no value for people.
    fn is_hidden(&self, name: Option<&str>, value: &Value<'_>) -> bool {
        let Some(class) = integer_class(value) else { return false };
        !class.roles.is_empty() || (self.depth() == 1 && name.is_some_and(|name| self.hidden.contains(&name)))
    }
}

impl Visitor for ValuePrinter<'_> {
    #[inline]
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        if self.is_hidden(name, &value) {
            if let Some(frame) = self.frames.open.last_mut() {
                frame.empty = false;
            }
            if let Some(places) = &mut self.frames.places {
                places.push(None);
            }
            return;
        }
        self.lead(name);
        let start = self.out.len();
        print_value(self.out, value);
        if let Some(places) = &mut self.frames.places {
            places.push(Some(start..self.out.len()));
        }
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        let start = self.out.len();
        if let Compound::Optional { present } = compound {
            // Its content prints the name itself.
            if !present {
                self.lead(name);
                self.out.extend_from_slice(b"<none>");
            }
            return;
        }
        self.lead(name);
        let (kind, empty, open): (_, _, &[u8]) = match compound {
            Compound::Structure(class) => (Kind::Structure, class.members.is_empty(), b"{"),
            Compound::Array { length } => (Kind::Array, length == 0, b"["),
            Compound::Variant { .. } | Compound::Optional { .. } => (Kind::Variant, false, b"{ "),
        };
        self.out.extend_from_slice(open);
        self.frames.open.push(Frame { kind, printed: 0, start, empty });
    }

    fn end(&mut self, compound: Compound<'_>) {
        if matches!(compound, Compound::Optional { .. }) {
            return;
        }
        let Some(frame) = self.frames.open.pop() else { return };
        if frame.printed == 0 && !frame.empty {
            self.out.truncate(frame.start);
            if let Some(parent) = self.frames.open.last_mut() {
                parent.printed -= 1;
            }
            return;
        }
        self.out.extend_from_slice(if frame.kind == Kind::Array { b" ]" } else { b" }" });
    }
}

/// The integer class of an integer or enumeration.
#[inline]
pub(crate) fn integer_class<'a>(value: &Value<'a>) -> Option<&'a IntegerClass> {
    match value {
        Value::Unsigned(_, class) | Value::Signed(_, class) => Some(class),
        Value::UnsignedEnumeration(_, class) | Value::SignedEnumeration(_, class) => Some(&class.integer),
        _ => None,
    }
}

#[inline]
pub(crate) fn print_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Unsigned(value, class) => print_integer(out, value, class),
        Value::Signed(value, class) => print_integer(out, value as u64, class),
        Value::UnsignedEnumeration(value, class) => {
            print_labels(out, class.labels(i128::from(value)));
            print_integer(out, value, &class.integer);
            out.extend_from_slice(b" )");
        }
        Value::SignedEnumeration(value, class) => {
            print_labels(out, class.labels(i128::from(value)));
            print_integer(out, value as u64, &class.integer);
            out.extend_from_slice(b" )");
        }
        Value::Float32(value) => number::general(out, f64::from(value)),
        Value::Float64(value) => number::general(out, value),
        Value::Float128(_) => number::general(out, value.real().unwrap_or(f64::NAN)),
        Value::Boolean(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
        Value::BitArray(bits, _) => print_bits(out, bits),
        Value::BitMap(bits, class) => {
            print_labels(out, class.active(bits));
            print_bits(out, bits);
            out.extend_from_slice(b" )");
        }
        Value::Text(text) => quoted(out, text),
        Value::WideText(text) => quoted(out, text.to_string().as_bytes()),
        Value::Blob(bytes) => {
            out.extend_from_slice(b"{");
            for (index, byte) in bytes.iter().enumerate() {
                out.extend_from_slice(if index == 0 { b" 0x" } else { b", 0x" });
                number::power_of_two::<4>(out, u64::from(*byte));
            }
            out.extend_from_slice(b" }");
        }
    }
}

fn print_bits(out: &mut Vec<u8>, bits: u64) {
    out.extend_from_slice(b"0x");
    number::power_of_two::<4>(out, bits);
}

fn print_labels<'a>(out: &mut Vec<u8>, labels: impl Iterator<Item = &'a str>) {
    out.extend_from_slice(b"( ");
    let mut any = false;
    for label in labels {
        if any {
            out.extend_from_slice(b", ");
        }
        any = true;
        quoted(out, label.as_bytes());
    }
    if !any {
        out.extend_from_slice(b"<unknown>");
    }
    out.extend_from_slice(b" : container = ");
}

/// Appends an integer in its class's base; `bits` is the value, sign-extended to 64 bits.
#[inline]
pub(crate) fn print_integer(out: &mut Vec<u8>, bits: u64, class: &IntegerClass) {
    let keep = |bits: u64, size: u32| if size < 64 { bits & ((1 << size) - 1) } else { bits };
    match class.base {
        DisplayBase::Decimal if class.signed => number::signed(out, bits as i64),
        DisplayBase::Decimal => number::unsigned(out, bits),
        DisplayBase::Hexadecimal => {
            out.extend_from_slice(b"0x");
            number::power_of_two::<4>(out, keep(bits, class.size.next_multiple_of(4)));
        }
        DisplayBase::Octal => {
            out.push(b'0');
            let size = if class.signed && class.size < 64 { class.size.next_multiple_of(3) } else { 64 };
            number::power_of_two::<3>(out, keep(bits, size));
        }
        DisplayBase::Binary => {
            out.extend_from_slice(b"0b");
            out.extend((0..class.size.min(64)).rev().map(|bit| b'0' + (bits >> bit & 1) as u8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(bits: u64, class: IntegerClass) -> String {
        let mut out = Vec::new();
        print_integer(&mut out, bits, &class);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn integers_in_every_base() {
        use DisplayBase::{Binary, Hexadecimal, Octal};
        let minus = -1_i64 as u64;
        assert_eq!(integer(minus, IntegerClass::signed(8)), "-1");
        assert_eq!(integer(minus, IntegerClass::signed(8).with_base(Hexadecimal)), "0xFF");
        assert_eq!(integer(minus, IntegerClass::signed(5).with_base(Hexadecimal)), "0xFF");
        assert_eq!(integer(minus, IntegerClass::signed(64).with_base(Hexadecimal)), "0xFFFFFFFFFFFFFFFF");
        assert_eq!(integer(minus, IntegerClass::signed(8).with_base(Octal)), "0777");
        assert_eq!(integer(0, IntegerClass::unsigned(8).with_base(Octal)), "00");
        assert_eq!(integer(5, IntegerClass::unsigned(7).with_base(Binary)), "0b0000101");
    }
}
