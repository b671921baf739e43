//! The values of one event, visited into a buffer on the stack: the payload of the event, and the types of
//! its values, which select the class.
//!
//! Nothing is allocated, and space is limited: values that do not fit are cut, texts with `…` at their end. A
//! text ends before its first NUL character, as all texts of a trace do.

use core::fmt::{self, Debug, Display, Write};
use core::mem::MaybeUninit;
use tracing_core::field::{Field, Visit};

/// Bytes of one event's values.
pub(crate) const CAPACITY: usize = 8192;
/// Bytes kept free for each field still to come: an integer of 128 bits, or the minimum of a text that is
/// cut.
const RESERVE: usize = 24;
/// Fields of one call site that are recorded; the reserve of all of them fits together with the ids.
pub(crate) const MOST_FIELDS: usize = 250;
/// Fields of one call site that keep their types; the others are recorded as text.
pub(crate) const TYPED_FIELDS: usize = 2 * IN_WORD;
/// Ends a text that was cut.
const MARK: &str = "…";

const _: () = assert!(MOST_FIELDS * RESERVE + 2 * size_of::<u64>() <= CAPACITY);

/// Bits per kind of value.
pub(crate) const KIND_BITS: usize = 4;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// No value: an `Option` without a value, `field::Empty`.
    Absent = 0,
    U64,
    I64,
    F64,
    Bool,
    U128,
    I128,
    /// Also values that have only `Debug` or `Display`.
    Text,
    Bytes,
}

/// The kinds of the values of a call site's first [`TYPED_FIELDS`] fields: four bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds([u64; 2]);

const IN_WORD: usize = u64::BITS as usize / KIND_BITS;

impl Kinds {
    const NONE: Self = Self([0; 2]);

    /// Kinds of the first fields only, [`KIND_BITS`] each.
    #[inline]
    pub(crate) fn of_first(kinds: u64) -> Self {
        Self([kinds, 0])
    }

    #[inline]
    fn set(&mut self, index: usize, kind: Kind) {
        self.0[index / IN_WORD % 2] |= (kind as u64) << (index % IN_WORD * KIND_BITS);
    }

    /// The kind of this field's value.
    pub(crate) fn get(self, index: usize) -> Kind {
        let number =
            (self.0[index / IN_WORD % 2] >> (index % IN_WORD * KIND_BITS)) as u8 & ((1 << KIND_BITS) - 1);
        let kinds =
            [Kind::U64, Kind::I64, Kind::F64, Kind::Bool, Kind::U128, Kind::I128, Kind::Text, Kind::Bytes];
        kinds.into_iter().find(|kind| *kind as u8 == number).unwrap_or(Kind::Absent)
    }
}

/// Memory for [`Values`], on the stack of the collecting function.
pub(crate) type Buffer = [MaybeUninit<u8>; CAPACITY];

/// Collects the values of one event.
pub(crate) struct Values<'a> {
    buffer: &'a mut Buffer,
    /// Number of bytes of `buffer` in use.
    at: usize,
    kinds: Kinds,
    /// Fields before this one have been handled.
    next: usize,
    /// Number of the call site's fields.
    count: usize,
    /// Fields from this one on are recorded as text.
    typed: usize,
    /// The one field to take now, if the fields come in an order that differs from the call site's.
    only: Option<usize>,
    is_disordered: bool,
}

impl<'a> Values<'a> {
    /// For events of a call site with `count` fields, of which the first `typed` keep their types.
    #[inline]
    pub(crate) fn new(buffer: &'a mut Buffer, count: usize, typed: usize) -> Self {
        let count = count.min(MOST_FIELDS);
        Self { buffer, at: 0, kinds: Kinds::NONE, next: 0, count, typed, only: None, is_disordered: false }
    }

    /// Puts an id before the fields; at most two.
    #[inline]
    pub(crate) fn put_id(&mut self, id: u64) {
        self.put(id.to_le_bytes());
    }

    /// Collects the fields that `put` puts, in the order of the call site if possible. `put` may be called
    /// several times.
    #[inline]
    pub(crate) fn collect(&mut self, put: impl Fn(&mut Self)) {
        let begin = self.at;
        put(self);
        if self.is_disordered {
            self.sort(begin, put);
        }
        if self.next < self.count {
            self.leave_out(self.count);
        }
    }

    /// The kinds of the collected values.
    pub(crate) fn kinds(&self) -> Kinds {
        self.kinds
    }

    #[inline]
    pub(crate) fn payload(&self) -> &[u8] {
        // SAFETY: that many bytes have been written.
        unsafe { self.buffer[..self.at].assume_init_ref() }
    }

    /// Collects the fields again, one after the other.
    #[cold]
    fn sort(&mut self, begin: usize, put: impl Fn(&mut Self)) {
        (self.at, self.kinds, self.next) = (begin, Kinds::NONE, 0);
        for index in 0..self.count {
            self.only = Some(index);
            put(self);
        }
    }

    /// Whether the value of this field is to be stored now.
    #[inline(always)]
    fn admits(&mut self, index: usize) -> bool {
        let is_next = index == self.next && index < self.count && self.only.is_none();
        if is_next {
            self.next = index + 1;
        }
        is_next || self.admits_another(index)
    }

    #[cold]
    #[inline(never)]
    fn admits_another(&mut self, index: usize) -> bool {
        if index < self.next || index >= self.count || self.only.is_some_and(|only| only != index) {
            self.is_disordered |= index < self.next;
            return false;
        }
        self.leave_out(index);
        self.next = index + 1;
        true
    }

    /// Leaves the fields up to this one without a value. A field that is recorded as text anyway gets an
    /// empty text; otherwise the class has no such field.
    fn leave_out(&mut self, index: usize) {
        for _ in self.next.max(self.typed)..index {
            self.put([0]);
        }
        self.next = index;
    }

    /// Puts bytes for which there is room: those of an id, or of the admitted field.
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.put_slice(&bytes);
    }

    #[inline]
    fn put_slice(&mut self, bytes: &[u8]) {
        let room = &mut self.buffer[self.at..][..bytes.len()];
        room.write_copy_of_slice(bytes);
        self.at += bytes.len();
    }

    /// Bytes that the field before `next` may take.
    fn room(&self) -> usize {
        let later = self.count - self.next;
        let left = CAPACITY - self.at - later * RESERVE;
        if later == 0 { left } else { left / 2 }
    }

    #[inline(always)]
    fn number<const N: usize>(&mut self, index: usize, kind: Kind, bytes: [u8; N], value: &dyn Display) {
        if !self.admits(index) {
            return;
        }
        if index >= self.typed {
            return self.number_as_text(value);
        }
        self.kinds.set(index, kind);
        self.put(bytes);
    }

    #[cold]
    #[inline(never)]
    fn number_as_text(&mut self, value: &dyn Display) {
        self.text(|text| write!(text, "{value}"));
    }

    fn admit_text(&mut self, index: usize) -> bool {
        let admits = self.admits(index);
        if admits && index < self.typed {
            self.kinds.set(index, Kind::Text);
        }
        admits
    }

    fn text(&mut self, write: impl FnOnce(&mut Text<'_, 'a>) -> fmt::Result) {
        let end = self.at + self.room() - MARK.len() - 1;
        let mut text = Text { values: self, end, state: State::Open };
        // An error comes from the value itself; the text is what it wrote before.
        let _ = write(&mut text);
        if text.state == State::Cut {
            self.put_slice(MARK.as_bytes());
        }
        self.put([0]);
    }

    /// Stores the value of a field, a number.
    #[inline]
    pub(crate) fn put_u64(&mut self, index: usize, value: u64) {
        self.number(index, Kind::U64, value.to_le_bytes(), &value);
    }

    /// Stores the value of a field, a text.
    pub(crate) fn put_str(&mut self, index: usize, value: &str) {
        if self.admit_text(index) {
            self.text(|text| text.write_str(value));
        }
    }

    /// Stores the value of a field in its `Debug` form.
    pub(crate) fn put_debug(&mut self, index: usize, value: &dyn Debug) {
        if self.admit_text(index) {
            self.text(|text| write!(text, "{value:?}"));
        }
    }
}

impl Visit for Values<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put_u64(field.index(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field.index(), Kind::I64, value.to_le_bytes(), &value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.number(field.index(), Kind::F64, value.to_le_bytes(), &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field.index(), Kind::Bool, [value.into()], &value);
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.number(field.index(), Kind::U128, value.to_le_bytes(), &value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.number(field.index(), Kind::I128, value.to_le_bytes(), &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_str(field.index(), value);
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        let index = field.index();
        if !self.admits(index) {
            return;
        }
        if index >= self.typed {
            return self.text(|text| write!(text, "{value:02x?}"));
        }
        self.kinds.set(index, Kind::Bytes);
        let cut = &value[..value.len().min(self.room() - size_of::<u16>())];
        self.put((cut.len() as u16).to_le_bytes());
        self.put_slice(cut);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_debug(field.index(), value);
    }
}

#[derive(PartialEq, Eq)]
enum State {
    Open,
    /// There was no room for more.
    Cut,
    /// A NUL ended the text.
    Ended,
}

/// A text that is being written after the values.
struct Text<'v, 'a> {
    values: &'v mut Values<'a>,
    /// Upper bound of the text's end.
    end: usize,
    state: State,
}

impl Write for Text<'_, '_> {
    /// Never fails: some implementations of `Debug` do not expect that.
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.state != State::Open {
            return Ok(());
        }
        let ended = piece.find('\0');
        let piece = &piece[..ended.unwrap_or(piece.len())];
        let fitting = &piece[..piece.floor_char_boundary(self.end - self.values.at)];
        self.values.put_slice(fitting.as_bytes());
        if fitting.len() < piece.len() {
            self.state = State::Cut;
        } else if ended.is_some() {
            self.state = State::Ended;
        }
        Ok(())
    }
}
