//! The event path: takes a payload to the buffer of the CPU.
//!
//! The fast half is `tracewing_ring::publish::fixed`, one restartable sequence; whatever it leaves over (a thread's first
//! event, a full sub-buffer, a payload of variable size) goes to the agent.

use core::sync::atomic::Ordering::*;

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, HEADER};
use tracewing_abi::region::MIN_SUB_BUFFER;
pub use tracewing_ring::Segment;
use tracewing_ring::publish::{self, Destination, Outcome};
use tracewing_ring::thread;

use crate::agent::{self, ATTACHMENT, RSEQ_OFFSET};
use crate::class::EventClass;

/// Records an event of constant payload size.
///
/// # Safety
/// `payload` points to `LEN` readable bytes.
#[inline(never)]
pub unsafe fn fixed<const LEN: usize, const ORDERED: bool>(class: &'static EventClass, payload: *const u8) {
    let id = class.id() as u16;
    if id == 0 {
        return; // switched off since the site looked
    }
    // Relaxed: the attachment behind the pointer is complete under the key that the sequence compares first.
    let (attachment, rseq_offset) = (ATTACHMENT.load(Relaxed), RSEQ_OFFSET.load(Relaxed));
    let length = HEADER + CONTEXT + LEN;
    // SAFETY: the attachment is always valid.
    if length <= MIN_SUB_BUFFER / 2 || length <= unsafe { &*attachment }.largest_event() {
        // SAFETY: the payload by the caller. `ATTACHMENT` always points to an attachment; while its key is the thread's,
        // the agent keeps the region mapped, and `RSEQ_OFFSET` was stored before that key.
        if unsafe { publish::fixed::<LEN, ORDERED>(attachment, rseq_offset, id, payload) } {
            return;
        }
    }
    let segments = [Segment { start: payload, len: LEN }];
    // SAFETY: the caller's.
    unsafe {
        if !agent::write_smp(id, &segments) {
            agent::write(id, &segments);
        }
    }
}

/// Records an event gathered from segments.
///
/// # Safety
/// All segments are readable and stay unchanged.
#[inline(never)]
pub unsafe fn gather<const ORDERED: bool>(class: &'static EventClass, segments: &[Segment]) {
    let id = class.id() as u16;
    if id == 0 {
        return; // switched off since the site looked
    }
    // SAFETY: the attachment is always valid.
    let attachment = unsafe { &*ATTACHMENT.load(Relaxed) };
    let (key, tid) = thread::with(|mark| (mark.key.load(Relaxed), mark.tid.load(Relaxed)));
    if key == attachment.key()
        && Segment::total(segments) <= attachment.largest_event() - EXTENDED_HEADER - CONTEXT
    {
        let to = Destination { attachment, key, rseq_offset: RSEQ_OFFSET.load(Relaxed), tid };
        // SAFETY: the segments by the caller; the rest as in `fixed`.
        if unsafe { publish::gather::<ORDERED>(to, id, segments, false) } == Outcome::Written {
            return;
        }
    }
    // SAFETY: the caller's.
    unsafe {
        if !agent::write_smp(id, segments) {
            agent::write(id, segments);
        }
    }
}
