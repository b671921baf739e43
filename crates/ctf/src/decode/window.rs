//! The bytes that a reader has of its data stream.

use std::cell::Cell;

/// The part of a data stream that is there, and where in it the current packet begins.
pub(super) struct Window<B> {
    pub(super) data: B,
    /// Offset of `data` in the data stream, bytes.
    pub(super) base: u64,
    /// Offset of the current packet in `data`.
    pub(super) from: usize,
    /// Bytes of the data stream from the beginning of `data` on; some of them may not be in `data` yet.
    pub(super) rest: u64,
    /// Whether the last error was that what `data` does not have yet is missing.
    pub(super) short: Cell<bool>,
}

impl<B: AsRef<[u8]>> Window<B> {
    /// All of a data stream.
    pub(super) fn new(data: B) -> Self {
        let rest = data.as_ref().len() as u64;
        Self { data, base: 0, from: 0, rest, short: Cell::new(false) }
    }

    /// The data stream from the current packet on.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        self.data.as_ref().get(self.from..).unwrap_or_default()
    }

    /// Bytes of the data stream from the current packet on, those that are not there yet included.
    pub(super) fn left(&self) -> u64 {
        self.rest.saturating_sub(self.from as u64)
    }
}
