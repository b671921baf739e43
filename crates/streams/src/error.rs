//! The crate's error type: a failed file operation.

use std::io;
use std::path::{Path, PathBuf};

/// A failed operation on a file of the trace.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct Error {
    /// The operation: `create` or `write`.
    pub action: &'static str,
    /// Path of the file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl Error {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { action, path: path.to_owned(), source }
    }
}
