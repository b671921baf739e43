//! Parses CTF 1.8 metadata into a trace class: the blocks of a document (specification 1.8.3, appendix C.2).
//!
//! What stands inside a block as field class is [`types`](super::types)' job. References between fields stay
//! names here; the decoder resolves them.

use std::collections::{HashMap, HashSet};

use super::lex::{self, Token};
use super::parser::{Parser, TypeScopes};
use crate::log_level;
use crate::metadata_text::{self, Language, Text, Warnings};
use crate::model::{ByteOrder, ClockOrigin, DataStreamClass, EnvValue, EventRecordClass, TraceClass};
use crate::{Error, MetadataFault, TsdlFault};

/// The trace class that a metadata stream describes; `metadata` is the whole stream, plain or in packets.
///
/// # Errors
///
/// [`Error::MetadataPacket`] for malformed packets, [`Error::Metadata`] for text that is not CTF 1.8.
pub fn parse(metadata: &[u8]) -> Result<TraceClass, Error> {
    let text = metadata_text::text(metadata)?;
    match text.language {
        Language::Tsdl => parse_text(&text, &mut Warnings::default()),
        Language::Json => Err(metadata_text::error_at(&text.text, 0, MetadataFault::IsCtf2)),
    }
}

/// As [`parse`], of the text without packets.
pub(crate) fn parse_text(metadata: &Text<'_>, warnings: &mut Warnings) -> Result<TraceClass, Error> {
    let text = &*metadata.text;
    let tokens = lex::tokens(text)?;
    let mut parser = Parser {
        text,
        warnings,
        ambiguous: HashSet::new(),
        references: Vec::new(),
        tokens,
        at: 0,
        scopes: TypeScopes::default(),
        native: None,
        budget: metadata_text::most_field_classes(text.len()),
        clock_uses: Vec::new(),
        env: HashMap::new(),
    };
    parser.native = parser.find_native_byte_order();
    if let (Some(packets), Some(native)) = (metadata.packets, parser.native)
        && packets != native
    {
        return Err(lex::error_at(text, 0, TsdlFault::PacketsByteOrder));
    }
    parser.document()
}

/// The blocks of a document, before what refers to others is put in its place.
#[derive(Default)]
struct Blocks {
    clocks: HashSet<String>,
    /// With their ids, if they have any, and the places of their blocks.
    streams: Vec<(Option<u64>, DataStreamClass, usize)>,
    /// With their ids and those of their streams.
    events: Vec<(Option<u64>, Option<u64>, EventRecordClass, usize)>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<TraceClass, Error> {
        let mut trace = TraceClass::new();
        let mut has_trace = false;
        let mut blocks = Blocks::default();
        let declared = self.declarations()?;
        while *self.peek() != Token::End {
            let place = self.at;
            match self.peek_word() {
                Some("trace") if self.opens_block() => {
                    if std::mem::replace(&mut has_trace, true) {
                        return Err(self.error(place, TsdlFault::SecondTrace));
                    }
                    self.trace_block(&mut trace)?;
                }
                Some("env") if self.opens_block() => self.env_block(&mut trace)?,
                Some("clock") if self.opens_block() => {
                    let clock = self.clock_block()?;
                    if !blocks.clocks.insert(clock.id.clone()) {
                        return Err(self.error(place, TsdlFault::SecondClock(clock.id)));
                    }
                    trace.clock_classes.push(clock);
                }
                Some("callsite") if self.opens_block() => self.skip_block()?,
                Some("stream") if self.opens_block() => {
                    let (id, class) = self.stream_block()?;
                    blocks.streams.push((id, class, place));
                }
                Some("event") if self.opens_block() => {
                    let (id, stream, class) = self.event_block()?;
                    blocks.events.push((id, stream, class, place));
                }
                None if self.at_sign(";") => self.at += 1,
                _ => match declared.get(&place) {
                    Some(end) => self.at = *end,
                    None => self.declaration()?,
                },
            }
        }
        if !has_trace {
            return Err(self.error(self.at, TsdlFault::NoTrace));
        }
        self.assemble(&mut trace, blocks)?;
        super::check::check(self.text, &trace)?;
        super::clocks::map_stamps(&mut trace);
        if matches!(trace.env("tracer_name"), Some(EnvValue::String(name)) if name.starts_with("lttng")) {
            // LTTng's clocks count from the Unix epoch, though its metadata does not call them absolute; and
            // its metadata of CTF 2 has a namespace for its traces.
            trace.namespace = Some(log_level::NAMESPACE.to_owned());
            trace.clock_classes.iter_mut().for_each(|clock| clock.origin = ClockOrigin::UnixEpoch);
        }
        trace.fill_roles();
        Ok(trace)
    }

    /// Parses the declarations between blocks, which may follow the blocks that use them, as for babeltrace2.
    /// Gives where each ends, by where it begins. What cannot be read is left to those that read the blocks.
    fn declarations(&mut self) -> Result<HashMap<usize, usize>, Error> {
        const BLOCKS: [&str; 6] = ["trace", "env", "clock", "callsite", "stream", "event"];
        let mut ends = HashMap::new();
        loop {
            let place = self.at;
            if self.peek_word().is_some_and(|word| BLOCKS.contains(&word)) && self.opens_block() {
                if self.skip_block().is_err() {
                    break;
                }
            } else if self.starts_declaration() {
                self.declaration()?;
                ends.insert(place, self.at);
            } else if !self.eat(";") {
                break;
            }
        }
        self.at = 0;
        Ok(ends)
    }

    /// Puts streams into the trace and events into their streams, which may stand in any order, and checks
    /// what names other blocks.
    fn assemble(&self, trace: &mut TraceClass, blocks: Blocks) -> Result<(), Error> {
        let mut places = HashMap::new();
        for (id, mut class, place) in blocks.streams {
            (class.id, class.place) = (id.unwrap_or(0), self.place(place));
            if places.insert(class.id, trace.data_stream_classes.len()).is_some() {
                return Err(self.error(place, TsdlFault::SecondStream(class.id)));
            }
            trace.data_stream_classes.push(class);
        }
        for (id, stream, class, place) in blocks.events {
            self.attach(trace, &mut places, (id, stream), class, place)?;
        }
        for (clock, place) in &self.clock_uses {
            if !blocks.clocks.contains(clock) {
                return Err(self.error(*place, TsdlFault::NoClock(clock.clone())));
            }
        }
        if let Some((name, place)) = self.references.iter().find(|(name, _)| self.ambiguous.contains(name)) {
            return Err(self.error(*place, TsdlFault::Ambiguous(name.clone())));
        }
        Ok(())
    }

    /// Puts an event record class into its data stream class, of which `places` has the place by id; ids that
    /// are missing are those of the only one.
    fn attach(
        &self,
        trace: &mut TraceClass,
        places: &mut HashMap<u64, usize>,
        (id, stream): (Option<u64>, Option<u64>),
        mut class: EventRecordClass,
        place: usize,
    ) -> Result<(), Error> {
        let stream = match (stream, trace.data_stream_classes.as_slice()) {
            (Some(stream), _) => stream,
            (None, []) => {
                trace.data_stream_classes.push(DataStreamClass::new(0));
                places.insert(0, 0);
                0
            }
            (None, [only]) => only.id,
            (None, _) => {
                return Err(self.error(place, TsdlFault::NoStreamId));
            }
        };
        let into = places.get(&stream).and_then(|place| trace.data_stream_classes.get_mut(*place));
        let Some(into) = into else {
            return Err(self.error(place, TsdlFault::NoStream(stream)));
        };
        if id.is_none() && !into.event_record_classes.is_empty() {
            return Err(self.error(place, TsdlFault::NoEventId));
        }
        (class.id, class.place) = (id.unwrap_or(0), self.place(place));
        into.event_record_classes.push(class);
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
