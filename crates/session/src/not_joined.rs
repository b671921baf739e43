//! Reasons for which a process gets no buffers.

use std::io;

use tracewing_abi::region::VERSION;

/// Why a process is not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotJoined {
    /// Its agent is of another version of tracewing.
    #[error(
        "it speaks version {theirs} of the protocol and this recorder {VERSION}; build both with the same tracewing"
    )]
    Version { theirs: u32 },
    /// It has regions for as many children as it may have.
    #[error("it has the maximum number of buffers")]
    Spares,
    /// It, or its user, has as many regions as it may have.
    #[error("it, or its user, has the maximum number of buffers")]
    Quota,
    /// The recorder has as many open files as it may have.
    #[error(
        "more than {most} programs at once: the limit on open files (ulimit -n) allows no more, or have them share buffers \
         (--buffers user)"
    )]
    OpenFiles { most: usize },
    /// The region that it should share is finished.
    #[error("its buffers are gone")]
    Gone,
    /// The kernel gives no descriptor for a region.
    #[error("{0}")]
    Descriptors(io::Error),
    /// The kernel gives no memory for a region, or no file.
    #[error(transparent)]
    Region(#[from] tracewing_consumer::Error),
}
