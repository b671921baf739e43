//! Builds the payload of an event from its fields, without copying long ones and without allocation.
//!
//! Everything of constant size (numbers, small arrays, counts, the NUL after a text) is stored into one
//! buffer on the stack, whose size is known at compile time. Where an event has nothing else
//! ([`Layout::exact`]) that buffer is the payload ([`fixed`]). Otherwise the payload is a list of segments:
//! stretches of that buffer, and between them the texts and slices where they are ([`gather`]). All positions
//! that do not depend on an `Option` are constants after inlining, so the stores need no cursor in memory.
//!
//! A [`Sink`] receives the payload; the event path's is in [`event`](crate::event).

use crate::field::Field;
use crate::layout::{Layout, Writer};
use core::mem::MaybeUninit;
use tracewing_ring::Segment;

/// The fields of an event, as nested pairs `(first, (second, ()))`.
///
/// # Safety
/// `LAYOUT` covers what `write` does, as [`Field`] says for one.
#[doc(hidden)]
pub unsafe trait Fields {
    const COUNT: usize;
    const LAYOUT: Layout;

    /// # Safety
    /// As for [`Field::write`].
    unsafe fn write(&self, out: &mut Writer);
}

// SAFETY: nothing is written.
unsafe impl Fields for () {
    const COUNT: usize = 0;
    const LAYOUT: Layout = Layout::exactly(0);
    #[inline(always)]
    unsafe fn write(&self, _: &mut Writer) {}
}

// SAFETY: the layout is the sum of both parts'.
unsafe impl<A: Field, R: Fields> Fields for (A, R) {
    const COUNT: usize = 1 + R::COUNT;
    const LAYOUT: Layout = A::TYPE.layout.and(R::LAYOUT);
    #[inline(always)]
    unsafe fn write(&self, out: &mut Writer) {
        // SAFETY: the caller's.
        unsafe {
            self.0.write(out);
            self.1.write(out);
        }
    }
}

/// The layout of an event with these fields.
#[doc(hidden)]
pub const fn layout<F: Fields>() -> Layout {
    F::LAYOUT
}

/// Takes the payload of one event.
#[doc(hidden)]
pub trait Sink {
    /// # Safety
    /// The first `LEN` bytes of `payload` are initialised.
    unsafe fn fixed<const LEN: usize, const WORDS: usize, const ORDERED: bool>(
        self,
        payload: [MaybeUninit<u64>; WORDS],
    );

    /// # Safety
    /// All segments are readable, and stay unchanged during the call.
    unsafe fn gather<const ORDERED: bool>(self, segments: &[Segment]);
}

/// Hands over an event of constant size: `LEN` bytes in `WORDS` words.
#[doc(hidden)]
#[inline(always)]
pub fn fixed<const LEN: usize, const WORDS: usize, const ORDERED: bool, F: Fields, S: Sink>(
    fields: &F,
    sink: S,
) {
    const { assert!(LEN == F::LAYOUT.length() && WORDS == LEN.div_ceil(8)) };
    if const { !F::LAYOUT.exact } {
        return;
    }
    let mut buffer = [MaybeUninit::<u64>::uninit(); WORDS];
    let start = buffer.as_mut_ptr().cast::<u8>();
    let mut writer = Writer { cursor: start, run: start, segment: core::ptr::null_mut() };
    // SAFETY: the buffer has the layout's size, which is exact, hence has no segments; it is a multiple of 8
    // bytes.
    unsafe {
        fields.write(&mut writer);
        sink.fixed::<LEN, WORDS, ORDERED>(buffer);
    }
}

/// Hands over an event as segments.
#[doc(hidden)]
#[inline(always)]
pub fn gather<const WORDS: usize, const SEGMENTS: usize, const ORDERED: bool, F: Fields, S: Sink>(
    fields: &F,
    sink: S,
) {
    const { assert!(WORDS >= F::LAYOUT.words() && SEGMENTS >= F::LAYOUT.all_segments()) };
    // SAFETY: just asserted.
    unsafe { gather_within::<WORDS, SEGMENTS, ORDERED, F, S>(fields, sink) }
}

/// As [`gather`] where the caller has no constants for the layout: field types that the compiler infers. The
/// buffers come in four sizes; after inlining, one remains.
#[inline(always)]
pub(crate) fn gather_inferred<F: Fields, S: Sink>(fields: &F, sink: S) {
    const { assert!(F::COUNT <= 255, "an event has at most 255 fields") };
    macro_rules! smallest {
        ($(($words:literal, $segments:literal)),+) => { $(
            if const { F::LAYOUT.words() <= $words && F::LAYOUT.all_segments() <= $segments } {
                // SAFETY: just asked.
                return unsafe { gather_within::<$words, $segments, false, F, S>(fields, sink) };
            }
        )+ };
    }
    smallest!((8, 5), (32, 17), (128, 65), (2048, 511));
    unreachable!("255 fields of at most 64 bytes and two segments each fit the largest");
}

/// # Safety
/// `WORDS` and `SEGMENTS` are at least what the layout needs.
#[inline(always)]
unsafe fn gather_within<
    const WORDS: usize,
    const SEGMENTS: usize,
    const ORDERED: bool,
    F: Fields,
    S: Sink,
>(
    fields: &F,
    sink: S,
) {
    let mut buffer = [MaybeUninit::<u64>::uninit(); WORDS];
    let mut segments = [MaybeUninit::<Segment>::uninit(); SEGMENTS];
    let (start, first) = (buffer.as_mut_ptr().cast::<u8>(), segments.as_mut_ptr().cast::<Segment>());
    let mut writer = Writer { cursor: start, run: start, segment: first };
    // SAFETY: buffer and segments have room for the layout and one segment more; those from `first` to
    // `writer.segment` were written; what they refer to is in the buffer or borrowed by `fields`.
    unsafe {
        fields.write(&mut writer);
        writer.close_run();
        let count = writer.segment.offset_from_unsigned(first);
        sink.gather::<ORDERED>(core::slice::from_raw_parts(first, count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Collect;

    fn inferred<F: Fields>(fields: F) -> Vec<u8> {
        let mut bytes = Vec::new();
        gather_inferred(&fields, Collect(&mut bytes));
        bytes
    }

    #[test]
    fn inferred_types_give_the_same_payload() {
        assert!(inferred(()).is_empty());
        assert_eq!(inferred((&1_u8, (&0x0302_u16, ()))), [1, 2, 3]);
        assert_eq!(inferred((&"ab", (&Some(1_u8), (&[7_u8, 8][..], ())))), b"ab\0\x01\x01\x02\0\x07\x08");
    }

    #[test]
    fn inferred_types_find_a_buffer_of_every_size() {
        let (text, number) = ("four", [0x55_u8; 64]);
        macro_rules! texts {
            ($($field:ident)*) => { inferred(crate::__event_fields!($($field = text,)*)) };
        }
        macro_rules! numbers {
            ($($field:ident)*) => { inferred(crate::__event_fields!($($field = number,)*)) };
        }
        let four = |count| b"four\0".repeat(count);
        assert_eq!(texts!(a a), four(2));
        assert_eq!(texts!(a a a), four(3));
        assert_eq!(texts!(a a a a a a a a a), four(9));
        assert_eq!(texts!(a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a), four(33));
        assert_eq!(numbers!(a), [0x55; 64]);
        assert_eq!(numbers!(a a), [0x55; 128]);
        assert_eq!(numbers!(a a a a a), [0x55; 320]);
        assert_eq!(numbers!(a a a a a a a a a a a a a a a a a), [0x55; 1088]);
    }
}
