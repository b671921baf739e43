//! Why a walk stops.

use super::program::Node;

/// Why a walk stopped, and the bit at which it did.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: u64,
    pub(super) cause: Cause,
}

/// What was wrong.
#[derive(Debug)]
pub(super) enum Cause {
    /// A field goes beyond the end of the content.
    Short { field: Option<Box<str>> },
    /// A string without null.
    NoNull { field: Option<Box<str>> },
    /// More elements than the content has room for.
    TooLong { field: Option<Box<str>>, length: u64 },
    /// A byte that fields of both byte orders share.
    Mixed { field: Option<Box<str>> },
    /// An integer of variable length with more than 64 bits.
    Oversized { field: Option<Box<str>> },
    /// A variant's tag selects nothing.
    NoOption { field: Option<Box<str>>, tag: i128 },
}

#[cold]
pub(super) fn fault(at: u64, cause: Cause) -> Box<Fault> {
    Box::new(Fault { at, cause })
}

#[cold]
pub(super) fn short(node: &Node, at: u64) -> Box<Fault> {
    fault(at, Cause::Short { field: node.name.clone() })
}
