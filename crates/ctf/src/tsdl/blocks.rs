//! The blocks of a document: `trace`, `env`, `clock`, `stream`, `event` (specification 1.8.3, sections 7.3
//! and 8, appendix C.2).

use std::collections::HashSet;

use super::lex::Token;
use super::parser::{Parser, Sized};
use super::values::{Attribute, Value};
use crate::metadata_text;
use crate::model::{
    ClockClass, ClockOrigin, DataStreamClass, EnvValue, EventRecordClass, FieldClass, StructureClass,
    TraceClass,
};
use crate::{Error, LimitFault, TsdlBlock, TsdlFault, TsdlMissing, TsdlNeeded};
use tracewing_units::Cycles;

/// What a block consists of.
enum Item<'a> {
    Scope(&'a str, Sized),
    Attribute(Attribute),
}

impl Parser<'_> {
    pub(super) fn trace_block(&mut self, trace: &mut TraceClass) -> Result<(), Error> {
        let place = self.at;
        let (mut major, mut minor) = (None, None);
        self.block(|parser, item| match item {
            Item::Scope("packet.header", class) => {
                let place = class.place;
                parser.set_scope(&mut trace.packet_header, class)?;
                let mut members = trace.packet_header.iter().flat_map(|header| &header.members).skip(1);
                match members.any(|member| member.name == "magic") {
                    true => Err(parser.error(place, TsdlFault::LateMagic)),
                    false => Ok(()),
                }
            }
            Item::Attribute(attribute) => {
                match attribute.name.as_str() {
                    "major" => major = Some(parser.unsigned(&attribute)?),
                    "minor" => minor = Some(parser.unsigned(&attribute)?),
                    "uuid" => trace.uuid = Some(parser.uuid(&attribute)?),
                    "byte_order" => match parser.byte_order(&attribute)? {
                        Some(order) => trace.byte_order = order,
                        None => {
                            return Err(parser
                                .error(attribute.place, TsdlFault::Expected(TsdlNeeded::TraceByteOrder)));
                        }
                    },
                    name => parser.unknown_attribute(TsdlBlock::Trace, name, attribute.start),
                }
                Ok(())
            }
            Item::Scope(name, class) => {
                parser.unknown_attribute(TsdlBlock::Trace, name, class.place);
                Ok(())
            }
        })?;
        if let (Some(major), Some(minor)) = (major, minor) {
            if (major, minor) != (1, 8) {
                return Err(self.error(place, TsdlFault::Version { major, minor }));
            }
        } else {
            return Err(self.error(place, TsdlFault::Missing(TsdlMissing::Version)));
        }
        if self.native.is_none() {
            return Err(self.error(place, TsdlFault::Missing(TsdlMissing::ByteOrder)));
        }
        Ok(())
    }

    pub(super) fn env_block(&mut self, trace: &mut TraceClass) -> Result<(), Error> {
        self.block(|parser, item| match item {
            Item::Attribute(attribute) => {
                let value = match attribute.value {
                    Value::Text(text) => EnvValue::String(text),
                    Value::Number(number) => match i64::try_from(number) {
                        Ok(number) => EnvValue::Integer(number),
                        // As babeltrace2 does: 64 bits, taken as signed.
                        Err(_) => EnvValue::Integer(number as i64),
                    },
                    Value::Path(path) => EnvValue::String(path.join(".")),
                };
                let at = *parser.env.entry(attribute.name).or_insert_with_key(|name| {
                    trace.env.push((name.clone(), EnvValue::Integer(0)));
                    trace.env.len() - 1
                });
                trace.env[at].1 = value;
                Ok(())
            }
            Item::Scope(name, _) => {
                Err(parser.error(parser.at, TsdlFault::EnvironmentClass(name.to_owned())))
            }
        })
    }

    pub(super) fn clock_block(&mut self) -> Result<ClockClass, Error> {
        let place = self.at;
        let mut name = None;
        let mut clock = ClockClass::new("", 1_000_000_000);
        let mut offset = None;
        self.block(|parser, item| {
            let Item::Attribute(attribute) = item else {
                return Err(parser.error(place, TsdlFault::ClockClass));
            };
            match attribute.name.as_str() {
                "name" => name = Some(parser.text_of(&attribute)?),
                "uuid" => clock.uuid = Some(parser.uuid(&attribute)?),
                "description" => clock.description = Some(parser.text_of(&attribute)?),
                "freq" => match parser.unsigned(&attribute)? {
                    0 => return Err(parser.error(attribute.place, TsdlFault::NoFrequency)),
                    frequency => clock.frequency = frequency,
                },
                "precision" => clock.precision = Some(Cycles(parser.unsigned(&attribute)?)),
                "offset_s" => clock.offset_seconds = parser.signed(&attribute)?,
                "offset" => offset = Some((parser.offset(&attribute)?, attribute.place)),
                "absolute" => {
                    if parser.boolean(&attribute)? {
                        clock.origin = ClockOrigin::UnixEpoch;
                    }
                }
                name => parser.unknown_attribute(TsdlBlock::Clock, name, attribute.start),
            }
            Ok(())
        })?;
        if let Some((offset, place)) = offset {
            self.set_offset(&mut clock, offset, place)?;
        }
        clock.id = name.ok_or_else(|| self.error(place, TsdlFault::Missing(TsdlMissing::ClockName)))?;
        clock.name = Some(clock.id.clone());
        Ok(clock)
    }

    /// A clock's offset in cycles, which may be negative.
    fn offset(&self, attribute: &Attribute) -> Result<i128, Error> {
        let range = i64::MIN.into()..=u64::MAX.into();
        match attribute.value {
            Value::Number(offset) if range.contains(&offset) => Ok(offset),
            _ => Err(self.value_error(attribute, TsdlNeeded::Integer64)),
        }
    }

    /// Sets a clock's offset in cycles; a negative one is that many cycles before a whole second.
    fn set_offset(&self, clock: &mut ClockClass, offset: i128, place: usize) -> Result<(), Error> {
        let frequency = i128::from(clock.frequency);
        let (seconds, cycles) = match offset {
            ..0 => (offset.div_euclid(frequency), offset.rem_euclid(frequency)),
            _ => (0, offset),
        };
        // Both fit: seconds are at least those of 1 Hz, and cycles are fewer than the frequency or as given.
        clock.offset_cycles = Cycles(cycles as u64);
        clock.offset_seconds = clock
            .offset_seconds
            .checked_add(seconds as i64)
            .ok_or_else(|| self.error(place, TsdlFault::ClockOffset))?;
        Ok(())
    }

    pub(super) fn stream_block(&mut self) -> Result<(Option<u64>, DataStreamClass), Error> {
        let mut id = None;
        let mut class = DataStreamClass::default();
        self.block(|parser, item| match item {
            Item::Scope("packet.context", scope) => parser.set_scope(&mut class.packet_context, scope),
            Item::Scope("event.header", scope) => parser.set_scope(&mut class.event_header, scope),
            Item::Scope("event.context", scope) => parser.set_scope(&mut class.common_context, scope),
            Item::Scope(name, class) => {
                parser.unknown_attribute(TsdlBlock::Stream, name, class.place);
                Ok(())
            }
            Item::Attribute(attribute) if attribute.name == "id" => {
                id = Some(parser.unsigned(&attribute)?);
                Ok(())
            }
            Item::Attribute(attribute) => {
                parser.unknown_attribute(TsdlBlock::Stream, &attribute.name, attribute.start);
                Ok(())
            }
        })?;
        Ok((id, class))
    }

    pub(super) fn event_block(&mut self) -> Result<(Option<u64>, Option<u64>, EventRecordClass), Error> {
        let place = self.at;
        let (mut id, mut stream, mut has_name) = (None, None, false);
        let mut class = EventRecordClass::default();
        self.block(|parser, item| match item {
            Item::Scope("context", scope) => parser.set_scope(&mut class.specific_context, scope),
            Item::Scope("fields", scope) => parser.set_scope(&mut class.payload, scope),
            Item::Scope(name, class) => {
                parser.unknown_attribute(TsdlBlock::Event, name, class.place);
                Ok(())
            }
            Item::Attribute(attribute) => {
                match attribute.name.as_str() {
                    "name" => {
                        has_name = true;
                        class.name = Some(parser.text_of(&attribute)?).filter(|name| !name.is_empty());
                    }
                    "id" => id = Some(parser.unsigned(&attribute)?),
                    "stream_id" => stream = Some(parser.unsigned(&attribute)?),
                    "loglevel" => class.log_level = Some(parser.signed(&attribute)?),
                    "model.emf.uri" => class.emf_uri = Some(parser.text_of(&attribute)?),
                    name => parser.unknown_attribute(TsdlBlock::Event, name, attribute.start),
                }
                Ok(())
            }
        })?;
        if !has_name {
            let fault = TsdlFault::Missing(TsdlMissing::EventName);
            self.warn(place, fault);
        }
        Ok((id, stream, class))
    }

    /// Whether a word here is followed by `{`, so that it names a block.
    pub(super) fn opens_block(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some((Token::Sign("{"), _)))
    }

    /// Parses `WORD { … } ;` and hands out its attributes and scopes; field class declarations are local to
    /// it.
    fn block(
        &mut self,
        mut on_item: impl FnMut(&mut Self, Item<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // As babeltrace2 does: the last one of an environment's entries counts.
        let may_repeat = self.peek_word() == Some("env");
        self.at += 1;
        self.expect("{")?;
        self.scopes.open();
        let mut seen = HashSet::new();
        while !self.eat("}") {
            let start = self.at;
            if self.starts_declaration() {
                self.declaration()?;
                continue;
            }
            let name = self.name_path(TsdlNeeded::BlockItem)?.join(".");
            if !may_repeat && seen.contains(&name) {
                return Err(self.error(start, TsdlFault::Twice(name)));
            }
            if self.eat(":=") {
                let class = self.class_specifier()?;
                on_item(self, Item::Scope(&name, class))?;
            } else if self.eat("=") {
                let place = self.at;
                let value = self.value()?;
                on_item(self, Item::Attribute(Attribute { name: name.clone(), start, value, place }))?;
            } else {
                return Err(self.unexpected(TsdlNeeded::Assignment));
            }
            self.expect(";")?;
            seen.insert(name);
        }
        self.scopes.close();
        self.expect(";")
    }

    /// Skips a block whose content means nothing here.
    pub(super) fn skip_block(&mut self) -> Result<(), Error> {
        let start = self.at;
        let mut depth = 0;
        loop {
            self.at += 1;
            match self.peek() {
                Token::Sign("{") => depth += 1,
                Token::Sign("}") => depth -= 1,
                Token::End => return Err(self.error(start, TsdlFault::OpenBlock)),
                _ => {}
            }
            if depth == 0 {
                self.at += 1;
                return self.expect(";");
            }
        }
    }

    /// How many field classes the trace may have.
    pub(super) fn most(&self) -> u64 {
        metadata_text::most_field_classes(self.text.len())
    }

    fn set_scope(&mut self, scope: &mut Option<StructureClass>, class: Sized) -> Result<(), Error> {
        let FieldClass::Structure(structure) = class.class else {
            return Err(self.error(class.place, TsdlFault::Expected(TsdlNeeded::Structure)));
        };
        self.budget = self
            .budget
            .checked_sub(class.nodes)
            .ok_or_else(|| self.error(class.place, LimitFault::Trace(self.most())))?;
        *scope = Some(std::sync::Arc::unwrap_or_clone(structure));
        Ok(())
    }
}
