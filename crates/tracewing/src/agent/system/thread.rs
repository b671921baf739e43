//! Threads: their numbers, names and states.

use core::ffi::CStr;
use core::mem::MaybeUninit;

use tracewing_units::{Pid, Tid};

use super::fd::read_file;
use super::{Fd, errno};

/// The calling thread's id, from the kernel.
pub(in super::super) fn thread_id() -> Tid {
    // SAFETY: no arguments, cannot fail.
    Tid(unsafe { libc::syscall(libc::SYS_gettid) as i32 })
}

/// The process id, from the kernel.
pub(in super::super) fn process_id() -> Pid {
    // SAFETY: no arguments, cannot fail.
    Pid(unsafe { libc::syscall(libc::SYS_getpid) as i32 })
}

/// The name of the process's first thread, as `ps` shows it: at most 15 bytes, and zeroes; all zeroes if it
/// is unknown.
pub(in super::super) fn first_thread_name() -> [u8; 16] {
    let mut name = [0u8; 16];
    if let Some(len) = read_file(c"/proc/self/comm", &mut name) {
        name[len.saturating_sub(1)..].fill(0); // the newline
    }
    name
}

/// Names a thread of this process; an error's number, or 0.
pub(in super::super) fn name_thread(tid: Tid, name: &CStr) -> libc::c_int {
    let path = std::ffi::CString::new(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
    // SAFETY: a NUL-terminated path and a number.
    let Some(file) = Fd::new(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) }) else {
        return errno();
    };
    // SAFETY: a string of that size.
    let written = unsafe { libc::write(file.0, name.as_ptr().cast(), name.count_bytes()) };
    if written < 0 { errno() } else { 0 }
}

/// The CPU that the thread runs on, or did a moment ago.
pub(in super::super) fn current_cpu() -> usize {
    // SAFETY: no arguments; -1 if the kernel does not know.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// Whether the thread of this process with this id sleeps; false if there is none.
pub(in super::super) fn is_asleep(tid: Tid) -> bool {
    let mut stat = [0; 64];
    let path = std::ffi::CString::new(format!("/proc/self/task/{tid}/stat")).unwrap_or_default();
    let len = if tid.is_idle() { None } else { read_file(&path, &mut stat) };
    // Its name, in parentheses, comes before its state.
    len.is_some_and(|len| stat[..len].windows(3).any(|part| part == b") S"))
}

/// Whether `/proc` shows a process that has not ended.
pub(in super::super) fn is_process_alive(pid: Pid) -> bool {
    let mut stat = [0; 64];
    let path = std::ffi::CString::new(format!("/proc/{pid}/stat")).unwrap_or_default();
    read_file(&path, &mut stat).is_some_and(|len| !stat[..len].windows(3).any(|part| part == b") Z"))
}

/// Ends the calling thread, and nothing else: no destructor, no memory given back, no other system call.
pub(in super::super) fn end_thread() -> ! {
    loop {
        // SAFETY: ends the thread, whose stack stays mapped.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}

/// Blocks all signals of the calling thread.
pub(in super::super) fn block_signals() {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised by the first call.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), core::ptr::null_mut());
    }
}

/// Blocks all signals of the calling thread while `body` runs.
pub(in super::super) fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: the sets are initialised by the calls that take them.
    unsafe {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let result = body();
        libc::sigprocmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut());
        result
    }
}

/// Starts a detached thread with the calling thread's signal mask; returns whether it could. Not one of the
/// standard library's, which would give it a stack for signal handlers and panic if the kernel refuses that.
/// Without memory of this crate's: also for a thread that a recorder has borrowed, which blocks all signals.
pub(in super::super) fn spawn(
    stack: usize,
    run: extern "C" fn(*mut libc::c_void) -> *mut libc::c_void,
    argument: *mut libc::c_void,
) -> bool {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialised first; `run` takes the argument if the thread is made.
    let result = unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack);
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let result = libc::pthread_create(thread.as_mut_ptr(), attributes.as_ptr(), run, argument);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        result
    };
    result == 0
}
