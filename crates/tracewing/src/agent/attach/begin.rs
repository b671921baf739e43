//! Makes a region the one that the process writes to for a recording: at the beginning, and in a forked
//! child.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::*;

use tracewing_abi::children;
use tracewing_abi::region::Protocol;
#[cfg(feature = "session")]
use tracewing_ring::Region;

use super::super::access::Access;
use super::buffers::Buffers;
#[cfg(feature = "session")]
use super::joined;
use super::{
    ATTACHMENTS, Joined, NO_KEYS, Own, RSEQ_OFFSET, SLOTS, Slot, Visit, identity, names, system, visits,
};

/// Makes a region the one that this process writes to for a recording, in place of `before`; `None` if that
/// is not the one any more.
fn begin(slot: usize, buffers: &Buffers, access: Access, before: *mut Joined) -> Option<NonNull<Joined>> {
    let Buffers { region, inherited, children, .. } = *buffers;
    if region.protocol() == Protocol::Publish {
        let offset = tracewing_ring::thread::rseq_of_libc()?;
        RSEQ_OFFSET.store(offset, Relaxed); // read only under a key, which is stored (release) later
    }
    let place = system::map_private(size_of::<Joined>())?;
    let page: *mut Joined = place.as_ptr().cast();
    let (slot, attachment) = (&SLOTS[slot], &ATTACHMENTS[slot]);
    let begun = own(slot).is_some_and(|own| {
        let joined = Joined { region, inherited, children, number: 0, access, own };
        new_key(&joined);
        // SAFETY: fresh memory, a page and thus large enough and aligned.
        unsafe { page.write(joined) };
        // Release, with `joined`.
        let is_first = slot.joined.compare_exchange(before, page, AcqRel, Relaxed).is_ok();
        if is_first {
            attachment.store((&raw const own.attachment).cast_mut(), Release); // with the fast half's dependent loads
        } else {
            spare(slot, own);
        }
        is_first
    });
    if !begun {
        // SAFETY: mapped here, and no other code has its address.
        unsafe { system::unmap(place, size_of::<Joined>()) };
    }
    NonNull::new(page).filter(|_| begun)
}

/// A page without keys.
fn own(slot: &Slot) -> Option<&'static Own> {
    let spare = slot.spare.swap(core::ptr::null_mut(), Acquire); // with the release in `spare`
    let page =
        if spare.is_null() { system::map_wiped_on_fork(size_of::<Own>())?.as_ptr().cast() } else { spare };
    // SAFETY: a page that is never unmapped; zeroes are a valid `Own`.
    Some(unsafe { &*page })
}

/// Takes the keys from a page, which serves again after the caller's `membarrier`, if any thread can be in a
/// sequence that has seen them.
pub(super) fn spare(slot: &Slot, own: &'static Own) {
    own.smp_key.store(0, Relaxed);
    own.attachment.detach();
    slot.spare.store((&raw const *own).cast_mut(), Release); // with `own`
}

/// Attaches this process to the region and gives its key. Several threads may do so at once.
fn new_key(joined: &Joined) -> u64 {
    let key = tracewing_ring::thread::unique_key();
    match joined.region.protocol() {
        Protocol::Publish => joined.own.attachment.attach(&joined.region, key),
        Protocol::Smp | Protocol::Local => {
            match joined.own.smp_key.compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => key,
                Err(current) => current,
            }
        }
    }
}

/// The key under which this process is attached. A forked child that is not yet attached becomes so here,
/// unless it needs a region of its own. `None` if there is no key; the caller then checks for another region.
pub(in super::super) fn process_key(visit: &Visit) -> Option<u64> {
    let key = visit.key();
    if key != 0 {
        return Some(key);
    }
    visit.inherited.then(|| new_key(visit))
}

/// In a forked child, whose only thread this is: takes over the region that its parent had for it, replacing
/// the parent's, which the child has not inherited. If there is none, the child has no region.
pub(in super::super) fn take_over(slot: usize, new: Option<NonNull<Joined>>) -> Option<NonNull<Joined>> {
    let old = NonNull::new(SLOTS[slot].joined.load(Relaxed))?;
    // SAFETY: never freed while it is in the slot, and no other thread is there; its parts are copied.
    let Joined { region, inherited, children, access, own, .. } = unsafe { old.read() };
    if inherited {
        return None;
    }
    // A signal handler may have forked between a look for the key and one at the region.
    system::map_zeroes_into(region.base(), region.geometry().size());
    let new = new?;
    // SAFETY: this process's own copy of what `Buffers::for_child` has made; no other thread uses it yet.
    let joined = unsafe { &mut *new.as_ptr() };
    system::keep_from_children(joined.region.base(), joined.region.geometry().size());
    (joined.access, joined.own) = (access, own);
    if let Some(children) = children {
        // SAFETY: this process's mapping, which only the parent's `Joined` knows; counts that are stored
        // there are ignored.
        unsafe { system::map_zeroes_over(NonNull::from(children).cast(), children::SIZE) };
    }
    // SAFETY: as above. What was interrupted by the fork finds that it has not got its region.
    unsafe { (*old.as_ptr()).own = &NO_KEYS };
    new_key(joined);
    SLOTS[slot].joined.store(new.as_ptr(), Release); // with `joined`
    Some(new)
}

/// Takes part in a recording with these buffers, and gives the slot's number. `None` where the process takes
/// part in as many recordings as it can, or the system refuses.
pub(in super::super) fn take_part(buffers: Buffers, access: Access) -> Option<(usize, NonNull<Joined>)> {
    // Without it a region with protocol `Publish` cannot be left again.
    system::membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ);
    if !visits::prepare() || !identity::prepare() {
        return None;
    }
    names::prepare();
    let slot = Slot::take()?;
    let joined = attach_buffers(slot, buffers, access, None);
    if joined.is_none() {
        Slot::give_back(slot);
    }
    Some((slot, joined?))
}

/// Makes these buffers those that this process writes to for a recording, in place of the one that is
/// visited.
pub(in super::super) fn attach_buffers(
    slot: usize,
    mut buffers: Buffers,
    access: Access,
    before: Option<&Visit>,
) -> Option<NonNull<Joined>> {
    let before = before.map_or(core::ptr::null_mut(), |visit| (&raw const *visit.joined).cast_mut());
    buffers.populate();
    let attached = begin(slot, &buffers, access, before);
    buffers.is_used = attached.is_some();
    attached
}

/// As [`take_part`], for the buffers of a session in this process. A child of the process shares them where
/// the protocol allows.
#[cfg(feature = "session")]
pub(crate) fn attach(region: &Region, file: libc::c_int) -> Option<usize> {
    let inherited = region.protocol() == Protocol::Publish;
    let buffers = Buffers::map_raw(file, None, region.geometry().size(), inherited)?;
    take_part(buffers, Access::None).map(|(slot, _)| slot)
}

/// Sets which major classes a session of the program itself enables.
#[cfg(feature = "session")]
pub(crate) fn set_majors(slot: usize, mask: u64) {
    if let Some(joined) = joined(slot).filter(|joined| joined.has_region()) {
        joined.region.majors().store(mask, Relaxed); // a wish, which orders nothing
    }
}
