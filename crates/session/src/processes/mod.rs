//! Processes that run already and are recorded: which they are, which come later, and whether any is left.
//!
//! | module | does |
//! |---|---|
//! | `process` | one of them, pinned |
//! | `select` | finds those that are asked for |
//! | `cgroup` | the processes of a control group |
//!
//! They are never signalled, nor waited for as a parent waits: a pidfd is readable once its process has
//! ended.

mod cgroup;
mod process;
mod select;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use tracewing_units::{Pid, Tid};

use crate::Error;
use crate::credentials::is_alive;
use crate::program::parent;
use crate::refusal::Refusal;

pub(crate) use process::Process;
pub use select::Attach;
pub(crate) use select::{Found, all_of_user};

/// Minimum time between two looks for new processes; at least 100 times as long as a look takes.
const INTERVAL: Duration = Duration::from_millis(200);
/// Longest time between two looks: a process that enters a control group is recorded at most a second later.
const LONGEST_INTERVAL: Duration = Duration::from_millis(800);
/// Pidfds taken from the kernel at once.
const BATCH: usize = 64;
/// Maximum number of refused processes that are remembered; beyond that, those that have ended
/// are forgotten.
const MOST_REFUSED: usize = 1 << 12;

/// The processes that are recorded.
pub(crate) struct Processes {
    /// Whether the processes that they fork are recorded too.
    with_children: bool,
    /// The folders of control groups whose processes are recorded.
    cgroups: Vec<PathBuf>,
    living: BTreeMap<Pid, Process>,
    /// Has the pidfds of all that live.
    endings: OwnedFd,
    /// Those that are not recorded, by process id and start time: each is reported once.
    refused: BTreeSet<(Pid, u64)>,
    /// Threads that are recorded and no process's first.
    threads: BTreeSet<Pid>,
    due: Instant,
}

impl Processes {
    /// The processes that were found.
    ///
    /// # Errors
    /// The system is out of descriptors.
    pub(crate) fn new(found: &Found, with_children: bool) -> Result<Self, Error> {
        let endings = epoll::create(CreateFlags::CLOEXEC).map_err(Error::system("epoll_create"))?;
        let mut this = Self {
            with_children,
            cgroups: found.cgroups.clone(),
            living: BTreeMap::new(),
            endings,
            refused: BTreeSet::new(),
            threads: BTreeSet::new(),
            due: Instant::now() + INTERVAL,
        };
        found.processes.iter().for_each(|process| this.keep(process.clone()));
        Ok(this)
    }

    /// The processes that live, if known.
    pub(crate) fn pids(&self) -> Vec<Pid> {
        self.living.keys().copied().collect()
    }

    /// What other processes are to call them: the name of one, and how many there are.
    pub(crate) fn called(&self) -> String {
        let mut living = self.living.values();
        let Some(first) = living.next() else { return "processes that have ended".to_owned() };
        match living.count() {
            0 => format!("{} (process {})", first.name, first.pid.0),
            more => format!("{} (process {} and {more} more)", first.name, first.pid.0),
        }
    }

    /// Whether none is left, if known.
    pub(crate) fn is_over(&self) -> bool {
        self.living.is_empty()
    }

    fn keep(&mut self, process: Process) {
        // Without a place in the set its end is found by the next look.
        let _ = epoll::add(
            &self.endings,
            process.pidfd(),
            EventData::new_u64(process.pid.0 as u64),
            EventFlags::IN,
        );
        self.living.insert(process.pid, process);
    }

    /// Lets go of those that have ended. Whether there were any.
    pub(crate) fn take_ended(&mut self) -> bool {
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let mut events = [nothing; BATCH];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = epoll::wait(&self.endings, &mut events, Some(&now)).unwrap_or_default();
        for event in &events[..ready] {
            self.end(Pid(event.data.u64() as i32));
        }
        ready > 0
    }

    fn end(&mut self, pid: Pid) {
        if let Some(process) = self.living.remove(&pid) {
            // The descriptor may have copies, which would keep it in the set.
            let _ = epoll::delete(&self.endings, process.pidfd());
        }
    }

    /// Whether it is time to look for new processes.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Looks for new processes, and returns those that have entered a control group. `recorded`: the threads
    /// whose events the kernel records, if known; the kernel adds the threads that these start. `note` gets a
    /// line for the user about each process that is not recorded.
    pub(crate) fn look(&mut self, recorded: Option<&[Tid]>, note: &mut dyn FnMut(String)) -> Vec<Process> {
        let begin = Instant::now();
        let ended = self.living.values().filter(|process| !is_alive(process.pidfd()));
        ended.map(|process| process.pid).collect::<Vec<_>>().into_iter().for_each(|pid| self.end(pid));
        let mut new = Vec::new();
        if self.with_children {
            self.children(recorded).into_iter().for_each(|process| self.keep(process));
        }
        for pid in cgroup::processes(&self.cgroups) {
            if !self.living.contains_key(&pid)
                && let Some(process) = self.opened(pid, note)
            {
                new.push(process.clone());
                self.keep(process);
            }
        }
        self.due = Instant::now() + INTERVAL.max(100 * begin.elapsed()).min(LONGEST_INTERVAL);
        new
    }

    /// A process that has entered a control group, unless it is refused.
    fn opened(&mut self, pid: Pid, note: &mut dyn FnMut(String)) -> Option<Process> {
        match Process::open(pid) {
            Ok(process) => Some(process),
            Err(
                Refusal::Itself | Refusal::None { .. } | Refusal::Ended { .. } | Refusal::OfKernel { .. },
            ) => None,
            Err(refusal) => {
                if self.refused.len() > MOST_REFUSED {
                    self.refused.retain(|(pid, began)| process::began(*pid) == *began);
                }
                if self.refused.insert((pid, process::began(pid))) {
                    note(refusal.to_string());
                }
                None
            }
        }
    }

    /// Processes that recorded ones have started since they are recorded.
    fn children(&mut self, recorded: Option<&[Tid]>) -> Vec<Process> {
        let Some(recorded) = recorded else {
            let all = select::all().into_iter().filter(|pid| !self.living.contains_key(pid));
            return all.filter(|pid| self.is_child(*pid)).filter_map(Process::open_child).collect();
        };
        let tids: BTreeSet<Pid> = recorded.iter().map(|tid| tid.as_process()).collect();
        self.threads.retain(|tid| tids.contains(tid));
        let mut found = Vec::new();
        for pid in tids {
            if self.living.contains_key(&pid) || self.threads.contains(&pid) {
                continue;
            }
            match Process::open_child(pid) {
                Some(process) => found.push(process),
                None => drop(self.threads.insert(pid)),
            }
        }
        found
    }

    /// Whether the parent of a process is recorded, and was when it started this one.
    fn is_child(&self, pid: Pid) -> bool {
        let parent = parent(pid).and_then(|parent| self.living.get(&parent));
        parent.is_some_and(|parent| process::began(pid) >= parent.followed_since())
    }
}

impl AsFd for Processes {
    /// Readable once one of them has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.endings.as_fd()
    }
}
