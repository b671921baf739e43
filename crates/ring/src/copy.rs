//! Pieces of payload.

/// One stretch of payload bytes. An event's payload is the concatenation of its segments.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte. It must stay readable while the segment is used.
    pub start: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl Segment {
    /// The segment that covers `bytes`, which must outlive its use.
    pub const fn of(bytes: &[u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len() }
    }

    /// Sum of the lengths; `usize::MAX` when it does not fit a `usize`.
    pub fn total(segments: &[Self]) -> usize {
        segments.iter().fold(0, |sum: usize, segment| sum.saturating_add(segment.len))
    }
}
