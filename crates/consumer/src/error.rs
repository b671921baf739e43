//! The crate's error type.

use std::io;
use std::path::{Path, PathBuf};

use tracewing_abi::region::ShapeFault;
use tracewing_files::{Missing, Refused};

/// Why the time stamp counter cannot be a recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTsc {
    /// Its speed depends on the processor's power state.
    #[error("it is not invariant on this processor")]
    NotInvariant,
    /// The kernel has another clock source: it does not trust the counter, or is set so.
    #[error("the kernel does not use it as its clock source")]
    NotTrusted,
    /// It is another kind of processor.
    #[error("this processor has none")]
    NoCounter,
}

/// Why a recording could not begin or continue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The attempted operation (`create`, `write`).
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The trace folder exists and is not empty.
    #[error("{} exists and is not empty; choose another folder or remove it", .0.display())]
    FolderNotEmpty(PathBuf),
    /// The trace folder, or a file in it, has been moved or removed.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The kernel provides no shared memory for the buffers.
    #[error(
        "cannot get {size} bytes of shared memory for the buffers: {source}; use smaller or fewer sub-buffers"
    )]
    Memory {
        /// How much was requested, in bytes.
        size: usize,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The requested geometry is impossible.
    #[error("{0}")]
    Geometry(ShapeFault),
    /// The requested clock cannot be used on this machine.
    #[error("the time stamp counter cannot be the clock here: {0}; use the clock `mono`")]
    Clock(NoTsc),
}

impl From<tracewing_streams::Error> for Error {
    fn from(error: tracewing_streams::Error) -> Self {
        let tracewing_streams::Error { action, path, source } = error;
        Self::File { action, path, source }
    }
}

impl Error {
    /// The error for an output folder that cannot be created.
    pub fn folder(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| match Refused::of(&error) {
            Some(Refused::NotEmpty) => Self::FolderNotEmpty(path.to_owned()),
            Some(_) => Self::file("write to", path)(error),
            None => Self::file("create", path)(error),
        }
    }

    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }

    /// A copy of the error; of a file error, with the system error's number or kind.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::File { action, path, source } => {
                let source = match source.raw_os_error() {
                    Some(number) => io::Error::from_raw_os_error(number),
                    None => source.kind().into(),
                };
                Self::File { action, path: path.clone(), source }
            }
            Self::FolderNotEmpty(path) => Self::FolderNotEmpty(path.clone()),
            Self::Missing(missing) => Self::Missing(missing.clone()),
            Self::Memory { size, source } => Self::Memory { size: *size, source: source.kind().into() },
            Self::Geometry(why) => Self::Geometry(*why),
            Self::Clock(why) => Self::Clock(*why),
        }
    }

    /// The disk (or a quota, or the file size limit) is full.
    pub fn is_disk_full(&self) -> bool {
        let Self::File { source, .. } = self else { return false };
        matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG))
    }
}
