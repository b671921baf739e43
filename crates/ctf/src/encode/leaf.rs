//! Writes fields that contain no others.

use super::body::Later;
use super::known;
use super::scalar::{Number, Scalar};
use super::scope::{ScopeWriter, what_is};
use super::{bits, leb128};
use crate::ValueFault;
use crate::decode::program::{Integer, Kind, Length, NONE, Node, Role};
use crate::decode::sink::Sink;
use crate::model::{ByteOrder, Encoding};

/// Maximum bytes of padding that a length field may request after a text; more is assumed to be a mistake.
const MOST_PADDING: u64 = 1 << 28;

impl<'w> ScopeWriter<'w> {
    pub(super) fn write(&mut self, node: &'w Node, scalar: Scalar<'_>) {
        if self.body.error.is_some() {
            return;
        }
        self.body.align(node.align);
        if let Err(fault) = self.leaf(&node.kind, scalar) {
            self.fail(fault);
        }
    }

    fn leaf(&mut self, kind: &'w Kind, scalar: Scalar<'_>) -> Result<(), ValueFault> {
        match kind {
            Kind::Integer(integer, _)
            | Kind::Enumeration(integer, _)
            | Kind::BitArray(integer, _)
            | Kind::BitMap(integer, _)
            | Kind::Boolean(integer) => self.integer(integer, scalar),
            Kind::Variable(integer, _) | Kind::VariableEnumeration(integer, _) => {
                self.variable(integer, scalar)
            }
            Kind::Float { size: 128, order, reversed } => {
                let bits = scalar.real(128)?;
                let bits = if *reversed { bits.reverse_bits() } else { bits };
                let (low, high) = (bits as u64, (bits >> 64) as u64);
                let (first, second) = if *order == ByteOrder::Little { (low, high) } else { (high, low) };
                self.bits(64, *order, first)?;
                self.bits(64, *order, second)
            }
            Kind::Float { size, order, reversed } => {
                let bits = scalar.real(*size)? as u64;
                self.bits(*size, *order, if *reversed { bits::reversed(bits, *size) } else { bits })
            }
            Kind::String => self.terminated(scalar, Encoding::Utf8),
            Kind::WideString(encoding) => self.terminated(scalar, *encoding),
            Kind::Text { length } => self.padded(*length, &scalar.text(Encoding::Utf8)?),
            Kind::WideText { length, encoding } => self.padded(*length, &scalar.text(*encoding)?),
            Kind::Blob { length } if let Scalar::Blob(bytes) = scalar => {
                self.check_length(*length, bytes.len() as u64)?;
                self.body.append(bytes);
                Ok(())
            }
            Kind::Array { length, element } if let Scalar::Blob(bytes) = scalar => {
                self.check_length(*length, bytes.len() as u64)?;
                let element = &self.program.nodes[*element as usize];
                bytes.iter().for_each(|byte| self.write(element, Scalar::Unsigned(u64::from(*byte))));
                Ok(())
            }
            kind => Err(ValueFault::Kind { value: scalar.what(), class: what_is(kind) }),
        }
    }

    fn integer(&mut self, integer: &Integer, scalar: Scalar<'_>) -> Result<(), ValueFault> {
        let room = 64 - integer.size;
        let value = match scalar.number()? {
            Number::Unsigned(value) if !integer.signed && value <= u64::MAX >> room => value,
            Number::Unsigned(value) if integer.signed && value <= i64::MAX as u64 >> room => value,
            Number::Negative(value) if integer.signed && value >= i64::MIN >> room => value as u64,
            number => {
                let (bits, signed) = (integer.size, integer.signed);
                return Err(ValueFault::LargeInteger { value: number.into(), bits, signed });
            }
        };
        let at = self.body.at;
        let bits = if integer.reversed { bits::reversed(value, integer.size) } else { value };
        self.bits(integer.size, integer.order, bits)?;
        self.register(integer, integer.size, value, at, false);
        Ok(())
    }

    /// LEB128.
    fn variable(&mut self, integer: &Integer, scalar: Scalar<'_>) -> Result<(), ValueFault> {
        let mut bytes = Vec::with_capacity(leb128::MOST);
        let value = match scalar.number()? {
            Number::Unsigned(value) if !integer.signed => {
                leb128::unsigned(&mut bytes, value);
                value
            }
            Number::Unsigned(value) if value <= i64::MAX as u64 => {
                leb128::signed(&mut bytes, value as i64);
                value
            }
            Number::Negative(value) if integer.signed => {
                leb128::signed(&mut bytes, value);
                value as u64
            }
            number => {
                let signed = integer.signed;
                return Err(ValueFault::LargeVariable { value: number.into(), signed });
            }
        };
        if self.known.in_packet && known::later(integer.role).is_some() {
            bytes = leb128::longest(value).to_vec();
        }
        let at = self.body.at;
        self.body.append(&bytes);
        self.register(integer, (7 * bytes.len() as u32).min(64), value, at, true);
        Ok(())
    }

    /// Stores an integer that later fields, or readers, depend on.
    fn register(&mut self, integer: &Integer, size: u32, value: u64, at: u64, variable: bool) {
        if integer.slot != NONE {
            self.body.slots[integer.slot as usize].set(value);
        }
        if integer.role != Role::None {
            self.body.roles.mark(integer.role, size, value);
            if let Some(role) = known::later(integer.role).filter(|_| self.known.in_packet) {
                self.body.later.push(Later { role, at, integer: *integer, variable });
            }
        }
    }

    /// A number's bits; the byte order changes only between bytes (specification 1.8.3, section 4.1.5).
    fn bits(&mut self, size: u32, order: ByteOrder, value: u64) -> Result<(), ValueFault> {
        if !self.body.at.is_multiple_of(8) && self.body.last.is_some_and(|last| last != order) {
            return Err(ValueFault::Mixed);
        }
        self.body.bits(size, order, value);
        Ok(())
    }

    /// Text with a terminating null.
    fn terminated(&mut self, scalar: Scalar<'_>, encoding: Encoding) -> Result<(), ValueFault> {
        let text = scalar.text(encoding)?;
        let unit = encoding.unit();
        if text.chunks(unit).any(|unit| unit.iter().all(|byte| *byte == 0)) {
            return Err(ValueFault::Null);
        }
        self.body.append(&text);
        self.body.append(&[0; 4][..unit]);
        Ok(())
    }

    /// Text, padded with nulls to the declared length.
    fn padded(&mut self, length: Length, text: &[u8]) -> Result<(), ValueFault> {
        let room = self.length(length);
        let Some(rest) = room.checked_sub(text.len() as u64) else {
            return Err(ValueFault::LongText { text: text.len(), room });
        };
        if rest > MOST_PADDING {
            return Err(ValueFault::ShortText { text: text.len(), room });
        }
        self.body.append(text);
        let end = self.body.at + 8 * rest;
        self.body.extend_to(end);
        self.body.at = end;
        Ok(())
    }

    fn length(&self, length: Length) -> u64 {
        match length {
            Length::Fixed(length) => length,
            Length::Slot(slot) => self.body.slots[slot as usize].get(),
        }
    }

    pub(super) fn check_length(&self, declared: Length, length: u64) -> Result<(), ValueFault> {
        let expected = self.length(declared);
        if expected == length {
            return Ok(());
        }
        let fixed = matches!(declared, Length::Fixed(_));
        Err(ValueFault::Length { elements: length, expected, fixed })
    }
}
