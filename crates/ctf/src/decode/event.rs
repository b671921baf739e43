//! The current event record, as a view into the packet.

use std::cell::Cell;

use super::compile::{Decoder, Stream};
use super::layout::Layout;
use super::member::{MemberHandle, index_of};
use super::program::Program;
use super::record::{Record, RecordField};
use super::sink::Shown;
use super::walk::Walk;
use super::{Value, Visitor};
use crate::model::{ClockClass, DataStreamClass, EventRecordClass, Scope};
use tracewing_units::Cycles;

/// Where the scopes of the current packet and event record begin, in bits from the packet's start, by
/// [`Scope`].
pub(super) type Starts = [u64; 6];

/// The current event record of a [`StreamReader`](super::StreamReader).
#[derive(Clone, Copy)]
pub struct Event<'a> {
    pub(super) decoder: &'a Decoder,
    /// Index of the data stream class.
    pub(super) stream: usize,
    /// Index of the event record class.
    pub(super) event: usize,
    /// Where everything lies, if that is known.
    pub(super) laid_out: Option<LaidOut<'a>>,
    pub(super) clock: Cycles,
    /// The bit after it.
    pub(super) end: u64,
    pub(super) starts: &'a Starts,
    /// The packet's bytes and where its content ends, in bits.
    pub(super) packet: (&'a [u8], u64),
    pub(super) slots: &'a [Cell<u64>],
}

/// An event record whose fields need no walk.
#[derive(Clone, Copy)]
pub(super) struct LaidOut<'a> {
    pub(super) layout: &'a Layout,
    /// The bit of the packet from which on the layout counts.
    pub(super) origin: u64,
    pub(super) record: Record<'a>,
}

impl<'a> Event<'a> {
    /// The event's class.
    pub fn class(&self) -> &'a EventRecordClass {
        &self.data_stream_class().event_record_classes[self.event]
    }

    /// Index of its class in its data stream class.
    pub fn class_index(&self) -> usize {
        self.event
    }

    /// The class of its data stream.
    pub fn data_stream_class(&self) -> &'a DataStreamClass {
        &self.decoder.trace_class().data_stream_classes[self.stream]
    }

    /// The clock that its stamp is of.
    pub fn clock_class(&self) -> Option<&'a ClockClass> {
        self.compiled().clock.map(|clock| &self.decoder.trace_class().clock_classes[clock])
    }

    /// Its stamp, of [`Event::clock_class`], all 64 bits; `None` where the data stream has no clock.
    pub fn clock_value(&self) -> Option<Cycles> {
        self.compiled().clock.map(|_| self.clock)
    }

    /// Its size in bits, header and contexts included.
    pub fn bits(&self) -> u64 {
        self.end.saturating_sub(self.starts[Scope::EventHeader as usize])
    }

    /// Whether its class has this scope.
    pub fn has_scope(&self, scope: Scope) -> bool {
        self.program(scope).is_some()
    }

    /// Shows every field of a scope; nothing if the class has none.
    #[inline]
    pub fn visit(&self, scope: Scope, visitor: &mut impl Visitor) {
        if let (Some(LaidOut { layout, record, .. }), Some(scope)) = (self.laid_out, scope.after_header()) {
            return layout.show(scope, record, visitor);
        }
        self.walk_through(scope, visitor);
    }

    /// Shows every field of the common context, the specific context and the payload, in this order.
    #[inline(always)]
    pub fn visit_all(&self, visitor: &mut impl Visitor) {
        match self.laid_out {
            Some(LaidOut { layout, record, .. }) => layout.show_all(record, visitor),
            // By value: if no reference to an event is taken, it need not be in memory.
            None => (*self).walk_through_all(visitor),
        }
    }

    /// Where the values lie that [`Event::visit_all`] shows, in the same order, a sequence of integers as
    /// one, if the fields of the class's event records need no walk. They are read from [`Event::record`], of
    /// other event records of the class too.
    pub fn record_fields(&self) -> Option<Vec<RecordField>> {
        Some(self.laid_out?.layout.values())
    }

    /// The event record's bytes, if the fields of its class's event records need no walk. Also `None` for the
    /// rare event record of such a class whose header is not of a common form, and near the end of the data.
    #[inline(always)]
    pub fn record(&self) -> Option<Record<'a>> {
        self.laid_out.map(|laid_out| laid_out.record)
    }

    #[inline(never)]
    fn walk_through_all(self, visitor: &mut impl Visitor) {
        for scope in [Scope::CommonContext, Scope::SpecificContext, Scope::Payload] {
            self.walk_through(scope, visitor);
        }
    }

    fn walk_through(&self, scope: Scope, visitor: &mut impl Visitor) {
        if let Some(program) = self.program(scope) {
            // The reader has walked it; it cannot fail now.
            let _ = self.walk().scope(program, self.start(scope), &mut Shown(visitor));
        }
    }

    /// The value of the member called `name` of a scope's structure; `None` if there is none or it is a
    /// compound.
    ///
    /// To read the same member of many event records, look it up once: [`Decoder::member`].
    pub fn field(&self, scope: Scope, name: &str) -> Option<Value<'a>> {
        let program = self.program(scope)?;
        self.walk().member(program, self.start(scope), index_of(program, name)?)
    }

    /// The value of a member that was looked up before; `None` if it is a compound, or of another class than
    /// this record.
    #[inline]
    pub fn member(&self, member: MemberHandle) -> Option<Value<'a>> {
        let own = member.scope >= Scope::SpecificContext;
        if member.stream != self.stream || (own && member.event != self.event) {
            return None;
        }
        if let (Some(LaidOut { layout, record, .. }), Some(place), Some(scope)) =
            (self.laid_out, member.field, member.scope.after_header())
        {
            return layout.field(scope, place)?.value_in(record);
        }
        let program = self.program(member.scope)?;
        let start = self.start(member.scope);
        match member.distance {
            Some(distance) => self.walk().member_at(program, start, member.index, distance),
            None => self.walk().member(program, start, member.index),
        }
    }

    /// The bit at which a scope begins.
    #[inline]
    pub(super) fn start(&self, scope: Scope) -> u64 {
        match (self.laid_out, scope.after_header()) {
            (Some(LaidOut { layout, origin, record }), Some(scope)) => {
                origin + layout.start(scope, record.pieces)
            }
            _ => self.starts[scope as usize],
        }
    }

    pub(super) fn walk(&self) -> Walk<'a> {
        Walk::new(self.decoder, self.packet.0, self.packet.1, self.slots)
    }

    fn compiled(&self) -> &'a Stream {
        &self.decoder.streams[self.stream]
    }

    pub(super) fn program(&self, scope: Scope) -> Option<&'a Program> {
        self.decoder.program(self.stream, self.event, scope)
    }
}

impl std::fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Event")
            .field("name", &self.class().name)
            .field("clock_value", &self.clock_value())
            .finish_non_exhaustive()
    }
}
