//! Options of a recording of kernel events.

use crate::clock::KernelClock;
use crate::probes::Probe;
use std::time::Duration;
use tracewing_ctf::model::{ClockClass, EnvValue, Uuid};

/// KiB of buffer per CPU that lose nothing of a compile on every CPU with the default events, nor of programs
/// that do nothing but system calls (the measurement is in the documentation of [`crate`]).
pub const DEFAULT_BUFFER_KIB: u32 = 16 * 1024;

/// [`DEFAULT_BUFFER_KIB`], or less where all CPUs together would take more than a 32nd of the memory, but at
/// least 1 MiB.
pub fn default_buffer_kib() -> u32 {
    (memory_kib_per_cpu() / 32).clamp(1024, u64::from(DEFAULT_BUFFER_KIB)) as u32
}

/// KiB of memory, divided by the number of CPUs.
pub(crate) fn memory_kib_per_cpu() -> u64 {
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit) / 1024;
    memory / std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64)
}

/// How often to poll so that [`DEFAULT_BUFFER_KIB`] suffices. Polling without a flush writes only full
/// packets.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The threads whose events are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All threads of the machine.
    System,
    /// The threads of the process of [`crate::KernelRecorder::set_root_pid`] and of its descendants. The
    /// documentation of [`crate`] lists which events that includes.
    Tree,
    /// The threads of the running processes of [`crate::KernelRecorder::follow`], and threads that these
    /// start.
    Processes {
        /// Also the threads of processes that they fork.
        children: bool,
    },
}

impl Scope {
    /// Whether the kernel adds the threads and processes that a recorded thread starts.
    pub(crate) fn follows_forks(self) -> bool {
        matches!(self, Self::Tree | Self::Processes { children: true })
    }
}

/// What of the kernel is recorded, and into which buffers.
#[derive(Debug, Clone)]
pub struct Options {
    /// Patterns of events, see [`crate::choose::choose`]; none for the default set.
    pub globs: Vec<String>,
    /// Probes in programs, recorded in addition to these events.
    pub probes: Vec<Probe>,
    /// Only events of probes.
    pub only_probes: bool,
    /// The threads whose events are recorded.
    pub scope: Scope,
    /// The clock that stamps events.
    pub clock: KernelClock,
    /// Description of that clock in the trace.
    pub clock_class: ClockClass,
    /// The trace's UUID; a flight recorder's snapshots have each their own.
    pub uuid: Uuid,
    /// Buffer per CPU, in KiB; of a flight recorder also what a snapshot holds at most.
    pub buffer_kib: u32,
    /// Size of its sub-buffers, in KiB; `None` for the kernel's own, which are pages. Where the kernel has
    /// none of this size, they are smaller, and there are the more of them.
    pub sub_buffer_kib: Option<u32>,
    /// A full buffer loses its oldest sub-buffer in place of the new event; a flight recorder's always does.
    pub overwrites: bool,
    /// Entries for the metadata's environment, besides those of the machine.
    pub env: Vec<(String, EnvValue)>,
}
