//! Protocol `Publish`: an event is written and committed by one restartable sequence.
//!
//! A restartable sequence (rseq(2), Linux 4.18) is a stretch of instructions that the kernel promises to run
//! without preemption, migration or signal delivery in between: if one of these happens, the thread continues
//! at the sequence's abort handler instead. Here the sequence finds the CPU's buffer, reads the clock, writes
//! the event at `head`, and ends with the store of the new `head`. It replaces both the compare-and-swap that
//! reserves space and the add that commits it (Desnoyers and Dagenais, *Lockless Multi-Core …*, section 4;
//! the paper disables preemption for its kernel tracer, this is its user-space form).
//!
//! Why that is enough, interleaving by interleaving (W, V: threads on one CPU, of any processes; R: the
//! reader):
//!
//! 1. W is interrupted anywhere before its last store, and V (or a signal handler of W) writes an event: V
//!    finds the `head` that W found, overwrites what W had written, and commits. W restarts, finds V's
//!    `head`, and writes after it. Nothing of W's first attempt is visible: it lies above every `head` ever
//!    stored.
//! 2. W is killed before its last store: as 1, without the restart.
//! 3. W migrates before its last store: it restarts, and reads the CPU number again.
//! 4. R reads `head` at any time: everything below it was committed, on x86-64 in program order before `head`
//!    itself (R loads `head` with acquire; stores are not reordered with older stores on x86-64, so the plain
//!    store releases).
//! 5. W finds no room in the sub-buffer: it leaves the sequence and opens the next one with [`open`], another
//!    sequence, which starts by checking that `head` is still what W saw. If V was faster, W's check fails,
//!    and W tries again.
//! 6. R has not released the sub-buffer that W is about to open: the event is lost and counted. R releases by
//!    storing `consumed` after its last access to the sub-buffer; W loads `consumed` (acquire) before it
//!    opens.
//! 7. The process is attached elsewhere, or forks: the sequence compares the attachment's key with the
//!    thread's. The key's store is followed by `membarrier`, which restarts every sequence that may have seen
//!    the old key.
//!
//! 8. A class is disabled: its word ([`crate::EnableWord`]) loses the id, and then `membarrier` restarts
//!    every sequence. A sequence that begins afterwards finds an id other than its own, however long ago its
//!    thread passed the class's sites.
//!
//! What the kernel cannot protect: a thread without rseq registration, such as a `vfork`ed child that uses
//! its parent's thread block. [`gather`] takes the registration to use, so that such a caller can bring its
//! own. Nor can it protect an instruction that a uprobe or a debugger runs out of line: the kernel then
//! clears `rseq_cs` without an abort. The check before the last store notices this, unless the instruction
//! was one of the two after that check. What the sequence wrote in between may have overwritten an event of a
//! thread that ran meanwhile (measured with a probe on `rdtsc`: up to 28 of 20,000 events). These
//! instructions should not be probed, and tracewing does not probe them.
//!
//! Nothing here retries without bound: after [`ATTEMPTS`] aborts in a row the call reports it, and the caller
//! counts a loss.

#[cfg(not(target_arch = "x86_64"))]
mod absent;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod event;
#[cfg(all(target_arch = "x86_64", not(loom)))]
mod gather;
#[cfg(any(loom, feature = "model"))]
pub mod model;
#[cfg(target_arch = "x86_64")]
mod open;
#[cfg(target_arch = "x86_64")]
mod steps;

use tracewing_units::{Cpu, Tid};

use crate::Attachment;

#[cfg(not(target_arch = "x86_64"))]
pub use absent::{fixed, gather, open};
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub use event::fixed;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub use gather::gather;
#[cfg(all(target_arch = "x86_64", not(loom)))]
pub use open::open;

/// Aborts in a row after which a sequence gives up. An abort needs a preemption, a signal or a migration
/// within about 10 nanoseconds; only a debugger that steps through the sequence, or a probe in it, causes two
/// of them in a row.
pub const ATTEMPTS: u32 = 64;

/// Signature before every abort handler, as glibc registers it (`RSEQ_SIG`, sys/rseq.h).
pub const SIGNATURE: u32 = 0x5305_3053;

/// Offset of `cpu_id` in the kernel's `struct rseq` (include/uapi/linux/rseq.h).
#[cfg(all(target_arch = "x86_64", not(loom)))]
const CPU_ID: usize = 4;
/// Offset of `rseq_cs` in it.
#[cfg(all(target_arch = "x86_64", not(loom)))]
const RSEQ_CS: usize = 8;

/// Distance of the mask of major classes from the first CPU's control page.
#[cfg(all(target_arch = "x86_64", not(loom)))]
const MAJORS: isize = core::mem::offset_of!(tracewing_abi::region::RegionHeader, majors) as isize
    - tracewing_abi::region::PAGE as isize;

/// The process and thread that an event is written for.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    /// The attachment of the process, which names the region.
    pub attachment: &'a Attachment,
    /// The key that the attachment must still have.
    pub key: u64,
    /// Distance of a registered `struct rseq` of this task from its thread pointer.
    pub rseq_offset: isize,
    /// The thread id to write.
    pub tid: Tid,
}

/// How an attempt to write an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The event is in the buffer.
    Written,
    /// The attachment's key is not the one given: the process was detached, attached anew, or is a forked
    /// child.
    Detached,
    /// The event does not fit the current sub-buffer of `cpu`, whose position was `head`.
    Full {
        /// The CPU on which the sequence ran.
        cpu: Cpu,
        /// Write position of that CPU's buffer, as the sequence found it.
        head: u64,
    },
    /// The event's time stamp needs the extended form.
    Extend,
    /// The recording no longer enables the class or its major class.
    Disabled,
    /// The sequence was aborted [`ATTEMPTS`] times in a row.
    Interrupted,
}

/// How opening a sub-buffer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// Try the event again: there is a new sub-buffer, or another thread or CPU made the attempt pointless.
    Retry,
    /// The reader has not released the next sub-buffer: the event is lost, and counted.
    Full,
    /// The sequence was aborted [`ATTEMPTS`] times in a row.
    Interrupted,
}
