//! How much was lost, as far as it is known: of a stream, or of all of them. Every command that gives a
//! number of lost events takes it from here.

use crate::stream::cursor::{Lost, LostKind};

/// Sums of losses. Nothing is known of the events in lost packets, so these make the number of lost events
/// unknown, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// Events known to be lost.
    pub least_events: u64,
    /// Packets known to be lost.
    pub least_packets: u64,
    /// Whether the number of lost events is unknown.
    pub has_more_events: bool,
    /// Whether the number of lost packets is unknown.
    pub has_more_packets: bool,
}

impl Losses {
    /// The loss of this many events, or of an unknown number.
    pub fn of_events(count: Option<u64>) -> Self {
        Self { least_events: count.unwrap_or(0), has_more_events: count.is_none(), ..Self::default() }
    }

    /// What cannot be read: an unknown number of packets and events.
    pub fn unknown() -> Self {
        Self { has_more_events: true, has_more_packets: true, ..Self::default() }
    }

    /// Adds a loss to the sums.
    pub fn note(&mut self, lost: &Lost) {
        let count = lost.count.unwrap_or(0);
        match lost.kind {
            LostKind::Events => {
                self.least_events = self.least_events.saturating_add(count);
                self.has_more_events |= lost.count.is_none();
            }
            LostKind::Packets => {
                self.least_packets = self.least_packets.saturating_add(count);
                self.has_more_packets |= lost.count.is_none();
                self.has_more_events |= lost.count != Some(0);
            }
        }
    }

    /// Adds what others know.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            least_events: self.least_events.saturating_add(other.least_events),
            least_packets: self.least_packets.saturating_add(other.least_packets),
            has_more_events: self.has_more_events || other.has_more_events,
            has_more_packets: self.has_more_packets || other.has_more_packets,
        }
    }

    /// The number of lost events; `None` if it is unknown.
    pub fn events(&self) -> Option<u64> {
        Some(self.least_events).filter(|_| !self.has_more_events)
    }

    /// The number of lost packets; `None` if it is unknown.
    pub fn packets(&self) -> Option<u64> {
        Some(self.least_packets).filter(|_| !self.has_more_packets)
    }

    /// Whether nothing was lost, for all that is known.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_packets_make_the_number_of_lost_events_unknown() {
        let sum = |losses: &[(LostKind, Option<u64>)]| {
            let mut sum = Losses::default();
            losses.iter().for_each(|&(kind, count)| sum.note(&Lost { kind, count, range: None }));
            (sum.events(), sum.packets(), sum.least_events, sum.least_packets)
        };
        use LostKind::{Events, Packets};
        assert_eq!(sum(&[]), (Some(0), Some(0), 0, 0));
        assert_eq!(sum(&[(Events, Some(3)), (Events, Some(4))]), (Some(7), Some(0), 7, 0));
        assert_eq!(sum(&[(Events, Some(3)), (Events, None)]), (None, Some(0), 3, 0));
        assert_eq!(sum(&[(Events, Some(3)), (Packets, Some(2))]), (None, Some(2), 3, 2));
        assert_eq!(sum(&[(Packets, None), (Packets, Some(2))]), (None, None, 0, 2));
        assert_eq!(
            sum(&[(Events, Some(u64::MAX)), (Events, Some(1))]),
            (Some(u64::MAX), Some(0), u64::MAX, 0)
        );
    }
}
