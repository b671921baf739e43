//! By how much counters have grown: they never go back, and no machine counts faster than a limit. Values
//! that contradict that make the growth unknown.

use crate::stored::stored;
use tracewing_units::{Duration, Timestamp};

/// More than a counter counts in a nanosecond: ten thousand processors do not complete as many instructions.
const MOST_PER_NS: u64 = 1_000_000;

/// A counter may be read that much before or after its stamp is taken, ns: its reader may be preempted.
const LATE_NS: u64 = 1_000_000_000;

/// The most that a counter counts in a time.
pub fn most_counted(elapsed: Duration) -> u64 {
    elapsed.as_ns().saturating_add(LATE_NS).saturating_mul(MOST_PER_NS)
}

/// The counters of a stream.
#[derive(Debug, Default)]
pub(super) struct Growth {
    counters: Vec<Counter>,
    at: Option<Timestamp>,
}

#[derive(Debug)]
struct Counter {
    name: String,
    value: u64,
    /// Since the beginning of what is analysed; `None` if it is unknown.
    grown: Option<u64>,
}

stored! {
    SHAPE:
    Counter { name value grown }
    Growth { counters at }
}

impl Growth {
    /// Takes note of values, which counters had at a time. `is_counted`: what is analysed has begun.
    pub(super) fn note(&mut self, values: Vec<(String, u64)>, at: Option<Timestamp>, is_counted: bool) {
        let elapsed = self.at.zip(at).and_then(|(before, at)| at.checked_since(before));
        let most = elapsed.map_or(u64::MAX, most_counted);
        for (name, value) in values {
            let step = |before: u64| value.checked_sub(before).filter(|step| *step <= most);
            match self.counters.iter_mut().find(|counter| counter.name == name) {
                Some(counter) => {
                    let step = step(counter.value);
                    counter.value = value;
                    if is_counted {
                        counter.grown = counter.grown.zip(step).and_then(|(sum, step)| sum.checked_add(step));
                    }
                }
                // They count from 0 when the recording begins.
                None => {
                    let grown = Some(if is_counted { value } else { 0 });
                    self.counters.push(Counter { name, value, grown });
                }
            }
        }
        self.at = at.or(self.at);
    }
}

/// By how much each counter has grown, in all streams together; `None` where that is unknown.
pub(super) fn sum(streams: impl Iterator<Item = Growth>) -> Vec<(String, Option<u64>)> {
    let mut sums: Vec<(String, Option<u64>)> = Vec::new();
    for Counter { name, grown, .. } in streams.flat_map(|stream| stream.counters) {
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.zip(grown).and_then(|(sum, grown)| sum.checked_add(grown)),
            None => sums.push((name, grown)),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(looks: &[(i64, u64, bool)]) -> Option<u64> {
        let mut growth = Growth::default();
        for &(ns, value, is_counted) in looks {
            growth.note(vec![("faults".to_owned(), value)], Some(Timestamp::from_ns(ns)), is_counted);
        }
        sum([growth].into_iter())[0].1
    }

    #[test]
    fn counters_grow() {
        assert_eq!(grown(&[(0, 10, true), (5, 20, true), (9, 20, true)]), Some(20));
        assert_eq!(grown(&[(0, 10, false), (5, 20, true), (9, 25, true)]), Some(15));
        assert_eq!(grown(&[(0, 10, false)]), Some(0));
    }

    #[test]
    fn what_goes_back_or_is_too_fast_is_unknown() {
        assert_eq!(grown(&[(0, 10, true), (5, 8, true), (9, 30, true)]), None);
        assert_eq!(grown(&[(0, 10, false), (5, 8, true)]), None);
        let most = (5 + LATE_NS) * MOST_PER_NS;
        assert_eq!(grown(&[(0, 0, true), (5, most, true)]), Some(most));
        assert_eq!(grown(&[(0, 0, true), (5, most + 1, true)]), None);
        assert_eq!(grown(&[(0, 0, true), (5, u64::MAX, true)]), None);
        // Before what is analysed, it is of no consequence.
        assert_eq!(grown(&[(0, 10, false), (5, 8, false), (9, 30, true)]), Some(22));
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let of = |value, then| {
            let mut growth = Growth::default();
            growth.note(vec![("faults".to_owned(), value)], None, true);
            growth.note(vec![("faults".to_owned(), then)], None, true);
            growth
        };
        let sum = |streams: Vec<Growth>| sum(streams.into_iter())[0].1;
        assert_eq!(sum(vec![of(1, 2), of(3, 4)]), Some(6));
        assert_eq!(sum(vec![of(1, 2), of(4, 3)]), None);
        assert_eq!(sum(vec![of(0, u64::MAX), of(3, 4)]), None);
    }
}
