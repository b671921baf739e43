//! All streams of a recording in one order of time.

pub(crate) mod backwards;
pub(crate) mod event;
pub(crate) mod fields;
pub(crate) mod growing;
pub(crate) mod messages;
pub(crate) mod order;
pub(crate) mod outline;
pub(crate) mod slices;
pub(crate) mod stream_events;
pub(crate) mod tail;
