//! Source of a stream file's index: LTTng's index file, the cache, or the packets' own headers.
//!
//! None of them is trusted. An index must cover the file packet by packet from its beginning, and the headers
//! of some packets must agree with it; packets that the file has beyond it are added by reading headers.
//! Before reading begins somewhere, the headers there are compared again, and if they differ, the index is
//! rebuilt from headers alone.
//!
//! There is no index if seeking would be wrong: without a clock, or if packets do not set the clock by a full
//! begin stamp, so that their events' stamps depend on everything before.

use crate::Error;
use crate::stream::index_cache::{self, Subject};
use crate::stream::packet::PacketFile;
use crate::stream::packet_index::PacketIndex;
use crate::stream::positions::Positions;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use tracewing_ctf::decode::Decoder;
use tracewing_ctf::index::{self, Entry};
use tracewing_files::{Dir, Tree};
use tracewing_units::Timestamp;

/// More than any version of LTTng's index has for a packet.
const MOST_ENTRY_BYTES: u64 = 4096;

/// An index to which fewer packets had to be added is not kept: their headers are as quickly read again.
const LEAST_KEPT: usize = 64;

/// Bytes that hold the header and the first entry of any index file.
const FIRST_LOOK: u64 = 4096;

/// The index of a stream file, built on first use.
#[derive(Debug, Default)]
pub(crate) struct IndexSlot(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    packets: Option<PacketIndex>,
    /// By the packet's number.
    inside: HashMap<u64, Option<Positions>>,
}

impl IndexSlot {
    /// Positions `file` so that it returns everything from `time` on. The previous packet is read, too, since
    /// its counters show the losses after it, but its events are skipped.
    ///
    /// Unreadable data are not an error here: reading will get there.
    pub(crate) fn seek(&self, file: &mut PacketFile, time: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (index, first) = known.find(file, time);
        file.seek(index.offset(first), first as u64, first as u64);
        let inside = known.inside.entry(first as u64).or_insert_with(|| Positions::load(file));
        let position = inside.as_mut().and_then(|positions| positions.find(file, time));
        known.go_before(first, file);
        position.into_iter().for_each(|position| file.begin_at(first as u64, position));
    }

    /// When each packet of `file` begins, in nanoseconds since the clock's origin, and at which byte; nothing
    /// where there is no index.
    pub(crate) fn packets(&self, file: &mut PacketFile) -> Vec<(Timestamp, u64)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.packets.get_or_insert_with(|| load(file)).begins().collect()
    }

    /// When each packet of `file` begins and ends, in nanoseconds since the clock's origin, and how many
    /// bytes it has; nothing where there is no index.
    pub(crate) fn spans(&self, file: &mut PacketFile) -> Vec<(Timestamp, Timestamp, u64)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.packets.get_or_insert_with(|| load(file)).spans().collect()
    }

    /// As [`IndexSlot::seek`], but always at the beginning of a packet.
    pub(crate) fn seek_packet(&self, file: &mut PacketFile, time: Timestamp) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, first) = known.find(file, time);
        known.go_before(first, file);
    }
}

impl Known {
    /// The index, and the number of the packet with which reading from `time` on begins.
    fn find(&mut self, file: &mut PacketFile, time: Timestamp) -> (&PacketIndex, usize) {
        let index = self.packets.get_or_insert_with(|| load(file));
        let agrees = |index: &PacketIndex, file: &mut PacketFile| {
            let first = index.find(time);
            (first.saturating_sub(1)..=first).all(|packet| index.agrees(packet, file))
        };
        if !agrees(index, file) {
            let entries = extend(file, Vec::new());
            *index = make(file, &entries).unwrap_or_default();
        }
        let first = index.find(time);
        (index, first)
    }

    /// Positions `file` at the packet before `first`, and skips its events.
    fn go_before(&self, first: usize, file: &mut PacketFile) {
        let before = first.saturating_sub(1);
        let offset = self.packets.as_ref().map_or(0, |index| index.offset(before));
        file.seek(offset, before as u64, first as u64);
    }
}

/// The index of a stream file; an empty one where there cannot be any.
fn load(file: &mut PacketFile) -> PacketIndex {
    let Some(meta) = file.metadata() else { return PacketIndex::default() };
    let path = file.path().to_owned();
    let subject = Subject { stream: &path, inside: None };
    let mut known =
        next_to(file.root(), &path, meta.len()).and_then(|bytes| entries(&bytes, file)).unwrap_or_default();
    if covered(&known) < meta.len()
        && let Some(kept) = subject.load(&meta).and_then(|bytes| entries(&bytes, file))
        && kept.len() > known.len()
    {
        known = kept;
    }
    let count = known.len();
    let all = extend(file, known);
    if all.len() - count >= LEAST_KEPT {
        subject.store(&meta, &encode(&all));
    }
    make(file, &all).unwrap_or_default()
}

/// Writes LTTng's index for a stream file, if packets have begin and end stamps.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_next_to(
    folder: &Dir,
    name: &OsStr,
    file: File,
    decoder: Arc<Decoder>,
) -> Result<(), Error> {
    let mut file = PacketFile::of_open(file, folder.path().join(name), decoder);
    let entries = extend(&mut file, Vec::new());
    let is_whole = file.metadata().is_some_and(|meta| covered(&entries) == meta.len());
    if !is_whole || entries.is_empty() || entries.iter().any(|entry| entry.end < entry.begin) {
        return Ok(());
    }
    let made = folder.made_folder("index").map_or_else(|| folder.make("index"), Ok);
    let index = made.map_err(Error::io(&folder.path().join("index")))?;
    let mut name = name.to_owned();
    name.push(".idx");
    let mut file = index.create_file(&name).map_err(Error::io(&index.path().join(&name)))?;
    file.write_all(&encode(&entries)).map_err(Error::io(&index.path().join(&name)))
}

/// What LTTng's index of a stream file lists after the end of the file.
pub(crate) struct Beyond {
    pub(crate) packets: u64,
    /// Their total size in bytes.
    pub(crate) bytes: u64,
    /// From the end of the last packet in the file to the end of the last one that is listed.
    pub(crate) range: Option<(Timestamp, Timestamp)>,
    /// Bytes of the file.
    pub(crate) size: u64,
}

/// What LTTng's index of a stream file lists after the end of the file. `None` where the file has all, or
/// ends inside a packet, or the index is of another one.
pub(crate) fn beyond_end(file: &mut PacketFile) -> Option<Beyond> {
    let (path, size) = (path_next_to(file.path())?, file.metadata()?.len());
    let mut index = Tree::open_file(file.root(), &path).ok()?;
    let mut bytes = vec![0; index::HEADER_SIZE];
    index.read_exact(&mut bytes).ok()?;
    let entry = u64::from(u32::from_be_bytes(*bytes.last_chunk()?)).max(1);
    let listed = index.metadata().ok()?.len().saturating_sub(bytes.len() as u64) / entry;
    if entry > MOST_ENTRY_BYTES || listed == 0 || listed * entry > index_cache::MOST_BYTES {
        return None;
    }
    // For most files, the last entry shows that there is nothing more.
    let mut last = vec![0; entry as usize];
    index.read_exact_at(&mut last, bytes.len() as u64 + (listed - 1) * entry).ok()?;
    let last = index::decode(&[&bytes[..], &last].concat()).ok()?.next()?;
    if last.offset.checked_add(last.packet_bits / 8)? <= size {
        return None;
    }
    index.take(listed * entry).read_to_end(&mut bytes).ok()?;
    let mut there: Vec<Entry> = index::decode(&bytes).ok()?.collect();
    let gone = there.split_off(there.partition_point(|entry| entry.offset < size));
    let packets = make(file, &there)?;
    let last = there.len().checked_sub(1)?;
    let is_this = covered(&there) == size && [0, last].into_iter().all(|packet| packets.agrees(packet, file));
    is_this.then(|| {
        let time = |entry: &Entry| file.clock()?.time(entry.end.max(entry.begin));
        Beyond {
            packets: gone.len() as u64,
            bytes: gone.iter().fold(0, |sum, entry| sum.saturating_add(entry.packet_bits / 8)),
            range: time(&there[last]).zip(gone.iter().filter_map(time).max()).filter(|(from, to)| from <= to),
            size,
        }
    })
}

fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = index::encode_header().to_vec();
    entries.iter().for_each(|entry| bytes.extend_from_slice(&index::encode_entry(entry)));
    bytes
}

/// Where LTTng's index of a stream file lies.
fn path_next_to(stream: &Path) -> Option<PathBuf> {
    let mut name = stream.file_name()?.to_owned();
    name.push(".idx");
    Some(stream.parent()?.join("index").join(name))
}

/// LTTng's index of a stream file of `size` bytes.
fn next_to(root: &Path, stream: &Path, size: u64) -> Option<Vec<u8>> {
    let path = path_next_to(stream)?;
    // A packet has at least the bytes of its entry: magic, stream id, sizes and stamps are in both.
    let most = size.min(index_cache::MOST_BYTES);
    let file = Tree::open_file(root, &path).ok()?;
    let size = file.metadata().ok().map(|meta| meta.len()).filter(|size| *size <= most)?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok().filter(|read| *read as u64 == size).map(|_| bytes)
}

/// The first entry of LTTng's index of a stream file, which may be gone itself.
pub(crate) fn first_entry(root: &Path, stream: &Path) -> Option<Entry> {
    let mut bytes = Vec::new();
    let file = Tree::open_file(root, &path_next_to(stream)?).ok()?;
    file.take(FIRST_LOOK).read_to_end(&mut bytes).ok()?;
    index::decode(&bytes).ok()?.next()
}

/// The entries of an index file, if they agree with a few of the file's packets.
fn entries(bytes: &[u8], file: &mut PacketFile) -> Option<Vec<Entry>> {
    let entries: Vec<_> = index::decode(bytes).ok()?.collect();
    let index = make(file, &entries)?;
    let last = entries.len().checked_sub(1)?;
    [0, last / 2, last].into_iter().all(|packet| index.agrees(packet, file)).then_some(entries)
}

fn make(file: &mut PacketFile, entries: &[Entry]) -> Option<PacketIndex> {
    file.seek(0, 0, 0);
    let clock = file.clock_set_by_packets()?;
    PacketIndex::new(entries, &clock, file.metadata()?.len())
}

/// Adds the packets after those of `entries`, up to the first header that cannot be read.
fn extend(file: &mut PacketFile, mut entries: Vec<Entry>) -> Vec<Entry> {
    file.seek(0, 0, 0);
    if file.clock_set_by_packets().is_none() {
        return Vec::new();
    }
    file.seek(covered(&entries), entries.len() as u64, 0);
    while let Some(entry) = file.entry() {
        entries.push(entry);
        file.leave_packet();
    }
    entries
}

/// Where the last packet ends, bytes.
fn covered(entries: &[Entry]) -> u64 {
    entries.last().map_or(0, |entry| entry.offset + entry.packet_bits / 8)
}
