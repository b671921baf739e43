//! Merges the events of all streams into one order by time, in one pass.
//!
//! Memory is bounded by the number of streams: a packet and a key each. Equal stamps go by
//! [`crate::merge::order`].

mod choose;
mod key;
mod lanes;
mod queue;

use crate::Error;
use crate::merge::event::{EventRef, Message};
use crate::merge::order;
use crate::open::recording::Recording;
use crate::stream::cursor::{Lost, Place, Stop, StreamCursor};
use crate::time::range::TimeRange;
use queue::Queue;
use std::hash::{DefaultHasher, Hash, Hasher};
use tracewing_units::Timestamp;

/// The merged events of a recording.
#[derive(Debug)]
pub struct Merge<'r> {
    recording: &'r Recording,
    range: TimeRange,
    /// Where to stop for now, not after the range's end.
    until: Timestamp,
    cursors: Vec<StreamCursor>,
    /// What each stream has to give next.
    heads: Vec<Head>,
    /// How many of them are neither events nor ends.
    unusual: usize,
    ranks: Vec<u32>,
    /// Whether some streams share a rank.
    ambiguous: bool,
    /// Streams that have not ended, in the order in which babeltrace2 asks them; only where ranks are shared.
    active: Vec<usize>,
    /// What the streams other than the current one have next.
    waiting: Queue,
    /// The stream whose head was given last.
    current: Option<usize>,
    /// Its events before this time come before those of all others, and lie in the range.
    alone_until: Timestamp,
    /// What it gave, if that was no event.
    lost: Option<Lost>,
    started: bool,
    last_ns: Timestamp,
}

/// Where all streams of a merge stand.
#[derive(Debug, PartialEq)]
pub(crate) struct Handoff(Vec<Place>);

impl Handoff {
    /// The same for equal ones, also where the files are given by other paths.
    pub(crate) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.iter().for_each(|place| place.without_paths().hash(&mut hasher));
        hasher.finish()
    }
}

#[derive(Debug)]
enum Head {
    None,
    /// The event at which the stream's cursor stands.
    Event,
    Lost(Lost),
    Failed(Box<Error>),
}

impl Head {
    fn is_unusual(&self) -> bool {
        matches!(self, Head::Lost(_) | Head::Failed(_))
    }
}

impl<'r> Merge<'r> {
    /// Merges what lies in `range`; losses that reach beyond it are cut, and their count is then unknown.
    pub fn new(recording: &'r Recording, range: TimeRange) -> Self {
        let cursors =
            recording.streams().iter().map(|stream| recording.cursor(stream, range.begin)).collect();
        Merge::of(recording, range, cursors)
    }

    /// Merges what cursors of all streams have left.
    pub(crate) fn of(recording: &'r Recording, range: TimeRange, cursors: Vec<StreamCursor>) -> Self {
        let count = recording.streams().len();
        let ranks = order::ranks(recording.traces(), recording.streams());
        let highest = ranks.iter().max().map_or(0, |rank| *rank as usize + 1);
        Merge {
            recording,
            range,
            until: range.end,
            cursors,
            heads: std::iter::repeat_with(|| Head::None).take(count).collect(),
            unusual: 0,
            ambiguous: highest < count,
            ranks,
            active: (0..count).collect(),
            waiting: Queue::with_capacity(count),
            current: None,
            alone_until: Timestamp::MIN,
            lost: None,
            started: false,
            last_ns: Timestamp::MIN,
        }
    }

    /// Seeks to `time`, in nanoseconds since the clock's origin, forwards or backwards: the next message is
    /// the first one at that time or later, and the range now begins there. Its end stays.
    ///
    /// Earlier data are not read, as long as packets have begin stamps of 64 bits: their offsets come from
    /// LTTng's index files, from a cache, or from the packets' headers, which are then looked at once for all
    /// seeks. Events without stamps belong to no time; a stream of them begins anew. Files are first opened
    /// when this is called, and what is wrong in them is reported by [`Merge::advance`].
    pub fn seek(&mut self, time: Timestamp) {
        let range = TimeRange { begin: time, ..self.range };
        *self = Merge::new(self.recording, range);
    }

    /// Advances to the next message; `None` at the end.
    ///
    /// # Errors
    /// A stream cannot be read or decoded further. Everything before that point has been returned by then.
    #[inline]
    pub fn advance(&mut self) -> Result<Option<Message<'_>>, Error> {
        match self.current.and_then(|stream| self.cursors[stream].advance_fast()) {
            // The common case: the current stream comes first again.
            Some(ns) if ns < self.alone_until => {
                self.last_ns = self.last_ns.max(ns);
                self.lost = None;
            }
            Some(ns) if self.change_places(ns) => {}
            event => self.choose(event)?,
        }
        Ok(self.current.map(|stream| self.message(stream)))
    }

    /// Bytes of the packets that were begun.
    pub fn bytes(&self) -> u64 {
        self.cursors.iter().map(|cursor| cursor.totals().bytes).sum()
    }

    /// Ends before anything that is later than `until`; nothing is cut off there.
    pub(crate) fn pause_at(mut self, until: Timestamp) -> Self {
        self.until = until.min(self.range.end);
        self
    }

    /// Whether stamps alone, and which streams they are of, decide what comes first.
    pub(crate) fn is_orderly(&self) -> bool {
        !self.ambiguous
    }

    /// Continues up to `until` after it has ended before.
    pub(crate) fn advance_to(&mut self, until: Timestamp) {
        self.until = until.min(self.range.end);
        self.alone_until = self.alone_until.min(self.until);
    }

    /// When the last thing was that came.
    pub(crate) fn last_ns(&self) -> Timestamp {
        self.last_ns
    }

    /// Merges from `from` on as if everything before had just been returned: also events that come later in
    /// their stream than others after that time, and no loss that began before.
    pub(crate) fn begun_at(recording: &'r Recording, range: TimeRange, from: Timestamp) -> Self {
        Self::begun_after(recording, range, from, Timestamp::MIN)
    }

    /// The same of all of the time; the last message before was at `last`.
    pub(crate) fn continued(recording: &'r Recording, from: Timestamp, last: Timestamp) -> Self {
        Self::begun_after(recording, TimeRange::ALL, from, last)
    }

    /// The same up to the end of another range.
    pub(crate) fn up_to(mut self, end: Timestamp) -> Self {
        (self.range.end, self.until) = (end, end);
        self
    }

    fn begun_after(recording: &'r Recording, range: TimeRange, from: Timestamp, last: Timestamp) -> Self {
        let cursors = recording.streams().iter().map(|stream| recording.cursor(stream, from)).collect();
        let mut merge = Merge::of(recording, range, cursors);
        (merge.started, merge.last_ns) = (true, last);
        for stream in 0..merge.cursors.len() {
            let is_over = |head: &Head| matches!(head, Head::Lost(Lost { range: Some((begin, _)), .. }) if *begin < from);
            let key = loop {
                let key = merge.refill(stream);
                if key.is_none() || !is_over(&merge.heads[stream]) {
                    break key;
                }
            };
            merge.waiting.extend(key);
            merge.cursors[stream].give_from(range.begin);
        }
        merge
    }

    /// The state after it has ended before its range does, or has only begun; `None` if it cannot be
    /// continued elsewhere: a stream has failed, or the order of equal stamps depends on everything before.
    pub(crate) fn handoff(&self) -> Option<Handoff> {
        let place = |(cursor, head): (&StreamCursor, &Head)| match head {
            Head::None | Head::Event => Some(cursor.place(None)),
            Head::Lost(lost) => Some(cursor.place(Some(*lost))),
            Head::Failed(_) => None,
        };
        let places = self.cursors.iter().zip(&self.heads).map(place).collect::<Option<_>>()?;
        (!self.ambiguous && self.current.is_none()).then_some(Handoff(places))
    }

    /// Where each stream has stopped, after the end.
    pub(crate) fn stops(&self) -> Vec<Stop> {
        let waits = |head: &Head| matches!(head, Head::Event | Head::Lost(_));
        self.cursors.iter().zip(&self.heads).map(|(cursor, head)| cursor.stop(waits(head))).collect()
    }

    #[inline]
    fn message(&self, stream: usize) -> Message<'_> {
        match &self.lost {
            None => Message::Event(EventRef::new(self.recording, &self.cursors[stream], stream)),
            Some(lost) => {
                let stream = &self.recording.streams()[stream];
                Message::Lost(lost, &self.recording.traces()[stream.trace_index()], stream)
            }
        }
    }
}
