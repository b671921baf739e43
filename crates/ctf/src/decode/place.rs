//! Where a packet is, for error messages.

use super::fault::Fault;
use crate::{Error, PacketFault};

/// A packet, for error messages.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) index: u64,
    pub(super) offset: u64,
}

impl Place {
    #[cold]
    pub(super) fn error(self, at: u64, fault: PacketFault) -> Error {
        Error::Packet {
            packet: self.index,
            packet_offset: self.offset,
            offset_bits: self.offset.saturating_mul(8).saturating_add(at),
            fault: Box::new(fault),
        }
    }

    #[cold]
    pub(super) fn fault(self, fault: Fault, part: &'static str) -> Error {
        let Fault { at, field, fault } = fault;
        self.error(at, PacketFault::Field { part, field, fault })
    }
}
