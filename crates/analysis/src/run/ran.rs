//! What is known about a run at its end.

use super::cuts::Cuts;
use super::recorded::Recorded;
use crate::names::Names;
use tracewing_trace::super_trace::Scope;
use tracewing_trace::{Error, Losses};
use tracewing_units::{Cpu, Duration, Timestamp};

/// Whether events of the kernel or of programs were lost in the analysed time, so that their numbers are
/// lower bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lossy {
    /// Whether some of the kernel's were.
    pub kernel: bool,
    /// Whether some of programs' were.
    pub programs: bool,
}

impl Lossy {
    pub(super) fn note(&mut self, scope: Scope) {
        match scope {
            Scope::Kernel(_) => self.kernel = true,
            Scope::User => self.programs = true,
            Scope::Samples => {}
        }
    }

    /// Whether events of the kernel or of programs were lost.
    pub fn any(self) -> bool {
        self.kernel || self.programs
    }
}

/// What is known at the end.
#[derive(Debug, Default)]
pub struct Ran {
    /// Beginning and end of the analysed range, nanoseconds on the recording's clock; 0 if there was no
    /// event.
    pub begin_ns: Timestamp,
    /// The end, like `begin_ns`.
    pub end_ns: Timestamp,
    /// Events read, those before the beginning included.
    pub events: u64,
    /// Whether the recording follows some LWPs only
    /// ([`followed`](tracewing_trace::super_trace::Lwp::followed)).
    pub partial: bool,
    /// Whether it has all threads' kernel events: it declares so, or comes from another tracer and nothing
    /// contradicts it.
    pub whole: bool,
    /// Events that are known to be missing.
    pub lost_events: u64,
    /// Number of losses of unknown size.
    pub lost_parts: u64,
    /// Whose events these are, and those that were overwritten.
    pub lossy: Lossy,
    /// Events that were left out, as they have values that mean nothing, such as thread numbers below 0.
    pub misfits: u64,
    /// From when to when stamps of a stream go back: in which order its events happened is unknown.
    pub disordered: Option<(Timestamp, Timestamp)>,
    /// The beginning of the last buffer whose first part was overwritten, if it lies in the analysed range:
    /// until then some events are missing.
    pub incomplete_until: Option<Timestamp>,
    /// What was overwritten, so that events until then are incomplete.
    pub overwritten: Losses,
    /// CPUs whose kernel events were recorded, by the recording's streams.
    pub cpus: u64,
    /// Which kinds of the kernel's events it has.
    pub recorded: Recorded,
    /// Whether the recording has no switches of threads, so that it is unknown when they ran.
    pub switchless: bool,
    /// Whether it lacks some system calls, so that the mode of running threads is unknown.
    pub modeless: bool,
    /// CPUs whose kernel reported no switch from their idle threads, in a recording of the whole machine: it
    /// is unknown from when on other threads ran there.
    pub idle_unreported: Vec<Cpu>,
    /// Threads of whose system calls no event shows that the kernel records them, as it does not of 32-bit
    /// programs ([`lacks_calls`](tracewing_trace::super_trace::Lwp::lacks_calls)): it is not known whether
    /// they were in one.
    pub without_calls: u64,
    /// Threads that have died without a sign of when they left their programs
    /// ([`dies_unseen`](tracewing_trace::super_trace::Lwp::dies_unseen)).
    pub died_unseen: u64,
    /// Whether the filter left out any thread, or a part of the time.
    pub chosen: bool,
    /// What the filter left out of threads and tasks that it let through.
    pub cuts: Cuts,
    /// Whether the recording is a part of another one
    /// ([`Recording::is_extract`](tracewing_trace::Recording::is_extract)), and may lack events that explain
    /// others.
    pub is_part: bool,
    /// Whether it is a part of its time.
    pub is_part_of_time: bool,
    /// Whether only what happened on some CPUs was analysed: a thread may have begun or ended anything on
    /// another one.
    pub some_cpus: bool,
    /// Whether only what happened on some LWPs was analysed: a user thread may have begun or ended anything
    /// on another one.
    pub some_tids: bool,
    /// Whether the filter may leave out some of the events that belong together
    /// ([`TOGETHER`](crate::Analysis::TOGETHER)).
    pub torn: bool,
    /// The text of each [`Name`](tracewing_trace::super_trace::Name) in the results.
    pub names: Names,
    /// Samples that were lost in what was analysed.
    pub lost_samples: Losses,
    /// Whether `watch` has ended it.
    pub stopped: bool,
    /// Why it ended before the recording did: the result is of what was read.
    pub failure: Option<Error>,
}

impl Ran {
    /// What was lost, as one sum.
    pub fn lost(&self) -> Losses {
        let has_more = self.lost_parts > 0 || self.failure.is_some();
        let more = if has_more { Losses::of_events(None) } else { Losses::default() };
        Losses::of_events(Some(self.lost_events)).and(more).and(self.overwritten)
    }

    /// How long what was analysed lasted, in nanoseconds.
    pub fn duration_ns(&self) -> Duration {
        self.end_ns - self.begin_ns
    }
}
