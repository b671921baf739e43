//! One stream file, packet by packet: looks at a packet's header first, and reads all of it only when asked to.

use crate::Error;
use crate::clock::Clock;
use std::fs::{File, Metadata};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracewing_ctf::decode::{Decoder, Event, Packet, Step, StreamReader, Visitor};
use tracewing_ctf::index::Entry;
use tracewing_ctf::model::{DataStreamClass, Role, Scope, TraceClass};

/// Bytes read to look at a header when nothing is known about the packet's size.
const FIRST_LOOK: usize = 4096;

/// Largest packet that is read, in bytes. Tracers write packets of kilobytes to megabytes; a damaged size, in a file
/// with holes, must not take all memory.
const MAX_PACKET: u64 = 1 << 31;

/// What a packet's header and context say. Stamps are in nanoseconds since the clock's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketHead {
    pub(crate) class_id: u64,
    pub(crate) instance_id: Option<u64>,
    pub(crate) begin_ns: Option<i64>,
    pub(crate) end_ns: Option<i64>,
    /// Events lost in the stream so far.
    pub(crate) discarded: Option<Counter>,
    pub(crate) sequence: Option<Counter>,
    pub(crate) cpu: Option<u64>,
    pub(crate) bytes: u64,
}

/// A counter that may wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counter {
    pub(crate) value: u64,
    /// Its size in bits, 1 to 64.
    pub(crate) bits: u32,
}

impl Counter {
    /// How far it went since `before`.
    pub(crate) fn since(self, before: Counter) -> u64 {
        self.value.wrapping_sub(before.value) & (u64::MAX >> (64 - self.bits.clamp(1, 64)))
    }
}

/// Whether a packet of a file that is being written is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    /// It is, and up to when it reaches, in nanoseconds since the clock's origin; `i64::MIN` where nothing in it has a stamp.
    Yes { reach: i64 },
    /// Bytes are missing, or it does not say how many it has.
    NotYet,
    /// It cannot be decoded, at least not with the metadata that there is.
    Damaged,
}

/// A stream file and the packet where its reader stands.
pub(crate) struct PacketFile {
    path: PathBuf,
    decoder: Arc<Decoder>,
    handle: Option<File>,
    /// Offset in bytes of the packet to be looked at, or being read.
    offset: u64,
    index: u64,
    /// Events of packets before this one are not wanted.
    first: u64,
    /// The file is taken to end here, in bytes, if it does not before.
    limit: u64,
    head: Option<PacketHead>,
    /// The packet at hand goes on behind the end of the file; how, in words.
    cut: Option<String>,
    /// Stands in the packet at hand, or behind the one before it.
    reader: Option<StreamReader<Vec<u8>>>,
    /// Bytes that `reader` holds of the packet at hand.
    held: usize,
    /// Memory for the next bytes.
    spare: Vec<u8>,
    /// Bytes to read for the next look.
    look: usize,
    clock: Option<(u64, Option<Clock>)>,
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
    pub(crate) fn new(path: PathBuf, decoder: Arc<Decoder>) -> Self {
        PacketFile {
            path,
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
            spare: Vec::new(),
            look: FIRST_LOOK,
            clock: None,
        }
    }

    /// Makes the packet at byte `offset` the one at hand, and this its number. Events before packet `first` are not wanted.
    pub(crate) fn seek(&mut self, offset: u64, index: u64, first: u64) {
        (self.offset, self.index, self.first) = (offset, index, first);
        (self.head, self.cut, self.reader) = (None, None, None);
        self.held = 0;
        self.look = FIRST_LOOK;
    }

    /// Takes the file to end at byte `limit`, which is the end of a packet.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// The offset of the packet at hand, in bytes, and its number.
    pub(crate) fn place(&self) -> (u64, u64) {
        (self.offset, self.index)
    }

    /// Whether the events of the packet at hand are not wanted.
    pub(crate) fn is_passed_over(&self) -> bool {
        self.index < self.first
    }

    /// The header of the packet at hand; `None` at the end of the file.
    pub(crate) fn head(&mut self) -> Result<Option<PacketHead>, Error> {
        if let Some(head) = self.head {
            return Ok(Some(head));
        }
        let size = self.size()?;
        if self.offset >= size {
            return Ok(None);
        }
        let rest = size - self.offset;
        let mut want = (self.look as u64).min(rest);
        loop {
            match self.load(want) {
                Ok(Step::Packet) => {
                    let Some(reader) = self.reader.take() else { return Ok(None) };
                    let Some(class) = reader.data_stream_class() else { return Ok(None) };
                    // Without a size, the packet is all that follows.
                    if want < rest && !has_size(class) {
                        self.reader = Some(reader);
                        want = rest;
                        continue;
                    }
                    let head = self.note(class, reader.packet(), rest)?;
                    self.head = Some(head);
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

    /// Gives the reader `length` bytes from the packet's beginning, and lets it read the header.
    fn load(&mut self, length: u64) -> Result<Step, Error> {
        let bytes = self.read(length)?;
        self.held = bytes.len();
        let step = match &mut self.reader {
            Some(reader) => {
                self.spare = reader.replace(bytes, self.offset, self.index);
                reader.advance()
            }
            None => {
                let mut reader = StreamReader::new(self.decoder.clone(), Vec::new());
                reader.replace(bytes, self.offset, self.index);
                self.reader.insert(reader).advance()
            }
        };
        step.map_err(Error::ctf(&self.path))
    }

    /// Collects what the header says. A packet that the file does not hold to its end has the bytes that there are, and
    /// ends with an error.
    fn note(&mut self, class: &DataStreamClass, packet: &Packet, rest: u64) -> Result<PacketHead, Error> {
        let class_id = class.id;
        let claimed = packet.packet_bits.div_ceil(8);
        let bytes = claimed.min(rest);
        self.cut = (claimed > rest).then(|| {
            format!(
                "packet {} claims {claimed} bytes, but the file ends {rest} bytes after its beginning",
                self.index
            )
        });
        if bytes == 0 {
            return Err(self.error(format!("packet {} claims to have no bytes", self.index)));
        }
        let clock = match self.clock {
            Some((id, clock)) if id == class_id => clock,
            _ => {
                let clock = self.find_clock(class)?;
                self.clock = Some((class_id, clock));
                clock
            }
        };
        let ns = |cycles: Option<u64>| match (cycles, clock) {
            (Some(cycles), Some(clock)) => clock.ns(cycles).map(Some).ok_or_else(|| {
                self.error(format!(
                    "packet {}: the stamp {cycles} lies outside of what nanoseconds can say",
                    self.index
                ))
            }),
            _ => Ok(None),
        };
        Ok(PacketHead {
            class_id,
            instance_id: packet.stream_instance_id,
            begin_ns: ns(packet.begin)?,
            end_ns: ns(packet.end)?,
            discarded: packet
                .discarded
                .map(|value| Counter { value, bits: bits(class, Role::DiscardedEventRecordCounterSnapshot) }),
            sequence: packet
                .seq
                .map(|value| Counter { value, bits: bits(class, Role::PacketSequenceNumber) }),
            cpu: packet.cpu_id,
            bytes,
        })
    }

    /// The clock of a data stream class: the one that any of its stamps is mapped to.
    fn find_clock(&self, class: &DataStreamClass) -> Result<Option<Clock>, Error> {
        let trace = self.decoder.trace_class();
        let Some(name) = &class.default_clock else { return Ok(None) };
        let Some(class) = TraceClass::clock_class(trace, name) else { return Ok(None) };
        match Clock::new(class) {
            Some(clock) => Ok(Some(clock)),
            None => {
                Err(self
                    .error(format!("the offset of clock `{name}` lies outside of what nanoseconds can say")))
            }
        }
    }

    /// Makes sure that all of the packet at hand is in memory, for [`PacketFile::step`].
    pub(crate) fn enter_packet(&mut self) -> Result<(), Error> {
        let Some(head) = self.head()? else { return Ok(()) };
        self.look = usize::try_from(head.bytes).unwrap_or(FIRST_LOOK).max(FIRST_LOOK);
        if self.held as u64 >= head.bytes {
            return Ok(());
        }
        self.load(head.bytes)?;
        if (self.held as u64) < head.bytes {
            return Err(
                self.error(format!("packet {}: the file became shorter while it was read", self.index))
            );
        }
        Ok(())
    }

    /// Goes on to the next event, or to the packet's end.
    pub(crate) fn step(&mut self) -> Result<Step, Error> {
        let Some(reader) = &mut self.reader else { return Ok(Step::End) };
        match (reader.advance(), &self.cut) {
            (Ok(step @ (Step::Event | Step::Packet)), _) => Ok(step),
            (_, Some(cut)) => Err(self.error(cut.clone())),
            (Ok(step), None) => Ok(step),
            (Err(error), None) => Err(Error::ctf(&self.path)(error)),
        }
    }

    /// Goes on to the next event if that is easy; else nothing happens.
    #[inline]
    pub(crate) fn step_fast(&mut self) -> bool {
        self.reader.as_mut().is_some_and(StreamReader::advance_fast)
    }

    /// Shows the rest of the packet's events to `each`.
    #[inline]
    pub(crate) fn for_each(&mut self, each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        match (reader.for_each_in_packet(each), &self.cut) {
            (_, Some(cut)) => Err(self.error(cut.clone())),
            (result, None) => result.map_err(Error::ctf(&self.path)),
        }
    }

    /// What an index has about the packet at hand; `None` at the end, and where the packet is damaged or has no begin.
    pub(crate) fn entry(&mut self) -> Option<Entry> {
        self.head().ok()??;
        let packet = self.reader.as_ref().filter(|_| self.cut.is_none())?.packet();
        Some(Entry {
            offset: self.offset,
            packet_bits: packet.packet_bits,
            content_bits: packet.content_bits,
            begin: packet.begin?,
            end: packet.end.unwrap_or(0),
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

    /// Reads all of the packet at hand, to see whether it is whole. If not, it can be tried again.
    pub(crate) fn try_packet(&mut self) -> Whole {
        let whole = self.reach_of_whole();
        if !matches!(whole, Whole::Yes { .. }) {
            self.seek(self.offset, self.index, self.first);
        }
        whole
    }

    fn reach_of_whole(&mut self) -> Whole {
        let head = match self.head() {
            Ok(Some(head)) => head,
            Err(_) if self.size().is_ok_and(|size| size - self.offset >= FIRST_LOOK as u64) => {
                return Whole::Damaged;
            }
            _ => return Whole::NotYet,
        };
        let class = self.reader.as_ref().and_then(StreamReader::data_stream_class);
        if self.cut.is_some() || !class.is_some_and(has_size) {
            return Whole::NotYet;
        }
        if self.enter_packet().is_err() {
            return Whole::Damaged;
        }
        let mut reach = head.begin_ns.max(head.end_ns);
        loop {
            match self.step() {
                Ok(Step::Event) => {
                    let stamp = self.event().clock_value().zip(self.clock());
                    reach = reach.max(stamp.and_then(|(cycles, clock)| clock.ns(cycles)));
                }
                Ok(Step::Packet) => {}
                Ok(Step::PacketEnd | Step::End) => return Whole::Yes { reach: reach.unwrap_or(i64::MIN) },
                Err(_) => return Whole::Damaged,
            }
        }
    }

    /// Goes on behind the packet at hand.
    pub(crate) fn leave_packet(&mut self) {
        if let Some(head) = self.head.take() {
            self.offset += head.bytes;
            self.index += 1;
        }
        self.held = 0;
    }

    /// Gives back file handle and memory; the next look takes them again.
    pub(crate) fn rest(&mut self) {
        self.handle = None;
        self.reader = None;
        self.spare = Vec::new();
        self.held = 0;
        self.look = FIRST_LOOK;
    }

    /// The event that the last step gave.
    ///
    /// # Panics
    /// Outside of a packet.
    #[inline]
    pub(crate) fn event(&self) -> Event<'_> {
        self.reader.as_ref().expect("an event is asked for only inside of a packet").event()
    }

    /// The stamp of the event that the last step gave.
    #[inline]
    pub(crate) fn clock_value(&self) -> Option<u64> {
        self.reader.as_ref()?.clock_value()
    }

    /// What stands in the packet at hand, once it has been looked at.
    pub(crate) fn reader(&self) -> Option<&StreamReader<Vec<u8>>> {
        self.reader.as_ref()
    }

    /// Shows the members of the packet's header or context.
    pub(crate) fn visit_packet(&self, scope: Scope, visitor: &mut impl Visitor) {
        if let Some(reader) = &self.reader {
            reader.visit_packet(scope, visitor);
        }
    }

    /// The clock of the packet at hand.
    pub(crate) fn clock(&self) -> Option<Clock> {
        self.clock.and_then(|(_, clock)| clock)
    }

    /// An error in the packet at hand.
    pub(crate) fn error(&self, message: String) -> Error {
        Error::Stream { path: self.path.clone(), offset: self.offset, message }
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file system says of the file.
    pub(crate) fn metadata(&mut self) -> Option<Metadata> {
        self.size().ok()?;
        self.handle.as_ref()?.metadata().ok()
    }

    fn size(&mut self) -> Result<u64, Error> {
        let path = &self.path;
        if self.handle.is_none() {
            self.handle = Some(File::open(path).map_err(Error::io(path))?);
        }
        let handle = self.handle.as_ref().map(File::metadata).transpose().map_err(Error::io(path))?;
        Ok(handle.map_or(0, |meta| meta.len()).min(self.limit))
    }

    /// Up to `length` bytes from the packet's beginning; the file has that many, as far as is known.
    fn read(&mut self, length: u64) -> Result<Vec<u8>, Error> {
        self.size()?;
        let index = self.index;
        if length > MAX_PACKET {
            return Err(
                self.error(format!("packet {index} has {length} bytes; more than {MAX_PACKET} are not read"))
            );
        }
        let length = length as usize;
        let mut bytes = std::mem::take(&mut self.spare);
        if bytes.try_reserve_exact(length.saturating_sub(bytes.len())).is_err() {
            return Err(self.error(format!("packet {index}: no memory for its {length} bytes")));
        }
        bytes.resize(length, 0);
        let path = &self.path;
        let Some(handle) = &self.handle else { return Ok(Vec::new()) };
        let mut filled = 0;
        while filled < length {
            match handle.read_at(&mut bytes[filled..], self.offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(path)(error)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// Whether packets of the class say how long they are.
fn has_size(class: &DataStreamClass) -> bool {
    let sizes = [Role::PacketTotalLength, Role::PacketContentLength];
    sizes.into_iter().any(|role| class.packet_context_bits(role).is_some())
}

/// The size in bits of the packet context's integer with this role.
fn bits(class: &DataStreamClass, role: Role) -> u32 {
    class.packet_context_bits(role).unwrap_or(64)
}
