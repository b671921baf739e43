//! Reserves and commits: the producer's algorithms of Desnoyers and Dagenais (see [`super`]), section 4.3.1.

use tracewing_abi::event::{EXTENDED_HEADER, HEADER};
use tracewing_abi::region::{Clock, Last, Loss, Mode, SUB_BUFFER_HEADER};

use super::Access;
use crate::Buffer;
use crate::clock::{now, now_ordered};
use crate::opened;
use crate::region::Claim;
use crate::sync::Ordering::*;
use crate::sync::fence;

/// Attempts to reserve before the event is counted as lost. Each failure means that another writer has
/// reserved in the same buffer in between, so some writer makes progress.
pub const ATTEMPTS: u32 = 64;

/// A stretch of a sub-buffer that one writer has reserved.
pub(super) struct Place {
    pub(super) sequence: u64,
    pub(super) physical: usize,
    /// Offset of the event in the sub-buffer.
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) stamp: u64,
    pub(super) is_extended: bool,
}

/// A look at a buffer: its write count, and the clock read after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    head: u64,
    stamp: u64,
}

/// Looks at the buffer.
///
/// The stamp must not be below that of the previous event, which another CPU may have just written; and a
/// processor may read the clock earlier than it loads the write count, by as much as it keeps in flight (some
/// microseconds at most). A fence prevents that, and costs as much as the clock. So the clock is read without
/// a fence, and the stamp is kept if the previous event is known and its stamp is not later; unless the stamp
/// must be `ordered` after every load that the thread has done so far.
#[inline(always)]
pub(super) fn look<A: Access>(buffer: &Buffer, clock: Clock, ordered: bool) -> Moment {
    #[cfg(loom)]
    let early = now(clock); // as processors do
    // Acquire, with the compare-and-swap of the writer that moved the count to this value: its stamp came
    // before.
    let head = buffer.control().head.load(Acquire);
    #[cfg(not(loom))]
    let early = now(clock);
    // Relaxed: the word itself says whether it belongs to `head`.
    let is_in_order = || Last(buffer.control().last.load(Relaxed)).allows(head, early);
    let may_be_early = !ordered && (!A::IS_SHARED || is_in_order());
    Moment { head, stamp: if may_be_early { early } else { now_ordered(clock) } }
}

/// RESERVESLOT (Algorithm 2), for `body` bytes after the event's header, following a first look.
#[cfg_attr(not(debug_assertions), inline(always))] // as `Look`'s functions
pub(super) fn reserve_slot<A: Access>(
    buffer: &Buffer,
    clock: Clock,
    mut moment: Moment,
    ordered: bool,
    body: usize,
) -> Result<Place, Loss> {
    let mut left = ATTEMPTS;
    loop {
        let reserved = try_reserve_slot::<A>(buffer, moment, body).transpose();
        left -= 1;
        if reserved.is_some() || left == 0 {
            return reserved.unwrap_or(Err(Loss::Interrupted));
        }
        moment = look::<A>(buffer, clock, ordered);
    }
}

/// TRYRESERVESLOT (Algorithm 1) and its compare-and-swap; `None` when another writer was faster.
#[cfg_attr(not(debug_assertions), inline(always))] // as `Look`'s functions
fn try_reserve_slot<A: Access>(buffer: &Buffer, moment: Moment, body: usize) -> Result<Option<Place>, Loss> {
    let geometry = buffer.geometry();
    let Moment { head, mut stamp } = moment;
    let (sequence, physical, at) = (geometry.sequence(head), geometry.physical(head), geometry.at(head));
    // A sub-buffer that a faster writer has reserved but not yet opened has an unknown begin: its events take
    // the extended form.
    let header = buffer.header(physical);
    let is_known = at != 0 && header.sequence.load(Acquire) == sequence + 1; // with `switch_new_sub_buffer`
    let begin = header.begin.load(Relaxed);
    if is_known {
        stamp = stamp.max(begin); // the clock may have stepped back (suspend, restore)
    }
    let is_extended = !(is_known && stamp - begin < 1 << 32);
    let length = body + if is_extended { EXTENDED_HEADER } else { HEADER };
    if at == 0 || at + length >= geometry.sub_buffer_bytes() {
        return reserve_in_next::<A>(buffer, head, stamp, body);
    }
    let new_head = head + length as u64;
    if !A::replace(&buffer.control().head, head, new_head) {
        return Ok(None);
    }
    if A::IS_SHARED {
        buffer.control().last.store(Last::new(new_head, stamp).0, Relaxed); // with `look`
    }
    // Partner: the acquire fence in `Reader::copied`. A reader that copies a byte of this event sees that its
    // sub-buffer was claimed, which came before the write count that the compare-and-swap found.
    fence(Release);
    Ok(Some(Place { sequence, physical, at, length, stamp, is_extended }))
}

/// As `try_reserve_slot`, for an event that does not fit the current sub-buffer.
#[cold]
#[inline(never)]
fn reserve_in_next<A: Access>(
    buffer: &Buffer,
    head: u64,
    stamp: u64,
    body: usize,
) -> Result<Option<Place>, Loss> {
    let geometry = buffer.geometry();
    let at = geometry.at(head);
    let (next, physical) = match claim_next(buffer, head) {
        (next, Claim::Granted(physical)) => (next, physical),
        (_, Claim::Full) => return Err(Loss::Full),
        (_, Claim::Stale) => return Ok(None),
    };
    let length = body + HEADER;
    let new_head = geometry.position(next, physical, SUB_BUFFER_HEADER + length);
    if !A::replace(&buffer.control().head, head, new_head) {
        return Ok(None);
    }
    fence(Release); // as in `try_reserve_slot`
    let (stamp, before) = if at == 0 { (stamp, 0) } else { switch_old_sub_buffer::<A>(buffer, head, stamp) };
    switch_new_sub_buffer::<A>(buffer, next, physical, stamp, before);
    Ok(Some(Place { sequence: next, physical, at: SUB_BUFFER_HEADER, length, stamp, is_extended: false }))
}

/// FORCESWITCH (Algorithm 4): ends the current sub-buffer if it holds anything, so that a reader of whole
/// sub-buffers gets it. Returns whether it did: `false` if another writer did so meanwhile, or if there is no
/// room for the next.
///
/// # Panics
/// The region has no such buffer.
///
/// # Safety
/// As for [`super::reserve`], for the length of the call.
pub unsafe fn force_switch<A: Access>(region: &crate::Region, buffer: usize) -> bool {
    let buffer = region.buffer(buffer);
    let geometry = buffer.geometry();
    let head = buffer.control().head.load(Acquire); // as in `try_reserve_slot`
    let stamp = now_ordered(region.clock());
    if geometry.at(head) <= SUB_BUFFER_HEADER {
        return false;
    }
    let (next, Claim::Granted(physical)) = claim_next(&buffer, head) else { return false };
    let new_head = geometry.position(next, physical, SUB_BUFFER_HEADER);
    if !A::replace(&buffer.control().head, head, new_head) {
        return false;
    }
    fence(Release); // as in `try_reserve_slot`
    let (stamp, before) = switch_old_sub_buffer::<A>(&buffer, head, stamp);
    switch_new_sub_buffer::<A>(&buffer, next, physical, stamp, before);
    true
}

/// The sub-buffer after that of `head`, and PUSHREADER for it. Full also means that a writer blocks it: one
/// that has not committed what it reserved there a lap ago, or one that has reserved the current sub-buffer
/// and not opened it.
fn claim_next(buffer: &Buffer, head: u64) -> (u64, Claim) {
    let geometry = buffer.geometry();
    let sequence = geometry.sequence(head);
    if geometry.at(head) == 0 {
        return (sequence, buffer.claim(sequence));
    }
    let next = geometry.later(sequence, 1);
    // Acquire, with `switch_new_sub_buffer`: the contents that the header announces are there.
    let is_opened = buffer.header(geometry.physical(head)).sequence.load(Acquire) == sequence + 1;
    let is_free = geometry.mode() == Mode::Discard || is_fully_committed(buffer, next);
    (next, if is_opened && is_free { buffer.claim(next) } else { Claim::Full })
}

/// Fully Committed (Equation 3): no writer still writes to what the slot of `next` held in the last lap.
fn is_fully_committed(buffer: &Buffer, next: u64) -> bool {
    // Acquire, with `commit_slot`: what the others wrote in the last lap was written before this one's.
    let count = buffer.entry(next).committed.load(Acquire);
    let committed = buffer.geometry().committed(count, next);
    // In this lap already: then `next` is an old number, which the compare-and-swap of the write count will
    // find out.
    committed <= buffer.geometry().sub_buffer_bytes() as u64
}

/// SWITCHOLDSUBBUF: ends the sub-buffer at `head`, and commits its unused rest. Returns its end time, not
/// below its beginning, and the bytes of events up to there.
fn switch_old_sub_buffer<A: Access>(buffer: &Buffer, head: u64, stamp: u64) -> (u64, u64) {
    let geometry = buffer.geometry();
    let (bytes, at) = (geometry.sub_buffer_bytes(), geometry.at(head));
    let header = buffer.header(geometry.physical(head));
    let end = stamp.max(header.begin.load(Relaxed));
    header.end.store(end, Relaxed);
    header.used.store(at as u64, Relaxed);
    let before = header.before.load(Relaxed).wrapping_add((at - SUB_BUFFER_HEADER) as u64);
    commit_slot::<A>(buffer, geometry.sequence(head), bytes - at); // its release publishes the two
    (end, before)
}

/// SWITCHNEWSUBBUF: writes a new sub-buffer's header and commits it.
fn switch_new_sub_buffer<A: Access>(
    buffer: &Buffer,
    sequence: u64,
    physical: usize,
    stamp: u64,
    before: u64,
) {
    let header = buffer.header(physical);
    header.begin.store(stamp, Relaxed);
    header.lost.store(buffer.lost_total(), Relaxed);
    header.before.store(before, Relaxed);
    // Release, with the acquire loads in `try_reserve_slot`, `claim_next` and the reader: the other words are
    // there.
    header.sequence.store(sequence + 1, Release);
    commit_slot::<A>(buffer, sequence, SUB_BUFFER_HEADER);
    opened::note();
}

/// COMMITSLOT (Algorithm 3): `length` bytes of the sub-buffer are complete.
///
/// The commit seq is updated when everything reserved in the sub-buffer is committed. Comparing the count
/// with the end of the caller's own slot would not show that: nested writers of equal events commit the last
/// one first.
#[inline(always)]
pub(super) fn commit_slot<A: Access>(buffer: &Buffer, sequence: u64, length: usize) {
    let (geometry, entry) = (buffer.geometry(), buffer.entry(sequence));
    // Partner: the load in `Reader::ahead`. When the count is complete, so are the bytes.
    let count = A::add(&entry.committed, length as u64);
    let committed = geometry.committed(count, sequence);
    // Not older than any reservation that was committed before: the add has acquired all of those.
    let head = buffer.control().head.load(Relaxed);
    let is_current = geometry.sequence(head) == sequence;
    let reserved = if is_current { geometry.at(head) } else { geometry.sub_buffer_bytes() };
    if committed == reserved as u64 {
        // Two writers on two CPUs may store in the wrong order; then the seq is too low until the next event.
        // Release, with the load in `Reader::left_by_the_dead`.
        entry.commit_seq.store(count, Release);
    }
}
