//! What there is in a recording: counts, rates, losses, times, types.

pub(crate) mod describe;
pub(crate) mod report;
pub(crate) mod stats;
pub(crate) mod summary;
