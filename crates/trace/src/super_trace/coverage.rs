//! What a recording can and cannot know: which events move its state, and whose. It is fixed before the first
//! event is read.

use super::traces::{
    has_interrupts, has_page_faults, has_switches, has_system_call_entries, has_system_calls,
    has_user_switches, has_user_wakes, is_of_listed, is_of_some, is_system_wide, root_process,
};
use crate::open::extract::Lwps;
use crate::open::recording::Recording;
use tracewing_rules::ThreadPattern;
use tracewing_units::{Pid, Tid, Timestamp};

/// What a recording can know. By default it has everything: what hand-made events do not say otherwise is
/// taken so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Whether switches of threads are recorded, all but lost ones; without them, nothing says when a thread
    /// runs.
    pub switches: bool,
    /// Whether switches of user threads are recorded, all but lost ones; without them, what a user thread
    /// does is known only while it is seen to run.
    pub user_switches: bool,
    /// Whether switches of user threads are not recorded, though other events of them are: when an LWP runs
    /// none is unknown.
    pub lacks_user_switches: bool,
    /// Whether wakes of user threads are recorded; without them, what one that is blocked waits for may be
    /// over before it runs again.
    pub user_wakes: bool,
    /// Whether each begin and end of a system call is recorded; without them, the mode of a running thread is
    /// unknown.
    pub system_calls: bool,
    /// Whether the beginning of every system call is recorded, except those that an extract leaves out.
    pub system_call_entries: bool,
    /// Whether the page faults of programs are recorded.
    pub page_faults: bool,
    /// Whose interrupts are recorded.
    pub interrupts: Interrupts,
    /// Whether it has the kernel's events of the whole machine, and says so.
    pub system_wide: bool,
    /// Whether it has the kernel's events of some threads only, and says so.
    pub of_some: bool,
    /// The process whose tree's kernel events it has, if declared.
    pub root: Option<Pid>,
    /// Whether the kernel chose its events by a list of threads: each switch is from or to one of those.
    pub of_listed: bool,
    /// Beginning of an extract, in nanoseconds on the recording's clock: earlier events only give names.
    pub begin: Option<Timestamp>,
    /// Whether it is an extract with what happened on certain CPUs: what a thread does after it leaves one is
    /// unknown.
    pub of_cpus: bool,
    /// The LWPs whose events an extract has, each with its process if known: the states of others are
    /// unknown.
    pub of_lwps: Option<Lwps>,
    /// An extract has the events of those user threads that one pattern of each list fits: what LWPs do is
    /// known while they run those. It has those of all where there is no list.
    pub of_user_threads: Vec<Vec<ThreadPattern>>,
}

/// Whose interrupts a recording has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupts {
    /// Those of all CPUs, whatever runs there.
    OfAll,
    /// Those that came while threads ran that the recording follows
    /// ([`Lwp::followed`](super::Lwp::followed)).
    OfFollowed,
    /// Not all kinds: whether a running thread is interrupted is unknown.
    Unrecorded,
}

impl Default for Coverage {
    fn default() -> Self {
        Self {
            switches: true,
            user_switches: true,
            lacks_user_switches: false,
            user_wakes: true,
            system_calls: true,
            system_call_entries: true,
            page_faults: true,
            interrupts: Interrupts::OfAll,
            system_wide: false,
            of_some: false,
            root: None,
            of_listed: false,
            begin: None,
            of_cpus: false,
            of_lwps: None,
            of_user_threads: Vec::new(),
        }
    }
}

impl Coverage {
    /// What the metadata of a recording's traces says.
    pub fn of(recording: &Recording) -> Self {
        let traces = recording.traces();
        let (system_wide, of_some) = (traces.iter().any(is_system_wide), traces.iter().any(is_of_some));
        let of_cpus = recording.is_extract_of_cpus();
        Self {
            switches: traces.iter().any(has_switches),
            // On a CPU or an LWP that was left out, user threads may have been switched.
            user_switches: traces.iter().any(has_user_switches)
                && !of_cpus
                && !recording.is_extract_of_lwps(),
            lacks_user_switches: !traces.iter().any(has_user_switches),
            user_wakes: traces.iter().any(has_user_wakes),
            system_calls: traces.iter().any(has_system_calls),
            system_call_entries: traces.iter().any(has_system_call_entries),
            page_faults: traces.iter().any(has_page_faults),
            interrupts: match traces.iter().any(has_interrupts) {
                false => Interrupts::Unrecorded,
                true if of_some && !system_wide => Interrupts::OfFollowed,
                true => Interrupts::OfAll,
            },
            system_wide,
            of_some,
            root: traces.iter().find_map(root_process),
            of_listed: traces.iter().any(is_of_listed),
            begin: recording.extract_begin(),
            of_cpus,
            of_lwps: recording.extract_tids(),
            of_user_threads: recording.extract_tasks(),
        }
    }

    /// Whether events of this LWP were left out.
    pub(super) fn leaves_out(&self, tid: Tid) -> bool {
        self.of_lwps.as_ref().is_some_and(|lwps| !lwps.contains_key(&tid))
    }
}
