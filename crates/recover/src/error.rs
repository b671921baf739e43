//! The crate's error type: what could not be read, and what to do.

use std::io;
use std::path::{Path, PathBuf};
use tracewing_abi::region::ShapeFault;

/// The reason why nothing could be recovered.
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
    /// The memory contains no buffer region.
    #[error("no buffers of tracewing found: the program was not recorded at that moment")]
    NoRegion,
    /// The memory contains regions, but none that can be read.
    #[error("the buffers cannot be read: at {address:#x}: {fault}")]
    NoReadableRegion {
        /// Address of the last one.
        address: u64,
        /// Why it cannot be read.
        fault: RegionFault,
    },
    /// The memory had a region, and the core dump left it out.
    #[error(
        "the core dump leaves the buffers out; before the program starts, set bit 1 of its core filter: echo 0x33 > /proc/self/coredump_filter"
    )]
    NotDumped,
    /// The folder contains no buffers.
    #[error("{} has no buffers in it: give the folder of `tracewing record --buffers-in`", .0.display())]
    NoBuffers(PathBuf),
    /// None of the files in the folder is a buffer.
    #[error("no buffer in {} can be read: {}", path.display(), listed(faults))]
    NoRegionIn {
        /// Path of the folder.
        path: PathBuf,
        /// The reason for each file, by its name.
        faults: Vec<(String, RegionFault)>,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] tracewing_consumer::Error),
}

fn listed(faults: &[(String, RegionFault)]) -> String {
    let listed: Vec<String> = faults.iter().map(|(name, fault)| format!("{name}: {fault}")).collect();
    listed.join("; ")
}

/// Why bytes are no buffer region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionFault {
    /// It reaches past the end of the memory.
    #[error("buffer region outside the memory")]
    OutsideMemory,
    /// It has no room for its header.
    #[error("buffer region smaller than a page")]
    NoHeader,
    /// It is no region, of another version, or of an impossible shape.
    #[error("{0}")]
    Shape(ShapeFault),
    /// Its writers use a protocol of a newer version.
    #[error("buffer region of an unknown protocol")]
    Protocol,
    /// Its stamps are of a clock of a newer version.
    #[error("buffer region with an unknown clock")]
    Clock,
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
