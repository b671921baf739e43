//! What is known of a task: figures that need events which a recording lacks, or which a filter leaves out,
//! are unknown.

use crate::run::{Ran, Recorded};
use crate::tasks::Task;
use crate::times::total;
use tracewing_units::Duration;

/// A task, or several of one name, in a recording.
#[derive(Debug, Clone, Copy)]
pub struct KnownTask<'t> {
    /// Its figures.
    pub task: &'t Task,
    /// What was read of the recording.
    pub ran: &'t Ran,
}

impl KnownTask<'_> {
    /// Whether the time in polls of any task is known: see [`KnownTask::busy`].
    pub fn knows_busy(ran: &Ran) -> bool {
        !(ran.recorded.lacks_user_switches || ran.cuts.waits)
    }

    /// Whether it is known when the task was polled.
    pub fn polls(&self) -> bool {
        !self.ran.recorded.lacks_user_switches
    }

    /// Whether it is known how long polls last: not of the parts on some CPUs, as threads that sleep or wait
    /// are on none meanwhile.
    pub fn busy(&self) -> bool {
        Self::knows_busy(self.ran)
    }

    /// Whether the filter lets through polls as a whole.
    pub fn whole_polls(&self) -> bool {
        self.polls() && !self.ran.cuts.polls
    }

    /// Whether it lets through what the task did between them.
    pub fn between_polls(&self) -> bool {
        !self.ran.cuts.between_polls
    }

    /// Whether it is known when the task was ready to run, and all that it was idle.
    pub fn task_wakes(&self) -> bool {
        self.between_polls() && self.polls() && !self.ran.recorded.lacks_user_wakes && !self.task.lacks_wakes
    }

    /// Whether it is known when the task was idle; without wakes, only during waits that the task reports.
    pub fn is_idle(&self) -> bool {
        self.task_wakes() || self.between_polls() && self.polls() && !self.task.idle_ns.is_zero()
    }

    /// Time in no column that is shown.
    pub fn unknown(&self) -> Duration {
        let Task { busy_ns, scheduled_ns, idle_ns, nested_ns, unknown_ns, .. } = *self.task;
        let hidden = [
            (self.busy(), busy_ns + nested_ns),
            (self.task_wakes(), scheduled_ns),
            (self.is_idle(), idle_ns),
        ];
        unknown_ns + total(hidden.into_iter().filter(|(is_shown, _)| !is_shown).map(|(_, ns)| ns))
    }

    /// Whether it is known what the worker did in a poll, which switches of threads show.
    pub fn worker(&self) -> bool {
        self.polls() && !self.ran.switchless
    }

    /// Whether it is known when the worker was blocked, and when it was ready to run, which wakes of threads
    /// show.
    pub fn wakes(&self) -> bool {
        self.worker() && self.ran.recorded.wakes && !self.ran.cuts.waits
    }

    /// Whether it is known what polls had for effects, and that they were useless.
    pub fn effects(&self) -> bool {
        let Recorded { lacks_effects, all_system_calls, .. } = self.ran.recorded;
        self.whole_polls() && !lacks_effects && all_system_calls && self.task.pending_polls == 0
    }

    /// Whether it is known how long the task was ready before some poll.
    pub fn has_delays(&self) -> bool {
        self.whole_polls() && self.between_polls() && self.task.delays > 0
    }
}
