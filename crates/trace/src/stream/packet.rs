//! One stream file, packet by packet: looks at a packet's header first, and reads the rest only when asked
//! to.
//!
//! Of a large packet, and of a stream without packets, a part is held at a time: as much as one event needs
//! at least.

mod bytes;
mod head;
mod whole;

pub(crate) use head::{Counter, PacketHead, has_size};
pub(crate) use whole::Whole;

use crate::stream::remark::Remarks;
use crate::stream::window::Window;
use crate::time::clock::Clock;
use crate::{Error, StreamFault};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracewing_ctf::decode::{Decoder, Event, Position, Record, Stand, Step, StreamReader, Stretch, Visitor};
use tracewing_ctf::index::Entry;
use tracewing_ctf::model::{Role, Scope};
use tracewing_units::Cycles;

/// Bytes read to look at a header when nothing is known about the packet's size.
const FIRST_LOOK: u64 = 4096;

/// Reads a stream file's packets.
pub(crate) type PacketReader = StreamReader<Window>;

/// A packet that extends past the end of the file: the bytes that it claims, and those that it has.
#[derive(Debug, Clone, Copy)]
struct Cut {
    claimed: u64,
    rest: u64,
}

impl Cut {
    fn fault(self, packet: u64) -> StreamFault {
        StreamFault::Cut { packet, claimed: self.claimed, rest: self.rest }
    }
}

/// A stream file and the packet where its reader stands.
pub(crate) struct PacketFile {
    path: PathBuf,
    /// Links out of this folder are not followed.
    root: Arc<Path>,
    decoder: Arc<Decoder>,
    handle: Option<File>,
    /// Offset in bytes of the packet to be looked at, or being read.
    offset: u64,
    index: u64,
    /// Number of the first packet whose events are selected.
    first: u64,
    /// The file is taken to end here, in bytes, if it does not before.
    limit: u64,
    head: Option<PacketHead>,
    /// Set if the current packet extends past the end of the file.
    cut: Option<Cut>,
    /// Positioned in the current packet, or after the previous one.
    reader: Option<PacketReader>,
    /// Up to which byte of the packet at hand `reader` holds it.
    held: u64,
    /// Offset after the header and context of the current packet, in bytes.
    body: u64,
    /// Where to begin in the packet of this number.
    inside: Option<(u64, Position)>,
    /// Bytes to read for the next look.
    look: u64,
    /// Bytes to read at once.
    part: u64,
    clock: Option<(u64, Option<Clock>)>,
    remarks: Arc<Remarks>,
}

impl std::fmt::Debug for PacketFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketFile")
            .field("path", &self.path)
            .field("offset", &self.offset)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

impl PacketFile {
    pub(crate) fn new(path: PathBuf, root: Arc<Path>, decoder: Arc<Decoder>) -> Self {
        PacketFile {
            path,
            root,
            decoder,
            handle: None,
            offset: 0,
            index: 0,
            first: 0,
            limit: u64::MAX,
            head: None,
            cut: None,
            reader: None,
            held: 0,
            body: 0,
            inside: None,
            look: FIRST_LOOK,
            part: bytes::PART,
            clock: None,
            remarks: Arc::default(),
        }
    }

    /// The same, with remarks on what is found in it.
    pub(crate) fn with_remarks(self, remarks: Arc<Remarks>) -> Self {
        PacketFile { remarks, ..self }
    }

    /// A file that is open already.
    pub(crate) fn of_open(file: File, path: PathBuf, decoder: Arc<Decoder>) -> Self {
        let root = path.as_path().into();
        PacketFile { handle: Some(file), ..Self::new(path, root, decoder) }
    }

    /// Links out of this folder are not followed.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes the packet at byte `offset` the current one, with the number `index`. Events before packet
    /// `first` are passed over.
    pub(crate) fn seek(&mut self, offset: u64, index: u64, first: u64) {
        (self.offset, self.index, self.first) = (offset, index, first);
        (self.head, self.cut, self.reader, self.inside) = (None, None, None, None);
        self.held = 0;
        self.look = FIRST_LOOK;
    }

    /// Has the packet of this number begin at a position inside of it.
    pub(crate) fn begin_at(&mut self, packet: u64, position: Position) {
        self.inside = Some((packet, position));
    }

    /// Number of bytes read at once.
    #[cfg(test)]
    pub(crate) fn read_in_parts_of(&mut self, bytes: u64) {
        self.part = bytes;
    }

    /// Where the next event of the packet at hand begins.
    pub(crate) fn position(&self) -> Option<Position> {
        Some(self.reader.as_ref()?.position())
    }

    /// Takes the file to end at byte `limit`, which is the end of a packet.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The offset of the packet at hand, in bytes, and its number.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.offset, self.index)
    }

    /// The number of the first packet, from the current one, whose events are selected.
    pub(crate) fn next_packet(&self) -> u64 {
        self.index.max(self.first)
    }

    /// Whether the events of the current packet are passed over.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.index < self.first
    }

    /// The header of the packet at hand; `None` at the end of the file.
    pub(crate) fn head(&mut self) -> Result<Option<PacketHead>, Error> {
        if let Some(head) = self.head {
            return Ok(Some(head));
        }
        let size = self.size()?;
        if self.offset > size {
            return Err(self.error(StreamFault::Shorter { packet: self.index }));
        }
        if self.offset == size {
            return Ok(None);
        }
        let rest = size - self.offset;
        let mut want = self.look.min(rest);
        loop {
            match self.load(want, want) {
                Ok(Step::Packet) => {
                    let Some(reader) = self.reader.take() else { return Ok(None) };
                    let Some(class) = reader.data_stream_class() else { return Ok(None) };
                    let head = self.note(class, reader.packet(), rest)?;
                    self.head = Some(head);
                    self.body = reader.position().bits.div_ceil(8);
                    self.reader = Some(reader);
                    return Ok(Some(head));
                }
                Ok(_) => return Ok(None),
                // The header itself may be longer than what was looked at.
                Err(Error::Ctf { .. }) if want < rest => want = want.saturating_mul(4).min(rest),
                Err(error) => return Err(error),
            }
        }
    }

    /// Advances to the next event, or to the packet's end.
    pub(crate) fn step(&mut self) -> Result<Step, Error> {
        loop {
            let Some(reader) = &mut self.reader else { return Ok(Step::End) };
            let step = reader.advance();
            match step {
                Ok(Step::Event | Step::Packet) => {}
                _ if self.read_on()? => continue,
                _ => {}
            }
            return match (step, &self.cut) {
                (Ok(step @ (Step::Event | Step::Packet)), _) => Ok(step),
                (_, Some(cut)) => Err(self.error(cut.fault(self.index))),
                (step, None) => step.map_err(Error::ctf(&self.path)),
            };
        }
    }

    /// Advances to the next event if that is cheap, and returns the value of its clock, which means nothing
    /// in a stream without one; otherwise does nothing and returns `None`.
    #[inline]
    pub(crate) fn step_fast(&mut self) -> Option<Cycles> {
        let reader = self.reader.as_mut()?;
        reader.advance_fast().then(|| reader.clock())
    }

    /// Shows the rest of the packet's events to `each`.
    #[inline]
    pub(crate) fn for_each(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        loop {
            let Some(reader) = &mut self.reader else { return Ok(()) };
            let result = reader.for_each_in_packet(&mut each);
            if !self.read_on()? {
                return match &self.cut {
                    Some(cut) => Err(self.error(cut.fault(self.index))),
                    None => result.map_err(Error::ctf(&self.path)),
                };
            }
        }
    }

    /// What an index has about the packet at hand; `None` at the end, and where the packet is damaged or has
    /// no beginning.
    pub(crate) fn entry(&mut self) -> Option<Entry> {
        self.head().ok()??;
        let packet = self.reader.as_ref().filter(|_| self.cut.is_none())?.packet();
        Some(Entry {
            offset: self.offset,
            packet_bits: packet.packet_bits,
            content_bits: packet.content_bits,
            begin: packet.begin?,
            end: packet.end.unwrap_or_default(),
            discarded: packet.discarded.unwrap_or(0),
            stream_id: self.head?.class_id,
            stream_instance_id: packet.stream_instance_id,
            seq: packet.seq,
        })
    }

    /// The clock, if each packet sets it by a whole begin stamp.
    pub(crate) fn clock_set_by_packets(&mut self) -> Option<Clock> {
        self.head().ok()??;
        let class = self.reader.as_ref()?.data_stream_class()?;
        let is_whole = class.packet_context_bits(Role::DefaultClockTimestamp) == Some(64);
        self.clock().filter(|_| is_whole)
    }

    /// Advances past the current packet.
    pub(crate) fn leave_packet(&mut self) {
        if let Some(head) = self.head.take() {
            self.offset += head.bytes;
            self.index += 1;
        }
        self.held = 0;
    }

    /// Releases file handle and memory; the next access takes them again.
    pub(crate) fn rest(&mut self) {
        self.handle = None;
        self.reader = None;
        self.held = 0;
        self.look = FIRST_LOOK;
    }

    /// The event that the last step gave.
    ///
    /// # Panics
    /// Outside of a packet.
    #[inline(always)]
    pub(crate) fn event(&self) -> Event<'_> {
        self.reader.as_ref().expect("an event is asked for only inside of a packet").event()
    }

    /// The stamp of the event that the last step gave, in a stream that has a clock.
    #[inline]
    pub(crate) fn clock_value(&self) -> Option<Cycles> {
        self.reader.as_ref().map(StreamReader::clock)
    }

    /// The class and the bytes of the event that the last step gave: see [`Event::class_index`] and
    /// [`Event::record`].
    #[inline]
    pub(crate) fn record(&self) -> (usize, Option<Record<'_>>) {
        self.reader.as_ref().map_or((0, None), |reader| (reader.class_index(), reader.record()))
    }

    /// The events from the current one on, if they can be stepped over apart from the reader.
    pub(crate) fn stretch(&self) -> Option<Stretch<'_>> {
        self.reader.as_ref()?.stretch()
    }

    /// Continues where such events have been stepped over.
    pub(crate) fn resume(&mut self, stand: Stand) {
        if let Some(reader) = &mut self.reader {
            reader.resume(stand);
        }
    }

    /// The reader in the current packet, once it has been accessed.
    pub(crate) fn reader(&self) -> Option<&PacketReader> {
        self.reader.as_ref()
    }

    /// Shows the members of the packet's header or context.
    pub(crate) fn visit_packet(&self, scope: Scope, visitor: &mut impl Visitor) {
        if let Some(reader) = &self.reader {
            reader.visit_packet(scope, visitor);
        }
    }

    /// Remarks on events of the packet before the one at hand, later than their packet and than the begin of
    /// this one.
    #[cold]
    pub(crate) fn remark_late_events(&self) {
        self.remarks.remark(|| {
            let (path, packet) = (self.path.display(), self.index.saturating_sub(1));
            format!(
                "{path}: events of packet {packet} are later than its end and than the next packet begins: where a part \
                 of the time is read, such events may be left out"
            )
        });
    }

    /// The clock of the packet at hand.
    pub(crate) fn clock(&self) -> Option<Clock> {
        self.clock.and_then(|(_, clock)| clock)
    }

    /// An error in the packet at hand.
    pub(crate) fn error(&self, cause: StreamFault) -> Error {
        Error::Stream { path: self.path.clone(), offset: self.offset, cause }
    }

    /// What decodes the file.
    pub(crate) fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
