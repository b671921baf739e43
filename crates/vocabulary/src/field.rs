//! Fields of events: how they are described, and how their values are read.

use alloc::vec::Vec;

use tracewing_units::{Pid, Tid};

/// A field of an event class.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in recordings.
    pub name: &'static str,
    /// Another name of it in recordings of other tracers or kernels.
    pub also: Option<&'static str>,
    /// What it says.
    pub description: &'static str,
    /// Its unit; empty for what has none.
    pub unit: &'static str,
    /// Whether it is an address or another number that is shown in hexadecimal digits.
    pub is_address: bool,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether events may lack it.
    pub is_optional: bool,
}

/// The place of the field of this name.
///
/// # Panics
/// There is none.
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

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// A number from 0, with so many bits in our own recordings.
    Unsigned(u8),
    /// A number, likewise.
    Signed(u8),
    /// Yes or no, in 8 bits.
    Boolean,
    /// A text.
    Text,
    /// Numbers of 64 bits.
    Numbers,
    /// One of these numbers, with their labels, in 8 bits.
    Enumeration(&'static [(i64, &'static str)]),
}

/// The values of an event. A field is asked for by its place among [`Class::fields`](crate::Class::fields).
pub trait Fields<'e> {
    /// An integer; `None` where there is none, or it does not fit.
    fn integer(&self, place: usize) -> Option<i64>;

    /// The same of 64 bits without a sign.
    fn unsigned(&self, place: usize) -> Option<u64>;

    /// A text, which need not be UTF-8.
    fn text(&self, place: usize) -> Option<&'e [u8]>;

    /// The numbers in an array or sequence, at most `most` of them.
    fn numbers(&self, place: usize, most: usize) -> Option<Vec<u64>>;
}

/// An event whose fields can be read.
pub trait Reader<'e>: Sized {
    /// The event; `None` where it lacks a field, or has a value that the field does not promise.
    fn read(fields: &impl Fields<'e>) -> Option<Self>;
}

/// A type that declarations give to fields.
pub trait Recorded<'e> {
    /// What its values are read as.
    type Read;

    /// How it is described.
    const KIND: FieldKind;

    /// The value of the field at this place.
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

/// The kernel gives no number below 0.
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

impl<'e> Recorded<'e> for &'e str {
    type Read = &'e [u8];
    const KIND: FieldKind = FieldKind::Text;

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<&'e [u8]> {
        fields.text(place)
    }
}

/// Numbers that are kept of one field: more than the kernel's longest call chain, and ours, have.
const MOST: usize = 1024;

impl<'e> Recorded<'e> for &'e [u64] {
    type Read = Vec<u64>;
    const KIND: FieldKind = FieldKind::Numbers;

    #[inline(always)]
    fn read(fields: &impl Fields<'e>, place: usize) -> Option<Vec<u64>> {
        fields.numbers(place, MOST)
    }
}
