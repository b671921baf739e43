//! Lines of classes whose event records all have the same layout: what stands between the values is prepared once, from the
//! first such line, and the values are loaded from where they always lie.

use crate::append::{self, Room, Short};
use crate::text_value::{Place, print_value};
use tracewing_ctf::decode::{Event, RecordField, Value};
use tracewing_ctf::model::DisplayBase;

/// What a line has behind the packet's context.
#[derive(Debug)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
    /// Bytes that are written for the texts and numbers of a line, at most.
    room: usize,
}

/// The most bytes that a number takes.
const NUMBER: usize = 20;

/// A text, and the value behind it.
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
    Other(RecordField),
}

impl Template {
    /// Makes one of a line's end, in which the values of [`Event::visit_all`] lie at `places`; `None` where the event is not
    /// laid out as others of its class are.
    pub(crate) fn new(line: &[u8], places: &[Place], event: &Event<'_>) -> Option<Self> {
        let fields = event.record_fields()?;
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
        if fields.len() != places.len() {
            return None;
        }
        for (field, place) in fields.into_iter().zip(places) {
            let Some(place) = place else { continue };
            let text = line.get(at..place.start)?;
            at = place.end;
            let value = match field.value(event.record()?)? {
                Value::Unsigned(_, class) if class.base == DisplayBase::Decimal => Shown::Unsigned(field),
                Value::Signed(_, class) if class.base == DisplayBase::Decimal => Shown::Signed(field),
                _ => Shown::Other(field),
            };
            add(text, value);
        }
        add(line.get(at..)?, Shown::Nothing);
        let room = pieces.iter().map(|piece| piece.text.len() + NUMBER).sum::<usize>() + append::MOST;
        Some(Template { pieces, room })
    }

    /// Appends the end of an event's line; false, and nothing has been appended, where it is not laid out like the first.
    #[inline]
    pub(crate) fn print(&self, out: &mut Vec<u8>, event: &Event<'_>) -> bool {
        let Some(record) = event.record() else { return false };
        let mut room = Room::new(out, self.room);
        for Piece { text, value } in &self.pieces {
            room.short(text);
            match value {
                Shown::Nothing => {}
                Shown::Unsigned(field) => room.unsigned(field.bits(record).unwrap_or(0)),
                Shown::Signed(field) => room.signed(field.signed(record).unwrap_or(0)),
                Shown::Other(field) => {
                    room.other(|out| {
                        field.value(record).into_iter().for_each(|value| print_value(out, value))
                    });
                }
            }
        }
        room.finish();
        true
    }
}
