//! The fast half of the event path with protocol `Smp`: for a thread that is known, in a process that is attached to a
//! recorder's region. Everything else goes to the slow half.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER};
use tracewing_abi::region::Protocol;
use tracewing_ring::lttng::{self, Smp};
use tracewing_ring::{Segment, thread};

use super::attach::Joined;
use super::system;

/// The region to write to, if its protocol is `Smp`. Never one of the program's own sessions, which come and go.
static REGION: AtomicPtr<Joined> = AtomicPtr::new(core::ptr::null_mut());

/// Takes a region over for the fast half.
///
/// # Safety
/// It is never unmapped, nor is `joined`.
pub(super) unsafe fn offer(joined: NonNull<Joined>) {
    // SAFETY: the caller's.
    if unsafe { joined.as_ref() }.region.protocol() == Protocol::Smp {
        REGION.store(joined.as_ptr(), Release); // with `write`
    }
}

/// Writes the event `id`, or counts it lost; `false` where that is for the slow half to do.
///
/// # Safety
/// Every segment is readable.
#[inline(always)]
pub(crate) unsafe fn write(id: u16, segments: &[Segment]) -> bool {
    let joined = REGION.load(Acquire); // with `offer`
    // SAFETY: null, or what `offer` was given, which stays.
    let Some(joined) = (unsafe { joined.as_ref() }) else { return false };
    // A forked child finds no key. A thread that has not entered under this one, or that shares its block, is not known.
    let Some(key) = joined.smp_key() else { return false };
    let known = thread::with(|mark| {
        let is_known = mark.key.load(Relaxed) == key && mark.shared.load(Relaxed) == 0;
        is_known.then(|| mark.tid.load(Relaxed))
    });
    let Some(tid) = known else { return false };
    let size = Segment::total(segments).saturating_add(EXTENDED_HEADER + CONTEXT);
    if joined.region.is_closed() || size > joined.region.geometry().largest_event() {
        return false;
    }
    let cpu = system::current_cpu().min(joined.region.geometry().cpus() - 1);
    // SAFETY: the segments by the caller; the region stays mapped and has the protocol. A loss is counted there.
    let _ = unsafe { lttng::write::<Smp>(&joined.region, cpu, tid, id, segments) };
    true
}
