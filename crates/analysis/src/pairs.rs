//! Which of the events that mark the begin and the end of one thing are all there: between two others, a time
//! would be made up.

use crate::analysis::Analysis;
use crate::locks::{LockUse, Locks};
use crate::run::{LocksLack, Recorded};
use tracewing_trace::{Filter, Recording};

/// What a filter lets through of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pairs {
    /// Whether all ends of functions are there.
    pub calls: bool,
    /// Whether requests, acquisitions and releases of locks are there, as far as they were recorded.
    locks: bool,
    /// The pairs of locks of user threads, whose two events may be on different threads.
    task_locks: bool,
    lacks: [LocksLack; 2],
}

impl Pairs {
    /// Of a recording that lacks nothing.
    pub const ALL: Self = Self {
        calls: true,
        locks: true,
        task_locks: true,
        lacks: [LocksLack { requests: false, acquisitions: false, releases: false }; 2],
    };

    /// Finds out before the recording is read.
    pub fn of(recording: &Recording, filter: &Filter) -> Self {
        let recorded = Recorded::of(recording).chosen(&filter.leaves_out(recording));
        let all_cpus = !filter.chooses_cpus() && !recording.is_extract_of_cpus();
        let all_tids = !filter.chooses_tids() && !recording.is_extract_of_lwps();
        let locks = all_cpus && !filter.tears(recording, Locks::TOGETHER, Locks::SAME);
        Self {
            calls: all_cpus && !recorded.lacks_ends_of_functions && !filter.tears(recording, &[], &[]),
            locks,
            task_locks: locks && all_tids,
            lacks: recorded.lacks_of_locks,
        }
    }

    /// Whether a wait, or a hold, was as long as its events say.
    pub fn has(&self, of: &LockUse) -> bool {
        if of.is_of_kernel {
            return self.locks;
        }
        let lacks = self.lacks[usize::from(of.is_of_tasks)];
        let is_paired = if of.is_of_tasks { self.task_locks } else { self.locks };
        is_paired && !lacks.acquisitions && !if of.is_held { lacks.releases } else { lacks.requests }
    }
}
