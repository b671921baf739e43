//! Why there is no index.

use std::path::PathBuf;

/// Bytes that an index leaves free on its file system.
pub(crate) const MUST_STAY_FREE: u64 = 1 << 30;

/// What is wrong with the bytes of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index is damaged: {0}")]
pub struct Damaged(pub Damage);

/// Which bytes make no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The bytes of a number do not end.
    #[error("a number does not end")]
    OpenNumber,
    /// A number exceeds what it counts.
    #[error("a number is too large")]
    LargeNumber,
    /// A length exceeds the memory of this machine.
    #[error("a length is too large")]
    LargeLength,
    /// A text is longer than the bytes.
    #[error("a text does not end")]
    OpenText,
    /// A text has other bytes than those of UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
    /// Bytes follow the last value.
    #[error("bytes are left over")]
    LeftOver,
    /// The file has fewer bytes than its head.
    #[error("it is too short")]
    Short,
    /// The head names a place for the tail that the file lacks.
    #[error("its tail lies outside of it")]
    TailOutside,
    /// The check sum of the tail is another one.
    #[error("its sums are wrong")]
    TailSum,
    /// A span has a state that the tail lacks.
    #[error("a state does not exist")]
    NoState,
    /// A span has a waker that the tail lacks.
    #[error("a waker does not exist")]
    NoWaker,
    /// A block exceeds what is written.
    #[error("a block is too large")]
    LargeBlock,
    /// The check sum of a block is another one.
    #[error("the sum of a block is wrong")]
    BlockSum,
    /// The number of a bucket overflows.
    #[error("a bucket is too large")]
    LargeBucket,
    /// A bucket comes after the end of its block.
    #[error("a bucket lies outside of its block")]
    BucketOutside,
    /// A state has a class of no known number.
    #[error("a class does not exist")]
    NoClass,
    /// The times in a bucket exceed its length.
    #[error("a bucket has more time than it lasts")]
    FullBucket,
    /// The tail has fewer states than those that are always there.
    #[error("states are missing")]
    FewStates,
    /// Something belongs to a row that the tail lacks.
    #[error("a row does not exist")]
    NoRow,
    /// A loss has a scope of no known number.
    #[error("a scope does not exist")]
    NoScope,
    /// The number of a CPU or thread exceeds 32 bits.
    #[error("a number of a row is too large")]
    LargeRowNumber,
    /// A row has a kind of no known number.
    #[error("a kind of row does not exist")]
    NoRowKind,
    /// The number of a process exceeds 32 bits.
    #[error("a number of a process is too large")]
    LargeProcess,
    /// A row has a block that the file lacks.
    #[error("a block lies outside of the index")]
    BlockOutside,
    /// A wake comes after its block.
    #[error("a wake is too late")]
    LateWake,
    /// A time overflows.
    #[error("a time is too large")]
    LargeTime,
    /// A state is not among the sums of its block.
    #[error("a state is not among the sums of its block")]
    NotInSums,
}

/// Why an index could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or file could not be used.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the operating system said.
        cause: std::io::Error,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Trace(#[from] tracewing_trace::Error),
    /// The bytes of the index make no sense.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// No folder for it is known.
    #[error(
        "there is no folder for the index: neither XDG_CACHE_HOME nor HOME is set; give one with --index"
    )]
    NoFolder,
    /// It would leave too little space.
    #[error(
        "{}: no space for the index: {free} bytes are free, and {} must stay so; give another folder with --index",
        path.display(),
        MUST_STAY_FREE
    )]
    NoSpace {
        /// Folder of the index.
        path: PathBuf,
        /// What its file system has free, in bytes.
        free: u64,
    },
}
