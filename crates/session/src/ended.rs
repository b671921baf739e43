//! The totals of regions that are finished.

use std::collections::BTreeMap;

use tracewing_consumer::drain::Drain;
use tracewing_consumer::summary::{LossRange, OverwrittenRange, StreamSummary};

/// Maximum number of separate ranges of losses; beyond that, the last one of a stream grows.
const MOST_RANGES: usize = 10_000;

/// Regions that are finished.
#[derive(Default)]
pub(crate) struct Ended {
    /// Summaries of the streams of ended programs, by name.
    streams: BTreeMap<String, StreamSummary>,
    pub losses: Vec<LossRange>,
    pub overwritten: Vec<OverwrittenRange>,
    pub damages: Vec<String>,
}

impl Ended {
    /// Adds the totals of a region.
    pub(crate) fn take(&mut self, drain: &Drain) {
        for stream in drain.summary() {
            match self.streams.get_mut(&stream.name) {
                None => drop(self.streams.insert(stream.name.clone(), stream)),
                Some(known) => {
                    known.lost = known.lost.saturating_add(stream.lost);
                    known.is_lost_unknown |= stream.is_lost_unknown;
                    known.overwritten.add(stream.overwritten);
                }
            }
        }
        drain.losses().cloned().for_each(|range| self.lose(range));
        self.overwritten.extend(drain.overwritten().cloned());
        self.damages.extend(drain.damages());
    }

    /// Adds what was overwritten.
    pub(crate) fn overwrite(&mut self, range: OverwrittenRange) {
        let is_full = self.overwritten.len() >= MOST_RANGES;
        match self.overwritten.last_mut() {
            Some(last) if is_full => last.extend(&range),
            _ => self.overwritten.push(range),
        }
    }

    /// Adds lost events.
    pub(crate) fn lose(&mut self, range: LossRange) {
        let is_same =
            |known: &&mut LossRange| (&known.stream, &known.reason) == (&range.stream, &range.reason);
        if self.losses.len() >= MOST_RANGES
            && let Some(known) = self.losses.iter_mut().rev().find(is_same)
        {
            known.events = known.events.saturating_add(range.events);
            known.begin = known.begin.min(range.begin);
            known.end = known.end.max(range.end);
        } else {
            self.losses.push(range);
        }
    }

    /// Replaces the streams by these.
    pub(crate) fn set_streams(&mut self, streams: Vec<StreamSummary>) {
        self.streams = streams.into_iter().map(|stream| (stream.name.clone(), stream)).collect();
    }

    /// The streams, by name.
    pub(crate) fn streams(&self) -> Vec<StreamSummary> {
        self.streams.values().cloned().collect()
    }
}
