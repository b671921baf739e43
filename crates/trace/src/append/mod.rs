//! Appends short texts to a byte buffer by copies of known sizes, which take no call: more than is there is
//! written, and cut off again.

pub mod number;
pub(crate) mod quote;

use quote::{is_plain, quoted};

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
pub(crate) const MOST: usize = 32;

/// A buffer with room at its end, in which many pieces are written consecutively: the position of the next
/// one need not be loaded from memory, which would stall.
pub(crate) struct Room<'o> {
    out: &'o mut Vec<u8>,
    at: usize,
    size: usize,
}

impl<'o> Room<'o> {
    /// Room for `size` bytes, and for as many again whenever that was too little.
    #[inline(always)]
    pub(crate) fn new(out: &'o mut Vec<u8>, size: usize) -> Self {
        let at = out.len();
        out.resize(at + size, 0);
        Room { out, at, size }
    }

    #[inline(always)]
    pub(crate) fn short(&mut self, text: &Short) {
        if let Some(room) = self.rest() {
            *room = text.bytes;
            self.at += usize::from(text.length);
        }
    }

    /// Appends `value` in base 10.
    #[inline(always)]
    pub(crate) fn unsigned(&mut self, value: u64) {
        if let Some(room) = self.rest() {
            self.at += number::decimal(room, value);
        }
    }

    /// Appends `value` in base 10.
    #[inline(always)]
    pub(crate) fn signed(&mut self, value: i64) {
        if let Some([sign]) = self.rest() {
            *sign = b'-';
            self.at += usize::from(value < 0);
        }
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
        self.byte(b'"');
        self.bytes(text);
        self.byte(b'"');
    }

    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        if let Some(room) = self.rest::<1>() {
            *room = [byte];
            self.at += 1;
        }
    }

    /// Appends the first and the last `HALF` bytes of a text of `HALF` to `WHOLE` bytes, which overlap.
    #[inline(always)]
    fn ends<const HALF: usize, const WHOLE: usize>(&mut self, text: &[u8]) {
        let room = self.rest::<WHOLE>().and_then(|room| room.get_mut(..text.len()));
        if let (Some(room), Some(first), Some(last)) = (room, text.first_chunk(), text.last_chunk()) {
            room.first_chunk_mut::<HALF>().into_iter().for_each(|room| *room = *first);
            room.last_chunk_mut::<HALF>().into_iter().for_each(|room| *room = *last);
            self.at += text.len();
        }
    }

    /// Calls `append` to append any number of bytes, and reserves the same room after them.
    #[inline(always)]
    pub(crate) fn other(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.out.truncate(self.at);
        append(self.out);
        self.at = self.out.len();
        self.out.resize(self.at + self.size, 0);
    }

    /// Ends the buffer after the written bytes.
    #[inline(always)]
    pub(crate) fn finish(self) {
        self.out.truncate(self.at);
    }

    #[inline(always)]
    fn rest<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        if self.out.len() < self.at + N {
            self.grow();
        }
        self.out.get_mut(self.at..)?.first_chunk_mut()
    }

    #[cold]
    fn grow(&mut self) {
        self.out.resize(self.at + self.size.max(MOST), 0);
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
