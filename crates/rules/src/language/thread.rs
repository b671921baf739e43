//! Patterns for user threads.

use super::glob::Glob;
use std::fmt;
use tracewing_units::{Pid, Task};

/// Selects user threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadPattern {
    /// By number, which is unique in a process; in one process if that is given.
    Number {
        /// Process id; `None` for any process.
        process: Option<Pid>,
        /// Number of the user thread.
        thread: Task,
    },
    /// By name.
    Name(Glob),
}

impl ThreadPattern {
    /// `12` is a number, `4711/12` a process and a number, anything else a pattern for names.
    pub fn new(text: &str) -> Self {
        let number = match text.split_once('/') {
            Some((process, thread)) => process.parse().ok().map(Some).zip(thread.parse().ok()),
            None => text.parse().ok().map(|thread| (None, thread)),
        };
        match number {
            Some((process, thread)) => Self::Number { process, thread },
            None => Self::Name(Glob::new(text)),
        }
    }

    /// Whether a user thread of this process, number and name is selected; the name is empty if it has none.
    pub fn matches(&self, process: Option<Pid>, thread: Task, name: &str) -> bool {
        match self {
            Self::Number { process: expected, thread: number } => {
                *number == thread && expected.is_none_or(|expected| Some(expected) == process)
            }
            Self::Name(glob) => !name.is_empty() && glob.matches(name),
        }
    }
}

/// Formatted as [`ThreadPattern::new`] reads it.
impl fmt::Display for ThreadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { process: Some(process), thread } => write!(f, "{process}/{thread}"),
            Self::Number { process: None, thread } => write!(f, "{thread}"),
            Self::Name(glob) => write!(f, "{glob}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_chosen_by_number_or_name() {
        let pattern = ThreadPattern::new;
        assert_eq!(pattern("12"), ThreadPattern::Number { process: None, thread: Task(12) });
        assert_eq!(pattern("4711/12"), ThreadPattern::Number { process: Some(Pid(4711)), thread: Task(12) });
        assert_eq!(pattern("work/12"), ThreadPattern::Name(Glob::new("work/12")));
        for (text, fits) in [("12", true), ("7/12", true), ("8/12", false), ("w*/1", true), ("w", false)] {
            assert_eq!(pattern(text).matches(Some(Pid(7)), Task(12), "work/1"), fits, "{text}");
            assert_eq!(pattern(text).to_string(), text);
        }
        assert!(!pattern("7/12").matches(None, Task(12), ""), "its process is unknown");
        assert!(!pattern("*").matches(Some(Pid(7)), Task(12), ""), "what has no name has none that matches");
    }
}
