//! The rows that a group sums up, by the time in which they live: of a million, those of a window are found
//! without looking at all.

use tracewing_index::{Index, RowId, Window};
use tracewing_units::Duration;

/// Rows with states, by the times in which they have any.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// By beginning.
    lives: Vec<Life>,
    /// The latest end of each of these and of those before it.
    latest: Vec<Duration>,
    /// The ends, in order.
    ends: Vec<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Life {
    row: RowId,
    begin: Duration,
    end: Duration,
}

impl Members {
    pub(crate) fn new(index: &Index, rows: impl Iterator<Item = RowId>) -> Self {
        let life = |row: RowId| {
            let (begin, end) = (index.row(row).begin, index.row(row).end);
            index.row(row).has_states().then_some(Life { row, begin, end })
        };
        Members::of(rows.filter_map(life).collect())
    }

    fn of(mut lives: Vec<Life>) -> Self {
        lives.sort_unstable_by_key(|life| (life.begin, life.row));
        let mut until = Duration::ZERO;
        let latest = lives.iter().map(|life| {
            until = until.max(life.end);
            until
        });
        let latest = latest.collect();
        let mut ends: Vec<_> = lives.iter().map(|life| life.end).collect();
        ends.sort_unstable();
        Members { lives, latest, ends }
    }

    /// How many have a state between two times.
    pub(crate) fn count(&self, from: Duration, to: Duration) -> usize {
        let begun = self.lives.partition_point(|life| life.begin < to);
        begun - self.ends.partition_point(|end| *end <= from)
    }

    /// Those that have a state between two times.
    pub(crate) fn between(&self, from: Duration, to: Duration) -> impl Iterator<Item = RowId> {
        let first = self.latest.partition_point(|end| *end <= from);
        let end = self.lives.partition_point(|life| life.begin < to);
        let some = self.lives.get(first..end).unwrap_or_default();
        some.iter().filter(move |life| life.end > from).map(|life| life.row)
    }

    /// How many live in each bucket of a window.
    pub(crate) fn living(&self, window: Window) -> Vec<u64> {
        let bucket = |number: u32| {
            let (from, to) = Window { first: window.first + u64::from(number), count: 1, ..window }.times();
            self.count(from, to) as u64
        };
        (0..window.count).map(bucket).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_time_are_those_that_live_then() {
        let ns = Duration::from_ns;
        // Some live long, most shortly; several begin at the same time.
        let times = (0..200_u64)
            .map(|number| (number * 7 % 90, 1 + number * number % if number % 9 == 0 { 80 } else { 5 }));
        let life =
            |(row, (begin, length))| Life { row: RowId(row), begin: ns(begin), end: ns(begin + length) };
        let lives: Vec<Life> = (0..).zip(times).map(life).collect();
        let members = Members::of(lives.clone());
        let expected = |from: Duration, to: Duration| {
            let lives = lives.iter().filter(|life| life.begin < to && life.end > from);
            lives.map(|life| life.row).collect::<std::collections::BTreeSet<_>>()
        };
        for from in 0..180 {
            for length in [1, 2, 17, 200] {
                let (from, to) = (ns(from), ns(from + length));
                let found = members.between(from, to);
                assert_eq!(found.collect::<std::collections::BTreeSet<_>>(), expected(from, to));
                assert_eq!(members.count(from, to), expected(from, to).len());
            }
        }
        let window = Window { shift: 2, first: 3, count: 40 };
        let living = members.living(window);
        for (bucket, living) in (3..).zip(&living) {
            assert_eq!(*living, expected(ns(bucket << 2), ns((bucket + 1) << 2)).len() as u64);
        }
        assert_eq!(Members::default().living(window), [0; 40]);
    }
}
