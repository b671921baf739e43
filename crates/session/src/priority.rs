//! The recorder's share of the CPUs. It has little to do, but has to do it in time: among a hundred programs
//! that want to run, an ordinary thread gets its turn after seconds, when the kernel's buffers have long
//! overflowed.
//!
//! Measured on two CPUs with a hundred `dd bs=1` (100 runnable threads, two to four million kernel events a
//! second, the default buffers): 90 % of the events are lost by a recorder like any other, 0.3 % by one with
//! the nice value -20, whose thread can still wait 0.2 s, none under the lowest real-time priority. What a
//! recorder does between two waits is bounded, so it does not keep others from running. That is not so of
//! reaping the command: the kernel was seen to take 0.94 s of CPU time for that. It is done when the priority
//! was given back.

/// Lowest priority of the policy `SCHED_RR`, above all ordinary threads.
const REAL_TIME: i32 = 1;
/// Highest priority of an ordinary thread (`setpriority(2)`).
const NICEST: i32 = -20;

/// The calling thread's priority, raised while this lives.
pub(crate) enum Priority {
    RealTime,
    Nice { before: i32 },
}

impl Priority {
    /// Raises it as far as this process may (`CAP_SYS_NICE`, `RLIMIT_RTPRIO`, `RLIMIT_NICE`); not that of a
    /// thread that was given a policy. The recorded command has to be forked before, or would
    /// inherit it.
    pub(crate) fn raise() -> Option<Self> {
        // SAFETY: a plain system call.
        if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
            return None;
        }
        if set_policy(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, REAL_TIME) {
            return Some(Self::RealTime);
        }
        // Linux takes no process for the calling thread.
        let before = rustix::process::getpriority_process(None).ok()?;
        rustix::process::setpriority_process(None, NICEST).ok()?;
        Some(Self::Nice { before })
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        match *self {
            Self::RealTime => {
                set_policy(libc::SCHED_OTHER, 0);
            }
            Self::Nice { before } => {
                let _ = rustix::process::setpriority_process(None, before);
            }
        }
    }
}

fn set_policy(policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters live through the call, which concerns the calling thread only.
    unsafe { libc::sched_setscheduler(0, policy, &parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_priority_is_given_back() {
        // SAFETY: a plain system call.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = (policy(), nice());
        match Priority::raise() {
            None => {
                return tracewing_testing::skip(
                    tracewing_testing::Cause::Root,
                    "not allowed to raise a priority",
                );
            }
            Some(_raised) => assert_ne!((policy(), nice()), before),
        }
        assert_eq!((policy(), nice()), before);
    }
}
