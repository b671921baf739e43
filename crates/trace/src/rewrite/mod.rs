//! Writes a recording, or a part of it, as CTF traces of either version or as a file.

pub(crate) mod convert;
pub(crate) mod export;
mod names;
pub(crate) mod naming;
pub(crate) mod unfinished;
