//! Types: how the kernel can fetch them, and how they are passed to functions.

use gimli::{AttributeValue, Operation};

use super::dwarf::Node;
use crate::probes::VariableFault;
use crate::probes::place::Place;
use crate::probes::request::Member;

/// Maximum chain of type aliases and qualifiers.
const LONGEST_CHAIN: usize = 32;

/// A type, as far as it matters here.
pub(super) enum Kind<'d> {
    Integer {
        signed: bool,
        bytes: u64,
    },
    Pointer(Option<Node<'d>>),
    Structure(Node<'d>),
    /// The type of the elements.
    Array(Option<Node<'d>>),
    Float {
        bytes: u64,
    },
    Unknown,
}

/// How a parameter is passed to a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// In a register for integers.
    Register,
    /// In two registers, like two integers.
    Pair,
    /// In a vector register.
    Vector,
    Memory,
    /// Depends on its members.
    Unknown,
}

/// The type itself, without aliases and qualifiers.
fn real<'d>(node: &Node<'d>) -> Option<Node<'d>> {
    let mut node = node.clone();
    for _ in 0..LONGEST_CHAIN {
        match node.tag()? {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => {
                node = node.follow(gimli::DW_AT_type)?;
            }
            _ => return Some(node),
        }
    }
    None
}

impl<'d> Kind<'d> {
    pub(super) fn of(node: &Node<'d>) -> Self {
        let Some(node) = real(node) else { return Self::Unknown };
        let bytes = node.number(gimli::DW_AT_byte_size).unwrap_or(0);
        match node.tag() {
            Some(gimli::DW_TAG_base_type) => match is_signed(&node) {
                Some(signed) => Self::Integer { signed, bytes },
                None => Self::Float { bytes },
            },
            Some(gimli::DW_TAG_enumeration_type) => {
                let of = node.follow(gimli::DW_AT_type).and_then(|of| real(&of));
                Self::Integer { signed: of.and_then(|of| is_signed(&of)).unwrap_or(false), bytes }
            }
            Some(
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type,
            ) => Self::Pointer(node.follow(gimli::DW_AT_type).and_then(|to| real(&to))),
            Some(gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type) => {
                Self::Structure(node)
            }
            Some(gimli::DW_TAG_array_type) => {
                Self::Array(node.follow(gimli::DW_AT_type).and_then(|of| real(&of)))
            }
            _ => Self::Unknown,
        }
    }

    /// The kernel's expression for a value of this type, or the reason why there is none.
    pub(super) fn fetch(&self, place: Place) -> Result<String, VariableFault> {
        match self {
            Self::Integer { signed, bytes: bytes @ (1 | 2 | 4 | 8) } => {
                Ok(place.fetch(&format!("{}{}", if *signed { 's' } else { 'u' }, bytes * 8)))
            }
            Self::Integer { bytes, .. } => Err(VariableFault::NumberSize(*bytes)),
            Self::Pointer(Some(to)) if is_char(to) => Ok(place.fetch_as("string")),
            Self::Pointer(_) => Ok(place.fetch("x64")),
            Self::Array(Some(of)) if is_char(of) => Ok(place.fetch("string")),
            Self::Array(_) => Err(VariableFault::Array),
            Self::Structure(node) => Err(without_members(node)),
            Self::Float { .. } => Err(VariableFault::Float),
            Self::Unknown => Err(VariableFault::UnknownType),
        }
    }

    /// Whether the caller of a function that returns it passes an address for it.
    pub(super) fn is_large(&self) -> bool {
        matches!(self, Self::Structure(node) if node.number(gimli::DW_AT_byte_size).is_some_and(|bytes| bytes > 16))
    }

    pub(super) fn passed(&self, in_rust: bool) -> Passed {
        match self {
            Self::Integer { bytes: ..=8, .. } | Self::Pointer(_) => Passed::Register,
            Self::Float { bytes: ..=8 } => Passed::Vector,
            Self::Structure(node) if in_rust && is_fat_pointer(node) => Passed::Pair,
            // C++ types that must not be copied byte by byte.
            Self::Structure(node) if is_by_reference(node) => Passed::Register,
            Self::Structure(_) if self.is_large() && !in_rust => Passed::Memory,
            _ => Passed::Unknown,
        }
    }
}

/// Why the kernel cannot fetch a structure, and which members it can fetch.
pub(super) fn without_members(node: &Node<'_>) -> VariableFault {
    let names = members(node).filter_map(|member| member.name()).collect();
    match is_fat_pointer(node) {
        true => VariableFault::TwoWords(names),
        false => VariableFault::Structure(names),
    }
}

/// Rust's `&str`, `&[T]` and `&dyn Trait`: an address, and a length or a table of functions.
fn is_fat_pointer(node: &Node<'_>) -> bool {
    node.name().is_some_and(|name| name.starts_with('&')) && members(node).count() == 2
}

fn is_by_reference(node: &Node<'_>) -> bool {
    let convention = node.own(gimli::DW_AT_calling_convention);
    matches!(convention, Some(AttributeValue::CallingConvention(gimli::DW_CC_pass_by_reference)))
}

/// For a base type, whether it is signed; `None` for types that are not integers.
fn is_signed(node: &Node<'_>) -> Option<bool> {
    match node.own(gimli::DW_AT_encoding)? {
        AttributeValue::Encoding(gimli::DW_ATE_signed | gimli::DW_ATE_signed_char) => Some(true),
        AttributeValue::Encoding(
            gimli::DW_ATE_unsigned
            | gimli::DW_ATE_unsigned_char
            | gimli::DW_ATE_boolean
            | gimli::DW_ATE_UTF
            | gimli::DW_ATE_address,
        ) => Some(false),
        _ => None,
    }
}

/// C's `char`: other types of one byte are numbers.
fn is_char(node: &Node<'_>) -> bool {
    node.tag() == Some(gimli::DW_TAG_base_type) && node.name().as_deref() == Some("char")
}

fn members<'d>(node: &Node<'d>) -> impl Iterator<Item = Node<'d>> {
    node.children().into_iter().filter(|child| child.tag() == Some(gimli::DW_TAG_member))
}

/// A member of a value of a type, with the member's type.
pub(super) fn member<'d>(
    place: Place,
    of: &Node<'d>,
    requested: &Member,
) -> Result<(Place, Node<'d>), VariableFault> {
    let name = &requested.name;
    let (place, node) = match (Kind::of(of), requested.through_pointer) {
        (Kind::Structure(node), false) => (place, node),
        (Kind::Pointer(Some(node)), true) => (place.memory(0), node),
        (Kind::Pointer(_), false) => return Err(VariableFault::ThroughPointer(name.clone())),
        (Kind::Structure(_), true) => return Err(VariableFault::NotThroughPointer(name.clone())),
        _ => return Err(VariableFault::NoStructure(name.clone())),
    };
    if node.own(gimli::DW_AT_declaration).is_some() {
        return Err(VariableFault::Declared(node.name().unwrap_or_default()));
    }
    let found = members(&node).find(|member| member.name().as_ref() == Some(name));
    let found = found.ok_or_else(|| {
        let members = members(&node).filter_map(|member| member.name()).collect();
        VariableFault::NoMember { name: name.clone(), members }
    })?;
    if found.own(gimli::DW_AT_bit_size).is_some() || found.own(gimli::DW_AT_data_bit_offset).is_some() {
        return Err(VariableFault::BitField(name.clone()));
    }
    let offset = match found.own(gimli::DW_AT_data_member_location) {
        None => 0,
        Some(value) => match value.udata_value() {
            Some(offset) => offset.cast_signed(),
            None => {
                match found.location(gimli::DW_AT_data_member_location, 0).map(|of| of.operations).as_deref()
                {
                    Some([Operation::PlusConstant { value }]) => value.cast_signed(),
                    _ => return Err(VariableFault::ComputedMember(name.clone())),
                }
            }
        },
    };
    let place = place.part(offset).ok_or_else(|| VariableFault::PartOfRegister(name.clone()))?;
    Ok((place, found.follow(gimli::DW_AT_type).ok_or(VariableFault::UnknownType)?))
}
