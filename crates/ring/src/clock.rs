//! Reads the clock of a recording.
//!
//! `rdtsc` may execute before older instructions have, so a stamp can precede the cause of its event by up to
//! 0.7 µs across CPUs (measured). Event classes that mean "has been received" therefore pay for an `lfence`
//! before it.

use tracewing_abi::region::Clock;

/// The time stamp counter, cycles; later than every load that the thread has done so far.
#[cfg(all(target_arch = "x86_64", not(loom)))]
#[inline]
pub(crate) fn tsc_ordered() -> u64 {
    // SAFETY: both instructions are part of every x86-64 processor that Linux runs on, and touch no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// Current time of `clock`, in its unit; later than every load that the thread has done so far.
#[inline]
pub(crate) fn now_ordered(clock: Clock) -> u64 {
    match clock {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        Clock::Tsc => tsc_ordered(),
        #[cfg(loom)]
        Clock::Tsc => counter(),
        #[cfg(all(not(loom), not(target_arch = "x86_64")))]
        Clock::Tsc => monotonic(),
        Clock::Monotonic => monotonic(),
    }
}

/// Current time of `clock`, in its unit; not earlier than what the same CPU has done to shared words.
#[inline]
pub(crate) fn now(clock: Clock) -> u64 {
    match clock {
        #[cfg(all(target_arch = "x86_64", not(loom)))]
        // SAFETY: every x86-64 processor has the instruction, and Linux leaves it to user space.
        Clock::Tsc => unsafe { core::arch::x86_64::_rdtsc() },
        _ => now_ordered(clock),
    }
}

/// A clock for the model checker: every reading advances it, and no reading is earlier than one before it on
/// any thread.
#[cfg(loom)]
fn monotonic() -> u64 {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static CLOCK: AtomicU64 = AtomicU64::new(1);
    CLOCK.fetch_add(1, Relaxed)
}

/// A clock that behaves as processors do: a reading is later than another one only if it happened after it.
#[cfg(loom)]
fn counter() -> u64 {
    use crate::sync::{AtomicU64, Ordering::Relaxed};
    loom::lazy_static! {
        static ref COUNTER: AtomicU64 = AtomicU64::new(1);
    }
    let now = COUNTER.load(Relaxed);
    COUNTER.fetch_add(1, Relaxed);
    now
}

/// Whether `clock` exists where the program runs: without Linux there is no monotonic clock.
#[cfg(not(loom))]
pub(crate) fn exists(clock: Clock) -> bool {
    cfg!(target_os = "linux") || clock == Clock::Tsc
}

/// No region has this clock: see [`exists`].
#[cfg(not(any(loom, target_os = "linux")))]
fn monotonic() -> u64 {
    0
}

/// `CLOCK_MONOTONIC`, nanoseconds. The vDSO answers without a system call wherever Linux' clock source
/// allows.
#[cfg(all(not(loom), target_os = "linux"))]
fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec to write to; the clock exists on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
