//! Field classes (CTF2-SPEC-2.0, section 5.3).

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::number::{alignment, bit_map, bits, fixed_integer, float, roles, variable_integer};
use super::parser::{Parser, Sized, Whole};
use super::refer::{joined, location, ranges};
use super::value::{Object, Value, attributes};
use crate::metadata_text::DEEPEST_FIELD_CLASS;
use crate::model::{
    DEFAULT_MEDIA_TYPE, DynamicArrayClass, DynamicBlobClass, DynamicStringClass, Encoding, FieldClass,
    Member, OptionalClass, Role, StaticArrayClass, StaticBlobClass, StaticStringClass, StringClass,
    StructureClass, VariantClass, VariantOption,
};
use crate::{Error, JsonFault, LimitFault};

impl Parser {
    /// A field class that becomes part of the trace class.
    pub(super) fn field_class(&mut self, value: Value<'_>) -> Result<FieldClass, Error> {
        let sized = self.sized_field_class(value, 1)?;
        self.budget = self
            .budget
            .checked_sub(sized.nodes)
            .ok_or_else(|| value.error(LimitFault::Trace(value.most_field_classes())))?;
        Ok(sized.class)
    }

    /// A field class, or an alias's name, `level` deep in others: this recurses.
    pub(super) fn sized_field_class(&self, value: Value<'_>, level: u32) -> Result<Sized, Error> {
        let sized = if value.is_string() {
            let name = value.string()?;
            let alias = self.aliases.get(&name).cloned();
            alias.ok_or_else(|| value.error(JsonFault::NoAlias(name)))?
        } else {
            if level > DEEPEST_FIELD_CLASS {
                return Err(value.error(LimitFault::Depth(DEEPEST_FIELD_CLASS)));
            }
            let mut object = value.object()?;
            let sized = self.class_of_type(&mut object, level)?;
            object.finish()?;
            sized
        };
        if level + sized.depth > DEEPEST_FIELD_CLASS + 1 {
            return Err(value.error(LimitFault::Depth(DEEPEST_FIELD_CLASS)));
        }
        if sized.nodes > value.most_field_classes() {
            return Err(value.error(LimitFault::Parts(value.most_field_classes())));
        }
        Ok(sized)
    }

    fn class_of_type(&self, object: &mut Object<'_>, level: u32) -> Result<Sized, Error> {
        let kind = object.require("type")?;
        let word = kind.string()?;
        match word.as_str() {
            "structure" => self.structure(object, level),
            "static-length-array" => {
                let mut whole = Whole::new();
                let element = self.sized_field_class(object.require("element-field-class")?, level + 1)?;
                let class = StaticArrayClass {
                    length: object.require("length")?.unsigned()?,
                    element: whole.add(element),
                    min_align: alignment(object, "minimum-alignment")?,
                    attributes: attributes(object)?,
                };
                Ok(whole.of(FieldClass::StaticArray(Arc::new(class))))
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
                Ok(whole.of(FieldClass::DynamicArray(Arc::new(class))))
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
                Ok(whole.of(class))
            }
            "variant" => self.variant(object, level),
            other => match leaf(other, object)? {
                Some(class) => Ok(class.into()),
                None => Err(kind.error(JsonFault::FieldClassType(word))),
            },
        }
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
                return Err(place.error(JsonFault::SecondMember(name)));
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
        // First and last values of the disjoint ranges that select earlier options.
        let mut taken: BTreeMap<i128, i128> = BTreeMap::new();
        for option in options.array()? {
            let mut option = option.object()?;
            let name = option.string("name")?.unwrap_or_default();
            if !name.is_empty() && !names.insert(name.clone()) {
                return Err(option.error(JsonFault::SecondOption(name)));
            }
            let place = option.require("selector-field-ranges")?;
            let ranges = ranges(place)?;
            let own = joined(ranges.clone());
            for &(first, last) in &own {
                if taken.range(..=last).next_back().is_some_and(|(_, other)| *other >= first) {
                    return Err(place.error(JsonFault::Taken { first, last }));
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
            return Err(options.error(JsonFault::NoOptions));
        }
        Ok(whole.of(class))
    }
}

/// A field class that contains no others; `None` if no type is called so.
fn leaf(kind: &str, object: &mut Object<'_>) -> Result<Option<FieldClass>, Error> {
    Ok(Some(match kind {
        "fixed-length-bit-array" => FieldClass::BitArray(bits(object)?),
        "fixed-length-boolean" => FieldClass::Boolean(bits(object)?),
        "fixed-length-bit-map" => bit_map(object)?,
        "fixed-length-unsigned-integer" => fixed_integer(object, false)?,
        "fixed-length-signed-integer" => fixed_integer(object, true)?,
        "fixed-length-floating-point-number" => float(object)?,
        "variable-length-unsigned-integer" => variable_integer(object, false)?,
        "variable-length-signed-integer" => variable_integer(object, true)?,
        "null-terminated-string" => {
            let (encoding, attributes) = (encoding(object)?, attributes(object)?);
            FieldClass::String(StringClass { encoding, attributes })
        }
        "static-length-string" => {
            let length = object.require("length")?.unsigned()?;
            let (encoding, attributes) = (encoding(object)?, attributes(object)?);
            FieldClass::StaticString(Arc::new(StaticStringClass { length, encoding, attributes }))
        }
        "dynamic-length-string" => {
            let length = location(object, "length-field-location")?;
            let (encoding, attributes) = (encoding(object)?, attributes(object)?);
            FieldClass::DynamicString(Arc::new(DynamicStringClass { length, encoding, attributes }))
        }
        "static-length-blob" => {
            let length = object.require("length")?.unsigned()?;
            let (media_type, roles) = (media_type(object)?, roles(object, &[Role::MetadataStreamUuid])?);
            let attributes = attributes(object)?;
            FieldClass::StaticBlob(Arc::new(StaticBlobClass { length, media_type, roles, attributes }))
        }
        "dynamic-length-blob" => {
            let length = location(object, "length-field-location")?;
            let (media_type, attributes) = (media_type(object)?, attributes(object)?);
            FieldClass::DynamicBlob(Arc::new(DynamicBlobClass { length, media_type, attributes }))
        }
        _ => return Ok(None),
    }))
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
