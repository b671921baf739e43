//! Brings the bytes of the packet at hand into memory: its beginning, and more of it as the reader comes to
//! what it lacks.

use super::{FIRST_LOOK, PacketFile};
use crate::stream::window::Window;
use crate::{Error, StreamFault};
use std::fs::{File, Metadata};
use tracewing_ctf::decode::{Step, StreamReader};
use tracewing_files::Tree;

/// Bytes of a packet that are read at once. Packets of most tracers are smaller.
pub(super) const PART: u64 = 4 << 20;

/// Most bytes that are held for one event, or for a packet's header. A damaged length, in a file with holes,
/// must not take all memory.
const MOST_HELD: u64 = 1 << 31;

impl PacketFile {
    /// Gives the reader `length` bytes from the beginning of the packet, which has `bytes` at least, and lets
    /// it read the header.
    pub(super) fn load(&mut self, length: u64, bytes: u64) -> Result<Step, Error> {
        self.check_held(length)?;
        let rest = self.size()?.saturating_sub(self.offset);
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => StreamReader::new(self.decoder.clone(), Window::default()),
        };
        let mut window = reader.replace(Window::default(), self.offset, self.index);
        self.held = 0;
        if let Err(cause) = window.reset(bytes) {
            return Err(self.error(StreamFault::NoRoom { packet: self.index, bytes, cause }));
        }
        if let Some(handle) = &self.handle {
            window.fill(handle, self.offset, length).map_err(Error::io(&self.path))?;
        }
        self.held = window.as_ref().len() as u64;
        reader.replace_part(window, self.offset, self.index, rest);
        self.reader.insert(reader).advance().map_err(Error::ctf(&self.path))
    }

    /// Makes sure that the beginning of the packet at hand is in memory, for [`PacketFile::step`].
    pub(crate) fn enter_packet(&mut self) -> Result<(), Error> {
        let Some(head) = self.head()? else { return Ok(()) };
        let part = head.bytes.min(self.part.max(self.body));
        self.look = part.max(FIRST_LOOK);
        if self.held < part {
            self.load(part, head.bytes)?;
            self.check_there(part)?;
        }
        if let (Some((_, position)), Some(reader)) =
            (self.inside.take_if(|(packet, _)| *packet == self.index), &mut self.reader)
            && reader.go_to(position)
        {
            self.held = reader.extend(|window| window.skip_to(position.bits / 8));
        }
        Ok(())
    }

    /// Reads more of the packet at hand, should the reader lack that; false if it does not, or there is no
    /// more.
    pub(super) fn read_on(&mut self) -> Result<bool, Error> {
        let (Some(reader), Some(head)) = (&mut self.reader, self.head) else { return Ok(false) };
        if !reader.wants_more() || self.held >= head.bytes {
            return Ok(false);
        }
        // Each time for the same event twice as much of it.
        let event = reader.position().bits / 8;
        let after = self.held.saturating_sub(event);
        let to = self.held.saturating_add(self.part.max(after)).min(head.bytes);
        self.check_held(after)?;
        let (Some(handle), Some(reader)) = (&self.handle, &mut self.reader) else { return Ok(false) };
        let held = reader.extend(|window| {
            window.forget(self.body..event);
            window.fill(handle, self.offset, to).map(|()| window.as_ref().len() as u64)
        });
        self.held = held.map_err(Error::io(&self.path))?;
        self.check_there(to)?;
        Ok(true)
    }

    fn check_held(&self, bytes: u64) -> Result<(), Error> {
        if bytes > MOST_HELD {
            return Err(self.error(StreamFault::TooLong { packet: self.index, most: MOST_HELD }));
        }
        Ok(())
    }

    fn check_there(&self, bytes: u64) -> Result<(), Error> {
        if self.held < bytes {
            return Err(self.error(StreamFault::Shorter { packet: self.index }));
        }
        Ok(())
    }

    /// What the file system says of the file.
    pub(crate) fn metadata(&mut self) -> Option<Metadata> {
        self.size().ok()?;
        self.handle.as_ref()?.metadata().ok()
    }

    pub(super) fn size(&mut self) -> Result<u64, Error> {
        let path = &self.path;
        if self.handle.is_none() {
            self.handle = Some(Tree::open_file(&self.root, path).map_err(Error::io(path))?);
        }
        let handle = self.handle.as_ref().map(File::metadata).transpose().map_err(Error::io(path))?;
        Ok(handle.map_or(0, |meta| meta.len()).min(self.limit))
    }
}
