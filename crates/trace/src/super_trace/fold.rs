//! What analyses of the super-trace are told: who did what, from when to when.

use super::activity::{Name, SwitchCause};
use super::comm::Comm;
use super::lwp::Lwp;
use super::user_thread::UserThread;

/// What an LWP or a user thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// Nobody knows: no event tells yet, or one is missing.
    Unknown,
    /// It is on a CPU.
    Running {
        /// Which.
        cpu: u32,
        /// What runs there.
        mode: Mode,
    },
    /// It could go on, and waits for a CPU, or a user thread for an LWP.
    Runnable {
        /// Whether it was taken off, rather than woken.
        preempted: bool,
    },
    /// It waits for something else.
    Blocked {
        /// The kind of lock for which it waits, else the system call in which it does; or what its user thread waits for; `None`
        /// where no event tells.
        on: Option<Name>,
    },
    /// Of a user thread: its LWP runs another one within it.
    Nested,
}

/// What runs on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nobody knows.
    Unknown,
    /// The program's own code.
    User,
    /// A system call.
    SystemCall(Name),
    /// An interrupt or softirq, which has nothing to do with whom it interrupts; `None` where no event tells which. Of several
    /// within each other, the innermost.
    Interrupt(Option<Name>),
}

/// Who made something ready: what ran where the wake was recorded. Where that may have been an interrupt of which no event tells,
/// nobody knows who it was: a thread that runs is no proof that it was the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waker {
    /// The CPU.
    pub cpu: Option<u32>,
    /// The interrupt or softirq that had it: then the wake is by that, not by whom it interrupted. All below is then of the
    /// thread that raised the softirq in a system call, as one does that sends over the loopback device; or `None`.
    pub interrupt: Option<Name>,
    /// The system call that it was in.
    pub call: Option<Name>,
    /// The process: its first thread's number.
    pub process: Option<i32>,
    /// The LWP; 0 is the CPU's idle thread.
    pub tid: Option<i32>,
    /// The LWP's name.
    pub name: Comm,
    /// The LWP's [`Lwp::serial`].
    pub lwp: Option<usize>,
    /// The user thread that the LWP ran: its number, unique in the process.
    pub user_thread: Option<u64>,
    /// The user thread's [`UserThread::serial`].
    pub user_thread_serial: Option<usize>,
}

impl Waker {
    /// Nobody knows who it was.
    pub(super) fn unknown(cpu: Option<u32>) -> Self {
        Self {
            cpu,
            interrupt: None,
            call: None,
            process: None,
            tid: None,
            name: Comm::default(),
            lwp: None,
            user_thread: None,
            user_thread_serial: None,
        }
    }
}

/// Of whom the recording has the interrupts that came while they ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupts {
    OfAll,
    /// Of those that it follows ([`Lwp::followed`]).
    OfFollowed,
    Untold,
}

/// An analysis: what it does not care for, it leaves out. Times are in nanoseconds on the recording's clock.
///
/// What an LWP did follows without gaps from the first that is known of it to its end, also what a user thread did off LWPs;
/// parts may be empty. Each is told when it is over, before whatever ended it: the wake, the switch. What the events do not
/// prove is not told as a wake or a switch: there are more of them where events are missing.
///
/// Numbers are given again when their owners have ended; `serial` is not.
#[expect(unused_variables, reason = "the names of the arguments document them")]
pub trait Fold {
    /// An LWP did one thing for a time.
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {}

    /// What `lwp` did since the last such call, it did for this user thread; or for none, or nobody knows.
    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {}

    /// A user thread that no LWP ran did one thing for a time.
    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64) {}

    /// A CPU had no LWP for a time: it was idle, or in an interrupt. Not told where no event tells that.
    fn cpu_idles(&mut self, cpu: u32, interrupt: Option<Name>, from: i64, to: i64) {}

    /// The first event that tells an LWP's mode proves that it has been in this one so far, since nothing has changed it; it was
    /// told as unknown.
    fn lwp_was(&mut self, lwp: &Lwp, mode: Mode) {}

    /// An LWP begins a system call.
    fn lwp_calls(&mut self, lwp: &Lwp, call: Name, at: i64) {}

    /// An LWP touched a page that was not there.
    fn lwp_faults(&mut self, lwp: &Lwp, at: i64) {}

    /// An LWP is seen to use a socket, in the system call that it is in.
    fn lwp_uses_socket(&mut self, lwp: &Lwp, at: i64) {}

    /// An LWP was woken, once for each time that [`Lwp::wakeups`] counts; its creator wakes it first. It may have been
    /// ready before, or running.
    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: i64) {}

    /// The scheduler gave a CPU to an LWP.
    fn lwp_runs(&mut self, lwp: &Lwp, cpu: u32, at: i64) {}

    /// The scheduler took a CPU from an LWP, which was in the kernel's state `prev_state`
    /// ([`Kind::Switch`](super::Kind::Switch)).
    fn lwp_stops(&mut self, lwp: &Lwp, cpu: u32, prev_state: i64, at: i64) {}

    /// A user thread was made and is ready.
    fn user_thread_created(&mut self, thread: &UserThread, by: &Waker, at: i64) {}

    /// A user thread that is known is called otherwise from now on.
    fn user_thread_named(&mut self, thread: &UserThread) {}

    /// A user thread was made ready, once for each time that [`UserThread::wakeups`] counts. It may have been ready before, or
    /// running: then it is run once more.
    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: i64) {}

    /// An LWP begins to run a user thread: a poll begins, or goes on after [`SwitchCause::Nested`].
    fn user_thread_runs(&mut self, thread: &UserThread, lwp: &Lwp, at: i64) {}

    /// It stops, which ends a poll unless the cause is [`SwitchCause::Nested`]. Not told where no event tells that or when
    /// it began to run; and if its end is missing, it is told to run again, or to have ended, next.
    fn user_thread_stops(&mut self, thread: &UserThread, lwp: &Lwp, cause: SwitchCause, at: i64) {}

    /// An LWP has ended, or the recording has.
    fn lwp_ends(&mut self, lwp: &Lwp) {}

    /// A user thread has ended, or the recording has.
    fn user_thread_ends(&mut self, thread: &UserThread) {}
}

/// Nobody is told.
impl Fold for () {}
