//! Runs a program over a packet's bytes.
//!
//! One walk serves both purposes: to find where a scope ends and what it tells the decoder (without looking at what can
//! be skipped), and to show every field to a visitor.

use std::cell::Cell;
use std::ffi::CStr;

use super::bits::Leb128Fault;
use super::compile::Decoder;
use super::load::Load;
use super::program::{Integer, Kind, Length, NONE, Node, Program, Role};
use super::{Compound, Value, Visitor, WideText, bits};
use crate::model::ByteOrder;

/// Elements of arrays may have no size; more of those in one scope than this are an attack.
const MOST_EMPTY_ELEMENTS: u32 = 1 << 20;

/// What is done with the fields on the way.
pub(crate) trait Sink {
    /// Whether every field is to be shown.
    const SHOWS: bool;
    /// A field that means something to the decoder.
    fn mark(&mut self, role: Role, size: u32, value: u64);
    fn value(&mut self, name: Option<&str>, value: Value<'_>);
    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>);
    fn end(&mut self, compound: Compound<'_>);
}

/// Shows fields to a visitor.
pub(super) struct Shown<'v, V>(pub(super) &'v mut V);

impl<V: Visitor> Sink for Shown<'_, V> {
    const SHOWS: bool = true;
    fn mark(&mut self, _: Role, _: u32, _: u64) {}
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        self.0.value(name, value);
    }
    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        self.0.begin(name, compound);
    }
    fn end(&mut self, compound: Compound<'_>) {
        self.0.end(compound);
    }
}

/// Why a walk stopped, and the bit at which it did.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: u64,
    pub(super) cause: Cause,
}

/// What was wrong.
#[derive(Debug)]
pub(super) enum Cause {
    /// A field goes beyond the end of the content.
    Short { field: Option<Box<str>> },
    /// A string without null.
    NoNull { field: Option<Box<str>> },
    /// More elements than the content has room for.
    TooLong { field: Option<Box<str>>, length: u64 },
    /// A byte that fields of both byte orders share.
    Mixed { field: Option<Box<str>> },
    /// An integer of variable length with more than 64 bits.
    Oversized { field: Option<Box<str>> },
    /// A variant's tag selects nothing.
    NoOption { field: Option<Box<str>>, tag: i128 },
}

/// A packet's bytes and the values kept for lengths and tags.
pub(super) struct Walk<'a> {
    pub(super) data: &'a [u8],
    /// Where the content ends, in bits; `data` has at least as many.
    pub(super) limit: u64,
    pub(super) slots: &'a [Cell<u64>],
    empty: u32,
    /// Whether the byte order of neighbours is to be compared, and that of the number before.
    mixed: bool,
    last: Option<ByteOrder>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(decoder: &Decoder, data: &'a [u8], limit: u64, slots: &'a [Cell<u64>]) -> Self {
        debug_assert!(limit.div_ceil(8) <= data.len() as u64);
        Walk { data, limit, slots, empty: 0, mixed: decoder.mixed, last: None }
    }

    /// Runs a scope's program from bit `at`; gives the bit behind it.
    #[inline]
    pub(super) fn scope<S: Sink>(
        &mut self,
        program: &'a Program,
        at: u64,
        sink: &mut S,
    ) -> Result<u64, Box<Fault>> {
        let root = &program.nodes[0];
        let Kind::Structure { first, count, .. } = root.kind else { return Ok(at) };
        let at = self.aligned(root, at)?;
        if !S::SHOWS && root.skip != u64::MAX {
            return self.behind(root, at, root.skip);
        }
        self.members(program, first, count, at, sink)
    }

    #[inline(never)]
    fn members<S: Sink>(
        &mut self,
        program: &'a Program,
        first: u32,
        count: u32,
        mut at: u64,
        sink: &mut S,
    ) -> Result<u64, Box<Fault>> {
        for node in &program.nodes[first as usize..][..count as usize] {
            at = self.node(program, node, node.name.as_deref(), at, sink)?;
        }
        Ok(at)
    }

    /// One field. Inlined where fields follow each other; what contains fields is called, which ends the recursion.
    #[inline(always)]
    pub(super) fn node<S: Sink>(
        &mut self,
        program: &'a Program,
        node: &'a Node,
        name: Option<&str>,
        at: u64,
        sink: &mut S,
    ) -> Result<u64, Box<Fault>> {
        let at = self.aligned(node, at)?;
        if !S::SHOWS && node.skip != u64::MAX {
            return self.behind(node, at, node.skip);
        }
        match &node.kind {
            Kind::Integer(integer, class) => {
                let end = self.behind_number(node, at, integer.size, integer.order)?;
                if integer.signed {
                    let value = self.signed(integer, at);
                    if S::SHOWS {
                        sink.value(name, Value::Signed(value, class));
                    }
                } else {
                    let value = self.unsigned(integer, at, sink);
                    if S::SHOWS {
                        sink.value(name, Value::Unsigned(value, class));
                    }
                }
                Ok(end)
            }
            Kind::Enumeration(integer, class) => {
                let end = self.behind_number(node, at, integer.size, integer.order)?;
                if integer.signed {
                    let value = self.signed(integer, at);
                    if S::SHOWS {
                        sink.value(name, Value::SignedEnumeration(value, class));
                    }
                } else {
                    let value = self.unsigned(integer, at, sink);
                    if S::SHOWS {
                        sink.value(name, Value::UnsignedEnumeration(value, class));
                    }
                }
                Ok(end)
            }
            Kind::Float { size, order, reversed } => {
                let end = self.behind_number(node, at, *size, *order)?;
                if S::SHOWS {
                    sink.value(name, self.float(at, *size, *order, *reversed));
                }
                Ok(end)
            }
            Kind::String => {
                let bytes = self.bytes(at, self.limit);
                let Ok(text) = CStr::from_bytes_until_nul(bytes) else {
                    return Err(fault(at, Cause::NoNull { field: node.name.clone() }));
                };
                if S::SHOWS {
                    sink.value(name, Value::Text(text.to_bytes()));
                }
                Ok(at + 8 * text.to_bytes_with_nul().len() as u64)
            }
            Kind::Text { length } => {
                let end = self.behind_bytes(node, at, *length)?;
                if S::SHOWS {
                    let bytes = self.bytes(at, end);
                    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
                    sink.value(name, Value::Text(text));
                }
                Ok(end)
            }
            Kind::BitArray(..)
            | Kind::BitMap(..)
            | Kind::Boolean(_)
            | Kind::Variable(..)
            | Kind::VariableEnumeration(..)
            | Kind::WideString(_)
            | Kind::WideText { .. }
            | Kind::Blob { .. } => {
                let (value, end) = self.rarer(node, at, sink)?;
                if S::SHOWS {
                    sink.value(name, value);
                }
                Ok(end)
            }
            Kind::Structure { first, count, class } => {
                if S::SHOWS {
                    sink.begin(name, Compound::Structure(class));
                }
                let end = self.members(program, *first, *count, at, sink)?;
                if S::SHOWS {
                    sink.end(Compound::Structure(class));
                }
                Ok(end)
            }
            Kind::Array { length, element } => {
                let length = self.length(*length);
                self.array(program, node, name, length, &program.nodes[*element as usize], at, sink)
            }
            Kind::Optional(optional) => {
                let present = optional.enabled(self.slots[optional.slot as usize].get());
                let compound = Compound::Optional { present };
                if S::SHOWS {
                    sink.begin(name, compound);
                }
                let mut end = at;
                if present {
                    end = self.option(program, &program.nodes[optional.field as usize], at, sink)?;
                }
                if S::SHOWS {
                    sink.end(compound);
                }
                Ok(end)
            }
            Kind::Variant(variant) => {
                let tag = self.slots[variant.slot as usize].get();
                let Some(option) = variant.select(tag) else {
                    let tag = if variant.signed { i128::from(tag as i64) } else { i128::from(tag) };
                    return Err(fault(at, Cause::NoOption { field: node.name.clone(), tag }));
                };
                let option = &program.nodes[option as usize];
                let compound = Compound::Variant { option: option.name.as_deref().unwrap_or_default() };
                if S::SHOWS {
                    sink.begin(name, compound);
                }
                let end = self.option(program, option, at, sink)?;
                if S::SHOWS {
                    sink.end(compound);
                }
                Ok(end)
            }
        }
    }

    #[inline(never)]
    fn option<S: Sink>(
        &mut self,
        program: &'a Program,
        option: &'a Node,
        at: u64,
        sink: &mut S,
    ) -> Result<u64, Box<Fault>> {
        self.node(program, option, option.name.as_deref(), at, sink)
    }

    #[inline(never)]
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a walk's step; a struct would only rename them"
    )]
    fn array<S: Sink>(
        &mut self,
        program: &'a Program,
        node: &'a Node,
        name: Option<&str>,
        length: u64,
        element: &'a Node,
        start: u64,
        sink: &mut S,
    ) -> Result<u64, Box<Fault>> {
        // Elements without a size apart, each takes a bit at least.
        if length > self.limit {
            return Err(fault(start, Cause::TooLong { field: node.name.clone(), length }));
        }
        let mut at = start;
        if !S::SHOWS && element.skip != u64::MAX && length > 0 {
            let stride = element.skip.checked_next_multiple_of(u64::from(element.align));
            let size = stride.and_then(|stride| stride.checked_mul(length - 1)?.checked_add(element.skip));
            return match size {
                Some(size) => self.behind(node, at, size),
                None => Err(fault(at, Cause::TooLong { field: node.name.clone(), length })),
            };
        }
        let compound = Compound::Array { length };
        if S::SHOWS {
            sink.begin(name, compound);
        }
        if S::SHOWS
            && let Some(end) = self.numbers(element, length, at, sink)?
        {
            sink.end(compound);
            return Ok(end);
        }
        for _ in 0..length {
            let end = self.node(program, element, None, at, sink)?;
            if end == at {
                self.empty += 1;
                if self.empty > MOST_EMPTY_ELEMENTS {
                    return Err(fault(start, Cause::TooLong { field: node.name.clone(), length }));
                }
            }
            at = end;
        }
        if S::SHOWS {
            sink.end(compound);
        }
        Ok(at)
    }

    /// Shows an array of integers in whole bytes whose values nothing hangs on, and gives the bit behind it; `None`, and nothing
    /// is shown, where the elements are something else.
    #[inline]
    fn numbers<S: Sink>(
        &mut self,
        element: &'a Node,
        length: u64,
        start: u64,
        sink: &mut S,
    ) -> Result<Option<u64>, Box<Fault>> {
        let Kind::Integer(integer, class) = &element.kind else { return Ok(None) };
        // So the next element begins where one ends.
        let whole = element.align >= 8 && integer.size.is_multiple_of(element.align);
        if !whole || length == 0 || self.mixed || element.skip == u64::MAX || integer.reversed {
            return Ok(None);
        }
        let (Some(load), Some(bits)) =
            (Load::new(0, integer.size, integer.order), length.checked_mul(element.skip))
        else {
            return Ok(None);
        };
        let start = self.aligned(element, start)?;
        let end = self.behind(element, start, bits)?;
        for at in (start..end).step_by(integer.size as usize) {
            // Eight bytes are loaded at a time; at the end of the data there may be fewer.
            let record = &self.data[(at / 8) as usize..];
            let bits = load.bits(record).unwrap_or_else(|| self.bits(integer, at));
            let value = match integer.signed {
                true => Value::Signed(bits::sign_extended(bits, integer.size), class),
                false => Value::Unsigned(bits, class),
            };
            sink.value(None, value);
        }
        Ok(Some(end))
    }

    #[inline(always)]
    fn unsigned<S: Sink>(&self, integer: &Integer, at: u64, sink: &mut S) -> u64 {
        let value = self.bits(integer, at);
        if integer.slot != NONE {
            self.slots[integer.slot as usize].set(value);
        }
        if integer.role != Role::None {
            sink.mark(integer.role, integer.size, value);
        }
        value
    }

    #[inline]
    fn signed(&self, integer: &Integer, at: u64) -> i64 {
        let value = bits::sign_extended(self.bits(integer, at), integer.size);
        if integer.slot != NONE {
            self.slots[integer.slot as usize].set(value as u64);
        }
        value
    }

    /// The bits of an integer or a boolean, in the order in which they count.
    #[inline(always)]
    fn bits(&self, integer: &Integer, at: u64) -> u64 {
        let bits = bits::unsigned(self.data, at, integer.size, integer.order);
        if integer.reversed { bits::reversed(bits, integer.size) } else { bits }
    }

    #[inline]
    fn float(&self, at: u64, size: u32, order: ByteOrder, reversed: bool) -> Value<'a> {
        if size == 128 {
            let bits = bits::wide(self.data, at, order);
            return Value::Float128(if reversed { bits.reverse_bits() } else { bits });
        }
        let bits = bits::unsigned(self.data, at, size, order);
        let bits = if reversed { bits::reversed(bits, size) } else { bits };
        match size {
            16 => Value::Float32(bits::float16(bits as u16)),
            32 => Value::Float32(f32::from_bits(bits as u32)),
            _ => Value::Float64(f64::from_bits(bits)),
        }
    }

    /// A value of a kind that only CTF 2 has, and the bit behind it.
    #[inline(never)]
    fn rarer<S: Sink>(
        &mut self,
        node: &'a Node,
        at: u64,
        sink: &mut S,
    ) -> Result<(Value<'a>, u64), Box<Fault>> {
        Ok(match &node.kind {
            Kind::BitArray(integer, class) => {
                let end = self.behind_number(node, at, integer.size, integer.order)?;
                (Value::BitArray(self.bits(integer, at), class), end)
            }
            Kind::BitMap(integer, class) => {
                let end = self.behind_number(node, at, integer.size, integer.order)?;
                (Value::BitMap(self.bits(integer, at), class), end)
            }
            Kind::Boolean(integer) => {
                let end = self.behind_number(node, at, integer.size, integer.order)?;
                let truth = self.bits(integer, at) != 0;
                self.keep(integer, truth.into());
                (Value::Boolean(truth), end)
            }
            Kind::Variable(integer, class) => {
                let (bits, end) = self.variable(node, integer, at, sink)?;
                let value = match integer.signed {
                    true => Value::Signed(bits as i64, class),
                    false => Value::Unsigned(bits, class),
                };
                (value, end)
            }
            Kind::VariableEnumeration(integer, class) => {
                let (bits, end) = self.variable(node, integer, at, sink)?;
                let value = match integer.signed {
                    true => Value::SignedEnumeration(bits as i64, class),
                    false => Value::UnsignedEnumeration(bits, class),
                };
                (value, end)
            }
            Kind::WideString(encoding) => {
                let bytes = self.bytes(at, self.limit);
                let mut units = bytes.chunks_exact(encoding.unit());
                let Some(length) = units.position(|unit| unit.iter().all(|&byte| byte == 0)) else {
                    return Err(fault(at, Cause::NoNull { field: node.name.clone() }));
                };
                let length = length * encoding.unit();
                let end = at + 8 * (length + encoding.unit()) as u64;
                (Value::WideText(WideText::new(&bytes[..length], *encoding)), end)
            }
            Kind::WideText { length, encoding } => {
                let end = self.behind_bytes(node, at, *length)?;
                (Value::WideText(WideText::new(self.bytes(at, end), *encoding)), end)
            }
            Kind::Blob { length } => {
                let end = self.behind_bytes(node, at, *length)?;
                (Value::Blob(self.bytes(at, end)), end)
            }
            _ => unreachable!("callers pass none of the other kinds"),
        })
    }

    fn variable<S: Sink>(
        &self,
        node: &Node,
        integer: &Integer,
        at: u64,
        sink: &mut S,
    ) -> Result<(u64, u64), Box<Fault>> {
        match bits::leb128(self.bytes(at, self.limit), integer.signed) {
            Ok((value, length)) => {
                self.keep(integer, value);
                if integer.role != Role::None {
                    sink.mark(integer.role, (7 * length).min(64), value);
                }
                Ok((value, at + 8 * u64::from(length)))
            }
            Err(Leb128Fault::Short) => Err(short(node, at)),
            Err(Leb128Fault::Oversized) => Err(fault(at, Cause::Oversized { field: node.name.clone() })),
        }
    }

    /// Keeps a value where some length, tag or selector will look for it.
    #[inline]
    fn keep(&self, integer: &Integer, value: u64) {
        if integer.slot != NONE {
            self.slots[integer.slot as usize].set(value);
        }
    }

    /// The whole bytes from bit `at`, which begins one, to bit `end`.
    #[inline]
    fn bytes(&self, at: u64, end: u64) -> &'a [u8] {
        &self.data[(at / 8) as usize..(end / 8).max(at / 8) as usize]
    }

    /// As [`Walk::behind`] for so many bytes.
    #[inline]
    fn behind_bytes(&self, node: &Node, at: u64, length: Length) -> Result<u64, Box<Fault>> {
        let length = self.length(length);
        match length.checked_mul(8) {
            Some(size) => self.behind(node, at, size),
            None => Err(fault(at, Cause::TooLong { field: node.name.clone(), length })),
        }
    }

    #[inline]
    pub(super) fn length(&self, length: Length) -> u64 {
        match length {
            Length::Fixed(length) => length,
            Length::Slot(slot) => self.slots[slot as usize].get(),
        }
    }

    /// `at`, moved up to the node's alignment. Padding at the end of the content may be missing.
    #[inline]
    pub(super) fn aligned(&self, node: &Node, at: u64) -> Result<u64, Box<Fault>> {
        let mask = u64::from(node.align) - 1;
        let aligned = (at + mask) & !mask;
        if aligned > self.limit {
            return Err(short(node, at));
        }
        Ok(aligned)
    }

    /// The bit `size` bits behind `at`, if the content goes that far.
    #[inline]
    fn behind(&self, node: &Node, at: u64, size: u64) -> Result<u64, Box<Fault>> {
        if size > self.limit - at {
            return Err(short(node, at));
        }
        Ok(at + size)
    }

    /// As [`Walk::behind`] for a number: the byte order changes only between bytes (specification 1.8.3, section 4.1.5).
    #[inline]
    fn behind_number(
        &mut self,
        node: &Node,
        at: u64,
        size: u32,
        order: ByteOrder,
    ) -> Result<u64, Box<Fault>> {
        if self.mixed {
            let last = self.last.replace(order);
            if !at.is_multiple_of(8) && last.is_some_and(|last| last != order) {
                return Err(fault(at, Cause::Mixed { field: node.name.clone() }));
            }
        }
        self.behind(node, at, u64::from(size))
    }

    /// The `index`th member of a scope's structure, if it is no compound.
    pub(super) fn member(&mut self, program: &'a Program, at: u64, index: u32) -> Option<Value<'a>> {
        let root = &program.nodes[0];
        let Kind::Structure { first, .. } = root.kind else { return None };
        let mut at = self.aligned(root, at).ok()?;
        let (node, before) = program.nodes.get(first as usize..)?.get(..=index as usize)?.split_last()?;
        for node in before {
            at = self.node(program, node, None, at, &mut Nothing).ok()?;
        }
        self.value(node, self.aligned(node, at).ok()?)
    }

    /// As [`Walk::member`] where the member's distance from the scope's aligned start is known, in bits.
    #[inline]
    pub(super) fn member_at(
        &mut self,
        program: &'a Program,
        at: u64,
        index: u32,
        distance: u64,
    ) -> Option<Value<'a>> {
        let root = &program.nodes[0];
        let Kind::Structure { first, .. } = root.kind else { return None };
        let at = self.aligned(root, at).ok()?.checked_add(distance)?;
        if at > self.limit {
            return None;
        }
        self.value(program.nodes.get((first + index) as usize)?, at)
    }

    pub(super) fn value(&mut self, node: &'a Node, at: u64) -> Option<Value<'a>> {
        match &node.kind {
            Kind::Integer(integer, class) => {
                self.behind(node, at, u64::from(integer.size)).ok()?;
                Some(match integer.signed {
                    true => Value::Signed(self.signed(integer, at), class),
                    false => Value::Unsigned(self.unsigned(integer, at, &mut Nothing), class),
                })
            }
            Kind::Enumeration(integer, class) => {
                self.behind(node, at, u64::from(integer.size)).ok()?;
                Some(match integer.signed {
                    true => Value::SignedEnumeration(self.signed(integer, at), class),
                    false => Value::UnsignedEnumeration(self.unsigned(integer, at, &mut Nothing), class),
                })
            }
            Kind::Float { size, order, reversed } => {
                self.behind(node, at, u64::from(*size)).ok()?;
                Some(self.float(at, *size, *order, *reversed))
            }
            Kind::String => {
                let bytes = self.data.get((at / 8) as usize..(self.limit / 8) as usize)?;
                Some(Value::Text(CStr::from_bytes_until_nul(bytes).ok()?.to_bytes()))
            }
            Kind::Text { length } => {
                let end = self.behind(node, at, self.length(*length).checked_mul(8)?).ok()?;
                let bytes = &self.data[(at / 8) as usize..(end / 8) as usize];
                Some(Value::Text(CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)))
            }
            Kind::Structure { .. } | Kind::Array { .. } | Kind::Optional(_) | Kind::Variant(_) => None,
            _ => self.rarer(node, at, &mut Nothing).ok().map(|(value, _)| value),
        }
    }
}

/// Steps over fields whose values do not matter.
pub(super) struct Nothing;

impl Sink for Nothing {
    const SHOWS: bool = false;
    fn mark(&mut self, _: Role, _: u32, _: u64) {}
    fn value(&mut self, _: Option<&str>, _: Value<'_>) {}
    fn begin(&mut self, _: Option<&str>, _: Compound<'_>) {}
    fn end(&mut self, _: Compound<'_>) {}
}

#[cold]
fn fault(at: u64, cause: Cause) -> Box<Fault> {
    Box::new(Fault { at, cause })
}

#[cold]
fn short(node: &Node, at: u64) -> Box<Fault> {
    fault(at, Cause::Short { field: node.name.clone() })
}
