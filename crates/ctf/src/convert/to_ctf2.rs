//! A class of CTF 1.8 in CTF 2's terms; it can say everything that TSDL can.

use std::sync::Arc;

use super::map::{Mapper, map_trace};
use super::places::Places;
use super::ranges::without;
use crate::Error;
use crate::log_level;
use crate::model::{
    Attribute, Attributes, ClockClass, DEFAULT_MEDIA_TYPE, DataStreamClass, DynamicStringClass, Encoding,
    EventRecordClass, FieldClass, FieldLocation, IntegerClass, Origin, Role, Roles, Scope, StaticBlobClass,
    StaticStringClass, StringClass, StructureClass, TraceClass, VariantClass, VariantOption, Version,
};

/// The same trace class for CTF 2; a class of CTF 2 as it is.
///
/// # Errors
///
/// [`Error::TraceClass`] if a length or a tag refers to no field.
pub fn to_ctf2(class: &TraceClass) -> Result<TraceClass, Error> {
    if class.version == Version::V2 {
        return Ok(class.clone());
    }
    let mut class = class.clone();
    class.fill_roles();
    let mut converted = map_trace(&class, &mut ToCtf2 { has_uuid: class.uuid.is_some() })?;
    converted.version = Version::V2;
    converted.clock_classes.iter_mut().for_each(clock);
    for stream in &mut converted.data_stream_classes {
        stream.event_record_classes.iter_mut().for_each(event);
    }
    drop_implicit_ids(&mut converted);
    if converted.data_stream_classes.is_empty() {
        converted.data_stream_classes.push(DataStreamClass::new(0)); // CTF 2 requires one
    }
    Ok(converted)
}

/// A class without an id is class 0 in CTF 2, but the only class in CTF 1.8.
fn drop_implicit_ids(class: &mut TraceClass) {
    let has_id = |scope: &Option<StructureClass>, role| {
        scope.as_ref().is_some_and(|scope| scope.role_bits(role).is_some())
    };
    if let ([only], false) =
        (class.data_stream_classes.as_mut_slice(), has_id(&class.packet_header, Role::DataStreamClassId))
    {
        only.id = 0;
    }
    for stream in &mut class.data_stream_classes {
        if let ([only], false) = (
            stream.event_record_classes.as_mut_slice(),
            has_id(&stream.event_header, Role::EventRecordClassId),
        ) {
            only.id = 0;
        }
    }
}

struct ToCtf2 {
    /// Whether there is a UUID that packets may repeat.
    has_uuid: bool,
}

impl Mapper for ToCtf2 {
    fn class(&mut self, class: FieldClass, places: &Places<'_>) -> Result<FieldClass, Error> {
        Ok(match class {
            FieldClass::Integer(class) => FieldClass::Integer(integer(class, places)),
            FieldClass::Enumeration(mut class) => {
                let inner = &mut Arc::make_mut(&mut class).integer;
                *inner = integer(inner.clone(), places);
                FieldClass::Enumeration(class)
            }
            FieldClass::String(_) => FieldClass::String(StringClass::new(Encoding::Utf8)),
            FieldClass::StaticArray(class)
                if self.has_uuid && is_uuid(&class.element, class.length, places) =>
            {
                FieldClass::StaticBlob(Arc::new(StaticBlobClass {
                    length: class.length,
                    media_type: DEFAULT_MEDIA_TYPE.to_owned(),
                    roles: Role::MetadataStreamUuid.into(),
                    attributes: Attributes::default(),
                }))
            }
            FieldClass::DynamicArray(mut class) => {
                Arc::make_mut(&mut class).length = location(&class.length, places)?;
                FieldClass::DynamicArray(class)
            }
            FieldClass::Variant(class) => variant(&class, places)?.into(),
            other => other,
        })
    }

    /// Arrays of text bytes are strings.
    fn array(&mut self, class: &FieldClass, places: &Places<'_>) -> Result<Option<FieldClass>, Error> {
        Ok(match class {
            FieldClass::StaticArray(class) if is_text(&class.element) => {
                Some(FieldClass::StaticString(Arc::new(StaticStringClass {
                    length: class.length,
                    encoding: Encoding::Utf8,
                    attributes: Attributes::default(),
                })))
            }
            FieldClass::DynamicArray(class) if is_text(&class.element) => {
                Some(FieldClass::DynamicString(Arc::new(DynamicStringClass {
                    length: location(&class.length, places)?,
                    encoding: Encoding::Utf8,
                    attributes: Attributes::default(),
                })))
            }
            _ => None,
        })
    }
}

/// Whether an array of these is text, as the decoder has it.
fn is_text(element: &FieldClass) -> bool {
    matches!(element, FieldClass::Integer(class)
        if class.size == 8 && class.align == 8 && class.encoding != Encoding::None)
}

fn is_uuid(element: &FieldClass, length: u64, places: &Places<'_>) -> bool {
    let is_byte = matches!(element, FieldClass::Integer(class) if class.size == 8 && class.align == 8);
    places.scope == Scope::PacketHeader
        && places.is_top()
        && places.name() == "uuid"
        && length == 16
        && is_byte
}

/// Clocks are mapped by roles, which only the packet context and the event record header have.
fn integer(mut class: IntegerClass, places: &Places<'_>) -> IntegerClass {
    class.mapped_clock = None;
    class.encoding = Encoding::None;
    if places.scope > Scope::EventHeader {
        class.roles = Roles::NONE;
    } else if places.scope == Scope::PacketHeader {
        let others = class.roles.iter().filter(|role| *role != Role::DefaultClockTimestamp);
        class.roles = others.fold(Roles::NONE, Roles::with);
    }
    class
}

fn location(location: &FieldLocation, places: &Places<'_>) -> Result<FieldLocation, Error> {
    let found = places.find(location).ok_or_else(|| super::no_field(location, places))?;
    Ok(match places.around(&found).next() {
        Some((depth, up)) => FieldLocation::new(Origin::Relative { up }, found.way.members_after(depth)),
        None => FieldLocation::new(Origin::Scope(found.scope), found.way.members_after(0)),
    })
}

/// Options are selected by values instead of labels. A value with several labels selects the first option of
/// them.
fn variant(class: &VariantClass, places: &Places<'_>) -> Result<VariantClass, Error> {
    let found = places.find(&class.tag).ok_or_else(|| super::no_field(&class.tag, places))?;
    let mut taken = Vec::new();
    let mut options = Vec::new();
    for option in &class.options {
        let mut ranges = option.ranges.clone();
        if let FieldClass::Enumeration(tag) = found.class
            && ranges.is_empty()
        {
            let labelled = tag.mappings.iter().find(|mapping| mapping.label == option.name);
            ranges = labelled.map(|mapping| mapping.ranges.clone()).unwrap_or_default();
        }
        let ranges = without(&ranges, &taken);
        taken.extend_from_slice(&ranges);
        if !ranges.is_empty() {
            options.push(VariantOption { ranges, ..option.clone() });
        }
    }
    Ok(VariantClass { tag: location(&class.tag, places)?, options, attributes: Attributes::default() })
}

/// The offset's cycles are less than a second's there.
fn clock(class: &mut ClockClass) {
    let whole =
        class.offset_cycles.0.checked_div(class.frequency).and_then(|whole| i64::try_from(whole).ok());
    if let Some(seconds) = whole.and_then(|whole| class.offset_seconds.checked_add(whole)) {
        class.offset_seconds = seconds;
        class.offset_cycles.0 %= class.frequency;
    }
    class.uid = class.uid.take().or_else(|| class.uuid.map(|uuid| crate::tsdl::uuid_text(&uuid)));
}

/// LTTng's properties of events are attributes in CTF 2.
fn event(class: &mut EventRecordClass) {
    let mut entries = Vec::new();
    if let Some(level) = class.log_level {
        let level = log_level::name(level).map_or(Attribute::Integer(level), Attribute::from);
        entries.push(("log-level".to_owned(), level));
    }
    if let Some(uri) = &class.emf_uri {
        entries.push(("emf-uri".to_owned(), uri.as_str().into()));
    }
    if !entries.is_empty() {
        class.attributes = Attributes::new(vec![(log_level::NAMESPACE.to_owned(), Attribute::Map(entries))]);
    }
}
