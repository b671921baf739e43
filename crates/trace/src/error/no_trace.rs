//! Why a path is no trace.

use std::path::PathBuf;

/// Why there is no trace at a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTrace {
    /// It is a file.
    #[error("not a trace: a trace is a folder with a file `metadata` in it")]
    File,
    /// It is a folder without one.
    #[error("no trace found: no file `metadata` in this folder or below it")]
    NoMetadata,
    /// The same, and a link leads elsewhere.
    #[error(
        "no trace found: no file `metadata` in this folder or below it; symbolic links that lead out of it ({}) are \
         not followed", .0.display()
    )]
    LinksOut(PathBuf),
    /// A stream file has no packet.
    #[error("the file is empty")]
    Empty,
}
