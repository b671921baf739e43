//! Goes through a trace class and puts another field class in the place of each.

use std::sync::Arc;

use super::places::{Places, Scopes};
use crate::Error;
use crate::model::{
    DynamicArrayClass, FieldClass, Member, OptionalClass, Scope, StaticArrayClass, StructureClass,
    TraceClass, VariantClass, VariantOption, Version,
};

/// What each field class becomes.
pub(super) trait Mapper {
    /// What a class becomes; what it contains has been mapped already.
    fn class(&mut self, class: FieldClass, places: &Places<'_>) -> Result<FieldClass, Error>;

    /// What an array becomes, if that does not follow from what its elements become.
    fn array(&mut self, class: &FieldClass, places: &Places<'_>) -> Result<Option<FieldClass>, Error> {
        let _ = (class, places);
        Ok(None)
    }

    /// What a member is called.
    fn name(&mut self, member: &Member, places: &Places<'_>) -> String {
        let _ = places;
        member.name.clone()
    }

    /// Looks at the members of a structure, as they have become.
    fn members(&mut self, members: &[Member], places: &Places<'_>) -> Result<(), Error> {
        let _ = (members, places);
        Ok(())
    }

    /// Says which data stream class and event record class come next, by index.
    fn enter(&mut self, stream: Option<usize>, event: Option<usize>) {
        let _ = (stream, event);
    }
}

/// The trace class with every field class mapped, and nothing else.
pub(super) fn map_trace(class: &TraceClass, mapper: &mut impl Mapper) -> Result<TraceClass, Error> {
    let mut mapped = class.clone();
    let mut scopes: Scopes<'_> = [None; 6];
    mapper.enter(None, None);
    let version = class.version;
    scopes[Scope::PacketHeader as usize] = class.packet_header.as_ref();
    mapped.packet_header = map_scope(&scopes, Scope::PacketHeader, version, mapper)?;
    for (index, stream) in class.data_stream_classes.iter().enumerate() {
        mapper.enter(Some(index), None);
        let to = &mut mapped.data_stream_classes[index];
        scopes[Scope::PacketContext as usize] = stream.packet_context.as_ref();
        scopes[Scope::EventHeader as usize] = stream.event_header.as_ref();
        scopes[Scope::CommonContext as usize] = stream.common_context.as_ref();
        to.packet_context = map_scope(&scopes, Scope::PacketContext, version, mapper)?;
        to.event_header = map_scope(&scopes, Scope::EventHeader, version, mapper)?;
        to.common_context = map_scope(&scopes, Scope::CommonContext, version, mapper)?;
        for (at, event) in stream.event_record_classes.iter().enumerate() {
            mapper.enter(Some(index), Some(at));
            let to = &mut to.event_record_classes[at];
            scopes[Scope::SpecificContext as usize] = event.specific_context.as_ref();
            scopes[Scope::Payload as usize] = event.payload.as_ref();
            let name = event.name.as_deref().unwrap_or_default();
            let of_event = |error| in_event(error, name);
            to.specific_context =
                map_scope(&scopes, Scope::SpecificContext, version, mapper).map_err(of_event)?;
            to.payload = map_scope(&scopes, Scope::Payload, version, mapper).map_err(of_event)?;
        }
    }
    Ok(mapped)
}

/// Adds the event's name to where something is wrong.
fn in_event(error: Error, name: &str) -> Error {
    match error {
        Error::TraceClass { place, fault, at } => {
            Error::TraceClass { place: format!("event \"{name}\", {place}"), fault, at }
        }
        other => other,
    }
}

fn map_scope(
    scopes: &Scopes<'_>,
    scope: Scope,
    version: Version,
    mapper: &mut impl Mapper,
) -> Result<Option<StructureClass>, Error> {
    let Some(class) = scopes[scope as usize] else { return Ok(None) };
    map_structure(class, &mut Places::new(*scopes, scope, version), mapper).map(Some)
}

fn map_structure<'c>(
    class: &'c StructureClass,
    places: &mut Places<'c>,
    mapper: &mut impl Mapper,
) -> Result<StructureClass, Error> {
    let members = places.members(class, |places, member| {
        let class = map_class(&member.class, places, mapper)?;
        Ok(Member { name: mapper.name(member, places), class, ..member.clone() })
    });
    let members = members.into_iter().collect::<Result<Vec<_>, Error>>()?;
    mapper.members(&members, places)?;
    Ok(StructureClass { min_align: class.min_align, members, attributes: class.attributes.clone() })
}

fn map_class<'c>(
    class: &'c FieldClass,
    places: &mut Places<'c>,
    mapper: &mut impl Mapper,
) -> Result<FieldClass, Error> {
    if let Some(mapped) = mapper.array(class, places)? {
        return Ok(mapped);
    }
    let inner = match class {
        FieldClass::Structure(class) => map_structure(class, places, mapper)?.into(),
        FieldClass::StaticArray(class) => {
            let element = map_class(&class.element, places, mapper)?;
            FieldClass::StaticArray(Arc::new(StaticArrayClass { element, ..StaticArrayClass::clone(class) }))
        }
        FieldClass::DynamicArray(class) => {
            let element = map_class(&class.element, places, mapper)?;
            FieldClass::DynamicArray(Arc::new(DynamicArrayClass {
                element,
                ..DynamicArrayClass::clone(class)
            }))
        }
        FieldClass::Optional(class) => {
            let inner = map_class(&class.class, places, mapper)?;
            OptionalClass { class: inner, ..OptionalClass::clone(class) }.into()
        }
        FieldClass::Variant(class) => {
            let options = class.options.iter().enumerate().map(|(index, option)| {
                let inner = |places: &mut Places<'c>| map_class(&option.class, places, mapper);
                let class = places.option(&option.name, index, inner)?;
                Ok(VariantOption { class, ..option.clone() })
            });
            let options = options.collect::<Result<_, Error>>()?;
            VariantClass { options, ..VariantClass::clone(class) }.into()
        }
        other => other.clone(),
    };
    mapper.class(inner, places)
}
