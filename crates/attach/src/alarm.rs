//! Ends a wait for a tracee, which has no time-out of its own (`waitpid(2)`).

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr::{null, null_mut};
use std::sync::Once;
use std::time::Duration;

/// Time between two signals once the first has come: one that came just before the wait ended nothing.
const AGAIN: libc::c_long = 10_000_000;

/// Signals to the calling thread, again and again from a moment on until it is dropped: a system call that
/// waits fails (`EINTR`).
pub(crate) struct Alarm(libc::timer_t);

impl Alarm {
    /// # Errors
    /// The system has no timers left.
    pub(crate) fn after(time: Duration) -> io::Result<Self> {
        let signal = signal();
        accept(signal);
        // SAFETY: all-zero is a valid event; the kernel reads it during the call, and gives the timer a
        // number.
        let timer = unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = MaybeUninit::uninit();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            Self(timer.assume_init())
        };
        let first = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            // Zero would be no alarm.
            tv_nsec: libc::c_long::from(time.subsec_nanos().max(1)),
        };
        let times =
            libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: AGAIN }, it_value: first };
        // SAFETY: a timer of this thread's, and times that live through the call.
        let is_set = unsafe { libc::timer_settime(timer.0, 0, &raw const times, null_mut()) == 0 };
        if is_set { Ok(timer) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: made above, and deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// One that programs have no use for.
fn signal() -> libc::c_int {
    libc::SIGRTMAX() - 2
}

/// Has a signal do nothing but end the calling thread's waits.
fn accept(signal: libc::c_int) {
    extern "C" fn nothing(_: libc::c_int) {}
    static ONCE: Once = Once::new();
    // SAFETY: the handler does nothing; sets and actions are initialised, and live through the calls. No flag
    // has calls repeated.
    unsafe {
        ONCE.call_once(|| {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = nothing as *const () as libc::sighandler_t;
            libc::sigaction(signal, &raw const action, null_mut());
        });
        let mut set: libc::sigset_t = zeroed();
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, null::<libc::sigset_t>().cast_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends() {
        let _alarm = Alarm::after(Duration::from_millis(1)).unwrap();
        // SAFETY: it returns when a signal was handled.
        assert_eq!(unsafe { libc::pause() }, -1);
    }
}
