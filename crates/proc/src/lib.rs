//! What Linux shows of processes and threads in `/proc`, read and parsed in one place.
//!
//! | type | file |
//! |---|---|
//! | [`Status`] | `/proc/PID/status`, `/proc/PID/task/TID/status` |
//! | [`Stat`] | `/proc/PID/stat`, `/proc/PID/task/TID/stat` |
//! | [`Sleeping`] | `/proc/PID/task/TID/syscall` |
//! | [`guarded`] | what only those see that may trace the process: `maps`, `root`, `exe`, `ns` |
//!
//! Names of threads are in these files, and can be any bytes. What the kernel does not show is `None`, as on
//! a kernel that is too old for it or where the process has ended.
//!
//! Programs that are recorded read these files with buffers of their own and without this crate.

#![warn(unreachable_pub)]

pub mod guarded;
mod sleeping;
mod stat;
mod status;

pub use sleeping::{Forbidden, Sleeping};
pub use stat::Stat;
pub use status::Status;

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A file of `/proc`, with as few system calls as possible: a thread may be stopped meanwhile.
fn read(path: impl AsRef<Path>) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(4096);
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}
