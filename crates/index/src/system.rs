//! System calls of threads: which one a thread is in, from its beginning to its end, also while the thread
//! sleeps or waits for a CPU in it.

use crate::builder::Builder;
use crate::row::RowKind;
use tracewing_timeline::{StateId, States, TrackId};
use tracewing_trace::super_trace::{Doing, Lwp, Mode, Name};
use tracewing_units::Timestamp;

/// What is known of one thread.
#[derive(Debug, Clone, Default)]
struct Thread {
    /// The row of its system calls, once it has made one.
    row: Option<TrackId>,
    /// Before that: the last time in which it may have been in one.
    unknown: Option<(Timestamp, Timestamp)>,
}

/// Follows the system calls of all threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct SystemCalls {
    /// By the serial number of the thread.
    threads: Vec<Thread>,
}

/// What a thread's mode says of an interval.
enum Within {
    Call(Name),
    Program,
    Unknown,
}

impl SystemCalls {
    /// A thread did this for an interval, which is not empty.
    #[inline]
    pub(crate) fn did(
        &mut self,
        lwp: &Lwp,
        doing: Doing,
        (from, to): (Timestamp, Timestamp),
        states: &mut States<Builder<'_>>,
    ) {
        let within = match doing {
            Doing::Unknown => Within::Unknown,
            Doing::Running { mode: Mode::Interrupt(_), .. }
            | Doing::Runnable { .. }
            | Doing::Blocked { .. }
            | Doing::Nested => Within::of(lwp.mode()),
            Doing::Running { mode, .. } => Within::of(mode),
        };
        if let Within::Program = within {
            return;
        }
        let of = states.lwp_track(lwp.serial, lwp.tid);
        let number = lwp.serial.0;
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, Thread::default);
        }
        let thread = &mut self.threads[number];
        match (within, thread.row) {
            (Within::Call(call), Some(row)) => {
                let state = states.sink.table.system_call(call);
                states.sink.did(row, state, from, to);
            }
            (Within::Call(call), None) => {
                let row = states.sink.part(RowKind::SystemCalls, "", of);
                thread.row = Some(row);
                if let Some((from, to)) = thread.unknown {
                    states.sink.did(row, StateId::UNKNOWN, from, to);
                }
                let state = states.sink.table.system_call(call);
                states.sink.did(row, state, from, to);
            }
            (_, Some(row)) => states.sink.did(row, StateId::UNKNOWN, from, to),
            (_, None) => match &mut thread.unknown {
                Some((_, end)) if *end == from => *end = to,
                unknown => *unknown = Some((from, to)),
            },
        }
    }
}

impl Within {
    fn of(mode: Mode) -> Self {
        match mode {
            Mode::SystemCall(call) => Within::Call(call),
            Mode::User => Within::Program,
            Mode::Unknown | Mode::Interrupt(_) => Within::Unknown,
        }
    }
}
