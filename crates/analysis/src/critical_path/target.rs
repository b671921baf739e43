//! The thread or task whose path is requested.

use super::record::Identity;
use super::{Followed, Match, NoPath};
use std::collections::HashSet;
use tracewing_rules::ProcessPattern;
use tracewing_trace::{Error, Filter, ThreadPattern, UsageFault};
use tracewing_units::{Pid, Task, Tid, Timestamp};

/// The LWP or user thread whose path is requested.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    choice: Choice,
    /// It must belong to one of these processes, unless this is empty.
    processes: Vec<ProcessPattern>,
}

#[derive(Debug, Clone, PartialEq)]
enum Choice {
    /// An LWP by its number; of several with that number, the last.
    Lwp(Tid),
    /// A process' first LWP.
    Main,
    UserThread(ThreadPattern),
}

/// Why a filter chooses no one target. The cause of [`UsageFault::Analysis`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetFault {
    /// It leaves out events that the path may need.
    #[error(
        "a critical path needs the events of all threads on all CPUs, so {0} cannot leave out some of them; choose \
         from the steps that --format json or csv prints"
    )]
    LeavesOut(&'static str),
    /// It chooses no task, thread or process.
    #[error("choose a task (--task), a thread (--tid), or the first thread of a process (--process)")]
    None,
    /// It chooses several.
    #[error("a critical path is that of one task or thread: give one --task or --tid")]
    Several,
}

impl From<TargetFault> for Error {
    fn from(fault: TargetFault) -> Self {
        UsageFault::Analysis(Box::new(fault)).into()
    }
}

impl Target {
    /// The one that a filter chooses. Its times are left to [`run`](crate::run()).
    ///
    /// # Errors
    /// [`Error::Usage`]: it chooses no thread or several, or leaves out events or times that the path may
    /// cross.
    pub fn new(filter: &Filter) -> Result<Self, Error> {
        let Filter { events, exclude, predicate, level, threads, tids, processes, cpus, .. } = filter;
        let leaves_out = [
            (!events.is_empty(), "-e"),
            (!exclude.is_empty(), "--exclude"),
            (level.is_some(), "--user and --kernel"),
            (predicate.is_some(), "--where"),
            (!cpus.is_empty(), "--cpu"),
        ];
        if let Some((_, option)) = leaves_out.into_iter().find(|(given, _)| *given) {
            return Err(TargetFault::LeavesOut(option).into());
        }
        let choice = match (&threads[..], &tids[..]) {
            ([thread], []) => Choice::UserThread(thread.clone()),
            ([], [tid]) => Choice::Lwp(*tid),
            ([], []) if processes.is_empty() => return Err(TargetFault::None.into()),
            ([], []) => Choice::Main,
            _ => return Err(TargetFault::Several.into()),
        };
        Ok(Target { choice, processes: processes.clone() })
    }

    /// Whether it may be the target, ignoring the names of processes.
    fn fits(&self, followed: Followed, identity: &Identity) -> bool {
        match (&self.choice, followed) {
            (Choice::Lwp(tid), Followed::Lwp(..)) => identity.number == u64::from(tid.0.unsigned_abs()),
            (Choice::Main, Followed::Lwp(..)) => is_main(identity),
            (Choice::UserThread(pattern), Followed::UserThread(_)) => {
                pattern.matches(identity.process, Task(identity.number), &identity.name)
            }
            _ => false,
        }
    }

    fn missing(&self) -> String {
        let of = if self.processes.is_empty() { "" } else { " of the requested process" };
        match self.choice {
            Choice::Lwp(tid) => format!("thread {tid}{of}"),
            Choice::Main => "the requested process".to_owned(),
            Choice::UserThread(_) => format!("the requested task{of}"),
        }
    }
}

fn is_main(identity: &Identity) -> bool {
    identity.process.is_some_and(|process| u64::from(process.0.unsigned_abs()) == identity.number)
}

/// An LWP or user thread that may be the target.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub followed: Followed,
    pub identity: Identity,
    /// From when to when it is known.
    pub life: (Timestamp, Timestamp),
}

/// All candidates, collected as they end.
#[derive(Debug)]
pub(super) struct Candidates {
    target: Target,
    all: Vec<Candidate>,
    /// Processes whose names fit.
    named: HashSet<Pid>,
}

impl Candidates {
    pub(super) fn new(target: Target) -> Self {
        Candidates { target, all: Vec::new(), named: HashSet::new() }
    }

    /// An LWP or user thread, or the recording, has ended.
    pub(super) fn ends(&mut self, followed: Followed, identity: &Identity, life: (Timestamp, Timestamp)) {
        if !self.target.processes.is_empty()
            && matches!(followed, Followed::Lwp(..))
            && is_main(identity)
            && let Some(process) = identity.process
            && self.target.processes.iter().any(|pattern| pattern.fits(process, Some(&identity.name)))
        {
            self.named.insert(process);
        }
        if self.target.fits(followed, identity) {
            self.all.push(Candidate { followed, identity: identity.clone(), life });
        }
    }

    /// The one that is meant.
    pub(super) fn choose(self) -> Result<Candidate, NoPath> {
        let Candidates { target, mut all, named } = self;
        let by_number = |process| target.processes.iter().any(|pattern| pattern.fits(process, None));
        let fits = |process: Pid| named.contains(&process) || by_number(process);
        all.retain(|one| target.processes.is_empty() || one.identity.process.is_some_and(fits));
        all.sort_by_key(|one| match one.followed {
            Followed::Lwp(serial, _) => serial.0,
            Followed::UserThread(serial) => serial.0,
        });
        let differ = |two: &[Candidate]| match target.choice {
            Choice::UserThread(_) => true,
            // A number may have been given again.
            Choice::Lwp(_) | Choice::Main => two[0].identity.number != two[1].identity.number,
        };
        if all.windows(2).any(differ) {
            let each = |Candidate { identity: Identity { process, number, name }, .. }| Match {
                process,
                number,
                name,
            };
            let all = all.into_iter().map(each).collect();
            return Err(match target.choice {
                Choice::Main => NoPath::SeveralProcesses(all),
                Choice::Lwp(_) => NoPath::SeveralThreads(all),
                Choice::UserThread(_) => NoPath::SeveralTasks(all),
            });
        }
        all.pop().ok_or_else(|| NoPath::Missing(target.missing()))
    }
}
