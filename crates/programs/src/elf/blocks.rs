//! A file that is read in large blocks. Symbol tables are read name by name, about ten bytes each, and a
//! recorded program reads its own before `main`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Bytes per block, and number of blocks kept.
const BLOCK: u64 = 64 << 10;
const KEPT: u64 = 64;

/// A file, and some of its blocks: each block has one place, which it keeps until another block takes it.
#[derive(Debug)]
pub(crate) struct Blocks {
    file: File,
    position: u64,
    kept: Vec<Block>,
}

#[derive(Debug, Clone, Default)]
struct Block {
    begin: u64,
    bytes: Vec<u8>,
}

impl Block {
    /// The bytes from a position to the end of the block; none if the position is not in it.
    fn from(&self, position: u64) -> &[u8] {
        let skipped = position.checked_sub(self.begin).and_then(|skipped| usize::try_from(skipped).ok());
        skipped.and_then(|skipped| self.bytes.get(skipped..)).unwrap_or_default()
    }

    fn read(file: &File, begin: u64) -> io::Result<Self> {
        let mut bytes = vec![0; BLOCK as usize];
        let mut len = 0;
        while len < bytes.len() {
            match file.read_at(&mut bytes[len..], begin + len as u64) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(len);
        Ok(Self { begin, bytes })
    }
}

impl Blocks {
    /// A file of which nothing has been read yet.
    pub(crate) fn new(file: File) -> Self {
        Self { file, position: 0, kept: vec![Block::default(); KEPT as usize] }
    }
}

impl Read for Blocks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let number = self.position / BLOCK;
        let place = &mut self.kept[(number % KEPT) as usize];
        if place.from(self.position).is_empty() {
            if into.len() as u64 >= BLOCK {
                let read = self.file.read_at(into, self.position)?;
                self.position += read as u64;
                return Ok(read);
            }
            *place = Block::read(&self.file, number * BLOCK)?;
        }
        let rest = place.from(self.position);
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        self.position += len as u64;
        Ok(len)
    }
}

impl Seek for Blocks {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let moved = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.file.metadata()?.len().checked_add_signed(by),
        };
        self.position = moved.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    proptest! {
        #[test]
        fn bytes_are_those_of_the_file(reads in proptest::collection::vec((0..300_000_u64, 0..150_000_usize), 1..20)) {
            let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&bytes).unwrap();
            let mut blocks = Blocks::new(file);
            prop_assert_eq!(blocks.seek(SeekFrom::End(0)).unwrap(), bytes.len() as u64);
            for (at, len) in reads {
                blocks.seek(SeekFrom::Start(at)).unwrap();
                let mut read = Vec::new();
                blocks.by_ref().take(len as u64).read_to_end(&mut read).unwrap();
                let from = (at as usize).min(bytes.len());
                prop_assert_eq!(&read[..], &bytes[from..(from + len).min(bytes.len())]);
                prop_assert_eq!(blocks.stream_position().unwrap(), at + read.len() as u64);
            }
        }
    }
}
