//! Finds traces below a path and opens them: metadata, which files belong together, what a recording says of
//! itself, and what of that is missing.

pub(crate) mod carried;
mod cut;
pub(crate) mod description;
pub(crate) mod extract;
pub(crate) mod find;
pub(crate) mod gone;
pub(crate) mod missing;
mod opening;
pub(crate) mod recording;
