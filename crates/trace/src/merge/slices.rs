//! Slices of a recording by time, which threads read in parallel: each slice continues exactly where the
//! previous one ends.
//!
//! A merge that has read a slice is in the state of one that began at the next slice's beginning; [`Handoff`]
//! describes that state. If the next slice begins in another state, as it may if stamps lie outside their
//! packets' ranges, it cannot be used.

use crate::merge::messages::Merge;
use crate::open::recording::Recording;
use crate::time::range::TimeRange;
use tracewing_units::Timestamp;

/// Bytes of a slice, at most: all that is in its time comes on top.
const MOST: u64 = 64 << 20;

/// What lies from `from` to `to`, in nanoseconds since the clock's origin, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// Cuts what lies from `from` on in `range` into slices of `least` bytes, or more where packets are large, so
/// that little is read twice. None where reading cannot begin anywhere, or there would be only one.
pub(crate) fn slices(recording: &Recording, range: TimeRange, from: Timestamp, least: u64) -> Vec<Slice> {
    let Some(packets) = packets(recording) else { return Vec::new() };
    let bytes: u64 = packets.iter().map(|(_, bytes)| bytes).sum();
    let mean = bytes / (packets.len() as u64).max(1);
    let size = least.saturating_add(2 * recording.streams().len() as u64 * mean).min(MOST);
    let mut slices = Vec::new();
    let (mut begin, mut there) = (from, 0);
    for (time, bytes) in packets.into_iter().filter(|(time, _)| *time > from && *time <= range.end) {
        if there >= size && time > begin {
            slices.push(Slice { from: begin, to: time.previous() });
            (begin, there) = (time, 0);
        }
        there += bytes;
    }
    if slices.is_empty() {
        return slices;
    }
    slices.push(Slice { from: begin, to: range.end });
    slices
}

/// Times before which `least` bytes lie, each after the one before it, at which packets begin: reading can
/// begin there.
pub(crate) fn cuts(recording: &Recording, least: u64) -> Vec<Timestamp> {
    let (mut cuts, mut bytes) = (Vec::new(), 0);
    let packets = packets(recording).unwrap_or_default();
    let begin = packets.first().map_or(Timestamp::MIN, |(begin, _)| *begin);
    for (time, size) in packets {
        if bytes >= least && time > cuts.last().copied().unwrap_or(begin) {
            cuts.push(time);
            bytes = 0;
        }
        bytes += size;
    }
    cuts
}

/// When all packets begin, in order, and how many bytes they have at least; `None` where some stream has no
/// index.
fn packets(recording: &Recording) -> Option<Vec<(Timestamp, u64)>> {
    let mut all = Vec::new();
    for stream in recording.streams() {
        for file in &stream.files {
            let packets = file.index.packets(&mut recording.reader(stream, file, false));
            let ends =
                packets.iter().skip(1).map(|(_, offset)| *offset).chain(packets.last().map(|last| last.1));
            all.extend(packets.iter().zip(ends).map(|((begin, offset), end)| (*begin, end - offset)));
            if packets.is_empty() {
                return None;
            }
        }
    }
    all.sort_unstable();
    Some(all)
}

impl<'r> Merge<'r> {
    /// Reads a slice; `range` is the whole requested range.
    pub(crate) fn of_slice(recording: &'r Recording, range: TimeRange, slice: Slice) -> Self {
        Merge::begun_at(recording, range, slice.from).pause_at(slice.to)
    }
}
