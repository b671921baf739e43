//! A stream's next events as they lie in its packet, stepped over without its cursor: what a merge of several
//! streams needs of each, event by event.

use super::{Ahead, StreamCursor};
use crate::time::clock::Clock;
use crate::time::stamp::Stamp;
use tracewing_ctf::decode::{Event, Record, Stand, Stretch, Visitor};
use tracewing_units::Timestamp;

/// The events from a cursor's current one on.
#[derive(Debug)]
pub(crate) struct Lane<'c> {
    stretch: Stretch<'c>,
    clock: Clock,
    from: Timestamp,
    /// When the current event was.
    time: Timestamp,
    /// How many it has come to.
    count: u64,
    /// Whether the last one has no time that the cursor may give.
    is_odd: bool,
}

/// How far a lane has come.
pub(crate) struct Way {
    stand: Stand,
    stamp: Stamp,
    count: u64,
    is_odd: bool,
}

impl StreamCursor {
    /// What follows the current event, and that itself; `None` unless the next events are of fixed forms, in
    /// the same packet, and have stamps.
    pub(crate) fn lane(&self) -> Option<Lane<'_>> {
        let current = self.current.filter(|_| self.pending.is_empty())?;
        if !matches!(self.ahead, Ahead::No) {
            return None;
        }
        Some(Lane {
            stretch: self.files[current].stretch()?,
            clock: self.clock?,
            from: self.from,
            time: self.stamp?.time,
            count: 0,
            is_odd: false,
        })
    }

    /// Continues where a lane of it has come to.
    pub(crate) fn follow(&mut self, way: Way) {
        let Some(current) = self.current else { return };
        self.files[current].resume(way.stand);
        self.mark.more_items(way.count);
        self.stamp = Some(way.stamp);
        if way.is_odd {
            self.ahead = Ahead::Event;
        }
    }
}

impl Lane<'_> {
    /// Advances to the next event and returns its time, as [`StreamCursor::advance_fast`]; `None` where that
    /// has to be done by the cursor.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Option<Timestamp> {
        let cycles = self.stretch.advance()?;
        match self.clock.time(cycles) {
            Some(time) if time >= self.from => {
                self.time = time;
                self.count += 1;
                Some(time)
            }
            _ => {
                self.is_odd = true;
                None
            }
        }
    }

    #[inline(always)]
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { cycles: self.stretch.clock(), time: self.time }
    }

    /// How many events it has come to.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The event that it has come to.
    #[inline(always)]
    pub(crate) fn event(&self) -> Event<'_> {
        self.stretch.event()
    }

    /// Shows every field of that.
    #[inline(always)]
    pub(crate) fn visit_all(&self, visitor: &mut impl Visitor) {
        self.stretch.visit_all(visitor);
    }

    /// See [`StreamCursor::record`].
    #[inline]
    pub(crate) fn record(&self) -> (usize, Option<Record<'_>>) {
        (self.stretch.class_index(), Some(self.stretch.record()))
    }

    /// How far it has come.
    pub(crate) fn way(&self) -> Way {
        Way { stand: self.stretch.stand(), stamp: self.stamp(), count: self.count, is_odd: self.is_odd }
    }
}
