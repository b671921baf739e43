//! A selection for reading streams one by one: where an event belongs is known only in the order of time, so
//! all events are decided on in that order before, with one bit for each.

use crate::Error;
use crate::merge::event::Message;
use crate::open::extract::Lwps;
use crate::open::recording::{Recording, Stream, Trace};
use crate::select::filter::Filter;
use crate::select::in_order::OrderedSelection;
use crate::select::selection::Selection;
use crate::super_trace::{Follower, Seen};
use crate::time::range::TimeRange;
use std::collections::HashMap;
use std::ops::ControlFlow;
use tracewing_ctf::decode::Event;
use tracewing_units::{Pid, Tid, Timestamp};

/// Number of events between two checks for cancellation.
const PERIOD: u64 = 1 << 16;

/// What was decided on the events of a time range; nothing where each event can be decided on by itself.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// By their places in [`Recording::streams`].
    streams: Option<Vec<Bits>>,
    /// From when on the recording was read for them, if that is before the range.
    read_from: Option<Timestamp>,
    /// The LWPs that are selected, where certain ones are.
    lwps: Option<Lwps>,
}

/// Decides on the events of one stream in the time range, one after the other.
#[derive(Debug)]
pub(crate) struct StreamDecisions<'d> {
    trace: &'d Trace,
    stream: &'d Stream,
    decided: Option<&'d Bits>,
    selection: &'d mut Selection,
    /// Which event of the stream is next.
    next: usize,
}

impl StreamDecisions<'_> {
    /// Whether the next event is selected.
    #[inline]
    pub(crate) fn takes(&mut self, event: &Event<'_>) -> bool {
        let index = self.next;
        self.next += 1;
        match self.decided {
            Some(bits) => bits.has(index),
            None => self.selection.selects_decoded(self.trace, self.stream, event, None),
        }
    }
}

/// The events of a stream in the range, in their order.
#[derive(Debug, Default)]
struct Bits {
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

    /// Whether the event of this index is selected.
    fn has(&self, index: usize) -> bool {
        self.words.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
}

impl Decisions {
    /// Reads the recording for them, if `filter` needs more than an event to decide on it. Events after
    /// damage are not selected. `watch` is called from time to time and may stop the reading.
    ///
    /// # Errors
    /// [`Error::Usage`] if the filter does not fit the recording; [`Error::Stopped`].
    pub(crate) fn of(
        filter: &Filter,
        range: TimeRange,
        recording: &Recording,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Self, Error> {
        if filter.cpus.is_empty() && !Selection::new(filter, recording)?.needs_places() {
            return Ok(Self::default());
        }
        let mut selection = OrderedSelection::new(filter, range, recording, false)?;
        let (mut merge, _) = selection.merge(recording, |_, _, _| {});
        let mut streams: Vec<Bits> = Vec::new();
        streams.resize_with(recording.streams().len(), Bits::default);
        let mut chosen = filter.chooses_lwps().then(Chosen::default);
        let mut count = 0;
        while let Ok(Some(message)) = merge.advance() {
            match message {
                Message::Event(event) => {
                    let is_selected = selection.event_of_all(
                        &event,
                        |seen| chosen.iter_mut().for_each(|chosen| chosen.looks_at(seen, filter)),
                        |_| (),
                    );
                    let is_selected = is_selected.is_some();
                    if event.stamp().is_none_or(|stamp| stamp.time >= range.begin) {
                        streams[event.stream_index()].push(is_selected);
                    }
                }
                Message::Lost(lost, trace, stream) => drop(selection.lost(lost, trace, stream)),
            }
            count += 1;
            if count % PERIOD == 0 && watch().is_break() {
                return Err(Error::Stopped);
            }
        }
        let lwps = chosen.zip(selection.follower()).map(|(chosen, follower)| chosen.known_to(follower));
        let read_from = Some(selection.reads().begin).filter(|begin| *begin < range.begin);
        Ok(Self { streams: Some(streams), read_from, lwps })
    }

    /// From when on the events of a stream have to be counted, if that is before the range. Which packets lie
    /// before the range is known by their stamps, but their events may have others.
    pub(crate) fn read_from(&self) -> Option<Timestamp> {
        self.read_from
    }

    /// The LWPs that are selected, where certain ones are.
    pub(crate) fn lwps(&self) -> Option<&Lwps> {
        self.lwps.as_ref()
    }

    /// Those on the events of a stream, by its place in [`Recording::streams`]; `selection` decides where
    /// nothing was decided.
    pub(crate) fn of_stream<'d>(
        &'d self,
        at: usize,
        recording: &'d Recording,
        selection: &'d mut Selection,
    ) -> StreamDecisions<'d> {
        let stream = &recording.streams()[at];
        let trace = &recording.traces()[stream.trace_index()];
        let decided = self.streams.as_ref().map(|streams| &streams[at]);
        StreamDecisions { trace, stream, decided, selection, next: 0 }
    }
}

/// The LWPs that a filter chooses: the process of each, and whether it is known to be followed.
#[derive(Debug, Default)]
struct Chosen {
    lwps: HashMap<Tid, (Option<Pid>, bool)>,
}

impl Chosen {
    /// A process that no longer matches because its name has changed was not meant: events since the change
    /// are left out.
    fn looks_at(&mut self, seen: &Seen<'_>, filter: &Filter) {
        for place in [seen.place, seen.at_next().place] {
            let Some(tid) = place.tid.filter(|tid| !tid.is_idle()) else { continue };
            match filter.has_lwp(seen.state, &place) {
                true => {
                    let followed = seen.state.lwp(tid).is_some_and(|lwp| lwp.followed);
                    self.lwps.insert(tid, (place.process, followed));
                }
                false => drop(self.lwps.remove(&tid)),
            }
        }
    }

    /// Without those that were only seen next to the followed ones.
    fn known_to(self, follower: &Follower) -> Lwps {
        let has_strangers = follower.has_strangers();
        let is_followed = |tid| follower.state().lwp(tid).is_some_and(|lwp| lwp.followed);
        let known = |(tid, (process, followed))| {
            (!has_strangers || followed || is_followed(tid)).then_some((tid, process))
        };
        self.lwps.into_iter().filter_map(known).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn bits_are_kept_in_their_order() {
        let is_selected = |index: usize| index.is_multiple_of(3) || index == 64;
        let mut bits = Bits::default();
        (0..200).for_each(|index| bits.push(is_selected(index)));
        assert!((0..200).all(|index| bits.has(index) == is_selected(index)));
        assert!((200..300).all(|index| !bits.has(index)), "no bit after the end is set");
    }
}
