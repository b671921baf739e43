//! Writes the fields of one scope in order, each checked against its class.
//!
//! It goes through the same program as the decoder, with what it is shown instead of what it reads. The first thing that
//! does not fit is kept; what follows is ignored.

use std::cell::Cell;

use super::bits;
use super::known::{self, Known};
use super::scalar::{Number, Scalar};
use crate::decode::packet::Marks;
use crate::decode::program::{Integer, Kind, Length, NONE, Node, Program, Role};
use crate::decode::walk::Sink;
use crate::decode::{Compound, Value, Visitor};
use crate::model::{ByteOrder, Encoding};

/// Bytes that a length field may ask for behind a text; more is taken for a mistake.
const MOST_PADDING: u64 = 1 << 24;

/// A packet under construction.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Where the next field begins, in bits.
    pub(super) at: u64,
    /// Values kept for lengths and tags, as the decoder keeps them.
    pub(super) slots: Box<[Cell<u64>]>,
    /// What a reader would know by now.
    pub(super) marks: Marks,
    /// Fields whose values are known when the packet ends, and where they are.
    pub(super) later: Vec<(Role, u64, Integer)>,
    /// The byte order of the number before.
    last: Option<ByteOrder>,
    open: Vec<Frame>,
    error: Option<Box<(String, String)>>,
}

/// A place to which a packet under construction can return.
pub(super) struct Mark {
    bytes: usize,
    pub(super) at: u64,
    clock: u64,
    last: Option<ByteOrder>,
}

impl Body {
    /// A packet that is not begun, with memory for so many lengths and tags.
    pub(super) fn new(slots: usize) -> Self {
        Body { slots: vec![Cell::new(0); slots].into_boxed_slice(), ..Body::default() }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), at: self.at, clock: self.marks.clock, last: self.last }
    }

    /// Takes back what was written since `mark`.
    pub(super) fn back_to(&mut self, mark: &Mark) {
        self.bytes.truncate(mark.bytes);
        // The last byte may hold bits of what was taken back.
        if let (Some(byte), within @ 1..) = (self.bytes.last_mut(), mark.at % 8) {
            *byte &= match mark.last {
                Some(ByteOrder::Big) => !(0xff >> within),
                _ => !(0xff << within),
            };
        }
        (self.at, self.marks.clock, self.last) = (mark.at, mark.clock, mark.last);
        self.marks.event_id = None;
        self.open.clear();
        self.error = None;
    }

    /// Makes the packet at least so many bits long, with zeros.
    fn reach(&mut self, bits: u64) {
        self.bytes.resize(self.bytes.len().max(bits.div_ceil(8) as usize), 0);
    }

    fn align(&mut self, align: u32) {
        self.at = self.at.next_multiple_of(u64::from(align));
        self.reach(self.at);
    }

    fn bits(&mut self, size: u32, order: ByteOrder, value: u64) {
        self.reach(self.at + u64::from(size));
        bits::put(&mut self.bytes, self.at, size, order, value);
        self.at += u64::from(size);
        self.last = Some(order);
    }

    fn append(&mut self, bytes: &[u8]) {
        self.bytes.truncate((self.at / 8) as usize);
        self.bytes.extend_from_slice(bytes);
        self.at += 8 * bytes.len() as u64;
    }
}

/// What is open around the next field. Numbers are indices of nodes.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Structure {
        next: u32,
        end: u32,
    },
    Array {
        element: u32,
        left: u64,
        length: u64,
    },
    /// An optional's content or a variant's option.
    Choice {
        content: u32,
        done: bool,
    },
}

/// Takes the fields of one scope, in the order of the class; as a [`Visitor`], those of a decoded one.
pub struct ScopeWriter<'w> {
    pub(super) body: &'w mut Body,
    program: &'w Program,
    known: Known,
    /// Whether a field was shown, in contrast to those that the writer knows by itself.
    pub(super) given: bool,
}

impl<'w> ScopeWriter<'w> {
    pub(super) fn new(body: &'w mut Body, program: &'w Program, known: Known) -> Self {
        let root = &program.nodes[0];
        body.align(root.align);
        body.open.clear();
        if let Kind::Structure { first, count, .. } = root.kind {
            body.open.push(Frame::Structure { next: first, end: first + count });
        }
        ScopeWriter { body, program, known, given: false }
    }

    /// Ends the scope; what is wrong, with the name of the field, if anything was.
    pub(super) fn finish(mut self) -> Result<(), Box<(String, String)>> {
        if self.body.open.len() > 1 {
            self.fail("it is not closed");
        }
        self.end_compound();
        self.body.error.take().map_or(Ok(()), Err)
    }

    /// A structure begins.
    pub(super) fn begin_structure(&mut self, name: Option<&str>) {
        self.begin_compound(name, "a structure", |writer, node| match node.kind {
            Kind::Structure { first, count, .. } => {
                writer.body.align(node.align);
                Some(Frame::Structure { next: first, end: first + count })
            }
            _ => None,
        });
    }

    /// An array begins.
    pub(super) fn begin_array(&mut self, name: Option<&str>, length: u64) {
        self.begin_compound(name, "an array", |writer, node| match node.kind {
            Kind::Array { length: declared, element } => {
                writer.body.align(node.align);
                writer.check_length(declared, length);
                Some(Frame::Array { element, left: length, length })
            }
            _ => None,
        });
    }

    /// A variant begins, of which this option is selected.
    pub(super) fn begin_variant(&mut self, name: Option<&str>, option: &str) {
        self.begin_compound(name, "a variant", |writer, node| match &node.kind {
            Kind::Variant(variant) => {
                let content = variant.select(writer.body.slots[variant.slot as usize].get());
                let selected = content.map(|content| &writer.program.nodes[content as usize]);
                match selected.map(|node| node.name.as_deref().unwrap_or_default()) {
                    Some(selected) if selected == option => {}
                    Some(selected) => {
                        writer.fail(format!("option `{option}`, but the tag selects `{selected}`"));
                    }
                    None => writer.fail(format!("option `{option}`, but the tag selects none")),
                }
                Some(Frame::Choice { content: content.unwrap_or(0), done: false })
            }
            _ => None,
        });
    }

    /// An optional begins. Where the class has no optionals it is a variant, of which the tag selects an empty structure
    /// for what is not there.
    pub(super) fn begin_optional(&mut self, name: Option<&str>, present: bool) {
        self.begin_compound(name, "an optional", |writer, node| match &node.kind {
            Kind::Variant(variant) => {
                let content = variant.select(writer.body.slots[variant.slot as usize].get());
                let Some(content) = content else {
                    writer.fail("an optional, but the tag selects nothing");
                    return Some(Frame::Choice { content: 0, done: true });
                };
                let empty = is_empty(&writer.program.nodes[content as usize]);
                if !present && !empty {
                    writer.fail("an optional that is not there, but the tag says that it is");
                }
                Some(Frame::Choice { content, done: !present })
            }
            _ => None,
        });
    }

    fn begin_compound(
        &mut self,
        name: Option<&str>,
        what: &str,
        begin: impl FnOnce(&mut Self, &'w Node) -> Option<Frame>,
    ) {
        let Some(node) = self.next(name) else { return };
        match begin(self, node) {
            Some(frame) => self.body.open.push(frame),
            None => self.fail(format!("{what}, but the class has {}", what_is(&node.kind))),
        }
    }

    /// The innermost compound ends.
    pub(super) fn end_compound(&mut self) {
        if self.body.error.is_some() {
            return;
        }
        match self.body.open.last() {
            Some(&Frame::Structure { next, end }) => {
                for index in next..end {
                    self.step_to(index);
                    self.fill(index);
                }
            }
            Some(&Frame::Array { left: left @ 1.., length, .. }) => {
                self.fail(format!("{} elements instead of {length}", length - left));
            }
            Some(&Frame::Choice { done: false, .. }) => self.fail("there is no value"),
            _ => {}
        }
        self.body.open.pop();
    }

    /// A value.
    pub(super) fn scalar(&mut self, name: Option<&str>, scalar: Scalar<'_>) {
        if let Some(node) = self.next(name) {
            self.write(node, scalar);
        }
    }

    fn step_to(&mut self, index: u32) {
        if let Some(Frame::Structure { next, .. }) = self.body.open.last_mut() {
            *next = index + 1;
        }
    }

    /// The node of the next field, which is called `name` if it has one.
    fn next(&mut self, name: Option<&str>) -> Option<&'w Node> {
        self.given = true;
        let program = self.program;
        while self.body.error.is_none() {
            let node = match self.body.open.last_mut()? {
                Frame::Structure { next, end } if *next < *end => {
                    *next += 1;
                    let (index, node) = (*next - 1, &program.nodes[*next as usize - 1]);
                    let same = name.is_none_or(|name| node.name.as_deref() == Some(name));
                    if let Some(value) = self.known.instead(node) {
                        self.write(node, Scalar::Unsigned(value));
                        if same {
                            return None;
                        }
                        continue;
                    }
                    if !same {
                        self.fill(index);
                        continue;
                    }
                    node
                }
                Frame::Array { element, left: left @ 1.., .. } => {
                    *left -= 1;
                    &program.nodes[*element as usize]
                }
                Frame::Choice { content, done: done @ false } => {
                    *done = true;
                    &program.nodes[*content as usize]
                }
                _ => {
                    let what = name.map_or_else(|| "one more field".to_owned(), |name| format!("`{name}`"));
                    self.fail(format!("{what}, which the class does not have here"));
                    return None;
                }
            };
            return Some(node);
        }
        None
    }

    /// Writes a field that nobody gave, if its value is known.
    fn fill(&mut self, index: u32) {
        let program = self.program;
        let node = &program.nodes[index as usize];
        if let Some(value) = self.known.value(node) {
            return self.write(node, Scalar::Unsigned(value));
        }
        match &node.kind {
            Kind::Structure { first, count, .. } if self.known.header => {
                self.body.align(node.align);
                (*first..first + count).for_each(|member| self.fill(member));
            }
            Kind::Variant(variant) if self.known.header => {
                match variant.select(self.body.slots[variant.slot as usize].get()) {
                    Some(option) => self.fill(option),
                    None => self.fail("its tag selects no option"),
                }
            }
            Kind::Array { length: Length::Fixed(16), element } if self.known.uuid(node).is_some() => {
                self.body.align(node.align);
                let element = &program.nodes[*element as usize];
                let uuid = self.known.uuid(node).unwrap_or_default();
                uuid.iter().for_each(|byte| self.write(element, Scalar::Unsigned(u64::from(*byte))));
            }
            _ => self.fail(format!("`{}` is missing", node.name.as_deref().unwrap_or_default())),
        }
    }

    fn write(&mut self, node: &'w Node, scalar: Scalar<'_>) {
        if self.body.error.is_some() {
            return;
        }
        self.body.align(node.align);
        let written = match &node.kind {
            Kind::Integer(integer, _) | Kind::Enumeration(integer, _) => self.integer(integer, scalar),
            Kind::Float { size, order, reversed: false } => {
                scalar.real(*size).map(|bits| self.bits(*size, *order, bits as u64))
            }
            Kind::String => scalar.text(Encoding::Utf8).and_then(|text| match text.contains(&0) {
                true => Err("a string with a null in it".to_owned()),
                false => {
                    self.body.append(&text);
                    self.body.append(&[0]);
                    Ok(())
                }
            }),
            Kind::Text { length } => scalar.text(Encoding::Utf8).and_then(|text| self.padded(*length, &text)),
            Kind::Array { length, element } if let Scalar::Blob(bytes) = scalar => {
                self.check_length(*length, bytes.len() as u64);
                let element = &self.program.nodes[*element as usize];
                bytes.iter().for_each(|byte| self.write(element, Scalar::Unsigned(u64::from(*byte))));
                Ok(())
            }
            kind => Err(format!("{}, but the class has {}", scalar.what(), what_is(kind))),
        };
        if let Err(message) = written {
            self.fail(message);
        }
    }

    fn integer(&mut self, integer: &Integer, scalar: Scalar<'_>) -> Result<(), String> {
        let value = match scalar.number()? {
            Number::Unsigned(value) if !integer.signed && value <= u64::MAX >> (64 - integer.size) => value,
            Number::Unsigned(value) if integer.signed && value <= i64::MAX as u64 >> (64 - integer.size) => {
                value
            }
            Number::Negative(value) if integer.signed && value >= i64::MIN >> (64 - integer.size) => {
                value as u64
            }
            number => {
                let sort = if integer.signed { "signed" } else { "unsigned" };
                return Err(format!("{number} does not fit in {} {sort} bits", integer.size));
            }
        };
        let at = self.body.at;
        self.bits(integer.size, integer.order, value);
        if integer.slot != NONE {
            self.body.slots[integer.slot as usize].set(value);
        }
        if integer.role != Role::None {
            self.body.marks.mark(integer.role, integer.size, value);
            if let Some(role) = known::later(integer.role).filter(|_| self.known.in_packet) {
                self.body.later.push((role, at, *integer));
            }
        }
        Ok(())
    }

    /// A number's bits; the byte order changes only between bytes (specification 1.8.3, section 4.1.5).
    fn bits(&mut self, size: u32, order: ByteOrder, value: u64) {
        if !self.body.at.is_multiple_of(8) && self.body.last.is_some_and(|last| last != order) {
            return self.fail("its byte order differs from that of the field in the same byte");
        }
        self.body.bits(size, order, value);
    }

    /// Text, with nulls behind it up to the declared length.
    fn padded(&mut self, length: Length, text: &[u8]) -> Result<(), String> {
        let room = self.length(length);
        let Some(rest) = room.checked_sub(text.len() as u64) else {
            return Err(format!("{} bytes of text, but there is room for {room}", text.len()));
        };
        if rest > MOST_PADDING {
            return Err(format!("the length field says {room}, but there are {} bytes of text", text.len()));
        }
        self.body.append(text);
        let end = self.body.at + 8 * rest;
        self.body.reach(end);
        self.body.at = end;
        Ok(())
    }

    fn length(&self, length: Length) -> u64 {
        match length {
            Length::Fixed(length) => length,
            Length::Slot(slot) => self.body.slots[slot as usize].get(),
        }
    }

    fn check_length(&mut self, declared: Length, length: u64) {
        let expected = self.length(declared);
        if expected != length {
            let who = if matches!(declared, Length::Fixed(_)) { "the class" } else { "the length field" };
            self.fail(format!("{length} elements, but {who} says {expected}"));
        }
    }

    /// Keeps the first thing that is wrong, and where.
    #[cold]
    fn fail(&mut self, message: impl Into<String>) {
        if self.body.error.is_some() {
            return;
        }
        let mut place = String::new();
        for frame in &self.body.open {
            let node = match frame {
                Frame::Structure { next, .. } => next.checked_sub(1),
                Frame::Choice { content, .. } => Some(*content),
                Frame::Array { left, length, .. } => {
                    place += &format!("[{}]", (length - left).saturating_sub(1));
                    None
                }
            };
            let node = node.and_then(|node| self.program.nodes.get(node as usize));
            if let Some(name) = node.and_then(|node| node.name.as_deref()) {
                if !place.is_empty() {
                    place.push('.');
                }
                place += name;
            }
        }
        self.body.error = Some(Box::new((place, message.into())));
    }
}

impl Visitor for ScopeWriter<'_> {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        self.scalar(name, value.into());
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        match compound {
            Compound::Structure(_) => self.begin_structure(name),
            Compound::Array { length } => self.begin_array(name, length),
            Compound::Optional { present } => self.begin_optional(name, present),
            Compound::Variant { option } => self.begin_variant(name, option),
        }
    }

    fn end(&mut self, _: Compound<'_>) {
        self.end_compound();
    }
}

/// Whether a field is a structure without members.
fn is_empty(node: &Node) -> bool {
    matches!(node.kind, Kind::Structure { count: 0, .. })
}

/// What a class is, for messages.
fn what_is(kind: &Kind) -> &'static str {
    match kind {
        Kind::Integer(..) | Kind::Enumeration(..) => "an integer",
        Kind::Float { .. } => "a floating point number",
        Kind::String | Kind::Text { .. } => "a string",
        Kind::Structure { .. } => "a structure",
        Kind::Array { .. } => "an array",
        Kind::Variant(_) => "a variant",
        _ => "what cannot be written yet",
    }
}
