//! The labels that selectors need to be tags: collected on the way, put in place at the end.

use std::collections::HashMap;
use std::sync::Arc;

use super::ranges::{Ranges, normal, without};
use crate::model::{EnumerationClass, FieldClass, Place, Scope, StructureClass, TraceClass};
use crate::{Error, TraceClassFault};

/// A field of a trace class: its data stream class and event record class by index, as far as its scope has
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) stream: Option<usize>,
    pub(super) event: Option<usize>,
    pub(super) scope: Scope,
    /// Members of structures and options of variants on the way, by place.
    pub(super) indices: Vec<usize>,
}

/// The labels of fields, with their ranges.
#[derive(Debug, Default)]
pub(super) struct Tags(HashMap<Key, Vec<(String, Ranges)>>);

impl Tags {
    /// Notes the labels that a field has already.
    pub(super) fn know(&mut self, key: &Key, labels: Vec<(String, Ranges)>) {
        if !self.0.contains_key(key) {
            self.0.insert(key.clone(), labels);
        }
    }

    /// A label of a field for exactly these values: `name`, with a number appended if `name` has other
    /// values. `taken` values are ignored, since earlier options have them.
    pub(super) fn label(
        &mut self,
        key: &Key,
        name: &str,
        ranges: &[(i128, i128)],
        taken: &[(i128, i128)],
    ) -> String {
        let labels = self.0.entry(key.clone()).or_default();
        let normalized = normal(ranges);
        let mut label = name.to_owned();
        for number in 2.. {
            match labels.iter().find(|(known, _)| *known == label) {
                Some((_, known)) if normal(&without(known, taken)) == normalized => return label,
                Some(_) => label = format!("{name}_{number}"),
                None => break,
            }
        }
        labels.push((label.clone(), normalized));
        label
    }

    /// Gives the fields of `class` their labels; those that are integers become enumerations. `original` is
    /// what `class` was converted from.
    pub(super) fn apply(self, original: &TraceClass, class: &mut TraceClass) -> Result<(), Error> {
        for (key, labels) in self.0 {
            let unreachable = || Error::TraceClass {
                place: format!("{:?}", key.scope),
                fault: Box::new(TraceClassFault::Unreachable),
                at: Place::default(),
            };
            let original = root(original, &key).ok_or_else(unreachable)?;
            let converted = root_mut(class, &key).ok_or_else(unreachable)?;
            let field = at(original, converted, &key.indices).ok_or_else(unreachable)?;
            let mut tag = match field {
                FieldClass::Integer(class) => EnumerationClass::new(class.clone()),
                FieldClass::Enumeration(class) => EnumerationClass::clone(class),
                _ => return Err(unreachable()),
            };
            for (label, ranges) in labels {
                if !tag.mappings.iter().any(|mapping| mapping.label == label) {
                    ranges.into_iter().for_each(|(first, last)| tag.add(label.clone(), first, last));
                }
            }
            *field = tag.into();
        }
        Ok(())
    }
}

/// The scope of a field.
fn root<'c>(class: &'c TraceClass, key: &Key) -> Option<&'c StructureClass> {
    let stream = || class.data_stream_classes.get(key.stream?);
    let event = || stream()?.event_record_classes.get(key.event?);
    match key.scope {
        Scope::PacketHeader => class.packet_header.as_ref(),
        Scope::PacketContext => stream()?.packet_context.as_ref(),
        Scope::EventHeader => stream()?.event_header.as_ref(),
        Scope::CommonContext => stream()?.common_context.as_ref(),
        Scope::SpecificContext => event()?.specific_context.as_ref(),
        Scope::Payload => event()?.payload.as_ref(),
    }
}

fn root_mut<'c>(class: &'c mut TraceClass, key: &Key) -> Option<&'c mut StructureClass> {
    if key.scope == Scope::PacketHeader {
        return class.packet_header.as_mut();
    }
    let stream = class.data_stream_classes.get_mut(key.stream?)?;
    match key.scope {
        Scope::PacketContext => stream.packet_context.as_mut(),
        Scope::EventHeader => stream.event_header.as_mut(),
        Scope::CommonContext => stream.common_context.as_mut(),
        Scope::SpecificContext => stream.event_record_classes.get_mut(key.event?)?.specific_context.as_mut(),
        _ => stream.event_record_classes.get_mut(key.event?)?.payload.as_mut(),
    }
}

/// The field at `path`.
fn at<'c>(
    original: &StructureClass,
    converted: &'c mut StructureClass,
    path: &[usize],
) -> Option<&'c mut FieldClass> {
    let (head, tail) = path.split_first()?;
    below(&original.members.get(*head)?.class, &mut converted.members.get_mut(*head)?.class, tail)
}

fn below<'c>(
    original: &FieldClass,
    converted: &'c mut FieldClass,
    path: &[usize],
) -> Option<&'c mut FieldClass> {
    let Some((head, tail)) = path.split_first() else { return Some(converted) };
    match (original, converted) {
        (FieldClass::StaticArray(original), FieldClass::StaticArray(array)) => {
            below(&original.element, &mut Arc::make_mut(array).element, path)
        }
        (FieldClass::DynamicArray(original), FieldClass::DynamicArray(array)) => {
            below(&original.element, &mut Arc::make_mut(array).element, path)
        }
        (FieldClass::Structure(original), FieldClass::Structure(class)) => {
            at(original, Arc::make_mut(class), path)
        }
        // The last option is what is there.
        (FieldClass::Optional(original), FieldClass::Variant(variant)) => {
            below(&original.class, &mut Arc::make_mut(variant).options.last_mut()?.class, path)
        }
        (FieldClass::Variant(original), FieldClass::Variant(variant)) => {
            let option = Arc::make_mut(variant).options.get_mut(*head)?;
            below(&original.options.get(*head)?.class, &mut option.class, tail)
        }
        _ => None,
    }
}
