//! Compiles a trace class into the programs that decode its data streams.

use std::collections::HashMap;
use std::sync::Arc;

use super::header::Header;
use super::layout::{Layout, Stride};
use super::program::{Integer, Kind, Length, NONE, Node, Optional, Program, Role, Variant, keys};
use super::resolve::{self, Frame};
use crate::Error;
use crate::model::{
    self, BitArrayClass, BitOrder, ByteOrder, DataStreamClass, Encoding, EnumerationClass, EventRecordClass,
    FieldClass, FieldLocation, IntegerClass, OptionalClass, Scope, StructureClass, TraceClass, VariantClass,
    Version,
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
    /// The id of data stream and event record classes that is not given: CTF 2's 0; in CTF 1.8 there is to be one class.
    pub(super) default_id: Option<u64>,
    /// Bit of a packet where the metadata's UUID is repeated.
    pub(crate) uuid_at: Option<u64>,
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
    pub(super) layout: Option<Arc<Layout>>,
}

impl Stream {
    /// Finds what lies always in the same place. No field may share a byte with one of the other byte order.
    fn lay_out(&mut self) {
        let header = self.event_header.as_ref().filter(|_| !self.header_is_referred_to);
        self.header = header.and_then(Header::new);
        let Some(header) = &self.header else { return };
        for event in &mut self.events {
            let scopes = [&self.common_context, &event.specific_context, &event.payload];
            event.layout = Layout::new(header, scopes.map(Option::as_ref)).map(Arc::new);
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
            named_options: class.version == Version::V1_8,
            merged: Vec::new(),
            has_clock: false,
            packed: [false; 2],
            ragged: [false; 2],
        };
        compiler.scope(Scope::PacketHeader, class.packet_header.as_ref(), "the packet header")?;
        let tells = |program: &Program| program.has_role(Role::StreamId);
        let header = &compiler.programs[Scope::PacketHeader as usize];
        if compiler.named_options
            && class.data_stream_classes.len() > 1
            && !header.as_ref().is_some_and(tells)
        {
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
        let programs = packet_header.iter_mut().chain(streams.iter_mut().flat_map(Stream::programs));
        for node in programs.flat_map(|program| &mut program.nodes) {
            if mixed {
                node.skip = u64::MAX;
            }
            if let Some(slot) = node.kind.slot_mut() {
                // Later pairs were made of what earlier ones had left.
                for (one, other) in &compiler.merged {
                    *slot = if *slot == *other { *one } else { *slot };
                }
            }
        }
        if !mixed {
            streams.iter_mut().for_each(Stream::lay_out);
        }
        let uuid_at = uuid_at(&class);
        let default_id = (!compiler.named_options).then_some(0);
        Ok(Arc::new(Decoder { class, packet_header, streams, slots, mixed, default_id, uuid_at }))
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
    /// Whether paths name the options of variants.
    pub(super) named_options: bool,
    /// Slots that turned out to be one: the second of each pair is the first.
    merged: Vec<(u32, u32)>,
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
        if self.named_options && events.len() > 1 && !has_id {
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
            FieldClass::BitArray(class) | FieldClass::Boolean(class) => Some((class.size, class.byte_order)),
            FieldClass::BitMap(class) => Some((class.bits.size, class.bits.byte_order)),
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
            FieldClass::BitArray(class) => Kind::BitArray(self.bits(name, class)?, class.clone()),
            FieldClass::BitMap(class) => Kind::BitMap(self.bits(name, &class.bits)?, class.clone()),
            FieldClass::Boolean(class) => Kind::Boolean(self.bits(name, class)?),
            FieldClass::Integer(class) => {
                Kind::Integer(self.integer(scope, name, class, stack)?, class.clone())
            }
            FieldClass::Enumeration(class) => {
                Kind::Enumeration(self.integer(scope, name, &class.integer, stack)?, class.clone())
            }
            FieldClass::VariableInteger(class) => {
                Kind::Variable(self.integer(scope, name, class, stack)?, class.clone())
            }
            FieldClass::VariableEnumeration(class) => {
                Kind::VariableEnumeration(self.integer(scope, name, &class.integer, stack)?, class.clone())
            }
            FieldClass::Float(class) if matches!(class.size, 16 | 32 | 64 | 128) => Kind::Float {
                size: class.size,
                order: class.byte_order,
                reversed: is_reversed(class.byte_order, class.bit_order),
            },
            FieldClass::Float(class) => {
                return Err(self.field_error(name, format!("a floating point number of {} bits", class.size)));
            }
            FieldClass::String(class) if class.encoding.unit() == 1 => Kind::String,
            FieldClass::String(class) => Kind::WideString(class.encoding),
            FieldClass::StaticString(class) => text(Length::Fixed(class.length), class.encoding),
            FieldClass::DynamicString(class) => {
                text(self.length(scope, name, &class.length, stack)?, class.encoding)
            }
            FieldClass::StaticBlob(class) => Kind::Blob { length: Length::Fixed(class.length) },
            FieldClass::DynamicBlob(class) => {
                Kind::Blob { length: self.length(scope, name, &class.length, stack)? }
            }
            FieldClass::Structure(class) => {
                let first = self.nodes(scope).len();
                self.nodes(scope).resize_with(first + class.members.len(), placeholder);
                for (index, member) in class.members.iter().enumerate() {
                    stack.push(Frame::Structure { class, first, index });
                    let node = self.node(scope, Some(&member.name), &member.class, stack)?;
                    stack.pop();
                    self.nodes(scope)[first + index] = node;
                }
                Kind::Structure {
                    first: first as u32,
                    count: class.members.len() as u32,
                    class: class.clone(),
                }
            }
            FieldClass::StaticArray(class) => {
                self.array(scope, Length::Fixed(class.length), &class.element, stack)?
            }
            FieldClass::DynamicArray(class) => {
                let length = self.length(scope, name, &class.length, stack)?;
                self.array(scope, length, &class.element, stack)?
            }
            FieldClass::Optional(class) => self.optional(scope, name, class, stack)?,
            FieldClass::Variant(class) => self.variant(scope, name, class, stack)?,
        };
        Ok(Node { name: name.map(Into::into), align, skip: u64::MAX, kind })
    }

    fn optional<'c>(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        class: &'c OptionalClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        let Referred { slot, signed, boolean, .. } =
            self.refer(scope, name, ("selector", &class.selector), stack)?;
        let ranges = match (boolean, class.ranges.as_slice()) {
            (true, []) => &[(1, i128::MAX)],
            (true, _) => {
                return Err(self.field_error(name, "ranges of integers, but its selector is a boolean"));
            }
            (false, []) => {
                return Err(self.field_error(name, "no ranges of integers, but its selector is an integer"));
            }
            (false, ranges) => ranges,
        };
        let ranges = ranges.iter().filter_map(|range| keys(signed, *range)).collect();
        let place = self.nodes(scope).len();
        self.nodes(scope).push(placeholder());
        stack.push(Frame::Through);
        let node = self.node(scope, name, &class.class, stack)?;
        stack.pop();
        self.nodes(scope)[place] = node;
        Ok(Kind::Optional(Box::new(Optional { slot, signed, ranges, field: place as u32 })))
    }

    fn variant<'c>(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        class: &'c VariantClass,
        stack: &mut Vec<Frame<'c>>,
    ) -> Result<Kind, Error> {
        let tag = self.refer(scope, name, ("tag", &class.tag), stack)?;
        if tag.boolean {
            return Err(self.field_error(name, "its tag is a boolean; expected an integer"));
        }
        let first = self.nodes(scope).len();
        self.nodes(scope).resize_with(first + class.options.len(), placeholder);
        let (slot, signed) = (tag.slot, tag.signed);
        let mut ranges = Vec::new();
        for (index, option) in class.options.iter().enumerate() {
            let own = match (option.ranges.as_slice(), &tag.labels) {
                ([], Some(labels)) => {
                    let mapping = labels.mappings.iter().find(|mapping| mapping.label == option.name);
                    mapping.map(|mapping| mapping.ranges.as_slice()).unwrap_or_default()
                }
                ([], None) => return Err(self.field_error(name, "the tag is no enumeration")),
                (ranges, _) => ranges,
            };
            let keys = own.iter().filter_map(|range| keys(signed, *range));
            ranges.extend(keys.map(|(low, high)| (low, high, index as u32)));
            stack.push(Frame::Option(&option.name));
            let node = self.node(scope, Some(&option.name), &option.class, stack)?;
            stack.pop();
            self.nodes(scope)[first + index] = node;
        }
        let (first, count) = (first as u32, class.options.len() as u32);
        Ok(Kind::Variant(Box::new(Variant { slot, signed, ranges, first, count })))
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
        stack.push(Frame::Through);
        let node = self.node(scope, None, element, stack)?;
        stack.pop();
        self.nodes(scope)[place] = node;
        Ok(Kind::Array { length, element: place as u32 })
    }

    /// Bits of fixed length that are no integer.
    fn bits(&self, name: Option<&str>, class: &BitArrayClass) -> Result<Integer, Error> {
        if !(1..=64).contains(&class.size) {
            return Err(self.field_error(name, format!("{} bits; expected 1 to 64", class.size)));
        }
        Ok(Integer {
            size: class.size,
            order: class.byte_order,
            reversed: is_reversed(class.byte_order, class.bit_order),
            signed: false,
            slot: NONE,
            role: Role::None,
        })
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
        Ok(Integer {
            size: class.size,
            order: class.byte_order,
            reversed: is_reversed(class.byte_order, class.bit_order),
            signed: class.signed,
            slot: NONE,
            role,
        })
    }

    /// The length that an earlier field says.
    fn length(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        location: &FieldLocation,
        stack: &[Frame<'_>],
    ) -> Result<Length, Error> {
        let length = self.refer(scope, name, ("length", location), stack)?;
        let what = match length {
            Referred { boolean: true, .. } => "a boolean",
            Referred { signed: true, .. } => "signed",
            Referred { slot, .. } => return Ok(Length::Slot(slot)),
        };
        Err(self.field_error(name, format!("its length `{}` is {what}", location.path.join("."))))
    }

    /// The field, or the fields of which one will be there, that a length, a tag or a selector refers to.
    fn refer(
        &mut self,
        scope: Scope,
        name: Option<&str>,
        (what, location): (&str, &FieldLocation),
        stack: &[Frame<'_>],
    ) -> Result<Referred, Error> {
        let (found, places) = resolve::find(self, scope, location, stack);
        let path = location.path.join(".");
        let mut referred: Option<Referred> = None;
        for &place in &places {
            let one = match &self.nodes(found)[place].kind {
                Kind::Integer(integer, _) | Kind::Variable(integer, _) => Referred::new(integer),
                Kind::Enumeration(integer, class) | Kind::VariableEnumeration(integer, class) => {
                    Referred { labels: Some(class.clone()), ..Referred::new(integer) }
                }
                Kind::Boolean(integer) => Referred { boolean: true, ..Referred::new(integer) },
                _ => return Err(self.field_error(name, format!("its {what} `{path}` is no integer"))),
            };
            match &mut referred {
                None => referred = Some(one),
                Some(first) if (first.signed, first.boolean) != (one.signed, one.boolean) => {
                    let message = format!("its {what} `{path}` is of another kind from option to option");
                    return Err(self.field_error(name, message));
                }
                Some(first) if first.slot == NONE => first.slot = one.slot,
                Some(first) if one.slot != NONE && one.slot != first.slot => {
                    // The fields exclude each other, so that one slot does for both.
                    self.merged.push((first.slot, one.slot));
                }
                Some(_) => {}
            }
        }
        let Some(mut referred) = referred else {
            return Err(self.field_error(name, format!("its {what} `{path}` is no earlier field")));
        };
        if referred.slot == NONE {
            referred.slot = self.slots;
            self.slots += 1;
        }
        for place in places {
            if let Some(integer) = self.nodes(found)[place].kind.integer_mut() {
                integer.slot = referred.slot;
            }
        }
        self.outward[found as usize] |= found != scope;
        if found != scope
            && let Some(program) = &mut self.programs[found as usize]
        {
            // The referred field can no longer be skipped, nor can what contains it.
            set_skips(program, 0);
        }
        Ok(referred)
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

/// What a length, a tag or a selector refers to.
struct Referred {
    slot: u32,
    signed: bool,
    boolean: bool,
    labels: Option<Arc<EnumerationClass>>,
}

impl Referred {
    fn new(integer: &Integer) -> Self {
        Referred { slot: integer.slot, signed: integer.signed, boolean: false, labels: None }
    }
}

/// A string of so many bytes.
fn text(length: Length, encoding: Encoding) -> Kind {
    if encoding.unit() == 1 { Kind::Text { length } } else { Kind::WideText { length, encoding } }
}

/// Whether bits lie in the order that the byte order does not suggest.
fn is_reversed(byte_order: ByteOrder, bit_order: Option<BitOrder>) -> bool {
    bit_order.is_some_and(|order| (order == BitOrder::FirstToLast) != (byte_order == ByteOrder::Little))
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

/// Sets how far each node below and including `index` can be skipped; gives that of `index`.
fn set_skips(program: &mut Program, index: usize) -> u64 {
    const UNKNOWN: u64 = u64::MAX;
    let skip = match &program.nodes[index].kind {
        Kind::BitArray(integer, _)
        | Kind::BitMap(integer, _)
        | Kind::Boolean(integer)
        | Kind::Integer(integer, _)
        | Kind::Enumeration(integer, _) => {
            if integer.slot == NONE && integer.role == Role::None {
                u64::from(integer.size)
            } else {
                UNKNOWN
            }
        }
        Kind::Float { size, .. } => u64::from(*size),
        Kind::Text { length: Length::Fixed(length) }
        | Kind::WideText { length: Length::Fixed(length), .. }
        | Kind::Blob { length: Length::Fixed(length) } => length.checked_mul(8).unwrap_or(UNKNOWN),
        Kind::Variable(..)
        | Kind::VariableEnumeration(..)
        | Kind::String
        | Kind::WideString(_)
        | Kind::Text { .. }
        | Kind::WideText { .. }
        | Kind::Blob { .. } => UNKNOWN,
        Kind::Optional(optional) => {
            let field = optional.field as usize;
            set_skips(program, field);
            UNKNOWN
        }
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
