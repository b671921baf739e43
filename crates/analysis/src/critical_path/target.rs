//! Whose path is asked for.

use super::record::Identity;
use super::{Actor, NoPath};
use std::collections::HashSet;
use tracewing_rules::ProcessPattern;
use tracewing_trace::{Error, Filter, ThreadPattern};
use tracewing_units::{Pid, Tid, Timestamp};

/// Whose path is asked for: one LWP or user thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    who: Wanted,
    /// It must be of one of these processes, if there are any.
    processes: Vec<ProcessPattern>,
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// An LWP, by its number; where several had it, the last one.
    Lwp(Tid),
    /// A process' first LWP.
    Main,
    UserThread(ThreadPattern),
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
        let usage = |message: String| Err(Error::Usage(message));
        if let Some((_, option)) = leaves_out.into_iter().find(|(given, _)| *given) {
            return usage(format!(
                "a critical path needs the events of all threads on all CPUs, so {option} cannot leave out some of them; choose \
                 from the steps that --format json or csv prints"
            ));
        }
        let who = match (&threads[..], &tids[..]) {
            ([thread], []) => Wanted::UserThread(thread.clone()),
            ([], [tid]) => Wanted::Lwp(*tid),
            ([], []) if processes.is_empty() => {
                return usage(
                    "choose a task (--task), a thread (--tid), or the first thread of a process (--process)"
                        .into(),
                );
            }
            ([], []) => Wanted::Main,
            _ => {
                return usage(
                    "a critical path is that of one task or thread: give one --task or --tid".into(),
                );
            }
        };
        Ok(Target { who, processes: processes.clone() })
    }

    /// Whether it may be the target, ignoring the names of processes.
    fn fits(&self, actor: Actor, who: &Identity) -> bool {
        match (&self.who, actor) {
            (Wanted::Lwp(tid), Actor::Lwp(..)) => who.number == u64::from(tid.0.unsigned_abs()),
            (Wanted::Main, Actor::Lwp(..)) => is_main(who),
            (Wanted::UserThread(pattern), Actor::UserThread(_)) => {
                pattern.matches(who.process.map(|pid| pid.0), who.number, &who.name)
            }
            _ => false,
        }
    }

    fn missing(&self) -> String {
        let of = if self.processes.is_empty() { "" } else { " of such a process" };
        match self.who {
            Wanted::Lwp(tid) => format!("thread {tid}{of}"),
            Wanted::Main => "such a process".to_owned(),
            Wanted::UserThread(_) => format!("such a task{of}"),
        }
    }
}

fn is_main(who: &Identity) -> bool {
    who.process.is_some_and(|process| u64::from(process.0.unsigned_abs()) == who.number)
}

/// An LWP or user thread that may be the target.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub actor: Actor,
    pub who: Identity,
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
    pub fn new(target: Target) -> Self {
        Candidates { target, all: Vec::new(), named: HashSet::new() }
    }

    /// An LWP or user thread, or the recording, has ended.
    pub fn ends(&mut self, actor: Actor, who: &Identity, life: (Timestamp, Timestamp)) {
        if !self.target.processes.is_empty()
            && matches!(actor, Actor::Lwp(..))
            && is_main(who)
            && let Some(process) = who.process
            && self.target.processes.iter().any(|pattern| pattern.fits(process.0, Some(&who.name)))
        {
            self.named.insert(process);
        }
        if self.target.fits(actor, who) {
            self.all.push(Candidate { actor, who: who.clone(), life });
        }
    }

    /// The one that is meant.
    pub fn choose(self) -> Result<Candidate, NoPath> {
        let Candidates { target, mut all, named } = self;
        let by_number = |process| target.processes.iter().any(|pattern| pattern.fits(process, None));
        let fits = |process: Pid| named.contains(&process) || by_number(process.0);
        all.retain(|one| target.processes.is_empty() || one.who.process.is_some_and(fits));
        all.sort_by_key(|one| match one.actor {
            Actor::Lwp(serial, _) => serial.0,
            Actor::UserThread(serial) => serial.0,
        });
        let differ = |two: &[Candidate]| match target.who {
            Wanted::UserThread(_) => true,
            // A number may have been given again.
            Wanted::Lwp(_) | Wanted::Main => two[0].who.number != two[1].who.number,
        };
        if all.windows(2).any(differ) {
            return Err(NoPath::Ambiguous(ambiguous(&target, &all)));
        }
        all.pop().ok_or_else(|| NoPath::Missing(target.missing()))
    }
}

fn ambiguous(target: &Target, all: &[Candidate]) -> String {
    const MOST: usize = 5;
    let name = |Candidate { who: Identity { process, number, name }, .. }: &Candidate| match process {
        Some(process) if target.who != Wanted::Main => format!("{process}/{number} {name}"),
        _ => format!("{number} {name}"),
    };
    let names: Vec<_> = all.iter().take(MOST).map(name).collect();
    let kind = if target.who == Wanted::Main { "process" } else { "task" };
    let more = if all.len() > MOST { ", …" } else { "" };
    format!("the {kind} is ambiguous: {}{more}", names.join(", "))
}
