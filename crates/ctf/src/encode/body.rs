//! A packet under construction: its bytes, and what a reader would know by now.

use std::cell::Cell;

use super::bits;
use super::scope::Frame;
use crate::decode::packet::Marks;
use crate::decode::program::{Integer, Role};
use crate::model::ByteOrder;

/// A packet under construction.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Where the next field begins, in bits.
    pub(super) at: u64,
    /// Values kept for lengths and tags, as the decoder keeps them.
    pub(super) slots: Box<[Cell<u64>]>,
    /// What a reader would know by now.
    pub(super) marks: Marks,
    /// Fields whose values are known when the packet ends.
    pub(super) later: Vec<Later>,
    /// The byte order of the number before.
    pub(super) last: Option<ByteOrder>,
    /// What is open around the next field.
    pub(super) open: Vec<Frame>,
    /// The first thing that was wrong: the field, and what.
    pub(super) error: Option<Box<(String, String)>>,
}

/// A field whose value is known when the packet ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Later {
    pub(super) role: Role,
    /// Its bit in the packet.
    pub(super) at: u64,
    pub(super) integer: Integer,
    /// Whether it has a variable length, of which the longest is kept free.
    pub(super) variable: bool,
}

/// A place to which a packet under construction can return.
pub(super) struct Mark {
    bytes: usize,
    pub(super) at: u64,
    clock: u64,
    last: Option<ByteOrder>,
}

impl Body {
    /// A packet that is not begun, with memory for so many lengths and tags.
    pub(super) fn new(slots: usize) -> Self {
        Body { slots: vec![Cell::new(0); slots].into_boxed_slice(), ..Body::default() }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), at: self.at, clock: self.marks.clock, last: self.last }
    }

    /// Takes back what was written since `mark`.
    pub(super) fn back_to(&mut self, mark: &Mark) {
        self.bytes.truncate(mark.bytes);
        // The last byte may hold bits of what was taken back.
        if let (Some(byte), within @ 1..) = (self.bytes.last_mut(), mark.at % 8) {
            *byte &= match mark.last {
                Some(ByteOrder::Big) => !(0xff >> within),
                _ => !(0xff << within),
            };
        }
        (self.at, self.marks.clock, self.last) = (mark.at, mark.clock, mark.last);
        self.marks.event_id = None;
        self.open.clear();
        self.error = None;
    }

    /// Makes the packet at least so many bits long, with zeros.
    pub(super) fn reach(&mut self, bits: u64) {
        self.bytes.resize(self.bytes.len().max(bits.div_ceil(8) as usize), 0);
    }

    pub(super) fn align(&mut self, align: u32) {
        self.at = self.at.next_multiple_of(u64::from(align));
        self.reach(self.at);
    }

    /// Appends the low `size` bits (1 to 64) of `value`.
    pub(super) fn bits(&mut self, size: u32, order: ByteOrder, value: u64) {
        self.reach(self.at + u64::from(size));
        bits::put(&mut self.bytes, self.at, size, order, value);
        self.at += u64::from(size);
        self.last = Some(order);
    }

    /// Appends bytes at the begin of one.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.bytes.truncate((self.at / 8) as usize);
        self.bytes.extend_from_slice(bytes);
        self.at += 8 * bytes.len() as u64;
    }
}
