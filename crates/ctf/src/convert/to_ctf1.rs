//! A class of CTF 2 in TSDL's terms; the module's table says what becomes what.

use std::collections::HashSet;
use std::sync::Arc;

use super::map::{Mapper, map_trace};
use super::places::Places;
use super::ranges::{inside, without};
use super::tags::{Key, Tags};
use crate::model::{
    Attributes, BitArrayClass, ClockClass, DisplayBase, DynamicArrayClass, Encoding, EnumerationClass,
    FieldClass, FieldLocation, FloatClass, IntegerClass, Member, OptionalClass, Origin, Place, Role, Roles,
    Scope, StaticArrayClass, TraceClass, VariantClass, VariantOption, Version,
};
use crate::tsdl::{identifier, option_identifier};
use crate::{Error, TraceClassFault};
use tracewing_units::Cycles;

/// Converts a trace class to CTF 1.8; one of CTF 1.8 is returned unchanged.
///
/// # Errors
///
/// [`Error::TraceClass`] names the field that CTF 1.8 cannot express: a floating-point number of 128 bits, a
/// role below the top of the packet header or the packet context, or members whose names become the same
/// identifier.
pub fn to_ctf1(class: &TraceClass) -> Result<TraceClass, Error> {
    if class.version == Version::V1_8 {
        return Ok(class.clone());
    }
    let mut mapper = ToCtf1 { class, stream: None, event: None, tags: Tags::default(), failed: None };
    let mut converted = map_trace(class, &mut mapper)?;
    if let Some(error) = mapper.failed {
        return Err(error);
    }
    mapper.tags.apply(class, &mut converted)?;
    converted.version = Version::V1_8;
    converted.uuid = class.uuid.or_else(|| class.uid.as_deref().and_then(super::uuid));
    (converted.namespace, converted.name, converted.uid) = (None, None, None);
    converted.attributes = Attributes::default();
    converted.clock_classes.iter_mut().for_each(clock);
    for stream in &mut converted.data_stream_classes {
        (stream.namespace, stream.name, stream.uid) = (None, None, None);
        stream.attributes = Attributes::default();
        for event in &mut stream.event_record_classes {
            (event.namespace, event.uid) = (None, None);
            // babeltrace2 wants a name.
            event.name.get_or_insert_default();
            event.attributes = Attributes::default();
        }
    }
    Ok(converted)
}

fn clock(class: &mut ClockClass) {
    class.uuid = class.uuid.or_else(|| class.uid.as_deref().and_then(super::uuid));
    class.precision = class.precision.or(Some(Cycles::ZERO));
    (class.namespace, class.uid, class.accuracy) = (None, None, None);
    class.name = Some(class.id.clone());
    class.attributes = Attributes::default();
}

struct ToCtf1<'c> {
    class: &'c TraceClass,
    stream: Option<usize>,
    event: Option<usize>,
    tags: Tags,
    /// What was wrong with a name.
    failed: Option<Error>,
}

impl Mapper for ToCtf1<'_> {
    fn enter(&mut self, stream: Option<usize>, event: Option<usize>) {
        (self.stream, self.event) = (stream, event);
    }

    fn class(&mut self, class: FieldClass, places: &Places<'_>) -> Result<FieldClass, Error> {
        Ok(match class {
            FieldClass::BitArray(class) => bits(&class).into(),
            FieldClass::BitMap(class) => bits(&class.bits).into(),
            FieldClass::Boolean(class) => {
                let last = u64::MAX >> (64 - class.size.clamp(1, 64));
                let integer = IntegerClass { base: DisplayBase::Decimal, ..bits(&class) };
                EnumerationClass::new(integer).with("false", 0, 0).with("true", 1, last).into()
            }
            FieldClass::Integer(class) => self.integer(class).into(),
            FieldClass::VariableInteger(class) => self.integer(fixed(class)).into(),
            FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class)
                if class.mappings.is_empty() =>
            {
                self.integer(class.integer.clone()).into()
            }
            FieldClass::Enumeration(class) => {
                let integer = self.integer(class.integer.clone());
                EnumerationClass { integer, mappings: class.mappings.clone() }.into()
            }
            FieldClass::VariableEnumeration(class) => {
                let integer = self.integer(fixed(class.integer.clone()));
                EnumerationClass { integer, mappings: class.mappings.clone() }.into()
            }
            FieldClass::Float(class) => match class.size {
                16 => FloatClass { size: 32, bit_order: None, attributes: Attributes::default(), ..class },
                128 => {
                    return Err(refuse(places, TraceClassFault::Float128));
                }
                _ => FloatClass { bit_order: None, attributes: Attributes::default(), ..class },
            }
            .into(),
            FieldClass::String(_) => FieldClass::string(),
            FieldClass::StaticString(class) => text_array(match class.encoding {
                // A code unit becomes three bytes at most, a pair of them four.
                Encoding::Utf16Be | Encoding::Utf16Le => (class.length / 2).saturating_mul(3),
                _ => class.length,
            }),
            FieldClass::DynamicString(class) if class.encoding.unit() > 1 => FieldClass::string(),
            FieldClass::DynamicString(class) => self.sequence(text_byte(), &class.length, places)?,
            FieldClass::StaticBlob(class) => FieldClass::array(byte(), class.length),
            FieldClass::DynamicBlob(class) => self.sequence(byte(), &class.length, places)?,
            FieldClass::StaticArray(class) => {
                FieldClass::StaticArray(Arc::new(StaticArrayClass::new(class.length, class.element.clone())))
            }
            FieldClass::DynamicArray(class) => self.sequence(class.element.clone(), &class.length, places)?,
            FieldClass::Structure(mut class) => {
                Arc::make_mut(&mut class).attributes = Attributes::default();
                FieldClass::Structure(class)
            }
            FieldClass::Optional(class) => self.optional(&class, places)?.into(),
            FieldClass::Variant(class) => self.variant(&class, places)?.into(),
        })
    }

    fn members(&mut self, members: &[Member], places: &Places<'_>) -> Result<(), Error> {
        let mut names = HashSet::with_capacity(members.len());
        match members.iter().map(|member| identifier(&member.name)).find(|name| !names.insert(name.clone())) {
            Some(name) => Err(refuse(places, TraceClassFault::SameName(name.to_owned()))),
            None => Ok(()),
        }
    }

    fn name(&mut self, member: &Member, places: &Places<'_>) -> String {
        match new_name(member, places.scope, places.is_top()) {
            Ok(name) => name,
            Err(fault) => {
                self.failed.get_or_insert_with(|| refuse(places, fault));
                member.name.clone()
            }
        }
    }
}

impl ToCtf1<'_> {
    /// Of roles, only clocks are said in the class itself.
    fn integer(&self, class: IntegerClass) -> IntegerClass {
        let is_stamp = class.roles.has(Role::DefaultClockTimestamp)
            || class.roles.has(Role::PacketEndDefaultClockTimestamp);
        let clock =
            self.stream.and_then(|stream| self.class.data_stream_classes[stream].default_clock.as_deref());
        IntegerClass {
            bit_order: None,
            mapped_clock: clock.filter(|_| is_stamp).map(Into::into),
            attributes: Attributes::default(),
            ..class
        }
    }

    fn sequence(
        &self,
        element: impl Into<FieldClass>,
        length: &FieldLocation,
        places: &Places<'_>,
    ) -> Result<FieldClass, Error> {
        let length = location(length, places)?;
        Ok(FieldClass::DynamicArray(Arc::new(DynamicArrayClass::new(length, element))))
    }

    /// A variant of `none` and `some`.
    fn optional(&mut self, class: &OptionalClass, places: &Places<'_>) -> Result<VariantClass, Error> {
        let (key, all) = self.tag(&class.selector, places)?;
        let chosen = match class.ranges.as_slice() {
            [] => without(&all, &[(0, 0)]),
            ranges => inside(ranges, &all),
        };
        let mut variant = VariantClass::new(location(&class.selector, places)?);
        for (name, ranges, class) in [
            ("none", without(&all, &chosen), crate::model::StructureClass::new().into()),
            ("some", chosen, class.class.clone()),
        ] {
            if !ranges.is_empty() {
                let label = self.tags.label(&key, name, &ranges, &[]);
                variant.options.push(VariantOption::new(label, class));
            }
        }
        Ok(variant)
    }

    /// Options are selected by labels, so the selector becomes an enumeration, if it is none.
    fn variant(&mut self, class: &VariantClass, places: &Places<'_>) -> Result<VariantClass, Error> {
        let (key, all) = self.tag(&class.tag, places)?;
        let mut variant = VariantClass::new(location(&class.tag, places)?);
        let mut taken = Vec::new();
        for (index, option) in class.options.iter().enumerate() {
            let name = match option.name.as_str() {
                "" => format!("option_{index}"),
                name => option_identifier(name),
            };
            let ranges = inside(&option.ranges, &all);
            let label = self.tags.label(&key, &name, &ranges, &taken);
            taken.extend(ranges);
            variant.options.push(VariantOption::new(label, option.class.clone()));
        }
        Ok(variant)
    }

    /// The selector at `location`, and all values that it can have.
    fn tag(
        &mut self,
        location: &FieldLocation,
        places: &Places<'_>,
    ) -> Result<(Key, Vec<(i128, i128)>), Error> {
        let found = places.find(location).ok_or_else(|| super::no_field(location, places))?;
        let (integer, mappings) = match found.class {
            FieldClass::Boolean(class) => {
                (bits(class), EnumerationClass::new(bits(class)).with("false", 0, 0))
            }
            FieldClass::Integer(class) => (class.clone(), EnumerationClass::new(class.clone())),
            FieldClass::VariableInteger(class) => {
                (fixed(class.clone()), EnumerationClass::new(class.clone()))
            }
            FieldClass::Enumeration(class) => (class.integer.clone(), EnumerationClass::clone(class)),
            FieldClass::VariableEnumeration(class) => {
                (fixed(class.integer.clone()), EnumerationClass::clone(class))
            }
            _ => return Err(refuse(places, TraceClassFault::Selector)),
        };
        let size = integer.size.clamp(1, 64);
        let all = match integer.signed {
            true => (-(1_i128 << (size - 1)), (1_i128 << (size - 1)) - 1),
            false => (0, (1_i128 << size) - 1),
        };
        let of_packet = found.scope == Scope::PacketHeader;
        let of_event = found.scope >= Scope::SpecificContext;
        let key = Key {
            stream: self.stream.filter(|_| !of_packet),
            event: self.event.filter(|_| of_event),
            scope: found.scope,
            indices: found.way.indices,
        };
        let mut labels: Vec<_> =
            mappings.mappings.into_iter().map(|mapping| (mapping.label, mapping.ranges)).collect();
        if let FieldClass::Boolean(_) = found.class {
            labels.push(("true".to_owned(), vec![(1, all.1)]));
        }
        self.tags.know(&key, labels);
        Ok((key, vec![all]))
    }
}

fn refuse(places: &Places<'_>, fault: TraceClassFault) -> Error {
    Error::TraceClass { place: places.text(), fault: Box::new(fault), at: Place::default() }
}

fn byte() -> IntegerClass {
    IntegerClass::unsigned(8).with_base(DisplayBase::Hexadecimal)
}

fn text_byte() -> IntegerClass {
    IntegerClass::unsigned(8).with_encoding(Encoding::Utf8)
}

fn text_array(length: u64) -> FieldClass {
    FieldClass::array(text_byte(), length)
}

/// Bits as a number.
fn bits(class: &BitArrayClass) -> IntegerClass {
    IntegerClass {
        align: class.align,
        byte_order: class.byte_order,
        base: DisplayBase::Hexadecimal,
        ..IntegerClass::unsigned(class.size)
    }
}

/// An integer of variable length as one of 64 bits.
fn fixed(class: IntegerClass) -> IntegerClass {
    IntegerClass { size: 64, align: 8, ..class }
}

/// A reference by as few names as mean the same field, else from the scope's root. babeltrace2 takes only one
/// name for a tag.
fn location(location: &FieldLocation, places: &Places<'_>) -> Result<FieldLocation, Error> {
    let found = places.find(location).ok_or_else(|| super::no_field(location, places))?;
    let path = new_path(&found.way.names, found.scope, places);
    let mut around = places.around(&found).map(|(depth, _)| depth);
    Ok(match around.find(|depth| places.is_meant_by(&found.way.names[*depth..], &found)) {
        Some(depth) => FieldLocation::new(Origin::Search, path[depth..].to_vec()),
        None => FieldLocation::new(Origin::Scope(found.scope), path),
    })
}

/// The path from the root of a scope, with the names that members get.
fn new_path(path: &[String], scope: Scope, places: &Places<'_>) -> Vec<String> {
    let mut path = path.to_vec();
    let root = places.scopes[scope as usize].and_then(|class| class.member(&path[0]));
    if let Some(name) = root.and_then(|member| new_name(member, scope, true).ok()) {
        path[0] = name;
    }
    path
}

/// Roles are said by names: a member gets the one of its role, and none that has a role it does not have.
fn new_name(member: &Member, scope: Scope, top: bool) -> Result<String, TraceClassFault> {
    let roles = roles(&member.class);
    let names: &[(Role, &str)] = match scope {
        Scope::PacketHeader => &[
            (Role::PacketMagicNumber, "magic"),
            (Role::MetadataStreamUuid, "uuid"),
            (Role::DataStreamClassId, "stream_id"),
            (Role::DataStreamId, "stream_instance_id"),
        ],
        Scope::PacketContext => &[
            (Role::PacketTotalLength, "packet_size"),
            (Role::PacketContentLength, "content_size"),
            (Role::DefaultClockTimestamp, "timestamp_begin"),
            (Role::PacketEndDefaultClockTimestamp, "timestamp_end"),
            (Role::DiscardedEventRecordCounterSnapshot, "events_discarded"),
            (Role::PacketSequenceNumber, "packet_seq_num"),
        ],
        Scope::EventHeader => &[(Role::EventRecordClassId, "id")],
        _ => return Ok(member.name.clone()),
    };
    if let Some((role, name)) = names.iter().find(|(role, _)| roles.has(*role)) {
        if !top && scope != Scope::EventHeader {
            return Err(TraceClassFault::NestedRole(*role));
        }
        return Ok((*name).to_owned());
    }
    match names.iter().any(|(_, name)| *name == member.name) && (top || scope == Scope::EventHeader) {
        true => Ok(format!("{}_", member.name)),
        false => Ok(member.name.clone()),
    }
}

fn roles(class: &FieldClass) -> Roles {
    match class {
        FieldClass::Integer(class) | FieldClass::VariableInteger(class) => class.roles,
        FieldClass::Enumeration(class) | FieldClass::VariableEnumeration(class) => class.integer.roles,
        FieldClass::StaticBlob(class) => class.roles,
        _ => Roles::NONE,
    }
}
