//! How much of a recording lies where in its time, from the headers of its packets alone: no event is
//! decoded. It is known long before a large recording has been read.

use crate::open::recording::Recording;
use std::ops::ControlFlow;
use tracewing_units::{Duration, Timestamp};

/// Where the bytes of a recording lie in its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// When the first packet begins.
    pub begin: Timestamp,
    /// When the last packet ends, or the recording did.
    pub end: Timestamp,
    /// Bytes in equal parts of this time: those of a packet lie evenly from its begin to its end.
    pub parts: Vec<u64>,
}

impl Recording {
    /// Its outline in so many parts. `watch` is called for each stream file, and may stop it. `None` if it
    /// was stopped, or if no stream has packets with times.
    pub fn outline(&self, parts: usize, watch: &mut dyn FnMut() -> ControlFlow<()>) -> Option<Outline> {
        let mut packets = Vec::new();
        for stream in self.streams() {
            for file in &stream.files {
                if watch().is_break() {
                    return None;
                }
                packets.extend(file.index.spans(&mut self.reader(stream, file, false)));
            }
        }
        let begin = packets.iter().map(|(begin, ..)| *begin).min()?;
        let last = packets.iter().map(|(_, end, _)| *end).max()?;
        let mut outline =
            Outline { begin, end: self.end().map_or(last, |end| end.max(last)), parts: vec![0; parts] };
        packets.into_iter().for_each(|packet| outline.add(packet));
        Some(outline)
    }
}

impl Outline {
    /// Spreads the bytes of a packet over its time; none is lost by rounding.
    fn add(&mut self, (begin, end, bytes): (Timestamp, Timestamp, u64)) {
        let (first, last) = (self.part(begin), self.part(end));
        let mut done = 0;
        for part in first..=last {
            let reached = if part == last { end } else { self.begin_of(part + 1) };
            let share = u128::from(bytes) * u128::from((reached - begin).as_ns());
            let until = match (end - begin).as_ns() {
                _ if part == last => bytes,
                whole => ((share / u128::from(whole.max(1))) as u64).min(bytes),
            };
            if let Some(sum) = self.parts.get_mut(part) {
                *sum += until - done;
            }
            done = until;
        }
    }

    /// When a part begins.
    fn begin_of(&self, part: usize) -> Timestamp {
        let whole = u128::from((self.end - self.begin).as_ns());
        let since = whole * part as u128 / self.parts.len().max(1) as u128;
        self.begin.checked_add(Duration::from_ns(since as u64)).unwrap_or(self.end)
    }

    /// The part that a time of the recording lies in.
    fn part(&self, time: Timestamp) -> usize {
        let whole = (self.end - self.begin).as_ns().max(1);
        let part = u128::from((time - self.begin).as_ns()) * self.parts.len() as u128 / u128::from(whole);
        (part as usize).min(self.parts.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: i64) -> Timestamp {
        Timestamp::from_ns(ns)
    }

    #[test]
    fn packets_lie_evenly_in_their_time() {
        let mut outline = Outline { begin: at(-100), end: at(100), parts: vec![0; 4] };
        outline.add((at(-100), at(-100), 5));
        outline.add((at(-60), at(20), 7));
        outline.add((at(100), at(100), 11));
        assert_eq!(outline.parts, [5, 5, 2, 11]);
    }

    #[test]
    fn a_moment_has_all() {
        let mut outline = Outline { begin: at(7), end: at(7), parts: vec![0; 3] };
        outline.add((at(7), at(7), 5));
        assert_eq!(outline.parts, [5, 0, 0]);
    }
}
