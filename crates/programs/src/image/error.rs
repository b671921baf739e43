//! Why a program's file or memory could not be read, and what to do.

use std::io;
use std::path::PathBuf;

use tracewing_units::Pid;

use crate::elf::ElfFault;

/// The reason why there is no image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The operation that failed, as in "cannot …".
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error that the system returned.
        source: io::Error,
    },
    /// A file is not a program, shared library or plug-in that could have sites.
    #[error("{name}: {reason}")]
    NoObject {
        /// Path of the file.
        name: String,
        /// What the file is instead.
        reason: ElfFault,
    },
    /// The file is not a core dump of a 64-bit Linux program.
    #[error(
        "{}: {reason}; a core dump of a 64-bit Linux program is needed (uncompressed: use `coredumpctl dump`)",
        path.display()
    )]
    NotACore {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong with the file.
        reason: CoreFault,
    },
    /// The process's memory cannot be read, usually because permission is missing.
    #[error(
        "cannot read the memory of process {pid}: {source}; run as its user or root, and check /proc/sys/kernel/yama/ptrace_scope"
    )]
    Process {
        /// Process id.
        pid: Pid,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The process does not exist, or it has no memory.
    #[error("there is no process {0}, or it has no memory: it has ended, or is a kernel thread")]
    NoProcess(Pid),
}

/// Why a file is not a core dump.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreFault {
    /// A folder, a pipe or a device.
    #[error("not a regular file")]
    NotAFile,
    /// Unreadable headers.
    #[error(transparent)]
    Headers(#[from] object::Error),
    /// A dump of a big-endian machine.
    #[error("from a big-endian machine")]
    BigEndian,
    /// A program or a library, not a core.
    #[error("an ELF file, but not a core dump")]
    NoCore,
    /// More program headers than a kernel makes.
    #[error("too many program headers")]
    ManyHeaders,
}
