//! What a stream gives: events and losses, and totals of both.

use crate::stream::packet::PacketHead;
use crate::time::range::TimeRange;
use crate::time::stamp::Stamp;
use tracewing_units::Timestamp;

/// Events or packets that the tracer could not record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Whether events or whole packets are lost.
    pub kind: LostKind,
    /// How many; `None` where only that some may be lost is known.
    pub count: Option<u64>,
    /// Between which stamps, in nanoseconds since the clock's origin; `None` where packets have no stamps.
    pub range: Option<(Timestamp, Timestamp)>,
}

/// Whether events or whole packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostKind {
    /// Events that found no room in a sub-buffer.
    Events,
    /// Whole packets, overwritten before they were read.
    Packets,
}

impl Lost {
    /// Cuts off the part outside of `range`; false if nothing is left.
    ///
    /// The number of events lost inside is unknown then, as in babeltrace2; also where the time of the loss
    /// is.
    pub fn cut(&mut self, range: &TimeRange) -> bool {
        let Some((begin, end)) = &mut self.range else {
            self.count = self.count.filter(|_| *range == TimeRange::ALL);
            return true;
        };
        if *end < range.begin || *begin > range.end {
            return false;
        }
        if *begin < range.begin || *end > range.end {
            self.count = None;
            (*begin, *end) = ((*begin).max(range.begin), (*end).min(range.end));
        }
        true
    }
}

/// What a stream has next.
#[derive(Debug)]
pub(crate) enum Item {
    Event(Option<Stamp>),
    Lost(Lost),
}

impl Item {
    /// When it happened, in nanoseconds since the clock's origin.
    #[inline]
    pub(crate) fn ns(&self) -> Option<Timestamp> {
        match self {
            Item::Event(stamp) => stamp.map(|stamp| stamp.time),
            Item::Lost(lost) => lost.range.map(|(begin, _)| begin),
        }
    }
}

/// Totals of what a cursor has read so far. Stamps of events are left to the caller.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// First and last stamp of packets and events, in nanoseconds since the clock's origin.
    pub(crate) range: Option<(Timestamp, Timestamp)>,
    /// The CPU; `Some(None)` where packets name none, or different ones.
    pub(crate) cpu: Option<Option<u64>>,
}

impl Totals {
    pub(super) fn packet(&mut self, head: &PacketHead) {
        self.packets += 1;
        self.bytes += head.bytes;
        // A packet that a crash left open has an end before its beginning.
        let end = head.end_ns.filter(|end| Some(*end) >= head.begin_ns);
        for ns in [head.begin_ns, end].into_iter().flatten() {
            self.stamp(ns);
        }
        let cpu = *self.cpu.get_or_insert(head.cpu);
        self.cpu = Some(cpu.filter(|_| cpu == head.cpu));
    }

    #[inline]
    pub(crate) fn stamp(&mut self, ns: Timestamp) {
        let (first, last) = self.range.unwrap_or((ns, ns));
        self.range = Some((first.min(ns), last.max(ns)));
    }
}
