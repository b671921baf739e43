//! Filters for system calls (seccomp): which programs have some that are not the recorder's. Their threads
//! write events as others do, without system calls; but what the agent's thread would do for the recorder may
//! be what the filter ends the program for.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tracewing_proc::Status;
use tracewing_units::Pid;

/// How many filters this process has given to what it records.
static INHERITED: AtomicU32 = AtomicU32::new(0);

/// How many filters this process has. A command that it is about to start has them, too; other programs do
/// not.
pub(crate) fn hand_down() -> u32 {
    let own = Status::own().map_or(0, |status| status.filters());
    INHERITED.store(own, Relaxed); // a number; threads that look earlier take what a command does for a filter's
    own
}

/// How many filters programs have of this process; none if it has not started a command.
pub(crate) fn inherited() -> u32 {
    INHERITED.load(Relaxed) // with `hand_down`
}

/// What the agent calls its threads.
const AGENT: &[u8] = b"tracewing";

/// Whether what this recorder has a process do is watched by more filters than it has of this process, or
/// than were `looked_at`. Filters are of threads: those of the agent's count, which do it, or where there are
/// none, those of all threads.
pub(crate) fn is_filtered(pid: Pid, looked_at: u32) -> bool {
    let known = inherited().max(looked_at);
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let tasks: Vec<_> = tasks.flatten().map(|task| task.path()).collect();
    let is_agents =
        |task: &&PathBuf| fs::read(task.join("comm")).is_ok_and(|name| name.trim_ascii_end() == AGENT);
    let agents: Vec<_> = tasks.iter().filter(is_agents).collect();
    let all = if agents.is_empty() { tasks.iter().collect() } else { agents };
    all.into_iter()
        .filter_map(|task| Status::read(task.join("status")))
        .any(|status| status.filters() > known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A filter that allows everything, for the calling thread.
    fn filter() {
        let give = (libc::BPF_RET | libc::BPF_K) as u16;
        let mut allow = libc::sock_filter { code: give, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
        let program = libc::sock_fprog { len: 1, filter: &raw mut allow };
        // SAFETY: numbers, and a program that is complete.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
        };
        assert_eq!(installed, 0);
    }

    #[test]
    fn filters_of_threads_are_seen_whatever_their_names() {
        let pid = Pid::from_unsigned(std::process::id());
        assert!(!is_filtered(pid, 0));
        for name in ["plain".as_bytes(), b"M\xfcller"] {
            let seen = std::thread::spawn(move || {
                fs::write("/proc/thread-self/comm", name).unwrap();
                filter();
                is_filtered(pid, 0) && !is_filtered(pid, 1)
            });
            assert!(seen.join().unwrap(), "{name:?}");
        }
    }
}
