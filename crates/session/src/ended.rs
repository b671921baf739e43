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
        drain.overwritten().cloned().for_each(|range| self.overwrite(range));
    }

    /// Adds what was overwritten.
    pub(crate) fn overwrite(&mut self, range: OverwrittenRange) {
        let is_same = |known: &&mut OverwrittenRange| {
            (&known.stream, known.events.is_some()) == (&range.stream, range.events.is_some())
        };
        if self.overwritten.len() >= MOST_RANGES
            && let Some(known) = self.overwritten.iter_mut().rev().find(is_same)
        {
            known.events = known.events.zip(range.events).map(|(one, other)| one.saturating_add(other));
            known.extend(&range);
        } else {
            self.overwritten.push(range);
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

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_units::Cycles;

    #[test]
    fn ranges_beyond_the_most_extend_those_of_their_streams() {
        let mut ended = Ended::default();
        let range = |stream: &str, at: u64| OverwrittenRange {
            stream: stream.to_owned(),
            sub_buffers: 1,
            bytes: 10,
            events: None,
            begin: Cycles(at),
            end: Cycles(at),
        };
        (0..MOST_RANGES as u64).for_each(|at| ended.overwrite(range(["a", "b"][at as usize % 2], at)));
        (0..7).for_each(|_| ended.overwrite(range("a", 1 << 40)));
        assert_eq!(ended.overwritten.len(), MOST_RANGES);
        let of = |stream: &str| {
            let ranges = ended.overwritten.iter().filter(|range| range.stream == stream);
            ranges.map(|range| range.sub_buffers).sum::<u64>()
        };
        assert_eq!((of("a"), of("b")), (MOST_RANGES as u64 / 2 + 7, MOST_RANGES as u64 / 2));
    }
}
