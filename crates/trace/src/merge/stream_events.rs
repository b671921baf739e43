//! The events of one data stream, without regard to other streams: for what needs no order, and for threads
//! that share the streams of a recording among them.

use crate::Error;
use crate::open::recording::Recording;
use crate::stream::cursor::{Item, Lost, StreamCursor};
use crate::time::range::TimeRange;
use tracewing_ctf::decode::Event;
use tracewing_units::{Cycles, Timestamp};

/// Reads the events of one data stream, packet by packet.
#[derive(Debug)]
pub struct StreamEvents {
    cursor: StreamCursor,
}

impl Recording {
    /// The events of a stream; `stream` is its index in [`Recording::streams`].
    ///
    /// # Panics
    /// There is no such stream.
    pub fn events_of(&self, stream: usize) -> StreamEvents {
        self.events_from(stream, Timestamp::MIN, Timestamp::MIN)
    }

    /// The same from a time on, in nanoseconds since the clock's origin; all packets from `first` on are
    /// looked at.
    pub(crate) fn events_from(&self, stream: usize, first: Timestamp, from: Timestamp) -> StreamEvents {
        StreamEvents { cursor: self.cursor_over(&self.streams()[stream], first, from) }
    }
}

impl StreamEvents {
    /// Goes into the next packet; false at the end of the stream. What was lost before it, or there, is shown
    /// to `lost`.
    ///
    /// # Errors
    /// The stream cannot be read further.
    pub fn enter_packet(&mut self, lost: impl FnMut(Lost)) -> Result<bool, Error> {
        self.cursor.enter_packet(lost)
    }

    /// Shows all events of the packet to `each`.
    ///
    /// # Errors
    /// The packet cannot be decoded further; what comes before has been shown.
    #[inline]
    pub fn for_each_in_packet(&mut self, each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        self.cursor.for_each_in_packet(each)
    }

    /// Passes the items in `range`, from whose beginning on this reads, to `each`: one event or loss at a
    /// time. Losses are cut to the range.
    pub(crate) fn for_each_in(
        &mut self,
        range: TimeRange,
        mut each: impl FnMut(Option<Event<'_>>, Option<Lost>),
    ) -> Result<(), Error> {
        while let Some(item) = self.cursor.advance()? {
            match item {
                // Packets that overlap with this one may have earlier events.
                item if item.ns().is_some_and(|ns| ns > range.end) => {
                    if self.cursor.is_after(range.end) {
                        break;
                    }
                }
                Item::Event(_) => each(Some(self.cursor.event()), None),
                Item::Lost(mut lost) => {
                    if lost.cut(&range) {
                        each(None, Some(lost));
                    }
                }
            }
        }
        Ok(())
    }

    /// When a stamp of the packet at hand is, in nanoseconds since the clock's origin.
    pub(crate) fn time(&self, cycles: Cycles) -> Option<Timestamp> {
        self.cursor.time(cycles)
    }

    /// Shows all events from the next packet on to `each`.
    ///
    /// # Errors
    /// The stream cannot be read or decoded further; what comes before has been shown.
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        while self.enter_packet(|_| {})? {
            self.for_each_in_packet(&mut each)?;
        }
        Ok(())
    }
}
