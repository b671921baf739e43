//! The system calls that a program makes to be attached to, and while it is recorded: by the borrowed thread,
//! and by the agent's threads. A filter that does not let one of them through keeps the recorder away.

use tracewing_attach::SystemCall;

/// All of them. A test runs a program under a filter that allows no others.
pub(super) static ALL: [SystemCall; CALLS.len() + 2] = {
    let mut all = [CLONE3; CALLS.len() + 2];
    let mut at = 0;
    while at < CALLS.len() {
        let (name, number) = CALLS[at];
        all[at + 1] = SystemCall { name, number, arguments: [0; 6], without: None };
        at += 1;
    }
    // The C library looks whether the kernel has it, and does without.
    all[CALLS.len() + 1] = SOCKETS;
    all
};

/// The names of all that a filter may refuse.
pub(crate) fn names() -> Vec<&'static str> {
    ALL.iter().flat_map(|call| [Some(call), call.without]).flatten().map(|call| call.name).collect()
}

/// Flags of a thread in glibc's `pthread_create`: filters look at them.
const THREAD: u64 = (libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SETTLS
    | libc::CLONE_PARENT_SETTID
    | libc::CLONE_CHILD_CLEARTID) as u64;

static CLONE: SystemCall =
    SystemCall { name: "clone", number: libc::SYS_clone, arguments: [THREAD, 0, 0, 0, 0, 0], without: None };
const CLONE3: SystemCall =
    SystemCall { name: "clone3", number: libc::SYS_clone3, arguments: [0; 6], without: Some(&CLONE) };
const SOCKETS: SystemCall = SystemCall {
    name: "socketpair",
    number: libc::SYS_socketpair,
    arguments: [libc::AF_UNIX as u64, (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC) as u64, 0, 0, 0, 0],
    without: None,
};

const CALLS: [(&str, i64); 33] = [
    ("clock_nanosleep", libc::SYS_clock_nanosleep),
    ("close", libc::SYS_close),
    ("exit", libc::SYS_exit),
    ("fcntl", libc::SYS_fcntl),
    ("flock", libc::SYS_flock),
    ("fstat", libc::SYS_fstat),
    ("ftruncate", libc::SYS_ftruncate),
    ("futex", libc::SYS_futex),
    ("getpid", libc::SYS_getpid),
    ("getrandom", libc::SYS_getrandom),
    ("gettid", libc::SYS_gettid),
    ("madvise", libc::SYS_madvise),
    ("membarrier", libc::SYS_membarrier),
    ("memfd_create", libc::SYS_memfd_create),
    ("mmap", libc::SYS_mmap),
    ("mprotect", libc::SYS_mprotect),
    ("munmap", libc::SYS_munmap),
    ("newfstatat", libc::SYS_newfstatat),
    ("openat", libc::SYS_openat),
    ("pipe2", libc::SYS_pipe2),
    ("prctl", libc::SYS_prctl),
    ("pwrite64", libc::SYS_pwrite64),
    ("read", libc::SYS_read),
    ("recvfrom", libc::SYS_recvfrom),
    ("recvmsg", libc::SYS_recvmsg),
    ("rseq", libc::SYS_rseq),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
    ("sched_yield", libc::SYS_sched_yield),
    ("sendmsg", libc::SYS_sendmsg),
    ("sendto", libc::SYS_sendto),
    ("set_robust_list", libc::SYS_set_robust_list),
    ("setsockopt", libc::SYS_setsockopt),
    ("write", libc::SYS_write),
];
