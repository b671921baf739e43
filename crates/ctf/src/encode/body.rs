//! A packet under construction: its bytes, and what a reader would know by now.

use std::cell::Cell;

use super::bits;
use crate::ValueFault;
use crate::decode::packet::RoleValues;
use crate::decode::program::{Integer, Role};
use crate::model::ByteOrder;
use tracewing_units::Cycles;

/// A packet under construction.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    /// Where the next field begins, in bits.
    pub(super) at: u64,
    /// Values kept for lengths and tags, as the decoder keeps them.
    pub(super) slots: Box<[Cell<u64>]>,
    /// What a reader would know by now.
    pub(super) roles: RoleValues,
    /// Fields whose values are known when the packet ends.
    pub(super) later: Vec<Later>,
    /// The byte order of the number before.
    pub(super) last: Option<ByteOrder>,
    /// What is open around the next field.
    pub(super) open: Vec<Frame>,
    /// The first thing that was wrong: the field, and what.
    pub(super) error: Option<Box<(String, ValueFault)>>,
}

/// A field whose value is known when the packet ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Later {
    pub(super) role: Role,
    /// Its bit in the packet.
    pub(super) at: u64,
    pub(super) integer: Integer,
    /// Whether it has a variable length; room for the longest form is kept free.
    pub(super) variable: bool,
}

/// What is open around the next field. Numbers are indices of nodes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Frame {
    Structure {
        next: u32,
        end: u32,
    },
    Array {
        element: u32,
        left: u64,
        length: u64,
    },
    /// Bytes that come one by one, as elements.
    Bytes {
        left: u64,
        length: u64,
    },
    /// An optional's content or a variant's option.
    Choice {
        content: u32,
        done: bool,
    },
}

/// A place to which a packet under construction can return.
pub(super) struct Mark {
    bytes: usize,
    pub(super) at: u64,
    clock: Cycles,
    last: Option<ByteOrder>,
}

impl Body {
    /// A packet that has not begun, with memory for this many lengths and tags.
    pub(super) fn new(slots: usize) -> Self {
        Body { slots: vec![Cell::new(0); slots].into_boxed_slice(), ..Body::default() }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), at: self.at, clock: self.roles.clock, last: self.last }
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
        (self.at, self.roles.clock, self.last) = (mark.at, mark.clock, mark.last);
        self.roles.event_id = None;
        self.open.clear();
        self.error = None;
    }

    /// Extends the packet with zeros to at least this many bits.
    pub(super) fn extend_to(&mut self, bits: u64) {
        self.bytes.resize(self.bytes.len().max(bits.div_ceil(8) as usize), 0);
    }

    #[inline]
    pub(super) fn align(&mut self, align: u32) {
        let aligned = self.at.next_multiple_of(u64::from(align));
        if aligned != self.at {
            self.at = aligned;
            self.extend_to(aligned);
        }
    }

    /// Appends the low `size` bits (1 to 64) of `value`.
    #[inline]
    pub(super) fn bits(&mut self, size: u32, order: ByteOrder, value: u64) {
        self.last = Some(order);
        if self.at.is_multiple_of(8) {
            // Nothing follows, so bytes are appended directly.
            match (size, order) {
                (8, _) => return self.append(&[value as u8]),
                (16, ByteOrder::Little) => return self.append(&(value as u16).to_le_bytes()),
                (16, ByteOrder::Big) => return self.append(&(value as u16).to_be_bytes()),
                (32, ByteOrder::Little) => return self.append(&(value as u32).to_le_bytes()),
                (32, ByteOrder::Big) => return self.append(&(value as u32).to_be_bytes()),
                (64, ByteOrder::Little) => return self.append(&value.to_le_bytes()),
                (64, ByteOrder::Big) => return self.append(&value.to_be_bytes()),
                _ => {}
            }
        }
        self.extend_to(self.at + u64::from(size));
        bits::put(&mut self.bytes, self.at, size, order, value);
        self.at += u64::from(size);
    }

    /// Appends bytes at the beginning of one.
    #[inline]
    pub(super) fn append(&mut self, bytes: &[u8]) {
        debug_assert_eq!(self.bytes.len() as u64 * 8, self.at);
        self.bytes.extend_from_slice(bytes);
        self.at += 8 * bytes.len() as u64;
    }
}
