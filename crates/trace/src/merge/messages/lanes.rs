//! Merges streams whose next events are of fixed forms, packet by packet: all that an event needs is at hand,
//! and cursors learn at the end how far their streams have come.

use super::key::Key;
use super::{Head, Merge, Message};
use crate::Error;
use crate::merge::event::EventRef;
use crate::stream::cursor::{Lane, Way};
use std::ops::ControlFlow;
use tracewing_units::Timestamp;

/// Events of each stream that should come in a run, so that beginning it is worth its time.
const WORTH: u64 = 8;

/// Messages that come one by one after a run that was not worth its time.
const PAUSE: u64 = 256;

/// Why a run has ended.
enum End {
    /// The current stream has an event at this time next, and what comes first has to be chosen.
    Later(Timestamp),
    /// The current stream's cursor has to advance.
    Stuck,
    /// The receiver needs no more.
    Stopped,
}

impl Merge<'_> {
    /// Hands the messages that [`Merge::advance`] would return to `each`, in less time, until that stops it
    /// or there are no more; `advance` can continue.
    ///
    /// # Errors
    /// As [`Merge::advance`].
    #[inline]
    pub fn for_each(
        &mut self,
        mut each: impl FnMut(Message<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut singly = 0_u64;
        loop {
            let Some(message) = self.advance()? else { return Ok(ControlFlow::Continue(())) };
            if each(message).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if singly > 0 {
                singly -= 1;
                continue;
            }
            let Some((end, count)) = self.run(&mut each) else {
                singly = PAUSE;
                continue;
            };
            singly = if count < WORTH * self.cursors.len() as u64 { PAUSE } else { 0 };
            match end {
                End::Stopped => return Ok(ControlFlow::Break(())),
                End::Stuck => self.choose(None)?,
                End::Later(ns) => self.choose(Some(ns))?,
            }
            let Some(stream) = self.current else { return Ok(ControlFlow::Continue(())) };
            if each(self.message(stream)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Hands events to `each` as long as all streams have events of fixed forms next; how many, and why there
    /// are no more of them. `None` if there are none.
    #[inline(always)]
    fn run(&mut self, each: &mut impl FnMut(Message<'_>) -> ControlFlow<()>) -> Option<(End, u64)> {
        let mut current = self.current.filter(|_| !self.ambiguous && self.unusual == 0)?;
        let Merge { recording, until, cursors, heads, ranks, waiting, .. } = self;
        let mut lanes: Vec<Option<Lane<'_>>> = Vec::with_capacity(cursors.len());
        for (stream, (cursor, head)) in cursors.iter().zip(heads).enumerate() {
            let lane = (stream == current || matches!(head, Head::Event)).then(|| cursor.lane());
            match lane {
                Some(None) => return None,
                lane => lanes.push(lane.flatten()),
            }
        }
        let (until, mut last_ns, mut alone_until) = (*until, self.last_ns, self.alone_until);
        // Without another stream, all up to the end comes from this one.
        let mut other = waiting.first().unwrap_or(Key::LAST);
        let end = loop {
            let Some(mut lane) = lanes.get_mut(current).and_then(Option::as_mut) else { break End::Stuck };
            let Some(mut ns) = lane.advance() else { break End::Stuck };
            if ns >= alone_until {
                let key = Key::new(ns, ranks[current], current);
                let comes_again = key.is_before(&other);
                if ns.min(other.ns) > until {
                    break End::Later(ns);
                }
                if !comes_again {
                    (current, ns) = (other.stream(), other.ns);
                    other = waiting.replace_first(key);
                    match lanes.get_mut(current).and_then(Option::as_mut) {
                        Some(first) => lane = first,
                        None => break End::Stuck,
                    }
                }
                alone_until = other.ns.min(until);
            }
            last_ns = last_ns.max(ns);
            let event = EventRef::in_lane(recording, &cursors[current], lane, current);
            if each(Message::Event(event)).is_break() {
                break End::Stopped;
            }
        };
        (self.last_ns, self.alone_until) = (last_ns, alone_until);
        let count = lanes.iter().flatten().map(Lane::count).sum();
        let ways: Vec<Option<Way>> = lanes.iter().map(|lane| lane.as_ref().map(Lane::way)).collect();
        for (cursor, way) in self.cursors.iter_mut().zip(ways) {
            if let Some(way) = way {
                cursor.follow(way);
            }
        }
        self.current = Some(current);
        Some((end, count))
    }
}
