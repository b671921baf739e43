//! Lines of classes whose event records need no walk: the text between the values is prepared once, from the
//! first such line, and the values are loaded from their positions.

use crate::append::number;
use crate::append::{self, Room, Short};
use crate::print::text_value::{Place, print_value};
use tracewing_ctf::decode::{Event, Record, RecordField, Value};
use tracewing_ctf::model::DisplayBase;

/// The content of a line after the packet's context.
#[derive(Debug)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
    room: usize,
}

/// The most bytes that a number takes.
const NUMBER: usize = 20;

/// Values of an enumeration, from 0 on, whose text is prepared.
const LABELS: u64 = 16;

/// A text, and the value after it.
#[derive(Debug)]
struct Piece {
    text: Short,
    value: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Unsigned(RecordField),
    Signed(RecordField),
    Text(RecordField),
    /// An enumeration, and the texts of its first values.
    Labels(RecordField, Box<[Box<[u8]>]>),
    Sequence(RecordField, Leads),
    Other(RecordField),
}

/// What stands before the elements of a sequence: before each of the first ones, and whether they have their
/// index with them.
#[derive(Debug)]
struct Leads {
    first: Box<[Short]>,
    named: bool,
}

impl Template {
    /// Makes a template from a line's end, in which the values of [`Event::visit_all`] lie at `places`;
    /// `None` if the event needs a walk, or a sequence has no element, so that its position in the line is
    /// unknown.
    pub(crate) fn new(line: &[u8], places: &[Place], event: &Event<'_>) -> Option<Self> {
        let (fields, record) = (event.record_fields()?, event.record()?);
        let mut pieces = Vec::new();
        let mut at = 0;
        let mut add = |mut text: &[u8], value| {
            while text.len() > 32 {
                let (now, rest) = Short::split(text);
                pieces.push(Piece { text: now, value: Shown::Nothing });
                text = rest;
            }
            pieces.push(Piece { text: Short::split(text).0, value });
        };
        let mut places = places.iter();
        for field in fields {
            if let Some(length) = field.elements(record).map(|elements| elements.len()) {
                let of_elements = places.as_slice().get(..length)?;
                let (first, last) = (of_elements.first()?.as_ref()?, of_elements.last()?.as_ref()?);
                places = places.as_slice()[length..].iter();
                let (text, leads) = Leads::after(line.get(at..first.start)?)?;
                at = last.end;
                add(text, Shown::Sequence(field, leads));
                continue;
            }
            let Some(place) = places.next()? else { continue };
            add(line.get(at..place.start)?, Shown::new(field, record)?);
            at = place.end;
        }
        if places.next().is_some() {
            return None;
        }
        add(line.get(at..)?, Shown::Nothing);
        let room = pieces.iter().map(|piece| piece.text.len() + NUMBER).sum::<usize>() + append::MOST;
        Some(Template { pieces, room })
    }

    /// Bytes that are written for a line's end, at most; sequences and long texts take more.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Appends the end of an event's line.
    #[inline(always)]
    pub(crate) fn print(&self, room: &mut Room<'_>, record: Record<'_>) {
        for Piece { text, value } in &self.pieces {
            room.short(text);
            match value {
                Shown::Nothing => {}
                Shown::Unsigned(field) => room.unsigned(field.bits(record).unwrap_or(0)),
                Shown::Signed(field) => room.signed(field.signed(record).unwrap_or(0)),
                Shown::Text(field) => {
                    if let Some(Value::Text(text)) = field.value(record) {
                        room.quoted(text);
                    }
                }
                Shown::Labels(field, texts) => {
                    match texts.get(field.bits(record).unwrap_or(u64::MAX) as usize) {
                        Some(text) => room.bytes(text),
                        None => other(room, field.value(record)),
                    }
                }
                Shown::Sequence(field, leads) => {
                    for (index, value) in field.elements(record).into_iter().flatten().enumerate() {
                        leads.print(room, index);
                        match value {
                            Value::Unsigned(value, class) if class.base == DisplayBase::Decimal => {
                                room.unsigned(value);
                            }
                            Value::Signed(value, class) if class.base == DisplayBase::Decimal => {
                                room.signed(value);
                            }
                            value => other(room, Some(value)),
                        }
                    }
                }
                Shown::Other(field) => other(room, field.value(record)),
            }
        }
    }
}

fn other(room: &mut Room<'_>, value: Option<Value<'_>>) {
    room.other(|out| value.into_iter().for_each(|value| print_value(out, value)));
}

impl Shown {
    /// How a field is shown that is no sequence; `None` if it is none of the record's.
    fn new(field: RecordField, record: Record<'_>) -> Option<Self> {
        let labels = match field.value(record)? {
            Value::Unsigned(_, class) if class.base == DisplayBase::Decimal => {
                return Some(Shown::Unsigned(field));
            }
            Value::Signed(_, class) if class.base == DisplayBase::Decimal => {
                return Some(Shown::Signed(field));
            }
            Value::Text(_) => return Some(Shown::Text(field)),
            Value::UnsignedEnumeration(_, class) => {
                let text = |value| {
                    let mut text = Vec::new();
                    print_value(&mut text, Value::UnsignedEnumeration(value, class));
                    text.into_boxed_slice()
                };
                Some((0..LABELS).map(text).collect())
            }
            _ => None,
        };
        Some(match labels {
            Some(labels) => Shown::Labels(field, labels),
            None => Shown::Other(field),
        })
    }
}

impl Leads {
    /// Splits the text before the first value of a sequence into the text before the sequence and the text
    /// before its elements.
    fn after(text: &[u8]) -> Option<(&[u8], Self)> {
        let short = |text: &[u8]| Short::split(text).0;
        Some(match text.strip_suffix(b" [0] = ") {
            Some(text) => {
                let named = |index| short(format!(", [{index}] = ").as_bytes());
                let first = std::iter::once(short(b" [0] = ")).chain((1..10).map(named));
                (text, Leads { first: first.collect(), named: true })
            }
            None => {
                (text.strip_suffix(b" ")?, Leads { first: [short(b" "), short(b", ")].into(), named: false })
            }
        })
    }

    #[inline(always)]
    fn print(&self, room: &mut Room<'_>, index: usize) {
        match (self.first.get(index), self.first.last()) {
            (Some(text), _) => room.short(text),
            (None, Some(text)) if !self.named => room.short(text),
            _ => room.other(|out| {
                out.extend_from_slice(b", [");
                number::unsigned(out, index as u64);
                out.extend_from_slice(b"] = ");
            }),
        }
    }
}
