//! One data stream: the file with a CPU buffer's packets, and its index.
//!
//! A packet is header, context and the events as they lie in the ring buffer; all three go to the file with one system
//! call. A write that fails or stays short (disk full, quota, file size limit) is cut off again, so a stream file always
//! ends with a whole packet and its index agrees with it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use tracewing_ctf::index::{self, Entry};
use tracewing_ctf::model::Uuid;
use tracewing_ctf::write::{PACKET_HEADER_SIZE, PacketHeader};
use tracewing_files::Dir;

use crate::Error;
use crate::classes::USER_STREAM_CLASS;

/// Events in shared memory that make up a packet.
#[derive(Debug, Clone, Copy)]
pub struct Events {
    /// First byte.
    pub start: *const u8,
    /// Bytes.
    pub len: usize,
}

/// What a packet says besides its events.
#[derive(Debug, Clone, Copy)]
pub struct PacketTimes {
    /// Not after its first event, cycles.
    pub begin: u64,
    /// Not before its last event, cycles.
    pub end: u64,
    /// Events lost in the stream so far, cumulative.
    pub lost: u64,
    /// Packets that the stream would have besides those written, had their sub-buffers not been overwritten; cumulative.
    /// Readers see the packet's number jump, and say so.
    pub skipped: u64,
}

impl PacketTimes {
    /// Of a packet without events, at one moment.
    pub(crate) fn empty(at: u64, lost: u64, skipped: u64) -> Self {
        Self { begin: at, end: at, lost, skipped }
    }
}

/// The folder of a trace, and the one of indexes in it.
#[derive(Debug, Clone)]
pub struct TraceDir {
    trace: Dir,
    index: Dir,
}

impl TraceDir {
    /// The trace in this folder, in which the folder of indexes is made.
    ///
    /// # Errors
    /// It is there, or cannot be made.
    pub fn new(trace: &Dir) -> Result<Self, Error> {
        let index = trace.make("index").map_err(Error::file("create", &trace.path().join("index")))?;
        Ok(Self { trace: trace.clone(), index })
    }
}

/// A stream file that is being written.
pub struct Stream {
    name: String,
    data: File,
    index: File,
    path: PathBuf,
    uuid: Uuid,
    instance: u64,
    cpu: u32,
    bytes: u64,
    index_bytes: u64,
    packets: u64,
    begin: u64,
    end: u64,
    lost: u64,
    skipped: u64,
}

impl Stream {
    /// Creates `NAME` in the folder of a trace, and `NAME.idx` in its folder of indexes.
    ///
    /// # Errors
    /// A file exists or cannot be created or written.
    pub fn create(folder: &TraceDir, name: &str, uuid: Uuid, instance: u64, cpu: u32) -> Result<Self, Error> {
        let path = folder.trace.path().join(name);
        let index_name = format!("{name}.idx");
        let index_path = folder.index.path().join(&index_name);
        let data = folder.trace.create_file(name).map_err(Error::file("create", &path))?;
        let index = folder.index.create_file(&index_name).map_err(Error::file("create", &index_path))?;
        index.write_all_at(&index::encode_header(), 0).map_err(Error::file("write", &index_path))?;
        Ok(Self {
            name: name.to_owned(),
            data,
            index,
            path,
            uuid,
            instance,
            cpu,
            bytes: 0,
            index_bytes: index::HEADER_SIZE as u64,
            packets: 0,
            begin: 0,
            end: 0,
            lost: 0,
            skipped: 0,
        })
    }

    /// Appends a packet. Times and the loss count are raised to the previous packet's where they are below it.
    ///
    /// # Errors
    /// It could not be written as a whole; the files are as they were before.
    ///
    /// # Safety
    /// `events` lies in memory that stays mapped and readable during the call. Its bytes may change meanwhile.
    pub unsafe fn write(&mut self, events: Events, times: PacketTimes) -> Result<(), Error> {
        let size = (PACKET_HEADER_SIZE + events.len) as u64;
        let begin = times.begin.max(self.end);
        let header = PacketHeader {
            uuid: self.uuid,
            stream_id: USER_STREAM_CLASS as u32,
            stream_instance_id: self.instance,
            begin,
            end: times.end.max(begin),
            content_bytes: size,
            packet_bytes: size,
            seq: self.packets.wrapping_add(times.skipped.max(self.skipped)),
            discarded: times.lost.max(self.lost),
            cpu: self.cpu,
        };
        let entry = Entry {
            offset: self.bytes,
            packet_bits: size * 8,
            content_bits: size * 8,
            begin,
            end: header.end,
            discarded: header.discarded,
            stream_id: USER_STREAM_CLASS,
            stream_instance_id: Some(self.instance),
            seq: Some(header.seq),
        };
        // SAFETY: the caller's obligation.
        let written = unsafe { self.write_gathered(&header.encode(), events) }
            .and_then(|()| self.index.write_all_at(&index::encode_entry(&entry), self.index_bytes));
        if let Err(error) = written {
            // Shortening needs no space; if it fails all the same, readers still stop at the torn packet.
            let _ = self.data.set_len(self.bytes);
            let _ = self.index.set_len(self.index_bytes);
            return Err(Error::file("write", &self.path)(error));
        }
        self.bytes += size;
        self.index_bytes += index::ENTRY_SIZE as u64;
        if self.packets == 0 {
            self.begin = begin;
        }
        self.packets += 1;
        (self.end, self.lost) = (header.end, header.discarded);
        self.skipped = self.skipped.max(times.skipped);
        Ok(())
    }

    /// Appends a packet without events, so that losses after the last event are seen.
    ///
    /// # Errors
    /// As [`Stream::write`].
    pub fn write_empty(&mut self, times: PacketTimes) -> Result<(), Error> {
        // SAFETY: no bytes are read through a pointer with length 0.
        unsafe { self.write(Events { start: std::ptr::NonNull::dangling().as_ptr(), len: 0 }, times) }
    }

    /// # Safety
    /// As [`Stream::write`].
    unsafe fn write_gathered(&self, header: &[u8], events: Events) -> io::Result<()> {
        let total = header.len() + events.len;
        let mut done = 0;
        while done < total {
            let in_header = done.min(header.len());
            let in_events = done - in_header;
            let rest = &header[in_header..];
            let parts = [
                libc::iovec { iov_base: rest.as_ptr().cast_mut().cast(), iov_len: rest.len() },
                libc::iovec {
                    iov_base: events.start.wrapping_add(in_events).cast_mut().cast(),
                    iov_len: events.len - in_events,
                },
            ];
            let offset = libc::off_t::try_from(self.bytes + done as u64)
                .map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
            // SAFETY: the first part is a live slice, the second readable by the caller's obligation; the kernel only
            // reads them. No reference to the shared bytes is formed.
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

    /// Name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// CPU.
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Packets so far.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The begin of the first packet, cycles; 0 without packets.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// The end of the last packet, cycles.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Events lost, as the last packet says.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Packets skipped, as the last packet's number says.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}
