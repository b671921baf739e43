//! An event's payload as a filter reads it: bytes in one piece or several. A filter never relies on a value
//! being where it expects it.

/// The payload: its segments, in order.
#[derive(Clone)]
pub(super) struct Payload<I>(pub I);

impl<'a, I: Iterator<Item = &'a [u8]> + Clone> Payload<I> {
    /// The bytes from `at` on: the rest of their segment, and the segments after it.
    #[inline]
    fn at(&self, mut at: usize) -> Option<(&'a [u8], I)> {
        let mut segments = self.0.clone();
        loop {
            let segment = segments.next()?;
            if at < segment.len() {
                return Some((&segment[at..], segments));
            }
            at -= segment.len();
        }
    }

    #[inline]
    pub(super) fn array<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        let (first, rest) = self.at(at)?;
        match first.first_chunk() {
            Some(array) => Some(*array),
            None => straddling(first, rest),
        }
    }

    /// The eight bytes at `at`, if they are in one segment.
    #[inline]
    pub(super) fn word(&self, at: usize) -> Option<u64> {
        let (first, _) = self.at(at)?;
        first.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The text at `at`, up to its NUL.
    #[inline]
    pub(super) fn text(&self, at: usize) -> Option<Text<'a, I>> {
        let (first, rest) = self.at(at)?;
        Some(Text { first, rest, left: usize::MAX })
    }

    /// The character at `at`: at most four bytes, up to a NUL.
    #[inline]
    pub(super) fn char(&self, at: usize) -> Option<Text<'a, I>> {
        let (first, rest) = self.at(at)?;
        Some(Text { first, rest, left: 4 })
    }
}

#[cold]
#[inline(never)]
fn straddling<'a, const N: usize>(first: &'a [u8], rest: impl Iterator<Item = &'a [u8]>) -> Option<[u8; N]> {
    let mut bytes = first.iter().chain(rest.flatten());
    let mut array = [0; N];
    for byte in &mut array {
        *byte = *bytes.next()?;
    }
    Some(array)
}

/// The bytes of a text before its NUL.
#[derive(Clone)]
pub(super) struct Text<'a, I> {
    first: &'a [u8],
    rest: I,
    /// The maximum number of bytes: 4 for a character. A text has no maximum and ends at its NUL.
    left: usize,
}

impl<'a, I: Iterator<Item = &'a [u8]> + Clone> Text<'a, I> {
    /// Number of bytes; `None` if the payload ends without a NUL.
    #[inline]
    pub(super) fn length(mut self) -> Option<u64> {
        let mut length = 0;
        loop {
            if let Some(at) = nul(self.first) {
                return Some(length + at as u64);
            }
            length += self.first.len() as u64;
            self.first = self.rest.next()?;
        }
    }

    /// Whether the text has exactly the bytes of `words` (the first one lowest), up to a NUL or their end.
    #[inline]
    pub(super) fn equals(mut self, words: impl Iterator<Item = u64>) -> bool {
        for word in words {
            // Bytes before the word's NUL.
            let length = 8 - word.leading_zeros() / 8;
            if let Some((head, rest)) = self.first.split_first_chunk::<8>()
                && self.left >= 8
            {
                let difference = u64::from_le_bytes(*head) ^ word;
                if length < 8 {
                    // The last word: these bytes and the text's NUL.
                    return difference << (56 - 8 * length) == 0;
                }
                if difference != 0 {
                    return false;
                }
                self.first = rest;
                continue;
            }
            for byte in word.to_le_bytes().into_iter().take(length as usize) {
                if self.next() != Some(byte) {
                    return false;
                }
            }
            if length < 8 {
                break;
            }
        }
        self.next().is_none()
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>> Iterator for Text<'a, I> {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        self.left = self.left.checked_sub(1)?;
        loop {
            if let Some((&byte, rest)) = self.first.split_first() {
                self.first = rest;
                return (byte != 0).then_some(byte);
            }
            self.first = self.rest.next()?;
        }
    }
}

/// Index of the first NUL, found eight bytes at a time.
#[inline]
fn nul(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The lowest marked byte is the first NUL; above it a 1 may be marked as well (Warren, Hacker's
        // Delight, 6-1).
        let marked = word.wrapping_sub(ONES) & !word & ONES << 7;
        if marked != 0 {
            return Some(index * 8 + marked.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|&byte| byte == 0).map(|at| words.len() * 8 + at)
}
