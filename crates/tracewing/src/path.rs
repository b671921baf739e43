//! The event path: takes a payload to the buffer of the CPU.

use crate::class::EventClass;

/// One stretch of payload bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Segment {
    /// Its first byte.
    pub start: *const u8,
    /// Bytes.
    pub len: usize,
}

/// Records an event of constant payload size.
///
/// # Safety
/// `payload` points to `LEN` bytes, readable up to the next multiple of 8.
#[inline(never)]
pub unsafe fn fixed<const LEN: usize, const ORDERED: bool>(class: &'static EventClass, payload: *const u8) {
    core::hint::black_box((class, payload));
}

/// Records an event gathered from segments.
///
/// # Safety
/// All segments are readable and stay unchanged.
#[inline(never)]
pub unsafe fn gather<const ORDERED: bool>(class: &'static EventClass, segments: &[Segment]) {
    core::hint::black_box((class, segments));
}
