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
    /// The file is no core dump.
    #[error(
        "{}: {reason}; a core dump of a 64-bit Linux program is needed (of a compressed one the content: `coredumpctl dump`)",
        path.display()
    )]
    NotACore {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No memory of that process can be read.
    #[error(
        "cannot read the memory of process {pid}: {source}; be its user or root, and have /proc/sys/kernel/yama/ptrace_scope allow it"
    )]
    Process {
        /// Its id.
        pid: u32,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no such process, or it has no memory.
    #[error("there is no process {0}, or it has no memory: it has ended, or is a thread of the kernel")]
    NoProcess(u32),
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

impl Error {
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}
