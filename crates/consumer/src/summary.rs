//! Totals of streams, and when their events were lost or overwritten.

use serde::Serialize;
use tracewing_ring::Overwritten;
use tracewing_units::{Cpu, Cycles};

/// Totals of a stream, finished or running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// File name in the trace's folder; also for a buffer that lost everything and has no file.
    pub name: String,
    /// The CPU whose buffer it is written from.
    pub cpu: Cpu,
    /// Events that are in its file, without those of `state_events`.
    pub events: u64,
    /// Events in its file that repeat the state: at the beginning of an archive, or between the others of a
    /// program (`tracewing_vocabulary::Class::is_state`).
    #[serde(skip_serializing_if = "is_zero")]
    pub state_events: u64,
    /// Number of packets in its file.
    pub packets: u64,
    /// Size of its file in bytes, without its index.
    pub bytes: u64,
    /// Events known to be lost.
    #[serde(rename = "lost_events")]
    pub lost: u64,
    /// Whether more were lost: a process has overwritten the counters with nonsense.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lost_unknown: bool,
    /// Beginning of the first packet, if known.
    #[serde(rename = "begin_cycles", skip_serializing_if = "Option::is_none")]
    pub begin: Option<Cycles>,
    /// Data that was overwritten before it was read.
    pub overwritten: OverwrittenTotal,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl StreamSummary {
    /// That of a buffer which has written nothing.
    pub fn without_file(name: &str, cpu: Cpu, lost: u64, overwritten: OverwrittenTotal) -> Self {
        Self {
            name: name.to_owned(),
            cpu,
            events: 0,
            state_events: 0,
            packets: 0,
            bytes: 0,
            lost,
            is_lost_unknown: false,
            begin: None,
            overwritten,
        }
    }

    /// Adds the totals of the same stream in a later archive.
    pub fn add(&mut self, later: &Self) {
        self.events = self.events.saturating_add(later.events);
        self.state_events = self.state_events.saturating_add(later.state_events);
        self.packets = self.packets.saturating_add(later.packets);
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.lost = self.lost.saturating_add(later.lost);
        self.is_lost_unknown |= later.is_lost_unknown;
        self.begin = self.begin.or(later.begin);
        self.overwritten.add(later.overwritten);
    }

    /// Whether more events are lost than [`StreamSummary::lost`] counts: the number of events in overwritten
    /// sub-buffers is not known either.
    pub fn loses_more(&self) -> bool {
        self.is_lost_unknown || self.overwritten.sub_buffers > 0
    }
}

/// Sub-buffers that were overwritten before they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OverwrittenTotal {
    /// Number of sub-buffers.
    pub sub_buffers: u64,
    /// Bytes of their events, with headers. Events have different lengths, so this determines no number of
    /// events.
    pub bytes: u64,
}

impl OverwrittenTotal {
    /// What was added since an earlier total.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sub_buffers: self.sub_buffers.saturating_sub(earlier.sub_buffers),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }

    /// Adds another total, saturating.
    pub fn add(&mut self, other: Self) {
        self.sub_buffers = self.sub_buffers.saturating_add(other.sub_buffers);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl From<Overwritten> for OverwrittenTotal {
    fn from(Overwritten { sub_buffers, bytes }: Overwritten) -> Self {
        Self { sub_buffers, bytes }
    }
}

/// Events lost in one buffer for one reason within an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossRange {
    /// Name of the stream.
    pub stream: String,
    /// Reason of the loss.
    pub reason: String,
    /// Number of events.
    pub events: u64,
    /// Beginning of the interval: none of them were lost before.
    #[serde(rename = "begin_cycles")]
    pub begin: Cycles,
    /// End of the interval: all of them were lost by then.
    #[serde(rename = "end_cycles")]
    pub end: Cycles,
}

/// Data of one buffer that was overwritten before it was read, within an interval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverwrittenRange {
    /// Name of the stream.
    pub stream: String,
    /// Number of sub-buffers.
    pub sub_buffers: u64,
    /// Bytes of their events.
    pub bytes: u64,
    /// Number of their events if known: the kernel counts overwritten events, not sub-buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// No event in them is older.
    #[serde(rename = "begin_cycles")]
    pub begin: Cycles,
    /// No event in them is younger.
    #[serde(rename = "end_cycles")]
    pub end: Cycles,
}

impl OverwrittenRange {
    pub(crate) fn new(stream: &str, overwritten: Overwritten, begin: Cycles, end: Cycles) -> Self {
        let Overwritten { sub_buffers, bytes } = overwritten;
        Self { stream: stream.to_owned(), sub_buffers, bytes, events: None, begin, end }
    }

    /// Adds what another range has, whose events are not counted either.
    pub fn extend(&mut self, other: &Self) {
        self.sub_buffers = self.sub_buffers.saturating_add(other.sub_buffers);
        self.bytes = self.bytes.saturating_add(other.bytes);
        (self.begin, self.end) = (self.begin.min(other.begin), self.end.max(other.end));
    }

    pub(crate) fn total(&self) -> OverwrittenTotal {
        OverwrittenTotal { sub_buffers: self.sub_buffers, bytes: self.bytes }
    }
}
