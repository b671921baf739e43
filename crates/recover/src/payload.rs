//! Whether an event's payload fits its class, by the layout of `tracewing_abi::schema`. A CTF reader would
//! also notice a bad one, but stop there; the events after it are worth reading.

use tracewing_abi::schema::{ClassView, FieldView, Shape};

/// Whether the fields of `class` take exactly the bytes of `payload`.
pub(crate) fn fits(class: &ClassView<'_>, payload: &[u8]) -> bool {
    class
        .fields()
        .try_fold(payload, |rest, field| rest.get(size(&field, rest)?..))
        .is_some_and(<[u8]>::is_empty)
}

/// Bytes of a field at the beginning of `rest`.
fn size(field: &FieldView<'_>, rest: &[u8]) -> Option<usize> {
    let scalar = field.scalar.size();
    match field.shape {
        Shape::One | Shape::Enumeration => Some(scalar),
        Shape::Text => Some(rest.iter().position(|&byte| byte == 0)? + 1),
        Shape::Array => scalar.checked_mul(usize::try_from(field.length).ok()?),
        Shape::Slice => {
            let count = u16::from_le_bytes([*rest.first()?, *rest.get(1)?]);
            Some(2 + scalar * usize::from(count))
        }
        Shape::Optional => match rest.first()? {
            0 => Some(1),
            1 => Some(1 + scalar),
            _ => None,
        },
    }
}
