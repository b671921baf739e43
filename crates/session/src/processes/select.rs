//! Finds the processes that are selected when a recording begins.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use rustix::process::getuid;
use tracewing_rules::Glob;
use tracewing_units::Pid;

use super::cgroup;
use super::process::Process;
use crate::ask::Running;
use crate::credentials::users;
use crate::program::{Program, is_of_kernel, main_thread, parent};
use crate::refusal::Refusal;

/// Selection of processes that are already running.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attach {
    /// Processes given by number (`--pid`).
    pub pids: Vec<Pid>,
    /// Shell patterns: selects the processes that are running when the recording begins and whose executable
    /// or first thread has a matching name.
    pub names: Vec<String>,
    /// Control groups, as folders or as paths below `/sys/fs/cgroup`: selects the processes in them and in
    /// the groups below, also those that enter later.
    pub cgroups: Vec<PathBuf>,
    /// Also the processes that they fork while they are recorded.
    pub children: bool,
}

/// The processes that a selection matches at one time.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) processes: Vec<Process>,
    /// Why other selected processes are not recorded.
    pub(crate) refusals: Vec<Refusal>,
    /// The folders of the control groups.
    pub(crate) cgroups: Vec<PathBuf>,
}

impl Found {
    /// Finds the selected processes.
    ///
    /// # Errors
    /// No selected process can be recorded, no process matches a name, or a control group does not exist.
    pub(crate) fn of(attach: &Attach) -> Result<Self, Refusal> {
        let mut pids: BTreeSet<Pid> = attach.pids.iter().copied().collect();
        let given = pids.clone();
        for name in &attach.names {
            let called = called(name);
            if called.is_empty() {
                return Err(Refusal::NoName(name.clone()));
            }
            pids.extend(called);
        }
        let mut cgroups = Vec::new();
        for path in &attach.cgroups {
            let folder = cgroup::find(path);
            cgroups.push(folder.map_err(|source| Refusal::NoCgroup { path: path.clone(), source })?);
            let inside = cgroup::processes(&cgroups[cgroups.len() - 1..]);
            if inside.is_empty() {
                return Err(Refusal::EmptyCgroup(path.clone()));
            }
            pids.extend(inside);
        }
        Self::opened(pids, &given, cgroups, || Refusal::NoName(attach.names.join(", ")))
    }

    /// Opens processes. Of those that are not `given`, some are not meant.
    fn opened(
        pids: BTreeSet<Pid>,
        given: &BTreeSet<Pid>,
        cgroups: Vec<PathBuf>,
        nothing: impl FnOnce() -> Refusal,
    ) -> Result<Self, Refusal> {
        let mut found = Self { processes: Vec::new(), refusals: Vec::new(), cgroups };
        for pid in pids {
            match Process::open(pid) {
                Ok(process) => found.processes.push(process),
                // They are not meant by a pattern, or have just ended.
                Err(Refusal::Itself | Refusal::Ended { .. } | Refusal::None { .. })
                    if !given.contains(&pid) => {}
                Err(refusal) => found.refusals.push(refusal),
            }
        }
        match (found.processes.is_empty(), found.refusals.len()) {
            (false, _) => Ok(found),
            (true, 1) => Err(found.refusals.remove(0)),
            (true, 0) => Err(nothing()),
            (true, _) => Err(Refusal::All(found.refusals)),
        }
    }
}

impl Found {
    /// The processes of another recording: those that it names, and all that its command has started.
    ///
    /// # Errors
    /// There is none that can be recorded.
    pub(crate) fn of_recording(other: &Running) -> Result<Self, Refusal> {
        let mut pids: BTreeSet<Pid> = other.processes.iter().copied().collect();
        let mut parents: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
        for pid in all() {
            parent(pid).into_iter().for_each(|parent| parents.entry(parent).or_default().push(pid));
        }
        // Without a command it gives its own number.
        let mut next: Vec<Pid> = [other.command_pid].into_iter().filter(|pid| *pid != other.pid).collect();
        pids.extend(&next);
        while let Some(parent) = next.pop() {
            let children = parents.remove(&parent).unwrap_or_default();
            next.extend(&children);
            pids.extend(children);
        }
        Self::opened(pids, &BTreeSet::new(), Vec::new(), || Refusal::NoProcesses { pid: other.pid })
    }
}

/// The processes whose executable or first thread has a name that matches, without threads of the kernel and
/// this process.
fn called(pattern: &str) -> Vec<Pid> {
    let glob = Glob::new(pattern);
    let is_called = |pid: &Pid| {
        pid.as_unsigned() != std::process::id()
            && !is_of_kernel(*pid)
            && (glob.matches(&Program::of(*pid).name)
                || main_thread(*pid).is_some_and(|name| glob.matches(&name)))
    };
    all().into_iter().filter(is_called).collect()
}

/// The processes of this user other than this one, or for root of all users.
pub(crate) fn all_of_user() -> Vec<Pid> {
    let own = getuid().as_raw();
    let is_one = |pid: &Pid| {
        pid.as_unsigned() != std::process::id()
            && (own == 0 || users(*pid) == Some([own; 3]))
            && !is_of_kernel(*pid)
    };
    all().into_iter().filter(is_one).collect()
}

/// All processes that can be seen.
pub(super) fn all() -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid).collect()
}
