//! Threads, user threads and processes as rows, and their columns.

use super::By;
use crate::table::{Cell, Column, columns};
use tracewing_analysis::{Cuts, Lossy, Part, Process, Recorded, Thread, Times, UserThreadAccount, total};
use tracewing_units::{Duration, Pid};

/// Of which kinds of events a recording has all.
#[derive(Clone, Copy)]
pub struct Known {
    pub recorded: Recorded,
    /// Whether it is known if a thread is in its program or in a system call.
    pub modes: bool,
    /// Whether it is known when threads have a CPU.
    pub switches: bool,
    /// Whose events were lost.
    pub lossy: Lossy,
    /// What the filter left out of each.
    pub cuts: Cuts,
}

impl Known {
    /// Of a thread; whether some of its time in the kernel is not recorded, as its calls, or its end.
    fn with_hidden(self, is_some_hidden: bool) -> Self {
        Self { modes: self.modes && !is_some_hidden, ..self }
    }
}

/// A line of the table: a thread, a user thread or a process.
pub struct Line<'t> {
    process: Option<Pid>,
    /// The thread's, or the user thread's.
    number: Cell,
    name: &'t str,
    threads: u64,
    times: &'t Times,
    known: Known,
    /// Whether the filter lets through what it did without a CPU; if it is a user thread, without a thread.
    off_cpus: bool,
    /// Whether it is known when it could run, and all that it was blocked.
    waits: bool,
    /// Whether it is known when it was blocked: if not all, at least some of it.
    is_blocked: bool,
    counts: Counts,
}

/// Numbers of events, where those are recorded.
#[derive(Default)]
struct Counts {
    switches: Option<u64>,
    preemptions: Option<u64>,
    cpu_migrations: Option<u64>,
    lwp_migrations: Option<u64>,
    wakeups: Option<u64>,
    system_calls: Option<u64>,
    page_faults: Option<u64>,
    user_events: Option<u64>,
    polls: Option<u64>,
}

impl Counts {
    /// Without those of 0 if such events were lost: they may have been any number.
    fn seen_in(self, lossy: Lossy) -> Self {
        let of = |is_lossy: bool, count: Option<u64>| count.filter(|count| *count > 0 || !is_lossy);
        let of_kernel = |count| of(lossy.kernel, count);
        let of_programs = |count| of(lossy.programs, count);
        Self {
            switches: of_kernel(self.switches),
            preemptions: of_kernel(self.preemptions),
            cpu_migrations: of(lossy.any(), self.cpu_migrations),
            lwp_migrations: of_programs(self.lwp_migrations),
            wakeups: of(lossy.any(), self.wakeups),
            system_calls: of_kernel(self.system_calls),
            page_faults: of_kernel(self.page_faults),
            user_events: of_programs(self.user_events),
            polls: of_programs(self.polls),
        }
    }
}

impl Line<'_> {
    /// Time in no column that is shown: in an unknown state, or in one of which the events do not show all.
    fn unknown(&self) -> Duration {
        let Times { running_ns, waiting_ns, blocked_ns, unknown_ns, .. } = *self.times;
        let hidden =
            [(self.known.switches, running_ns), (self.waits, waiting_ns), (self.is_blocked, blocked_ns)];
        unknown_ns + total(hidden.into_iter().filter(|(is_shown, _)| !is_shown).map(|(_, ns)| ns))
    }

    /// Time in one mode. Where it was in an unknown one, none in this one is known only if there is some.
    fn of_mode(&self, ns: Duration) -> Cell {
        let times = self.times;
        let known = total([times.user_ns, times.system_ns, times.interrupted_ns].into_iter());
        let is_certain = !ns.is_zero() || known >= times.running_ns;
        Cell::ns_if(self.known.modes && self.known.switches && is_certain, ns)
    }
}

pub fn columns<'t>(by: By) -> Vec<Column<Line<'t>>> {
    let [tasks, threads, processes] = [By::Task, By::Thread, By::Process].map(|of| by == of);
    let mut columns = columns! { line: Line<'t>;
        number "process" "process" key, "id of its process" => line.process.into();
    };
    if tasks {
        columns.extend(columns! { line: Line<'t>;
            number "task" "task" key, "number of the task" => line.number.clone();
        });
    }
    if threads {
        columns.extend(columns! { line: Line<'t>;
            number "thread" "tid" key, "thread id" => line.number.clone();
        });
    }
    columns.extend(columns! { line: Line<'t>;
        text "name" "name" key + shrinking, "its last known name" => line.name.into();
    });
    columns.extend(times());
    if processes {
        columns.extend(columns! { line: Line<'t>;
            number "threads" "threads" normal, "number of its threads" => Cell::Count(line.threads);
        });
    }
    columns.extend(if tasks { counts_of_tasks() } else { counts_of_threads() });
    columns
}

/// Where time goes. What no recorded event shows is unknown, not 0.
fn times<'t>() -> Vec<Column<Line<'t>>> {
    columns! { line: Line<'t>;
        duration "running" "running_ns" key, "time on a CPU"
            => Cell::ns_if(line.known.switches, line.times.running_ns);
        duration "ready" "ready_ns" high, "time ready to run, but without a free CPU (for a task, a free thread)"
            => Cell::ns_if(line.waits, line.times.waiting_ns);
        duration "blocked" "blocked_ns" high, "time waiting for something else"
            => Cell::ns_if(line.is_blocked, line.times.blocked_ns);
        duration "nested" "nested_ns" extra, "time in which another task ran inside it"
            => Cell::ns_if(line.off_cpus, line.times.nested_ns);
        duration "unknown" "unknown_ns" high, "time before the first event that shows its state, and while events are missing"
            => Cell::ns_if(line.off_cpus, line.unknown());
        duration "user" "user_ns" normal, "part of running: the program's own code"
            => line.of_mode(line.times.user_ns);
        duration "system" "system_ns" normal, "part of running: system calls"
            => line.of_mode(line.times.system_ns);
        duration "irq" "interrupted_ns" normal, "part of running: interrupts"
            => Cell::ns_if(line.known.recorded.interrupts && line.known.switches, line.times.interrupted_ns);
        duration "undetermined" "undetermined_ns" extra, "part of running: in user or system mode, but no event shows which"
            => Cell::ns_if(line.known.switches, line.times.undetermined_ns);
        parts "blocked-on" "blocked_on" normal, "what it waited for longest; ? if no event shows it"
            => match line.is_blocked {
                true => cell_of(&line.times.blocked_on),
                false => Cell::None,
            };
        parts "interrupted-by" "interrupted_by" extra, "interrupts that irq consists of"
            => match line.known.recorded.interrupts && line.known.switches {
                true => cell_of(&line.times.interrupted_by),
                false => Cell::None,
            };
    }
}

fn cell_of(parts: &[Part]) -> Cell {
    Cell::Parts(parts.iter().map(|part| (part.on.clone(), part.ns)).collect())
}

fn counts_of_tasks<'t>() -> Vec<Column<Line<'t>>> {
    columns! { line: Line<'t>;
        number "polls" "polls" normal, "how often a thread began to run it" => Cell::count(line.counts.polls);
        number "lwps" "lwp_migrations" low, "how often it ran on a different thread than before"
            => Cell::count(line.counts.lwp_migrations);
        number "moved" "cpu_migrations" low, "how often it ran on a different CPU than before"
            => Cell::count(line.counts.cpu_migrations);
        number "woken" "wakeups" low, "how often it was woken" => Cell::count(line.counts.wakeups);
    }
}

fn counts_of_threads<'t>() -> Vec<Column<Line<'t>>> {
    columns! { line: Line<'t>;
        number "switches" "switches" normal, "how often it left a CPU" => Cell::count(line.counts.switches);
        number "preempted" "preemptions" low, "how often it left a CPU although it was ready to run"
            => Cell::count(line.counts.preemptions);
        number "moved" "migrations" low, "how often it ran on a different CPU than before"
            => Cell::count(line.counts.cpu_migrations);
        number "woken" "wakeups" low, "how often it was woken" => Cell::count(line.counts.wakeups);
        number "syscalls" "system_calls" normal, "number of system calls begun" => Cell::count(line.counts.system_calls);
        number "faults" "page_faults" low, "page faults; the kernel does not record their time"
            => Cell::count(line.counts.page_faults);
        number "events" "user_events" low, "events of its program" => Cell::count(line.counts.user_events);
        number "polls" "polls" low, "how often it began to run a task" => Cell::count(line.counts.polls);
    }
}

/// Of the columns, those that say how long each was running on a CPU, and in what.
pub const ACTIVE_TIME: [&str; 9] =
    ["process", "task", "tid", "name", "running_ns", "user_ns", "system_ns", "interrupted_ns", "unknown_ns"];

pub fn of_tasks(user_threads: &[UserThreadAccount], known: Known) -> Vec<Line<'_>> {
    // Which thread ran it when is known by switches of user threads.
    let polls = !known.recorded.lacks_user_switches;
    let known = Known { switches: known.switches && polls, ..known };
    let knows_wakes = |thread: &UserThreadAccount| !known.recorded.lacks_user_wakes && !thread.lacks_wakes;
    let off_cpus = !known.cuts.between_polls;
    let is_whole = off_cpus && !known.cuts.polls;
    let counts = |thread: &UserThreadAccount| Counts {
        polls: polls.then_some(thread.polls),
        lwp_migrations: (polls && is_whole).then_some(thread.lwp_migrations),
        // In the middle of a poll, only switches show them.
        cpu_migrations: (known.switches && is_whole).then_some(thread.cpu_migrations),
        wakeups: (knows_wakes(thread) && is_whole).then_some(thread.wakeups),
        ..Counts::default()
    };
    let lines = user_threads.iter().map(|thread| Line {
        process: thread.process,
        number: thread.thread.into(),
        name: &thread.name,
        threads: 0,
        times: &thread.times,
        known,
        off_cpus,
        waits: off_cpus && polls && knows_wakes(thread),
        // Without wakes, while it waits for what it names.
        is_blocked: off_cpus && polls && (knows_wakes(thread) || !thread.times.blocked_ns.is_zero()),
        counts: counts(thread).seen_in(known.lossy),
    });
    lines.collect()
}

/// The counts of a thread or a process.
macro_rules! counts_of {
    ($of:expr, $known:expr) => {{
        let (of, recorded, is_whole) = ($of, $known.recorded, !$known.cuts.lwps);
        Counts {
            switches: recorded.switches.then_some(of.switches),
            preemptions: recorded.switches.then_some(of.preemptions),
            cpu_migrations: (recorded.switches && is_whole).then_some(of.migrations),
            lwp_migrations: None,
            wakeups: (recorded.wakes && recorded.first_wakes && is_whole).then_some(of.wakeups),
            system_calls: (recorded.all_system_calls && !of.lacks_calls).then_some(of.system_calls),
            page_faults: recorded.page_faults.then_some(of.page_faults),
            user_events: Some(of.user_events),
            polls: (!recorded.lacks_user_switches).then_some(of.polls),
        }
    }};
}

pub fn of_threads(threads: &[Thread], known: Known) -> Vec<Line<'_>> {
    let lines = threads.iter().map(|thread| Line {
        process: thread.process,
        number: thread.tid.into(),
        name: &thread.name,
        threads: 1,
        times: &thread.times,
        known: known.with_hidden(thread.lacks_calls || thread.dies_unseen),
        off_cpus: !known.cuts.waits,
        waits: waits_of_threads(known),
        is_blocked: waits_of_threads(known),
        counts: counts_of!(thread, known).seen_in(known.lossy),
    });
    lines.collect()
}

pub fn of_processes(processes: &[Process], known: Known) -> Vec<Line<'_>> {
    let lines = processes.iter().map(|process| Line {
        process: process.process,
        number: Cell::None,
        name: &process.name,
        threads: process.threads,
        times: &process.times,
        known: known.with_hidden(process.lacks_calls || process.dies_unseen),
        off_cpus: !known.cuts.waits,
        waits: waits_of_threads(known),
        is_blocked: waits_of_threads(known),
        counts: counts_of!(process, known).seen_in(known.lossy),
    });
    lines.collect()
}

/// Without wakes it is not known when a thread that was blocked could run.
fn waits_of_threads(known: Known) -> bool {
    known.switches && known.recorded.wakes && !known.cuts.waits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_but(recorded: Recorded) -> Known {
        Known { recorded, modes: true, switches: true, lossy: Lossy::default(), cuts: Cuts::default() }
    }

    /// A task that was blocked for so long on what it names, and ready and in an unknown state for 5 ns each.
    fn account(blocked: u64, lacks_wakes: bool) -> UserThreadAccount {
        let [waiting_ns, unknown_ns] = [5, 5].map(Duration::from_ns);
        let times =
            Times { blocked_ns: Duration::from_ns(blocked), waiting_ns, unknown_ns, ..Times::default() };
        UserThreadAccount { times, lacks_wakes, ..UserThreadAccount::default() }
    }

    #[test]
    fn what_only_wakes_of_a_task_show_is_unknown_without_them() {
        let known = all_but(Recorded::default());
        let tasks = [account(20, false), account(20, true), account(0, true)];
        let lines = of_tasks(&tasks, known);
        let shown =
            |line: &Line<'_>| (line.waits, line.is_blocked, line.counts.wakeups, line.unknown().as_ns());
        let lines: Vec<_> = lines.iter().map(shown).collect();
        assert_eq!(lines, [(true, true, Some(0), 5), (false, true, None, 10), (false, false, None, 10)]);
    }

    #[test]
    fn time_of_threads_without_wakes_is_running_or_unknown() {
        let [running_ns, waiting_ns, blocked_ns] = [40, 5, 20].map(Duration::from_ns);
        let times = Times { running_ns, waiting_ns, blocked_ns, ..Times::default() };
        let processes = [Process { times, ..Process::default() }];
        let shown = |wakes| {
            let recorded = Recorded { wakes, ..Recorded::default() };
            let lines = of_processes(&processes, all_but(recorded));
            (lines[0].waits, lines[0].is_blocked, lines[0].unknown().as_ns())
        };
        assert_eq!([shown(true), shown(false)], [(true, true, 0), (false, false, 25)]);
    }
}
