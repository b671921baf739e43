//! Events of a task that uses another task's thread block: a child of `vfork`, or of `clone` with shared memory.
//!
//! The block's `struct rseq` is registered for the other task, so a sequence of this one would not be restarted. For
//! the length of one event the task registers an area of its own, on its stack, with all signals blocked so that nothing
//! else of the task runs meanwhile. Four system calls more per event; such children live for a few instructions before
//! they execute something else.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use tracewing_abi::region::Loss;
use tracewing_ring::publish::{Destination, SIGNATURE};
use tracewing_ring::{Segment, Want, thread};

use super::attach::{Joined, RSEQ_OFFSET};
use super::system;
use super::write::{Step, count_loss, publish_once};

/// Attempts before the event is counted lost; as in `write`.
const ATTEMPTS: u32 = 32;

/// `struct rseq` (include/uapi/linux/rseq.h), original size.
#[repr(C, align(32))]
struct Area {
    cpu_id_start: AtomicU32,
    cpu_id: AtomicU32,
    rseq_cs: AtomicU64,
    flags: u32,
    _pad: [u32; 3],
}

const _: () = assert!(size_of::<Area>() == 32 && offset_of!(Area, rseq_cs) == 8);

const UNREGISTER: libc::c_int = 1;

impl Area {
    fn new() -> Self {
        // RSEQ_CPU_ID_UNINITIALIZED
        Self { cpu_id_start: 0.into(), cpu_id: u32::MAX.into(), rseq_cs: 0.into(), flags: 0, _pad: [0; 3] }
    }

    /// rseq(2) on this area.
    fn call(&self, flags: libc::c_int) -> bool {
        // SAFETY: the kernel writes to the area's atomics only, until it is unregistered.
        unsafe { libc::syscall(libc::SYS_rseq, &raw const *self, size_of::<Self>(), flags, SIGNATURE) == 0 }
    }
}

/// Writes an event of the calling task, or counts it lost.
///
/// # Safety
/// Every segment is readable.
pub(super) unsafe fn write(joined: &Joined, key: u64, tid: i32, want: &Want, id: u16, segments: &[Segment]) {
    system::without_signals(|| {
        let area = Area::new();
        let registered = area.call(0);
        // Refused: the task has a registration already, so it is the one to whom the block belongs.
        let rseq_offset = if registered {
            (&raw const area).addr().wrapping_sub(thread::pointer().addr()) as isize
        } else {
            RSEQ_OFFSET.load(Relaxed)
        };
        let to = Destination { attachment: joined.attachment(), key, rseq_offset, tid };
        // SAFETY: the segments by the caller; the registration is this task's own, by either way; the caller's
        // visit keeps the region mapped.
        let done = (0..ATTEMPTS)
            .any(|_| matches!(unsafe { publish_once(joined, to, want, id, segments) }, Step::Done));
        if !done {
            count_loss(joined, Loss::Unprotected);
        }
        if registered {
            area.call(UNREGISTER);
        }
    });
}
