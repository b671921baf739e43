//! What field classes have inside, as users name it.

use crate::select::values::Step;
use tracewing_ctf::model::{
    Encoding, EnumerationClass, FieldClass, IntegerClass, Member, StructureClass, VariantClass,
};
use tracewing_rules::{Problem, Type, Variable};

/// The members of a structure.
pub(super) fn members(class: &StructureClass) -> Vec<(&str, &FieldClass)> {
    class.members.iter().map(|member| (member.name.as_str(), &member.class)).collect()
}

/// The members of a structure, or the options of a variant.
pub(super) fn parts(class: &FieldClass) -> Vec<(&str, &FieldClass)> {
    match class {
        FieldClass::Structure(class) => members(class),
        FieldClass::Variant(class) => {
            class.options.iter().map(|option| (option.name.as_str(), &option.class)).collect()
        }
        _ => Vec::new(),
    }
}

/// The members that a user may ask for.
pub(super) fn names(members: &[(&str, &FieldClass)], prefix: &str) -> Vec<String> {
    let shown = members.iter().filter(|(name, _)| !name.starts_with('_'));
    shown.map(|(name, _)| format!("{prefix}{name}")).collect()
}

/// The path so far, as it precedes a member's name.
pub(super) fn joined(steps: &[Step]) -> String {
    let mut way = String::new();
    for step in steps {
        match step {
            Step::Name(name) if way.is_empty() => way += name,
            Step::Name(name) => way += &format!(".{name}"),
            Step::Index(index) => way += &format!("[{index}]"),
        }
    }
    if way.is_empty() { way } else { way + "." }
}

/// An array of text bytes is decoded to one text; so is a string.
pub(super) fn is_text(class: &FieldClass) -> bool {
    let byte = |class: &FieldClass| {
        matches!(class, FieldClass::Integer(IntegerClass { size: 8, align: 8, encoding, .. })
            if *encoding != Encoding::None)
    };
    match class {
        FieldClass::String(_) | FieldClass::StaticString(_) | FieldClass::DynamicString(_) => true,
        FieldClass::StaticArray(array) => byte(&array.element),
        FieldClass::DynamicArray(array) => byte(&array.element),
        _ => false,
    }
}

/// Text in UTF-16 or UTF-32 is converted to UTF-8 for the comparison.
pub(super) fn is_wide_text(class: &FieldClass) -> bool {
    let encoding = match class {
        FieldClass::String(class) => class.encoding,
        FieldClass::StaticString(class) => class.encoding,
        FieldClass::DynamicString(class) => class.encoding,
        _ => return false,
    };
    encoding.unit() > 1
}

/// As `tracewing-consumer` writes an optional field.
pub(super) const SOME: &str = "some";

pub(super) const NONE: &str = "none";

/// The value's class, if the variant is an optional field.
pub(super) fn optional(class: &VariantClass) -> Option<&FieldClass> {
    match &class.options[..] {
        [none, some] if none.name == NONE && some.name == SOME => match &none.class {
            FieldClass::Structure(nothing) if nothing.members.is_empty() => Some(&some.class),
            _ => None,
        },
        _ => None,
    }
}

/// As `tracewing-consumer` writes an integer of 128 bits.
pub(super) const LOW: &str = "low";

pub(super) const HIGH: &str = "high";

pub(super) fn is_wide(class: &StructureClass) -> bool {
    let half = |member: &Member, name: &str| {
        member.name == name && matches!(&member.class, FieldClass::Integer(IntegerClass { size: 64, .. }))
    };
    matches!(&class.members[..], [low, high] if half(low, LOW) && half(high, HIGH))
}

pub(super) fn labels(class: &EnumerationClass) -> Type {
    let ranges = class.mappings.iter().flat_map(|mapping| {
        mapping.ranges.iter().map(|&(first, last)| (first.into()..=last.into(), mapping.label.clone()))
    });
    Type::Enumeration(ranges.collect())
}

/// The element of an array that the variable's index names; `None` where neither has several values.
pub(super) fn indexed<'t>(
    class: &'t FieldClass,
    variable: &Variable,
) -> Result<Option<(u64, &'t FieldClass)>, Problem> {
    let element = match class {
        class if is_text(class) => None,
        FieldClass::StaticArray(array) => Some((&array.element, Some(array.length))),
        FieldClass::DynamicArray(array) => Some((&array.element, None)),
        _ => None,
    };
    match (element, variable.index.map(u64::from)) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Problem::Single(variable.clone())),
        (Some(_), None) => Err(Problem::Several(variable.clone())),
        (Some((_, Some(length))), Some(index)) if index >= length => {
            Err(Problem::AfterEnd(variable.clone(), length))
        }
        (Some((element, _)), Some(index)) => Ok(Some((index, element))),
    }
}
