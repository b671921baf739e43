//! Why a process that runs is not recorded.

use std::io;
use std::path::PathBuf;

use tracewing_units::Pid;

/// Why a process, or every selected process, is not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No process has this number.
    #[error("there is no process {}", pid.0)]
    None {
        /// The number that was given.
        pid: Pid,
    },
    /// The number is that of a thread.
    #[error("{} is a thread of process {}: give the number of the process, all of whose threads are recorded", tid.0, pid.0)]
    Thread {
        /// The number that was given.
        tid: Pid,
        /// The process that the thread belongs to.
        pid: Pid,
    },
    /// It has ended; its parent has not waited for it.
    #[error("process {} has ended", pid.0)]
    Ended {
        /// Id of the process that is refused.
        pid: Pid,
    },
    /// It is a kernel thread.
    #[error("process {} ({name}) is a kernel thread: `tracewing record --system-wide -- sleep 10` records those", pid.0)]
    OfKernel {
        /// Id of the process that is refused.
        pid: Pid,
        /// The name of its program.
        name: String,
    },
    /// It is the recorder.
    #[error("process {} is this recorder itself", std::process::id())]
    Itself,
    /// It belongs to another user.
    #[error("process {} ({name}) is not recorded: it belongs to user {uid}, and only root may record processes of other users (EPERM)", pid.0)]
    OtherUser {
        /// Id of the process that is refused.
        pid: Pid,
        /// The name of its program.
        name: String,
        /// The user that it belongs to.
        uid: u32,
    },
    /// The system does not let it be pinned.
    #[error("process {} is not recorded: {call}: {source}", pid.0)]
    System {
        /// Id of the process that is refused.
        pid: Pid,
        /// The system call that failed.
        call: &'static str,
        /// The error that the system returned.
        source: io::Error,
    },
    /// Nothing that the other recording records runs any more.
    #[error("no process of the recording (recorder {}) runs any more", pid.0)]
    NoProcesses {
        /// Process id of that recorder.
        pid: Pid,
    },
    /// No process has such a name.
    #[error("no process is called {0}; `ps -e` lists those that run")]
    NoName(String),
    /// There is no such control group.
    #[error("there is no control group {}: {source} (a path below /sys/fs/cgroup, as in /proc/PID/cgroup)", path.display())]
    NoCgroup {
        /// As it was given.
        path: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// No process is in the control group.
    #[error("no process is in the control group {}", .0.display())]
    EmptyCgroup(PathBuf),
    /// Every selected process is refused.
    #[error("no process can be recorded: {}", .0.iter().map(Refusal::to_string).collect::<Vec<_>>().join("; "))]
    All(Vec<Refusal>),
}
