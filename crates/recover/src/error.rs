//! The crate's error type: what could not be read, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// The reason why nothing could be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The failed operation.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The memory contains no buffer region.
    #[error("no buffers of tracewing found: the program was not recorded at that moment")]
    NoRegion,
    /// The memory contains regions, but none that can be read; the string says why.
    #[error("the buffers cannot be read: {0}")]
    NoReadableRegion(String),
    /// The memory had a region, and the core dump left it out.
    #[error(
        "the core dump leaves the buffers out; before the program starts, set bit 1 of its core filter: echo 0x33 > /proc/self/coredump_filter"
    )]
    NotDumped,
    /// The folder contains no buffers.
    #[error("{} has no buffers in it: give the folder of `tracewing record --buffers-in`", .0.display())]
    NoBuffers(PathBuf),
    /// None of the files in the folder is a buffer.
    #[error("no buffer in {} can be read: {reason}", path.display())]
    NoRegionIn {
        /// Path of the folder.
        path: PathBuf,
        /// The reason for each file.
        reason: String,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] tracewing_consumer::Error),
}

impl From<tracewing_streams::Error> for Error {
    fn from(error: tracewing_streams::Error) -> Self {
        let tracewing_streams::Error { action, path, source } = error;
        Self::File { action, path, source }
    }
}

impl Error {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}
