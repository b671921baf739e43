//! The crate's one error type: a file operation that failed.

use std::io;
use std::path::{Path, PathBuf};

/// What could not be done to which file of the trace, and why.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct Error {
    /// What was tried: `create` or `write`.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's answer.
    pub source: io::Error,
}

impl Error {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self { action, path: path.to_owned(), source }
    }
}
