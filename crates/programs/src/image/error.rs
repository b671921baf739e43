//! Why a program's file or memory could not be looked into, and what to do.

use std::io;
use std::path::PathBuf;

use tracewing_units::Pid;

use crate::elf::ElfFault;

/// Why there is no image.
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
    /// A file is no program, shared library or plug-in that could have sites.
    #[error("{name}: {reason}")]
    NoObject {
        /// The file.
        name: String,
        /// What it is instead.
        reason: ElfFault,
    },
    /// A file is no core dump.
    #[error(
        "{}: {reason}; a core dump of a 64-bit Linux program is needed (of a compressed one the content: `coredumpctl dump`)",
        path.display()
    )]
    NotACore {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: CoreFault,
    },
    /// No memory of that process can be read.
    #[error(
        "cannot read the memory of process {pid}: {source}; be its user or root, and have /proc/sys/kernel/yama/ptrace_scope allow it"
    )]
    Process {
        /// Its id.
        pid: Pid,
        /// The system's answer.
        source: io::Error,
    },
    /// There is no such process, or it has no memory.
    #[error("there is no process {0}, or it has no memory: it has ended, or is a thread of the kernel")]
    NoProcess(Pid),
}

/// Why a file is no core dump.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreFault {
    /// A folder, a pipe, a device.
    #[error("not a regular file")]
    NotAFile,
    /// Its headers cannot be read.
    #[error(transparent)]
    Headers(#[from] object::Error),
    /// The machine's byte order.
    #[error("made on a big-endian machine")]
    BigEndian,
    /// A program or a library.
    #[error("an ELF file, but no core")]
    NoCore,
    /// More program headers than a kernel makes.
    #[error("too many program headers")]
    ManyHeaders,
}
