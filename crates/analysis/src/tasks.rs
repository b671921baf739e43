//! The tasks of async runtimes, and other user threads: their polls, what polls cost, how long they waited to
//! be polled, and what is wrong with them.

use crate::analysis::{Analysis, Input};
use crate::polls::{ListedPoll, Polls, PollsBy};
use crate::serials::Serials;
use crate::times::grow;
use std::collections::HashMap;
use tracewing_trace::super_trace::{
    Change, Doing, Fold, Lwp, LwpSerial, Mode, Name, SwitchCause, TaskSerial, UserThread,
};
use tracewing_units::{Duration, Pid, Timestamp};

/// Maximum number of tasks with a row of their own. Further ones are summed by name when they end, so that
/// memory is bounded.
const ROWS: usize = 1 << 18;

/// A poll that ends so soon has done nothing that would have taken time, in nanoseconds.
const AT_ONCE: Duration = Duration::from_ns(10_000);

/// From when on a poll is remarkable, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// It ran so long without giving way to other tasks.
    pub long_ns: Duration,
    /// Its worker slept so long in it, and could run no other task.
    pub blocking_ns: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { long_ns: Duration::from_ns(10_000_000), blocking_ns: Duration::from_ns(1_000_000) }
    }
}

/// One task, or several of one name. Times are in nanoseconds; `busy_ns`, `scheduled_ns`, `idle_ns`,
/// `nested_ns` and `unknown_ns` add up to its life within the recording.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its process, where the events say.
    pub process: Option<Pid>,
    /// Its number, unique in its process; `None` for several of one name.
    pub task: Option<tracewing_units::Task>,
    /// How many tasks these are.
    pub tasks: u64,
    /// Its last known name.
    pub name: String,
    /// How often it was polled.
    pub polls: u64,
    /// How long it was being polled.
    pub busy_ns: Duration,
    /// How long it was ready, and no worker polled it.
    pub scheduled_ns: Duration,
    /// How long it waited for something else.
    pub idle_ns: Duration,
    /// How long its poll ran another task within itself.
    pub nested_ns: Duration,
    /// Time in which its state is unknown, such as before its first event.
    pub unknown_ns: Duration,
    /// The duration of the longest poll.
    pub longest_ns: Duration,
    /// When that began, on the recording's clock.
    pub longest_begin: Option<Timestamp>,
    /// Of `busy_ns`: its worker ran on a CPU.
    pub running_ns: Duration,
    /// Of `busy_ns`: its worker was ready, and something else had the CPU.
    pub preempted_ns: Duration,
    /// Of `busy_ns`: in system calls, running or asleep.
    pub system_ns: Duration,
    /// Of `busy_ns`: its worker slept, in system calls or for memory.
    pub slept_ns: Duration,
    /// The longest time that its worker slept at once.
    pub longest_sleep_ns: Duration,
    /// The system call in which it did; `None` if unknown.
    pub slept_on: Option<Name>,
    /// Pages that were not there when polls touched them.
    pub page_faults: u64,
    /// Polls before which the time that the task was ready is known.
    pub delays: u64,
    /// Total of these times.
    pub delay_ns: Duration,
    /// The longest time from ready to polled.
    pub max_delay_ns: Duration,
    /// When that ended and it was polled, on the recording's clock.
    pub max_delay_end: Option<Timestamp>,
    /// Polls that ran for [`Thresholds::long_ns`] or longer.
    pub long_polls: u64,
    /// How long these ran.
    pub long_ns: Duration,
    /// Polls in which its worker slept for [`Thresholds::blocking_ns`] or longer.
    pub blocking_polls: u64,
    /// Polls that may be long or blocking as well: their worker's state during a part of them is unknown.
    pub doubtful_polls: u64,
    /// Useless wakes: polls that were not its first, ran for less than 10 µs and ended pending, and in which
    /// it recorded no event except of a wait, began no system call, and woke and created nothing.
    pub vain_polls: u64,
    /// Polls after which it is not known whether it was blocked or ready ([`SwitchCause::Pending`]): they may
    /// be useless as well.
    pub pending_polls: u64,
    /// Whether its wakes are not recorded ([`UserThread::lacks_wakes`]).
    pub lacks_wakes: bool,
    /// Whether that is as tokio's hooks report none ([`UserThread::is_hooked`]).
    pub hooked: bool,
}

impl Task {
    /// How long it was ready before it was polled, on average, in nanoseconds; 0 if that is known of no poll.
    pub fn mean_delay_ns(&self) -> Duration {
        self.delay_ns.mean(self.delays).unwrap_or_default()
    }

    fn add(&mut self, other: &Task) {
        self.tasks += other.tasks;
        self.polls += other.polls;
        grow(&mut self.busy_ns, other.busy_ns);
        grow(&mut self.scheduled_ns, other.scheduled_ns);
        grow(&mut self.idle_ns, other.idle_ns);
        grow(&mut self.nested_ns, other.nested_ns);
        grow(&mut self.unknown_ns, other.unknown_ns);
        if other.longest_ns > self.longest_ns {
            (self.longest_ns, self.longest_begin) = (other.longest_ns, other.longest_begin);
        }
        grow(&mut self.running_ns, other.running_ns);
        grow(&mut self.preempted_ns, other.preempted_ns);
        grow(&mut self.system_ns, other.system_ns);
        if other.longest_sleep_ns > self.longest_sleep_ns {
            (self.longest_sleep_ns, self.slept_on) = (other.longest_sleep_ns, other.slept_on);
        }
        grow(&mut self.slept_ns, other.slept_ns);
        self.page_faults += other.page_faults;
        self.delays += other.delays;
        grow(&mut self.delay_ns, other.delay_ns);
        if other.max_delay_ns > self.max_delay_ns {
            (self.max_delay_ns, self.max_delay_end) = (other.max_delay_ns, other.max_delay_end);
        }
        self.long_polls += other.long_polls;
        grow(&mut self.long_ns, other.long_ns);
        self.blocking_polls += other.blocking_polls;
        self.doubtful_polls += other.doubtful_polls;
        self.vain_polls += other.vain_polls;
        self.pending_polls += other.pending_polls;
        self.lacks_wakes |= other.lacks_wakes;
        self.hooked |= other.hooked;
    }
}

/// The analysis of `tracewing tasks`: polls of user threads, by task.
#[derive(Debug)]
pub struct Tasks {
    thresholds: Thresholds,
    /// Whether tasks of one name make one row.
    by_name: bool,
    tasks: Serials<TaskSerial, Live>,
    /// By the serial numbers of LWPs: the time of the current task that has not been reported as that task's.
    workers: Serials<LwpSerial, Spent>,
    rows: Vec<Task>,
    sums: HashMap<(Option<Pid>, String), Task>,
    polls: Option<Polls>,
}

/// A task that has not ended.
#[derive(Debug, Default)]
struct Live {
    row: Task,
    poll: Option<Poll>,
    /// How long it has been ready, if known.
    ready_ns: Option<Duration>,
    /// Its poll runs another one within itself.
    nested: bool,
}

/// A poll in progress.
#[derive(Debug, Default)]
struct Poll {
    begin: Timestamp,
    /// How long the task was ready before, if known.
    delay: Option<Duration>,
    spent: Spent,
    /// Counters of its LWP when it began.
    system_calls: u64,
    user_events: u64,
}

/// What an LWP did for a task.
#[derive(Debug, Default, Clone)]
struct Spent {
    all_ns: Duration,
    running_ns: Duration,
    preempted_ns: Duration,
    system_ns: Duration,
    slept_ns: Duration,
    longest_sleep: Option<(Duration, Option<Name>)>,
    page_faults: u64,
}

impl Spent {
    #[inline]
    fn take(&mut self, doing: Doing, ns: Duration) {
        grow(&mut self.all_ns, ns);
        match doing {
            Doing::Running { mode, .. } => {
                grow(&mut self.running_ns, ns);
                if let Mode::SystemCall(_) = mode {
                    grow(&mut self.system_ns, ns);
                }
            }
            Doing::Runnable { .. } => grow(&mut self.preempted_ns, ns),
            Doing::Blocked { on } => {
                grow(&mut self.slept_ns, ns);
                grow(&mut self.system_ns, if on.is_some() { ns } else { Duration::ZERO });
                if self.longest_sleep.is_none_or(|(longest, _)| ns > longest) {
                    self.longest_sleep = Some((ns, on));
                }
            }
            Doing::Unknown | Doing::Nested => {}
        }
    }

    /// How long it is not known what the LWP did.
    fn unknown_ns(&self) -> Duration {
        self.all_ns - (self.running_ns + self.preempted_ns + self.slept_ns)
    }

    fn add(&mut self, other: &Spent) {
        grow(&mut self.all_ns, other.all_ns);
        grow(&mut self.running_ns, other.running_ns);
        grow(&mut self.preempted_ns, other.preempted_ns);
        grow(&mut self.system_ns, other.system_ns);
        grow(&mut self.slept_ns, other.slept_ns);
        if other.longest_sleep.map(|(ns, _)| ns) > self.longest_sleep.map(|(ns, _)| ns) {
            self.longest_sleep = other.longest_sleep;
        }
        self.page_faults += other.page_faults;
    }
}

impl Tasks {
    /// An analysis that has seen nothing yet; `by_name` makes one row of all tasks of a name in a process.
    pub fn new(thresholds: Thresholds, by_name: bool) -> Self {
        Tasks {
            thresholds,
            by_name,
            tasks: Serials::default(),
            workers: Serials::default(),
            rows: Vec::new(),
            sums: HashMap::new(),
            polls: None,
        }
    }

    /// The same with a list of at most `most` polls, of all tasks that it is given.
    #[must_use]
    pub fn listing(self, by: PollsBy, most: usize) -> Self {
        Tasks { polls: Some(Polls::new(by, most)), ..self }
    }

    /// The polls that [`Tasks::listing`] asks for, when all has been read.
    pub fn take_polls(&mut self) -> Option<Polls> {
        self.polls.take()
    }

    /// All tasks, the busiest first, when all has been read.
    pub fn finish(self) -> Vec<Task> {
        let mut rows = self.rows;
        rows.extend(self.sums.into_values());
        rows.sort_by(|a, b| {
            let order = b.busy_ns.cmp(&a.busy_ns).then(a.process.cmp(&b.process));
            order.then(a.task.cmp(&b.task)).then_with(|| a.name.cmp(&b.name))
        });
        rows
    }
}

impl Poll {
    fn listed(&self, end: Option<Timestamp>) -> ListedPoll {
        let Spent { all_ns, running_ns, slept_ns, .. } = self.spent;
        ListedPoll { begin: self.begin, end, busy_ns: all_ns, running_ns, slept_ns, delay_ns: self.delay }
    }
}

impl Live {
    fn ends_poll(&mut self, thread: &UserThread, poll: &Poll, lwp: &Lwp, cause: SwitchCause, of: Thresholds) {
        let Poll { begin, spent, system_calls, user_events, .. } = poll;
        let row = &mut self.row;
        if spent.all_ns > row.longest_ns || row.longest_begin.is_none() {
            (row.longest_ns, row.longest_begin) = (spent.all_ns, Some(*begin));
        }
        if spent.running_ns >= of.long_ns {
            row.long_polls += 1;
            grow(&mut row.long_ns, spent.running_ns);
        }
        row.blocking_polls += u64::from(spent.slept_ns >= of.blocking_ns);
        let unknown = spent.unknown_ns();
        let may_be = |known: Duration, least: Duration| known < least && known + unknown >= least;
        row.doubtful_polls +=
            u64::from(may_be(spent.running_ns, of.long_ns) || may_be(spent.slept_ns, of.blocking_ns));
        // The switch away from it is one, and so is what it began to wait for.
        let own_events = 1 + u64::from(thread.waits_for.is_some());
        let silent =
            lwp.user_events.saturating_sub(*user_events) <= own_events && lwp.system_calls == *system_calls;
        row.pending_polls += u64::from(cause == SwitchCause::Pending);
        let at_once = spent.all_ns < AT_ONCE && cause == SwitchCause::Blocked;
        row.vain_polls += u64::from(at_once && silent && thread.polls > 1);
    }
}

impl Analysis for Tasks {
    const EVENTS: bool = false;
    const CONTINUES: bool = true;

    fn input(&mut self, _: Input<'_>) {}
}

impl Fold for Tasks {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            Change::UserThreadDid { thread, doing, from, to } => self.user_thread(thread, doing, from, to),
            Change::LwpFaults { lwp, .. } if lwp.runs_user_thread() => {
                self.workers.at(lwp.serial).page_faults += 1;
            }
            Change::UserThreadRuns { thread, lwp, is_poll, at, .. } => {
                self.tasks.at(thread.serial).row.polls += u64::from(is_poll);
                self.user_thread_runs(thread, lwp, at);
            }
            Change::UserThreadStops { thread, lwp, cause, at, .. } => {
                self.user_thread_stops(thread, lwp, cause, at);
            }
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }
}

impl Tasks {
    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        if lwp.runs_user_thread() {
            self.workers.at(lwp.serial).take(doing, to - from);
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let spent = std::mem::take(self.workers.at(lwp.serial));
        let Some(thread) = thread else { return };
        let live = self.tasks.at(thread.serial);
        let row = &mut live.row;
        grow(&mut row.busy_ns, spent.all_ns);
        grow(&mut row.running_ns, spent.running_ns);
        grow(&mut row.preempted_ns, spent.preempted_ns);
        grow(&mut row.system_ns, spent.system_ns);
        grow(&mut row.slept_ns, spent.slept_ns);
        row.page_faults += spent.page_faults;
        if let Some((ns, on)) = spent.longest_sleep
            && ns > row.longest_sleep_ns
        {
            (row.longest_sleep_ns, row.slept_on) = (ns, on);
        }
        live.poll.iter_mut().for_each(|poll| poll.spent.add(&spent));
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: Timestamp, to: Timestamp) {
        let ns = to - from;
        let live = self.tasks.at(thread.serial);
        match doing {
            Doing::Runnable { .. } => {
                grow(&mut live.row.scheduled_ns, ns);
                live.ready_ns = Some(live.ready_ns.unwrap_or_default() + ns);
            }
            Doing::Blocked { .. } => grow(&mut live.row.idle_ns, ns),
            Doing::Nested => grow(&mut live.row.nested_ns, ns),
            Doing::Unknown | Doing::Running { .. } => {
                grow(&mut live.row.unknown_ns, ns);
                live.ready_ns = live.ready_ns.filter(|_| ns.is_zero());
            }
        }
    }

    fn user_thread_runs(&mut self, thread: &UserThread, lwp: &Lwp, at: Timestamp) {
        let live = self.tasks.at(thread.serial);
        if std::mem::take(&mut live.nested) && live.poll.is_some() {
            return;
        }
        let delay = live.ready_ns.take();
        live.poll = Some(Poll {
            begin: at,
            delay,
            spent: Spent::default(),
            system_calls: lwp.system_calls,
            user_events: lwp.user_events,
        });
        if let Some(delay) = delay {
            let row = &mut live.row;
            row.delays += 1;
            grow(&mut row.delay_ns, delay);
            if delay > row.max_delay_ns || row.max_delay_end.is_none() {
                (row.max_delay_ns, row.max_delay_end) = (delay, Some(at));
            }
        }
    }

    fn user_thread_stops(&mut self, thread: &UserThread, lwp: &Lwp, cause: SwitchCause, at: Timestamp) {
        let live = self.tasks.at(thread.serial);
        if cause == SwitchCause::Nested {
            live.nested = true;
        } else if let Some(poll) = live.poll.take() {
            live.ends_poll(thread, &poll, lwp, cause, self.thresholds);
            if let Some(polls) = &mut self.polls {
                let Thresholds { long_ns, blocking_ns } = self.thresholds;
                let Spent { running_ns, slept_ns, .. } = poll.spent;
                polls.add(poll.listed(Some(at)), running_ns >= long_ns, slept_ns >= blocking_ns);
            }
        }
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        let Live { mut row, poll, .. } = self.tasks.take(thread.serial);
        // Of a poll that has not ended, it is not known whether it will be long or blocking.
        if let (Some(poll), Some(polls)) = (poll, &mut self.polls) {
            polls.add(poll.listed(None), false, false);
        }
        row.process = thread.process;
        row.tasks = 1;
        row.lacks_wakes = thread.lacks_wakes();
        row.hooked = thread.is_hooked();
        if !self.by_name && self.rows.len() < ROWS {
            row.task = Some(thread.id);
            row.name.clone_from(&thread.name);
            return self.rows.push(row);
        }
        let sum = self.sums.entry((thread.process, thread.name.clone())).or_insert_with(|| Task {
            process: thread.process,
            name: thread.name.clone(),
            ..Task::default()
        });
        sum.add(&row);
    }
}
