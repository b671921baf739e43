//! JSON values that know where they stand, so that an error can show the place.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::Expected;
use crate::metadata_text::{error_at, most_field_classes};
use crate::model::{Attribute, Attributes, Place};
use crate::{Error, JsonFault, MetadataFault, ParserText};

/// Attributes inside one another.
const DEEPEST_ATTRIBUTE: u32 = 64;

/// One JSON text among the fragments of a metadata stream.
#[derive(Clone, Copy)]
pub(super) struct Source<'t> {
    /// The whole metadata stream.
    pub(super) text: &'t str,
    /// Index of the fragment, from 1.
    pub(super) fragment: usize,
}

impl Source<'_> {
    /// An error at a byte offset of the metadata stream.
    #[cold]
    pub(super) fn error_at(&self, at: usize, fault: impl Into<JsonFault>) -> Error {
        error_at(self.text, at, MetadataFault::Json { fragment: self.fragment, fault: fault.into() })
    }
}

/// A JSON value: its text.
#[derive(Clone, Copy)]
pub(super) struct Value<'t> {
    source: Source<'t>,
    /// A part of the source's text.
    raw: &'t str,
}

/// An object's members in the order of the text, borrowed from it.
struct Entries<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl<'t> Value<'t> {
    /// Checks that `raw`, a part of the source's text, is one JSON value.
    pub(super) fn parse(source: Source<'t>, raw: &'t str) -> Result<Self, Error> {
        let whole = Value { source, raw };
        match serde_json::from_str::<&RawValue>(raw) {
            Ok(value) => Ok(Value { source, raw: value.get() }),
            Err(error) => {
                // The library counts lines, and bytes within them, from 1. After the last line there is
                // nothing to point at.
                let before: usize =
                    raw.split_inclusive('\n').take(error.line().max(1) - 1).map(str::len).sum();
                let at = (before + error.column().saturating_sub(1)).min(raw.len().saturating_sub(1));
                let mut reason = error.to_string();
                // The place is that in `raw`, not in the metadata.
                reason.truncate(reason.rfind(" at line").unwrap_or(reason.len()));
                let fault = JsonFault::Syntax(ParserText(reason));
                Err(source.error_at(whole.start() + at, fault))
            }
        }
    }

    /// Offset in bytes in the metadata stream.
    fn start(&self) -> usize {
        (self.raw.as_ptr() as usize).saturating_sub(self.source.text.as_ptr() as usize)
    }

    /// Its offset in the text.
    pub(super) fn place(&self) -> Place {
        Place::new(self.start())
    }

    /// How many field classes a metadata stream like this one may have.
    pub(super) fn most_field_classes(&self) -> u64 {
        most_field_classes(self.source.text.len())
    }

    #[cold]
    pub(super) fn error(&self, fault: impl Into<JsonFault>) -> Error {
        self.source.error_at(self.start(), fault)
    }

    /// What the JSON parser has against a value.
    #[cold]
    fn unreadable(&self, error: &serde_json::Error) -> Error {
        self.error(JsonFault::Unreadable(ParserText(error.to_string())))
    }

    #[cold]
    fn unexpected(&self, expected: Expected) -> Error {
        let shown: String = self.raw.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let more = if shown.len() < self.raw.len() { "…" } else { "" };
        self.error(JsonFault::Unexpected { expected, found: shown + more })
    }

    pub(super) fn object(self) -> Result<Object<'t>, Error> {
        if !self.raw.starts_with('{') {
            return Err(self.unexpected(Expected::Object));
        }
        let Entries(entries) = serde_json::from_str(self.raw).map_err(|error| self.unreadable(&error))?;
        let value = |raw: &'t RawValue| Value { source: self.source, raw: raw.get() };
        let entries: Vec<_> = entries.into_iter().map(|(name, raw)| (name, value(raw), false)).collect();
        let mut names = std::collections::HashSet::new();
        for (name, value, _) in &entries {
            if !names.insert(name.as_str()) {
                return Err(value.error(JsonFault::SecondProperty(name.clone())));
            }
        }
        Ok(Object { whole: self, entries })
    }

    pub(super) fn array(self) -> Result<Vec<Value<'t>>, Error> {
        if !self.raw.starts_with('[') {
            return Err(self.unexpected(Expected::Array));
        }
        let items: Vec<&RawValue> =
            serde_json::from_str(self.raw).map_err(|error| self.unreadable(&error))?;
        Ok(items.into_iter().map(|raw| Value { source: self.source, raw: raw.get() }).collect())
    }

    pub(super) fn is_string(&self) -> bool {
        self.raw.starts_with('"')
    }

    pub(super) fn is_null(&self) -> bool {
        self.raw == "null"
    }

    pub(super) fn string(&self) -> Result<String, Error> {
        if !self.is_string() {
            return Err(self.unexpected(Expected::String));
        }
        serde_json::from_str(self.raw).map_err(|error| self.unreadable(&error))
    }

    /// An integer from `least` to `most`; a number with fraction or exponent is none.
    pub(super) fn integer(&self, least: i128, most: i128) -> Result<i128, Error> {
        match self.raw.parse::<i128>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.unexpected(Expected::Integer { least, most })),
        }
    }

    pub(super) fn unsigned(&self) -> Result<u64, Error> {
        Ok(self.integer(0, u64::MAX.into())? as u64)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Error> {
        let found = self.string()?;
        words.iter().find(|(word, _)| *word == found).map(|(_, meaning)| *meaning).ok_or_else(|| {
            self.unexpected(Expected::Word(words.iter().map(|(word, _)| (*word).to_owned()).collect()))
        })
    }

    /// The value as it is, for attributes.
    pub(super) fn attribute(self) -> Result<Attribute, Error> {
        self.attribute_within(DEEPEST_ATTRIBUTE)
    }

    /// As [`Value::attribute`], at most `levels` deep: this recurses.
    fn attribute_within(self, levels: u32) -> Result<Attribute, Error> {
        let Some(levels) = levels.checked_sub(1) else {
            return Err(self.error(JsonFault::DeepAttributes(DEEPEST_ATTRIBUTE)));
        };
        let within = |value: Value<'t>| value.attribute_within(levels);
        Ok(match self.raw.as_bytes().first() {
            Some(b'n') => Attribute::Null,
            Some(b't') => Attribute::Boolean(true),
            Some(b'f') => Attribute::Boolean(false),
            Some(b'"') => Attribute::String(self.string()?),
            Some(b'[') => Attribute::Array(self.array()?.into_iter().map(within).collect::<Result<_, _>>()?),
            Some(b'{') => {
                let entries = self.object()?.entries().map(|(name, value)| Ok((name, within(value)?)));
                Attribute::Map(entries.collect::<Result<_, Error>>()?)
            }
            _ => match (self.raw.parse::<i64>(), self.raw.parse::<u64>()) {
                (Ok(number), _) => Attribute::Integer(number),
                (_, Ok(number)) => Attribute::Unsigned(number),
                _ => {
                    Attribute::Real(serde_json::from_str(self.raw).map_err(|error| self.unreadable(&error))?)
                }
            },
        })
    }
}

/// A JSON object; a member that is never asked for is an error.
pub(super) struct Object<'t> {
    whole: Value<'t>,
    /// Name, value, and whether it was read.
    entries: Vec<(String, Value<'t>, bool)>,
}

impl<'t> Object<'t> {
    /// The member called `name`.
    pub(super) fn get(&mut self, name: &str) -> Option<Value<'t>> {
        let entry = self.entries.iter_mut().find(|(found, ..)| found == name)?;
        entry.2 = true;
        Some(entry.1)
    }

    /// The member called `name`, which has to be there.
    pub(super) fn require(&mut self, name: &str) -> Result<Value<'t>, Error> {
        self.get(name).ok_or_else(|| self.whole.error(JsonFault::NoProperty(name.to_owned())))
    }

    pub(super) fn string(&mut self, name: &str) -> Result<Option<String>, Error> {
        self.get(name).map(|value| value.string()).transpose()
    }

    pub(super) fn unsigned(&mut self, name: &str) -> Result<Option<u64>, Error> {
        self.get(name).map(|value| value.unsigned()).transpose()
    }

    /// Ends the reading: every member has been asked for.
    pub(super) fn finish(&self) -> Result<(), Error> {
        match self.entries.iter().find(|(.., asked)| !asked) {
            Some((name, value, _)) => Err(value.error(JsonFault::UnknownProperty(name.clone()))),
            None => Ok(()),
        }
    }

    /// All members, as they are.
    pub(super) fn entries(self) -> impl Iterator<Item = (String, Value<'t>)> {
        self.entries.into_iter().map(|(name, value, _)| (name, value))
    }

    /// Its offset in the text.
    pub(super) fn place(&self) -> Place {
        self.whole.place()
    }

    #[cold]
    pub(super) fn error(&self, fault: impl Into<JsonFault>) -> Error {
        self.whole.error(fault)
    }
}

/// The user attributes of an object, and a check that it asks for no extension.
pub(super) fn attributes(object: &mut Object<'_>) -> Result<Attributes, Error> {
    if let Some(extensions) = object.get("extensions")
        && let Some((namespace, value)) = extensions.object()?.entries().next()
    {
        return Err(value.error(JsonFault::Extension(namespace)));
    }
    match object.get("attributes") {
        Some(attributes) => {
            let namespaces =
                attributes.object()?.entries().map(|(name, value)| Ok((name, value.attribute()?)));
            Ok(Attributes::new(namespaces.collect::<Result<_, Error>>()?))
        }
        None => Ok(Attributes::default()),
    }
}
