//! Kernel tracepoints of a stock Linux, recorded through tracefs as CTF.

pub mod choose;
mod class;
mod clock;
mod error;
mod folder;
pub mod format;
pub mod glob;
mod instance;
mod losses;
pub mod lttng;
mod metadata;
pub mod page;
pub mod print;
mod reader;
mod recorder;
mod stream;
mod tracefs;

pub use class::{Class, compile};
pub use clock::KernelClock;
pub use error::{Error, FormatError, Missing};
pub use losses::{LossRange, Losses};
pub use recorder::{DEFAULT_BUFFER_KIB, KernelRecorder, Options, POLL_INTERVAL, Progress, Scope, Summary};
pub use stream::StreamSummary;
pub use tracefs::{Tracefs, privileges};
