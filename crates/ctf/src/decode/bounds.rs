//! How far fields go, and whether the content goes as far.

use super::fault::{Fault, fault, short};
use super::program::{Length, Node};
use super::walk::Walk;
use crate::FieldFault;
use crate::model::ByteOrder;

impl<'a> Walk<'a> {
    /// The whole bytes from bit `at`, which begins one, to bit `end`.
    #[inline]
    pub(super) fn bytes(&self, at: u64, end: u64) -> &'a [u8] {
        &self.data[(at / 8) as usize..(end / 8).max(at / 8) as usize]
    }

    /// As [`Walk::after`], for a length in bytes.
    #[inline]
    pub(super) fn after_bytes(&self, node: &Node, at: u64, length: Length) -> Result<u64, Box<Fault>> {
        let length = self.length(length);
        match length.checked_mul(8) {
            Some(size) => self.after(node, at, size),
            None => Err(fault(node, at, FieldFault::TooLong(length))),
        }
    }

    #[inline]
    pub(super) fn length(&self, length: Length) -> u64 {
        match length {
            Length::Fixed(length) => length,
            Length::Slot(slot) => self.slots[slot as usize].get(),
        }
    }

    /// `at`, moved up to the node's alignment. Padding at the end of the content may be missing.
    #[inline]
    pub(super) fn aligned(&self, node: &Node, at: u64) -> Result<u64, Box<Fault>> {
        let mask = u64::from(node.align) - 1;
        let aligned = (at + mask) & !mask;
        if aligned > self.limit {
            return Err(short(node, at));
        }
        Ok(aligned)
    }

    /// The bit `size` bits after `at`, if the content extends so far.
    #[inline]
    pub(super) fn after(&self, node: &Node, at: u64, size: u64) -> Result<u64, Box<Fault>> {
        if size > self.limit - at {
            return Err(short(node, at));
        }
        Ok(at + size)
    }

    /// As [`Walk::after`] for a number: the byte order changes only between bytes (specification 1.8.3,
    /// section 4.1.5).
    #[inline]
    pub(super) fn after_number(
        &mut self,
        node: &Node,
        at: u64,
        size: u32,
        order: ByteOrder,
    ) -> Result<u64, Box<Fault>> {
        if self.mixed {
            let last = self.last.replace(order);
            if !at.is_multiple_of(8) && last.is_some_and(|last| last != order) {
                return Err(fault(node, at, FieldFault::Mixed));
            }
        }
        self.after(node, at, u64::from(size))
    }
}
