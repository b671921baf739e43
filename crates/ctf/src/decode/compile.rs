//! Compiles a trace class into the programs that decode its data streams.

use std::collections::HashMap;
use std::sync::Arc;

use super::header::Header;
use super::layout::{Layout, Stride};
use super::program::{Integer, Kind, Length, NONE, Node, Program, Role, Variant};
use super::resolve::{self, Frame};
use crate::Error;
use crate::model::{
    self, DataStreamClass, Encoding, EventRecordClass, FieldClass, FieldLocation, IntegerClass, Scope,
    StructureClass, TraceClass, Version,
};

/// Ids up to here are looked up in a table.
const MOST_DENSE_IDS: u64 = 1 << 16;
/// Field classes inside one another; more would exhaust the stack.
const DEEPEST: usize = 64;

/// A compiled trace class; decodes any number of its data streams.
#[derive(Debug)]
pub struct Decoder {
    class: Arc<TraceClass>,
    pub(super) packet_header: Option<Program>,
    pub(crate) streams: Vec<Stream>,
    /// How many values the programs keep for lengths and tags.
    pub(crate) slots: usize,
    /// Whether packed fields of both byte orders might share a byte, which has to be looked at then.
    pub(super) mixed: bool,
}

/// A compiled data stream class; its index is that of the class.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) packet_context: Option<Program>,
    pub(super) event_header: Option<Program>,
    /// The usual form of the event header, if it has one.
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
    /// Where everything lies behind a header of the usual form, if that is always the same.
    pub(super) layout: Option<Layout>,
}

impl Stream {
    /// Finds what lies always in the same place. No field may share a byte with one of the other byte order.
    fn lay_out(&mut self) {
        let header = self.event_header.as_ref().filter(|_| !self.header_is_referred_to);
        self.header = header.and_then(Header::new);
        let Some(header) = &self.header else { return };
        for event in &mut self.events {
            let scopes = [&self.common_context, &event.specific_context, &event.payload];
            event.layout = Layout::new(header, scopes.map(Option::as_ref));
        }
        self.strides = self.dense_ids.iter().map(|index| Stride::new(*index, &self.events)).collect();
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
    /// [`Error::TraceClass`] if a length or a tag refers to no earlier field of the right class, a field that the decoder
    /// needs (`magic`, `content_size`, …) is no unsigned integer, a size is impossible, or ids repeat.
    pub fn new(mut class: Arc<TraceClass>) -> Result<Arc<Decoder>, Error> {
        if class.version == Version::V1_8 {
            Arc::make_mut(&mut class).fill_roles();
        }
        let mut compiler = Compiler {
            programs: Default::default(),
            slots: 0,
            outward: [false; 6],
            place: String::new(),
            has_clock: false,
            packed: [false; 2],
            ragged: [false; 2],
        };
        compiler.scope(Scope::PacketHeader, class.packet_header.as_ref(), "the packet header")?;
        let tells = |program: &Program| program.has_role(Role::StreamId);
        let header = &compiler.programs[Scope::PacketHeader as usize];
        if class.data_stream_classes.len() > 1 && !header.as_ref().is_some_and(tells) {
            return Err(compiler.error("several streams, but the packet header has no `stream_id`"));
        }
        let mut streams = Vec::with_capacity(class.data_stream_classes.len());
        for (i, stream) in class.data_stream_classes.iter().enumerate() {
            if class.data_stream_classes[..i].iter().any(|other| other.id == stream.id) {
                return Err(compiler.error(format!("two streams have the id {}", stream.id)));
            }
            streams.push(compiler.stream(&class, stream)?);
        }
        let slots = compiler.slots as usize;
        let mut packet_header = compiler.programs[Scope::PacketHeader as usize].take();
        let ([le, be], [ragged_le, ragged_be]) = (compiler.packed, compiler.ragged);
        let mixed = (le && ragged_be) || (be && ragged_le);
        if mixed {
            let shared = packet_header.iter_mut();
            let programs = shared.chain(streams.iter_mut().flat_map(Stream::programs));
            programs.flat_map(|program| &mut program.nodes).for_each(|node| node.skip = u64::MAX);
        } else {
            streams.iter_mut().for_each(Stream::lay_out);
        }
        Ok(Arc::new(Decoder { class, packet_header, streams, slots, mixed }))
    }

    /// The trace class that was compiled.
    pub fn trace_class(&self) -> &Arc<TraceClass> {
        &self.class
    }
}

/// A compilation under way.
pub(super) struct Compiler {
    /// The programs by scope, as far as they are compiled for the current event record class.
    pub(super) programs: [Option<Program>; 6],
    pub(super) slots: u32,
    /// By scope: whether lengths or tags of other scopes refer to it.
    outward: [bool; 6],
    place: String,
    /// Whether the data stream class at hand has a default clock.
    has_clock: bool,
    /// Whether there are numbers, by byte order, that may begin inside a byte.
    packed: [bool; 2],
    /// Whether there are numbers, by byte order, that may end inside a byte.
    ragged: [bool; 2],
}

impl Compiler {
    fn stream(&mut self, trace: &TraceClass, class: &DataStreamClass) -> Result<Stream, Error> {
        let id = class.id;
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
            let taken = if event.id < MOST_DENSE_IDS {
                let id = event.id as usize;
                dense_ids.resize(dense_ids.len().max(id + 1), NONE);
                std::mem::replace(&mut dense_ids[id], index as u32) != NONE
            } else {
                sparse_ids.insert(event.id, index as u32).is_some()
            };
            if taken {
                return Err(self.error(format!("two events have the id {}", event.id)));
            }
        }
        let has_id = self.programs[Scope::EventHeader as usize]
            .as_ref()
            .is_some_and(|program| program.has_role(Role::EventId));
        if events.len() > 1 && !has_id {
            self.place = format!("stream {id}");
            return Err(self.error("several events, but the event header has no `id`"));
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
            clock: clock.and_then(|id| trace.clock_classes.iter().position(|clock| clock.id == *id)),
            discarded_bits: bits(model::Role::DiscardedEventRecordCounterSnapshot),
            sequence_bits: bits(model::Role::PacketSequenceNumber),
        })
    }

    fn event(&mut self, class: &EventRecordClass) -> Result<EventPrograms, Error> {
        let name = class.name.as_deref().unwrap_or("");
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

    pub(super) fn nodes(&mut self, scope: Scope) -> &mut Vec<Node> {
        &mut self.programs[scope as usize].get_or_insert_default().nodes
    }

    fn node<'c>(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        class: &'c FieldClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Node, Error> {
        if stack.len() > DEEPEST {
            return Err(self.error(format!("field classes are nested more than {DEEPEST} deep")));
        }
        let align = class.alignment();
        if !align.is_power_of_two() {
            return Err(self.field_error(name, format!("alignment {align} is no power of two")));
        }
        let number = match class {
            FieldClass::Integer(class) => Some((class.size, class.byte_order)),
            FieldClass::Enumeration(class) => Some((class.integer.size, class.integer.byte_order)),
            FieldClass::Float(class) => Some((class.size, class.byte_order)),
            _ => None,
        };
        if let Some((size, order)) = number {
            self.packed[order as usize] |= align < 8;
            self.ragged[order as usize] |= align < 8 || !size.is_multiple_of(8);
        }
        let kind = match class {
            FieldClass::Integer(class) => {
                Kind::Integer(self.integer(scope, name, class, stack)?, class.clone())
            }
            FieldClass::Enumeration(class) => {
                Kind::Enumeration(self.integer(scope, name, &class.integer, stack)?, class.clone())
            }
            FieldClass::Float(class) if matches!(class.size, 32 | 64) => {
                Kind::Float { size: class.size, order: class.byte_order }
            }
            FieldClass::Float(class) => {
                return Err(self.field_error(name, format!("a floating point number of {} bits", class.size)));
            }
            FieldClass::String(class) if class.encoding.unit() == 1 => Kind::String,
            FieldClass::Structure(class) => {
                let first = self.children(
                    scope,
                    class.members.iter().map(|member| (member.name.as_str(), &member.class)),
                    Frame::Structure { class, first: 0, index: 0 },
                    stack,
                )?;
                Kind::Structure { first, count: class.members.len() as u32, class: class.clone() }
            }
            FieldClass::StaticArray(class) => {
                self.array(scope, Length::Fixed(class.length), &class.element, stack)?
            }
            FieldClass::DynamicArray(class) => {
                let (slot, _) = self.refer(scope, name, &class.length, stack, false)?;
                self.array(scope, Length::Slot(slot), &class.element, stack)?
            }
            FieldClass::Variant(class) => {
                let (slot, tag) = self.refer(scope, name, &class.tag, stack, true)?;
                let FieldClass::Enumeration(tag) = &tag else {
                    return Err(self.field_error(name, "the tag is no enumeration"));
                };
                let first = self.children(
                    scope,
                    class.options.iter().map(|option| (option.name.as_str(), &option.class)),
                    Frame::Other,
                    stack,
                )?;
                let count = class.options.len() as u32;
                let mut variant =
                    Variant { slot, signed: tag.integer.signed, ranges: Vec::new(), first, count };
                for (i, option) in class.options.iter().enumerate() {
                    let mapping = tag.mappings.iter().find(|mapping| mapping.label == option.name);
                    for (low, high) in mapping.map(|mapping| mapping.ranges.as_slice()).unwrap_or_default() {
                        variant.ranges.push((variant.key(*low as u64), variant.key(*high as u64), i as u32));
                    }
                }
                Kind::Variant(Box::new(variant))
            }
            _ => return Err(self.field_error(name, "this field class is not supported yet")),
        };
        Ok(Node { name: name.map(Into::into), align, skip: u64::MAX, kind })
    }

    /// Compiles members or options side by side and gives the place of the first.
    fn children<'c>(
        &mut self,
        scope: Scope,
        members: impl ExactSizeIterator<Item = (&'c str, &'c FieldClass)>,
        frame: Frame<'c>,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<u32, Error> {
        let first = self.nodes(scope).len();
        self.nodes(scope).resize_with(first + members.len(), placeholder);
        let depth = stack.len();
        stack.push(frame);
        for (i, (name, class)) in members.enumerate() {
            if let Frame::Structure { first: node, index, .. } = &mut stack[depth] {
                (*node, *index) = (first, i);
            }
            let node = self.node(scope, Some(name), class, stack)?;
            self.nodes(scope)[first + i] = node;
        }
        stack.pop();
        Ok(first as u32)
    }

    fn array<'c>(
        &mut self,
        scope: Scope,
        length: Length,
        element: &'c FieldClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        if let FieldClass::Integer(class) = element
            && class.size == 8
            && class.align == 8
            && class.encoding != Encoding::None
        {
            return Ok(Kind::Text { length });
        }
        let place = self.nodes(scope).len();
        self.nodes(scope).push(placeholder());
        stack.push(Frame::Other);
        let node = self.node(scope, None, element, stack)?;
        stack.pop();
        self.nodes(scope)[place] = node;
        Ok(Kind::Array { length, element: place as u32 })
    }

    fn integer(
        &self,
        scope: Scope,
        name: Option<&str>,
        class: &IntegerClass,
        stack: &[Frame<'_>],
    ) -> Result<Integer, Error> {
        if !(1..=64).contains(&class.size) {
            return Err(self.field_error(name, format!("an integer of {} bits", class.size)));
        }
        let cpu =
            scope == Scope::PacketContext && stack.len() == 1 && name == Some("cpu_id") && !class.signed;
        let role = Role::new(class.roles, scope, self.has_clock);
        let role = if cpu && role == Role::None { Role::Cpu } else { role };
        if class.signed && !matches!(role, Role::None) {
            return Err(self.field_error(name, "this field is to be unsigned"));
        }
        if role == Role::Magic && class.size != 32 {
            return Err(self.field_error(name, format!("a magic of {} bits, expected 32", class.size)));
        }
        Ok(Integer { size: class.size, order: class.byte_order, signed: class.signed, slot: NONE, role })
    }

    /// The slot of the field that a length or a tag refers to, and its class.
    fn refer(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        location: &FieldLocation,
        stack: &[Frame<'_>],
        enumeration: bool,
    ) -> Result<(u32, FieldClass), Error> {
        let what = if enumeration { "tag" } else { "length" };
        let path = location.path.join(".");
        let Some((found, index)) = resolve::find(self, scope, location, stack) else {
            return Err(self.field_error(name, format!("its {what} `{path}` is no earlier field")));
        };
        self.outward[found as usize] |= found != scope;
        let next = self.slots;
        let nodes = self.nodes(found);
        let (integer, class) = match &mut nodes[index].kind {
            Kind::Integer(integer, class) if !enumeration => (integer, FieldClass::Integer(class.clone())),
            Kind::Enumeration(integer, class) => (integer, FieldClass::Enumeration(class.clone())),
            _ if enumeration => {
                return Err(self.field_error(name, format!("its tag `{path}` is no enumeration")));
            }
            _ => return Err(self.field_error(name, format!("its length `{path}` is no integer"))),
        };
        if integer.signed && !enumeration {
            return Err(self.field_error(name, format!("its length `{path}` is signed")));
        }
        if integer.slot != NONE {
            return Ok((integer.slot, class));
        }
        integer.slot = next;
        self.slots += 1;
        if found != scope
            && let Some(program) = &mut self.programs[found as usize]
        {
            // The referred field can no longer be skipped, nor can what contains it.
            set_skips(program, 0);
        }
        Ok((next, class))
    }

    #[cold]
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::TraceClass { place: self.place.clone(), message: message.into() }
    }

    #[cold]
    fn field_error(&self, name: Option<&str>, message: impl Into<String>) -> Error {
        let place = match name {
            Some(name) => format!("{}, field `{name}`", self.place),
            None => self.place.clone(),
        };
        Error::TraceClass { place, message: message.into() }
    }
}

/// Stands for a node that is being compiled; a string is what no program's root is.
fn placeholder() -> Node {
    Node { name: None, align: 1, skip: u64::MAX, kind: Kind::String }
}

/// Sets how far each node below and including `index` can be skipped; gives that of `index`.
fn set_skips(program: &mut Program, index: usize) -> u64 {
    const UNKNOWN: u64 = u64::MAX;
    let skip = match &program.nodes[index].kind {
        Kind::Integer(integer, _) | Kind::Enumeration(integer, _) => {
            if integer.slot == NONE && integer.role == Role::None { u64::from(integer.size) } else { UNKNOWN }
        }
        Kind::Float { size, .. } => u64::from(*size),
        Kind::String | Kind::Text { length: Length::Slot(_) } => UNKNOWN,
        Kind::Text { length: Length::Fixed(length) } => length.checked_mul(8).unwrap_or(UNKNOWN),
        Kind::Structure { first, count, .. } => {
            let mut size = Some(0_u64);
            for child in *first..*first + *count {
                let skip = set_skips(program, child as usize);
                let align = u64::from(program.nodes[child as usize].align);
                size = match skip {
                    UNKNOWN => None,
                    skip => size.and_then(|at| at.checked_next_multiple_of(align)?.checked_add(skip)),
                };
            }
            size.unwrap_or(UNKNOWN)
        }
        Kind::Array { length, element } => {
            let (length, element) = (*length, *element as usize);
            let skip = set_skips(program, element);
            let align = u64::from(program.nodes[element].align);
            match (length, skip) {
                (Length::Slot(_), _) | (_, UNKNOWN) => UNKNOWN,
                (Length::Fixed(0), _) => 0,
                (Length::Fixed(length), skip) => skip
                    .checked_next_multiple_of(align)
                    .and_then(|stride| stride.checked_mul(length - 1)?.checked_add(skip))
                    .unwrap_or(UNKNOWN),
            }
        }
        Kind::Variant(variant) => {
            for child in variant.first..variant.first + variant.count {
                set_skips(program, child as usize);
            }
            UNKNOWN
        }
    };
    program.nodes[index].skip = skip;
    skip
}
