//! Bytes that other processes may write to while they are read.

/// Address and length of such bytes. Holding one promises nothing: reading the bytes is `unsafe` and requires
/// that their memory is still mapped.
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

    /// Address of the first byte.
    pub const fn as_ptr(self) -> *const u8 {
        self.start
    }

    /// Number of bytes.
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether `len` is 0.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The first `len` bytes, or all if there are fewer.
    #[must_use]
    pub fn first(self, len: usize) -> Self {
        Self { len: self.len.min(len), ..self }
    }
}

/// Wraps bytes of this process.
impl From<&[u8]> for SharedBytes {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes.as_ptr(), bytes.len())
    }
}
