//! What analyses of the super-trace are told: who did what, from when to when.

use super::activity::Name;
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
        /// The system call in which it waits, or what its user thread waits for; `None` where no event tells.
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
    /// An interrupt or softirq, which has nothing to do with whom it interrupts.
    Interrupt,
}

/// An analysis. Times are in nanoseconds on the recording's clock. What an LWP did follows without gaps from the first that
/// is known of it to its end, also what a user thread did off LWPs; parts may be empty.
pub trait Fold {
    /// An LWP did one thing for a time.
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64);

    /// What `lwp` did since the last such call, it did for this user thread; or for none, or nobody knows.
    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>);

    /// A user thread that no LWP ran did one thing for a time.
    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64);

    /// An LWP has ended, or the recording has.
    fn lwp_ends(&mut self, lwp: &Lwp);

    /// A user thread has ended, or the recording has.
    fn user_thread_ends(&mut self, thread: &UserThread);
}

/// Nobody is told.
impl Fold for () {
    fn lwp(&mut self, _: &Lwp, _: Doing, _: i64, _: i64) {}
    fn ran(&mut self, _: &Lwp, _: Option<&UserThread>) {}
    fn user_thread(&mut self, _: &UserThread, _: Doing, _: i64, _: i64) {}
    fn lwp_ends(&mut self, _: &Lwp) {}
    fn user_thread_ends(&mut self, _: &UserThread) {}
}
