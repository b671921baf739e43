//! Scheduling while a thread is stopped: its program waits for it, so the thread and its tracer should run as
//! soon as possible.
//!
//! The tracer sleeps until its tracee stops, and between two checks of it. If it did not sleep, it would keep
//! the tracee from running, which is often woken on the same CPU.

use std::mem::size_of;

use tracewing_units::Tid;

/// Lowest priority of the policy `SCHED_RR`, above all ordinary threads.
const REAL_TIME: libc::c_int = 1;
/// What these system calls take for the calling thread.
const CALLING: Tid = Tid(0);
/// Time after which an ordinary thread has had its turn, ns: the shorter, the sooner it gets one, the less of
/// the CPU it takes at once; its share stays (`sched_setattr(2)`, `sched_runtime`; Linux since 6.12).
const SLICE: u64 = 100_000;

/// Has the calling thread, which does nothing but trace, run as soon as it can, as far as it may
/// (`CAP_SYS_NICE`, `RLIMIT_RTPRIO`).
pub(crate) fn hurry() {
    // SAFETY: concerns the calling thread's sleeps only: they last no longer than they are asked to.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let parameters = libc::sched_param { sched_priority: REAL_TIME };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters live through the call, which concerns the calling thread only.
    let is_real_time = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } == 0;
    if !is_real_time {
        // The thread ends when it has traced.
        Turn::short(CALLING).into_iter().for_each(std::mem::forget);
    }
}

/// A thread's turns are short as long as this lives. If the recorder is killed they stay so, which changes
/// nothing but how often the thread is switched.
pub(crate) struct Turn {
    tid: Tid,
    before: libc::sched_attr,
}

impl Turn {
    /// `None` where the kernel knows no such thing, or the thread has a policy of its own.
    pub(crate) fn short(tid: Tid) -> Option<Self> {
        let before = attributes(tid)?;
        let is_ordinary = before.sched_policy == libc::SCHED_OTHER as u32;
        if !is_ordinary || before.sched_runtime <= SLICE {
            return None;
        }
        set(tid, libc::sched_attr { sched_runtime: SLICE, ..before }).then_some(Self { tid, before })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        set(self.tid, self.before);
    }
}

fn attributes(tid: Tid) -> Option<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: all-zero is a valid `sched_attr`.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes to it.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, tid.0, &raw mut attributes, size, 0) };
    (got == 0).then_some(attributes)
}

fn set(tid: Tid, attributes: libc::sched_attr) -> bool {
    let size = size_of::<libc::sched_attr>() as u32;
    let attributes = libc::sched_attr { size, ..attributes };
    // SAFETY: the attributes live through the call.
    unsafe { libc::syscall(libc::SYS_sched_setattr, tid.0, &raw const attributes, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_slices_are_restored_afterwards() {
        let slice = || attributes(CALLING).unwrap().sched_runtime;
        let before = slice();
        match Turn::short(CALLING) {
            // Linux before 6.12, or a policy of the test's.
            None => {}
            Some(_turn) => assert_eq!(slice(), SLICE),
        }
        assert_eq!(slice(), before);
    }
}
