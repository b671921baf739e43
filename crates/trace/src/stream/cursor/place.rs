//! Where a stream's cursor stands.

use super::{Lost, StreamCursor};
use crate::stream::packet::PacketHead;
use std::path::PathBuf;
use tracewing_ctf::decode::Position;
use tracewing_units::Timestamp;

/// A cursor's position: two with the same position return the same items next.
#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    /// The files that have not ended, and which packet of each comes next or is at hand.
    files: Vec<(PathBuf, u64)>,
    /// The current packet's file, and the position after the current event.
    position: Option<(usize, Option<Position>)>,
    previous: Option<PacketHead>,
    pending: Vec<Lost>,
    /// A loss that is given next.
    lost: Option<Lost>,
    /// How many losses that no packet reports are still to come.
    apart: usize,
}

impl Place {
    /// All of it but the files' paths.
    pub(crate) fn without_paths(&self) -> String {
        let Place { files, position, previous, pending, lost, apart } = self;
        let files: Vec<u64> = files.iter().map(|(_, next)| *next).collect();
        format!("{files:?} {position:?} {previous:?} {pending:?} {lost:?} {apart}")
    }
}

impl StreamCursor {
    /// The position; `lost` is a loss that was fetched but not returned yet.
    pub(crate) fn place(&self, lost: Option<Lost>) -> Place {
        let files = self.files.iter().map(|file| (file.path().to_owned(), file.next_packet()));
        Place {
            files: files.collect(),
            position: self.current.map(|current| (current, self.files[current].position())),
            previous: self.previous,
            pending: self.pending.iter().copied().collect(),
            lost,
            apart: self.apart.len(),
        }
    }

    /// Gives events from now on if they are not before `from`, in nanoseconds since the clock's origin.
    pub(crate) fn give_from(&mut self, from: Timestamp) {
        self.from = from;
    }
}
