//! Reads values from where a walk has come to.

use std::ffi::CStr;

use super::bits::Leb128Fault;
use super::fault::{Fault, fault, short};
use super::program::{Integer, Kind, NONE, Node, Program, Role};
use super::sink::{Nothing, Sink};
use super::walk::Walk;
use super::{Value, WideText, bits};
use crate::FieldFault;
use crate::model::ByteOrder;

impl<'a> Walk<'a> {
    #[inline(always)]
    pub(super) fn unsigned<S: Sink>(&self, integer: &Integer, at: u64, sink: &mut S) -> u64 {
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
    pub(super) fn signed(&self, integer: &Integer, at: u64) -> i64 {
        let value = bits::sign_extended(self.bits(integer, at), integer.size);
        if integer.slot != NONE {
            self.slots[integer.slot as usize].set(value as u64);
        }
        value
    }

    /// The bits of an integer or a boolean, in the order in which they count.
    #[inline(always)]
    pub(super) fn bits(&self, integer: &Integer, at: u64) -> u64 {
        let bits = bits::unsigned(self.data, at, integer.size, integer.order);
        if integer.reversed { bits::reversed(bits, integer.size) } else { bits }
    }

    #[inline]
    pub(super) fn float(&self, at: u64, size: u32, order: ByteOrder, reversed: bool) -> Value<'a> {
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

    /// A value of a kind that only CTF 2 has, and the bit after it.
    #[inline(never)]
    pub(super) fn ctf2_only<S: Sink>(
        &mut self,
        node: &'a Node,
        at: u64,
        sink: &mut S,
    ) -> Result<(Value<'a>, u64), Box<Fault>> {
        Ok(match &node.kind {
            Kind::BitArray(integer, class) => {
                let end = self.after_number(node, at, integer.size, integer.order)?;
                (Value::BitArray(self.bits(integer, at), class), end)
            }
            Kind::BitMap(integer, class) => {
                let end = self.after_number(node, at, integer.size, integer.order)?;
                (Value::BitMap(self.bits(integer, at), class), end)
            }
            Kind::Boolean(integer) => {
                let end = self.after_number(node, at, integer.size, integer.order)?;
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
                    return Err(fault(node, at, FieldFault::NoNull));
                };
                let length = length * encoding.unit();
                let end = at + 8 * (length + encoding.unit()) as u64;
                (Value::WideText(WideText::new(&bytes[..length], *encoding)), end)
            }
            Kind::WideText { length, encoding } => {
                let end = self.after_bytes(node, at, *length)?;
                (Value::WideText(WideText::new(self.bytes(at, end), *encoding)), end)
            }
            Kind::Blob { length } => {
                let end = self.after_bytes(node, at, *length)?;
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
            Err(Leb128Fault::Oversized) => Err(fault(node, at, FieldFault::Oversized)),
        }
    }

    /// Keeps a value where some length, tag or selector will look for it.
    #[inline]
    fn keep(&self, integer: &Integer, value: u64) {
        if integer.slot != NONE {
            self.slots[integer.slot as usize].set(value);
        }
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
                self.after(node, at, u64::from(integer.size)).ok()?;
                Some(match integer.signed {
                    true => Value::Signed(self.signed(integer, at), class),
                    false => Value::Unsigned(self.unsigned(integer, at, &mut Nothing), class),
                })
            }
            Kind::Enumeration(integer, class) => {
                self.after(node, at, u64::from(integer.size)).ok()?;
                Some(match integer.signed {
                    true => Value::SignedEnumeration(self.signed(integer, at), class),
                    false => Value::UnsignedEnumeration(self.unsigned(integer, at, &mut Nothing), class),
                })
            }
            Kind::Float { size, order, reversed } => {
                self.after(node, at, u64::from(*size)).ok()?;
                Some(self.float(at, *size, *order, *reversed))
            }
            Kind::String => {
                let bytes = self.data.get((at / 8) as usize..(self.limit / 8) as usize)?;
                Some(Value::Text(CStr::from_bytes_until_nul(bytes).ok()?.to_bytes()))
            }
            Kind::Text { length } => {
                let end = self.after(node, at, self.length(*length).checked_mul(8)?).ok()?;
                let bytes = &self.data[(at / 8) as usize..(end / 8) as usize];
                Some(Value::Text(CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes)))
            }
            Kind::Structure { .. } | Kind::Array { .. } | Kind::Optional(_) | Kind::Variant(_) => None,
            _ => self.ctf2_only(node, at, &mut Nothing).ok().map(|(value, _)| value),
        }
    }
}
