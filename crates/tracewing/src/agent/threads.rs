//! The agent's threads: how they begin and end, and what they do about filters for system calls that the
//! program installs for all threads (`filtered`).
//!
//! Such a filter is installed while no agent thread acts: a thread that waits for a recorder is in `read`, or
//! does not act. Afterwards they end instead of acting.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

use tracewing_units::Tid;

use super::{identity, system};

/// What they are called, by which recorders know them.
const NAME: &CStr = c"tracewing";

/// Bytes of a thread's stack.
pub(super) const STACK: usize = 256 << 10;

/// How many there are.
pub(super) static THREADS: AtomicU32 = AtomicU32::new(0);
/// The thread that was started last, once it is about to sleep; 0 before that.
static ASLEEP: AtomicI32 = AtomicI32::new(0);
/// Whether the process is to be left alone.
pub(super) static IS_ALONE: AtomicBool = AtomicBool::new(false);

/// Whether there is a filter for all threads that no recorder has looked at: [`NONE`], [`INSTALLED`], or
/// [`INSTALLING`].
pub(super) static OF_ALL: AtomicU32 = AtomicU32::new(NONE);
const NONE: u32 = 0;
pub(super) const INSTALLED: u32 = 1;
pub(super) const INSTALLING: u32 = 2;
/// Threads that do not wait for a recorder.
static ACTING: AtomicU32 = AtomicU32::new(0);

/// Those of them that are in other calls than `read`, or about to enter them.
static CALLING: AtomicU32 = AtomicU32::new(0);

/// Time for a thread to enter a system call: some nanoseconds, unless it is interrupted.
const ENTERED: Duration = Duration::from_millis(1);

/// How long a filter waits at most for what they have begun: well above the milliseconds that it takes on a
/// machine that has other work, too.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a thread may take until it sleeps.
const START: Duration = Duration::from_millis(100);

/// Starts one; returns whether it could.
pub(super) fn start(body: impl FnOnce() + Send + 'static) -> bool {
    THREADS.fetch_add(1, Relaxed);
    ASLEEP.store(0, Relaxed);
    begin_acting();
    let body = move || {
        body();
        THREADS.fetch_sub(1, Release); // with `reach::end`
        end_acting();
    };
    let is_started = spawn(STACK, Box::new(body));
    if !is_started {
        THREADS.fetch_sub(1, Relaxed);
        end_acting();
    }
    is_started
}

/// Starts a thread with all signals blocked; returns whether it could.
fn spawn(stack: usize, body: Box<dyn FnOnce() + Send>) -> bool {
    extern "C" fn run(start: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: made below, for this thread alone.
        let body = *unsafe { Box::from_raw(start.cast::<Box<dyn FnOnce() + Send>>()) };
        begin(body);
        core::ptr::null_mut()
    }
    let start = Box::into_raw(Box::new(body));
    let is_started = system::without_signals(|| system::spawn(stack, run, start.cast()));
    if !is_started {
        // SAFETY: no thread has taken it.
        drop(unsafe { Box::from_raw(start) });
    }
    is_started
}

/// The first thing that a thread does.
pub(super) fn begin(body: impl FnOnce()) {
    // SAFETY: a string, for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    identity::verify();
    // The panic has printed its message; the program continues without the thread.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
}

/// The calling thread is about to sleep.
pub(super) fn fall_asleep() {
    ASLEEP.store(system::thread_id().0, Release); // with `wait_until_asleep`
}

/// Waits until the thread that was started last sleeps.
pub(super) fn wait_until_asleep() {
    let begin = Instant::now();
    // Acquire, with `fall_asleep`.
    while !system::is_asleep(Tid(ASLEEP.load(Acquire))) && begin.elapsed() < START {
        std::thread::yield_now();
    }
}

/// Ends the calling thread, which does not act.
pub(super) fn end() -> ! {
    THREADS.fetch_sub(1, Release); // with `reach::end`
    system::end_thread()
}

/// In a forked child, in which there are none.
pub(super) fn forked() {
    THREADS.store(0, Relaxed); // the parent's
    ACTING.store(0, Relaxed); // its only thread
    CALLING.store(0, Relaxed);
}

/// A thread of the agent's is about to be started.
pub(super) fn begin_acting() {
    ACTING.fetch_add(1, SeqCst); // with `expect_filter`
}

/// As [`begin_acting`], for a recorder that has looked at the filters of the calling thread, and found that
/// they let through what the agent does. `false` where one is being installed at this moment.
pub(super) fn begin_vouched() -> bool {
    begin_acting();
    // With `expect_filter`: it finds this thread acting and waits, or this finds that it has begun.
    let is_over = OF_ALL.compare_exchange(INSTALLED, NONE, SeqCst, SeqCst) != Err(INSTALLING);
    if !is_over {
        end_acting();
    }
    is_over
}

/// It has done its work, or is not there.
pub(super) fn end_acting() {
    ACTING.fetch_sub(1, SeqCst); // with `wait`
}

/// Makes a system call that waits for a recorder, on a thread of the agent's; the thread ends here if it may
/// not act any more.
pub(super) fn quietly<R>(call: impl FnOnce() -> R) -> R {
    CALLING.fetch_add(1, Relaxed); // ordered before what follows
    let result = in_read(call);
    CALLING.fetch_sub(1, Relaxed);
    result
}

/// The same for `read`, which every filter allows.
pub(super) fn in_read<R>(call: impl FnOnce() -> R) -> R {
    end_acting();
    let result = call();
    begin_acting();
    // With `expect_filter`: it finds this thread acting, or this finds the filter.
    if OF_ALL.load(SeqCst) != NONE {
        end_acting();
        end();
    }
    result
}

/// Waits until the agent's threads that were started are idle, but no longer than this: a filter
/// that is not noticed can come next.
pub(super) fn settle(longest: Duration) {
    let begin = Instant::now();
    // With `end_acting`.
    while ACTING.load(SeqCst) != 0 && begin.elapsed() < longest {
        std::thread::yield_now();
    }
}

/// Sleeps, on a thread of the agent's.
pub(super) fn sleep(time: Duration) {
    quietly(|| std::thread::sleep(time));
}

/// Says that a filter for all threads comes, and waits until it can.
pub(super) fn expect_filter() {
    OF_ALL.store(INSTALLING, SeqCst); // with `in_read`
    wait();
}

/// By looking again and again: nothing else is sure to be allowed.
fn wait() {
    let begin = Instant::now();
    let is_acting = || ACTING.load(SeqCst) != 0; // with `end_acting`
    while is_acting() && begin.elapsed() < PATIENCE {
        core::hint::spin_loop();
    }
    // A thread that does not act any more has yet to enter its call.
    let rest = Instant::now();
    while CALLING.load(Relaxed) != 0 && rest.elapsed() < ENTERED {
        core::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::MaybeUninit;
    use std::sync::mpsc::channel;

    fn thread_name() -> [u8; 16] {
        let mut name = [0u8; 16];
        // SAFETY: PR_GET_NAME writes at most 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        name
    }

    #[test]
    fn a_thread_has_its_name_and_no_signals() {
        let (send, receive) = channel();
        let body = move || {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: initialised by the call that takes it.
            let blocked = unsafe {
                libc::pthread_sigmask(libc::SIG_BLOCK, core::ptr::null(), set.as_mut_ptr());
                libc::sigismember(set.as_ptr(), libc::SIGTERM)
            };
            send.send((thread_name(), blocked)).unwrap();
            panic!("on purpose");
        };
        assert!(spawn(256 << 10, Box::new(body)));
        let (name, blocked) = receive.recv().unwrap();
        assert!(name.starts_with(b"tracewing\0") && blocked == 1);
    }

    #[test]
    fn an_impossible_thread_does_no_harm() {
        assert!(!spawn(1 << 46, Box::new(|| ())));
    }
}
