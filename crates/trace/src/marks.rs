//! Which events of each stream a filter wants, for who reads streams one by one: where an event belongs is known only in the
//! order of time. One bit per event.

use crate::Error;
use crate::chooser::Chooser;
use crate::filter::Filter;
use crate::merge::{Merge, Message};
use crate::open::Recording;
use crate::select::Selection;
use crate::time_range::TimeRange;
use std::ops::ControlFlow;

/// Events between two looks whether it is still wanted.
const PERIOD: u64 = 1 << 16;

/// The wanted events of a time range.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    streams: Vec<Bits>,
}

/// The events of a stream in the range, in their order.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
    count: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(last) = self.words.last_mut() {
            *last |= u64::from(bit) << (self.count % 64);
        }
        self.count += 1;
    }

    /// Whether the event of this index is wanted.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
}

impl Marks {
    /// Reads the recording for them, if `filter` needs more than an event to choose it. What follows damage is not
    /// wanted. `watch` is asked from time to time whether to go on.
    ///
    /// # Errors
    /// [`Error::Usage`] where the filter makes no sense for the recording; [`Error::Stopped`].
    pub(crate) fn of(
        filter: &Filter,
        range: TimeRange,
        recording: &Recording,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<Self>, Error> {
        if filter.cpus.is_empty() && !Selection::new(filter, recording)?.needs_places() {
            return Ok(None);
        }
        let mut chooser = Chooser::new(filter, range, recording, false)?;
        let mut merge = Merge::new(recording, chooser.reads());
        let mut streams: Vec<Bits> = Vec::new();
        streams.resize_with(recording.streams().len(), Bits::default);
        let mut count = 0;
        while let Ok(Some(message)) = merge.advance() {
            match message {
                Message::Event(event) => {
                    let wanted = chooser.event(&event, |_| ()).is_some();
                    if event.stamp().is_none_or(|stamp| stamp.ns >= range.begin) {
                        streams[event.stream_index()].push(wanted);
                    }
                }
                Message::Lost(lost, trace, stream) => drop(chooser.lost(lost, trace, stream)),
            }
            count += 1;
            if count % PERIOD == 0 && watch().is_break() {
                return Err(Error::Stopped);
            }
        }
        Ok(Some(Self { streams }))
    }

    /// Those of a stream, by its place in [`Recording::streams`].
    pub(crate) fn of_stream(&self, stream: usize) -> &Bits {
        &self.streams[stream]
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn bits_are_kept_in_their_order() {
        let wanted = |index: usize| index.is_multiple_of(3) || index == 64;
        let mut bits = Bits::default();
        (0..200).for_each(|index| bits.push(wanted(index)));
        assert!((0..200).all(|index| bits.has(index) == wanted(index)));
        assert!((200..300).all(|index| !bits.has(index)), "nothing behind the end is wanted");
    }
}
