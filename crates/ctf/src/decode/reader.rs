//! Walks a data stream: packet after packet, event record after event record.

mod records;
mod stretch;

pub use stretch::{Stand, Stretch};

use std::cell::Cell;
use std::sync::Arc;

use super::Visitor;
use super::compile::Decoder;
use super::event::{Event, LaidOut, Starts};
use super::packet::{Packet, RoleValues};
use super::record::{Pieces, Record};
use super::sink::Shown;
use super::walk::Walk;
use super::window::Window;
use crate::Error;
use crate::model::{DataStreamClass, Scope};
use tracewing_units::Cycles;

/// What [`StreamReader::advance`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A packet began: [`StreamReader::packet`].
    Packet,
    /// An event record: [`StreamReader::event`].
    Event,
    /// The packet has no more event records.
    PacketEnd,
    /// The data stream has no more packets.
    End,
}

/// Reads one data stream. `B` holds all its bytes: a slice, a `Vec<u8>`, a mapped file.
pub struct StreamReader<B> {
    pub(super) decoder: Arc<Decoder>,
    pub(super) window: Window<B>,
    pub(super) slots: Box<[Cell<u64>]>,
    pub(super) roles: RoleValues,
    pub(super) state: State,
    pub(super) packets: Packets,
    /// The current packet's content that is there, in bits.
    pub(super) limit: u64,
    /// Bits from the packet's start to the end of the current event record.
    pub(super) at: u64,
    pub(super) starts: Starts,
    current: Current,
}

/// What is known from packet to packet.
#[derive(Default)]
pub(super) struct Packets {
    /// Where the next one begins, bytes, and its index.
    pub(super) next: (u64, u64),
    /// Data stream class of those so far.
    pub(super) stream: Option<usize>,
    /// The one before the current one.
    pub(super) before: Option<Packet>,
}

/// The current event record.
#[derive(Default, Clone)]
struct Current {
    /// Index of its class.
    event: usize,
    /// The stamp of the current event.
    clock: Cycles,
    /// Whether the layout of its class applies, and there are enough data left to use it.
    is_unwalked: bool,
    /// If so, the bit from which on the layout counts, and where its pieces begin.
    origin: u64,
    pieces: Pieces,
}

/// A place between two event records of a packet, and the clock there: all that is needed to begin in the
/// middle of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Bits from the packet's start to the end of the previous event record.
    pub bits: u64,
    /// The clock; stamps of fewer than 64 bits count from it.
    pub clock: Cycles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    BetweenPackets,
    InPacket,
    Done,
}

impl<B: AsRef<[u8]>> StreamReader<B> {
    /// A reader before the first packet of `data`.
    pub fn new(decoder: Arc<Decoder>, data: B) -> Self {
        StreamReader {
            window: Window::new(data),
            slots: vec![Cell::new(0); decoder.slots].into_boxed_slice(),
            decoder,
            roles: RoleValues::default(),
            state: State::BetweenPackets,
            packets: Packets::default(),
            limit: 0,
            at: 0,
            starts: [0; 6],
            current: Current::default(),
        }
    }

    /// Advances to the next packet, event record or end.
    ///
    /// # Errors
    ///
    /// [`Error::Packet`] if the bytes do not match the classes. Everything before has been delivered; the
    /// next call returns [`Step::End`].
    #[inline]
    pub fn advance(&mut self) -> Result<Step, Error> {
        let step = match self.state {
            State::InPacket => self.event_record(),
            State::BetweenPackets => self.begin_packet(),
            State::Done => Ok(Step::End),
        };
        if step.is_err() {
            self.state = State::Done;
        }
        step
    }

    /// Like [`StreamReader::advance`] if that is cheap: the next item is an event record of fixed layout in
    /// the current packet. Otherwise returns false; the reader's position is unchanged, but the last event
    /// record cannot be accessed again.
    #[inline]
    pub fn advance_fast(&mut self) -> bool {
        self.state == State::InPacket && self.unwalked_event_record()
    }

    /// Makes the packet at byte `offset` of the data stream the next one; it gets this index. Losses before
    /// it are not known.
    pub fn seek(&mut self, offset: u64, index: u64) {
        self.state = State::BetweenPackets;
        self.packets.next = (offset, index);
        self.roles = RoleValues::default();
        self.packets.before = None;
        self.window.short.set(false);
    }

    /// Replaces the bytes: the next packet, of this index, is `data`'s first and lies at byte `offset`
    /// of the data stream. Returns the previous bytes. Clock and losses continue from the previous packet.
    ///
    /// This allows reading a data stream one packet at a time. `data` may hold less than the packet: header
    /// and context suffice for [`Step::Packet`], whose [`Packet::packet_bits`] is the size to provide under
    /// the same index.
    pub fn replace(&mut self, data: B, offset: u64, index: u64) -> B {
        let rest = data.as_ref().len() as u64;
        self.replace_part(data, offset, index, rest)
    }

    /// Like [`StreamReader::replace`] if `data` are the first of the `rest` bytes that remain in the data
    /// stream.
    ///
    /// This allows reading a packet in parts, without holding all of it: if [`StreamReader::wants_more`] is
    /// true after an error, [`StreamReader::extend`] continues.
    pub fn replace_part(&mut self, data: B, offset: u64, index: u64, rest: u64) -> B {
        self.state = State::BetweenPackets;
        self.packets.next = (offset, index);
        self.window.base = offset;
        self.window.rest = rest.max(data.as_ref().len() as u64);
        self.limit = 0;
        self.window.short.set(false);
        std::mem::replace(&mut self.window.data, data)
    }

    /// Whether the last step failed because the data end before the packet does: more of them may help.
    pub fn wants_more(&self) -> bool {
        self.window.short.get()
    }

    /// Calls `add` to append more bytes to the data, and returns to the event record that they were missing
    /// for.
    ///
    /// Bytes before [`StreamReader::position`] are no longer accessed, except those of packet header and
    /// context; those after it must stay where they are.
    pub fn extend<T>(&mut self, add: impl FnOnce(&mut B) -> T) -> T {
        let result = add(&mut self.window.data);
        if self.window.short.replace(false) {
            self.state = State::InPacket;
        }
        if self.state == State::InPacket {
            self.limit = self.roles.packet.content_bits.min(self.window.bytes().len() as u64 * 8);
        }
        result
    }

    /// Where the next event record of the packet begins.
    #[inline]
    pub fn position(&self) -> Position {
        Position { bits: self.at, clock: self.roles.clock }
    }

    /// Continues at an earlier position of the same packet. `data` need not contain the bytes between header
    /// and position. Returns false, without a change, if the position is impossible, or there is no current
    /// packet.
    pub fn go_to(&mut self, position: Position) -> bool {
        let packet = &self.roles.packet;
        let there = self.state == State::InPacket && (self.at..=packet.content_bits).contains(&position.bits);
        if there {
            (self.at, self.roles.clock) = (position.bits, position.clock);
        }
        there
    }

    /// The current packet; the last one after its end.
    pub fn packet(&self) -> &Packet {
        &self.roles.packet
    }

    /// The data stream's class, once a packet has been read.
    pub fn data_stream_class(&self) -> Option<&DataStreamClass> {
        Some(&self.decoder.trace_class().data_stream_classes[self.packets.stream?])
    }

    /// The decoder it was made with.
    pub fn decoder(&self) -> &Arc<Decoder> {
        &self.decoder
    }

    /// The current event record.
    ///
    /// # Panics
    ///
    /// If the last step was not [`Step::Event`] and no event record has been read yet.
    #[inline(always)]
    pub fn event(&self) -> Event<'_> {
        let stream = self.packets.stream.expect("a reader has an event record after Step::Event");
        Event {
            decoder: &self.decoder,
            stream,
            event: self.current.event,
            laid_out: self.laid_out(stream),
            clock: self.current.clock,
            end: self.at,
            starts: &self.starts,
            packet: (self.window.bytes(), self.limit),
            slots: &self.slots,
        }
    }

    /// Index of the current event record's class, as [`Event::class_index`].
    #[inline]
    pub fn class_index(&self) -> usize {
        self.current.event
    }

    /// The current event record's bytes, as [`Event::record`].
    #[inline]
    pub fn record(&self) -> Option<Record<'_>> {
        if !self.current.is_unwalked {
            return None;
        }
        let bytes = self.window.bytes().get((self.current.origin / 8) as usize..)?;
        Some(Record { bytes, pieces: &self.current.pieces })
    }

    /// The current event record's stamp, as [`Event::clock_value`]; `None` also where no packet has been read
    /// yet.
    #[inline]
    pub fn clock_value(&self) -> Option<Cycles> {
        self.decoder.streams[self.packets.stream?].clock.map(|_| self.current.clock)
    }

    /// The clock at the current event record, which means nothing where the data stream has none: for readers
    /// that know whether it has.
    #[inline]
    pub fn clock(&self) -> Cycles {
        self.current.clock
    }

    /// Where everything lies in the current event record, if that is known.
    #[inline(always)]
    fn laid_out(&self, stream: usize) -> Option<LaidOut<'_>> {
        let programs = self.decoder.streams[stream]
            .events
            .get(self.current.event)
            .filter(|_| self.current.is_unwalked)?;
        Some(LaidOut {
            layout: programs.layout.as_deref()?,
            origin: self.current.origin,
            record: self.record()?,
        })
    }

    /// Shows the fields of the current packet's header or context; nothing for other scopes.
    pub fn visit_packet(&self, scope: Scope, visitor: &mut impl Visitor) {
        let Some(stream) = self.packets.stream else { return };
        let program = match scope {
            Scope::PacketHeader => self.decoder.packet_header.as_ref(),
            Scope::PacketContext => self.decoder.streams[stream].packet_context.as_ref(),
            _ => None,
        };
        if let Some(program) = program {
            let mut walk = Walk::new(&self.decoder, self.window.bytes(), self.limit, &self.slots);
            // The packet's beginning has been walked; it cannot fail now.
            let _ = walk.scope(program, self.starts[scope as usize], &mut Shown(visitor));
        }
    }
}

impl<B> std::fmt::Debug for StreamReader<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamReader").field("packet", &self.roles.packet).finish_non_exhaustive()
    }
}
