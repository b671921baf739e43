//! Runs a program over a packet's bytes.
//!
//! The same walk serves two purposes: to find the end of a scope and the fields that the decoder needs
//! (skipping what can be skipped), and to show every field to a visitor.

use std::cell::Cell;
use std::ffi::CStr;

use super::compile::Decoder;
use super::fault::{Fault, fault};
use super::load::Load;
use super::program::{Integer, Kind, Node, Optional, Program, Variant};
use super::sink::Sink;
use super::{Compound, Value, bits};
use crate::FieldFault;
use crate::model::ByteOrder;

/// Elements of arrays may have no size; more of those in one scope than this are an attack.
const MOST_EMPTY_ELEMENTS: u32 = 1 << 20;

/// The maximum number of elements of an array whose elements have no size.
const FEW_ELEMENTS: u64 = 1 << 16;
/// A packet's bytes and the values kept for lengths and tags.
pub(super) struct Walk<'a> {
    pub(super) data: &'a [u8],
    /// Where the content ends, in bits; `data` has at least as many.
    pub(super) limit: u64,
    pub(super) slots: &'a [Cell<u64>],
    empty: u32,
    /// Whether the byte order of neighbours is to be compared, and that of the number before.
    pub(super) mixed: bool,
    pub(super) last: Option<ByteOrder>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(decoder: &Decoder, data: &'a [u8], limit: u64, slots: &'a [Cell<u64>]) -> Self {
        debug_assert!(limit.div_ceil(8) <= data.len() as u64);
        Walk { data, limit, slots, empty: 0, mixed: decoder.mixed, last: None }
    }

    /// Runs a scope's program from bit `at`; returns the bit after it.
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
            return self.after(root, at, root.skip);
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

    /// One field. Inlined where fields follow each other; what contains fields is called, which ends the
    /// recursion.
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
        // Most steps only look for the next event record: a field of known size that the decoder does not
        // need is one addition.
        if !S::SHOWS && node.skip != u64::MAX {
            return self.after(node, at, node.skip);
        }
        // `S::SHOWS` is constant: for sinks that show nothing, this is compiled without the values, and only
        // finds where fields end and what moves the clock, selects a class or determines a size.
        match &node.kind {
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
            Kind::Optional(optional) => self.optional(program, name, optional, at, sink),
            Kind::Variant(variant) => {
                let Some(option) = variant.select(self.slots[variant.slot as usize].get()) else {
                    return Err(self.no_option(node, variant, at));
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
            _ => self.leaf(node, name, at, sink),
        }
    }

    /// A field that contains no others. Each kind has a call of its own to the sink, which is compiled for
    /// it.
    #[inline(always)]
    fn leaf<S: Sink>(
        &mut self,
        node: &'a Node,
        name: Option<&str>,
        at: u64,
        sink: &mut S,
    ) -> Result<u64, Box<Fault>> {
        match &node.kind {
            Kind::Integer(integer, class) => {
                let (signed, unsigned) =
                    (|value| Value::Signed(value, class), |value| Value::Unsigned(value, class));
                self.integer(node, name, integer, at, sink, (signed, unsigned))
            }
            Kind::Enumeration(integer, class) => {
                let signed = |value| Value::SignedEnumeration(value, class);
                let unsigned = |value| Value::UnsignedEnumeration(value, class);
                self.integer(node, name, integer, at, sink, (signed, unsigned))
            }
            Kind::Float { size, order, reversed } => {
                let end = self.after_number(node, at, *size, *order)?;
                if S::SHOWS {
                    sink.value(name, self.float(at, *size, *order, *reversed));
                }
                Ok(end)
            }
            Kind::String => {
                let bytes = self.bytes(at, self.limit);
                let Ok(text) = CStr::from_bytes_until_nul(bytes) else {
                    return Err(fault(node, at, FieldFault::NoNull));
                };
                if S::SHOWS {
                    sink.value(name, Value::Text(text.to_bytes()));
                }
                Ok(at + 8 * text.to_bytes_with_nul().len() as u64)
            }
            Kind::Text { length } => {
                let end = self.after_bytes(node, at, *length)?;
                if S::SHOWS {
                    // The text ends at its first NUL; the rest of the field is padding.
                    let bytes = self.bytes(at, end);
                    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
                    sink.value(name, Value::Text(text));
                }
                Ok(end)
            }
            // Of CTF 2 only.
            _ => {
                let (value, end) = self.ctf2_only(node, at, sink)?;
                if S::SHOWS {
                    sink.value(name, value);
                }
                Ok(end)
            }
        }
    }

    /// An integer of fixed size; `value` makes of its number what the sink gets.
    #[inline(always)]
    fn integer<S: Sink>(
        &mut self,
        node: &'a Node,
        name: Option<&str>,
        integer: &Integer,
        at: u64,
        sink: &mut S,
        value: (impl Fn(i64) -> Value<'a>, impl Fn(u64) -> Value<'a>),
    ) -> Result<u64, Box<Fault>> {
        let end = self.after_number(node, at, integer.size, integer.order)?;
        if integer.signed {
            let number = self.signed(integer, at);
            if S::SHOWS {
                sink.value(name, (value.0)(number));
            }
        } else {
            let number = self.unsigned(integer, at, sink);
            if S::SHOWS {
                sink.value(name, (value.1)(number));
            }
        }
        Ok(end)
    }

    #[inline(always)]
    fn optional<S: Sink>(
        &mut self,
        program: &'a Program,
        name: Option<&str>,
        optional: &Optional,
        at: u64,
        sink: &mut S,
    ) -> Result<u64, Box<Fault>> {
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

    #[cold]
    fn no_option(&self, node: &Node, variant: &Variant, at: u64) -> Box<Fault> {
        let tag = self.slots[variant.slot as usize].get();
        let tag = if variant.signed { i128::from(tag as i64) } else { i128::from(tag) };
        fault(node, at, FieldFault::NoOption(tag))
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
        if length > self.limit.max(FEW_ELEMENTS) {
            return Err(fault(node, start, FieldFault::TooLong(length)));
        }
        let mut at = start;
        if !S::SHOWS && element.skip == 0 {
            self.empty = self.empty.saturating_add(u32::try_from(length).unwrap_or(u32::MAX));
            if self.empty > MOST_EMPTY_ELEMENTS {
                return Err(fault(node, start, FieldFault::TooLong(length)));
            }
            return Ok(start);
        }
        if !S::SHOWS && element.skip != u64::MAX && length > 0 {
            let stride = element.skip.checked_next_multiple_of(u64::from(element.align));
            let size = stride.and_then(|stride| stride.checked_mul(length - 1)?.checked_add(element.skip));
            return match size {
                Some(size) => self.after(node, at, size),
                None => Err(fault(node, at, FieldFault::TooLong(length))),
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
                    return Err(fault(node, start, FieldFault::TooLong(length)));
                }
            }
            at = end;
        }
        if S::SHOWS {
            sink.end(compound);
        }
        Ok(at)
    }

    /// Shows an array of integers in whole bytes that no other field depends on, and returns the bit after
    /// it; `None`, with nothing shown, if the elements are of another kind.
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
        let end = self.after(element, start, bits)?;
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
}
