//! A program's event classes as they lie in its memory, for tools that examine a core dump or a stopped
//! process, which has the buffers but no recorder's metadata.
//!
//! The table is a private mapping of its own (a memfd named [`NAME`]), so that it begins at a page, no
//! neighbour is merged with it, and core dumps hold it (bit 0 of `coredump_filter`, which is set by default).
//! Children have copies. A program writes it once it knows its ids and never reads it. There may be several
//! in a process: one per copy of the library, and per recording.
//!
//! ```text
//! offset 0   u64 magic, u32 version (of the region), u32 bytes of the entries, u8[16] identity of the recording
//! offset 32  entries: u16 id, then the class as `schema` encodes it, which begins with its length
//! ```

use crate::region::VERSION;
use crate::schema::Class;
use crate::wire::{Input, Malformed, Output, WireError};

/// First word of a table: `twngclas` in ASCII.
pub const MAGIC: u64 = u64::from_le_bytes(*b"twngclas");
/// Name of the memfd that it lies in.
pub const NAME: &core::ffi::CStr = c"tracewing-classes";
/// Bytes before the first entry.
pub const HEADER: usize = 32;
/// Bytes of an entry besides its class.
pub const ENTRY: usize = 2;

/// Writes a table into a caller's memory.
pub struct Writer<'a> {
    out: Output<'a>,
}

impl<'a> Writer<'a> {
    /// An empty table for the ids of a recording.
    ///
    /// # Errors
    /// `memory` has no room for the header.
    pub fn new(memory: &'a mut [u8], recording: &[u8; 16]) -> Result<Self, WireError> {
        let mut out = Output::new(memory);
        out.u64(MAGIC)?;
        out.u32(VERSION)?;
        out.u32(0)?;
        out.put(recording)?;
        Ok(Self { out })
    }

    /// Adds a class that has an id.
    ///
    /// # Errors
    /// It does not fit; what is there stays.
    pub fn push(&mut self, id: u16, class: &Class<'_>) -> Result<(), WireError> {
        self.add(|out| out.u16(id).and_then(|()| class.encode_to(out)))
    }

    /// Like [`Writer::push`], for a description as encoded in a message ([`crate::message::decode_classes`]).
    ///
    /// # Errors
    /// As for [`Writer::push`].
    pub fn push_encoded(&mut self, id: u16, description: &[u8]) -> Result<(), WireError> {
        let length = u16::try_from(description.len()).map_err(|_| WireError::TooLarge)?;
        self.add(|out| {
            out.u16(id)?;
            out.u16(length)?;
            out.put(description)
        })
    }

    fn add(&mut self, write: impl FnOnce(&mut Output<'a>) -> Result<(), WireError>) -> Result<(), WireError> {
        let before = self.out.len;
        match write(&mut self.out)
            .and_then(|()| u32::try_from(self.out.len - HEADER).map_err(|_| WireError::TooLarge))
        {
            Ok(bytes) => self.out.bytes[12..16].copy_from_slice(&bytes.to_le_bytes()),
            Err(error) => {
                self.out.len = before;
                return Err(error);
            }
        }
        Ok(())
    }
}

/// What a table's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the entries after it.
    pub bytes: u32,
    /// Identity of the recording whose ids they are.
    pub recording: [u8; 16],
}

impl Header {
    /// Reads the first [`HEADER`] bytes of a table.
    ///
    /// # Errors
    /// They are no table's, or one of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let mut input = Input::new(bytes);
        if input.u64()? != MAGIC || input.u32()? != VERSION {
            return Err(WireError::Invalid(Malformed::ClassTable));
        }
        let bytes = input.u32()?;
        let mut recording = [0; 16];
        recording.copy_from_slice(input.take(16)?);
        Ok(Self { bytes, recording })
    }
}

/// Ids and descriptions (for [`ClassView::decode`](crate::schema::ClassView::decode)) in the bytes after the
/// header, up to the first that is cut short.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut input = Input::new(bytes);
    core::iter::from_fn(move || {
        let id = input.u16().ok()?;
        let length = input.u16().ok()?;
        Some((id, input.take(length.into()).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{ClassView, Level};

    fn class(name: &str) -> Class<'_> {
        Class {
            name,
            level: Level::Info,
            major: 0,
            description: "",
            print: "",
            file: "a.rs",
            line: 3,
            fields: &[],
        }
    }

    #[test]
    fn what_was_written_is_read() {
        let mut memory = [0; 100];
        let mut writer = Writer::new(&mut memory, &[7; 16]).unwrap();
        writer.push(1, &class("a:b")).unwrap();
        let mut encoded = [0; 100];
        let mut message = crate::message::ClassesWriter::new(&mut encoded).unwrap();
        message.push(&class("a:cd")).unwrap();
        let encoded = crate::message::decode_classes(message.finish()).unwrap().next().unwrap().unwrap();
        writer.push_encoded(513, encoded).unwrap();
        assert_eq!(writer.push(514, &class("a:efghijklmnopqrstuvwxyz")), Err(WireError::TooLarge));
        let header = Header::decode(&memory[..HEADER]).unwrap();
        assert_eq!(header.recording, [7; 16]);
        let all = &memory[HEADER..HEADER + header.bytes as usize];
        let names = entries(all).map(|(id, class)| (id, ClassView::decode(class).unwrap().name));
        assert!(names.eq([(1, "a:b"), (513, "a:cd")]));
        for cut in 0..all.len() {
            assert!(entries(&all[..cut]).count() < 2);
        }
        assert!(Header::decode(&memory[..HEADER - 1]).is_err() && Header::decode(&[0; HEADER]).is_err());
    }
}
