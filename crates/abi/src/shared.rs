//! Bytes that other processes may write to while they are read.

/// Where such bytes are, and how many. To have this promises nothing: reading them takes `unsafe`, and that
/// their memory is still mapped.
#[derive(Debug, Clone, Copy)]
pub struct SharedBytes {
    start: *const u8,
    len: usize,
}

impl SharedBytes {
    /// `len` bytes from `start` on.
    pub const fn new(start: *const u8, len: usize) -> Self {
        Self { start, len }
    }

    /// Where they begin.
    pub const fn as_ptr(self) -> *const u8 {
        self.start
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The first `len` of them; all where there are no more.
    #[must_use]
    pub fn first(self, len: usize) -> Self {
        Self { len: self.len.min(len), ..self }
    }
}

/// Bytes of this process's own.
impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes.as_ptr(), bytes.len())
    }
}
