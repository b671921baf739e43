//! Field classes in words: `u32`, `i64 hex`, `string`, `u8[16]`, `u64[len]`,
//! `enum u8 { idle = 0, busy = 1..3 }`.

use std::fmt::Write;
use tracewing_ctf::model::{
    DisplayBase, Encoding, EnumerationClass, FieldClass, FieldLocation, IntegerClass,
};

/// Most labels of an enumeration that are named.
const MAX_LABELS: usize = 16;

/// The type of a field, for people.
pub(crate) fn field(class: &FieldClass) -> String {
    match class {
        FieldClass::BitArray(class) => format!("bits[{}]", class.size),
        FieldClass::BitMap(class) => {
            let flags: Vec<_> = class.flags.iter().map(|flag| flag.name.as_str()).collect();
            format!("flags[{}] {{ {} }}", class.bits.size, flags.join(", "))
        }
        FieldClass::Boolean(_) => "bool".to_owned(),
        FieldClass::Integer(class) => integer(class),
        FieldClass::VariableInteger(class) => format!("{} leb128", integer(class)),
        FieldClass::Float(class) => format!("f{}", class.size),
        FieldClass::Enumeration(class) => enumeration(class),
        FieldClass::VariableEnumeration(class) => format!("{} leb128", enumeration(class)),
        FieldClass::String(_) => "string".to_owned(),
        FieldClass::StaticString(class) => format!("text[{}]", class.length),
        FieldClass::DynamicString(class) => format!("text[{}]", location(&class.length)),
        FieldClass::StaticBlob(class) => format!("blob[{}]", class.length),
        FieldClass::DynamicBlob(class) => format!("blob[{}]", location(&class.length)),
        FieldClass::Optional(class) => {
            format!("optional <{}> {}", location(&class.selector), field(&class.class))
        }
        FieldClass::Structure(class) => {
            let members = class.members.iter().map(|member| (member.name.as_str(), &member.class));
            format!("struct {}", parts(members))
        }
        FieldClass::Variant(class) => {
            let options = class.options.iter().map(|option| (option.name.as_str(), &option.class));
            format!("variant <{}> {}", location(&class.tag), parts(options))
        }
        FieldClass::StaticArray(class) if is_text(&class.element) => format!("text[{}]", class.length),
        FieldClass::StaticArray(class) => format!("{}[{}]", field(&class.element), class.length),
        FieldClass::DynamicArray(class) if is_text(&class.element) => {
            format!("text[{}]", location(&class.length))
        }
        FieldClass::DynamicArray(class) => format!("{}[{}]", field(&class.element), location(&class.length)),
    }
}

fn is_text(class: &FieldClass) -> bool {
    matches!(class, FieldClass::Integer(class) if class.size == 8 && class.encoding != Encoding::None)
}

fn integer(class: &IntegerClass) -> String {
    let base = match class.base {
        DisplayBase::Binary => " binary",
        DisplayBase::Octal => " octal",
        DisplayBase::Decimal => "",
        DisplayBase::Hexadecimal => " hex",
    };
    format!("{}{}{base}", if class.signed { 'i' } else { 'u' }, class.size)
}

fn enumeration(class: &EnumerationClass) -> String {
    let mut text = format!("enum {} {{", integer(&class.integer));
    for (index, mapping) in class.mappings.iter().take(MAX_LABELS).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing to memory cannot fail.
        let _ = write!(text, "{comma} {} =", mapping.label);
        for (first, last) in &mapping.ranges {
            let _ = if first == last { write!(text, " {first}") } else { write!(text, " {first}..{last}") };
        }
    }
    if class.mappings.len() > MAX_LABELS {
        text.push_str(", …");
    }
    text.push_str(" }");
    text
}

fn parts<'c>(parts: impl Iterator<Item = (&'c str, &'c FieldClass)>) -> String {
    let texts: Vec<_> = parts.map(|(name, class)| format!("{name} {}", field(class))).collect();
    format!("{{ {} }}", texts.join(", "))
}

fn location(location: &FieldLocation) -> String {
    location.path.join(".")
}

#[cfg(test)]
mod tests {
    use super::field;
    use tracewing_ctf::model::{
        DisplayBase, Encoding, EnumerationClass, FieldClass, IntegerClass, StructureClass,
    };

    #[test]
    fn every_kind() {
        let cases: [(FieldClass, &str); 8] = [
            (FieldClass::unsigned(32), "u32"),
            (IntegerClass::signed(64).with_base(DisplayBase::Hexadecimal).into(), "i64 hex"),
            (FieldClass::float(64), "f64"),
            (FieldClass::string(), "string"),
            (FieldClass::array(IntegerClass::unsigned(8).with_encoding(Encoding::Utf8), 16), "text[16]"),
            (FieldClass::sequence(FieldClass::unsigned(8), "length"), "u8[length]"),
            (
                EnumerationClass::new(IntegerClass::unsigned(8)).with("idle", 0, 0).with("busy", 1, 3).into(),
                "enum u8 { idle = 0, busy = 1..3 }",
            ),
            (StructureClass::new().with("a", FieldClass::unsigned(8)).into(), "struct { a u8 }"),
        ];
        for (class, expected) in cases {
            assert_eq!(field(&class), expected);
        }
    }
}
