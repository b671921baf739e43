//! The fast half of the event path with protocol `Smp`: for a thread that is known, in a process that is
//! attached to a recorder's region. Everything else goes to the slow half.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering::*, compiler_fence};

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER};
use tracewing_abi::region::Protocol;
use tracewing_ring::lttng::{Look, Smp};
use tracewing_ring::thread::{self, Mark, RECORDINGS};
use tracewing_ring::{Region, Segment};
use tracewing_units::Tid;

use super::attach::{Joined, Slot};
use super::system;
use crate::class::EventClass;

/// Whether some thread may not read the clock, which this half does before it knows the thread.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Takes a region over for the fast half.
///
/// # Safety
/// Something stays mapped there that is as large, and `joined` as it is.
pub(super) unsafe fn offer(slot: usize, joined: NonNull<Joined>) {
    // SAFETY: the caller's.
    if unsafe { joined.as_ref() }.region.protocol() == Protocol::Smp {
        Slot::smp(slot).store(joined.as_ptr(), SeqCst); // with `write`, and with `silence`
        // With `silence`.
        if IS_CLOSED.load(SeqCst) {
            Slot::smp(slot).store(core::ptr::null_mut(), Relaxed);
        }
    }
}

/// The calling thread writes no events from now on, and does not read the clock.
pub(super) fn silence() {
    thread::with(|mark| {
        mark.silent.store(1, Relaxed);
        compiler_fence(Release); // a signal handler in between enters no key anew
        mark.entries.iter().for_each(|entry| entry.key.store(Mark::NEVER, Relaxed));
    });
    // With `offer`: one of the two sees what the other has stored.
    IS_CLOSED.store(true, SeqCst);
    let close = |slot| Slot::smp(slot).store(core::ptr::null_mut(), SeqCst); // with `offer`
    (0..RECORDINGS).for_each(close);
}

/// Writes the event `id`, or counts it as lost; `false` if the slow half must do it. Then the stack that this
/// function uses without optimisation is free again.
///
/// # Safety
/// Every segment is readable.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) unsafe fn write<const ORDERED: bool>(
    class: &'static EventClass,
    slot: usize,
    id: u16,
    segments: &[Segment],
) -> bool {
    let joined = Slot::smp(slot).load(Acquire); // with `offer`
    // SAFETY: null, or what `offer` was given, which stays mapped.
    let Some(joined) = (unsafe { joined.as_ref() }) else { return false };
    // A forked child finds no key, and has no region. The processor reads the clock speculatively anyway,
    // before it knows.
    let Some(key) = joined.smp_key() else { return false };
    // The look comes first, for all else is done in its shadow.
    let buffer = system::current_cpu().min(joined.region.geometry().cpus() - 1);
    let look = Look::<Smp>::new(&joined.region, buffer, ORDERED);
    // A thread that has not entered under this key, or that shares its block, is not known.
    let known = thread::with(|mark| {
        let entry = &mark.entries[slot];
        let is_known = entry.key.load(Relaxed) == key && mark.shared.load(Relaxed) == 0;
        is_known.then(|| Tid(entry.tid.load(Relaxed)))
    });
    let Some(tid) = known else { return false };
    let size = Segment::total(segments).saturating_add(EXTENDED_HEADER + CONTEXT);
    if joined.region.is_closed() || size > joined.region.geometry().largest_event() {
        return false;
    }
    if !is_wanted(class, slot, id, &joined.region) {
        return true;
    }
    // SAFETY: the segments by the caller; the region stays mapped and has the protocol. A loss is counted
    // there.
    let _ = unsafe { look.write(tid, id, segments) };
    true
}

/// Whether the class still has this id in the recording, and its major class is on. Without a sequence around
/// it this is only a preliminary check: a thread that is stopped right after it writes its event later.
pub(super) fn is_wanted(class: &'static EventClass, slot: usize, id: u16, region: &Region) -> bool {
    class.want(slot).get().is_some_and(|(now, major)| {
        now == id && region.majors().load(Relaxed) >> major & 1 != 0 // a wish, which orders nothing
    })
}
