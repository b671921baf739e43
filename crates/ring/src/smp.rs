//! Protocol `Smp`: LTTng's scheme for processors and systems without restartable sequences.
//!
//! Source: Desnoyers and Dagenais, *Lockless Multi-Core High-Throughput Buffering Scheme for Kernel Tracing*, section
//! 4. Space is reserved by a compare-and-swap on the write count (`CpuControl::head`; TryReserveSlot, ReserveSlot) and
//! committed by an add to the sub-buffer's commit count (CommitSlot); both are locked, since a thread may migrate
//! between them. A sub-buffer is complete when its commit count says that all its bytes have been committed in this lap
//! (the paper's Equations 1-4). Differences:
//!
//! - Retries are bounded ([`ATTEMPTS`]); the paper's loop is not.
//! - The reader may take part of a sub-buffer without forcing a switch: up to the write count, at a moment when the
//!   commit count has caught up with it.
//! - The reader hands sub-buffers over zeroed, and an event's first word is stored last: a word that is not zero marks a
//!   complete event. So what a killed process left can be read up to its first uncommitted event.
//! - Nobody waits: a full buffer loses the new event.
//!
//! One process writes to such a region: a thread that is killed between reserving and committing takes its process
//! with it, and then the reader finalises the buffer (`Reader::finalise`).
//!
//! Interleavings (W, V writers anywhere; R the reader):
//! 1. W loads the write count; V reserves; W's compare-and-swap fails; W tries again with a new stamp. Stamps do not go
//!    backwards in a buffer: W's was read after the count that its compare-and-swap found unchanged.
//! 2. W's event crosses into the next sub-buffer: the one writer whose compare-and-swap does that closes the old
//!    sub-buffer, commits its rest, and writes the new one's header. V may fill the new sub-buffer meanwhile; R does not
//!    look at it before the header is committed, since the header's `sequence` is stored last (release) and R checks it.
//! 3. R releases a sub-buffer: zeroes it, then stores `consumed` (release); W loads `consumed` (acquire) before it
//!    reserves in it.

use core::sync::atomic::{Ordering::*, compiler_fence};

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, header_word};
use tracewing_abi::region::{Clock, Loss, SUB_BUFFER_HEADER};

use crate::clock::now_ordered;
use crate::{Cpu, Region, Segment};

/// Attempts to reserve before the event is counted lost: each failure means that another thread has reserved on the
/// same CPU in between.
pub const ATTEMPTS: u32 = 64;

/// Space for one event.
struct Slot {
    position: u64,
    stamp: u64,
    extended: bool,
    length: usize,
}

/// Writes the event `id` of thread `tid` into the buffer of `cpu` (any CPU will do; the current one is the fastest), or
/// counts it lost.
///
/// # Errors
/// Why the event was lost; that is counted already.
///
/// # Panics
/// The region has no such CPU.
///
/// # Safety
/// 1. Every segment is readable.
/// 2. The region has protocol `Smp` and stays mapped during the call.
pub unsafe fn write(
    region: &Region,
    cpu: usize,
    tid: i32,
    id: u16,
    segments: &[Segment],
) -> Result<(), Loss> {
    let buffer = region.cpu(cpu);
    let payload = CONTEXT.saturating_add(Segment::total(segments));
    let slot = if payload.saturating_add(EXTENDED_HEADER) > region.geometry().largest_event() {
        Err(Loss::TooLarge)
    } else {
        reserve(&buffer, region.clock(), payload)
    };
    let slot = slot.inspect_err(|loss| buffer.count_loss(*loss))?;
    // SAFETY: obligations 1 and 2; the slot was reserved by this call.
    unsafe { fill(&buffer, &slot, tid, id, segments) };
    commit(&buffer, slot.position, slot.length);
    Ok(())
}

/// ReserveSlot: repeats TryReserveSlot until no other writer was faster.
fn reserve(buffer: &Cpu, clock: Clock, payload: usize) -> Result<Slot, Loss> {
    for _ in 0..ATTEMPTS {
        if let Some(slot) = try_reserve(buffer, clock, payload)? {
            return Ok(slot);
        }
    }
    Err(Loss::Interrupted)
}

/// TryReserveSlot: `None` when another writer was faster.
fn try_reserve(buffer: &Cpu, clock: Clock, payload: usize) -> Result<Option<Slot>, Loss> {
    let geometry = buffer.geometry();
    let bytes = geometry.sub_buffer_bytes() as u64;
    // Acquire, with the compare-and-swap below: whoever moved the count to this value took its stamp before.
    let head = buffer.control().head.load(Acquire);
    let mut stamp = now_ordered(clock);
    let (current, at) = (head / bytes, head % bytes);
    // A sub-buffer that a faster writer has reserved but not yet opened has an unknown begin: its events are extended.
    let opened = buffer.sub_buffer(current);
    let known = at != 0 && opened.sequence.load(Acquire) == current + 1; // with the release in `open`
    let begin = opened.begin.load(Relaxed);
    if known {
        stamp = stamp.max(begin); // the clock may have stepped back (suspend, restore)
    }
    let extended = !(known && stamp - begin < 1 << 32);
    let length = payload + if extended { EXTENDED_HEADER } else { HEADER };
    if at != 0 && at + (length as u64) < bytes {
        let claimed = claim(buffer, head, head + length as u64);
        return Ok(claimed.then_some(Slot { position: head, stamp, extended, length }));
    }
    let next = if at == 0 { current } else { current + 1 };
    // Acquire, with the release store in `Reader::release`: the sub-buffer is zeroed and nobody reads it.
    let consumed = buffer.control().consumed.load(Acquire);
    // Below 0: the reader is past it, so `head` is an old one, which the compare-and-swap finds out.
    if next.wrapping_sub(consumed) as i64 >= geometry.sub_buffers() as i64 {
        return Err(Loss::Full);
    }
    let length = payload + HEADER;
    let position = next.wrapping_mul(bytes) + SUB_BUFFER_HEADER as u64;
    if !claim(buffer, head, position + length as u64) {
        return Ok(None);
    }
    if at != 0 {
        close(buffer, current, at, stamp);
    }
    open(buffer, next, stamp);
    Ok(Some(Slot { position, stamp, extended: false, length }))
}

fn claim(buffer: &Cpu, head: u64, new: u64) -> bool {
    // Release, with the acquire load in `try_reserve` and in the reader.
    buffer.control().head.compare_exchange(head, new, AcqRel, Relaxed).is_ok()
}

/// Ends a sub-buffer at offset `at` and commits its unused rest.
fn close(buffer: &Cpu, sequence: u64, at: u64, stamp: u64) {
    let bytes = buffer.geometry().sub_buffer_bytes() as u64;
    let header = buffer.sub_buffer(sequence);
    header.end.store(stamp, Relaxed);
    header.used.store(at, Relaxed);
    commit(buffer, sequence * bytes + at, (bytes - at) as usize); // its release publishes the two
}

/// Writes a new sub-buffer's header and commits it. The header's sequence is stored plus one, so that zeroed memory
/// does not look like sub-buffer 0.
fn open(buffer: &Cpu, sequence: u64, stamp: u64) {
    let header = buffer.sub_buffer(sequence);
    header.begin.store(stamp, Relaxed);
    header.lost.store(buffer.lost_total(), Relaxed);
    // Release, with the acquire loads in `try_reserve` and `Reader`: begin and losses are there.
    header.sequence.store(sequence.wrapping_add(1), Release);
    let start = sequence.wrapping_mul(buffer.geometry().sub_buffer_bytes() as u64);
    commit(buffer, start, SUB_BUFFER_HEADER);
}

/// CommitSlot.
fn commit(buffer: &Cpu, position: u64, length: usize) {
    let geometry = buffer.geometry();
    let index = (position / geometry.sub_buffer_bytes() as u64) as usize & (geometry.sub_buffers() - 1);
    // Release, with the acquire load in the reader: when the count is complete, so are the bytes.
    buffer.control().committed[index].fetch_add(length as u64, Release);
}

/// Writes the event; its first word, the commit mark, last.
///
/// # Safety
/// 1. Every segment is readable.
/// 2. `slot` was reserved in `buffer` by the caller, for exactly this event.
unsafe fn fill(buffer: &Cpu, slot: &Slot, tid: i32, id: u16, segments: &[Segment]) {
    let start = buffer.data(slot.position);
    let header = if slot.extended { EXTENDED_HEADER } else { HEADER };
    // SAFETY: obligation 2: `length` bytes from `start` on are this writer's, and what is written adds up to it
    // (obligation 1 for the sources). The slot does not cross a sub-buffer's end.
    unsafe {
        if slot.extended {
            start.add(HEADER).cast::<u64>().write_unaligned(slot.stamp.to_le());
            start.add(HEADER + 8).cast::<u16>().write_unaligned(id.to_le());
        }
        start.add(header).cast::<i32>().write_unaligned(tid.to_le());
        let mut to = start.add(header + CONTEXT);
        for segment in segments {
            core::ptr::copy_nonoverlapping(segment.start, to, segment.len);
            to = to.add(segment.len);
        }
    }
    let id = if slot.extended { EXTENDED_ID } else { id };
    let word = header_word(slot.stamp, id, slot.length as u16);
    compiler_fence(Release); // a process killed here leaves a zero word in front of a complete event, never the reverse
    // SAFETY: the first eight bytes of the writer's own slot.
    unsafe { start.cast::<u64>().write_unaligned(word.to_le()) };
}
