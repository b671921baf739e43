//! Which events a recording has, and which it lacks of those that belong together.

use std::collections::BTreeSet;
use tracewing_trace::Recording;
use tracewing_trace::super_trace::Coverage;
use tracewing_vocabulary::function::{Entry, Exit};
use tracewing_vocabulary::kernel::{self, SystemCall};
use tracewing_vocabulary::{lock, profile, user_thread};

/// Which kinds of the kernel's events a recording contains completely: it has their classes, and is not an
/// extract without some of them. Counts of other kinds are unknown, not 0.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Switches of threads (`sched_switch`).
    pub switches: bool,
    /// Wakes of threads that slept (`sched_waking` or `sched_wakeup`).
    pub wakes: bool,
    /// Those by which new threads begin as well.
    pub first_wakes: bool,
    /// Begins of system calls.
    pub system_calls: bool,
    /// Begins of all of them, not only of certain ones.
    pub all_system_calls: bool,
    /// Page faults, those of programs and those of the kernel.
    pub page_faults: bool,
    /// Interrupts, of every kind.
    pub interrupts: bool,
    /// Softirqs, and what raised them: without these, it is unknown which thread woke another through one.
    pub softirqs: bool,
    /// Not all switches of its user threads.
    pub lacks_user_switches: bool,
    /// Not all of their wakes.
    pub lacks_user_wakes: bool,
    /// Some effects of polls are not recorded.
    pub lacks_effects: bool,
    /// Not all ends of functions whose begins it has.
    pub lacks_ends_of_functions: bool,
    /// Not all functions that were recorded are in it, or in what is analysed: time in those that are left
    /// may be of others.
    pub lacks_functions: bool,
    /// What it lacks of the locks of threads, and of those of user threads.
    pub lacks_of_locks: [LocksLack; 2],
    /// It has samples, and not all mappings of files.
    pub lacks_mappings: bool,
    /// It has samples, and not all events that say which programs processes execute.
    pub lacks_programs: bool,
}

/// Which of the events about locks a recording does not have, though it has others.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct LocksLack {
    /// Not all requests, or not all of the unsuccessful ones.
    pub requests: bool,
    /// Not all acquisitions, with which waits end and critical sections begin.
    pub acquisitions: bool,
    /// Not all releases, with which critical sections end.
    pub releases: bool,
}

impl LocksLack {
    /// `uncommon` events have no class where programs do without them: of refused requests, and of releases
    /// of other kinds.
    fn of(
        [request, acquired, released]: [&str; 3],
        uncommon: [&[&str]; 2],
        names: &BTreeSet<&str>,
        left_out: &BTreeSet<&str>,
        excluded: &BTreeSet<&str>,
    ) -> Self {
        if [request, acquired, released].iter().all(|name| !names.contains(name)) {
            return Self::default();
        }
        let is_missing = |name| !names.contains(name) || left_out.contains(name);
        let [refusals, releases] =
            uncommon.map(|all| all.iter().any(|name| left_out.contains(name) || excluded.contains(name)));
        Self {
            requests: is_missing(request) || refusals,
            acquisitions: is_missing(acquired),
            releases: is_missing(released) || releases,
        }
    }
}

/// What says which program a process executes: it begins with its parent's, and maps each one's file first.
const PROGRAM: [&str; 3] = [profile::Mapping::NAME, profile::Thread::NAME, profile::Fork::NAME];

impl Recorded {
    pub(crate) fn of(recording: &Recording) -> Self {
        let classes = recording.traces().iter().flat_map(|trace| &trace.class().data_stream_classes);
        let classes = classes.flat_map(|stream| &stream.event_record_classes);
        let names: BTreeSet<&str> = classes.filter_map(|class| class.name.as_deref()).collect();
        let (left_out, excluded) = (recording.left_out(), recording.excluded());
        let mut this = Self::default();
        let mut faults = [false; 2];
        // A recording without any event of a kind is not about it; one with some, but not all, lacks the
        // rest.
        let has_user_threads = names.iter().any(|name| name.starts_with(user_thread::START));
        this.lacks_user_switches = has_user_threads && !names.contains(user_thread::Switch::NAME);
        this.lacks_user_wakes = has_user_threads && !names.contains(user_thread::Wake::NAME);
        let has_samples = names.contains(profile::Sample::NAME);
        this.lacks_mappings = has_samples && !names.contains(profile::Mapping::NAME);
        this.lacks_programs = has_samples && PROGRAM.iter().any(|name| !names.contains(name));
        let begun = names.iter().filter_map(|name| name.strip_prefix(Entry::NAME));
        this.lacks_ends_of_functions =
            begun.into_iter().any(|function| !names.contains(format!("{}{function}", Exit::NAME).as_str()));
        for name in &names {
            this.switches |= *name == kernel::Switch::NAME;
            this.wakes |= is_wake(name) && *name != kernel::WakeupNew::NAME;
            this.first_wakes |= *name == kernel::WakeupNew::NAME;
            this.system_calls |= is_call(name);
            faults[0] |= *name == kernel::PageFaultUser::NAME;
            faults[1] |= *name == kernel::PageFaultKernel::NAME;
        }
        this.softirqs =
            kernel::Interrupt::are_all_softirqs(|name| names.contains(name) && !left_out.contains(name));
        // With one kind alone, the count would be too small.
        this.page_faults = faults == [true; 2];
        let names = names.iter().chain(&left_out).copied().collect();
        this.lacks_of_locks = lacks_of_locks(&names, &left_out, &excluded);
        this.all_system_calls = Coverage::of(recording).system_call_entries;
        // What a poll woke is part of its effects.
        this.lacks_effects = this.lacks_user_wakes;
        // An extract may still have the class of events that were left out, or some of its events.
        for name in left_out {
            this.lacks_user_switches |= name == user_thread::Switch::NAME;
            this.lacks_user_wakes |= name == user_thread::Wake::NAME;
            this.lacks_effects |= name.starts_with(user_thread::START);
            this.lacks_ends_of_functions |= name.starts_with(Exit::NAME);
            this.lacks_functions |= name.starts_with(Entry::NAME);
            this.lacks_mappings |= name == profile::Mapping::NAME;
            this.lacks_programs |= PROGRAM.contains(&name);
            this.switches &= name != kernel::Switch::NAME;
            this.wakes &= !is_wake(name);
            this.system_calls &= !is_call(name);
            this.all_system_calls &= !is_call(name);
            this.page_faults &= ![kernel::PageFaultUser::NAME, kernel::PageFaultKernel::NAME].contains(&name);
        }
        this
    }

    /// What is left of it where a filter leaves out events of these names: state comes from them all the
    /// same.
    pub(crate) fn chosen(mut self, left_out: &BTreeSet<String>) -> Self {
        let mut ends = left_out.iter().filter_map(|name| name.strip_prefix(Exit::NAME));
        self.lacks_ends_of_functions |=
            ends.any(|function| !left_out.contains(&format!("{}{function}", Entry::NAME)));
        self.lacks_functions |= left_out.iter().any(|name| name.starts_with(Entry::NAME));
        self
    }
}

/// What events of threads' locks, and of user threads', are not recorded. `names` are those of all classes
/// that a recording has, and those that were left out.
fn lacks_of_locks(
    names: &BTreeSet<&str>,
    left_out: &BTreeSet<&str>,
    excluded: &BTreeSet<&str>,
) -> [LocksLack; 2] {
    let released_otherwise = [lock::NotReleased::NAME, lock::ConditionWait::NAME, lock::ConditionWoken::NAME];
    [
        LocksLack::of(
            [lock::Requested::NAME, lock::Acquired::NAME, lock::Released::NAME],
            [&[lock::Refused::NAME], &released_otherwise],
            names,
            left_out,
            excluded,
        ),
        LocksLack::of(
            [user_thread::Wait::NAME, user_thread::Acquired::NAME, user_thread::Released::NAME],
            [&[user_thread::GivenUp::NAME], &[]],
            names,
            left_out,
            excluded,
        ),
    ]
}

/// Whether events of this name are of threads that are woken.
fn is_wake(name: &str) -> bool {
    use kernel::Class::{Wakeup, WakeupNew, Waking};
    matches!(kernel::Class::of_name(name), Some(Waking | Wakeup | WakeupNew))
}

/// Whether events of this name are of system calls that begin.
fn is_call(name: &str) -> bool {
    matches!(SystemCall::of_name(name), Some(SystemCall::Entry(_)))
}
