//! Losses of a buffer: events that its writers counted as lost, gaps that its reader found, and bytes that
//! were overwritten before they were read.

use tracewing_abi::region::Loss;
use tracewing_ring::{Damaged, Overwritten, Region};
use tracewing_units::Cycles;

use super::Buffer;
use crate::archive::UNWRITTEN;
use crate::children::ChildLosses;
use crate::clock::TraceClock;
use crate::output::Output;
use crate::summary::{LossRange, OverwrittenRange};

/// A reason of losses that [`Loss`] does not have.
const DAMAGED: &str = "buffer damaged";

/// More lost events than a CPU's buffer can plausibly count.
pub(super) const MOST_LOST: u64 = 1 << 48;

/// Maximum number of loss ranges per buffer; beyond it the last one grows.
const MOST_LOSS_RANGES: usize = 256;

/// More bytes per nanosecond than a program can write: the widest stores have 64 bytes, and a CPU completes
/// fewer than 10 per nanosecond.
const MOST_BYTES_PER_NS: u128 = 1000;

impl Buffer {
    /// Records damage as a loss.
    pub(super) fn damaged(&mut self, label: &str, damaged: Damaged) {
        self.is_dead |= damaged.bytes == 0;
        self.damage.get_or_insert(damaged);
        self.damages += 1;
        self.found_lost += 1;
        let stamp = self.stream.as_ref().map_or(Cycles::ZERO, Output::end).max(self.origin);
        self.extend_range(label, DAMAGED, 1, stamp, stamp);
    }

    /// Reads the writers' counters; new losses happened between `begin` and `end`.
    pub(crate) fn note_losses(
        &mut self,
        label: &str,
        region: Region,
        clock: &TraceClock,
        begin: Cycles,
        end: Cycles,
    ) {
        let before = clock.now();
        let by_children = self.children.as_ref().map(ChildLosses::lost).unwrap_or_default();
        let (counters, after) = ([region.lost(self.cpu.index()), by_children], clock.now());
        // Counting a loss takes more than a cycle or a nanosecond. A larger increase, or a decrease, was not
        // counted by a writer.
        let possible = after.since(self.counted_at).0;
        for (source, loss) in (0..counters.len()).flat_map(|source| Loss::ALL.map(|loss| (source, loss))) {
            let at = loss as usize;
            let events = counters[source][at].wrapping_sub(self.counters[source][at]);
            self.counters[source][at] = counters[source][at];
            if events > possible {
                self.is_lost_unknown = true;
            } else if events > 0 {
                self.lost[at] = self.lost[at].saturating_add(events);
                self.extend_range(label, loss.reason(), events, begin, end);
            }
        }
        self.counted_at = before;
    }

    /// What the writers' counters are at.
    pub(super) fn counted_by_writers(&self, region: Region) -> u64 {
        region.lost(self.cpu.index()).into_iter().fold(0, u64::wrapping_add)
    }

    /// Losses that writers have counted since the last look at their counters.
    pub(super) fn uncounted(&self, region: Region) -> u64 {
        let now = region.lost(self.cpu.index());
        let since = Loss::ALL.map(|loss| now[loss as usize].wrapping_sub(self.counters[0][loss as usize]));
        let sum = since.into_iter().fold(0, u64::saturating_add);
        if sum <= MOST_LOST { sum } else { 0 }
    }

    /// Losses that writers have counted.
    pub(crate) fn counted(&self) -> u64 {
        self.lost.iter().fold(0, |sum, lost| sum.saturating_add(*lost))
    }

    /// Whether enough time has passed since the buffer was made to write this many sub-buffers; if not, a
    /// process has overwritten the position.
    pub(crate) fn can_have_written(&self, sub_buffers: u64) -> bool {
        let bytes = u128::from(sub_buffers) * self.reader.sub_buffer_bytes() as u128;
        bytes <= self.made.elapsed().as_nanos() * MOST_BYTES_PER_NS
    }

    /// Records data that was overwritten before `end`, since the last packet.
    pub(super) fn note_overwritten(&mut self, label: &str, overwritten: Overwritten, end: Cycles) {
        let sub_buffers = overwritten.sub_buffers.saturating_sub(self.overwritten.sub_buffers);
        let bytes = overwritten.bytes.saturating_sub(self.overwritten.bytes);
        if sub_buffers == 0 {
            return;
        }
        if !self.can_have_written(overwritten.sub_buffers) {
            self.is_lost_unknown = true;
            return;
        }
        self.overwritten = overwritten;
        let begin = self.stream.as_ref().map_or(self.origin, Output::end).max(self.origin);
        let crowded = self.overwritten_ranges.len() >= MOST_LOSS_RANGES;
        match self.overwritten_ranges.last_mut() {
            Some(range) if crowded => {
                range.sub_buffers = range.sub_buffers.saturating_add(sub_buffers);
                range.bytes = range.bytes.saturating_add(bytes);
                range.end = range.end.max(end);
            }
            _ => {
                let stream = self.name(label);
                let new = Overwritten { sub_buffers, bytes };
                self.overwritten_ranges.push(OverwrittenRange::new(&stream, new, begin, end));
            }
        }
    }

    /// Adds a loss to the last range of its reason if the two touch or there are too many ranges; otherwise
    /// begins a new range.
    pub(super) fn extend_range(
        &mut self,
        label: &str,
        reason: &str,
        events: u64,
        begin: Cycles,
        end: Cycles,
    ) {
        let crowded = self.ranges.len() >= MOST_LOSS_RANGES;
        match self.ranges.iter_mut().rev().find(|range| range.reason == reason) {
            Some(range) if crowded || range.end >= begin => {
                range.events = range.events.saturating_add(events);
                range.end = range.end.max(end);
            }
            _ => {
                let (stream, reason) = (self.name(label), reason.to_owned());
                self.ranges.push(LossRange { stream, reason, events, begin, end });
            }
        }
    }

    pub(super) fn lose_unwritten(&mut self, label: &str, events: u64, begin: Cycles, end: Cycles) {
        if events > 0 {
            self.found_lost = self.found_lost.saturating_add(events);
            self.extend_range(label, UNWRITTEN, events, begin, end);
        }
    }

    pub(super) fn lost_total(&self) -> u64 {
        self.counted().saturating_add(self.found_lost)
    }
}
