//! Why a walk stops.

use super::program::Node;
use crate::FieldFault;

/// Why a walk stopped, and where.
#[derive(Debug)]
pub(super) struct Fault {
    /// The bit offset in the packet.
    pub(super) at: u64,
    /// The field's name, if it has one.
    pub(super) field: Option<Box<str>>,
    pub(super) fault: FieldFault,
}

#[cold]
pub(super) fn fault(node: &Node, at: u64, fault: FieldFault) -> Box<Fault> {
    Box::new(Fault { at, field: node.name.clone(), fault })
}

#[cold]
pub(super) fn short(node: &Node, at: u64) -> Box<Fault> {
    fault(node, at, FieldFault::Short)
}
