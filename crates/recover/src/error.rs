//! The crate's one error type: what could not be looked into, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why nothing could be recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no buffer region.
    #[error("no buffers of tracewing found: the program was not recorded at that moment")]
    NoRegion,
    /// There is none that can be read.
    #[error("the buffers cannot be read: {0}")]
    NoReadableRegion(String),
    /// There was a region, and the dump left it out.
    #[error(
        "the core dump leaves the buffers out; before the program starts, set bit 1 of its core filter: echo 0x33 > /proc/self/coredump_filter"
    )]
    NotDumped,
    /// A folder has no buffers in it.
    #[error("{} has no buffers in it: give the folder of `tracewing record --buffers-in`", .0.display())]
    NoBuffers(PathBuf),
    /// None of the files in a folder is a buffer.
    #[error("no buffer in {} can be read: {reason}", path.display())]
    NoRegionIn {
        /// The folder.
        path: PathBuf,
        /// What is there, file by file.
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
