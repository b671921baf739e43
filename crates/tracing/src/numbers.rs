//! The values of an event that has few values, all of them numbers of eight bytes, as most frequent events of
//! `tracing` do. Their payload needs no buffer, no bounds checks and no second pass.
//! [`values`](crate::values) handles all other events.

use crate::values::{KIND_BITS, Kind, Kinds};
use core::fmt::Debug;
use tracing_core::field::{Field, Visit};

/// Words of a payload, including the ids before the values.
const WORDS: usize = 6;
/// The value of [`Numbers::next`] for an event that `values` must handle.
const OTHER: usize = usize::MAX;

/// Collects the values of one event after `IDS` ids.
pub(crate) struct Numbers<const IDS: usize> {
    words: [u64; WORDS],
    /// Four bits per value, as in [`Kinds`].
    kinds: u64,
    /// The field whose value is expected next.
    next: usize,
}

impl<const IDS: usize> Numbers<IDS> {
    #[inline]
    pub(crate) fn new(ids: [u64; IDS]) -> Self {
        const { assert!(IDS < WORDS) };
        let mut words = [0; WORDS];
        words[..IDS].copy_from_slice(&ids);
        Self { words, kinds: 0, next: 0 }
    }

    /// The kinds of the values, and the payload; `None` if not all of `fields` had numbers.
    #[inline]
    pub(crate) fn all(&self, fields: usize) -> Option<(Kinds, &[u64])> {
        (self.next == fields)
            .then(|| self.words.get(..IDS + fields))
            .flatten()
            .map(|words| (Kinds::of_first(self.kinds), words))
    }

    #[inline(always)]
    fn put(&mut self, field: &Field, kind: Kind, word: u64) {
        let index = field.index();
        if index != self.next || index >= WORDS - IDS {
            self.next = OTHER;
            return;
        }
        self.words[IDS + index] = word;
        self.kinds |= (kind as u64) << (index * KIND_BITS);
        self.next = index + 1;
    }
}

impl<const IDS: usize> Visit for Numbers<IDS> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Kind::U64, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Kind::I64, value.cast_unsigned());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Kind::F64, value.to_bits());
    }

    fn record_bool(&mut self, _: &Field, _: bool) {
        self.next = OTHER;
    }

    fn record_u128(&mut self, _: &Field, _: u128) {
        self.next = OTHER;
    }

    fn record_i128(&mut self, _: &Field, _: i128) {
        self.next = OTHER;
    }

    fn record_str(&mut self, _: &Field, _: &str) {
        self.next = OTHER;
    }

    fn record_bytes(&mut self, _: &Field, _: &[u8]) {
        self.next = OTHER;
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {
        self.next = OTHER;
    }
}
