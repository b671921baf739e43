//! Columns that the super-trace derives, for conditions: `$task`, `$mode` and the others.
//!
//! | column | of an event | of a time in which an LWP or a user thread did one thing |
//! |---|---|---|
//! | `$pid`, `$process` | its process: number, name | whose time it is |
//! | `$tid`, `$comm` | its LWP: number, name | the same; none for a user thread that no LWP runs |
//! | `$task`, `$task_name` | its user thread: number, 0 for none; name | the same |
//! | `$cpu` | whose buffer it comes from | where it ran |
//! | `$mode` | what was running: `user`, `syscall`, `interrupt` | the same |
//! | `$call` | the system call that was running | also the one, or what else, it waited for |
//! | `$state` | of its LWP, before it: `running`, `runnable` (woken), `preempted`, `blocked`, `nested`, `unknown` | what it did |
//!
//! A column has no value where no event tells it; no comparison holds then.

use super::fold::{Doing, Mode};
use super::place::Carried;
use super::seen::Seen;
use tracewing_rules::{Type, Value};

/// A derived column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// `$pid`
    Pid,
    /// `$process`
    Process,
    /// `$tid`
    Tid,
    /// `$comm`
    Comm,
    /// `$task`
    Task,
    /// `$task_name`
    TaskName,
    /// `$cpu`
    Cpu,
    /// `$mode`
    Mode,
    /// `$call`
    Call,
    /// `$state`
    State,
}

/// All columns, with their names behind the `$`.
const COLUMNS: [(&str, Column); 10] = [
    ("pid", Column::Pid),
    ("process", Column::Process),
    ("tid", Column::Tid),
    ("comm", Column::Comm),
    ("task", Column::Task),
    ("task_name", Column::TaskName),
    ("cpu", Column::Cpu),
    ("mode", Column::Mode),
    ("call", Column::Call),
    ("state", Column::State),
];

impl Column {
    /// The column of this name.
    pub fn named(name: &str) -> Option<Self> {
        COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)
    }

    /// The names of all columns.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COLUMNS.iter().map(|(name, _)| *name)
    }

    /// What its values are.
    pub fn kind(self) -> Type {
        match self {
            Column::Pid | Column::Tid | Column::Task | Column::Cpu => Type::Integer,
            _ => Type::Text,
        }
    }

    /// Its value for an event.
    pub fn of<'a>(self, seen: &Seen<'a>) -> Option<Value<'a>> {
        let place = &seen.place;
        match self {
            Column::Pid => Some(integer(place.process?)),
            Column::Process => text(seen.state.process_name(place.process?)?),
            Column::Tid => Some(integer(place.tid?)),
            Column::Comm => text(&seen.lwp()?.name),
            Column::Task => match place.thread {
                Carried::Unknown => None,
                Carried::None => Some(integer(0)),
                Carried::Thread { id, .. } => Some(Value::Integer(id.into())),
            },
            Column::TaskName => match place.thread {
                Carried::Thread { name, .. } => text(name),
                Carried::Unknown | Carried::None => None,
            },
            Column::Cpu => Some(Value::Integer(place.cpu?.into())),
            Column::Mode => mode(place.mode),
            Column::Call => match place.mode {
                Mode::SystemCall(call) => text(seen.adapter.name(call)),
                _ => None,
            },
            Column::State => Some(state(seen.lwp()?.doing())),
        }
    }
}

fn integer<'a>(number: i32) -> Value<'a> {
    Value::Integer(number.into())
}

fn text(text: &str) -> Option<Value<'_>> {
    (!text.is_empty()).then_some(Value::Text(text.as_bytes()))
}

/// The word for what runs.
pub(crate) fn mode_word(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Unknown => None,
        Mode::User => Some("user"),
        Mode::SystemCall(_) => Some("syscall"),
        Mode::Interrupt => Some("interrupt"),
    }
}

fn mode<'a>(mode: Mode) -> Option<Value<'a>> {
    mode_word(mode).map(|word| Value::Text(word.as_bytes()))
}

fn state<'a>(doing: Doing) -> Value<'a> {
    let word = match doing {
        Doing::Unknown => "unknown",
        Doing::Running { .. } => "running",
        Doing::Runnable { preempted: false } => "runnable",
        Doing::Runnable { preempted: true } => "preempted",
        Doing::Blocked { .. } => "blocked",
        Doing::Nested => "nested",
    };
    Value::Text(word.as_bytes())
}
