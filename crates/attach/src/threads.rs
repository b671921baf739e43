//! Which threads of a process can be borrowed: those that sleep in a system call that can be interrupted
//! without effect, and hold no lock of the C library's.
//!
//! A thread that waits for a lock is not borrowed: it may hold another one that the call needs. glibc's locks
//! wait by `FUTEX_WAIT`; condition variables, `pthread_join`, and what Rust's library parks threads with use
//! `FUTEX_WAIT_BITSET`.

use std::fs;
use std::os::fd::BorrowedFd;

use tracewing_proc::{Forbidden, Sleeping};
use tracewing_units::{Pid, Tid};

use crate::reads::can_be_interrupted;

/// A thread that may be borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub rank: Rank,
    pub tid: Tid,
    /// The call in which it sleeps.
    pub call: Sleeping,
}

/// How much speaks for a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// The kernel repeats its call with all that it has.
    Kernel,
    /// It waits for another thread.
    Futex,
    /// It waits for events with a time-out, of which the rest has to be computed.
    TimedEvents,
}

/// A process's threads; `None` where it has ended.
pub(crate) fn threads(pid: Pid) -> Option<Vec<Tid>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(tasks.flatten().filter_map(|task| task.file_name().to_str()?.parse().ok()).collect())
}

/// Those of them that can be borrowed at this moment, the best first.
///
/// # Errors
/// The process may not be looked into.
pub(crate) fn candidates(
    pid: Pid,
    pidfd: BorrowedFd<'_>,
    threads: &[Tid],
) -> Result<Vec<Candidate>, Forbidden> {
    let mut candidates = Vec::new();
    for &tid in threads {
        let Some(call) = Sleeping::of(pid, tid)? else { continue };
        if let Some(rank) = rank(pid, &call, pidfd) {
            candidates.push(Candidate { rank, tid, call });
        }
    }
    candidates.sort_unstable_by_key(|one| (one.rank, one.tid));
    Ok(candidates)
}

/// Whether, and how well, a thread can be borrowed that sleeps in this call.
pub(crate) fn rank(pid: Pid, call: &Sleeping, pidfd: BorrowedFd<'_>) -> Option<Rank> {
    let [first, second, third, fourth, ..] = call.arguments;
    match call.number {
        libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_select
        | libc::SYS_pselect6
        | libc::SYS_nanosleep
        | libc::SYS_clock_nanosleep
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_pause
        | libc::SYS_restart_syscall => Some(Rank::Kernel),
        // They return what has come so far.
        libc::SYS_recvfrom if fourth as i32 & libc::MSG_WAITALL != 0 => None,
        libc::SYS_recvmsg if third as i32 & libc::MSG_WAITALL != 0 => None,
        libc::SYS_read | libc::SYS_recvfrom | libc::SYS_recvmsg | libc::SYS_accept | libc::SYS_accept4 => {
            can_be_interrupted(pid, pidfd, first as i32).then_some(Rank::Kernel)
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
            Some(if (fourth as i32) < 0 { Rank::Kernel } else { Rank::TimedEvents })
        }
        libc::SYS_rt_sigtimedwait if third == 0 => Some(Rank::Kernel),
        libc::SYS_futex => {
            (second as i32 & libc::FUTEX_CMD_MASK == libc::FUTEX_WAIT_BITSET).then_some(Rank::Futex)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{PidfdFlags, getpid, pidfd_open};
    use std::os::fd::AsFd;

    fn of(number: i64, arguments: [u64; 6]) -> Option<Rank> {
        let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
        let call = Sleeping { number, arguments, stack_pointer: 0, returns_to: 0 };
        rank(Pid(getpid().as_raw_nonzero().get()), &call, pidfd.as_fd())
    }

    #[test]
    fn threads_that_wait_for_locks_are_not_borrowed() {
        let wait = |operation: i32| of(libc::SYS_futex, [0, operation as u64, 0, 0, 0, 0]);
        assert_eq!(wait(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG), None);
        assert_eq!(wait(libc::FUTEX_LOCK_PI), None);
        assert_eq!(
            wait(libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME),
            Some(Rank::Futex)
        );
    }

    #[test]
    fn calls_that_cannot_be_repeated_are_left_alone() {
        assert_eq!(of(libc::SYS_write, [0; 6]), None);
        assert_eq!(of(libc::SYS_semtimedop, [0; 6]), None);
        assert_eq!(of(libc::SYS_recvfrom, [0, 0, 1, libc::MSG_WAITALL as u64, 0, 0]), None);
        assert_eq!(of(libc::SYS_recvmsg, [0, 0, libc::MSG_WAITALL as u64, 0, 0, 0]), None);
        assert_eq!(of(libc::SYS_rt_sigtimedwait, [0, 0, 1, 0, 0, 0]), None);
        assert_eq!(of(libc::SYS_epoll_wait, [0, 0, 0, 10, 0, 0]), Some(Rank::TimedEvents));
        assert_eq!(of(libc::SYS_epoll_wait, [0, 0, 0, u64::from(u32::MAX), 0, 0]), Some(Rank::Kernel));
    }
}
