//! Compiles a trace class into the programs that decode its data streams.

use std::collections::HashMap;
use std::sync::Arc;

use super::compiler::{Compiler, MOST_BYTES};
use super::fields::placeholder;
use super::header::Header;
use super::layout::{Layout, Stride};
use super::program::{NONE, Program, Role};
use super::refer;
use super::skip::set_skips;
use crate::model::{
    self, DataStreamClass, EventRecordClass, FieldClass, Place, Scope, StructureClass, TraceClass, Version,
};
use crate::{Error, TraceClassFault};

/// Ids up to here are looked up in a table.
const MOST_DENSE_IDS: u64 = 1 << 16;
/// Entries of all those tables; data stream classes that come later have their ids looked up in maps.
const MOST_ENTRIES: usize = 1 << 20;

/// A compiled trace class; decodes any number of its data streams.
#[derive(Debug)]
pub struct Decoder {
    class: Arc<TraceClass>,
    pub(super) packet_header: Option<Program>,
    pub(crate) streams: Vec<Stream>,
    /// Their indices by id.
    pub(super) stream_ids: HashMap<u64, usize>,
    /// How many values the programs keep for lengths and tags.
    pub(crate) slots: usize,
    /// Whether packed fields of both byte orders might share a byte, which has to be looked at then.
    pub(super) mixed: bool,
    /// The id of data stream and event record classes that is not given: CTF 2's 0; in CTF 1.8 there is to be
    /// one class.
    pub(super) default_id: Option<u64>,
    /// Bit of a packet where the metadata's UUID is repeated.
    pub(crate) uuid_at: Option<u64>,
}

/// A compiled data stream class; its index is that of the class.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) packet_context: Option<Program>,
    pub(super) event_header: Option<Program>,
    /// The common form of the event header, if it has one.
    pub(super) header: Option<Header>,
    /// By id, how to step over an event record that has it.
    pub(super) strides: Vec<Stride>,
    /// Whether lengths or tags of other scopes refer to fields of the event header.
    header_is_referred_to: bool,
    pub(super) common_context: Option<Program>,
    pub(super) events: Vec<EventPrograms>,
    /// Index into `events` by id; `NONE` for none.
    dense_ids: Vec<u32>,
    sparse_ids: HashMap<u64, u32>,
    /// Index of the clock class that its stamps are mapped to.
    pub(super) clock: Option<usize>,
    /// Size in bits of the counter of discarded events.
    pub(super) discarded_bits: u32,
    /// Size in bits of the packet sequence number.
    pub(super) sequence_bits: u32,
}

/// A compiled event record class; its index is that of the class.
#[derive(Debug)]
pub(super) struct EventPrograms {
    pub(super) specific_context: Option<Program>,
    pub(super) payload: Option<Program>,
    /// The positions of all fields after a header of the common form, if they are fixed.
    pub(super) layout: Option<Arc<Layout>>,
}

impl Stream {
    /// Finds out which event records need no walk; `budget` is how many bytes that may take. No field may
    /// share a byte with one of the other byte order.
    fn lay_out(&mut self, budget: &mut usize) {
        let header = self.event_header.as_ref().filter(|_| !self.header_is_referred_to);
        self.header = header.and_then(Header::new);
        let Some(header) = &self.header else { return };
        for event in &mut self.events {
            let scopes = [&self.common_context, &event.specific_context, &event.payload];
            let Some(layout) = Layout::new(header, scopes.map(Option::as_ref)) else { continue };
            let Some(rest) = budget.checked_sub(layout.memory()) else { break };
            *budget = rest;
            event.layout = Some(Arc::new(layout));
        }
        self.strides = self.dense_ids.iter().map(|index| self.stride(*index)).collect();
    }

    fn stride(&self, event: u32) -> Stride {
        let layout = self.events.get(event as usize).and_then(|programs| programs.layout.as_ref());
        Stride::new(event, layout)
    }

    fn programs(&mut self) -> impl Iterator<Item = &mut Program> {
        let events =
            self.events.iter_mut().flat_map(|event| [&mut event.specific_context, &mut event.payload]);
        [&mut self.packet_context, &mut self.event_header, &mut self.common_context]
            .into_iter()
            .chain(events)
            .flatten()
    }

    /// The event record class with this id.
    #[inline]
    pub(super) fn event_by_id(&self, id: u64) -> Option<usize> {
        match usize::try_from(id).ok().and_then(|id| self.dense_ids.get(id)) {
            Some(&NONE) => None,
            Some(&index) => Some(index as usize),
            None => self.sparse_ids.get(&id).map(|&index| index as usize),
        }
    }
}

impl Decoder {
    /// Compiles a trace class. One of CTF 1.8 has its [roles filled in](TraceClass::fill_roles) first.
    ///
    /// # Errors
    ///
    /// [`Error::TraceClass`] if a length or a tag refers to no earlier field of the right class, a field that
    /// the decoder needs (`magic`, `content_size`, …) is no unsigned integer, a size is impossible, or ids
    /// repeat. [`Error::in_metadata`] shows it in the metadata's text.
    pub fn new(mut class: Arc<TraceClass>) -> Result<Arc<Decoder>, Error> {
        if class.version == Version::V1_8 {
            Arc::make_mut(&mut class).fill_roles();
        }
        let mut compiler = Compiler {
            programs: Default::default(),
            slots: 0,
            outward: [false; 6],
            place: String::new(),
            at: Place::default(),
            named_options: class.version == Version::V1_8,
            merged: Vec::new(),
            has_clock: false,
            packed: [false; 2],
            ragged: [false; 2],
            budget: MOST_BYTES,
            entries: MOST_ENTRIES,
        };
        compiler.scope(Scope::PacketHeader, class.packet_header.as_ref(), "the packet header")?;
        let has_stream_id = |program: &Program| program.has_role(Role::StreamId);
        let header = &compiler.programs[Scope::PacketHeader as usize];
        if compiler.named_options
            && class.data_stream_classes.len() > 1
            && !header.as_ref().is_some_and(has_stream_id)
        {
            compiler.place = "the packet header".to_owned();
            compiler.at = class.data_stream_classes[1].place;
            return Err(compiler.error(TraceClassFault::NoStreamId));
        }
        let (mut streams, stream_ids) = compiler.streams(&class)?;
        let slots = compiler.slots as usize;
        let mut packet_header = compiler.programs[Scope::PacketHeader as usize].take();
        let ([le, be], [ragged_le, ragged_be]) = (compiler.packed, compiler.ragged);
        let mixed = (le && ragged_be) || (be && ragged_le);
        let mut same = refer::same_slots(compiler.slots, &compiler.merged);
        let programs = packet_header.iter_mut().chain(streams.iter_mut().flat_map(Stream::programs));
        for node in programs.flat_map(|program| &mut program.nodes) {
            if mixed {
                node.skip = u64::MAX;
            }
            if let Some(slot) = node.kind.slot_mut() {
                *slot = refer::first_of(&mut same, *slot);
            }
        }
        if !mixed {
            let mut budget = MOST_BYTES;
            streams.iter_mut().for_each(|stream| stream.lay_out(&mut budget));
        }
        let uuid_at = uuid_at(&class);
        let default_id = (!compiler.named_options).then_some(0);
        Ok(Arc::new(Decoder { class, packet_header, streams, stream_ids, slots, mixed, default_id, uuid_at }))
    }

    /// The trace class that was compiled.
    pub fn trace_class(&self) -> &Arc<TraceClass> {
        &self.class
    }
}

impl Compiler {
    /// All data stream classes, and their places by id.
    fn streams(&mut self, class: &TraceClass) -> Result<(Vec<Stream>, HashMap<u64, usize>), Error> {
        let clocks = class.clock_classes.iter().enumerate().map(|(index, clock)| (clock.id.as_str(), index));
        // Of several with one id the first counts.
        let clocks: HashMap<&str, usize> = clocks.rev().collect();
        let mut streams = Vec::with_capacity(class.data_stream_classes.len());
        let mut stream_ids = HashMap::with_capacity(class.data_stream_classes.len());
        for (index, stream) in class.data_stream_classes.iter().enumerate() {
            self.at = stream.place;
            if stream_ids.insert(stream.id, index).is_some() {
                return Err(self.error(TraceClassFault::SameStreamId(stream.id)));
            }
            streams.push(self.stream(&clocks, stream)?);
        }
        Ok((streams, stream_ids))
    }

    /// `clocks` has the indices of clock classes by id.
    fn stream(&mut self, clocks: &HashMap<&str, usize>, class: &DataStreamClass) -> Result<Stream, Error> {
        let id = class.id;
        self.at = class.place;
        self.has_clock = class.default_clock.is_some();
        self.scope(
            Scope::PacketContext,
            class.packet_context.as_ref(),
            format!("stream {id}, packet context"),
        )?;
        self.outward[Scope::EventHeader as usize] = false;
        self.scope(Scope::EventHeader, class.event_header.as_ref(), format!("stream {id}, event header"))?;
        self.scope(
            Scope::CommonContext,
            class.common_context.as_ref(),
            format!("stream {id}, event context"),
        )?;
        let mut events = Vec::with_capacity(class.event_record_classes.len());
        let (mut dense_ids, mut sparse_ids) = (Vec::new(), HashMap::new());
        for (index, event) in class.event_record_classes.iter().enumerate() {
            events.push(self.event(event)?);
            let longer = event.id.saturating_add(1).saturating_sub(dense_ids.len() as u64) as usize;
            let taken = if event.id < MOST_DENSE_IDS && longer <= self.entries {
                self.entries -= longer;
                let id = event.id as usize;
                dense_ids.resize(dense_ids.len().max(id + 1), NONE);
                std::mem::replace(&mut dense_ids[id], index as u32) != NONE
            } else {
                sparse_ids.insert(event.id, index as u32).is_some()
            };
            if taken {
                self.at = event.place;
                return Err(self.error(TraceClassFault::SameEventId(event.id)));
            }
        }
        let has_id = self.programs[Scope::EventHeader as usize]
            .as_ref()
            .is_some_and(|program| program.has_role(Role::EventId));
        if self.named_options && events.len() > 1 && !has_id {
            self.place = format!("stream {id}");
            self.at = class.event_record_classes[1].place;
            return Err(self.error(TraceClassFault::NoEventId));
        }
        let bits = |role| class.packet_context_bits(role).unwrap_or(64);
        let clock = class.default_clock.as_ref();
        Ok(Stream {
            packet_context: self.programs[Scope::PacketContext as usize].take(),
            event_header: self.programs[Scope::EventHeader as usize].take(),
            header: None,
            strides: Vec::new(),
            header_is_referred_to: self.outward[Scope::EventHeader as usize],
            common_context: self.programs[Scope::CommonContext as usize].take(),
            events,
            dense_ids,
            sparse_ids,
            clock: clock.and_then(|id| clocks.get(id.as_str()).copied()),
            discarded_bits: bits(model::Role::DiscardedEventRecordCounterSnapshot),
            sequence_bits: bits(model::Role::PacketSequenceNumber),
        })
    }

    fn event(&mut self, class: &EventRecordClass) -> Result<EventPrograms, Error> {
        let name = class.name.as_deref().unwrap_or("");
        self.at = class.place;
        let context = format!("event \"{name}\" (id {}), context", class.id);
        self.scope(Scope::SpecificContext, class.specific_context.as_ref(), context)?;
        self.scope(Scope::Payload, class.payload.as_ref(), format!("event \"{name}\" (id {})", class.id))?;
        Ok(EventPrograms {
            specific_context: self.programs[Scope::SpecificContext as usize].take(),
            payload: self.programs[Scope::Payload as usize].take(),
            layout: None,
        })
    }

    /// Compiles a scope's class into its place among the programs.
    fn scope(
        &mut self,
        scope: Scope,
        class: Option<&StructureClass>,
        place: impl Into<String>,
    ) -> Result<(), Error> {
        self.place = place.into();
        self.programs[scope as usize] = None;
        let Some(class) = class else { return Ok(()) };
        self.programs[scope as usize] = Some(Program { nodes: vec![placeholder()] });
        let class = FieldClass::Structure(Arc::new(class.clone()));
        let node = self.node(scope, None, &class, &mut Vec::new())?;
        self.nodes(scope)[0] = node;
        let mut program = self.programs[scope as usize].take().unwrap_or_default();
        set_skips(&mut program, 0);
        self.programs[scope as usize] = Some(program);
        Ok(())
    }
}

/// Where packets repeat the metadata's UUID: the bit of the packet header's member for it.
fn uuid_at(class: &TraceClass) -> Option<u64> {
    class.uuid?;
    let byte = |class: &FieldClass| matches!(class, FieldClass::Integer(class) if (class.size, class.align) == (8, 8));
    let mut at = 0_u64;
    for member in &class.packet_header.as_ref()?.members {
        at = at.checked_next_multiple_of(member.class.alignment().into())?;
        at += match &member.class {
            FieldClass::StaticArray(array)
                if member.name == "uuid" && array.length == 16 && byte(&array.element) =>
            {
                return Some(at);
            }
            FieldClass::StaticBlob(blob) if blob.roles.has(model::Role::MetadataStreamUuid) => {
                return Some(at).filter(|_| blob.length == 16);
            }
            FieldClass::Integer(class) => u64::from(class.size),
            FieldClass::Enumeration(class) => u64::from(class.integer.size),
            _ => return None,
        };
    }
    None
}
