//! Counts the lost events of a stream, with their times.

use tracewing_units::Cycles;

/// Events lost between two stamps of the trace's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossRange {
    /// Not after the first lost event.
    pub begin: Cycles,
    /// Not before the last lost event.
    pub end: Cycles,
    /// Number of lost events.
    pub events: u64,
}

/// Lost events of one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// Total number of lost events.
    pub events: u64,
    /// When, in order of time; neighbours are joined where there would be too many.
    pub ranges: Vec<LossRange>,
}

/// A recording under constant overload must not use memory without end.
const MAX_RANGES: usize = 4096;

impl Losses {
    pub(crate) fn add(&mut self, range: LossRange) {
        if range.events == 0 {
            return;
        }
        self.events = self.events.saturating_add(range.events);
        if self.ranges.len() == MAX_RANGES {
            // Joins pairs of neighbours: the ranges stay true and become coarser.
            let joined = self.ranges.chunks(2).map(|pair| LossRange {
                begin: pair[0].begin,
                end: pair[pair.len() - 1].end,
                events: pair.iter().map(|range| range.events).sum(),
            });
            self.ranges = joined.collect();
        }
        self.ranges.push(range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_without_losing_a_loss() {
        let mut losses = Losses::default();
        for i in 0..10_000 {
            losses.add(LossRange { begin: Cycles(10 * i), end: Cycles(10 * i + 5), events: 2 });
        }
        assert_eq!(losses.events, 20_000);
        assert!(losses.ranges.len() <= MAX_RANGES);
        assert_eq!(losses.ranges.iter().map(|r| r.events).sum::<u64>(), 20_000);
        assert!(losses.ranges.windows(2).all(|w| w[0].end < w[1].begin));
        assert_eq!((losses.ranges[0].begin, losses.ranges.last().unwrap().end), (Cycles(0), Cycles(99_995)));
    }

    #[test]
    fn nothing_lost_is_no_range() {
        let mut losses = Losses::default();
        losses.add(LossRange { begin: Cycles(1), end: Cycles(2), events: 0 });
        assert_eq!(losses, Losses::default());
    }
}
