//! The event path: writes a payload to the buffer of the CPU, for each recording that enables it.
//!
//! The fast half is `tracewing_ring::publish::fixed`, one restartable sequence; the agent handles everything
//! else (a thread's first event, a full sub-buffer, a payload of variable size).
//!
//! The control data that is read here (the class's words and filters, and the buffers of a recording) lies in
//! memory that is never freed, and may change at any moment: another recording may have replaced the one that
//! the class's mask refers to. The sequence compares attachment and id again, and nothing can come between
//! its comparison and its commit. So control data needs no lock, no reference count and no grace period here.

use core::ptr;
use core::sync::atomic::Ordering::*;

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, HEADER, is_located};
use tracewing_abi::region::MIN_SUB_BUFFER;
pub use tracewing_ring::Segment;
use tracewing_ring::publish::{self, Destination, Outcome};
use tracewing_ring::thread::{self, RECORDINGS};
use tracewing_trigger::Callee;
use tracewing_units::Tid;

use crate::agent::{self, ATTACHMENTS, RSEQ_OFFSET};
use crate::class::{EventClass, FILTERED};

/// The function [`fixed`], for sites.
pub(crate) struct Fixed<const LEN: usize, const ORDERED: bool>;

impl<const LEN: usize, const ORDERED: bool> Callee for Fixed<LEN, ORDERED> {
    /// # Safety
    /// `class` is an event class; `payload` points to `LEN` readable bytes, after the address of the site.
    #[inline(never)]
    unsafe extern "C" fn call(class: *const (), payload: *const u8) {
        // SAFETY: the caller's.
        let class: &'static EventClass = unsafe { &*class.cast() };
        // Whatever else there is to do is one function with the same arguments, for which nothing has to be
        // saved here. SAFETY: the payload by the caller.
        if !unsafe { fixed_fast::<LEN, ORDERED>(class, payload) } {
            // SAFETY: the payload by the caller.
            unsafe { fixed_rest::<LEN, ORDERED>(class, payload) };
        }
    }
}

/// Records an event of constant payload size, emitted at the address `site`; 0 if that is not known.
///
/// # Safety
/// `payload` points to `LEN` readable bytes.
#[inline]
pub(crate) unsafe fn fixed<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    payload: *const u8,
    site: usize,
) {
    // SAFETY: the payload by the caller.
    if !unsafe { fixed_fast::<LEN, ORDERED>(class, payload) } {
        // SAFETY: the payload by the caller.
        unsafe { fixed_rest_elsewhere::<LEN, ORDERED>(class, payload, site) };
    }
}

/// The common case, by the fast half: only the first recording enables the class. Its slot is a constant, so
/// that no address here depends on a previous load.
///
/// # Safety
/// As for [`fixed`].
#[inline(always)]
pub(crate) unsafe fn fixed_fast<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    payload: *const u8,
) -> bool {
    let id = class.want(0).id();
    // SAFETY: the payload by the caller.
    class.wanted() == 1 && unsafe { fixed_into::<LEN, ORDERED>(class, 0, id, payload) }
}

/// What is not the usual case, or the fast half has left over.
///
/// # Safety
/// As for [`Fixed`].
#[cold]
#[inline(never)]
unsafe extern "C" fn fixed_rest<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    payload: *const u8,
) {
    // SAFETY: the caller's.
    unsafe {
        let site = payload.cast::<usize>().sub(1).read_unaligned();
        fixed_rest_at::<LEN, ORDERED>(class, payload, site);
    }
}

/// The same for [`fixed`].
///
/// # Safety
/// As for that.
#[cold]
#[inline(never)]
unsafe fn fixed_rest_elsewhere<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    payload: *const u8,
    site: usize,
) {
    // SAFETY: the caller's.
    unsafe { fixed_rest_at::<LEN, ORDERED>(class, payload, site) }
}

/// # Safety
/// As for [`fixed`].
#[inline(always)]
unsafe fn fixed_rest_at<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    payload: *const u8,
    site: usize,
) {
    if class.wanted() == 1 {
        // SAFETY: the payload by the caller.
        return unsafe { fixed_slow::<LEN, ORDERED>(class, 0, class.want(0).id(), payload, site) };
    }
    // SAFETY: the payload by the caller.
    unsafe { fixed_each::<LEN, ORDERED>(class, payload, site) }
}

/// For each recording. A function of its own: unoptimised, it takes stack, of which handlers of signals may
/// have little.
///
/// # Safety
/// As for [`fixed`].
#[inline(never)]
unsafe fn fixed_each<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    payload: *const u8,
    site: usize,
) {
    let write = |slot, id| {
        // SAFETY: the payload by the caller.
        if !unsafe { fixed_into::<LEN, ORDERED>(class, slot, id, payload) } {
            // SAFETY: the payload by the caller.
            unsafe { fixed_slow::<LEN, ORDERED>(class, slot, id, payload, site) };
        }
    };
    // SAFETY: the payload by the caller.
    unsafe { for_each_recording(class, &[Segment::new(payload, LEN)], write) };
}

/// Writes the event for one recording by the fast half, if that can.
///
/// # Safety
/// As for [`fixed`].
#[inline(always)]
unsafe fn fixed_into<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    slot: usize,
    id: u16,
    payload: *const u8,
) -> bool {
    let Some(entry) = thread::entry_offset(slot) else { return false };
    // 0: switched off since; or one of those with `LOCATED`, in one comparison.
    if id as i16 <= 0 {
        return false;
    }
    // Relaxed: the attachment that the pointer leads to is complete under the key that the sequence compares
    // first.
    let (attachment, rseq_offset) = (ATTACHMENTS[slot].load(Relaxed), RSEQ_OFFSET.load(Relaxed));
    let length = HEADER + CONTEXT + LEN;
    // SAFETY: the attachment is always valid.
    let fits = length <= MIN_SUB_BUFFER / 2 || length <= unsafe { &*attachment }.largest_event();
    // SAFETY: the payload by the caller. A slot's attachment is always valid; while its key is the thread's,
    // the agent keeps the region mapped, and `RSEQ_OFFSET` was stored before that key.
    fits && unsafe {
        publish::fixed::<LEN, ORDERED>(attachment, rseq_offset, entry, class.want(slot), id, payload)
    }
}

/// The usual case with protocol `Smp`, whose instructions profit from knowing `LEN`.
///
/// # Safety
/// As for [`fixed`].
#[inline(never)]
unsafe fn fixed_slow<const LEN: usize, const ORDERED: bool>(
    class: &'static EventClass,
    slot: usize,
    id: u16,
    payload: *const u8,
    site: usize,
) {
    let segments = &[Segment::new(payload, LEN)];
    // SAFETY: the caller's.
    let id = if id == 0 { unsafe { agent::first(class, slot, segments) } } else { id };
    if id != 0 {
        // SAFETY: the caller's.
        unsafe { slow::<ORDERED>(class, slot, id, segments, site) };
    }
}

/// A payload of several segments, and the address at which it is emitted; 0 if that is not known.
pub(crate) struct Gathered<'s> {
    pub(crate) segments: &'s [Segment],
    pub(crate) site: usize,
}

/// The function [`gather`], for sites.
pub(crate) struct Gather<const ORDERED: bool>;

impl<const ORDERED: bool> Callee for Gather<ORDERED> {
    /// # Safety
    /// `class` is an event class; `gathered` is the address of a [`Gathered`], whose segments are readable
    /// and stay unchanged.
    #[inline(never)]
    unsafe extern "C" fn call(class: *const (), gathered: *const u8) {
        // SAFETY: the caller's.
        let (class, gathered): (&'static EventClass, &Gathered<'_>) =
            unsafe { (&*class.cast(), &*gathered.cast()) };
        let &Gathered { segments, site } = gathered;
        let write = |slot: usize, id: u16| {
            // SAFETY: the attachment is always valid.
            let attachment = unsafe { &*ATTACHMENTS[slot].load(Relaxed) };
            let (key, tid) = thread::with(|mark| {
                let entry = &mark.entries[slot];
                (entry.key.load(Relaxed), Tid(entry.tid.load(Relaxed)))
            });
            let done = !is_located(id)
                && key == attachment.key()
                && Segment::total(segments) <= attachment.largest_event() - EXTENDED_HEADER - CONTEXT
                && {
                    let to = Destination { attachment, key, rseq_offset: RSEQ_OFFSET.load(Relaxed), tid };
                    // SAFETY: the segments by the caller; the rest as in `fixed_into`.
                    let outcome =
                        unsafe { publish::gather::<ORDERED>(to, class.want(slot), id, segments, false) };
                    matches!(outcome, Outcome::Written | Outcome::Disabled)
                };
            if !done {
                // SAFETY: the segments by the caller.
                unsafe { slow::<ORDERED>(class, slot, id, segments, site) };
            }
        };
        // SAFETY: the segments by the caller.
        unsafe { for_each_recording(class, segments, write) };
    }
}

/// The same, with a function that gives the class.
pub(crate) struct GatherOf<const ORDERED: bool>;

impl<const ORDERED: bool> Callee for GatherOf<ORDERED> {
    /// # Safety
    /// As for [`Gather`]; `class` is a function.
    unsafe extern "C" fn call(class: *const (), gathered: *const u8) {
        // SAFETY: the caller's.
        unsafe {
            let class = core::mem::transmute::<*const (), fn() -> &'static EventClass>(class);
            Gather::<ORDERED>::call(core::ptr::from_ref(class()).cast(), gathered);
        }
    }
}

/// Records an event gathered from segments.
///
/// # Safety
/// All segments are readable and stay unchanged.
#[inline]
pub(crate) unsafe fn gather<const ORDERED: bool>(class: &'static EventClass, gathered: &Gathered<'_>) {
    // SAFETY: the caller's.
    unsafe { Gather::<ORDERED>::call(core::ptr::from_ref(class).cast(), ptr::from_ref(gathered).cast()) }
}

/// Runs `body` for each recording that wants this event, with its number and the class's id in it.
///
/// # Safety
/// Every segment is readable.
#[inline(always)]
unsafe fn for_each_recording(
    class: &'static EventClass,
    segments: &[Segment],
    mut body: impl FnMut(usize, u16),
) {
    let wanted = class.wanted();
    let mut left = wanted % FILTERED;
    while left != 0 {
        let slot = left.trailing_zeros() as usize % RECORDINGS;
        left &= left - 1;
        let id = class.want(slot).id();
        if id == 0 {
            // SAFETY: the caller's.
            let id = unsafe { agent::first(class, slot, segments) };
            if id != 0 {
                body(slot, id);
            }
            continue;
        }
        // SAFETY: the caller's.
        if wanted & FILTERED << slot == 0 || unsafe { agent::accepts(class, slot, segments) } {
            body(slot, id);
        }
    }
}

/// # Safety
/// As for [`gather`].
#[inline(always)]
unsafe fn slow<const ORDERED: bool>(
    class: &'static EventClass,
    slot: usize,
    id: u16,
    segments: &[Segment],
    site: usize,
) {
    if is_located(id) {
        // SAFETY: the caller's.
        return unsafe { with_site::<ORDERED>(class, slot, id, segments, site) };
    }
    // SAFETY: the caller's.
    unsafe { write::<ORDERED>(class, slot, id, segments) }
}

/// Puts the site's address before the payload.
///
/// # Safety
/// As for [`gather`].
#[cold]
#[inline(never)]
unsafe fn with_site<const ORDERED: bool>(
    class: &'static EventClass,
    slot: usize,
    id: u16,
    segments: &[Segment],
    site: usize,
) {
    let site = (site as u64).to_le_bytes();
    let first = Segment::new(site.as_ptr(), site.len());
    // Handlers of signals may have little stack: no more than twice what the site itself takes.
    macro_rules! smallest {
        ($($room:literal)*) => { match segments.len() {
            // SAFETY: the address is this function's, the rest the caller's.
            $(..$room => unsafe { with_first::<ORDERED, $room>(class, slot, id, first, segments) },)*
            _ => agent::too_large(slot),
        } };
    }
    smallest!(8 16 32 64 128 256 512);
}

/// # Safety
/// As for [`gather`], of all segments, for which there is room.
#[inline(never)]
unsafe fn with_first<const ORDERED: bool, const ROOM: usize>(
    class: &'static EventClass,
    slot: usize,
    id: u16,
    first: Segment,
    segments: &[Segment],
) {
    let mut all = [first; ROOM];
    all[1..=segments.len()].copy_from_slice(segments);
    // SAFETY: the caller's.
    unsafe { write::<ORDERED>(class, slot, id, &all[..=segments.len()]) }
}

/// # Safety
/// As for [`gather`].
#[inline(always)]
unsafe fn write<const ORDERED: bool>(class: &'static EventClass, slot: usize, id: u16, segments: &[Segment]) {
    // SAFETY: the caller's.
    unsafe {
        if !agent::write_smp::<ORDERED>(class, slot, id, segments) {
            agent::write(class, slot, id, segments);
        }
    }
}
