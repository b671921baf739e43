//! Targets of crate `tracewing-ctf`, whose inputs are bytes: metadata, packets, an index.

use super::inputs::split;
use std::hint::black_box;
use std::sync::Arc;
use tracewing_ctf::decode::{Compound, Decoder, Step, StreamReader, Value, Visitor};
use tracewing_ctf::model::{Scope, TraceClass};
use tracewing_ctf::{Error, index, json, metadata, tsdl};

/// Metadata in TSDL: parsed, and compiled for decoding.
pub fn tsdl(input: &[u8]) {
    compile(tsdl::parse(input));
}

/// Metadata of CTF 2: the same.
pub fn ctf2(input: &[u8]) {
    compile(json::parse(input));
}

fn compile(class: Result<TraceClass, Error>) {
    if let Ok(class) = class {
        let _ = black_box(Decoder::new(Arc::new(class)));
    }
}

/// Metadata and a data stream: reads every field of every event record.
pub fn packets(input: &[u8]) {
    let (description, stream) = split(input);
    let Ok(class) = metadata::parse(description) else { return };
    let Ok(decoder) = Decoder::new(Arc::new(class)) else { return };
    first_packet_in_parts(&decoder, stream);
    let mut reader = StreamReader::new(decoder, stream);
    loop {
        match reader.advance() {
            Ok(Step::Packet) => {
                for scope in [Scope::PacketHeader, Scope::PacketContext] {
                    reader.visit_packet(scope, &mut Look);
                }
            }
            Ok(Step::Event) => {
                let event = reader.event();
                black_box((event.clock_value(), event.class().id));
                for scope in
                    [Scope::EventHeader, Scope::CommonContext, Scope::SpecificContext, Scope::Payload]
                {
                    event.visit(scope, &mut Look);
                }
            }
            Ok(Step::PacketEnd) => {}
            Ok(Step::End) | Err(_) => break,
        }
    }
    assert_eq!(reader.advance(), Ok(Step::End), "a reader that has ended or failed continues");
}

/// The first packet has the same event records whether it is complete or arrives in parts.
fn first_packet_in_parts(decoder: &Arc<Decoder>, stream: &[u8]) {
    const FIRST: usize = 256;
    const PART: usize = 100;
    let mut whole = StreamReader::new(decoder.clone(), stream);
    let mut parts = StreamReader::new(decoder.clone(), &stream[..0]);
    parts.replace_part(&stream[..FIRST.min(stream.len())], 0, 0, stream.len() as u64);
    if whole.advance() != Ok(Step::Packet) || parts.advance() != Ok(Step::Packet) {
        return;
    }
    loop {
        let mut step = parts.advance();
        while step.is_err() && parts.wants_more() {
            let grown = parts.extend(|held| {
                let before = held.len();
                *held = &stream[..(before + PART.max(before)).min(stream.len())];
                held.len() > before
            });
            if !grown {
                break;
            }
            step = parts.advance();
        }
        let is_event = matches!(whole.advance(), Ok(Step::Event));
        assert_eq!(matches!(step, Ok(Step::Event)), is_event, "{step:?}");
        if !is_event {
            break;
        }
        assert_eq!(parts.position(), whole.position());
    }
}

/// Reads an index file.
pub fn index(input: &[u8]) {
    if let Ok(entries) = index::decode(input) {
        let count = entries.map(black_box).count();
        assert!(count <= input.len() / index::ENTRY_SIZE_1_0, "{count} entries of {} bytes", input.len());
    }
}

struct Look;

impl Visitor for Look {
    fn value(&mut self, name: Option<&str>, value: Value<'_>) {
        if let Value::WideText(text) = value {
            black_box(text.to_string().len());
        }
        black_box((name, value));
    }

    fn begin(&mut self, name: Option<&str>, compound: Compound<'_>) {
        black_box((name, compound));
    }

    fn end(&mut self, compound: Compound<'_>) {
        black_box(compound);
    }
}
