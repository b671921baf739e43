//! What programs identify their locks, requests and places by: keys, without arithmetic.

use core::fmt;

/// The address of a lock, or of another object that threads or user threads wait for: in its process, or in
/// the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct LockAddress(pub u64);

/// The number of a user thread's request for a lock, unique in its process: all events of the request have
/// it. 0 if the request began before it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ticket(pub u64);

/// The number of a place in the source that creates user threads or makes requests, which they have in
/// common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Origin(pub u64);

/// Where a program makes a call for a lock: a return address, the number of a place in the source, or of what
/// the kernel does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Caller(pub u64);

/// The number of a call chain, which an event describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Chain(pub u64);

/// The number of a span, unique in its process. 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct SpanNumber(pub u64);

impl Caller {
    /// No event reports it.
    pub const UNKNOWN: Caller = Caller(0);

    /// `None` if it is [`Caller::UNKNOWN`].
    pub fn known(self) -> Option<Self> {
        (self != Self::UNKNOWN).then_some(self)
    }
}

/// The place of a user thread's request.
impl From<Origin> for Caller {
    fn from(origin: Origin) -> Self {
        Self(origin.0)
    }
}

impl fmt::LowerHex for LockAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
