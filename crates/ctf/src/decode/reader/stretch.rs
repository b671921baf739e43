//! Event records of fixed forms that follow one another, stepped over apart from their reader: what changes
//! from one to the next lies side by side, and the reader is not touched.
//!
//! Several data streams can thus be read in turn, each from a stretch of its own.

use super::{Current, State, StreamReader};
use crate::decode::Visitor;
use crate::decode::compile::{Decoder, Stream};
use crate::decode::event::{Event, LaidOut, Starts};
use crate::decode::header::{Header, Quick};
use crate::decode::layout::{Layout, Stride};
use crate::decode::load::{NEAR, SLACK};
use crate::decode::packet::ticked;
use crate::decode::record::{Pieces, Record};
use crate::model::Scope;
use std::cell::Cell;
use tracewing_units::Cycles;

/// The event records from a reader's current one on; made by [`StreamReader::stretch`].
pub struct Stretch<'r> {
    /// The packet's bytes.
    data: &'r [u8],
    /// Bits from the packet's start to the end of the current event record.
    at: u64,
    /// The stamp of the current event.
    clock: Cycles,
    header: Quick,
    strides: &'r [Stride],
    /// Event records end before this bit.
    end: u64,
    /// Index of the current event record's class.
    event: u32,
    layout: &'r Layout,
    pieces: Pieces,
    /// Where the current event record begins, as its header's start.
    starts: Starts,
    /// What the reader had, for [`Event`].
    decoder: &'r Decoder,
    slots: &'r [Cell<u64>],
    limit: u64,
    /// Index of the data stream class.
    class: usize,
}

/// Where a stretch has come to; [`StreamReader::resume`] continues there.
pub struct Stand {
    at: u64,
    start: u64,
    current: Current,
}

impl<B: AsRef<[u8]>> StreamReader<B> {
    /// What follows the current event record, and that itself; `None` if it needs a walk, or there is none,
    /// or its header is of no common form.
    pub fn stretch(&self) -> Option<Stretch<'_>> {
        let class = self.roles.packet.data_stream_class;
        let stream: &Stream = &self.decoder.streams[class];
        if self.state != State::InPacket {
            return None;
        }
        let LaidOut { layout, origin, .. } = self.laid_out(class)?;
        // Its header is of the common form then.
        let start = self.starts[Scope::EventHeader as usize];
        let data = self.window.bytes();
        let readable = (data.len().checked_sub(SLACK + 1)? as u64 + 1) * 8;
        (origin == start).then_some(Stretch {
            data,
            at: self.at,
            clock: self.current.clock,
            header: stream.header.as_ref().and_then(Header::quick)?,
            strides: &stream.strides,
            end: self.limit.min(readable - 1),
            event: self.current.event as u32,
            layout,
            pieces: self.current.pieces,
            starts: self.starts,
            decoder: &self.decoder,
            slots: &self.slots,
            limit: self.limit,
            class,
        })
    }

    /// Continues where a stretch of this reader's current packet has come to.
    pub fn resume(&mut self, stand: Stand) {
        (self.at, self.current) = (stand.at, stand.current);
        self.starts[Scope::EventHeader as usize] = stand.start;
        self.roles.clock = self.current.clock;
    }
}

impl<'r> Stretch<'r> {
    /// Advances to the next event record, if that is of a fixed form and its header of the common one, and
    /// returns the clock there, which means nothing where the data stream has none. `None`, and no change, at
    /// the end of the packet or of the bytes that are there, and before any other event record; the current
    /// event record cannot be accessed again then.
    #[inline(always)]
    pub fn advance(&mut self) -> Option<Cycles> {
        let start = self.header.aligned(self.at);
        let first = (start / 8) as usize;
        let bytes = self.data.get(first..)?;
        let (id, stamp) = self.header.read(bytes.first_chunk::<NEAR>()?)?;
        let stride = self.strides.get(id as usize)?;
        let layout = stride.layout.as_deref()?;
        let bits = match stride.bits {
            u32::MAX => layout.measure(bytes, first, &mut self.pieces)?,
            bits => bits.into(),
        };
        let end = start + bits;
        if end > self.end || end <= self.at {
            return None;
        }
        self.clock = ticked(self.clock, self.header.stamp_mask, stamp);
        (self.at, self.event, self.layout) = (end, stride.event, layout);
        self.starts[Scope::EventHeader as usize] = start;
        Some(self.clock)
    }

    /// The current event record.
    #[inline(always)]
    pub fn event(&self) -> Event<'_> {
        Event {
            decoder: self.decoder,
            stream: self.class,
            event: self.class_index(),
            laid_out: Some(LaidOut { layout: self.layout, origin: self.start(), record: self.record() }),
            clock: self.clock,
            end: self.at,
            starts: &self.starts,
            packet: (self.data, self.limit),
            slots: self.slots,
        }
    }

    /// Shows every field, as [`Event::visit_all`].
    #[inline(always)]
    pub fn visit_all(&self, visitor: &mut impl Visitor) {
        self.layout.show_all(self.record(), visitor);
    }

    /// Index of the current event record's class, as [`Event::class_index`].
    #[inline(always)]
    pub fn class_index(&self) -> usize {
        self.event as usize
    }

    /// The current event record's bytes, as [`Event::record`].
    #[inline(always)]
    pub fn record(&self) -> Record<'_> {
        let bytes = self.data.get((self.start() / 8) as usize..).unwrap_or_default();
        Record { bytes, pieces: &self.pieces }
    }

    /// The clock at the current event record, as [`StreamReader::clock`].
    #[inline(always)]
    pub fn clock(&self) -> Cycles {
        self.clock
    }

    /// The bit at which the current event record begins.
    #[inline(always)]
    fn start(&self) -> u64 {
        self.starts[Scope::EventHeader as usize]
    }

    /// Where it has come to.
    pub fn stand(&self) -> Stand {
        let current = Current {
            event: self.class_index(),
            clock: self.clock,
            is_unwalked: true,
            origin: self.start(),
            pieces: self.pieces,
        };
        Stand { at: self.at, start: self.start(), current }
    }
}

impl std::fmt::Debug for Stretch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stretch").field("at", &self.at).finish_non_exhaustive()
    }
}
