//! Appends short texts to a byte buffer by copies of known sizes, which take no call: more than is there is
//! written, and cut off again.

pub mod number;
pub(crate) mod quote;

use quote::{is_plain, quoted};
use std::ops::Range;
use std::ptr;

/// Appends a text; fast up to 32 bytes.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, text: &[u8]) {
    let (start, length) = (out.len(), text.len());
    match length {
        16..=32 => ends::<16, 32>(out, start, text),
        8..=15 => ends::<8, 16>(out, start, text),
        4..=7 => ends::<4, 8>(out, start, text),
        0..=3 => text.iter().for_each(|byte| out.push(*byte)),
        _ => out.extend_from_slice(text),
    }
}

/// Appends the first and the last `HALF` bytes of a text of `HALF` to `WHOLE` bytes, which overlap.
#[inline(always)]
fn ends<const HALF: usize, const WHOLE: usize>(out: &mut Vec<u8>, start: usize, text: &[u8]) {
    let length = text.len();
    out.extend_from_slice(&[0; WHOLE]);
    if let (Some(first), Some(last)) = (text.first_chunk::<HALF>(), text.last_chunk::<HALF>()) {
        out[start..start + HALF].copy_from_slice(first);
        out[start + length - HALF..start + length].copy_from_slice(last);
    }
    out.truncate(start + length);
}

/// A text of at most 32 bytes, with what follows it in memory.
#[derive(Debug, Clone)]
pub(crate) struct Short {
    bytes: [u8; 32],
    length: u8,
}

impl Short {
    /// The longest beginning of `text` that fits, and the rest.
    pub(crate) fn split(text: &[u8]) -> (Self, &[u8]) {
        let (now, rest) = text.split_at(text.len().min(32));
        let mut bytes = [0; 32];
        bytes[..now.len()].copy_from_slice(now);
        (Short { bytes, length: now.len() as u8 }, rest)
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.length.into()
    }
}

/// The most bytes that [`Room`] writes at a time; some of them are written over.
pub(crate) const MOST: usize = 36;

/// Memory after the end of a buffer, in which many pieces are written consecutively. Where the next one goes
/// stays in a register, and memory that is about to be written is not cleared before.
///
/// What is written is part of the buffer after [`Room::finish`], or is not there.
pub(crate) struct Room<'o> {
    out: &'o mut Vec<u8>,
    /// Where the next piece goes: within the memory of `out`, all of which has been written up to here.
    next: *mut u8,
    /// Where the memory of `out` ends.
    end: *mut u8,
    size: usize,
}

impl<'o> Room<'o> {
    /// Room for `size` bytes, and for as many again whenever that was too little.
    #[inline(always)]
    pub(crate) fn new(out: &'o mut Vec<u8>, size: usize) -> Self {
        let mut room = Room { out, next: ptr::null_mut(), end: ptr::null_mut(), size: size.max(MOST) };
        room.begin();
        room
    }

    /// Begins after the last byte of `out`.
    #[inline(always)]
    fn begin(&mut self) {
        self.out.reserve(self.size);
        let Range { start, end } = self.out.spare_capacity_mut().as_mut_ptr_range();
        (self.next, self.end) = (start.cast(), end.cast());
    }

    #[inline(always)]
    pub(crate) fn short(&mut self, text: &Short) {
        self.array(&text.bytes, text.len());
    }

    /// Appends the first `length` bytes of `bytes`.
    #[inline(always)]
    pub(crate) fn array<const N: usize>(&mut self, bytes: &[u8; N], length: usize) {
        *self.place() = *bytes;
        // SAFETY: at most `N`, which have just been written.
        unsafe { self.advance(length.min(N)) };
    }

    /// Appends `value` in base 10.
    #[inline(always)]
    pub(crate) fn unsigned(&mut self, value: u64) {
        let digits = number::decimal(self.place(), value);
        // SAFETY: a number has at most 20 digits, which fit into the place that it was written to.
        unsafe { self.advance(digits) };
    }

    /// Appends `value` in base 10.
    #[inline(always)]
    pub(crate) fn signed(&mut self, value: i64) {
        self.array(b"-", usize::from(value < 0));
        self.unsigned(value.unsigned_abs());
    }

    /// Appends a text; fast up to 32 bytes.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, text: &[u8]) {
        match text.len() {
            16..=32 => self.ends::<16, 32>(text),
            8..=15 => self.ends::<8, 16>(text),
            4..=7 => self.ends::<4, 8>(text),
            _ => self.other(|out| out.extend_from_slice(text)),
        }
    }

    /// Appends a text in quotes, as [`quoted`] does.
    #[inline(always)]
    pub(crate) fn quoted(&mut self, text: &[u8]) {
        if !(4..=32).contains(&text.len()) || !is_plain(text) {
            return self.other(|out| quoted(out, text));
        }
        self.array(b"\"", 1);
        self.bytes(text);
        self.array(b"\"", 1);
    }

    /// Appends the first and the last `HALF` bytes of a text of `HALF` to `WHOLE` bytes, which overlap.
    #[inline(always)]
    fn ends<const HALF: usize, const WHOLE: usize>(&mut self, text: &[u8]) {
        let room = self.place::<WHOLE>().get_mut(..text.len());
        if let (Some(room), Some(first), Some(last)) = (room, text.first_chunk(), text.last_chunk()) {
            room.first_chunk_mut::<HALF>().into_iter().for_each(|room| *room = *first);
            room.last_chunk_mut::<HALF>().into_iter().for_each(|room| *room = *last);
            // SAFETY: there are that many bytes of the place in `room`.
            unsafe { self.advance(text.len()) };
        }
    }

    /// Calls `append` to append any number of bytes, and reserves the same room after them.
    #[inline(always)]
    pub(crate) fn other(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.end();
        append(self.out);
        self.begin();
    }

    /// Ends the buffer after the written bytes.
    #[inline(always)]
    pub(crate) fn finish(mut self) {
        self.end();
    }

    #[inline(always)]
    fn end(&mut self) {
        let length = self.next.addr() - self.out.as_ptr().addr();
        // SAFETY: `next` lies in the memory of `out`, or is its end, so `length` is at most its capacity. The
        // bytes up to `next` have been written: at `begin` it is where those of the vector end, and `advance`
        // only passes what `place` has written.
        unsafe { self.out.set_len(length) };
    }

    /// The next `N` bytes, at most [`MOST`]; they are zeroed if nothing is written to them.
    #[inline(always)]
    fn place<const N: usize>(&mut self) -> &mut [u8; N] {
        const { assert!(N <= MOST) };
        if self.end.addr() - self.next.addr() < N {
            self.grow();
        }
        let place = self.next.cast::<[u8; N]>();
        // SAFETY: `N` bytes from `next` on are the vector's, as was just seen, or as `grow` has reserved
        // `MOST`; nothing else refers to them while `self` is borrowed. Bytes need no alignment, and are
        // initialised before they are referred to.
        unsafe {
            place.write([0; N]);
            &mut *place
        }
    }

    /// Has the next piece follow the first `length` bytes of this one.
    ///
    /// # Safety
    /// They are bytes of the last [`Room::place`].
    #[inline(always)]
    unsafe fn advance(&mut self, length: usize) {
        // SAFETY: the place lies in the memory of `out`, so what follows some of its bytes does, or is its
        // end.
        self.next = unsafe { self.next.add(length) };
    }

    #[cold]
    fn grow(&mut self) {
        self.end();
        self.begin();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length() {
        let all: Vec<u8> = (0..70).collect();
        for length in 0..70 {
            let mut out = b"before".to_vec();
            text(&mut out, &all[..length]);
            assert_eq!(out, [b"before", &all[..length]].concat());
            let (short, rest) = Short::split(&all[..length]);
            let mut out = b"before".to_vec();
            let mut room = Room::new(&mut out, 32);
            room.short(&short);
            room.finish();
            assert_eq!([&out, rest].concat(), [b"before", &all[..length]].concat());
        }
    }

    #[test]
    fn pieces_follow_each_other() {
        for size in [0, 30, 128] {
            let mut out = b"before ".to_vec();
            let mut room = Room::new(&mut out, size);
            room.signed(i64::MIN);
            room.short(&Short::split(b", ").0);
            room.other(|out| out.extend_from_slice(&[b'x'; 200]));
            room.unsigned(u64::MAX);
            room.signed(0);
            room.finish();
            let expected = format!("before {}, {}{}0", i64::MIN, "x".repeat(200), u64::MAX);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "room for {size} bytes");
        }
    }
}
