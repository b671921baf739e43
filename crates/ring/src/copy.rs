//! Pieces of payload.

/// One stretch of payload bytes. An event's payload is the concatenation of its segments.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte. It must stay readable while the segment is used.
    pub(crate) start: *const u8,
    /// Number of bytes.
    pub(crate) len: usize,
}

impl Segment {
    /// The segment of the `len` bytes from `start` on, which must stay readable while it is used.
    #[inline(always)]
    pub const fn new(start: *const u8, len: usize) -> Self {
        Self { start, len }
    }

    /// The segment that covers `bytes`, which must outlive its use.
    #[inline(always)]
    pub const fn of(bytes: &[u8]) -> Self {
        Self::new(bytes.as_ptr(), bytes.len())
    }

    /// The bytes.
    ///
    /// # Safety
    /// They are readable, and nothing writes them, as long as the result is used.
    #[inline(always)]
    pub const unsafe fn bytes<'b>(self) -> &'b [u8] {
        // SAFETY: as the caller promises.
        unsafe { core::slice::from_raw_parts(self.start, self.len) }
    }

    /// Sum of the lengths; `usize::MAX` when it does not fit a `usize`.
    pub fn total(segments: &[Self]) -> usize {
        segments.iter().fold(0, |sum: usize, segment| sum.saturating_add(segment.len))
    }
}
