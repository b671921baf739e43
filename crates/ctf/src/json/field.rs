//! Field classes (CTF2-SPEC-2.0, section 5.3).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::fragment::attributes;
use super::parse::Parser;
use super::value::{Object, Value};
use crate::Error;
use crate::metadata::DEEPEST_FIELD_CLASS;
use crate::model::{
    BitArrayClass, BitMapClass, BitOrder, ByteOrder, DEFAULT_MEDIA_TYPE, DisplayBase, DynamicArrayClass,
    DynamicBlobClass, DynamicStringClass, Encoding, EnumerationClass, EnumerationMapping, FieldClass,
    FieldLocation, Flag, FloatClass, IntegerClass, Member, OptionalClass, Origin, Role, Roles, Scope,
    StaticArrayClass, StaticBlobClass, StaticStringClass, StringClass, StructureClass, VariantClass,
    VariantOption,
};

/// A field class, how many it consists of, and how deep they are nested.
#[derive(Clone)]
pub(super) struct Sized {
    pub(super) class: FieldClass,
    nodes: u64,
    depth: u32,
}

impl From<FieldClass> for Sized {
    fn from(class: FieldClass) -> Self {
        Sized { class, nodes: 1, depth: 1 }
    }
}

/// What a compound of field classes amounts to.
struct Whole {
    nodes: u64,
    depth: u32,
}

impl Whole {
    fn new() -> Self {
        Whole { nodes: 1, depth: 1 }
    }

    fn add(&mut self, part: Sized) -> FieldClass {
        self.nodes = self.nodes.saturating_add(part.nodes);
        self.depth = self.depth.max(part.depth + 1);
        part.class
    }

    fn of(self, class: impl Into<FieldClass>) -> Sized {
        Sized { class: class.into(), nodes: self.nodes, depth: self.depth }
    }
}

impl Parser {
    /// A field class that becomes part of the trace class.
    pub(super) fn field_class(&mut self, value: Value<'_>) -> Result<FieldClass, Error> {
        let sized = self.sized_field_class(value, 1)?;
        self.budget = self.budget.checked_sub(sized.nodes).ok_or_else(|| {
            value.error(format!(
                "with this the trace has more than {} field classes",
                value.most_field_classes()
            ))
        })?;
        Ok(sized.class)
    }

    /// A field class, or an alias's name, `level` deep in others: this recurses.
    pub(super) fn sized_field_class(&self, value: Value<'_>, level: u32) -> Result<Sized, Error> {
        let sized = if value.is_string() {
            let name = value.string()?;
            let alias = self.aliases.get(&name).cloned();
            alias.ok_or_else(|| {
                value.error(format!("there is no field class alias called `{name}` before this"))
            })?
        } else {
            if level > DEEPEST_FIELD_CLASS {
                return Err(
                    value.error(format!("field classes are nested more than {DEEPEST_FIELD_CLASS} deep"))
                );
            }
            let mut object = value.object()?;
            let sized = self.class_of_type(&mut object, level)?;
            object.finish()?;
            sized
        };
        if level + sized.depth > DEEPEST_FIELD_CLASS + 1 {
            return Err(value.error(format!("field classes are nested more than {DEEPEST_FIELD_CLASS} deep")));
        }
        if sized.nodes > value.most_field_classes() {
            let most = value.most_field_classes();
            let message = format!("this field class consists of more than {most} others");
            return Err(value.error(message));
        }
        Ok(sized)
    }

    fn class_of_type(&self, object: &mut Object<'_>, level: u32) -> Result<Sized, Error> {
        let kind = object.require("type")?;
        Ok(match kind.string()?.as_str() {
            "fixed-length-bit-array" => FieldClass::BitArray(bits(object)?).into(),
            "fixed-length-boolean" => FieldClass::Boolean(bits(object)?).into(),
            "fixed-length-bit-map" => bit_map(object)?.into(),
            "fixed-length-unsigned-integer" => fixed_integer(object, false)?.into(),
            "fixed-length-signed-integer" => fixed_integer(object, true)?.into(),
            "fixed-length-floating-point-number" => float(object)?.into(),
            "variable-length-unsigned-integer" => variable_integer(object, false)?.into(),
            "variable-length-signed-integer" => variable_integer(object, true)?.into(),
            "null-terminated-string" => {
                let (encoding, attributes) = (encoding(object)?, attributes(object)?);
                FieldClass::String(StringClass { encoding, attributes }).into()
            }
            "static-length-string" => {
                let length = object.require("length")?.unsigned()?;
                let (encoding, attributes) = (encoding(object)?, attributes(object)?);
                FieldClass::StaticString(Arc::new(StaticStringClass { length, encoding, attributes })).into()
            }
            "dynamic-length-string" => {
                let length = location(object, "length-field-location")?;
                let (encoding, attributes) = (encoding(object)?, attributes(object)?);
                FieldClass::DynamicString(Arc::new(DynamicStringClass { length, encoding, attributes }))
                    .into()
            }
            "static-length-blob" => {
                let length = object.require("length")?.unsigned()?;
                let (media_type, roles) = (media_type(object)?, roles(object, &[Role::MetadataStreamUuid])?);
                let attributes = attributes(object)?;
                FieldClass::StaticBlob(Arc::new(StaticBlobClass { length, media_type, roles, attributes }))
                    .into()
            }
            "dynamic-length-blob" => {
                let length = location(object, "length-field-location")?;
                let (media_type, attributes) = (media_type(object)?, attributes(object)?);
                FieldClass::DynamicBlob(Arc::new(DynamicBlobClass { length, media_type, attributes })).into()
            }
            "structure" => self.structure(object, level)?,
            "static-length-array" => {
                let mut whole = Whole::new();
                let element = self.sized_field_class(object.require("element-field-class")?, level + 1)?;
                let class = StaticArrayClass {
                    length: object.require("length")?.unsigned()?,
                    element: whole.add(element),
                    min_align: alignment(object, "minimum-alignment")?,
                    attributes: attributes(object)?,
                };
                whole.of(FieldClass::StaticArray(Arc::new(class)))
            }
            "dynamic-length-array" => {
                let mut whole = Whole::new();
                let element = self.sized_field_class(object.require("element-field-class")?, level + 1)?;
                let class = DynamicArrayClass {
                    length: location(object, "length-field-location")?,
                    element: whole.add(element),
                    min_align: alignment(object, "minimum-alignment")?,
                    attributes: attributes(object)?,
                };
                whole.of(FieldClass::DynamicArray(Arc::new(class)))
            }
            "optional" => {
                let mut whole = Whole::new();
                let class = self.sized_field_class(object.require("field-class")?, level + 1)?;
                let ranges = object.get("selector-field-ranges").map(ranges).transpose()?;
                let class = OptionalClass {
                    selector: location(object, "selector-field-location")?,
                    ranges: ranges.unwrap_or_default(),
                    class: whole.add(class),
                    attributes: attributes(object)?,
                };
                whole.of(class)
            }
            "variant" => self.variant(object, level)?,
            other => return Err(kind.error(format!("unknown field class type `{other}`"))),
        })
    }

    fn structure(&self, object: &mut Object<'_>, level: u32) -> Result<Sized, Error> {
        let mut whole = Whole::new();
        let mut names = HashSet::new();
        let mut class =
            StructureClass { min_align: alignment(object, "minimum-alignment")?, ..StructureClass::new() };
        class.attributes = attributes(object)?;
        let members = object.get("member-classes").map(Value::array).transpose()?;
        for member in members.unwrap_or_default() {
            let mut member = member.object()?;
            let place = member.require("name")?;
            let name = place.string()?;
            if !names.insert(name.clone()) {
                return Err(place.error(format!("a second member called `{name}`")));
            }
            let field = self.sized_field_class(member.require("field-class")?, level + 1)?;
            let attributes = attributes(&mut member)?;
            member.finish()?;
            class.members.push(Member { name, class: whole.add(field), attributes, place: place.place() });
        }
        Ok(whole.of(class))
    }

    fn variant(&self, object: &mut Object<'_>, level: u32) -> Result<Sized, Error> {
        let mut whole = Whole::new();
        let mut class = VariantClass::new(location(object, "selector-field-location")?);
        class.attributes = attributes(object)?;
        let options = object.require("options")?;
        let mut names = HashSet::new();
        // First and last values of the ranges that select an option before; none of them meet.
        let mut taken: BTreeMap<i128, i128> = BTreeMap::new();
        for option in options.array()? {
            let mut option = option.object()?;
            let name = option.string("name")?.unwrap_or_default();
            if !name.is_empty() && !names.insert(name.clone()) {
                return Err(option.error(format!("a second option called `{name}`")));
            }
            let place = option.require("selector-field-ranges")?;
            let ranges = ranges(place)?;
            let own = joined(ranges.clone());
            for &(first, last) in &own {
                if taken.range(..=last).next_back().is_some_and(|(_, other)| *other >= first) {
                    return Err(place.error(format!("[{first}, {last}] selects another option already")));
                }
            }
            taken.extend(own);
            let field = self.sized_field_class(option.require("field-class")?, level + 1)?;
            let attributes = attributes(&mut option)?;
            option.finish()?;
            let (class_of_option, place) = (whole.add(field), option.place());
            class.options.push(VariantOption { name, ranges, class: class_of_option, attributes, place });
        }
        if class.options.is_empty() {
            return Err(options.error("a variant has one option at least"));
        }
        Ok(whole.of(class))
    }
}

fn bits(object: &mut Object<'_>) -> Result<BitArrayClass, Error> {
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

/// Byte order, and bit order where it is not what follows from that.
fn orders(object: &mut Object<'_>) -> Result<(ByteOrder, Option<BitOrder>), Error> {
    let byte_order = object
        .require("byte-order")?
        .word(&[("little-endian", ByteOrder::Little), ("big-endian", ByteOrder::Big)])?;
    let usual = match byte_order {
        ByteOrder::Little => BitOrder::FirstToLast,
        ByteOrder::Big => BitOrder::LastToFirst,
    };
    let words = [("first-to-last", BitOrder::FirstToLast), ("last-to-first", BitOrder::LastToFirst)];
    let bit_order = object.get("bit-order").map(|value| value.word(&words)).transpose()?;
    Ok((byte_order, bit_order.filter(|order| *order != usual)))
}

/// An alignment in bits; 0 where there is none.
fn alignment(object: &mut Object<'_>, name: &str) -> Result<u32, Error> {
    let Some(value) = object.get(name) else { return Ok(0) };
    match value.unsigned()?.try_into() {
        Ok(bits) if u32::is_power_of_two(bits) => Ok(bits),
        _ => Err(value.error("expected an alignment: a power of two, in bits")),
    }
}

fn bit_map(object: &mut Object<'_>) -> Result<FieldClass, Error> {
    let bits = bits(object)?;
    let place = object.require("flags")?;
    let mut flags = Vec::new();
    for (name, value) in place.object()?.entries() {
        let ranges = ranges(value)?;
        if ranges.iter().any(|&(first, _)| first < 0) {
            return Err(value.error("expected indices of bits, which are not negative"));
        }
        let ranges = ranges.into_iter().map(|(first, last)| (first as u64, last as u64)).collect();
        flags.push(Flag { name, ranges });
    }
    if flags.is_empty() {
        return Err(place.error("a bit map has one flag at least"));
    }
    Ok(FieldClass::BitMap(Arc::new(BitMapClass { bits, flags })))
}

fn fixed_integer(object: &mut Object<'_>, signed: bool) -> Result<FieldClass, Error> {
    let BitArrayClass { size, align, byte_order, bit_order, attributes } = bits(object)?;
    let class =
        IntegerClass { align, byte_order, bit_order, attributes, signed, ..IntegerClass::unsigned(size) };
    Ok(match integer(object, class)? {
        (class, mappings) if mappings.is_empty() => FieldClass::Integer(class),
        (integer, mappings) => EnumerationClass { integer, mappings }.into(),
    })
}

fn variable_integer(object: &mut Object<'_>, signed: bool) -> Result<FieldClass, Error> {
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
            other => return Err(base.error(format!("base {other}; expected 2, 8, 10 or 16"))),
        };
    }
    if !class.signed {
        class.roles = roles(object, &Role::ALL)?;
    }
    let mut mappings = Vec::new();
    if let Some(value) = object.get("mappings") {
        for (label, value) in value.object()?.entries() {
            mappings.push(EnumerationMapping { label, ranges: ranges(value)? });
        }
    }
    Ok((class, mappings))
}

fn roles(object: &mut Object<'_>, allowed: &[Role]) -> Result<Roles, Error> {
    let words: Vec<_> = allowed.iter().map(|role| (role.name(), *role)).collect();
    let names = object.get("roles").map(Value::array).transpose()?.unwrap_or_default();
    names.iter().try_fold(Roles::NONE, |roles, name| Ok(roles.with(name.word(&words)?)))
}

fn float(object: &mut Object<'_>) -> Result<FieldClass, Error> {
    let place = object.require("length")?;
    let size = match place.unsigned()? {
        size @ (16 | 32 | 64 | 128) => size as u32,
        size if size > 128 && size.is_multiple_of(32) => {
            return Err(
                place.error(format!("floating point numbers of {size} bits are not supported; of 128 are"))
            );
        }
        size => return Err(place.error(format!("{size} bits; expected 16, 32, 64 or 128"))),
    };
    let (byte_order, bit_order) = orders(object)?;
    let align = alignment(object, "alignment")?.max(1);
    Ok(FloatClass { size, align, byte_order, bit_order, attributes: attributes(object)? }.into())
}

fn encoding(object: &mut Object<'_>) -> Result<Encoding, Error> {
    let words = [
        ("utf-8", Encoding::Utf8),
        ("utf-16be", Encoding::Utf16Be),
        ("utf-16le", Encoding::Utf16Le),
        ("utf-32be", Encoding::Utf32Be),
        ("utf-32le", Encoding::Utf32Le),
    ];
    Ok(object.get("encoding").map(|value| value.word(&words)).transpose()?.unwrap_or(Encoding::Utf8))
}

fn media_type(object: &mut Object<'_>) -> Result<String, Error> {
    Ok(object.string("media-type")?.unwrap_or_else(|| DEFAULT_MEDIA_TYPE.to_owned()))
}

/// An integer range set (section 5.3.2).
fn ranges(value: Value<'_>) -> Result<Vec<(i128, i128)>, Error> {
    const BOUNDS: (i128, i128) = (i64::MIN as i128, u64::MAX as i128);
    let ranges = value.array()?;
    if ranges.is_empty() {
        return Err(value.error("expected one range at least"));
    }
    let range = |range: Value<'_>| match range.array()?.as_slice() {
        [first, last] => {
            let (first, last) = (first.integer(BOUNDS.0, BOUNDS.1)?, last.integer(BOUNDS.0, BOUNDS.1)?);
            match first <= last {
                true => Ok((first, last)),
                false => Err(range.error(format!("the range from {first} to {last} is empty"))),
            }
        }
        _ => Err(range.error("expected a range: its first and its last integer")),
    };
    ranges.into_iter().map(range).collect()
}

/// The same values in ranges that do not meet.
fn joined(mut ranges: Vec<(i128, i128)>) -> Vec<(i128, i128)> {
    ranges.sort_unstable();
    ranges.dedup_by(|next, before| {
        let meet = next.0 <= before.1;
        if meet {
            before.1 = before.1.max(next.1);
        }
        meet
    });
    ranges
}

/// A field location (section 5.3.1).
fn location(object: &mut Object<'_>, name: &str) -> Result<FieldLocation, Error> {
    let place = object.require(name)?;
    let mut location = place.object()?;
    let origins = [
        ("packet-header", Scope::PacketHeader),
        ("packet-context", Scope::PacketContext),
        ("event-record-header", Scope::EventHeader),
        ("event-record-common-context", Scope::CommonContext),
        ("event-record-specific-context", Scope::SpecificContext),
        ("event-record-payload", Scope::Payload),
    ];
    let origin = location.get("origin").map(|value| value.word(&origins)).transpose()?;
    let steps = location.require("path")?;
    location.finish()?;
    let (mut up, mut path, mut last) = (0, Vec::new(), None);
    for step in steps.array()? {
        last = Some(step);
        if !step.is_null() {
            path.push(step.string()?);
        } else if path.pop().is_none() {
            // Back from a member to the structure it is in goes nowhere; only the others leave structures.
            if origin.is_some() {
                return Err(step.error("nothing contains the root of a scope"));
            }
            up += 1;
        }
    }
    if last.is_none_or(|last| last.is_null()) {
        return Err(last.unwrap_or(steps).error("expected a member's name at the end of the path"));
    }
    let origin = origin.map_or(Origin::Relative { up }, Origin::Scope);
    Ok(FieldLocation { place: steps.place(), ..FieldLocation::new(origin, path) })
}
