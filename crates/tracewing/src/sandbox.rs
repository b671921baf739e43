//! What a program says before it puts itself into a sandbox that takes the clock away.

use crate::agent;

/// The calling thread writes no events from now on; enabled ones are counted as lost. Call it before
/// `prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)`, or `PR_SET_TSC` with `PR_TSC_SIGSEGV`: both disable the
/// instruction that reads the clock, so that the next event would end the program.
///
/// It is not needed before a seccomp filter (`SECCOMP_MODE_FILTER`): events make no system call, a thread's
/// first one included.
///
/// The agent's threads end, so that the calling thread can be the program's only one, as the strict mode
/// requires. Changes of what is recorded no longer reach the process then. This cannot be undone. Other
/// threads are still recorded; with protocol `Smp` their events cost more from now on.
pub fn before_sandbox() {
    agent::silence();
}
