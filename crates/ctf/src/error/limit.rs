//! Limits of what metadata of either version may describe.

/// More field classes than are read: hostile metadata can declare any number in a short text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitFault {
    /// Too many inside one another.
    #[error("field classes are nested more than {0} deep")]
    Depth(u32),
    /// One field class has too many others in it.
    #[error("this field class consists of more than {0} others")]
    Parts(u64),
    /// The trace has too many.
    #[error("with this the trace has more than {0} field classes")]
    Trace(u64),
}
