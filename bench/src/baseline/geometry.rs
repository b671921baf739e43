//! Positions in a buffer that is divided into sub-buffers. A position counts bytes permanently; its low bits
//! are the offset.

/// Sizes of a buffer, in bytes, both powers of two.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    sub_buffer: u64,
    total: u64,
}

impl Geometry {
    /// `count` sub-buffers of `size` bytes.
    ///
    /// # Panics
    /// If one is not a power of two.
    pub const fn new(count: u64, size: u64) -> Self {
        assert!(count.is_power_of_two() && size.is_power_of_two());
        Self { sub_buffer: size, total: count * size }
    }

    /// How many sub-buffers there are.
    pub const fn count(self) -> u64 {
        self.total / self.sub_buffer
    }

    /// Bytes of a sub-buffer.
    pub const fn sub_buffer(self) -> u64 {
        self.sub_buffer
    }

    /// Bytes of the whole buffer.
    pub const fn total(self) -> u64 {
        self.total
    }

    /// Whether that many bytes fit after a position without reaching the end of its sub-buffer. (Strictly
    /// less, as in Figure 2 of paper 004: `newIndex >= buffer end` takes the slow path.)
    #[inline(always)]
    pub const fn fits(self, position: u64, length: u64) -> bool {
        (position & (self.sub_buffer - 1)) + length < self.sub_buffer
    }

    /// Beginning of the sub-buffer after that of a position.
    #[inline(always)]
    pub const fn next(self, position: u64) -> u64 {
        (position | (self.sub_buffer - 1)) + 1
    }

    /// Where an event of that length goes, written at this position or later.
    #[inline(always)]
    pub const fn place(self, position: u64, length: u64) -> u64 {
        if self.fits(position, length) { position } else { self.next(position) }
    }

    /// A position's sub-buffer, by its place in the buffer.
    #[inline(always)]
    pub const fn index(self, position: u64) -> usize {
        ((position & (self.total - 1)) / self.sub_buffer) as usize
    }

    /// A position's offset in the buffer.
    #[inline(always)]
    pub const fn offset(self, position: u64) -> usize {
        (position & (self.total - 1)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_would_end_on_the_border_begins_after_it() {
        let geometry = Geometry::new(4, 64);
        assert_eq!(geometry.place(0, 28), 0);
        assert_eq!(geometry.place(28, 28), 28);
        assert_eq!(geometry.place(36, 28), 64);
        assert_eq!(geometry.place(192 + 56, 28), 256);
        assert_eq!((geometry.index(256), geometry.offset(256 + 28)), (0, 28));
    }
}
