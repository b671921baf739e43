//! System calls that may be made from a signal handler, or in a child between `fork` and `exec`.
//!
//! | module | does |
//! |---|---|
//! | `fd` | descriptors |
//! | `memory` | mappings |
//! | `thread` | threads |

mod fd;
mod memory;
mod thread;

pub(crate) use self::fd::Fd;
pub(super) use self::fd::{
    Identity, allocated, close, copy, identity, open, out_of_the_way, read_file, read_trusted, user_at_start,
};
pub(super) use self::memory::{
    keep_from_children, leave_to_children, map_named, map_private, map_shared, map_wiped_on_fork,
    map_zeroes_into, map_zeroes_over, membarrier, populate, unmap,
};
pub(super) use self::thread::{
    block_signals, current_cpu, end_thread, first_thread_name, is_asleep, is_process_alive, name_thread,
    process_id, spawn, thread_id, without_signals,
};

/// Runs `body` and leaves `errno` as it was: a program that emits an event between a failed call and its look
/// at `errno` must not notice.
pub(super) fn keeping_errno<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the address of the calling thread's errno, valid as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = body();
    // SAFETY: as above.
    unsafe { *errno = before };
    result
}

/// The time of day, in nanoseconds since 1970.
pub(super) fn time_of_day() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of `CLOCK_MONOTONIC`; never 0.
pub(super) fn time_since_boot() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` has room for a time; this clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).max(1)
}

/// The number of the calling thread's last error.
pub(super) fn errno() -> libc::c_int {
    // SAFETY: the calling thread's errno.
    unsafe { *libc::__errno_location() }
}
