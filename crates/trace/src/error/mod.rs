//! The crate's one error type: what is wrong, in which file, where in it, and why.

mod no_trace;
mod stream;
mod usage;

pub use no_trace::NoTrace;
pub use stream::StreamFault;
pub use usage::{NoFit, UsageFault};

use std::path::{Path, PathBuf};

/// Why a trace could not be found, opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be opened or read.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// There is no trace where one was expected.
    #[error("{}: {cause}", path.display())]
    NotATrace {
        /// The path that was given.
        path: PathBuf,
        /// What was looked for.
        cause: NoTrace,
    },
    /// Metadata, a packet or an event record makes no sense.
    #[error("{}: {cause}", path.display())]
    Ctf {
        /// File that the fault is in.
        path: PathBuf,
        /// Where in it, and what is wrong.
        cause: tracewing_ctf::Error,
    },
    /// A stream file ends, or changes, where it must not.
    #[error("{}, byte {offset}: {cause}", path.display())]
    Stream {
        /// File that the fault is in.
        path: PathBuf,
        /// Where the fault is, in bytes from the beginning of the file.
        offset: u64,
        /// What is wrong at that place.
        cause: StreamFault,
    },
    /// What was read could not be written.
    #[error("cannot write")]
    Output(#[source] std::io::Error),
    /// The caller has cancelled it.
    #[error("stopped before the end; nothing was written")]
    Stopped,
    /// What a user asked for cannot be understood.
    #[error("{0}")]
    Usage(UsageFault),
}

impl From<UsageFault> for Error {
    fn from(fault: UsageFault) -> Self {
        Self::Usage(fault)
    }
}

impl Error {
    /// Adds the path to what the operating system said.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        |cause| Error::Io { path, cause }
    }

    /// Adds the path to what the decoder said.
    pub(crate) fn ctf(path: &Path) -> impl FnOnce(tracewing_ctf::Error) -> Error {
        let path = path.to_owned();
        |cause| Error::Ctf { path, cause }
    }
}
