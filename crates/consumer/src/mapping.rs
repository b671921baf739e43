//! Converts a class description, as sent by a program, to a CTF event record class.
//!
//! The layout in the trace is that of the payload, byte for byte, so events are written without conversion. A
//! field becomes at most two CTF members: a slice is its length and a sequence, an option its tag and a
//! variant. Descriptions may be hostile; one that would produce unreadable metadata is refused with a reason.

use tracewing_abi::schema::{Base, ClassView, FieldView, Level, Scalar, Shape};
use tracewing_ctf::model::{
    DisplayBase, Encoding, EnumerationClass, EventRecordClass, FieldClass, FloatClass, IntegerClass,
    StructureClass, VariantClass,
};

/// Longest name of a class, bytes; LTTng's limit.
const LONGEST_NAME: usize = 255;
/// Longest label, unit or field name, bytes.
const LONGEST_WORD: usize = 255;
/// Largest event, bytes: what its 16-bit length can say.
const LARGEST_EVENT: u64 = u16::MAX as u64;

/// Why a class cannot be described in CTF 1.8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("its name is empty or longer than {LONGEST_NAME} bytes")]
    NameLength,
    #[error("its name has control characters")]
    NameCharacters,
    #[error("a field's name or unit is longer than {LONGEST_WORD} bytes")]
    FieldName,
    #[error("an array is larger than an event can be")]
    Array,
    #[error("an enumeration is not stored as an integer")]
    EnumerationClass,
    #[error("an enumeration's value does not fit its integer")]
    EnumerationValue,
    #[error("an enumeration's label is empty, longer than {LONGEST_WORD} bytes or has control characters")]
    Label,
}

/// A class of a program, translated into an event record class of CTF.
pub(crate) struct Mapped {
    /// The event record class, with `id` still 0.
    pub class: EventRecordClass,
    /// Units by field name in the trace.
    pub units: Vec<(String, String)>,
}

/// Translates a description.
///
/// # Errors
/// What cannot be described in CTF 1.8.
pub(crate) fn map(view: &ClassView<'_>) -> Result<Mapped, Unfit> {
    if view.name.is_empty() || view.name.len() > LONGEST_NAME {
        return Err(Unfit::NameLength);
    }
    if view.name.contains(char::is_control) {
        return Err(Unfit::NameCharacters);
    }
    let mut payload = StructureClass::new();
    let mut units = Vec::new();
    for field in view.fields() {
        if field.unit.len() > LONGEST_WORD || field.name.len() > LONGEST_WORD {
            return Err(Unfit::FieldName);
        }
        let name = unused_name(&payload, &identifier(field.name));
        payload = add_field(payload, &name, &field)?;
        let unit = match field.scalar {
            Scalar::Bool => "bool",
            Scalar::Char => "char",
            _ => field.unit,
        };
        if !unit.is_empty() {
            units.push((name, unit.to_owned()));
        }
    }
    let mut class = EventRecordClass::new(0, view.name).with_payload(payload);
    class.log_level = Some(log_level(view.level));
    Ok(Mapped { class, units })
}

fn add_field(payload: StructureClass, name: &str, field: &FieldView<'_>) -> Result<StructureClass, Unfit> {
    let scalar = || scalar_class(field.scalar, field.base);
    Ok(match field.shape {
        Shape::One => payload.with(name, scalar()),
        Shape::Text => payload.with(name, FieldClass::string()),
        Shape::Array => {
            if u64::from(field.length) * field.scalar.size() as u64 > LARGEST_EVENT {
                return Err(Unfit::Array);
            }
            payload.with(name, FieldClass::array(scalar(), field.length.into()))
        }
        Shape::Slice => {
            let length = format!("_{name}_length");
            let sequence = FieldClass::sequence(scalar(), length.as_str());
            payload.with(length, FieldClass::unsigned(16)).with(name, sequence)
        }
        Shape::Optional => {
            let tag = format!("_{name}_tag");
            let class =
                EnumerationClass::new(IntegerClass::unsigned(8)).with("none", 0, 0).with("some", 1, 1);
            let value =
                VariantClass::new(tag.as_str()).with("none", StructureClass::new()).with("some", scalar());
            payload.with(tag, class).with(name, value)
        }
        Shape::Enumeration => payload.with(name, enumeration(field)?),
    })
}

fn enumeration(field: &FieldView<'_>) -> Result<FieldClass, Unfit> {
    let integer = integer_class(field.scalar, field.base).ok_or(Unfit::EnumerationClass)?;
    let bits = integer.size;
    let mut class = EnumerationClass::new(integer);
    for (value, label) in field.labels() {
        let value = if class.integer.signed { i128::from(value as i64) } else { i128::from(value) };
        let fits = if class.integer.signed {
            (-(1_i128 << (bits - 1))..1_i128 << (bits - 1)).contains(&value)
        } else {
            value < 1_i128 << bits
        };
        if !fits {
            return Err(Unfit::EnumerationValue);
        }
        if label.is_empty() || label.len() > LONGEST_WORD || label.contains(char::is_control) {
            return Err(Unfit::Label);
        }
        class.add(label.to_owned(), value, value);
    }
    // TSDL has no enumeration without labels.
    Ok(if class.mappings.is_empty() { class.integer.into() } else { class.into() })
}

fn scalar_class(scalar: Scalar, base: Base) -> FieldClass {
    let half = || IntegerClass::unsigned(64).with_base(display_base(base));
    match scalar {
        Scalar::F32 => FloatClass::new(32).into(),
        Scalar::F64 => FloatClass::new(64).into(),
        Scalar::Char => FieldClass::array(IntegerClass::unsigned(8).with_encoding(Encoding::Utf8), 4),
        Scalar::U128 => StructureClass::new().with("low", half()).with("high", half()).into(),
        Scalar::I128 => StructureClass::new()
            .with("low", half())
            .with("high", IntegerClass { signed: true, ..half() })
            .into(),
        Scalar::Bool => FieldClass::unsigned(8),
        _ => integer_class(scalar, base).map_or_else(|| FieldClass::unsigned(8), FieldClass::from),
    }
}

/// The class of an integer of at most 64 bits.
fn integer_class(scalar: Scalar, base: Base) -> Option<IntegerClass> {
    let class = match scalar {
        Scalar::U8 => IntegerClass::unsigned(8),
        Scalar::U16 => IntegerClass::unsigned(16),
        Scalar::U32 => IntegerClass::unsigned(32),
        Scalar::U64 => IntegerClass::unsigned(64),
        Scalar::I8 => IntegerClass::signed(8),
        Scalar::I16 => IntegerClass::signed(16),
        Scalar::I32 => IntegerClass::signed(32),
        Scalar::I64 => IntegerClass::signed(64),
        Scalar::F32 | Scalar::F64 | Scalar::Bool | Scalar::Char | Scalar::U128 | Scalar::I128 => return None,
    };
    Some(class.with_base(display_base(base)))
}

fn display_base(base: Base) -> DisplayBase {
    match base {
        Base::Decimal => DisplayBase::Decimal,
        Base::Hexadecimal => DisplayBase::Hexadecimal,
        Base::Octal => DisplayBase::Octal,
        Base::Binary => DisplayBase::Binary,
    }
}

fn log_level(level: Level) -> i64 {
    i64::from(level as u8)
}

/// A field's name with invalid TSDL characters replaced.
pub(crate) fn identifier(name: &str) -> String {
    let cleaned: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if cleaned.is_empty() { "unnamed".to_owned() } else { cleaned }
}

/// `name`, with a number appended if it, or the names that a slice or option adds, are taken.
fn unused_name(payload: &StructureClass, name: &str) -> String {
    let taken = |name: &str| {
        [name, &format!("_{name}_length"), &format!("_{name}_tag")]
            .iter()
            .any(|n| payload.member(n).is_some())
    };
    std::iter::once(name.to_owned())
        .chain((2_u32..).map(|number| format!("{name}_{number}")))
        .find(|candidate| !taken(candidate))
        .unwrap_or_default()
}
