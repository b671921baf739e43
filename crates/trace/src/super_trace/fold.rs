//! The changes of a super-trace's state that events cause: states of threads with their intervals.

use super::activity::TaskState;
use super::activity::{Name, SwitchCause};
use super::doing::{Doing, Mode, Waker};
use super::lwp::Lwp;
use super::user_thread::UserThread;
use tracewing_units::{Cpu, Timestamp};

/// A change, or a completed interval. Times are in nanoseconds on the recording's clock.
///
/// The intervals of an LWP follow each other without gaps from its first event to its end, and so do those of
/// a user thread while no LWP runs it; they may be empty. Each is reported when it ends, before the event
/// that ended it: the wake, the switch. Wakes and switches that the events do not prove are not reported, so
/// their numbers are lower bounds if events are missing.
///
/// Numbers are reused after their owners have ended; `serial` is not.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// An LWP did one thing for a time.
    LwpDid {
        /// The LWP, as it is at the end of the interval.
        lwp: &'a Lwp,
        /// What it did in the interval.
        doing: Doing,
        /// Begin of the interval.
        from: Timestamp,
        /// End of the interval.
        to: Timestamp,
    },
    /// Attributes the LWP's time since the last such change to this user thread; `None` if none or unknown.
    LwpRan {
        /// The LWP whose time it is.
        lwp: &'a Lwp,
        /// The user thread that the time also belongs to.
        thread: Option<&'a UserThread>,
    },
    /// A user thread that no LWP ran did one thing for a time.
    UserThreadDid {
        /// The user thread, as it is at the end of the interval.
        thread: &'a UserThread,
        /// What it did in the interval.
        doing: Doing,
        /// Begin of the interval.
        from: Timestamp,
        /// End of the interval.
        to: Timestamp,
    },
    /// A CPU had no LWP for a time: it was idle, or in an interrupt. Left out where no event proves that.
    CpuIdled {
        /// The CPU without an LWP.
        cpu: Cpu,
        /// The interrupt that had the CPU; `None` if it was idle.
        interrupt: Option<Name>,
        /// Begin of the interval.
        from: Timestamp,
        /// End of the interval.
        to: Timestamp,
    },
    /// The first event that fixes an LWP's mode proves that it has been in this one so far, since nothing has
    /// changed it; its time so far was of unknown mode.
    LwpWas {
        /// The LWP whose mode is now known.
        lwp: &'a Lwp,
        /// Its mode so far.
        mode: Mode,
    },
    /// An LWP shows that it makes system calls that the kernel does not record, or dies without a sign of
    /// when it left its program: what it has done in its program so far, it may have done in the kernel.
    LwpHidesCalls {
        /// The LWP whose time in the kernel is not all recorded.
        lwp: &'a Lwp,
    },
    /// An LWP begins a system call.
    LwpCalls {
        /// The LWP that makes the call.
        lwp: &'a Lwp,
        /// The CPU of the event.
        cpu: Cpu,
        /// The number of the system call's name.
        call: Name,
        /// Time of the event.
        at: Timestamp,
    },
    /// An LWP touched a page that was not there.
    LwpFaults {
        /// The LWP that caused the fault.
        lwp: &'a Lwp,
        /// The CPU of the event.
        cpu: Cpu,
        /// Time of the event.
        at: Timestamp,
    },
    /// An LWP records an event of its program.
    LwpRecords {
        /// The LWP that records it.
        lwp: &'a Lwp,
        /// The CPU of the buffer that has the event.
        cpu: Cpu,
        /// Time of the event.
        at: Timestamp,
    },
    /// An LWP is seen to use a socket, in the system call that it is in.
    LwpUsesSocket {
        /// The LWP in that system call.
        lwp: &'a Lwp,
        /// The CPU of the event.
        cpu: Cpu,
        /// Time of the event.
        at: Timestamp,
    },
    /// An LWP was woken, once for each time that [`Lwp::wakeups`] counts; its creator wakes it first. It may
    /// have been ready before, or running.
    LwpWoken {
        /// The LWP that was woken.
        lwp: &'a Lwp,
        /// What ran where the wake was recorded.
        by: &'a Waker,
        /// Time of the event.
        at: Timestamp,
    },
    /// The scheduler gave a CPU to an LWP.
    LwpRuns {
        /// The LWP that runs from now on.
        lwp: &'a Lwp,
        /// The CPU that it got.
        cpu: Cpu,
        /// Time of the event.
        at: Timestamp,
    },
    /// The scheduler took a CPU from an LWP.
    LwpStops {
        /// The LWP that no longer runs.
        lwp: &'a Lwp,
        /// The CPU that it had.
        cpu: Cpu,
        /// The kernel's state in which it was ([`Kind::Switch`](super::Kind::Switch)).
        prev_state: TaskState,
        /// Time of the event.
        at: Timestamp,
    },
    /// A user thread was made and is ready.
    UserThreadCreated {
        /// The new user thread.
        thread: &'a UserThread,
        /// What ran where it was created.
        by: &'a Waker,
        /// Time of the event.
        at: Timestamp,
    },
    /// A user thread that is known has another name from now on.
    UserThreadNamed {
        /// The user thread, with its new name.
        thread: &'a UserThread,
    },
    /// A user thread was made ready, once for each time that [`UserThread::wakeups`] counts. It may have been
    /// ready before, or running: then it is run once more.
    UserThreadWoken {
        /// The user thread that was woken.
        thread: &'a UserThread,
        /// What ran where the wake was recorded.
        by: &'a Waker,
        /// Time of the event.
        at: Timestamp,
    },
    /// An LWP begins to run a user thread: a poll begins, or continues after [`SwitchCause::Nested`].
    UserThreadRuns {
        /// The user thread that runs from now on.
        thread: &'a UserThread,
        /// The LWP that runs it.
        lwp: &'a Lwp,
        /// The CPU on which it does, if the LWP's last switch or the event says so.
        cpu: Option<Cpu>,
        /// Whether a poll begins, which [`UserThread::polls`] counts.
        is_poll: bool,
        /// Time of the event.
        at: Timestamp,
    },
    /// It stops, which ends a poll unless the cause is [`SwitchCause::Nested`]. Left out where no event
    /// proves that or when it began to run; if its end is missing, it runs again, or ends, next.
    UserThreadStops {
        /// The user thread that no longer runs.
        thread: &'a UserThread,
        /// The LWP that ran it.
        lwp: &'a Lwp,
        /// The CPU on which it stopped, if the LWP's last switch or the event says so.
        cpu: Option<Cpu>,
        /// Why it stopped.
        cause: SwitchCause,
        /// Time of the event.
        at: Timestamp,
    },
    /// An LWP has ended, or the recording has.
    LwpEnds {
        /// The LWP in its last state.
        lwp: &'a Lwp,
    },
    /// A user thread has ended, or the recording has.
    UserThreadEnds {
        /// The user thread in its last state.
        thread: &'a UserThread,
    },
}

/// Takes the changes of a super-trace's state in their order.
pub trait Fold {
    /// Takes the next change.
    fn change(&mut self, change: Change<'_>);
}

/// Takes them for nothing.
impl Fold for () {
    #[inline(always)]
    fn change(&mut self, _: Change<'_>) {}
}
