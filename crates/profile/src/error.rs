//! The crate's one error type: why there are no samples.

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
        /// Of whom samples were wanted.
        what: &'static str,
        /// The setting.
        setting: String,
        /// What would be allowed.
        hint: &'static str,
    },
    /// More samples than the kernel allows.
    #[error(
        "no samples at {wanted} Hz: the kernel takes at most {most} \
         (/proc/sys/kernel/perf_event_max_sample_rate)"
    )]
    Rate {
        /// Hz.
        wanted: u32,
        /// Hz.
        most: u64,
    },
    /// The kernel was built without it, or a container's filter keeps it away.
    #[error("no samples: this system has no perf_event_open, or a container forbids it ({0})")]
    Unavailable(io::Error),
    /// Something else.
    #[error("no samples: {call}: {source}")]
    System {
        /// The system call.
        call: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The trace.
    #[error(transparent)]
    Trace(#[from] tracewing_streams::Error),
}
