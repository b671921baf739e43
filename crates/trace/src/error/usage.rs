//! Why what a user asked for cannot be done.

use std::fmt;
use std::path::PathBuf;
use tracewing_rules::{CompileError, Problem};

/// Why what a user asked for cannot be understood, or fits no recording or place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageFault {
    /// A text is no time.
    #[error(
        "`{0}` is not a time; give +1.5s, 2026-11-21 04:25:40.5, 04:25:40, seconds since the epoch, or \
         EVENT#3"
    )]
    NoTime(String),
    /// A time is none of the recording's clock.
    #[error("the time is outside the range of a trace's clock")]
    OutsideClock,
    /// A time range is empty.
    #[error("the time range ends before it begins")]
    EndBeforeBegin,
    /// An event does not occur so often.
    #[error("`{event}#{number}` is not a time: the recording has {}", such_events(*.seen))]
    NoOccurrence {
        /// Name of the event.
        event: String,
        /// Which of its occurrences is meant, from 1 on.
        number: u64,
        /// How many there are.
        seen: u64,
    },
    /// A condition fits no class of events.
    #[error(transparent)]
    NoFit(NoFit),
    /// No class of events has a field that a condition uses.
    #[error("no event has `{0}`, which the condition uses")]
    NoField(String),
    /// A path for output has no name.
    #[error("{} names no new file or folder", .0.display())]
    NoName(PathBuf),
    /// A path for output exists.
    #[error("{} already exists; choose another path or remove it", .0.display())]
    Exists(PathBuf),
    /// Unfinished output is in the way.
    #[error("{} exists: another conversion is writing it, or one was killed; remove it if none is", .0.display())]
    Unfinished(PathBuf),
    /// No trace has the context of threads.
    #[error(
        "the recording has no context of threads: record it with `--context NAME`; `ip` is shown without this option"
    )]
    NoContext,
    /// Columns are not known in advance.
    #[error("CSV has a column for each field of all classes, which are not known while events are added")]
    FollowedAsCsv,
    /// Threads and processes are not known in advance.
    #[error("what belongs to a thread or process is not known while events are added")]
    FollowedBySubject,
    /// Packets of a stream do not say how long they are.
    #[error(
        "{0}: packets that do not declare their size cannot be followed: it is unknown whether they are complete"
    )]
    FollowedWithoutSizes(String),
    /// `--names` has both `all` and `none`.
    #[error("--names: `all` and `none` exclude each other")]
    AllAndNone,
    /// A word of `--names` is none.
    #[error("--names: unknown name `{0}`; give payload, context, scope, header, all or none")]
    UnknownName(String),
    /// A word of `--fields` is none.
    #[error(
        "--fields: unknown field `{0}`; give trace, trace:hostname, trace:domain, trace:procname, trace:vpid, loglevel, emf or all"
    )]
    UnknownField(String),
    /// An option of babeltrace2 has no counterpart here.
    #[error("`{0}` is not compared")]
    UnknownOption(String),
    /// What an analysis was asked for does not fit; the cause is of the analysis's own type.
    #[error(transparent)]
    Analysis(Box<dyn std::error::Error + Send + Sync>),
}

fn such_events(count: u64) -> String {
    match count {
        0 => "no such event".to_owned(),
        1 => "one such event only".to_owned(),
        _ => format!("only {count} such events"),
    }
}

/// Why a condition fits no class of events: a reason for each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoFit {
    /// Those that come closest, which have the fields but of another type, come first.
    reasons: Vec<CompileError>,
}

impl NoFit {
    pub(crate) fn new(mut reasons: Vec<CompileError>) -> Self {
        reasons.sort_by_key(|reason| matches!(reason.problem, Problem::Missing(..)));
        Self { reasons }
    }

    /// The reasons, one for each class.
    pub fn reasons(&self) -> &[CompileError] {
        &self.reasons
    }
}

impl std::error::Error for NoFit {}

/// Each reason once, with the first class that it is of.
impl fmt::Display for NoFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 4;
        let reasons = &self.reasons;
        let mut counts: Vec<(&CompileError, usize)> = Vec::new();
        for reason in reasons {
            let same = counts.iter_mut().find(|(other, _)| match (&reason.problem, &other.problem) {
                // Every class has other fields, so only a few are listed.
                (Problem::Missing(name, _), Problem::Missing(other, _)) if reasons.len() > MOST => {
                    name == other
                }
                (problem, other) => problem == other,
            });
            match same {
                Some((_, count)) => *count += 1,
                None => counts.push((reason, 1)),
            }
        }
        f.write_str("no event has what the condition asks for")?;
        for (reason, count) in counts.iter().take(MOST) {
            write!(f, "\n  {reason}")?;
            match count - 1 {
                0 => {}
                1 => f.write_str("; and so for 1 other event")?,
                others => write!(f, "; and so for {others} other events")?,
            }
        }
        if counts.len() > MOST {
            write!(f, "\n  and {} other reasons", counts.len() - MOST)?;
        }
        Ok(())
    }
}
