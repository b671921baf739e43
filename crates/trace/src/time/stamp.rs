//! A time stamp of an event.

/// Where an event lies on its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The clock's value.
    pub cycles: u64,
    /// Nanoseconds since the clock's origin, which is the Unix epoch for most traces.
    pub ns: i64,
}
