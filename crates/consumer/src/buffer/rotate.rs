//! A rotation, as a buffer sees it: which of its losses belong to which archive.
//!
//! Writers count losses while the buffer is read, so at a rotation some may be counted for which no packet
//! accounts yet. If the buffer is empty, they came after all of its events: a last packet of the archive
//! accounts for them. Otherwise their place among the events that remain is not known, and the packet that
//! has these events accounts for them, in the next archive.
//!
//! That last packet has the time of the packet before it. A writer may have read the clock and not have put
//! its event into the buffer yet, so any later time could be after the first event of the next archive.

use tracewing_streams::PacketTimes;
use tracewing_units::Cycles;

use super::{Buffer, Target};
use crate::Error;
use crate::archive::{Archive, Lost};
use crate::clock::TraceClock;
use crate::output::Output;
use crate::summary::{LossRange, OverwrittenTotal};

/// What earlier archives have of the losses of a buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Archived {
    events: u64,
    overwritten: OverwrittenTotal,
    pub(super) is_lost_unknown: bool,
}

impl Buffer {
    /// The losses of the current archive.
    pub(super) fn lost_here(&self) -> Lost {
        Lost {
            cpu: self.cpu,
            events: self.lost_total().saturating_sub(self.archived.events),
            is_unknown: self.is_lost_unknown,
            overwritten: OverwrittenTotal::from(self.overwritten).since(self.archived.overwritten),
        }
    }

    /// Accounts for losses since the last packet if the buffer is empty.
    pub(crate) fn end_part(
        &mut self,
        target: &mut Target<'_>,
        clock: &TraceClock,
        since: Cycles,
    ) -> Result<(), Error> {
        self.note_losses(target.label, target.region, clock, since, clock.now());
        let (lost, told) = (self.lost_total(), self.stream.as_ref().map_or(0, Output::lost));
        if lost <= told || self.held.is_some() || self.reader.waiting() > 0 {
            return Ok(());
        }
        let skipped = self.stream.as_ref().map_or(0, Output::skipped);
        let at = self.stream.as_ref().map_or(self.origin, Output::end).max(self.origin);
        let is_first = self.is_first();
        let stream = self.stream(target, at)?;
        if is_first {
            // Readers compare a packet's counts with those of the previous one.
            stream.write_empty(PacketTimes::empty(at, told, skipped))?;
        }
        stream.write_empty(PacketTimes::empty(at, lost, skipped))
    }

    /// Moves its file to an archive, with the losses for which the packets there account.
    pub(crate) fn rotate(&mut self, label: &str, archive: &mut Archive) {
        let told = self.stream.as_ref().map_or(0, Output::lost).min(self.lost_total());
        let events = told.saturating_sub(self.archived.events);
        let lost = Lost { events, ..self.lost_here() };
        archive.lose(&self.name(label), &lost);
        archive.add_ranges(take(&mut self.ranges, events), self.overwritten_ranges.drain(..));
        archive.close(self.stream.as_mut().and_then(Output::close));
        self.archived.events += events;
        self.archived.overwritten.add(lost.overwritten);
        self.archived.is_lost_unknown |= std::mem::take(&mut self.is_lost_unknown);
    }
}

/// Takes so many lost events out of ranges, the first ones first.
fn take(ranges: &mut Vec<LossRange>, mut events: u64) -> Vec<LossRange> {
    let mut taken = Vec::new();
    for range in ranges.iter_mut() {
        let part = range.events.min(events);
        (range.events, events) = (range.events - part, events - part);
        if part > 0 {
            taken.push(LossRange { events: part, ..range.clone() });
        }
    }
    ranges.retain(|range| range.events > 0);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_divided_in_their_order() {
        let range = |begin, events| LossRange {
            stream: "uid0_0".to_owned(),
            reason: "buffer full".to_owned(),
            events,
            begin: Cycles(begin),
            end: Cycles(begin + 5),
        };
        let mut ranges = vec![range(10, 3), range(20, 4), range(30, 1)];
        assert_eq!(take(&mut ranges, 5), [range(10, 3), range(20, 2)]);
        assert_eq!(ranges, [range(20, 2), range(30, 1)]);
        assert_eq!((take(&mut ranges, 0), ranges.len()), (Vec::new(), 2));
    }
}
