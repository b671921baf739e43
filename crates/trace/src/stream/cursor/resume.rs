//! Stops reading a stream, and continues later: when its files have become longer, or more, or the metadata
//! describes more classes.
//!
//! A cursor stops before a packet, with the number of its items that have been returned, which are read again
//! on continuation. If packets do not set the clock, stamps depend on everything before, so then the packet
//! is the first one.

use super::{PacketFile, PacketHead, StreamCursor, StreamFile};
use crate::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracewing_ctf::decode::Decoder;
use tracewing_units::Timestamp;

/// Where reading of a stream has stopped.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    /// The packets to continue with.
    files: Vec<FilePlace>,
    /// The one before them.
    before: Option<PacketHead>,
    /// How much of what comes now has been given already.
    items: u64,
    /// How many packets lie in front.
    packets: u64,
}

/// A packet of a file.
#[derive(Debug, Clone)]
struct FilePlace {
    path: PathBuf,
    /// Offset in the file, in bytes.
    offset: u64,
    index: u64,
}

/// What a cursor keeps to be able to stop.
#[derive(Debug, Default)]
pub(super) struct Mark {
    /// The packet before the current one.
    before: Option<PacketHead>,
    /// What has been given of the current packet; of all packets, where they do not set the clock.
    items: u64,
    /// Whether packets set the clock; `None` where there was none yet.
    sets_clock: Option<bool>,
    /// Files that have ended.
    ended: Vec<FilePlace>,
}

impl Mark {
    /// A packet begins, and sets the clock or does not.
    pub(super) fn packet(&mut self, before: Option<PacketHead>, sets_clock: bool) {
        self.sets_clock = Some(sets_clock);
        if sets_clock {
            (self.before, self.items) = (before, 0);
        }
    }

    /// A file has no more packets.
    pub(super) fn ended(&mut self, file: &PacketFile) {
        self.ended.push(FilePlace::of(file));
    }

    /// An item is given.
    #[inline]
    pub(super) fn item(&mut self) {
        self.items += 1;
    }

    /// So many are given.
    pub(super) fn more_items(&mut self, count: u64) {
        self.items += count;
    }
}

impl Stop {
    /// Continues with files that were moved, for which `moved` has the new path.
    pub(crate) fn follow(&mut self, moved: impl Fn(&Path) -> Option<PathBuf>) {
        for place in &mut self.files {
            if let Some(path) = moved(&place.path) {
                place.path = path;
            }
        }
    }
}

impl FilePlace {
    fn of(file: &PacketFile) -> Self {
        let (offset, index) = file.place();
        FilePlace { path: file.path().to_owned(), offset, index }
    }
}

impl StreamCursor {
    /// Reads from `from` on what the files have up to their limits, but nothing that was given before one of
    /// `stops`.
    ///
    /// # Errors
    /// What has been read before cannot be read again.
    pub(crate) fn resume(
        decoder: &Arc<Decoder>,
        files: &[StreamFile],
        from: Timestamp,
        limit: impl Fn(&Path) -> u64,
        stops: &[Stop],
    ) -> Result<Self, Error> {
        let mut cursor = StreamCursor::at_begin(decoder, files, from);
        let mut items = 0;
        for (packets, file) in cursor.files.iter_mut().zip(files) {
            packets.set_limit(limit(&file.path));
            let of_file = |stop: &&Stop| stop.files.iter().any(|place| place.path == file.path);
            let Some(stop) = stops.iter().find(of_file) else {
                file.seek(packets, from);
                continue;
            };
            let place = stop.files.iter().find(|place| place.path == file.path);
            place.into_iter().for_each(|place| packets.seek(place.offset, place.index, 0));
            (cursor.previous, items) = (stop.before, stop.items);
            cursor.totals.packets = stop.packets;
        }
        for _ in 0..items {
            cursor.advance()?;
        }
        Ok(cursor)
    }

    /// Where to continue. `again`: the last item is to be returned again.
    pub(crate) fn stop(&self, again: bool) -> Stop {
        let mark = &self.mark;
        let mut files: Vec<_> =
            self.files.iter().map(FilePlace::of).chain(mark.ended.iter().cloned()).collect();
        let items = mark.items - u64::from(again);
        let packets = self.totals.packets;
        match (mark.sets_clock, self.current) {
            (Some(false), _) => {
                files.iter_mut().for_each(|place| (place.offset, place.index) = (0, 0));
                Stop { files, before: None, items, packets: 0 }
            }
            (Some(true), Some(_)) => Stop { files, before: mark.before, items, packets: packets - 1 },
            _ => Stop { files, before: self.previous, items: 0, packets },
        }
    }
}
