//! Operands of texts and patterns: the words after an instruction.

use tracewing_abi::atomic::{AtomicU64, Ordering};

/// Operands, each loaded when it is needed.
#[derive(Clone, Copy)]
pub(super) struct Words<'p>(&'p [AtomicU64]);

impl<'p> Words<'p> {
    #[inline(always)]
    pub(super) fn new(words: &'p [AtomicU64]) -> Self {
        Words(words)
    }
}

impl Iterator for Words<'_> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first.load(Ordering::Relaxed))
    }
}

/// The bytes of a pattern, up to its NUL or the end of its words.
#[derive(Clone, Copy)]
pub(super) struct Pattern<'p> {
    words: Words<'p>,
    /// The next bytes, the first one lowest, and their number.
    bytes: u64,
    left: u8,
}

impl<'p> Pattern<'p> {
    #[inline(always)]
    pub(super) fn new(words: Words<'p>) -> Self {
        Pattern { words, bytes: 0, left: 0 }
    }
}

impl Iterator for Pattern<'_> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        if self.left == 0 {
            self.bytes = self.words.next()?;
            self.left = 8;
        }
        let byte = self.bytes as u8;
        if byte == 0 {
            return None;
        }
        self.bytes >>= 8;
        self.left -= 1;
        Some(byte)
    }
}
