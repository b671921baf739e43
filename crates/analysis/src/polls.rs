//! The polls of which a figure of a task is made, such as its blocking ones: the first of them in an order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tracewing_units::{Duration, Timestamp};

/// Which polls are listed, and what orders them; the greatest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollsBy {
    /// All, by duration.
    Duration,
    /// Those in which the worker slept, by how long it did.
    Slept,
    /// Those before which the time that the task was ready is known, by this time.
    Delay,
    /// Those that ran for [`Thresholds::long_ns`](crate::Thresholds::long_ns) or longer, by how long they
    /// did.
    Long,
    /// Those in which the worker slept for [`Thresholds::blocking_ns`](crate::Thresholds::blocking_ns) or
    /// longer, by how long it did.
    Blocking,
}

/// A poll. Times of one that has not ended are those up to the end of what was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedPoll {
    /// When it began, on the recording's clock.
    pub begin: Timestamp,
    /// When it ended; `None` if it has not.
    pub end: Option<Timestamp>,
    /// How long the task was being polled, without the polls of others within.
    pub busy_ns: Duration,
    /// Of `busy_ns`: its worker ran on a CPU.
    pub running_ns: Duration,
    /// Of `busy_ns`: its worker slept.
    pub slept_ns: Duration,
    /// How long the task was ready before; `None` if unknown.
    pub delay_ns: Option<Duration>,
}

/// The first polls in an order, and how many there are.
#[derive(Debug)]
pub struct Polls {
    by: PollsBy,
    most: usize,
    /// How many there are, listed or not.
    pub count: u64,
    /// The last one of those that are listed is the first to go.
    listed: BinaryHeap<Reverse<(Duration, Reverse<ListedPoll>)>>,
}

impl Polls {
    pub(crate) fn new(by: PollsBy, most: usize) -> Self {
        Polls { by, most, count: 0, listed: BinaryHeap::new() }
    }

    /// Adds a poll, if it is one of those that are asked for.
    pub(crate) fn add(&mut self, poll: ListedPoll, is_long: bool, is_blocking: bool) {
        let key = match self.by {
            PollsBy::Duration => Some(poll.busy_ns),
            PollsBy::Slept => Some(poll.slept_ns).filter(|slept| !slept.is_zero()),
            PollsBy::Delay => poll.delay_ns,
            PollsBy::Long => is_long.then_some(poll.running_ns),
            PollsBy::Blocking => is_blocking.then_some(poll.slept_ns),
        };
        let Some(key) = key else { return };
        self.count += 1;
        self.listed.push(Reverse((key, Reverse(poll))));
        if self.listed.len() > self.most {
            self.listed.pop();
        }
    }

    /// Those that are listed, in their order; of two that are equal in it, the earlier one first.
    pub fn into_listed(self) -> Vec<ListedPoll> {
        self.listed.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(poll)))| poll).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_in_the_order_are_kept_and_all_are_counted() {
        let poll = |begin: i64, busy: u64| ListedPoll {
            begin: Timestamp::from_ns(begin),
            end: None,
            busy_ns: Duration::from_ns(busy),
            running_ns: Duration::ZERO,
            slept_ns: Duration::from_ns(busy % 2),
            delay_ns: None,
        };
        let polls = [(1, 5), (2, 9), (3, 4), (4, 9), (5, 6)].map(|(begin, busy)| poll(begin, busy));
        let listed = |by: PollsBy, most: usize| {
            let mut all = Polls::new(by, most);
            polls.iter().for_each(|poll| all.add(*poll, poll.busy_ns.as_ns() > 5, false));
            (all.count, all.into_listed().iter().map(|poll| poll.begin.as_ns()).collect::<Vec<_>>())
        };
        assert_eq!(listed(PollsBy::Duration, 3), (5, vec![2, 4, 5]));
        assert_eq!(listed(PollsBy::Slept, 9), (3, vec![1, 2, 4]));
        assert_eq!(listed(PollsBy::Long, 9), (3, vec![2, 4, 5]));
        assert_eq!(listed(PollsBy::Blocking, 9), (0, vec![]));
        assert_eq!(listed(PollsBy::Delay, 9), (0, vec![]));
    }
}
