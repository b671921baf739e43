//! A thread's name in as many bytes as the kernel has for it, to be kept without an allocation.

use std::fmt;

/// The longest name that the kernel keeps for a thread, in bytes (`TASK_COMM_LEN` less its end).
pub(super) const LONGEST: usize = 15;

/// The beginning of a thread's name, as long as the kernel's `comm`; empty if unknown.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Comm {
    bytes: [u8; LONGEST],
    len: u8,
}

impl Comm {
    /// As much of a name as fits.
    #[inline]
    pub(super) fn new(name: &str) -> Self {
        let mut len = name.len().min(LONGEST);
        while !name.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; LONGEST];
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        Comm { bytes, len: len as u8 }
    }

    /// The name; bytes that are not UTF-8 are replaced.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut() {
        assert_eq!(Comm::new("shop").as_str(), "shop");
        assert_eq!(Comm::new("tokio-runtime-worker").as_str(), "tokio-runtime-w");
        assert_eq!(Comm::new("aaaaaaaaaaaaaaé").as_str(), "aaaaaaaaaaaaaa");
        assert_eq!(Comm::default().as_str(), "");
    }
}
