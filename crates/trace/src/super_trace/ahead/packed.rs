//! A message in as few bytes as a line of a CPU's cache: what one thread writes, another CPU has to fetch.

use crate::super_trace::activity::{
    Activity, Context, Interrupt, Kind, Name, SwitchCause, TaskState, UserThreadKind,
};
use tracewing_units::{Cpu, Origin, Pid, Task, Tid, Timestamp};

/// Stand for none.
const NO_CPU: Cpu = Cpu(u32::MAX);
const NO_TID: Tid = Tid(-1);
const NO_PROCESS: Pid = Pid(-1);

/// No recording has so many streams.
const READ: u32 = 1 << 31;

/// A message whose texts lie apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packed {
    pub(super) time: Timestamp,
    /// The place of its stream; [`READ`] is added if something was read of the event.
    stream: u32,
    cpu: Cpu,
    tid: Tid,
    process: Pid,
    context: Context,
    pub(super) kind: Small,
}

/// The frequent kinds of activities, with the lengths of their texts, and what stands for all others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Small {
    Switch {
        prev: Tid,
        next: Tid,
        state: TaskState,
        prev_length: u8,
        next_length: u8,
    },
    Waking {
        tid: Tid,
        length: u8,
    },
    Wakeup {
        tid: Tid,
        length: u8,
    },
    SystemCall(Name),
    SystemCallEnd(Name),
    InterruptEntry {
        kind: Interrupt,
        name: Name,
    },
    InterruptExit(Interrupt),
    Raise(Name),
    Create {
        thread: Task,
        origin: Origin,
    },
    Poll {
        prev: Task,
        next: Task,
        cause: SwitchCause,
    },
    Wake(Task),
    Exit(Task),
    Stateless,
    User,
    Kernel,
    /// The next of those that are stored whole.
    Whole,
    /// An event without an activity.
    Other {
        has_time: bool,
    },
    /// The next loss.
    Lost,
}

impl Packed {
    fn new(time: Timestamp, stream: u32, kind: Small) -> Self {
        let context = Context::Unknown;
        Self { time, stream, cpu: NO_CPU, tid: NO_TID, process: NO_PROCESS, context, kind }
    }

    pub(super) fn whole(time: Timestamp, stream: u32) -> Self {
        Self::new(time, stream, Small::Whole)
    }

    pub(super) fn other(time: Option<Timestamp>, stream: u32) -> Self {
        Self::new(time.unwrap_or(Timestamp::MIN), stream, Small::Other { has_time: time.is_some() })
    }

    pub(super) fn lost(stream: u32) -> Self {
        Self::new(Timestamp::MIN, stream, Small::Lost)
    }

    /// The place of its stream.
    #[inline(always)]
    pub(super) fn stream(&self) -> usize {
        (self.stream & !READ) as usize
    }

    /// Whether something was read of the event.
    #[inline(always)]
    pub(super) fn has_read(&self) -> bool {
        self.stream & READ != 0
    }

    #[inline(always)]
    pub(super) fn mark_read(&mut self) {
        self.stream |= READ;
    }

    /// A frequent kind of activity; `None` if it has to be stored whole.
    #[inline(always)]
    pub(super) fn of(activity: &Activity<'_>, stream: u32) -> Option<Self> {
        let &Activity { time, cpu, tid, process, context, kind } = activity;
        // What is not none, but its number says so.
        if cpu == Some(NO_CPU) || tid == Some(NO_TID) || process == Some(NO_PROCESS) {
            return None;
        }
        let (cpu, tid) = (cpu.unwrap_or(NO_CPU), tid.unwrap_or(NO_TID));
        let process = process.unwrap_or(NO_PROCESS);
        let kind = Small::of(&kind)?;
        Some(Self { time, stream, cpu, tid, process, context, kind })
    }

    /// The activity of a kind.
    #[inline(always)]
    pub(super) fn head<'a>(&self, kind: Kind<'a>) -> Activity<'a> {
        let cpu = Some(self.cpu).filter(|cpu| *cpu != NO_CPU);
        let tid = Some(self.tid).filter(|tid| *tid != NO_TID);
        let process = Some(self.process).filter(|process| *process != NO_PROCESS);
        Activity { time: self.time, cpu, tid, process, context: self.context, kind }
    }
}

impl Small {
    #[inline(always)]
    fn of(kind: &Kind<'_>) -> Option<Self> {
        let length = |text: &[u8]| u8::try_from(text.len()).ok();
        Some(match *kind {
            Kind::Switch { prev, prev_name, prev_state, next, next_name } => {
                let (prev_length, next_length) = (length(prev_name)?, length(next_name)?);
                Small::Switch { prev, next, state: prev_state, prev_length, next_length }
            }
            Kind::Waking { tid, name } => Small::Waking { tid, length: length(name)? },
            Kind::Wakeup { tid, name } => Small::Wakeup { tid, length: length(name)? },
            Kind::SystemCall { call } => Small::SystemCall(call),
            Kind::SystemCallEnd { call } => Small::SystemCallEnd(call),
            Kind::InterruptEntry { kind, name } => Small::InterruptEntry { kind, name },
            Kind::InterruptExit(kind) => Small::InterruptExit(kind),
            Kind::Raise { name } => Small::Raise(name),
            Kind::UserThread(UserThreadKind::Create { thread, origin }) => Small::Create { thread, origin },
            Kind::UserThread(UserThreadKind::Switch { prev, next, cause }) => {
                Small::Poll { prev, next, cause }
            }
            Kind::UserThread(UserThreadKind::Wake { thread }) => Small::Wake(thread),
            Kind::UserThread(UserThreadKind::Exit { thread }) => Small::Exit(thread),
            Kind::Stateless => Small::Stateless,
            Kind::User => Small::User,
            Kind::Kernel => Small::Kernel,
            _ => return None,
        })
    }

    /// The kind of activity; `text` gives the next text, of a length. What is stored elsewhere changes
    /// nothing.
    #[inline(always)]
    pub(super) fn unpack<'t>(self, mut text: impl FnMut(u8) -> &'t [u8]) -> Kind<'t> {
        match self {
            Small::Switch { prev, next, state, prev_length, next_length } => {
                let (prev_name, next_name) = (text(prev_length), text(next_length));
                Kind::Switch { prev, prev_name, prev_state: state, next, next_name }
            }
            Small::Waking { tid, length } => Kind::Waking { tid, name: text(length) },
            Small::Wakeup { tid, length } => Kind::Wakeup { tid, name: text(length) },
            Small::SystemCall(call) => Kind::SystemCall { call },
            Small::SystemCallEnd(call) => Kind::SystemCallEnd { call },
            Small::InterruptEntry { kind, name } => Kind::InterruptEntry { kind, name },
            Small::InterruptExit(kind) => Kind::InterruptExit(kind),
            Small::Raise(name) => Kind::Raise { name },
            Small::Create { thread, origin } => Kind::UserThread(UserThreadKind::Create { thread, origin }),
            Small::Poll { prev, next, cause } => {
                Kind::UserThread(UserThreadKind::Switch { prev, next, cause })
            }
            Small::Wake(thread) => Kind::UserThread(UserThreadKind::Wake { thread }),
            Small::Exit(thread) => Kind::UserThread(UserThreadKind::Exit { thread }),
            Small::User => Kind::User,
            Small::Kernel => Kind::Kernel,
            Small::Stateless | Small::Whole | Small::Other { .. } | Small::Lost => Kind::Stateless,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_fits_in_a_line() {
        assert!(size_of::<Packed>() <= 56, "{}", size_of::<Packed>());
    }
}
