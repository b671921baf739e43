//! The clocks by which kernel events can be stamped, the same that user events use.

use rustix::time::{ClockId, clock_gettime};
use tracewing_units::Cycles;

/// A clock of the kernel's tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelClock {
    /// The processor's time stamp counter, in its cycles (x86 only).
    X86Tsc,
    /// `CLOCK_MONOTONIC`, in ns.
    Mono,
}

impl KernelClock {
    /// Its name in `trace_clock`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86Tsc => "x86-tsc",
            Self::Mono => "mono",
        }
    }

    /// The current stamp, as the kernel would give it to an event.
    pub fn now(self) -> Cycles {
        Cycles(match self {
            Self::X86Tsc => tsc(),
            Self::Mono => {
                let now = clock_gettime(ClockId::Monotonic);
                now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
            }
        })
    }
}

#[cfg(target_arch = "x86_64")]
fn tsc() -> u64 {
    // SAFETY: `lfence` is part of SSE2 and `rdtsc` of every x86-64 processor; neither touches memory. A
    // system that forbids RDTSC to programs (CR4.TSD) ends the process with a signal, as it does for every
    // reader of this clock.
    unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    }
}

/// Never called: the kernel offers this clock on x86-64 only, so setting it has already failed.
#[cfg(not(target_arch = "x86_64"))]
fn tsc() -> u64 {
    0
}
