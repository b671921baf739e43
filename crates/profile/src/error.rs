//! The crate's error type: why there are no samples.

use std::io;

/// Why a profile could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel's setting does not allow it.
    #[error(
        "no samples of {what}: /proc/sys/kernel/perf_event_paranoid is {setting}, which allows this for root only{hint}"
    )]
    NotAllowed {
        /// What was to be sampled.
        what: &'static str,
        /// Value of the setting.
        setting: String,
        /// What is allowed instead.
        hint: &'static str,
    },
    /// The kernel does not allow so many samples.
    #[error(
        "no samples at {hertz} Hz: the kernel takes at most {most} \
         (/proc/sys/kernel/perf_event_max_sample_rate)"
    )]
    Rate {
        /// The requested rate in Hz.
        hertz: u32,
        /// The highest allowed rate in Hz.
        most: u64,
    },
    /// The kernel was built without perf events, or a container's filter blocks the call.
    #[error("no samples: this system has no perf_event_open, or a container forbids it ({0})")]
    Unavailable(io::Error),
    /// Any other failure.
    #[error("no samples: {call}: {source}")]
    System {
        /// The failed system call.
        call: &'static str,
        /// Error that the system returned.
        source: io::Error,
    },
    /// The trace could not be written.
    #[error(transparent)]
    Trace(#[from] tracewing_streams::Error),
}
