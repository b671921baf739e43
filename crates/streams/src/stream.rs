//! One data stream: the file with a CPU buffer's packets, and its index.
//!
//! A packet is header, context and the events as they are in the ring buffer; one system call writes all
//! three. A write that fails or is short (disk full, quota, file size limit) is truncated again, so a stream
//! file always ends with a whole packet and its index agrees with it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use tracewing_abi::shared::SharedBytes;
use tracewing_ctf::index;
use tracewing_ctf::model::Uuid;
use tracewing_units::{Cpu, Cycles};

use crate::{Error, PacketTimes, Packets, TraceDir};

/// A stream file that is being written.
#[derive(Debug)]
pub struct Stream {
    name: String,
    data: File,
    index: File,
    path: PathBuf,
    index_path: PathBuf,
    index_bytes: u64,
    packets: Packets,
}

impl Stream {
    /// Creates `NAME` in the folder of a trace, and `NAME.idx` in its folder of indexes.
    ///
    /// # Errors
    /// A file exists or cannot be created or written. Then there is no stream, and nothing that this has
    /// made.
    pub fn create(folder: &TraceDir, name: &str, uuid: Uuid, instance: u64, cpu: Cpu) -> Result<Self, Error> {
        let path = folder.trace.path().join(name);
        let index_name = format!("{name}.idx");
        let index_path = folder.index.path().join(&index_name);
        let data = folder.trace.create_file(name).map_err(Error::file("create", &path))?;
        let index = folder.index.create_file(&index_name).map_err(Error::file("create", &index_path));
        let index = index.inspect_err(|_| drop(folder.trace.remove(name)))?;
        let begun = index.write_all_at(&index::encode_header(), 0);
        begun.map_err(Error::file("write", &index_path)).inspect_err(|_| {
            let _ = (folder.index.remove(&index_name), folder.trace.remove(name));
        })?;
        Ok(Self {
            name: name.to_owned(),
            data,
            index,
            path,
            index_path,
            index_bytes: index::HEADER_SIZE as u64,
            packets: Packets::new(uuid, instance, cpu),
        })
    }

    /// Appends a packet of these events. Times and the loss count are raised to the previous packet's if they
    /// are below it.
    ///
    /// # Errors
    /// The packet could not be written completely; the files are unchanged.
    pub fn write(&mut self, events: &[u8], times: PacketTimes) -> Result<(), Error> {
        // SAFETY: a slice's own bytes.
        unsafe { self.write_shared(events.into(), times) }
    }

    /// As [`Stream::write`], for events in shared memory.
    ///
    /// # Errors
    /// As [`Stream::write`].
    ///
    /// # Safety
    /// `events` stays mapped and readable during the call.
    pub unsafe fn write_shared(&mut self, events: SharedBytes, times: PacketTimes) -> Result<(), Error> {
        let (header, entry) = self.packets.next(events.len(), times);
        // SAFETY: the caller's obligation.
        let written = unsafe { self.write_gathered(&header.encode(), events) };
        let written = written.map_err(Error::file("write", &self.path)).and_then(|()| {
            let indexed = self.index.write_all_at(&index::encode_entry(&entry), self.index_bytes);
            indexed.map_err(Error::file("write", &self.index_path))
        });
        if let Err(error) = written {
            // Shortening needs no space; if it fails nevertheless, readers still stop at the torn packet.
            let _ = self.data.set_len(self.packets.bytes);
            let _ = self.index.set_len(self.index_bytes);
            return Err(error);
        }
        self.index_bytes += index::ENTRY_SIZE as u64;
        self.packets.add(&header);
        Ok(())
    }

    /// Appends a packet without events, so that readers see losses after the last event.
    ///
    /// # Errors
    /// As [`Stream::write`].
    pub fn write_empty(&mut self, times: PacketTimes) -> Result<(), Error> {
        self.write(&[], times)
    }

    /// # Safety
    /// As [`Stream::write_shared`].
    unsafe fn write_gathered(&self, header: &[u8], events: SharedBytes) -> io::Result<()> {
        let total = header.len() + events.len();
        let mut done = 0;
        while done < total {
            let in_header = done.min(header.len());
            let in_events = done - in_header;
            let rest = &header[in_header..];
            let parts = [
                libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() },
                libc::iovec {
                    iov_base: events.as_ptr().wrapping_add(in_events).cast_mut().cast(),
                    iov_len: events.len() - in_events,
                },
            ];
            let offset = libc::off_t::try_from(self.packets.bytes + done as u64)
                .map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
            // SAFETY: the first part is a live slice, the second readable by the caller's obligation; the
            // kernel only reads them. No reference to the shared bytes is formed.
            let written = unsafe { libc::pwritev(self.data.as_raw_fd(), parts.as_ptr(), 2, offset) };
            match usize::try_from(written) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// File name, without the folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// CPU whose events it holds.
    pub fn cpu(&self) -> Cpu {
        self.packets.cpu()
    }

    /// Number of packets written.
    pub fn packets(&self) -> u64 {
        self.packets.count
    }

    /// Bytes written to the file.
    pub fn bytes(&self) -> u64 {
        self.packets.bytes
    }

    /// The beginning of the first packet; 0 without packets.
    pub fn begin(&self) -> Cycles {
        self.packets.begin
    }

    /// The end of the last packet.
    pub fn end(&self) -> Cycles {
        self.packets.end
    }

    /// Events lost, cumulative, from the last packet.
    pub fn lost(&self) -> u64 {
        self.packets.lost
    }

    /// Packets skipped, cumulative, from the last packet's number.
    pub fn skipped(&self) -> u64 {
        self.packets.skipped
    }
}
