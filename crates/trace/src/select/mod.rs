//! What of a recording a user wants to see.

pub(crate) mod condition;
pub(crate) mod decisions;
pub(crate) mod filter;
mod fit;
pub(crate) mod in_order;
pub(crate) mod key;
pub(crate) mod no_event;
pub(crate) mod range;
pub(crate) mod selection;
pub(crate) mod values;
