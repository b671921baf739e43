//! Which stream comes next.

use super::key::Key;
use super::{Head, Merge};
use crate::Error;
use crate::merge::order;
use crate::stream::cursor::{Item, LostKind};
use std::cmp::Ordering;
use tracewing_units::Timestamp;

impl Merge<'_> {
    /// Advances to the stream that comes first if the current one has an event at `ns` next. Returns false,
    /// and changes nothing, if the first item is not an event in the range, or equal stamps must be compared.
    #[inline]
    pub(super) fn change_places(&mut self, ns: Timestamp) -> bool {
        let (Some(stream), Some(other)) = (self.current, self.waiting.first()) else { return false };
        let is_event = |of: usize| matches!(self.heads[of], Head::Event);
        if self.ambiguous || self.unusual > 0 && !(is_event(stream) && is_event(other.stream())) {
            return false;
        }
        let key = Key::new(ns, self.ranks[stream], stream);
        let comes_again = key.is_before(&other);
        let first = if comes_again { ns } else { other.ns };
        if first > self.until {
            return false;
        }
        if !comes_again {
            self.waiting.replace_first(key);
            self.current = Some(other.stream());
        }
        self.lost = None;
        self.last_ns = self.last_ns.max(first);
        self.stand_alone();
        true
    }

    /// Notes what a stream has next.
    #[inline]
    pub(super) fn set_head(&mut self, stream: usize, head: Head) {
        self.unusual += usize::from(head.is_unusual());
        self.unusual -= usize::from(std::mem::replace(&mut self.heads[stream], head).is_unusual());
    }

    /// Computes up to when the current stream comes first.
    #[inline]
    fn stand_alone(&mut self) {
        let next = self.waiting.first().map_or(Timestamp::MAX, |key| key.ns);
        self.alone_until = if self.ambiguous { Timestamp::MIN } else { next.min(self.until) };
    }

    /// Advances to the stream that comes first; to none at the end. `event` is the time of the current
    /// stream's next event, if that is known.
    #[inline(never)]
    pub(super) fn choose(&mut self, mut event: Option<Timestamp>) -> Result<(), Error> {
        while let Some(stream) = self.next_stream(event.take())? {
            self.current = Some(stream);
            self.lost = match self.heads[stream] {
                Head::Lost(mut lost) => match lost.cut(&self.range) {
                    true => Some(lost),
                    false => continue,
                },
                _ => None,
            };
            self.stand_alone();
            return Ok(());
        }
        self.current = None;
        Ok(())
    }

    /// Fetches the next item of `stream` and returns its position in the order; `None` at the stream's end.
    pub(super) fn refill(&mut self, stream: usize) -> Option<Key> {
        let (head, ns) = match self.cursors[stream].advance() {
            Ok(Some(item)) => {
                // An item without a time comes at once.
                let ns = item.ns().unwrap_or(self.last_ns);
                let head = match item {
                    Item::Event(_) => Head::Event,
                    Item::Lost(lost) => Head::Lost(lost),
                };
                (head, ns)
            }
            Ok(None) => {
                if let Some(at) = self.active.iter().position(|&active| active == stream) {
                    self.active.swap_remove(at);
                }
                self.set_head(stream, Head::None);
                return None;
            }
            // Everything before the damage has been given: what fails comes at once.
            Err(error) => (Head::Failed(Box::new(error)), Timestamp::MIN),
        };
        self.set_head(stream, head);
        Some(Key::new(ns, self.ranks[stream], stream))
    }

    fn next_stream(&mut self, event: Option<Timestamp>) -> Result<Option<usize>, Error> {
        if !self.started {
            self.started = true;
            for stream in 0..self.cursors.len() {
                if let Some(key) = self.refill(stream) {
                    self.waiting.push(key);
                }
            }
        } else if let Some(stream) = self.current.take()
            && let Some(key) = self.next_key(stream, event)
        {
            if self.ambiguous {
                self.waiting.push(key);
            } else {
                // The stream comes first again, or changes places with the next one.
                let first = match self.waiting.first() {
                    Some(next) if next.is_before(&key) => {
                        self.waiting.replace_first(key);
                        next
                    }
                    _ => key,
                };
                return self.give(first);
            }
        }
        let Some(key) = self.waiting.pop() else { return Ok(None) };
        let key = if self.ambiguous { self.settle(key) } else { key };
        self.give(key)
    }

    /// What is still in the range where all streams have come to something later: packets that begin in it
    /// may follow, and overlap in time with those before them.
    fn within_overlaps(&mut self) -> Option<Key> {
        let is_end = self.until == self.range.end && self.until < Timestamp::MAX;
        let waiting = if is_end { self.waiting.take() } else { Vec::new() };
        for key in waiting {
            let (stream, mut next) = (key.stream(), Some(key));
            while next.is_some_and(|key| key.ns > self.until) && !self.cursors[stream].is_after(self.until) {
                next = self.refill(stream);
            }
            self.waiting.extend(next);
        }
        let is_within = self.waiting.first().is_some_and(|key| key.ns <= self.until);
        if is_within { self.waiting.pop() } else { None }
    }

    /// Hands out the head of `key`'s stream, or its error, or ends where the range does.
    fn give(&mut self, mut key: Key) -> Result<Option<usize>, Error> {
        if key.ns > self.until {
            self.waiting.push(key);
            match self.within_overlaps() {
                Some(found) => key = found,
                None => return Ok(None),
            }
        }
        if let Head::Failed(_) = self.heads[key.stream()] {
            let failed = std::mem::replace(&mut self.heads[key.stream()], Head::None);
            self.unusual -= 1;
            self.waiting.take();
            return match failed {
                Head::Failed(error) => Err(*error),
                Head::None | Head::Event | Head::Lost(_) => Ok(None),
            };
        }
        self.last_ns = self.last_ns.max(key.ns);
        Ok(Some(key.stream()))
    }

    /// Where what `stream` has next belongs: an event at the time `event`, or what is fetched now.
    #[inline]
    fn next_key(&mut self, stream: usize, event: Option<Timestamp>) -> Option<Key> {
        let Some(ns) = event else { return self.refill(stream) };
        if !matches!(self.heads[stream], Head::Event) {
            self.set_head(stream, Head::Event);
        }
        Some(Key::new(ns, self.ranks[stream], stream))
    }

    /// Among the streams whose heads have the stamp and the rank of `first`, chooses the one that goes first.
    #[cold]
    fn settle(&mut self, first: Key) -> Key {
        let mut tied = vec![first];
        while let Some(key) =
            self.waiting.first().filter(|key| (key.ns, key.rank()) == (first.ns, first.rank()))
        {
            self.waiting.pop();
            tied.push(key);
        }
        tied.sort_by_key(|key| self.active.iter().position(|&active| active == key.stream()));
        let mut best = 0;
        for candidate in 1..tied.len() {
            if self.compare_heads(tied[candidate].stream(), tied[best].stream()) == Ordering::Less {
                best = candidate;
            }
        }
        let best = tied.swap_remove(best);
        self.waiting.extend(tied);
        best
    }

    fn compare_heads(&self, left: usize, right: usize) -> Ordering {
        let weight = |stream: usize| match &self.heads[stream] {
            Head::Event => 0,
            Head::Lost(lost) if lost.kind == LostKind::Events => 1,
            _ => 2,
        };
        let streams = self.recording.streams();
        weight(left)
            .cmp(&weight(right))
            .then_with(|| match (&self.heads[left], &self.heads[right]) {
                (Head::Event, Head::Event) => order::compare_classes(
                    self.cursors[left].event().class(),
                    self.cursors[right].event().class(),
                ),
                _ => Ordering::Equal,
            })
            .then_with(|| streams[left].name().cmp(streams[right].name()))
    }
}
