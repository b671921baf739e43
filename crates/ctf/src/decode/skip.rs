//! How far fields can be stepped over without a look.

use super::program::{Kind, Length, NONE, Program, Role};

/// The field has no size that is known before its data are.
const UNKNOWN: u64 = u64::MAX;

/// Sets how far each node below and including `index` can be skipped; gives that of `index`.
pub(super) fn set_skips(program: &mut Program, index: usize) -> u64 {
    let skip = match &program.nodes[index].kind {
        Kind::BitArray(integer, _)
        | Kind::BitMap(integer, _)
        | Kind::Boolean(integer)
        | Kind::Integer(integer, _)
        | Kind::Enumeration(integer, _) => {
            if integer.slot == NONE && integer.role == Role::None {
                u64::from(integer.size)
            } else {
                UNKNOWN
            }
        }
        Kind::Float { size, .. } => u64::from(*size),
        Kind::Text { length: Length::Fixed(length) }
        | Kind::WideText { length: Length::Fixed(length), .. }
        | Kind::Blob { length: Length::Fixed(length) } => length.checked_mul(8).unwrap_or(UNKNOWN),
        Kind::Variable(..)
        | Kind::VariableEnumeration(..)
        | Kind::String
        | Kind::WideString(_)
        | Kind::Text { .. }
        | Kind::WideText { .. }
        | Kind::Blob { .. } => UNKNOWN,
        Kind::Optional(optional) => {
            let field = optional.field as usize;
            set_skips(program, field);
            UNKNOWN
        }
        Kind::Structure { first, count, .. } => {
            let mut size = Some(0_u64);
            for child in *first..*first + *count {
                let skip = set_skips(program, child as usize);
                let align = u64::from(program.nodes[child as usize].align);
                size = match skip {
                    UNKNOWN => None,
                    skip => size.and_then(|at| at.checked_next_multiple_of(align)?.checked_add(skip)),
                };
            }
            size.unwrap_or(UNKNOWN)
        }
        Kind::Array { length, element } => {
            let (length, element) = (*length, *element as usize);
            let skip = set_skips(program, element);
            of_array(length, skip, u64::from(program.nodes[element].align))
        }
        Kind::Variant(variant) => {
            for child in variant.first..variant.first + variant.count {
                set_skips(program, child as usize);
            }
            UNKNOWN
        }
    };
    program.nodes[index].skip = skip;
    skip
}

/// Of an array of elements that are each of `skip` bits.
fn of_array(length: Length, skip: u64, align: u64) -> u64 {
    match (length, skip) {
        (Length::Slot(_), _) | (_, UNKNOWN) => UNKNOWN,
        (Length::Fixed(0), _) => 0,
        // The possible number of them is checked.
        (Length::Fixed(_), 0) => UNKNOWN,
        (Length::Fixed(length), skip) => skip
            .checked_next_multiple_of(align)
            .and_then(|stride| stride.checked_mul(length - 1)?.checked_add(skip))
            .unwrap_or(UNKNOWN),
    }
}
