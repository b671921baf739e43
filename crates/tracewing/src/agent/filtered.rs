//! Notices filters for system calls (seccomp) that the program installs: `prctl` and `syscall` are defined
//! here and interpose the C library's. The agent's threads make calls for which a filter may end the process,
//! and they cannot ask whether there is one: the question is such a call, too.
//!
//! - A filter for all threads (`SECCOMP_FILTER_FLAG_TSYNC`) is installed while no agent thread acts, which
//!   may delay it until such a thread has finished; afterwards they end instead of acting (`threads`).
//! - After any filter the agent starts no threads in forked children, and does not describe classes of
//!   libraries that are loaded: the calling thread may be the one that is filtered.
//!
//! The recorder looks for filters, too (its `seccomp.rs`). That protects programs that make the system call
//! themselves.
//!
//! `prctl` also notes the names that threads give themselves (`names`).

use core::sync::atomic::{AtomicBool, Ordering::*};

use tracewing_ring::thread;

use super::system::{self, Fd};
use super::{socket, threads};

/// Whether a filter was installed, or is being installed, by this process or by one that it was forked from.
static IS_NOTICED: AtomicBool = AtomicBool::new(false);
/// Whether system calls by the calling thread, or by new ones, may be the end of the process.
fn is_noticed() -> bool {
    IS_NOTICED.load(Relaxed) // set by this thread, or by one whose filter does not concern this one
}

/// Whether the agent is to make no system calls: the recorder, or the program, says that a filter may mind.
pub(super) fn is_alone() -> bool {
    threads::IS_ALONE.load(Relaxed) || is_noticed()
}

/// The number of a thread's filters, from its `status`; `None` if that does not contain it. Kernels before
/// 5.9 only report whether there are any: then the number is the maximum.
pub(super) fn count(status: &[u8]) -> Option<u32> {
    let number = |name: &[u8]| {
        let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(name))?;
        core::str::from_utf8(line).ok()?.trim().parse::<u32>().ok()
    };
    match number(b"Seccomp:")? {
        0 => Some(0),
        _ => Some(number(b"Seccomp_filters:").unwrap_or(u32::MAX)),
    }
}

/// Says of the thread that has made it whether it has got filters since, without a system call but `read`,
/// which every filter allows.
pub(super) struct Witness {
    /// Read when that is asked.
    status: Fd,
    filters: u32,
}

/// Bytes of a status that are read: `Seccomp` comes after lists of groups.
const STATUS: usize = 8192;

impl Witness {
    /// `None` if the kernel does not report it.
    pub(super) fn new() -> Option<Self> {
        const PATH: &core::ffi::CStr = c"/proc/thread-self/status";
        let mut status = vec![0; STATUS];
        let len = system::read_file(PATH, &mut status)?;
        let filters = count(&status[..len])?;
        Some(Self { status: system::out_of_the_way(system::open(PATH)?), filters })
    }

    pub(super) fn file(&self) -> &Fd {
        &self.status
    }

    /// Whether there are no more filters than at first.
    pub(super) fn sees_none(&self) -> bool {
        let mut status = vec![0; STATUS];
        let len = socket::read(&self.status, &mut status);
        count(&status[..len]).is_some_and(|filters| filters <= self.filters && filters < u32::MAX)
    }
}

/// Says that a filter comes, and waits until it can. `false` in a child that runs on its parent's memory: the
/// filter is not the parent's.
fn note(is_of_all: bool) -> bool {
    if thread::with(|mark| mark.shared.load(Relaxed)) != 0 {
        return false;
    }
    IS_NOTICED.store(true, Relaxed); // for this thread, and for children that it forks
    if is_of_all {
        threads::expect_filter();
    }
    true
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
pub use calls::{noticed_prctl, noticed_syscall};

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod calls {
    //! The C library's functions.

    use core::arch::{asm, global_asm, naked_asm};
    use core::ffi::{c_int, c_long, c_ulong, c_void};
    use core::sync::atomic::Ordering::*;

    use super::super::names;
    use super::super::threads::{INSTALLED, OF_ALL};
    use super::{IS_NOTICED, note};

    /// `prctl(2)` of the C library. Its last parameters are variadic there; passing all of them is the same
    /// call.
    ///
    /// # Safety
    /// As for the C library's.
    pub unsafe extern "C" fn noticed_prctl(
        option: c_int,
        second: c_ulong,
        third: c_ulong,
        fourth: c_ulong,
        fifth: c_ulong,
    ) -> c_int {
        let arguments = [option as c_ulong, second, third, fourth, fifth];
        let is_filter = option == libc::PR_SET_SECCOMP;
        // SAFETY: the caller's.
        let call = || unsafe { system_call(libc::SYS_prctl, arguments) };
        let result = if is_filter { noted(false, call) } else { call() };
        if result < 0 {
            // SAFETY: the calling thread's errno.
            unsafe { *libc::__errno_location() = -result as c_int };
            return -1;
        }
        if option == libc::PR_SET_NAME {
            // SAFETY: a name, which the kernel has read.
            unsafe { names::note(second as *const u8) };
        }
        result as c_int
    }

    /// `syscall(2)` of the C library. It has no frame: what returns twice, or on another stack, does so as
    /// from there.
    ///
    /// # Safety
    /// As for the C library's.
    #[unsafe(naked)]
    pub unsafe extern "C" fn noticed_syscall() -> c_long {
        naked_asm!(
            "cmp rdi, {SECCOMP}",
            "je 4f",
            "cmp rdi, {PRCTL}",
            "je 5f",
            // Any other call: the C library's own code, with its error in `errno`.
            "2: mov rax, rdi",
            "mov rdi, rsi",
            "mov rsi, rdx",
            "mov rdx, rcx",
            "mov r10, r8",
            "mov r8, r9",
            "mov r9, qword ptr [rsp + 8]",
            "syscall",
            "cmp rax, -4095",
            "jae 3f",
            "ret",
            "3: neg eax",
            "push rax", // also aligns the stack
            "call __errno_location@PLT",
            "pop rcx",
            "mov dword ptr [rax], ecx",
            "mov rax, -1",
            "ret",
            // `seccomp`: only an operation that installs a filter concerns the agent.
            "4: test rcx, rcx", // a program asks which flags the kernel knows
            "jz 2b",
            "cmp esi, {FILTER}",
            "ja 2b",
            "mov edi, esi",
            "mov rsi, rdx",
            "mov rdx, rcx",
            "sub rsp, 8",
            "call {seccomp}",
            "add rsp, 8",
            "cmp rax, -4095",
            "jae 3b",
            "ret",
            // `prctl`: the wrapper decides; it sets `errno` itself.
            "5: mov edi, esi",
            "mov rsi, rdx",
            "mov rdx, rcx",
            "mov rcx, r8",
            "mov r8, r9",
            "sub rsp, 8",
            "call {prctl}",
            "add rsp, 8",
            "cdqe",
            "ret",
            SECCOMP = const libc::SYS_seccomp,
            PRCTL = const libc::SYS_prctl,
            FILTER = const libc::SECCOMP_SET_MODE_FILTER,
            seccomp = sym seccomp,
            prctl = sym noticed_prctl,
        )
    }

    /// Gives what the kernel does.
    ///
    /// # Safety
    /// As for `seccomp(2)`.
    unsafe extern "C" fn seccomp(operation: c_ulong, flags: c_ulong, arguments: *const c_void) -> c_long {
        let arguments = [operation, flags, arguments as c_ulong, 0, 0];
        // SAFETY: the caller's.
        noted(flags & libc::SECCOMP_FILTER_FLAG_TSYNC != 0, || unsafe {
            system_call(libc::SYS_seccomp, arguments)
        })
    }

    /// Installs a filter. One that is refused is none.
    fn noted(is_of_all: bool, install: impl FnOnce() -> c_long) -> c_long {
        let before = (IS_NOTICED.load(Relaxed), OF_ALL.load(Relaxed));
        let is_noted = note(is_of_all);
        let result = install();
        // With `SECCOMP_FILTER_FLAG_TSYNC` a refusal can be the id of a thread.
        if is_noted && (result < 0 || is_of_all && result > 0) {
            IS_NOTICED.store(before.0, Relaxed);
            OF_ALL.store(before.1, Relaxed);
        } else if is_noted && is_of_all {
            OF_ALL.store(INSTALLED, Relaxed);
        }
        result
    }

    /// A system call, and what the kernel gives.
    ///
    /// # Safety
    /// As for the call.
    unsafe fn system_call(number: c_long, arguments: [c_ulong; 5]) -> c_long {
        let [first, second, third, fourth, fifth] = arguments;
        let result;
        // SAFETY: the caller's; the kernel preserves all other registers.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") number => result,
                in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth,
                lateout("rcx") _, lateout("r11") _,
                options(nostack),
            );
        }
        result
    }

    // Weak, for the same reasons as in `vfork`.
    global_asm!(
        ".weak prctl",
        ".type prctl, @function",
        ".set prctl, {prctl}",
        ".weak syscall",
        ".type syscall, @function",
        ".set syscall, {syscall}",
        prctl = sym noticed_prctl,
        syscall = sym noticed_syscall,
    );
}
