//! Leaves a recording: from then on no thread of the process writes to its region.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::*;
use core::time::Duration;

use tracewing_abi::children;
use tracewing_abi::region::Protocol;

use super::begin::spare;
use super::{Joined, SLOTS, Slot, Visit, joined, system, visits};

/// Time for a thread in the fast half of `Smp` to finish its event: some nanoseconds, unless it is
/// interrupted.
const GRACE: Duration = Duration::from_millis(20);

/// The recording is over, or this process has no part in it: nothing is written any more. Which classes are
/// wanted is the agent's business; this may be a signal handler.
pub(in super::super) fn end(visit: &Visit) {
    let joined = (&raw const *visit.joined).cast_mut();
    if SLOTS[visit.slot].joined.compare_exchange(joined, core::ptr::null_mut(), Relaxed, Relaxed).is_ok() {
        visit.own.smp_key.store(0, Relaxed); // only compared
        visit.own.attachment.detach();
    }
}

/// The recorder has closed the region: the fast half writes nothing to it any more. The slot stays the
/// recording's until [`leave`].
pub(in super::super) fn stop(visit: &Visit) {
    visit.own.smp_key.store(0, Relaxed); // only compared
    visit.own.attachment.detach();
}

/// Cleans up a recording in a slot, and frees the slot. When this returns, no thread of the process writes to
/// the region any more (`Smp`: except one that had passed all checks). No class may be enabled in the slot,
/// and no buffers kept for a child (`spare::leave`).
pub(in super::super) fn leave(slot: usize) {
    // None: a forked child that has got no buffers of its own, and never gets any.
    let Some(visit) = joined(slot) else { return Slot::give_back(slot) };
    end(&visit);
    let joined = visit.joined;
    // Relaxed: a thread that finds it gone takes the slow half.
    let was_offered = || !SLOTS[slot].smp.swap(core::ptr::null_mut(), Relaxed).is_null();
    let mut has_fast_smp = was_offered();
    // Restarts every sequence that has seen the old key; each finds it gone. Without `Publish` there is none.
    // Refused only where a filter for system calls has come since the process took part.
    let restart = || {
        system::membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ)
            || joined.region.protocol() != Protocol::Publish
    };
    let mut all_left = restart();
    drop(visit);
    all_left &= visits::wait_for_end();
    has_fast_smp |= was_offered(); // by a visitor that had just got it (`join::rejoin`)
    if has_fast_smp {
        all_left = false; // threads in it are not counted
        std::thread::sleep(GRACE);
    }
    // Once more: a visitor that found the key gone may have made a new one before it left.
    joined.own.attachment.detach();
    all_left &= restart();
    let (base, size) = (joined.region.base(), joined.region.geometry().size());
    joined.access.close();
    if all_left {
        spare(&SLOTS[slot], joined.own);
        // SAFETY: the consumer has a mapping of its own. No thread is in a sequence with the old key, none
        // is in the slow half, and none finds its way to the region again.
        unsafe {
            system::unmap(base, size);
            if let Some(children) = joined.children {
                system::unmap(NonNull::from(children).cast(), children::SIZE);
            }
            system::unmap(NonNull::from(joined).cast(), size_of::<Joined>());
        }
    } else {
        // SAFETY: a thread may be stopped between its look and its last access, for longer than it is
        // possible to wait: it finds zeroes, and writes where no reader looks. What it may still read or
        // detach is not used again.
        unsafe {
            system::map_zeroes_over(base, size);
            if let Some(children) = joined.children {
                system::map_zeroes_over(NonNull::from(children).cast(), children::SIZE);
            }
        }
    }
    Slot::give_back(slot);
}
