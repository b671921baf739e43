//! What time is in a recording: clocks, ranges, and the date and time of day of a zone.

pub(crate) mod clock;
pub(crate) mod range;
pub(crate) mod stamp;
pub(crate) mod zone;
