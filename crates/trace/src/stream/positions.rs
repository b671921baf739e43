//! Positions of events inside a large packet, and in a stream without packets, so that reading can begin in
//! the middle.
//!
//! The first seek into a packet reads up to the requested time, and notes a position every few megabytes;
//! positions are kept in the cache. All events before a position come before its time, so that reading for
//! any later time can begin there.

use crate::stream::index_cache::Subject;
use crate::stream::packet::PacketFile;
use std::hash::{DefaultHasher, Hash, Hasher};
use tracewing_ctf::decode::{Position, Step};
use tracewing_units::{Cycles, Timestamp};

/// Between two positions, in bytes: some milliseconds of reading. Smaller packets have none inside.
const DISTANCE: u64 = 4 << 20;

/// Fewer positions than these are not kept: they are as quickly found again.
const LEAST_KEPT: usize = 16;

/// Bytes of a position in the cache: bits, clock and time as little-endian words.
const ENTRY_SIZE: usize = 24;

/// Positions inside of one packet, from its beginning up to where it has been read.
#[derive(Debug)]
pub(crate) struct Positions {
    places: Vec<Place>,
    /// How many of them are in the cache.
    kept: usize,
    /// Whether all of the packet has been read.
    whole: bool,
    distance: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    position: Position,
    /// No event before it is later than this, in nanoseconds since the clock's origin.
    reach: Timestamp,
}

impl Positions {
    /// Those of the packet at hand in `file` that are in the cache; `None` where the packet needs none.
    pub(crate) fn load(file: &mut PacketFile) -> Option<Self> {
        let head = file.head().ok()??;
        if head.bytes < 2 * DISTANCE || file.clock().is_none() {
            return None;
        }
        let kept = file.metadata().and_then(|meta| subject(file).load(&meta)).unwrap_or_default();
        let places = decode(&kept).unwrap_or_default();
        Some(Positions { kept: places.len(), places, whole: false, distance: DISTANCE })
    }

    /// The last position before everything from `time` on; `None` for the packet's beginning. `file`, whose
    /// current packet it is, is read up to there if that has not happened yet.
    pub(crate) fn find(&mut self, file: &mut PacketFile, time: Timestamp) -> Option<Position> {
        if !self.whole && self.places.last().is_none_or(|last| last.reach < time) {
            self.extend(file, time);
            if self.places.len() >= self.kept + LEAST_KEPT
                && let Some(meta) = file.metadata()
            {
                subject(file).store(&meta, &encode(&self.places));
                self.kept = self.places.len();
            }
        }
        let after = self.places.partition_point(|place| place.reach < time);
        Some(self.places[after.checked_sub(1)?].position)
    }

    /// Reads up to a position that is not before `time`. Unreadable data are not an error here: reading will
    /// get there.
    fn extend(&mut self, file: &mut PacketFile, time: Timestamp) {
        let (mut bits, mut reach) = (0, Timestamp::MIN);
        if let Some(last) = self.places.last() {
            (bits, reach) = (last.position.bits, last.reach);
            file.begin_at(file.place().1, last.position);
        }
        self.whole = true;
        let (Ok(()), Some(clock)) = (file.enter_packet(), file.clock()) else { return };
        while file.step_fast().is_some() || matches!(file.step(), Ok(Step::Event)) {
            let Some(event) = file.clock_value().and_then(|cycles| clock.time(cycles)) else { return };
            reach = reach.max(event);
            let Some(position) = file.position() else { return };
            if (position.bits - bits) / 8 >= self.distance {
                bits = position.bits;
                self.places.push(Place { position, reach });
                if reach >= time {
                    self.whole = false;
                    return;
                }
            }
        }
    }
}

/// The packet at hand as the cache knows it; with another layout of its events it is another one.
fn subject(file: &PacketFile) -> Subject<'_> {
    let mut layout = DefaultHasher::new();
    format!("{:?}", file.decoder().trace_class()).hash(&mut layout);
    Subject { stream: file.path(), inside: Some((file.place().0, layout.finish())) }
}

fn encode(places: &[Place]) -> Vec<u8> {
    let words =
        |place: &Place| [place.position.bits, place.position.clock.0, place.reach.as_ns().cast_unsigned()];
    places.iter().flat_map(words).flat_map(u64::to_le_bytes).collect()
}

/// Places in the order of bytes and of time; `None` where they are not.
fn decode(bytes: &[u8]) -> Option<Vec<Place>> {
    let (words, []) = bytes.as_chunks::<8>() else { return None };
    let place = |words: &[[u8; 8]]| {
        let [bits, clock, reach] = [0, 1, 2].map(|at| u64::from_le_bytes(words[at]));
        Place {
            position: Position { bits, clock: Cycles(clock) },
            reach: Timestamp::from_ns(reach.cast_signed()),
        }
    };
    let places: Vec<_> = words.chunks_exact(ENTRY_SIZE / 8).map(place).collect();
    let in_order =
        |pair: [&Place; 2]| pair[0].position.bits < pair[1].position.bits && pair[0].reach <= pair[1].reach;
    places.windows(2).all(|pair| in_order([&pair[0], &pair[1]])).then_some(places)
}

#[cfg(test)]
mod tests;
