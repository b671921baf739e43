//! The labels that selectors need to be tags: collected on the way, put in place at the end.

use std::collections::HashMap;
use std::sync::Arc;

use super::ranges::{Ranges, normal};
use crate::Error;
use crate::model::{EnumerationClass, FieldClass, Scope, StructureClass, TraceClass};

/// A field of a trace class: its data stream class and event record class by index, as far as its scope has them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) stream: Option<usize>,
    pub(super) event: Option<usize>,
    pub(super) scope: Scope,
    pub(super) path: Vec<String>,
}

/// Labels by field.
#[derive(Debug, Default)]
pub(super) struct Tags(HashMap<Key, Vec<(String, Ranges)>>);

impl Tags {
    /// Notes the labels that a field has already.
    pub(super) fn know(&mut self, key: &Key, labels: Vec<(String, Ranges)>) {
        if !self.0.contains_key(key) {
            self.0.insert(key.clone(), labels);
        }
    }

    /// A label of a field for just these values: `name`, or with a number behind it where that means other values.
    pub(super) fn label(&mut self, key: &Key, name: &str, ranges: &[(i128, i128)]) -> String {
        let labels = self.0.entry(key.clone()).or_default();
        let wanted = normal(ranges);
        let mut label = name.to_owned();
        for number in 2.. {
            match labels.iter().find(|(known, _)| *known == label) {
                Some((_, known)) if normal(known) == wanted => return label,
                Some(_) => label = format!("{name}_{number}"),
                None => break,
            }
        }
        labels.push((label.clone(), wanted));
        label
    }

    /// Gives the fields their labels; those that are integers become enumerations.
    pub(super) fn apply(self, class: &mut TraceClass) -> Result<(), Error> {
        for (key, labels) in self.0 {
            let root = match (key.scope, key.stream, key.event) {
                (Scope::PacketHeader, ..) => &mut class.packet_header,
                (scope, Some(stream), event) => {
                    let stream = &mut class.data_stream_classes[stream];
                    match (scope, event) {
                        (Scope::PacketContext, _) => &mut stream.packet_context,
                        (Scope::EventHeader, _) => &mut stream.event_header,
                        (Scope::CommonContext, _) => &mut stream.common_context,
                        (Scope::SpecificContext, Some(event)) => {
                            &mut stream.event_record_classes[event].specific_context
                        }
                        (_, Some(event)) => &mut stream.event_record_classes[event].payload,
                        _ => continue,
                    }
                }
                _ => continue,
            };
            let place = || Error::TraceClass {
                place: format!("field `{}`", key.path.join(".")),
                message: "it selects another field, and CTF 1.8 cannot say where it is".to_owned(),
            };
            let field = root.as_mut().and_then(|root| at(root, &key.path)).ok_or_else(place)?;
            let mut tag = match field {
                FieldClass::Integer(class) => EnumerationClass::new(class.clone()),
                FieldClass::Enumeration(class) => EnumerationClass::clone(class),
                _ => return Err(place()),
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

/// The field at `path`, through arrays and whatever has become of optionals.
fn at<'c>(root: &'c mut StructureClass, path: &[String]) -> Option<&'c mut FieldClass> {
    let (head, tail) = path.split_first()?;
    let member = root.members.iter_mut().find(|member| member.name == *head)?;
    below(&mut member.class, tail)
}

fn below<'c>(class: &'c mut FieldClass, path: &[String]) -> Option<&'c mut FieldClass> {
    let Some((head, tail)) = path.split_first() else { return Some(class) };
    match class {
        FieldClass::StaticArray(array) => below(&mut Arc::make_mut(array).element, path),
        FieldClass::DynamicArray(array) => below(&mut Arc::make_mut(array).element, path),
        FieldClass::Structure(class) => at(Arc::make_mut(class), path),
        FieldClass::Variant(variant) => {
            let options = &mut Arc::make_mut(variant).options;
            let option = options.iter_mut().find(|option| option.name == *head)?;
            below(&mut option.class, tail)
        }
        _ => None,
    }
}
