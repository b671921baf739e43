//! The messages of all streams in one order: what begins and ends besides events and losses.

use crate::Error;
use crate::merge::order;
use crate::open::recording::Recording;
use crate::stream::cursor::{Lost, StreamCursor};
use crate::time::clock::Clock;
use crate::time::stamp::Stamp;
use std::collections::VecDeque;
use tracewing_ctf::decode::{Event, Visitor};
use tracewing_ctf::model::DataStreamClass;
use tracewing_units::{Cycles, Timestamp};

/// Something that a stream says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Message {
    StreamBegin,
    Lost(Lost),
    PacketBegin(Option<Stamp>),
    Event(Option<Stamp>),
    PacketEnd(Option<Stamp>),
    StreamEnd,
}

/// A stream and its next message.
pub(super) struct Source<'r> {
    cursor: StreamCursor,
    class: Option<&'r DataStreamClass>,
    clock: Option<Clock>,
    /// The clock in the packet at hand: its beginning, then its last event.
    now: Option<Cycles>,
    state: State,
    waiting: VecDeque<Message>,
    /// The message after the beginning of a packet, following the one that is waiting.
    first: Option<Result<Message, Error>>,
    rank: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Begin,
    BetweenPackets,
    InPacket,
    End,
}

impl Source<'_> {
    pub(super) fn class(&self) -> Option<&DataStreamClass> {
        self.class
    }

    pub(super) fn event(&self) -> Event<'_> {
        self.cursor.event()
    }

    pub(super) fn visit_packet_context(&self, visitor: &mut impl Visitor) {
        self.cursor.visit_packet_context(visitor);
    }

    /// Between which stamps something was lost.
    pub(super) fn loss_stamps(&self, lost: &Lost) -> Option<(Stamp, Stamp)> {
        let clock = self.clock?;
        let stamp = |time| Some(Stamp { cycles: clock.cycles(time)?, time });
        lost.range.and_then(|(begin, end)| Some((stamp(begin)?, stamp(end)?)))
    }

    fn stamp(&self, cycles: Option<Cycles>) -> Option<Stamp> {
        let cycles = cycles?;
        Some(Stamp { cycles, time: self.clock?.time(cycles)? })
    }

    /// The next event of the packet at hand, or its end.
    fn step(&mut self) -> Result<Message, Error> {
        match self.cursor.step()? {
            true => {
                let stamp = self.cursor.stamp();
                self.now = stamp.map(|stamp| stamp.cycles);
                Ok(Message::Event(stamp))
            }
            false => {
                self.state = State::BetweenPackets;
                let end = self.cursor.reader().and_then(|(reader, _)| reader.packet().end);
                // A buffer that a crash left open has no end stamp, and LTTng before 2.11 may write an event
                // after it.
                let end = end.map(|end| self.now.map_or(end, |now| now.max(end)));
                Ok(Message::PacketEnd(self.stamp(end)))
            }
        }
    }

    /// The next message; `None` after the end.
    fn next(&mut self) -> Result<Option<Message>, Error> {
        if let Some(message) = self.waiting.pop_front() {
            return Ok(Some(message));
        }
        if let Some(first) = self.first.take() {
            return first.map(Some);
        }
        match self.state {
            State::Begin => {
                self.state = State::BetweenPackets;
                Ok(Some(Message::StreamBegin))
            }
            State::BetweenPackets => {
                if !self.cursor.begin_packet()? {
                    self.state = State::End;
                    return Ok(Some(Message::StreamEnd));
                }
                self.state = State::InPacket;
                self.waiting.extend(self.cursor.losses().map(|lost| Message::Lost(*lost)));
                let mut begin = self.cursor.reader().and_then(|(reader, _)| reader.packet().begin);
                self.now = begin;
                let first = self.step();
                if let Ok(Message::Event(Some(stamp))) = &first {
                    // barectf before 2.3.1 may write an event before its packet's beginning stamp.
                    begin = begin.map(|begin| begin.min(stamp.cycles));
                }
                self.waiting.push_back(Message::PacketBegin(self.stamp(begin)));
                self.first = Some(first);
                Ok(self.waiting.pop_front())
            }
            State::InPacket => self.step().map(Some),
            State::End => Ok(None),
        }
    }
}

pub(super) struct Messages<'r> {
    sources: Vec<Source<'r>>,
    /// What each source has next, and when.
    heads: Vec<Option<Result<Message, Error>>>,
    current: Option<usize>,
    last_ns: Timestamp,
}

impl<'r> Messages<'r> {
    pub(super) fn new(recording: &'r Recording) -> Result<Self, Error> {
        let ranks = order::ranks(recording.traces(), recording.streams());
        let mut sources = Vec::new();
        for (stream, rank) in recording.streams().iter().zip(ranks) {
            let trace = recording.traces()[stream.trace_index()].class();
            let class = trace.data_stream_class(stream.class_id());
            let clock = class.and_then(|class| trace.clock_class(class.default_clock.as_ref()?));
            sources.push(Source {
                cursor: recording.cursor(stream, Timestamp::MIN),
                class,
                clock: clock.and_then(Clock::new),
                now: None,
                state: State::Begin,
                waiting: VecDeque::new(),
                first: None,
                rank,
            });
        }
        let heads = sources.iter_mut().map(|source| source.next().transpose()).collect();
        Ok(Messages { sources, heads, current: None, last_ns: Timestamp::MIN })
    }

    /// Advances to the next message; `None` after the last one.
    pub(super) fn advance(&mut self) -> Result<Option<(usize, Message, &Source<'r>)>, Error> {
        if let Some(current) = self.current.take() {
            self.heads[current] = self.sources[current].next().transpose();
        }
        // What has no time comes at once, and so does an error.
        let time = |head: &Result<Message, Error>| match head {
            Ok(Message::PacketBegin(stamp) | Message::Event(stamp) | Message::PacketEnd(stamp)) => {
                stamp.map_or(self.last_ns, |stamp| stamp.time)
            }
            Ok(Message::Lost(lost)) => lost.range.map_or(self.last_ns, |(begin, _)| begin),
            Ok(Message::StreamBegin | Message::StreamEnd) => self.last_ns,
            Err(_) => Timestamp::MIN,
        };
        let heads = self.heads.iter().enumerate();
        let heads = heads
            .filter_map(|(stream, head)| Some((time(head.as_ref()?), self.sources[stream].rank, stream)));
        let Some((ns, _, stream)) = heads.min() else { return Ok(None) };
        self.last_ns = self.last_ns.max(ns);
        match self.heads[stream].take() {
            Some(Ok(message)) => {
                self.current = Some(stream);
                Ok(Some((stream, message, &self.sources[stream])))
            }
            Some(Err(error)) => Err(error),
            None => Ok(None),
        }
    }
}
