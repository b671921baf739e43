//! Which buffers the process writes to.
//!
//! Three words say it: [`JOINED`], the region and how it may be used; [`ATTACHMENT`], what the fast half of the event
//! path reads; and the classes' ids, without which neither is looked at. A forked child inherits the first and the
//! last, and finds the attachment wiped: its first event comes to [`process_key`], which attaches it again, to the same
//! region if that is shared, else to one that the recorder gives it.
//!
//! A region that was used is never unmapped: threads may be anywhere between a look at [`JOINED`] and their last access.
//! When a session of the program's own ends, private zeroes take the region's place, in which a late writer harms nobody;
//! the next session of the same shape is mapped there again, so the address space does not grow.

use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicU64, Ordering::*};

use tracewing_abi::region::Protocol;
use tracewing_ring::{Attachment, Region};

use super::{join, system};
use crate::class;

/// A region that this process has mapped.
pub(super) struct Joined {
    pub(super) region: Region,
    /// A forked child may write to it, too.
    pub(super) inherited: bool,
}

/// What a forked child finds zeroed.
#[repr(C)]
struct Wiped {
    attachment: Attachment,
    /// Key of the process where the protocol is `Smp`, whose events never take the fast half.
    smp_key: AtomicU64,
    /// Somebody in this process is asking for a region of its own.
    rejoining: AtomicBool,
}

static DETACHED: Attachment = Attachment::new();
/// What the fast half of the event path reads; always valid.
pub(crate) static ATTACHMENT: AtomicPtr<Attachment> = AtomicPtr::new((&raw const DETACHED).cast_mut());
/// Distance of a thread's `struct rseq` from its thread pointer, once the process is attached with `Publish`.
pub(crate) static RSEQ_OFFSET: AtomicIsize = AtomicIsize::new(0);

static WIPED: AtomicPtr<Wiped> = AtomicPtr::new(core::ptr::null_mut());
static JOINED: AtomicPtr<Joined> = AtomicPtr::new(core::ptr::null_mut());
/// What was detached last; its address range serves again.
#[cfg(feature = "session")]
static RETIRED: AtomicPtr<Joined> = AtomicPtr::new(core::ptr::null_mut());

/// The region in use, if there is one.
pub(super) fn joined() -> Option<&'static Joined> {
    // Acquire, with the release store in `begin`. SAFETY: null, or memory that is never freed.
    unsafe { JOINED.load(Acquire).as_ref() }
}

/// Whether some recording has the process.
#[cfg(feature = "session")]
pub(crate) fn is_attached() -> bool {
    joined().is_some()
}

fn wiped() -> Option<&'static Wiped> {
    // Acquire, with the release store in `make_wiped`. SAFETY: null, or a mapping that is never unmapped; all-zero bytes
    // are a valid `Wiped`.
    unsafe { WIPED.load(Acquire).as_ref() }
}

fn make_wiped() -> Option<&'static Wiped> {
    if let Some(wiped) = wiped() {
        return Some(wiped);
    }
    let page: *mut Wiped = system::map_wiped_on_fork(size_of::<Wiped>())?.as_ptr().cast();
    // SAFETY: the page was just mapped, zeroed, and is never unmapped.
    ATTACHMENT.store(unsafe { (&raw const (*page).attachment).cast_mut() }, Release); // with the fast half's dependent loads
    WIPED.store(page, Release); // with `wiped`
    wiped()
}

/// Whether protocol `Publish` can be used: on x86-64, where the C library has registered restartable sequences for its
/// threads (glibc since 2.35, unless its tunable `glibc.pthread.rseq` is 0) in an area that has all that is needed.
pub(crate) fn can_publish() -> bool {
    tracewing_ring::thread::rseq_of_libc().is_some()
}

/// Makes `joined` the region that this process writes to.
fn begin(joined: Joined) -> bool {
    let Some(wiped) = make_wiped() else { return false };
    if joined.region.protocol() == Protocol::Publish {
        let Some(offset) = tracewing_ring::thread::rseq_of_libc() else { return false };
        RSEQ_OFFSET.store(offset, Relaxed); // read only under a key, which is stored (release) later
    }
    let Some(place) = system::map_private(size_of::<Joined>()) else { return false };
    let place: *mut Joined = place.as_ptr().cast();
    // SAFETY: fresh memory, a page and thus large enough and aligned; never unmapped, so that late readers are safe.
    unsafe { place.write(joined) };
    JOINED.store(place, Release); // with `joined`
    // SAFETY: just written.
    new_key(wiped, unsafe { &(*place).region });
    true
}

/// Attaches this process to `region` and gives its key.
fn new_key(wiped: &Wiped, region: &Region) -> u64 {
    let key = tracewing_ring::thread::unique_key();
    match region.protocol() {
        Protocol::Publish => wiped.attachment.attach(region, key),
        Protocol::Smp => match wiped.smp_key.compare_exchange(0, key, Relaxed, Relaxed) {
            Ok(_) => key,
            Err(current) => current,
        },
    }
}

/// The key under which this very process is attached to `joined`. A forked child that is not yet becomes so here.
/// `None` where it cannot be recorded.
pub(super) fn process_key(joined: &'static Joined) -> Option<u64> {
    let wiped = wiped()?;
    let key = match joined.region.protocol() {
        Protocol::Publish => wiped.attachment.key(),
        Protocol::Smp => wiped.smp_key.load(Relaxed), // only compared; says nothing about other memory
    };
    if key != 0 {
        return Some(key);
    }
    if joined.inherited {
        return Some(new_key(wiped, &joined.region));
    }
    // One asks; a signal handler that comes in between, or another thread, has to do without.
    if wiped.rejoining.swap(true, Relaxed) {
        return None;
    }
    if !join::rejoin() {
        end(joined);
        return None;
    }
    None // there is a new region: the caller looks again
}

/// The recording of `joined` is over, or this process has no part in it: switches everything off.
pub(super) fn end(joined: &'static Joined) {
    let joined = (&raw const *joined).cast_mut();
    if JOINED.compare_exchange(joined, core::ptr::null_mut(), Relaxed, Relaxed).is_ok() {
        class::all().for_each(|class| class.set_id(0));
    }
}

/// Maps the region in `file` and makes it the one that this process writes to.
pub(super) fn attach_file(file: libc::c_int, size: usize, inherited: bool) -> bool {
    let Some(base) = system::map_shared(file, size) else { return false };
    // SAFETY: mapped just now with this size, from a memfd that its maker has sealed against truncation.
    let attached = match unsafe { Region::attach(base, size) } {
        Ok(region) => begin(Joined { region, inherited }),
        Err(_) => false,
    };
    if !attached {
        // SAFETY: `begin` failed before it told anybody.
        unsafe { system::unmap(base, size) };
    }
    attached
}

/// As [`attach_file`], for the buffers of a session in this process. A child of the process shares them where the
/// protocol allows.
#[cfg(feature = "session")]
pub(crate) fn attach(region: &Region, file: libc::c_int) -> bool {
    let inherited = region.protocol() == Protocol::Publish;
    if inherited && !system::membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ) {
        return false;
    }
    let size = region.geometry().size();
    let retired = RETIRED.swap(core::ptr::null_mut(), Acquire); // with the release store in `detach`
    // SAFETY: null, or what `detach` has put there: memory that is never freed.
    if let Some(old) = unsafe { retired.as_ref() }
        && (old.region.geometry(), old.region.protocol()) == (region.geometry(), region.protocol())
        && old.region.clock() == region.clock()
    {
        // SAFETY: zeroes that `detach` has put there, for late writers only, who find a region of the same shape now.
        if unsafe { system::map_shared_over(old.region.base(), file, size) } {
            let Some(wiped) = wiped() else { return false };
            JOINED.store(retired, Release); // with `joined`
            new_key(wiped, &old.region);
            return true;
        }
    }
    attach_file(file, size, inherited)
}

/// Ends the attachment to a session in this process. When it returns, no thread of the process writes to the session's
/// memory any more; with protocol `Smp`, a thread may have left its last event uncommitted.
#[cfg(feature = "session")]
pub(crate) fn detach() {
    let Some(joined) = joined() else { return };
    end(joined);
    if let Some(wiped) = wiped() {
        wiped.smp_key.store(0, Relaxed);
        wiped.attachment.detach();
    }
    // Restarts every sequence that has seen the old key; each finds it gone. Cannot fail once registered, and without
    // `Publish` there is no sequence.
    system::membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ);
    // SAFETY: nobody needs the mapping: the session's consumer has one of its own. A thread that is still between
    // its look at `JOINED` and its last access finds zeroes, and writes where nobody reads.
    unsafe { system::map_zeroes_over(joined.region.base(), joined.region.geometry().size()) };
    RETIRED.store((&raw const *joined).cast_mut(), Release); // with `attach`
}
