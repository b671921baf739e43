//! Field classes of numbers and bits (CTF2-SPEC-2.0, sections 5.3.3 to 5.3.10).

use std::sync::Arc;

use super::refer::ranges_within;
use super::value::{Object, Value, attributes};
use crate::model::{
    BitArrayClass, BitMapClass, BitOrder, ByteOrder, DisplayBase, EnumerationClass, EnumerationMapping,
    FieldClass, Flag, FloatClass, IntegerClass, Role, Roles,
};
use crate::{Error, JsonFault, Needed};

pub(super) fn bits(object: &mut Object<'_>) -> Result<BitArrayClass, Error> {
    let size = object.require("length")?.integer(1, 64)? as u32;
    let (byte_order, bit_order) = orders(object)?;
    Ok(BitArrayClass {
        size,
        align: alignment(object, "alignment")?.max(1),
        byte_order,
        bit_order,
        attributes: attributes(object)?,
    })
}

/// Byte order, and the bit order if it differs from the default of that byte order.
fn orders(object: &mut Object<'_>) -> Result<(ByteOrder, Option<BitOrder>), Error> {
    let byte_order = object
        .require("byte-order")?
        .word(&[("little-endian", ByteOrder::Little), ("big-endian", ByteOrder::Big)])?;
    let default = match byte_order {
        ByteOrder::Little => BitOrder::FirstToLast,
        ByteOrder::Big => BitOrder::LastToFirst,
    };
    let words = [("first-to-last", BitOrder::FirstToLast), ("last-to-first", BitOrder::LastToFirst)];
    let bit_order = object.get("bit-order").map(|value| value.word(&words)).transpose()?;
    Ok((byte_order, bit_order.filter(|order| *order != default)))
}

/// An alignment in bits; 0 if it is not given.
pub(super) fn alignment(object: &mut Object<'_>, name: &str) -> Result<u32, Error> {
    let Some(value) = object.get(name) else { return Ok(0) };
    match value.unsigned()?.try_into() {
        Ok(bits) if u32::is_power_of_two(bits) => Ok(bits),
        _ => Err(value.error(JsonFault::Expected(Needed::Alignment))),
    }
}

pub(super) fn bit_map(object: &mut Object<'_>) -> Result<FieldClass, Error> {
    let bits = bits(object)?;
    let place = object.require("flags")?;
    let mut flags = Vec::new();
    for (name, value) in place.object()?.entries() {
        let ranges = ranges_within(value, 0, i128::from(bits.size) - 1)?;
        let ranges = ranges.into_iter().map(|(first, last)| (first as u64, last as u64)).collect();
        flags.push(Flag { name, ranges });
    }
    if flags.is_empty() {
        return Err(place.error(JsonFault::NoFlags));
    }
    Ok(FieldClass::BitMap(Arc::new(BitMapClass { bits, flags })))
}

pub(super) fn fixed_integer(object: &mut Object<'_>, signed: bool) -> Result<FieldClass, Error> {
    let BitArrayClass { size, align, byte_order, bit_order, attributes } = bits(object)?;
    let class =
        IntegerClass { align, byte_order, bit_order, attributes, signed, ..IntegerClass::unsigned(size) };
    Ok(match integer(object, class)? {
        (class, mappings) if mappings.is_empty() => FieldClass::Integer(class),
        (integer, mappings) => EnumerationClass { integer, mappings }.into(),
    })
}

pub(super) fn variable_integer(object: &mut Object<'_>, signed: bool) -> Result<FieldClass, Error> {
    let class = IntegerClass { attributes: attributes(object)?, signed, ..IntegerClass::unsigned(64) };
    Ok(match integer(object, class)? {
        (class, mappings) if mappings.is_empty() => FieldClass::VariableInteger(class),
        (integer, mappings) => {
            FieldClass::VariableEnumeration(Arc::new(EnumerationClass { integer, mappings }))
        }
    })
}

/// What integers of fixed and variable length share: base, roles, mappings.
fn integer(
    object: &mut Object<'_>,
    mut class: IntegerClass,
) -> Result<(IntegerClass, Vec<EnumerationMapping>), Error> {
    if let Some(base) = object.get("preferred-display-base") {
        class.base = match base.unsigned()? {
            2 => DisplayBase::Binary,
            8 => DisplayBase::Octal,
            10 => DisplayBase::Decimal,
            16 => DisplayBase::Hexadecimal,
            other => return Err(base.error(JsonFault::Base(other))),
        };
    }
    if !class.signed {
        let others = |role: &Role| *role != Role::MetadataStreamUuid;
        let allowed: Vec<_> = Role::ALL.into_iter().filter(others).collect();
        class.roles = roles(object, &allowed)?;
    }
    let mut mappings = Vec::new();
    if let Some(value) = object.get("mappings") {
        for (label, value) in value.object()?.entries() {
            let ranges = match class.signed {
                true => ranges_within(value, i64::MIN.into(), i64::MAX.into())?,
                false => ranges_within(value, 0, u64::MAX.into())?,
            };
            mappings.push(EnumerationMapping { label, ranges });
        }
    }
    Ok((class, mappings))
}

pub(super) fn roles(object: &mut Object<'_>, allowed: &[Role]) -> Result<Roles, Error> {
    let words: Vec<_> = allowed.iter().map(|role| (role.name(), *role)).collect();
    let names = object.get("roles").map(Value::array).transpose()?.unwrap_or_default();
    names.iter().try_fold(Roles::NONE, |roles, name| Ok(roles.with(name.word(&words)?)))
}

pub(super) fn float(object: &mut Object<'_>) -> Result<FieldClass, Error> {
    let place = object.require("length")?;
    let size = match place.unsigned()? {
        size @ (16 | 32 | 64 | 128) => size as u32,
        size if size > 128 && size.is_multiple_of(32) => {
            return Err(place.error(JsonFault::LargeFloat(size)));
        }
        size => return Err(place.error(JsonFault::FloatSize(size))),
    };
    let (byte_order, bit_order) = orders(object)?;
    let align = alignment(object, "alignment")?.max(1);
    Ok(FloatClass { size, align, byte_order, bit_order, attributes: attributes(object)? }.into())
}
