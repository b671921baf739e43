//! A time stamp of an event.

use tracewing_units::{Cycles, Timestamp};

/// Where an event lies on its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The clock's value, in its cycles.
    pub cycles: Cycles,
    /// The same as a time.
    pub time: Timestamp,
}
