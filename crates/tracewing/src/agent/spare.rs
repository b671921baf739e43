//! Buffers for the next child: a process has some that it does not use, and the child that it forks takes
//! them over, so that the child need not ask for any, nor lose events until it gets them, nor have its
//! parent's.
//!
//! All of this happens with the agent's lock, which a process holds while it forks. Only then are the buffers
//! left to children: a child that another thread makes at that moment by a raw system call inherits them,
//! too; all others have none.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use tracewing_ring::thread::RECORDINGS;

use super::attach::{self, Buffers, Joined, joined};
use super::{control, filtered, smp, system};

/// Buffers for children that a process has at most, for each recording.
const MOST: usize = 16;

/// Never dereferenced in a process but the one that has stored them, and its child, which takes one of them
/// over.
static SPARES: [[AtomicPtr<Joined>; MOST]; RECORDINGS] =
    [const { [const { AtomicPtr::new(core::ptr::null_mut()) }; MOST] }; RECORDINGS];
/// Those that are left to the child that is being forked.
static OFFERED: [AtomicPtr<Joined>; RECORDINGS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; RECORDINGS];
/// How many a process that forks is to have: one, unless it forks much.
static WANTED: AtomicUsize = AtomicUsize::new(1);

/// Whether a process needs more of them for a recording.
pub(super) fn is_wanted(slot: usize) -> bool {
    let count = SPARES[slot].iter().filter(|spare| !spare.load(Relaxed).is_null()).count();
    count < WANTED.load(Relaxed)
}

/// Keeps buffers for a child.
pub(super) fn keep(slot: usize, buffers: Buffers, number: u64) {
    control::with_lock(|| {
        let Some(joined) = joined(slot).filter(|joined| joined.has_region()) else { return };
        // That recording may be over by now.
        if joined.region.recording() != buffers.region().recording() {
            return;
        }
        let Some(place) = SPARES[slot].iter().find(|spare| spare.load(Relaxed).is_null()) else { return };
        if let Some(spare) = buffers.for_child(number, joined.access()) {
            place.store(spare.as_ptr(), Relaxed);
        }
    });
}

/// Leaves a recording, of which no class may be enabled: neither the process nor a child has buffers then.
pub(crate) fn leave(slot: usize) {
    forget(slot);
    attach::leave(slot);
}

fn forget(slot: usize) {
    control::with_lock(|| {
        for spare in &SPARES[slot] {
            if let Some(spare) = NonNull::new(spare.swap(core::ptr::null_mut(), Relaxed)) {
                // SAFETY: this process's own, and never used.
                unsafe { attach::unmap(spare) };
            }
        }
    });
}

/// Before a fork: leaves one to the child. Not in a process under a filter for system calls.
pub(super) fn offer() {
    if filtered::is_alone() {
        return;
    }
    for slot in 0..RECORDINGS {
        // Not in a child made by a raw system call, which has nothing at its parent's addresses.
        let owns = joined(slot).is_some_and(|joined| !joined.is_inherited() && joined.has_region());
        let mut spares = SPARES[slot].iter().filter(|spare| owns && !spare.load(Relaxed).is_null());
        let Some(spare) = spares.next() else { continue };
        let Some(joined) = NonNull::new(spare.swap(core::ptr::null_mut(), Relaxed)) else { continue };
        // SAFETY: this process's own.
        let region = unsafe { joined.as_ref() }.region;
        if system::leave_to_children(region.base(), region.geometry().size()) {
            OFFERED[slot].store(joined.as_ptr(), Relaxed);
        } else {
            spare.store(joined.as_ptr(), Relaxed);
        }
    }
}

/// After it, in the parent: they are the child's.
pub(super) fn give_away() {
    for offered in &OFFERED {
        if let Some(spare) = NonNull::new(offered.swap(core::ptr::null_mut(), Relaxed)) {
            // SAFETY: this process's own, and never used.
            unsafe { attach::unmap(spare) };
            let _ = WANTED.fetch_update(Relaxed, Relaxed, |wanted| Some((2 * wanted).min(MOST)));
        }
    }
}

/// After it, in the child: takes them over. Of others of its parent's there is nothing here. Where nothing
/// was offered for fear of a filter, nothing is done.
pub(super) fn take_over() {
    WANTED.store(1, Relaxed);
    let is_alone = filtered::is_alone();
    for slot in 0..RECORDINGS {
        SPARES[slot].iter().for_each(|spare| spare.store(core::ptr::null_mut(), Relaxed));
        let spare = NonNull::new(OFFERED[slot].swap(core::ptr::null_mut(), Relaxed));
        if is_alone && spare.is_none() {
            continue;
        }
        if let Some(joined) = attach::take_over(slot, spare) {
            // SAFETY: `attach::leave` unmaps nothing that was offered.
            unsafe { smp::offer(slot, joined) };
        }
    }
}
