//! How much room the fields of an event need, and what they write themselves into.

use tracewing_ring::Segment;

/// How much room a field, or an event, needs.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes in the stack buffer at most.
    pub run: usize,
    /// Always exactly `run` bytes, and none elsewhere.
    pub exact: bool,
    /// Segments: two for each stretch of memory elsewhere, itself and the part of the buffer before it.
    pub segments: usize,
}

impl Layout {
    pub(crate) const fn exactly(run: usize) -> Self {
        Self { run, exact: true, segments: 0 }
    }

    pub(crate) const fn at_most(run: usize) -> Self {
        Self { run, exact: false, segments: 0 }
    }

    pub(crate) const fn elsewhere(run: usize) -> Self {
        Self { run, exact: false, segments: 2 }
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            run: self.run + other.run,
            exact: self.exact && other.exact,
            segments: self.segments + other.segments,
        }
    }

    /// The first parameter of [`fixed`](crate::payload::fixed): bytes of the payload (0 where it has no
    /// constant size).
    pub const fn length(self) -> usize {
        if self.exact { self.run } else { 0 }
    }

    /// The buffer's size in 8-byte words.
    pub const fn words(self) -> usize {
        self.run.div_ceil(8)
    }

    /// The second parameter of [`gather`](crate::payload::gather): one more segment, for what the buffer
    /// holds in the end.
    pub const fn all_segments(self) -> usize {
        self.segments + 1
    }
}

/// Collects a payload: a buffer for what has a constant size, and segments.
#[doc(hidden)]
pub struct Writer {
    /// Where the next byte goes.
    pub(crate) cursor: *mut u8,
    /// Where the current stretch of the buffer begins.
    pub(crate) run: *const u8,
    /// Where the next segment goes.
    pub(crate) segment: *mut Segment,
}

impl Writer {
    /// Appends bytes; `B` is an array of bytes or of numbers.
    ///
    /// # Safety
    /// The buffer has room for them.
    #[inline(always)]
    pub unsafe fn put<B: Copy>(&mut self, bytes: B) {
        // SAFETY: the caller's; no alignment is needed.
        unsafe {
            self.cursor.cast::<B>().write_unaligned(bytes);
            self.cursor = self.cursor.add(size_of::<B>());
        }
    }

    /// Appends bytes that stay where they are.
    ///
    /// # Safety
    /// 1. There is room for two segments.
    /// 2. The bytes stay readable and unchanged until the payload was taken.
    #[inline(always)]
    pub(crate) unsafe fn refer(&mut self, start: *const u8, len: usize) {
        // SAFETY: the caller's (1) and (2).
        unsafe {
            self.close_run();
            self.push(Segment::new(start, len));
        }
    }

    /// # Safety
    /// There is room for one segment.
    #[inline(always)]
    pub(crate) unsafe fn close_run(&mut self) {
        let len = self.cursor as usize - self.run as usize;
        if len != 0 {
            // SAFETY: the caller's.
            unsafe { self.push(Segment::new(self.run, len)) };
            self.run = self.cursor;
        }
    }

    /// # Safety
    /// There is room for one segment.
    #[inline(always)]
    unsafe fn push(&mut self, segment: Segment) {
        // SAFETY: the caller's.
        unsafe {
            self.segment.write(segment);
            self.segment = self.segment.add(1);
        }
    }
}
