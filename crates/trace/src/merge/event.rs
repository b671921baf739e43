//! What a merge gives: events, each with its stream, and losses.

use crate::open::recording::{Recording, Stream, Trace};
use crate::stream::cursor::{Lane, Lost, StreamCursor};
use crate::time::stamp::Stamp;
use std::path::Path;
use tracewing_ctf::decode::{Event, Record, Visitor};

/// What comes next in time.
#[derive(Debug)]
pub enum Message<'m> {
    /// The next event in time order.
    Event(EventRef<'m>),
    /// Events or packets that the tracer could not record.
    Lost(&'m Lost, &'m Trace, &'m Stream),
}

/// An event with its stream; valid until the merge advances.
#[derive(Debug)]
pub struct EventRef<'m> {
    recording: &'m Recording,
    cursor: &'m StreamCursor,
    /// Where the event is, if the cursor has not come there itself.
    lane: Option<&'m Lane<'m>>,
    stream: usize,
}

impl<'m> EventRef<'m> {
    /// The event at which a cursor of a recording's stream stands.
    #[inline(always)]
    pub(crate) fn new(recording: &'m Recording, cursor: &'m StreamCursor, stream: usize) -> Self {
        EventRef { recording, cursor, lane: None, stream }
    }

    /// The event that a lane of such a cursor has come to.
    #[inline(always)]
    pub(crate) fn in_lane(
        recording: &'m Recording,
        cursor: &'m StreamCursor,
        lane: &'m Lane<'m>,
        stream: usize,
    ) -> Self {
        EventRef { recording, cursor, lane: Some(lane), stream }
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
    #[inline]
    pub fn stamp(&self) -> Option<Stamp> {
        match self.lane {
            Some(lane) => Some(lane.stamp()),
            None => self.cursor.stamp(),
        }
    }

    /// The decoded event, without its place in the recording.
    #[inline(always)]
    pub fn decoded(&self) -> Event<'m> {
        match self.lane {
            Some(lane) => lane.event(),
            None => self.cursor.event(),
        }
    }

    /// Shows every field of the common context, the specific context and the payload, in this order.
    #[inline(always)]
    pub fn visit_all(&self, visitor: &mut impl Visitor) {
        match self.lane {
            Some(lane) => lane.visit_all(visitor),
            None => self.cursor.event().visit_all(visitor),
        }
    }

    /// Its class and its bytes, as [`Event::class_index`] and [`Event::record`] give them.
    #[inline]
    pub(crate) fn record(&self) -> (usize, Option<Record<'m>>) {
        match self.lane {
            Some(lane) => lane.record(),
            None => self.cursor.record(),
        }
    }

    /// The file that it stands in, and the offset of its packet there, in bytes.
    pub(crate) fn source(&self) -> Option<(&'m Path, u64)> {
        let (reader, path) = self.cursor.reader()?;
        Some((path, reader.packet().offset))
    }

    /// A number that differs from packet to packet of the stream.
    pub(crate) fn packet_serial(&self) -> u64 {
        self.cursor.packet_serial()
    }

    /// The CPU whose buffer the packet comes from, if the packet context contains it.
    pub fn cpu(&self) -> Option<u64> {
        self.cursor.cpu()
    }

    /// Whether the packet has a context.
    pub(crate) fn has_packet_context(&self) -> bool {
        self.decoded().data_stream_class().packet_context.is_some()
    }

    /// Shows the members of the packet's context.
    pub(crate) fn visit_packet_context(&self, visitor: &mut impl Visitor) {
        self.cursor.visit_packet_context(visitor);
    }
}
