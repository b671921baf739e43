//! The critical path of an LWP or a user thread: who had to come to an end so that it could.
//!
//! It is found from its end backwards. While somebody runs, its time is its own. Where it was blocked, the path goes to who woke
//! it, at that time, and follows that one back to when the block began; an interrupt's wake, which is a timer's or a device's,
//! ends that way. Where it waited for a CPU, the time is of whoever had that CPU; where a user thread waited for an LWP, the
//! path follows that LWP. So each nanosecond of the time asked for is of exactly one.
//!
//! | file | does |
//! |---|---|
//! | `lines` | keeps what all did in that time |
//! | `walk` | goes back over it |

mod lines;
mod walk;

pub use lines::CriticalPaths;

use crate::names::Names;
use crate::who::Who;
use lines::{Line, ROOM};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tracewing_trace::ThreadPattern;
use walk::{Actor, Walk};

/// Whose path is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// An LWP, by its number; where several had it, the last one.
    Lwp(i32),
    /// A user thread.
    UserThread(ThreadPattern),
}

/// A path in the order of time. Its steps follow each other without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CriticalPath {
    /// Whose it is.
    pub target: Arc<Who>,
    /// Where it begins, in nanoseconds on the recording's clock.
    pub from_ns: i64,
    /// Where it ends.
    pub to_ns: i64,
    /// What it consists of.
    pub steps: Vec<Step>,
}

/// A part of a path: one did one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When it begins, in nanoseconds on the recording's clock.
    pub from_ns: i64,
    /// When it ends.
    pub to_ns: i64,
    /// The CPU, where one was used.
    pub cpu: Option<u32>,
    /// Who.
    pub who: Arc<Who>,
    /// What.
    pub what: What,
    /// What the path has to do with that.
    pub why: Why,
    /// The one of `why` that had to wait.
    pub whom: Option<Arc<Who>>,
}

/// What somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Ran its program's code.
    User,
    /// Ran in a system call.
    SystemCall(String),
    /// Ran, no event tells what.
    Running,
    /// Had the CPU, as an interrupt.
    Interrupt,
    /// Waited for something, in a system call or for what a user thread says.
    Blocked(Option<String>),
    /// Waited for a CPU, or for an LWP.
    Ready,
    /// No event tells.
    Unknown,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::User => f.write_str("user"),
            What::SystemCall(call) => write!(f, "system call {call}"),
            What::Running => f.write_str("running"),
            What::Interrupt => f.write_str("interrupt"),
            What::Blocked(Some(on)) => write!(f, "blocked on {on}"),
            What::Blocked(None) => f.write_str("blocked"),
            What::Ready => f.write_str("ready"),
            What::Unknown => f.write_str("unknown"),
        }
    }
}

/// What a path has to do with a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is the path of this one.
    Itself,
    /// It woke somebody at the end of this.
    Wakes,
    /// It raised the softirq of this name, which woke somebody at the end of this.
    WakesVia(Arc<str>),
    /// It created somebody at the end of this.
    Creates,
    /// It had the CPU that somebody waited for.
    HasCpu,
    /// It had, or was, the LWP that a user thread waited for.
    HasThread,
    /// It took somebody's CPU for a moment.
    Interrupts,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::Itself => "itself",
            Why::Wakes => "wakes",
            Why::WakesVia(softirq) => return write!(f, "wakes via {softirq}"),
            Why::Creates => "creates",
            Why::HasCpu => "has the CPU for",
            Why::HasThread => "has the thread for",
            Why::Interrupts => "interrupts",
        })
    }
}

/// Why there is no path.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoPath {
    /// The recording has nobody like that in that time.
    #[error("{0} was not met in this time")]
    Missing(String),
    /// A name or number means several.
    #[error("{0} is ambiguous: {1}")]
    Ambiguous(String, String),
    /// It would need too much memory.
    #[error(
        "too much happened in this time: there is room for {ROOM} parts; the room was used up {0:.3} s behind its begin"
    )]
    TooLong(f64),
    /// Nothing lies between the two times.
    #[error("the time is empty")]
    Empty,
}

impl CriticalPath {
    /// How much of the path is whose, most first.
    pub fn by_who(&self) -> Vec<(String, u64)> {
        self.sums(|step| step.who.to_string())
    }

    /// How much of the path is spent on what, most first.
    pub fn by_what(&self) -> Vec<(String, u64)> {
        self.sums(|step| step.what.to_string())
    }

    fn sums(&self, of: impl Fn(&Step) -> String) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for step in &self.steps {
            *sums.entry(of(step)).or_default() += step.ns();
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        sums
    }
}

impl Step {
    /// How long it took, in nanoseconds.
    pub fn ns(&self) -> u64 {
        self.to_ns.abs_diff(self.from_ns)
    }

    /// Whether the same goes on here that was in `before`.
    fn continues(&self, before: &Step) -> bool {
        (self.cpu, &self.why) == (before.cpu, &before.why)
            && (&self.who, &self.what, &self.whom) == (&before.who, &before.what, &before.whom)
    }
}

impl CriticalPaths {
    /// The path of `target` from one time to another, in nanoseconds; without them, of all that is known of it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn path(
        &self,
        target: &Target,
        from: Option<i64>,
        to: Option<i64>,
        names: &Names,
    ) -> Result<CriticalPath, NoPath> {
        if let Some(full) = self.full {
            return Err(NoPath::TooLong(full.saturating_sub(self.begin) as f64 / 1e9));
        }
        let (actor, (first, last)) = self.find(target)?;
        let (from_ns, to_ns) = (from.unwrap_or(first), to.unwrap_or(last));
        if from_ns >= to_ns {
            return Err(NoPath::Empty);
        }
        let mut walk = Walk::new(self, names);
        let target = walk.who(actor);
        Ok(CriticalPath { target, from_ns, to_ns, steps: walk.back(actor, from_ns, to_ns) })
    }

    /// Who is meant, and from when to when it is known.
    fn find(&self, target: &Target) -> Result<(Actor, (i64, i64)), NoPath> {
        match target {
            Target::Lwp(tid) => {
                let lines = self.lwps.iter().filter(|(_, line)| line.number == u64::from(tid.unsigned_abs()));
                let known = lines.filter_map(|(serial, line)| Some((*serial, life(line)?)));
                let last = known.max_by_key(|(serial, _)| *serial);
                let (serial, life) = last.ok_or_else(|| NoPath::Missing(format!("thread {tid}")))?;
                Ok((Actor::Lwp(serial, None), life))
            }
            Target::UserThread(pattern) => {
                let lines = &self.user_threads;
                let fits = |line: &Line<_>| pattern.matches(line.process, line.number, &line.name);
                let lines = lines.iter().filter(|(_, line)| fits(line));
                let mut known: Vec<_> =
                    lines.filter_map(|(serial, line)| Some((*serial, line, life(line)?))).collect();
                known.sort_by_key(|(serial, ..)| *serial);
                match &known[..] {
                    [(serial, _, life)] => Ok((Actor::UserThread(*serial), *life)),
                    [] => Err(NoPath::Missing("such a task".to_owned())),
                    _ => {
                        let name = |line: &Line<_>| match line.process {
                            Some(process) => format!("{process}/{} {}", line.number, line.name),
                            None => format!("{} {}", line.number, line.name),
                        };
                        const MOST: usize = 5;
                        let names: Vec<_> = known.iter().take(MOST).map(|(_, line, _)| name(line)).collect();
                        let more = if known.len() > MOST { ", …" } else { "" };
                        Err(NoPath::Ambiguous("the task".to_owned(), format!("{}{more}", names.join(", "))))
                    }
                }
            }
        }
    }
}

/// From when to when something is known.
fn life<D>(line: &Line<D>) -> Option<(i64, i64)> {
    Some((line.stretches.first()?.from, line.stretches.last()?.to))
}
