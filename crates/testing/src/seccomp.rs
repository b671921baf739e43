//! Filters for system calls, for programs that demonstrate that they need none.

use std::io;

/// A filter with one result for these system calls, and another for all others.
pub fn filter(listed: &[libc::c_long], of_listed: u32, of_others: u32) -> Vec<libc::sock_filter> {
    let statement = |code: u32, jump_true: u8, jump_false: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt: jump_true,
        jf: jump_false,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let (equal, give) = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::BPF_RET | libc::BPF_K);
    let mut program = vec![statement(load, 0, 0, 0)];
    for number in listed {
        program.push(statement(equal, 0, 1, *number as u32));
        program.push(statement(give, 0, 0, of_listed));
    }
    program.push(statement(give, 0, 0, of_others));
    program
}

/// Makes every system call except these end the process: for the calling thread and the threads that it
/// starts, or for all threads.
///
/// # Panics
/// The filter cannot be installed.
pub fn allow_only(calls: &[libc::c_long], all_threads: bool) {
    let flags = if all_threads { libc::SECCOMP_FILTER_FLAG_TSYNC } else { 0 };
    install(&mut filter(calls, libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS), flags);
}

/// From now on these system calls of all threads fail with this error.
///
/// # Panics
/// The filter cannot be installed.
pub fn fail(calls: &[libc::c_long], error: u32) {
    let mut program = filter(calls, libc::SECCOMP_RET_ERRNO | error, libc::SECCOMP_RET_ALLOW);
    install(&mut program, libc::SECCOMP_FILTER_FLAG_TSYNC);
}

/// From now on no thread, and none that is started, can make new namespaces: `clone` with one of their flags
/// fails with `EPERM`, as by Docker's default profile (docs.docker.com, "Seccomp security profiles").
///
/// # Panics
/// The filter cannot be installed.
pub fn refuse_namespaces() {
    const NAMESPACES: u32 = (libc::CLONE_NEWNS
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWCGROUP) as u32;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // Number, then the lower half of the first argument. Another call goes to the last step but one.
    let mut program = [
        step(0x20, 0, 0, 0),
        step(0x15, 0, 3, libc::SYS_clone as u32),
        step(0x20, 0, 0, 16),
        step(0x54, 0, 0, NAMESPACES),
        step(0x15, 0, 1, 0),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    install(&mut program, libc::SECCOMP_FILTER_FLAG_TSYNC);
}

fn install(program: &mut [libc::sock_filter], flags: libc::c_ulong) {
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: numbers, and a filter that is complete.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter)
    };
    assert_eq!(installed, 0, "{}", io::Error::last_os_error());
}
