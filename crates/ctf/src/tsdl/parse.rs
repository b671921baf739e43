//! Parses CTF 1.8 metadata into a trace class: the blocks of a document (specification 1.8.3, appendix C.2).
//!
//! What stands inside a block as field class is [`types`](super::types)' job. References between fields stay names here;
//! the decoder resolves them.

use super::lex::{self, Token};
use super::types::{Sized, TypeScopes};
use crate::Error;
use crate::log_level;
use crate::metadata::{self, Language};
use crate::model::{
    ByteOrder, ClockClass, ClockOrigin, DataStreamClass, EnvValue, EventRecordClass, FieldClass, Place,
    StructureClass, TraceClass, Uuid,
};

/// The trace class that a metadata stream describes; `metadata` is the whole stream, plain or in packets.
///
/// # Errors
///
/// [`Error::MetadataPacket`] for malformed packets, [`Error::Metadata`] for text that is not CTF 1.8.
pub fn parse(metadata: &[u8]) -> Result<TraceClass, Error> {
    let (language, text) = metadata::text(metadata)?;
    match language {
        Language::Tsdl => parse_text(&text),
        Language::Json => Err(lex::error_at(&text, 0, "expected CTF 1.8 metadata, found CTF 2's")),
    }
}

/// As [`parse`], of the text without packets.
pub(crate) fn parse_text(text: &str) -> Result<TraceClass, Error> {
    let tokens = lex::tokens(text)?;
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        scopes: TypeScopes::default(),
        native: None,
        budget: metadata::most_field_classes(text.len()),
        clock_uses: Vec::new(),
    };
    parser.native = parser.find_native_byte_order();
    parser.document()
}

/// The state of a parse.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<(Token, usize)>,
    pub(super) at: usize,
    pub(super) scopes: TypeScopes,
    /// The trace's byte order, found ahead because field classes may precede the trace block.
    pub(super) native: Option<ByteOrder>,
    /// Field classes that may still come.
    budget: u64,
    /// Clock names in `map` attributes and the tokens where they are, to be checked when all clocks are known.
    pub(super) clock_uses: Vec<(String, usize)>,
}

/// The right side of an attribute.
#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// A name, or names joined by dots.
    Path(Vec<String>),
    Number(i128),
}

/// An attribute of a block: the left side's names, the value, and the token where the value begins.
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) place: usize,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<TraceClass, Error> {
        let mut trace = TraceClass::new();
        let mut has_trace = false;
        let mut streams: Vec<(Option<u64>, DataStreamClass, usize)> = Vec::new();
        let mut events: Vec<(Option<u64>, Option<u64>, EventRecordClass, usize)> = Vec::new();
        while *self.peek() != Token::End {
            let place = self.at;
            match self.peek_word() {
                Some("trace") if self.opens_block() => {
                    if std::mem::replace(&mut has_trace, true) {
                        return Err(self.error(place, "a second `trace` block; there can be one"));
                    }
                    self.trace_block(&mut trace)?;
                }
                Some("env") if self.opens_block() => self.env_block(&mut trace)?,
                Some("clock") if self.opens_block() => {
                    let clock = self.clock_block()?;
                    if trace.clock_class(&clock.id).is_some() {
                        return Err(self.error(place, format!("a second clock called `{}`", clock.id)));
                    }
                    trace.clock_classes.push(clock);
                }
                Some("callsite") if self.opens_block() => self.skip_block()?,
                Some("stream") if self.opens_block() => {
                    let (id, class) = self.stream_block()?;
                    streams.push((id, class, place));
                }
                Some("event") if self.opens_block() => {
                    let (id, stream, class) = self.event_block()?;
                    events.push((id, stream, class, place));
                }
                None if self.at_sign(";") => self.at += 1,
                _ => self.declaration()?,
            }
        }
        if !has_trace {
            return Err(self.error(self.at, "there is no `trace` block"));
        }
        for (id, mut class, place) in streams {
            (class.id, class.place) = (id.unwrap_or(0), self.place(place));
            if trace.data_stream_class(class.id).is_some() {
                return Err(self.error(place, format!("a second stream with id {}", class.id)));
            }
            trace.data_stream_classes.push(class);
        }
        for (id, stream, class, place) in events {
            self.attach(&mut trace, id, stream, class, place)?;
        }
        for (clock, place) in &self.clock_uses {
            if trace.clock_class(clock).is_none() {
                return Err(self.error(*place, format!("there is no clock called `{clock}`")));
            }
        }
        super::clocks::map_stamps(&mut trace);
        if matches!(trace.env("tracer_name"), Some(EnvValue::String(name)) if name.starts_with("lttng")) {
            // LTTng's clocks count from the Unix epoch, though its metadata does not call them absolute; and its metadata of
            // CTF 2 has a namespace for its traces.
            trace.namespace = Some(log_level::NAMESPACE.to_owned());
            trace.clock_classes.iter_mut().for_each(|clock| clock.origin = ClockOrigin::UnixEpoch);
        }
        trace.fill_roles();
        Ok(trace)
    }

    /// Puts an event record class into its data stream class; ids that are missing are those of the only one.
    fn attach(
        &self,
        trace: &mut TraceClass,
        id: Option<u64>,
        stream: Option<u64>,
        mut class: EventRecordClass,
        place: usize,
    ) -> Result<(), Error> {
        let stream = match (stream, trace.data_stream_classes.as_slice()) {
            (Some(stream), _) => stream,
            (None, []) => {
                trace.data_stream_classes.push(DataStreamClass::new(0));
                0
            }
            (None, [only]) => only.id,
            (None, _) => {
                return Err(self.error(place, "this event has no `stream_id`, and there are several streams"));
            }
        };
        let Some(into) = trace.data_stream_classes.iter_mut().find(|class| class.id == stream) else {
            return Err(self.error(place, format!("this event is in stream {stream}, which does not exist")));
        };
        if id.is_none() && !into.event_record_classes.is_empty() {
            return Err(self.error(place, "this event has no `id`, and its stream has several events"));
        }
        (class.id, class.place) = (id.unwrap_or(0), self.place(place));
        into.event_record_classes.push(class);
        Ok(())
    }

    fn trace_block(&mut self, trace: &mut TraceClass) -> Result<(), Error> {
        let place = self.at;
        let (mut major, mut minor) = (None, None);
        self.block(|parser, item| match item {
            Item::Scope("packet.header", class) => {
                let place = class.place;
                parser.set_scope(&mut trace.packet_header, class)?;
                let mut members = trace.packet_header.iter().flat_map(|header| &header.members).skip(1);
                match members.any(|member| member.name == "magic") {
                    true => Err(parser.error(place, "`magic` is to be the first field of the packet header")),
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
                        None => return Err(parser.error(attribute.place, "expected `le`, `be` or `network`")),
                    },
                    _ => {}
                }
                Ok(())
            }
            Item::Scope(name, _) => Err(parser.error(place, format!("a trace has no `{name}`"))),
        })?;
        if let (Some(major), Some(minor)) = (major, minor) {
            if (major, minor) != (1, 8) {
                return Err(self.error(place, format!("CTF version {major}.{minor}, expected 1.8")));
            }
        } else {
            return Err(self.error(place, "this `trace` block has no `major` and `minor` version"));
        }
        if self.native.is_none() {
            return Err(self.error(place, "this `trace` block has no `byte_order`"));
        }
        Ok(())
    }

    fn env_block(&mut self, trace: &mut TraceClass) -> Result<(), Error> {
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
                trace.set_env(attribute.name, value);
                Ok(())
            }
            Item::Scope(name, _) => Err(parser.error(parser.at, format!("an environment has no `{name}`"))),
        })
    }

    fn clock_block(&mut self) -> Result<ClockClass, Error> {
        let place = self.at;
        let mut name = None;
        let mut clock = ClockClass::new("", 1_000_000_000);
        self.block(|parser, item| {
            let Item::Attribute(attribute) = item else {
                return Err(parser.error(place, "a clock has no field classes"));
            };
            match attribute.name.as_str() {
                "name" => name = Some(parser.text_of(&attribute)?),
                "uuid" => clock.uuid = Some(parser.uuid(&attribute)?),
                "description" => clock.description = Some(parser.text_of(&attribute)?),
                "freq" => match parser.unsigned(&attribute)? {
                    0 => return Err(parser.error(attribute.place, "a clock's frequency is not 0")),
                    frequency => clock.frequency = frequency,
                },
                "precision" => clock.precision = Some(parser.unsigned(&attribute)?),
                "offset_s" => clock.offset_seconds = parser.signed(&attribute)?,
                "offset" => clock.offset_cycles = parser.unsigned(&attribute)?,
                "absolute" if parser.boolean(&attribute)? => clock.origin = ClockOrigin::UnixEpoch,
                _ => {}
            }
            Ok(())
        })?;
        clock.id = name.ok_or_else(|| self.error(place, "this clock has no `name`"))?;
        clock.name = Some(clock.id.clone());
        Ok(clock)
    }

    fn stream_block(&mut self) -> Result<(Option<u64>, DataStreamClass), Error> {
        let place = self.at;
        let mut id = None;
        let mut class = DataStreamClass::default();
        self.block(|parser, item| match item {
            Item::Scope("packet.context", scope) => parser.set_scope(&mut class.packet_context, scope),
            Item::Scope("event.header", scope) => parser.set_scope(&mut class.event_header, scope),
            Item::Scope("event.context", scope) => parser.set_scope(&mut class.common_context, scope),
            Item::Scope(name, _) => Err(parser.error(place, format!("a stream has no `{name}`"))),
            Item::Attribute(attribute) if attribute.name == "id" => {
                id = Some(parser.unsigned(&attribute)?);
                Ok(())
            }
            Item::Attribute(_) => Ok(()),
        })?;
        Ok((id, class))
    }

    fn event_block(&mut self) -> Result<(Option<u64>, Option<u64>, EventRecordClass), Error> {
        let place = self.at;
        let (mut id, mut stream) = (None, None);
        let mut class = EventRecordClass::default();
        self.block(|parser, item| match item {
            Item::Scope("context", scope) => parser.set_scope(&mut class.specific_context, scope),
            Item::Scope("fields", scope) => parser.set_scope(&mut class.payload, scope),
            Item::Scope(name, _) => Err(parser.error(place, format!("an event has no `{name}`"))),
            Item::Attribute(attribute) => {
                match attribute.name.as_str() {
                    "name" => class.name = Some(parser.text_of(&attribute)?),
                    "id" => id = Some(parser.unsigned(&attribute)?),
                    "stream_id" => stream = Some(parser.unsigned(&attribute)?),
                    "loglevel" => class.log_level = Some(parser.signed(&attribute)?),
                    "model.emf.uri" => class.emf_uri = Some(parser.text_of(&attribute)?),
                    _ => {}
                }
                Ok(())
            }
        })?;
        Ok((id, stream, class))
    }

    /// Whether a word here is followed by `{`, so that it names a block.
    fn opens_block(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some((Token::Sign("{"), _)))
    }

    /// Parses `WORD { … } ;` and hands out its attributes and scopes; field class declarations are local to it.
    fn block(
        &mut self,
        mut on_item: impl FnMut(&mut Self, Item<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // As babeltrace2 does: the last one of an environment's entries counts.
        let may_repeat = self.peek_word() == Some("env");
        self.at += 1;
        self.expect("{")?;
        self.scopes.open();
        let mut seen: Vec<String> = Vec::new();
        while !self.eat("}") {
            let place = self.at;
            if self.starts_declaration() {
                self.declaration()?;
                continue;
            }
            let name = self.name_path("an attribute, a field class or `}`")?.join(".");
            if !may_repeat && seen.contains(&name) {
                return Err(self.error(place, format!("`{name}` is given twice")));
            }
            if self.eat(":=") {
                let class = self.class_specifier()?;
                on_item(self, Item::Scope(&name, class))?;
            } else if self.eat("=") {
                let place = self.at;
                let value = self.value()?;
                on_item(self, Item::Attribute(Attribute { name: name.clone(), value, place }))?;
            } else {
                return Err(self.unexpected("`=` or `:=`"));
            }
            self.expect(";")?;
            seen.push(name);
        }
        self.scopes.close();
        self.expect(";")
    }

    /// Skips a block whose content means nothing here.
    fn skip_block(&mut self) -> Result<(), Error> {
        let start = self.at;
        let mut depth = 0;
        loop {
            self.at += 1;
            match self.peek() {
                Token::Sign("{") => depth += 1,
                Token::Sign("}") => depth -= 1,
                Token::End => return Err(self.error(start, "this block has no end; expected `}`")),
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
        metadata::most_field_classes(self.text.len())
    }

    fn set_scope(&mut self, scope: &mut Option<StructureClass>, class: Sized) -> Result<(), Error> {
        let FieldClass::Structure(structure) = class.class else {
            return Err(self.error(class.place, "expected a `struct`"));
        };
        self.budget = self.budget.checked_sub(class.nodes).ok_or_else(|| {
            let message = format!("with this the trace has more than {} field classes", self.most());
            self.error(class.place, message)
        })?;
        *scope = Some(std::sync::Arc::unwrap_or_clone(structure));
        Ok(())
    }

    /// Looks for `byte_order` in the trace block.
    fn find_native_byte_order(&self) -> Option<ByteOrder> {
        let mut depth = 0;
        let mut in_trace = false;
        for window in self.tokens.windows(3) {
            match &window[0].0 {
                Token::Sign("{") => depth += 1,
                Token::Sign("}") => depth -= 1,
                Token::Word(word) if depth == 0 => in_trace = word == "trace",
                Token::Word(word) if depth == 1 && in_trace && word == "byte_order" => {
                    return match &window[2].0 {
                        Token::Word(order) if order == "le" => Some(ByteOrder::Little),
                        Token::Word(order) if order == "be" || order == "network" => Some(ByteOrder::Big),
                        _ => None,
                    };
                }
                _ => {}
            }
        }
        None
    }
}

/// What a block consists of.
enum Item<'a> {
    Scope(&'a str, Sized),
    Attribute(Attribute),
}

/// The UUID that a text of 36 characters names.
fn uuid_from_text(text: &str) -> Option<Uuid> {
    let mut uuid = [0; 16];
    let well_formed = text.len() == 36
        && text.bytes().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    if !well_formed {
        return None;
    }
    let digits: Vec<u8> =
        text.bytes().filter_map(|byte| (byte as char).to_digit(16)).map(|d| d as u8).collect();
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    Some(uuid)
}

/// Tokens and attribute values.
impl Parser<'_> {
    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    pub(super) fn peek_word(&self) -> Option<&str> {
        match self.peek() {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn at_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(found) if *found == sign)
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = self.at_sign(sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek_word() == Some(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Error> {
        if self.eat(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    pub(super) fn word(&mut self, what: &str) -> Result<String, Error> {
        match self.peek() {
            Token::Word(word) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.unexpected(what)),
        }
    }

    /// Names joined by dots (or arrows).
    pub(super) fn name_path(&mut self, what: &str) -> Result<Vec<String>, Error> {
        let mut path = vec![self.word(what)?];
        while self.eat(".") || self.eat("->") {
            path.push(self.word("a name")?);
        }
        Ok(path)
    }

    pub(super) fn value(&mut self) -> Result<Value, Error> {
        match self.peek().clone() {
            Token::Text(mut text) => {
                self.at += 1;
                while let Token::Text(more) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                Ok(Value::Text(text))
            }
            Token::Word(_) => Ok(Value::Path(self.name_path("a value")?)),
            _ => Ok(Value::Number(self.number()?)),
        }
    }

    /// An integer literal with its sign.
    pub(super) fn number(&mut self) -> Result<i128, Error> {
        let mut negative = false;
        while matches!(self.peek(), Token::Sign("-" | "+")) {
            negative ^= matches!(self.peek(), Token::Sign("-"));
            self.at += 1;
        }
        let Token::Number(number) = *self.peek() else { return Err(self.unexpected("a value")) };
        self.at += 1;
        Ok(if negative { -i128::from(number) } else { i128::from(number) })
    }

    pub(super) fn unsigned(&self, attribute: &Attribute) -> Result<u64, Error> {
        match attribute.value {
            Value::Number(number) => u64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| self.error(attribute.place, format!("`{}` is an unsigned integer", attribute.name)))
    }

    fn signed(&self, attribute: &Attribute) -> Result<i64, Error> {
        match attribute.value {
            Value::Number(number) => i64::try_from(number).ok(),
            _ => None,
        }
        .ok_or_else(|| {
            self.error(attribute.place, format!("`{}` is a signed integer of 64 bits", attribute.name))
        })
    }

    pub(super) fn boolean(&self, attribute: &Attribute) -> Result<bool, Error> {
        match &attribute.value {
            Value::Number(number) => Some(*number != 0),
            Value::Text(word) => truth(word),
            Value::Path(path) => path.first().filter(|_| path.len() == 1).and_then(|word| truth(word)),
        }
        .ok_or_else(|| self.error(attribute.place, format!("`{}` is `true` or `false`", attribute.name)))
    }

    pub(super) fn text_of(&self, attribute: &Attribute) -> Result<String, Error> {
        match &attribute.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Path(path) => Ok(path.join(".")),
            Value::Number(_) => Err(self.error(attribute.place, format!("`{}` is a string", attribute.name))),
        }
    }

    fn uuid(&self, attribute: &Attribute) -> Result<Uuid, Error> {
        let text = self.text_of(attribute)?;
        uuid_from_text(&text).ok_or_else(|| {
            self.error(attribute.place, "expected a UUID, as \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"")
        })
    }

    /// The byte order that an attribute names; `None` for `native`.
    pub(super) fn byte_order(&self, attribute: &Attribute) -> Result<Option<ByteOrder>, Error> {
        match self.text_of(attribute)?.as_str() {
            "le" => Ok(Some(ByteOrder::Little)),
            "be" | "network" => Ok(Some(ByteOrder::Big)),
            "native" => Ok(None),
            _ => Err(self.error(attribute.place, "expected `le`, `be`, `network` or `native`")),
        }
    }

    #[cold]
    pub(super) fn unexpected(&self, wanted: &str) -> Error {
        self.error(self.at, format!("expected {wanted}, found {}", self.peek()))
    }

    /// Where a token stands.
    pub(super) fn place(&self, token: usize) -> Place {
        self.tokens.get(token).map_or_else(Place::default, |(_, at)| Place::new(*at))
    }

    /// An error at a token.
    #[cold]
    pub(super) fn error(&self, token: usize, message: impl Into<String>) -> Error {
        let at = self.tokens.get(token).map_or(self.text.len(), |(_, at)| *at);
        lex::error_at(self.text, at, message)
    }
}

fn truth(word: &str) -> Option<bool> {
    match word {
        "true" | "TRUE" => Some(true),
        "false" | "FALSE" => Some(false),
        _ => None,
    }
}
