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
    /// Before that: the times in which it may have been in one.
    unknown: Vec<(Timestamp, Timestamp)>,
    /// Whether it makes system calls that are not recorded.
    hides: bool,
}

/// Most times that are kept of a thread before its first call. Of more, the first ones become one, with the
/// time between them.
const MOST: usize = 64;

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
        let thread = self.at(lwp);
        match (within, thread.row) {
            (Within::Call(call), Some(row)) => {
                let state = states.sink.table.system_call(call);
                states.sink.did(row, state, from, to);
            }
            (Within::Call(call), None) => {
                let row = states.sink.part(RowKind::SystemCalls, "", of);
                thread.row = Some(row);
                for (from, to) in thread.unknown.drain(..) {
                    states.sink.did(row, StateId::UNKNOWN, from, to);
                }
                if thread.hides {
                    states.sink.hide(row);
                }
                let state = states.sink.table.system_call(call);
                states.sink.did(row, state, from, to);
            }
            (_, Some(row)) => states.sink.did(row, StateId::UNKNOWN, from, to),
            (_, None) => thread.mark_unknown(from, to),
        }
    }

    /// A thread is in a call that is not recorded, and may have been in one at any time in which its mode was
    /// thought to be known: its calls are not shown. Or it has died without a sign of when it left its
    /// program, and only that last time is unknown.
    #[cold]
    pub(crate) fn hides(&mut self, lwp: &Lwp, states: &mut States<Builder<'_>>) {
        let thread = self.at(lwp);
        thread.hides |= !lwp.dies_unseen();
        let Some(row) = thread.row else { return };
        match lwp.dies_unseen() {
            true => states.sink.mark_unknown_until(row, lwp.reported_to()),
            false => states.sink.hide(row),
        }
    }

    fn at(&mut self, lwp: &Lwp) -> &mut Thread {
        let number = lwp.serial.0;
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, Thread::default);
        }
        &mut self.threads[number]
    }
}

impl Thread {
    /// It may have been in a call, before the first one that is known.
    fn mark_unknown(&mut self, from: Timestamp, to: Timestamp) {
        match self.unknown.last_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ => self.unknown.push((from, to)),
        }
        if self.unknown.len() > MOST {
            let (begin, _) = self.unknown.remove(0);
            self.unknown[0].0 = begin;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_times_before_the_first_call_are_kept() {
        let at = |time: i64| Timestamp::from_ns(time);
        let mut thread = Thread::default();
        for (from, to) in [(1, 2), (2, 4), (6, 7)] {
            thread.mark_unknown(at(from), at(to));
        }
        assert_eq!(thread.unknown, [(at(1), at(4)), (at(6), at(7))]);
        for time in 1..200 {
            thread.mark_unknown(at(10 * time), at(10 * time + 1));
        }
        // No unknown time is lost where there are too many: known time becomes unknown.
        assert_eq!((thread.unknown.len(), thread.unknown[0].0), (MOST, at(1)));
        assert_eq!(thread.unknown[1].0, at(10 * (200 - MOST as i64 + 1)));
    }
}
