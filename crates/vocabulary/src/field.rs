//! Fields of events: their descriptions, and how their values are read.

use alloc::vec::Vec;

use tracewing_units::{Caller, Chain, LockAddress, Origin, Pid, SpanNumber, Task, Ticket, Tid};

/// A field of an event class.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name in recordings.
    pub name: &'static str,
    /// Alternative name in recordings of other tracers or kernels.
    pub also: Option<&'static str>,
    /// The field's meaning.
    pub description: &'static str,
    /// Unit in words; empty if it has none.
    pub unit: &'static str,
    /// Whether it is an address or another number that is shown in hexadecimal.
    pub is_address: bool,
    /// Type of its values.
    pub kind: FieldKind,
    /// Whether events may lack it.
    pub is_optional: bool,
}

/// The index of the field of this name.
///
/// # Panics
/// No field has this name.
pub(crate) const fn place_of(fields: &[Field], name: &str) -> usize {
    let mut place = 0;
    while !is_same(fields[place].name.as_bytes(), name.as_bytes()) {
        place += 1;
    }
    place
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    match (a, b) {
        ([], []) => true,
        ([a, rest_of_a @ ..], [b, rest_of_b @ ..]) => *a == *b && is_same(rest_of_a, rest_of_b),
        _ => false,
    }
}

/// Type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// An unsigned number, with this number of bits in our own recordings.
    Unsigned(u8),
    /// A signed number, likewise.
    Signed(u8),
    /// A truth value, in 8 bits.
    Boolean,
    /// A text, UTF-8 in our own recordings.
    Text,
    /// An array of 64-bit numbers.
    Numbers,
    /// One of these numbers, which have labels, in 8 bits.
    Enumeration(&'static [(i64, &'static str)]),
}

/// The values of an event. A field is identified by its index in [`Class::fields`](crate::Class::fields).
pub trait Fields<'e> {
    /// An integer; `None` if it is missing or does not fit.
    fn integer(&self, place: usize) -> Option<i64>;

    /// The same for an unsigned 64-bit integer.
    fn unsigned(&self, place: usize) -> Option<u64>;

    /// A text, which need not be UTF-8.
    fn text(&self, place: usize) -> Option<&'e [u8]>;

    /// The numbers in an array or sequence, at most `most` of them.
    fn numbers(&self, place: usize, most: usize) -> Option<Vec<u64>>;
}

/// An event whose fields can be read.
pub trait Reader<'e>: Sized {
    /// The event; `None` if it lacks a field, or has a value outside of the field's type.
    fn read(fields: &impl Fields<'e>) -> Option<Self>;
}

/// A type of fields in declarations.
pub trait Recorded<'e> {
    /// The type that a reader gets.
    type Read;

    /// The description of the type.
    const KIND: FieldKind;

    /// The value of the field at this index.
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<Self::Read>;
}

impl<'e> Recorded<'e> for u64 {
    type Read = u64;
    const KIND: FieldKind = FieldKind::Unsigned(64);

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<u64> {
        fields.unsigned(place)
    }
}

impl<'e> Recorded<'e> for u32 {
    type Read = u32;
    const KIND: FieldKind = FieldKind::Unsigned(32);

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<u32> {
        u32::try_from(fields.unsigned(place)?).ok()
    }
}

impl<'e> Recorded<'e> for i64 {
    type Read = i64;
    const KIND: FieldKind = FieldKind::Signed(64);

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<i64> {
        fields.integer(place)
    }
}

impl<'e> Recorded<'e> for i32 {
    type Read = i32;
    const KIND: FieldKind = FieldKind::Signed(32);

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<i32> {
        i32::try_from(fields.integer(place)?).ok()
    }
}

impl<'e> Recorded<'e> for bool {
    type Read = bool;
    const KIND: FieldKind = FieldKind::Boolean;

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<bool> {
        Some(fields.integer(place)? != 0)
    }
}

/// A number of the kernel's, which are never negative.
#[inline(always)]
fn number<'e>(fields: &impl Fields<'e>, place: usize) -> Option<i32> {
    i32::try_from(fields.integer(place)?).ok().filter(|number| *number >= 0)
}

impl<'e> Recorded<'e> for Tid {
    type Read = Tid;
    const KIND: FieldKind = FieldKind::Signed(32);

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<Tid> {
        number(fields, place).map(Tid)
    }
}

impl<'e> Recorded<'e> for Pid {
    type Read = Pid;
    const KIND: FieldKind = FieldKind::Signed(32);

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<Pid> {
        number(fields, place).map(Pid)
    }
}

/// Numbers that identify something: unsigned ones of 64 bits.
macro_rules! keys {
    ($($key:ident),*) => { $(
        impl<'e> Recorded<'e> for $key {
            type Read = $key;
            const KIND: FieldKind = FieldKind::Unsigned(64);

            #[inline(always)]
            fn read(fields: &impl Fields<'e>, place: usize) -> Option<$key> {
                fields.unsigned(place).map($key)
            }
        }
    )* };
}

keys!(Task, Origin, Ticket, LockAddress, Caller, Chain, SpanNumber);

impl<'e> Recorded<'e> for &'e str {
    type Read = &'e [u8];
    const KIND: FieldKind = FieldKind::Text;

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<&'e [u8]> {
        fields.text(place)
    }
}

/// Maximum number of values kept of one field: more than the longest call chains of the kernel and of this
/// tracer.
const MOST: usize = 1024;

impl<'e> Recorded<'e> for &'e [u64] {
    type Read = Vec<u64>;
    const KIND: FieldKind = FieldKind::Numbers;

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<Vec<u64>> {
        fields.numbers(place, MOST)
    }
}
