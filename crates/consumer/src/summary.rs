//! What streams amount to, and when events of them were lost or overwritten.

use serde::Serialize;
use tracewing_ring::Overwritten;
use tracewing_units::Cpu;

/// What a finished or running stream amounts to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamSummary {
    /// File name in the trace's folder; also for a buffer that lost everything and has no file.
    pub name: String,
    /// CPU.
    pub cpu: Cpu,
    /// Events written.
    pub events: u64,
    /// Packets written.
    pub packets: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Events lost, as far as that is known.
    #[serde(rename = "lost_events")]
    pub lost: u64,
    /// Whether more were lost: a process has overwritten the counters with nonsense.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_lost_unknown: bool,
    /// Begin of the first packet, cycles, where it is known.
    #[serde(rename = "begin_cycles", skip_serializing_if = "Option::is_none")]
    pub begin: Option<u64>,
    /// Overwritten before it was read.
    pub overwritten: OverwrittenTotal,
}

/// Sub-buffers that were overwritten before they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct OverwrittenTotal {
    /// How many.
    pub sub_buffers: u64,
    /// Bytes of events that were in them, with their headers. Those are of different lengths, so no number of
    /// events follows from it.
    pub bytes: u64,
}

impl OverwrittenTotal {
    /// Adds others to them.
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

/// Events lost in one buffer, for one reason, within a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LossRange {
    /// Name of the stream.
    pub stream: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub events: u64,
    /// The buffer had lost none of them then, cycles.
    #[serde(rename = "begin_cycles")]
    pub begin: u64,
    /// The buffer had lost all of them then, cycles.
    #[serde(rename = "end_cycles")]
    pub end: u64,
}

/// What was overwritten of one buffer before it was read, within a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OverwrittenRange {
    /// Name of the stream.
    pub stream: String,
    /// How many.
    pub sub_buffers: u64,
    /// Bytes of events that were in them.
    pub bytes: u64,
    /// How many events were in them, where that is known: the kernel counts its own, by event and not by
    /// sub-buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// No event in them is older, cycles.
    #[serde(rename = "begin_cycles")]
    pub begin: u64,
    /// No event in them is younger, cycles.
    #[serde(rename = "end_cycles")]
    pub end: u64,
}

impl OverwrittenRange {
    pub(crate) fn new(stream: &str, overwritten: Overwritten, begin: u64, end: u64) -> Self {
        let Overwritten { sub_buffers, bytes } = overwritten;
        Self { stream: stream.to_owned(), sub_buffers, bytes, events: None, begin, end }
    }
}
