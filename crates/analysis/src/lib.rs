//! Analyses: each is a fold over the super-trace ([`tracewing_trace::super_trace`]) that results in a table.
//!
//! | module | does |
//! |---|---|
//! | [`Breakdown`] | the time of each process in each system call and outside of them, and work of others for
//! it |
//! | [`Locks`] | waits for locks, with waiters, holders, durations and places in the program |
//! | [`Functions`] | number of calls, durations, and callers of functions; [`Calls`]: each call |
//! | [`profile`] | the functions that samples hit, with their call chains |
//! | [`Explanations`] | what events explain of later ones, for functions and samples |
//! | [`Slices`] | each interval in which a thread had a CPU, its wait before, its waker |
//! | [`Tasks`] | the polls of each task: their cost, the waits before them, and problems |
//! | [`Threads`] | the time of each thread, user thread and process |
//! | [`Times`] | time by activity |
//! | [`ShownTimes`] | the same as far as a recording's events show it |
//! | [`Live`] | threads, tasks, locks and system calls of a running recording, window by window |
//! | [`Latency`] | durations from one event to another |
//! | [`CriticalPaths`] | the threads and tasks that one waited for |
//!
//! | [`run()`], [`run_apart()`], [`Ongoing`] | reads a recording for one of them, also while it is made |
//!
//! No analysis reads files or prints, and none fails: an event that it cannot match makes time unknown, and
//! the result says so.

#![warn(unreachable_pub)]

mod actor;
mod analysis;
mod breakdown;
mod critical_path;
mod dumps;
mod explanations;
mod filtered;
mod functions;
mod images;
mod known_task;
mod latency;
mod live;
mod locks;
mod names;
mod pairs;
mod polls;
pub mod profile;
mod programs;
#[cfg(test)]
mod recount;
mod run;
mod sched;
mod serials;
mod shown;
mod stored;
mod subjects;
mod tasks;
mod threads;
mod times;

pub use actor::Actor;
pub use analysis::{Analysis, Input, Loss, ReadApart};
pub use breakdown::{
    Breakdown, BreakdownTable, Entry, Ipc, Machine, Outside, ProcessBreakdown, Row as BreakdownRow, Spent,
    Start, Waits,
};
pub use critical_path::{CriticalPath, CriticalPaths, Match, NoPath, Step, Target, TargetFault, What, Why};
pub use explanations::{Explanations, shapes_of_parts};
pub use functions::{
    Call, CallNode, Calls, Certain, Figures, Function, FunctionId, FunctionRead, FunctionReader, FunctionRow,
    Functions, FunctionsTable, ThreadKey, Unmatched,
};
pub use known_task::KnownTask;
pub use latency::{
    Bar, Distribution, Durations, Episode, Episodes, EventPattern, Group as LatencyGroup, Latency,
    LatencyTable, Moment, Nesting, Period, Question, QuestionFault,
};
pub use live::{Live, Window};
pub use locks::{
    Account, AcrossAwait, Bins, Edge, Frame, Graph, Group, Histogram, Kinds, LockRead, LockReader, LockUse,
    LockUses, Locks, LocksTable, Party, Row, Subject, Sum, Unpaired,
};
pub use names::Names;
pub use pairs::Pairs;
pub use polls::{ListedPoll, Polls, PollsBy};
pub use run::{Cuts, LocksLack, Lossy, Ongoing, Ran, Recorded, is_worth_threads, run, run_apart};
pub use sched::{SchedLatencies, SchedLatency, Slice, SliceSink, Slices};
pub use shown::ShownTimes;
pub use tasks::{Task, Tasks, Thresholds};
pub use threads::{Process, Thread, Threads, ThreadsTable, UserThreadAccount};
pub use times::{Part, Times, total, total_count};
pub use tracewing_trace::super_trace::{Located, Seen};
