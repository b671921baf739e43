//! Where a stream's cursor stands.

use super::{Lost, StreamCursor};
use crate::stream::packet::PacketHead;
use std::path::PathBuf;
use tracewing_ctf::decode::Position;
use tracewing_units::Timestamp;

/// Where a cursor stands: two that stand in the same place have the same in front of them.
#[derive(Debug, PartialEq)]
pub(crate) struct Place {
    /// The files that have not ended, and which packet of each comes next or is at hand.
    files: Vec<(PathBuf, u64)>,
    /// Which file's packet is at hand, and the position behind the current event.
    position: Option<(usize, Option<Position>)>,
    previous: Option<PacketHead>,
    pending: Vec<Lost>,
    /// A loss that is given next.
    lost: Option<Lost>,
}

impl StreamCursor {
    /// Where it stands, with a loss in front of it that it has given and that nobody has taken yet.
    pub(crate) fn place(&self, lost: Option<Lost>) -> Place {
        let files = self.files.iter().map(|file| (file.path().to_owned(), file.next_packet()));
        Place {
            files: files.collect(),
            position: self.current.map(|current| (current, self.files[current].position())),
            previous: self.previous,
            pending: self.pending.iter().copied().collect(),
            lost,
        }
    }

    /// Gives events from now on if they are not before `from`, in nanoseconds since the clock's origin.
    pub(crate) fn give_from(&mut self, from: Timestamp) {
        self.from = from;
    }
}
