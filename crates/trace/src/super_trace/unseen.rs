//! Data that were overwritten before the first packets of streams: the buffers of a snapshot begin at
//! different times, so events between the first and the last beginning are incomplete.

use super::activity::Scope;
use super::adapter::Adapter;
use crate::open::recording::Recording;
use crate::stream::cursor::LostKind;
use std::cmp::Reverse;
use tracewing_units::{Cpu, Timestamp};

/// Events that were overwritten before a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unseen {
    /// Whether events of the kernel, of programs, or samples were overwritten.
    pub scope: Scope,
    /// The CPU whose buffer they were in, if the stream declares it.
    pub cpu: Option<Cpu>,
    /// Whether that CPU is one that an extract leaves out.
    pub is_left_out: bool,
    /// They are younger, in nanoseconds on the recording's clock.
    pub from: Timestamp,
    /// They are before this time, in nanoseconds on the recording's clock.
    pub to: Timestamp,
    /// How many, if known.
    pub events: Option<u64>,
}

/// What streams of a recording lack before they begin, by time.
#[derive(Debug, Default)]
pub struct AllUnseen {
    /// The next one is the last.
    pub(super) to_come: Vec<Unseen>,
}

impl AllUnseen {
    /// All of a recording.
    pub fn of(recording: &Recording) -> Self {
        let unseen = recording.streams().iter().filter_map(|stream| {
            let lost = stream.lost_at_begin?;
            let (from, to) = lost.range?;
            let events = lost.count.filter(|_| lost.kind == LostKind::Events);
            let scope = Adapter::scope(&recording.traces()[stream.trace_index()], stream);
            let is_left_out = stream.is_left_out;
            Some(Unseen { scope, cpu: stream.cpu(), is_left_out, from, to, events })
        });
        let mut to_come: Vec<Unseen> = unseen.collect();
        to_come.sort_by_key(|unseen| Reverse((unseen.from, unseen.to)));
        Self { to_come }
    }

    /// The next one that begins by `time`.
    #[inline]
    pub fn by(&mut self, time: Timestamp) -> Option<Unseen> {
        self.to_come.pop_if(|next| next.from <= time)
    }
}
