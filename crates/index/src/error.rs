//! Why there is no index.

use std::path::PathBuf;

/// Bytes that an index leaves free on its file system.
pub(crate) const MUST_STAY_FREE: u64 = 1 << 30;

/// What is wrong with the bytes of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index is damaged: {0}")]
pub struct Damaged(pub(crate) &'static str);

/// Why an index could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or file could not be used.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Trace(#[from] tracewing_trace::Error),
    /// The bytes of the index make no sense.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// No folder for it is known.
    #[error(
        "there is no folder for the index: neither XDG_CACHE_HOME nor HOME is set; give one with --index"
    )]
    NoFolder,
    /// It would leave too little space.
    #[error(
        "{}: no space for the index: {free} bytes are free, and {} must stay so; give another folder with --index",
        path.display(),
        MUST_STAY_FREE
    )]
    NoSpace {
        /// The folder.
        path: PathBuf,
        /// What is free.
        free: u64,
    },
}
