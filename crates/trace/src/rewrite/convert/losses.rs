//! What is said of losses: by the counters and sequence numbers of the packets that are written, or else in
//! the metadata.
//!
//! A loss within the time range lies between the same two packets as before, and their numbers say it. Of
//! one that crosses a bound of the range, a part is left, and how many events were lost in it is unknown,
//! which no counter can say. That part is declared in the metadata. Losses outside of the range are in
//! neither.

use super::Converted;
use crate::open::carried::{self, At};
use crate::stream::cursor::{Counter, Lost, LostKind, PacketHead, StreamCursor};
use crate::time::range::TimeRange;
use tracewing_ctf::model::TraceClass;

/// Losses that the metadata of a trace declares, each with the name of its stream's file.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) at_begin: Vec<(String, Lost)>,
    within: Vec<(String, Lost)>,
    at_end: Vec<(String, Lost)>,
}

impl Declared {
    /// Adds a loss in `range`, which is the one that is written.
    pub(super) fn add(&mut self, file: &str, lost: Lost, range: &TimeRange) {
        let is_at_end = lost.range.is_none_or(|(_, end)| *range == TimeRange::ALL || end >= range.end);
        let declared = if is_at_end { &mut self.at_end } else { &mut self.within };
        declared.push((file.to_owned(), lost));
    }

    pub(super) fn set(&self, class: &mut TraceClass) {
        carried::set(class, At::Begin, &self.at_begin);
        carried::set(class, At::Within, &self.within);
        carried::set(class, At::End, &self.at_end);
    }
}

/// The numbers of a stream's packets as they are written.
#[derive(Debug)]
pub(super) struct PacketNumbers {
    range: TimeRange,
    written: Written,
    /// The counter of discarded events in the last packet. Counters that are read may wrap, or go back.
    discarded: u64,
    /// The sequence number of the last packet.
    seq: Option<u64>,
    /// What is added to the numbers that are read.
    shift: u64,
    /// What the numbers cannot say.
    pub(super) declared: Vec<Lost>,
}

/// What has been written of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Nothing,
    /// A packet with events that explain others.
    Explanations,
    Packets,
}

impl PacketNumbers {
    pub(super) fn new(range: TimeRange) -> Self {
        let (written, declared) = (Written::Nothing, Vec::new());
        PacketNumbers { range, written, discarded: 0, seq: None, shift: 0, declared }
    }

    /// A packet with events that explain others is written before all others.
    pub(super) fn explain(&mut self) {
        self.written = Written::Explanations;
    }

    /// Whether any packet has been written that lies in the range.
    pub(super) fn has_packets(&self) -> bool {
        self.written == Written::Packets
    }

    /// The counter of discarded events of the last packet that was written.
    pub(super) fn discarded(&self) -> u64 {
        self.discarded
    }

    /// Takes what was lost before a packet that is not written.
    pub(super) fn skip(&mut self, cursor: &StreamCursor, converted: &mut Converted) {
        for mut lost in cursor.counted_losses().copied() {
            if lost.cut(&self.range) {
                converted.note(&lost);
                self.declared.push(lost);
            }
        }
    }

    /// Takes what was lost before a packet that is written next, and returns its sequence number.
    pub(super) fn packet(
        &mut self,
        cursor: &StreamCursor,
        head: &PacketHead,
        converted: &mut Converted,
    ) -> Option<u64> {
        let mut hides_packets = false;
        for lost in cursor.counted_losses() {
            let mut part = *lost;
            let is_said = part.cut(&self.range) && {
                converted.note(&part);
                let is_said = self.says(lost, &part, head);
                if !is_said {
                    self.declared.push(part);
                }
                if lost.kind == LostKind::Events {
                    self.count(lost, &part, head, is_said);
                }
                is_said
            };
            hides_packets |= lost.kind == LostKind::Packets && !is_said;
        }
        if let (true, Some(last), Some(now)) = (hides_packets, self.seq, head.sequence) {
            self.shift = last.wrapping_add(1).wrapping_sub(now.value);
        }
        self.written = Written::Packets;
        self.seq = head.sequence.map(|now| now.value.wrapping_add(self.shift));
        self.seq
    }

    /// Whether readers of the copy find the part of a loss in the range from the numbers of its packets
    /// alone.
    fn says(&self, lost: &Lost, part: &Lost, head: &PacketHead) -> bool {
        match (self.written, lost.kind, part.count) {
            (Written::Packets, LostKind::Packets, _) | (Written::Packets, _, Some(_)) => part == lost,
            // It goes back in the copy, too.
            (Written::Packets, LostKind::Events, None) => {
                let goes_back = |now: &Counter| now.since(now.with(self.discarded)).is_none();
                part == lost && head.discarded.is_some_and(|now| goes_back(&now))
            }
            // The counter of the first packet is treated as a loss of unknown size in it.
            (Written::Nothing, LostKind::Events, None) => {
                let is_declared = self.declared.iter().any(|lost| lost.kind == LostKind::Events);
                !is_declared && part.range == lost.range && lost.range == head.begin_ns.zip(head.end_ns)
            }
            _ => false,
        }
    }

    /// Sets the counter for a packet before which these events were lost.
    fn count(&mut self, lost: &Lost, part: &Lost, head: &PacketHead, is_said: bool) {
        let here = head.discarded.map_or(0, |now| now.value);
        let shows_any = is_said || self.stands_for_counter(part, head);
        match (is_said, lost.count) {
            // In the first packet, it says that there is a loss: to all readers, or to those that do not
            // know what is declared.
            (_, count) if self.written == Written::Nothing && shows_any => {
                self.discarded = count.unwrap_or(here).max(1);
            }
            (true, Some(count)) => self.discarded = self.discarded.saturating_add(count),
            (true, None) => self.discarded = here,
            (false, _) => {}
        }
    }

    /// Whether readers of the copy take the declared part of a loss for what the counter of this packet
    /// shows.
    fn stands_for_counter(&self, part: &Lost, head: &PacketHead) -> bool {
        let packet_begin = head.begin_ns.max(Some(self.range.begin));
        part.range.is_some_and(|(begin, end)| Some(begin) <= packet_begin && Some(end) == head.end_ns)
    }
}
