//! Whether the bytes of an event's payload are one of its class, as `tracewing_abi::schema` lays payloads
//! out. A reader of CTF would find out, too, and stop there; what lies behind such an event is worth reading.

use tracewing_abi::schema::{ClassView, FieldView, Shape};

/// Whether the fields of `class` take all bytes of `payload`, and no more.
pub(crate) fn fits(class: &ClassView<'_>, payload: &[u8]) -> bool {
    class
        .fields()
        .try_fold(payload, |rest, field| rest.get(size(&field, rest)?..))
        .is_some_and(<[u8]>::is_empty)
}

/// Bytes that a field takes of `rest`, which begins with it.
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
