//! Merges the events of all streams into one order by time, in one pass.
//!
//! Memory is bounded by the number of streams: a packet and a heap entry each. Equal stamps go by
//! [`crate::merge::order`].

use crate::Error;
use crate::merge::order;
use crate::open::recording::{Recording, Stream, Trace};
use crate::stream::cursor::{Item, Place, Stop, StreamCursor};
use crate::time::range::TimeRange;
use crate::time::stamp::Stamp;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;
use tracewing_ctf::decode::{Event, Record, Visitor};
use tracewing_units::Timestamp;

pub use crate::stream::cursor::{Lost, LostKind};

/// What comes next in time.
#[derive(Debug)]
pub enum Message<'m> {
    /// An event.
    Event(EventRef<'m>),
    /// Events or packets that the tracer could not record.
    Lost(&'m Lost, &'m Trace, &'m Stream),
}

/// An event with its stream; valid until the merge advances.
#[derive(Debug)]
pub struct EventRef<'m> {
    recording: &'m Recording,
    cursor: &'m StreamCursor,
    stream: usize,
}

impl<'m> EventRef<'m> {
    /// The event at which a cursor of a recording's stream stands.
    pub(crate) fn new(recording: &'m Recording, cursor: &'m StreamCursor, stream: usize) -> Self {
        EventRef { recording, cursor, stream }
    }

    /// The trace that the event is in.
    pub fn trace(&self) -> &'m Trace {
        &self.recording.traces()[self.trace_index()]
    }

    /// The trace's place in [`Recording::traces`].
    pub fn trace_index(&self) -> usize {
        self.stream().trace_index()
    }

    /// The data stream that the event is in.
    pub fn stream(&self) -> &'m Stream {
        &self.recording.streams()[self.stream]
    }

    /// The stream's place in [`Recording::streams`].
    pub fn stream_index(&self) -> usize {
        self.stream
    }

    /// When it happened; `None` where its stream has no clock.
    pub fn stamp(&self) -> Option<Stamp> {
        self.cursor.stamp()
    }

    /// The decoded event, without its place in the recording.
    #[inline(always)]
    pub fn decoded(&self) -> Event<'m> {
        self.cursor.event()
    }

    /// Its class and its bytes, as [`Event::class_index`] and [`Event::record`] give them.
    #[inline]
    pub(crate) fn record(&self) -> (usize, Option<Record<'m>>) {
        self.cursor.record()
    }

    /// The file that it stands in, and the offset of its packet there, in bytes.
    pub(crate) fn source(&self) -> Option<(&'m Path, u64)> {
        let (reader, path) = self.cursor.reader()?;
        Some((path, reader.packet().offset))
    }

    /// A number that differs from packet to packet of the stream.
    pub fn packet_serial(&self) -> u64 {
        self.cursor.packet_serial()
    }

    /// The CPU whose buffer the packet comes from, if the packet context contains it.
    pub fn cpu(&self) -> Option<u64> {
        self.cursor.cpu()
    }

    /// Whether the packet has a context.
    pub fn has_packet_context(&self) -> bool {
        self.decoded().data_stream_class().packet_context.is_some()
    }

    /// Shows the members of the packet's context.
    pub fn visit_packet_context(&self, visitor: &mut impl Visitor) {
        self.cursor.visit_packet_context(visitor);
    }
}

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
    ranks: Vec<u32>,
    /// Whether some streams share a rank.
    ambiguous: bool,
    /// Streams that have not ended, in the order in which babeltrace2 asks them; only where ranks are shared.
    active: Vec<usize>,
    heap: BinaryHeap<Reverse<Key>>,
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

#[derive(Debug)]
enum Head {
    None,
    /// The event at which the stream's cursor stands.
    Event,
    Lost(Lost),
    Failed(Box<Error>),
}

/// When something comes, and what decides among equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    ns: Timestamp,
    rank: u32,
    stream: u32,
}

impl Key {
    #[inline]
    fn new(ns: Timestamp, rank: u32, stream: usize) -> Self {
        Key { ns, rank, stream: stream as u32 }
    }

    /// All of it as one number, so that a comparison is one, too.
    #[inline]
    fn order(&self) -> i128 {
        i128::from(self.ns.as_ns()) << 64 | i128::from(self.rank) << 32 | i128::from(self.stream)
    }

    #[inline]
    fn stream(&self) -> usize {
        self.stream as usize
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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
            ambiguous: highest < count,
            ranks,
            active: (0..count).collect(),
            heap: BinaryHeap::with_capacity(count),
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
        let cursors = recording.streams().iter().map(|stream| recording.cursor(stream, from)).collect();
        let mut merge = Merge::of(recording, range, cursors);
        merge.started = true;
        for stream in 0..merge.cursors.len() {
            let is_over = |head: &Head| matches!(head, Head::Lost(Lost { range: Some((begin, _)), .. }) if *begin < from);
            let key = loop {
                let key = merge.refill(stream);
                if key.is_none() || !is_over(&merge.heads[stream]) {
                    break key;
                }
            };
            merge.heap.extend(key.map(Reverse));
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
            None => {
                Message::Event(EventRef { recording: self.recording, cursor: &self.cursors[stream], stream })
            }
            Some(lost) => {
                let stream = &self.recording.streams()[stream];
                Message::Lost(lost, &self.recording.traces()[stream.trace_index()], stream)
            }
        }
    }

    /// Advances to the stream that comes first if the current one has an event at `ns` next. Returns false,
    /// and changes nothing, if the first item is not an event in the range, or equal stamps must be compared.
    #[inline]
    fn change_places(&mut self, ns: Timestamp) -> bool {
        let (Some(stream), Some(mut next)) = (self.current, self.heap.peek_mut()) else { return false };
        let (key, Reverse(other)) = (Key::new(ns, self.ranks[stream], stream), *next);
        let first = key.min(other);
        let are_events = [stream, other.stream()].iter().all(|of| matches!(self.heads[*of], Head::Event));
        if self.ambiguous || !are_events || first.ns > self.until {
            return false;
        }
        if first == other {
            next.0 = key;
        }
        drop(next);
        self.current = Some(first.stream());
        self.lost = None;
        self.last_ns = self.last_ns.max(first.ns);
        self.stand_alone();
        true
    }

    /// Computes up to when the current stream comes first.
    #[inline]
    fn stand_alone(&mut self) {
        let next = self.heap.peek().map_or(Timestamp::MAX, |Reverse(key)| key.ns);
        self.alone_until = if self.ambiguous { Timestamp::MIN } else { next.min(self.until) };
    }

    /// Advances to the stream that comes first; to none at the end. `event` is the time of the current
    /// stream's next event, if that is known.
    #[inline(never)]
    fn choose(&mut self, mut event: Option<Timestamp>) -> Result<(), Error> {
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

    fn next_stream(&mut self, event: Option<Timestamp>) -> Result<Option<usize>, Error> {
        if !self.started {
            self.started = true;
            for stream in 0..self.cursors.len() {
                if let Some(key) = self.refill(stream) {
                    self.heap.push(Reverse(key));
                }
            }
        } else if let Some(stream) = self.current.take()
            && let Some(key) = self.next_key(stream, event)
        {
            if self.ambiguous {
                self.heap.push(Reverse(key));
            } else {
                // The stream comes first again, or changes places with the next one.
                let first = match self.heap.peek_mut() {
                    Some(mut next) if next.0 < key => std::mem::replace(&mut next.0, key),
                    _ => key,
                };
                return self.give(first);
            }
        }
        let Some(Reverse(key)) = self.heap.pop() else { return Ok(None) };
        let key = if self.ambiguous { self.settle(key) } else { key };
        self.give(key)
    }

    /// Hands out the head of `key`'s stream, or its error, or ends where the range does.
    fn give(&mut self, key: Key) -> Result<Option<usize>, Error> {
        if key.ns > self.until {
            self.heap.push(Reverse(key));
            return Ok(None);
        }
        if let Head::Failed(_) = self.heads[key.stream()] {
            let failed = std::mem::replace(&mut self.heads[key.stream()], Head::None);
            self.heap.clear();
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
            self.heads[stream] = Head::Event;
        }
        Some(Key::new(ns, self.ranks[stream], stream))
    }

    /// Fetches the next item of `stream` and returns its position in the order; `None` at the stream's end.
    fn refill(&mut self, stream: usize) -> Option<Key> {
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
                self.heads[stream] = Head::None;
                return None;
            }
            // Everything before the damage has been given: what fails comes at once.
            Err(error) => (Head::Failed(Box::new(error)), Timestamp::MIN),
        };
        self.heads[stream] = head;
        Some(Key::new(ns, self.ranks[stream], stream))
    }

    /// Among the streams whose heads have the stamp and the rank of `first`, chooses the one that goes first.
    #[cold]
    fn settle(&mut self, first: Key) -> Key {
        let mut tied = vec![first];
        while let Some(Reverse(key)) =
            self.heap.peek().copied().filter(|Reverse(key)| (key.ns, key.rank) == (first.ns, first.rank))
        {
            self.heap.pop();
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
        self.heap.extend(tied.into_iter().map(Reverse));
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
