//! Columns that the super-trace derives, for conditions: `$task`, `$mode` and the others.
//!
//! | column | of an event | of an interval in which an LWP or a user thread was in one state |
//! |---|---|---|
//! | `$pid`, `$process` | its process: number, name | that of the LWP or user thread |
//! | `$tid`, `$comm` | its LWP: number, name | the same; none for a user thread that no LWP runs |
//! | `$task`, `$task_name` | its user thread: number, 0 for none; name | the same |
//! | `$cpu` | the CPU whose buffer it comes from | the CPU that it ran on |
//! | `$mode` | the mode of execution: `user`, `syscall`, `interrupt` | the same |
//! | `$call` | the current system call | the current one, or the cause of waiting |
//! | `$waits_for` | the kind of lock that its LWP waits for, blocked or spinning, as the program reports it |
//! what it was blocked on |
//! | `$state` | of its LWP, before it: `running`, `runnable` (woken), `preempted`, `blocked`, `nested`,
//! `unknown` | the state |
//!
//! A column that no event determines has no value; then every comparison is false.

use super::activity::Name;
use super::doing::{Doing, Mode};
use super::lwp::Lwp;
use super::place::Carried;
use super::seen::Seen;
use tracewing_rules::{Condition, Found, Predicate, Problem, Schema, Scope, Type, Value, Variable};
use tracewing_units::Pid;
use tracewing_vocabulary::context;

/// A column that is derived from the super-trace, not from the event's own fields.
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
    /// `$waits_for`
    WaitsFor,
    /// `$state`
    State,
}

const COLUMNS: [Column; 11] = [
    Column::Pid,
    Column::Process,
    Column::Tid,
    Column::Comm,
    Column::Task,
    Column::TaskName,
    Column::Cpu,
    Column::Mode,
    Column::Call,
    Column::WaitsFor,
    Column::State,
];

/// The values of `$mode`.
const MODES: [&str; 3] = ["user", "syscall", "interrupt"];

/// The values of `$state`.
const STATES: [&str; 6] = ["running", "runnable", "preempted", "blocked", "nested", "unknown"];

impl Column {
    /// The column of this name.
    pub fn named(name: &str) -> Option<Self> {
        COLUMNS.into_iter().find(|column| column.name() == name)
    }

    /// Its name, without the `$`.
    pub const fn name(self) -> &'static str {
        match self {
            Column::Pid => context::PROCESS[0],
            Column::Process => "process",
            Column::Tid => context::TID[0],
            Column::Comm => "comm",
            Column::Task => "task",
            Column::TaskName => "task_name",
            Column::Cpu => context::CPU[0],
            Column::Mode => "mode",
            Column::Call => "call",
            Column::WaitsFor => "waits_for",
            Column::State => "state",
        }
    }

    /// The names of all columns.
    pub fn names() -> impl Iterator<Item = &'static str> {
        COLUMNS.into_iter().map(Column::name)
    }

    /// What its values are.
    pub fn kind(self) -> Type {
        match self {
            Column::Pid | Column::Tid | Column::Task | Column::Cpu => Type::Integer,
            Column::Mode => Type::Word(&MODES),
            Column::State => Type::Word(&STATES),
            _ => Type::Text,
        }
    }

    /// Its value for an event.
    pub fn of<'a>(self, seen: &Seen<'a>) -> Option<Value<'a>> {
        let place = &seen.place;
        match self {
            Column::Pid => Some(integer(place.process?.0)),
            Column::Process => text(seen.state.process_name(place.process?)?),
            Column::Tid => Some(integer(place.tid?.0)),
            Column::Comm => text(&seen.lwp()?.name),
            Column::Task => task(place.thread),
            Column::TaskName => task_name(place.thread),
            Column::Cpu => Some(integer(place.cpu?.0)),
            Column::Mode => mode(place.mode),
            Column::Call => match place.mode {
                Mode::SystemCall(call) => text(seen.adapter.name(call)),
                _ => None,
            },
            Column::WaitsFor => text(seen.adapter.name(seen.lwp()?.waits_for?)),
            Column::State => Some(state(seen.lwp()?.doing())),
        }
    }

    fn of_time<'a>(self, timed: &Timed<'a>) -> Option<Value<'a>> {
        let (cpu, ran) = match timed.doing {
            Doing::Running { cpu, mode } => (Some(cpu), mode),
            _ => (None, Mode::Unknown),
        };
        match self {
            Column::Pid => Some(integer(timed.process?.0)),
            Column::Process => text(timed.process_name?),
            Column::Tid => Some(integer(timed.lwp?.tid.0)),
            Column::Comm => text(&timed.lwp?.name),
            Column::Task => task(timed.thread),
            Column::TaskName => task_name(timed.thread),
            Column::Cpu => Some(integer(cpu?.0)),
            Column::Mode => mode(ran),
            Column::Call => text(timed.call?),
            Column::WaitsFor => match timed.doing {
                Doing::Blocked { .. } => text(timed.call?),
                _ => None,
            },
            Column::State => Some(state(timed.doing)),
        }
    }
}

/// A time in which an LWP or a user thread did one thing.
#[derive(Debug, Clone, Copy)]
pub struct Timed<'a> {
    /// The process, if known.
    pub process: Option<Pid>,
    /// The name of the process, if known.
    pub process_name: Option<&'a str>,
    /// The LWP; none for a user thread that no LWP runs.
    pub lwp: Option<&'a Lwp>,
    /// The user thread that ran.
    pub thread: Carried<'a>,
    /// The state during this time.
    pub doing: Doing,
    /// What the call is called in which it was, or what it waited for.
    pub call: Option<&'a str>,
}

impl Timed<'_> {
    /// The name of the call for [`Timed::call`].
    pub fn call_of(doing: Doing) -> Option<Name> {
        match doing {
            Doing::Running { mode: Mode::SystemCall(call), .. } => Some(call),
            Doing::Blocked { on } => on,
            _ => None,
        }
    }
}

/// A predicate on times.
#[derive(Debug)]
pub struct TimeCondition(Condition<Column>);

impl TimeCondition {
    /// Fits a predicate to times; `None` where it asks for anything else than derived columns.
    pub fn new(predicate: &Predicate) -> Option<Self> {
        predicate.finds_all(&Times).then(|| predicate.resolve("time", &Times).ok().map(Self)).flatten()
    }

    /// Whether it holds for a time.
    pub fn holds(&self, timed: &Timed<'_>) -> bool {
        self.0.holds(&mut |column| column.of_time(timed))
    }
}

/// Describes times to a predicate.
struct Times;

impl Schema for Times {
    type Place = Column;

    fn find(&self, variable: &Variable) -> Result<Found<Column>, Problem> {
        match Column::named(&variable.name) {
            Some(column)
                if variable.scope == Scope::Context && variable.index.is_none() && !variable.length =>
            {
                Ok(Found::Value(column, column.kind()))
            }
            _ => {
                let names = Column::names().map(|name| format!("${name}")).collect();
                Err(Problem::Missing(variable.clone(), names))
            }
        }
    }
}

fn task<'a>(thread: Carried<'_>) -> Option<Value<'a>> {
    match thread {
        Carried::Unknown => None,
        Carried::None => Some(integer(0)),
        Carried::Thread { id, .. } => Some(Value::Integer(id.0.into())),
    }
}

fn task_name(thread: Carried<'_>) -> Option<Value<'_>> {
    match thread {
        Carried::Thread { name, .. } => text(name),
        Carried::Unknown | Carried::None => None,
    }
}

fn integer<'a>(number: impl Into<i64>) -> Value<'a> {
    Value::Integer(number.into().into())
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
        Mode::Interrupt(_) => Some("interrupt"),
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
