//! A file's bytes for the object parser: it never holds more than real files need, even if the file claims
//! large lengths and consists of holes.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::path::Path;

use object::read::{ReadCache, ReadRef};

use super::blocks::Blocks;

/// Bytes of one file that may be held in memory.
const MOST: u64 = 2 << 30;
/// Pieces up to this size, in bytes, are not counted.
const SMALL: u64 = 4 << 10;

/// A file whose path may come from anywhere.
pub(crate) struct Content {
    cache: ReadCache<Blocks>,
    left: Cell<u64>,
}

impl Content {
    /// Opens the file; `None` if it is not an ordinary file.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        tracewing_files::open_regular(path).ok().map(Self::of)
    }

    /// That of an ordinary file.
    pub(crate) fn of(file: File) -> Self {
        Self { cache: ReadCache::new(Blocks::new(file)), left: Cell::new(MOST) }
    }

    /// Whether `size` more bytes may be held.
    pub(crate) fn has_room(&self, size: u64) -> bool {
        let left = self.left.get().checked_sub(size);
        left.is_some_and(|left| {
            self.left.set(left);
            true
        })
    }
}

impl<'a> ReadRef<'a> for &'a Content {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        // The cache allocates the memory before it reads.
        if size > SMALL && !self.has_room(size) {
            return Err(());
        }
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.cache.read_bytes_at_until(range, delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_section_of_holes_takes_no_memory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 40).unwrap();
        file.as_file().write_all_at(b"end", (1 << 40) - 3).unwrap();
        let content = Content::open(file.path()).unwrap();
        assert_eq!((&content).read_bytes_at(0, 1 << 39), Err(()));
        assert_eq!((&content).read_bytes_at((1 << 40) - 3, 3), Ok(&b"end"[..]));
        let before = content.left.get();
        assert_eq!((&content).read_bytes_at(0, 1 << 20).map(<[u8]>::len), Ok(1 << 20));
        assert_eq!(content.left.get(), before - (1 << 20));
        content.left.set(1 << 20);
        assert_eq!((&content).read_bytes_at(1 << 30, (1 << 20) + 1), Err(()));
    }
}
