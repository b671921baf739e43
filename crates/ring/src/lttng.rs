//! Protocols `Smp` and `Local`: LTTng's scheme, for environments without restartable sequences.
//!
//! Source: Desnoyers and Dagenais, *Lockless Multi-Core High-Throughput Buffering Scheme for Kernel Tracing*
//! (section 4). Space is reserved by a compare-and-swap on the write count (`CpuControl::head`) and committed
//! by an add to the sub-buffer's commit count. A sub-buffer is complete when its commit count says that all
//! its bytes were committed in this lap. With protocol [`Smp`] both instructions are locked, since a thread
//! may migrate between them; with [`Local`] they are not, since the caller stays on its CPU and only
//! interrupts (or signal handlers, for a thread that is pinned and alone) intervene, as in `examples/poller`.
//!
//! | paper | here |
//! |---|---|
//! | Equation 1, Buffer Full | `Buffer::claim` |
//! | Equation 2, Sub-buffer Ready; Equation 4, Sub-buffer Written | `Reader::is_complete`, `Reader::has_more` |
//! | Equation 3, Fully Committed | `reserve::is_fully_committed` |
//! | Algorithm 1, TRYRESERVESLOT; 2, RESERVESLOT; 4, FORCESWITCH | `reserve::try_reserve_slot`, `reserve_slot`, [`force_switch`] |
//! | PUSHREADER | `Buffer::claim`: the table's entry goes to the writer, in place of the read count |
//! | SWITCHOLDSUBBUF, SWITCHNEWSUBBUF | `reserve::switch_old_sub_buffer`, `switch_new_sub_buffer` |
//! | ENDSWITCHCURRENT | none: an event that would end on a sub-buffer's last byte goes to the next one |
//! | Algorithm 3, COMMITSLOT | `commit_slot` |
//! | Algorithm 5, READPOLL; 6, READGETSUBBUF; 7, READPUTSUBBUF | [`crate::Reader::poll`], [`crate::Reader::next`], [`crate::Reader::release`] |
//! | Algorithm 8, ASYNCWAKEUPREADERSTIMER | the owner of the reader polls by a timer of its own; writers wake no reader |
//!
//! Differences:
//!
//! - Retries are bounded ([`ATTEMPTS`]); the paper's loop is not. No thread waits: a full buffer loses an
//!   event.
//! - The commit count is changed with release and acquire, so Algorithm 6's inter-processor interrupts are
//!   not needed; on x86-64 that costs nothing.
//! - The reader may take part of a sub-buffer without forcing a switch: up to the write count, at a moment
//!   when the commit count has caught up with it.
//! - The commit seq is updated whenever everything reserved is committed, not only at the end of a
//!   sub-buffer: it says how far the buffer of a dead process can be read. It is stored, not compared and
//!   swapped, since nothing else depends on it.
//!
//! One process writes to such a buffer: a thread that is killed between reserving and committing takes its
//! process with it, and then the reader finalises the buffer ([`crate::Reader::finalise`]).
//!
//! Interleavings (W, V writers; R the reader):
//! 1. W loads the write count; V reserves; W's compare-and-swap fails; W tries again with a new stamp. Stamps
//!    do not go backwards in a buffer: W read its stamp after the count that its compare-and-swap found
//!    unchanged; or the processor ran ahead and read it before the count, and then V's stamp is known to be
//!    no later (`reserve::look`).
//! 2. W's event crosses into the next sub-buffer: the one writer whose compare-and-swap does that closes the
//!    old sub-buffer, commits its rest, and writes the new one's header. V may fill the new sub-buffer
//!    meanwhile; R does not look at it until the header is committed.
//! 3. R releases a sub-buffer: it stores `consumed` (release), and W loads that (acquire) before it reserves
//!    there.
//! 4. Overwrite mode: W is interrupted between reserving and committing, and V goes around the whole ring: V
//!    finds that W's sub-buffer is not fully committed, and loses events until it is.
//! 5. Overwrite mode: R exchanges a sub-buffer only when it is fully committed, so no writer is or will be
//!    inside it.

mod access;
mod reserve;

#[cfg(loom)]
pub use access::interrupts;
pub use access::{Access, Local, Smp};
pub use reserve::{ATTEMPTS, force_switch};

use core::mem::ManuallyDrop;

use reserve::{Moment, Place, commit_slot, look, reserve_slot};
use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER, EXTENDED_ID, HEADER, header_word};
use tracewing_abi::region::{Clock, Loss};

use tracewing_units::Tid;

use crate::{Buffer, Region, Segment};

/// Reserved space for one event: written in place, then committed. A dropped slot is committed with its
/// remaining payload zeroed, since a gap would hide everything after it.
pub struct Slot<A: Access> {
    buffer: Buffer,
    place: Place,
    /// Offset in the sub-buffer of the next payload byte.
    at: usize,
    _access: core::marker::PhantomData<A>,
}

/// A look at one CPU's buffer. It fixes the stamp of the next event, unless another writer is faster. Work
/// done between the look and the write is free: it overlaps with reading the clock.
pub struct Look<A: Access> {
    buffer: Buffer,
    clock: Clock,
    moment: Moment,
    ordered: bool,
    _access: core::marker::PhantomData<A>,
}

// Inlined only in optimised builds: otherwise each copy takes stack of its own, and signal handlers may have
// little.
impl<A: Access> Look<A> {
    /// Looks at a buffer. With `Smp` any works; that of the current CPU is the fastest. If `ordered`,
    /// the stamp is later than every load that the thread has done so far, at the cost of a fence.
    ///
    /// # Panics
    /// The region has no such buffer.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn new(region: &Region, buffer: usize, ordered: bool) -> Self {
        let (buffer, clock) = (region.buffer(buffer), region.clock());
        let moment = look::<A>(&buffer, clock, ordered);
        Self { buffer, clock, moment, ordered, _access: core::marker::PhantomData }
    }

    /// As [`reserve`].
    ///
    /// # Errors
    /// As [`reserve`].
    ///
    /// # Safety
    /// As for [`reserve`]; obligation 2 holds from the look on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub unsafe fn reserve(self, tid: Tid, id: u16, payload: usize) -> Result<Slot<A>, Loss> {
        let Self { buffer, clock, moment, ordered, _access } = self;
        let reserved =
            if payload.saturating_add(EXTENDED_HEADER + CONTEXT) > buffer.geometry().largest_event() {
                Err(Loss::TooLarge)
            } else {
                reserve_slot::<A>(&buffer, clock, moment, ordered, payload + CONTEXT)
            };
        let place = reserved.inspect_err(|loss| buffer.count_loss(*loss))?;
        let mut slot = Slot { at: place.at, buffer, place, _access };
        slot.put_header(tid, id);
        Ok(slot)
    }

    /// As [`write()`].
    ///
    /// # Errors
    /// As [`write()`].
    ///
    /// # Safety
    /// As for [`write()`]; obligation 2 holds from the look on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub unsafe fn write(self, tid: Tid, id: u16, segments: &[Segment]) -> Result<(), Loss> {
        // SAFETY: obligation 2.
        let mut slot = unsafe { self.reserve(tid, id, Segment::total(segments)) }?;
        for segment in segments {
            // SAFETY: obligation 1; the slot is as long as all segments together.
            unsafe { slot.put_raw(segment.start, segment.len) };
        }
        // Inlined, unlike a destructor; this takes less stack.
        #[cfg(not(debug_assertions))]
        slot.commit();
        Ok(())
    }
}

/// Reserves space for an event of `payload` bytes in a buffer, and writes its header. With `Smp` any works;
/// that of the current CPU is the fastest.
///
/// # Errors
/// The reason why the event is lost; the loss is already counted.
///
/// # Panics
/// The region has no such buffer.
///
/// # Safety
/// 1. The region's protocol is that of `A`, and it stays mapped until the slot is committed or dropped.
/// 2. For `Local`: until then the caller stays on its CPU, `buffer` is that CPU's alone, and the only
///    other code there that writes to it interrupts the caller and ends before the caller continues.
#[inline]
pub unsafe fn reserve<A: Access>(
    region: &Region,
    buffer: usize,
    tid: Tid,
    id: u16,
    payload: usize,
) -> Result<Slot<A>, Loss> {
    // SAFETY: the caller's.
    unsafe { Look::<A>::new(region, buffer, false).reserve(tid, id, payload) }
}

/// Writes an event whose payload is the concatenation of `segments`, or counts it lost.
///
/// # Errors
/// The reason why the event was lost; the loss is already counted.
///
/// # Panics
/// The region has no such buffer.
///
/// # Safety
/// 1. Every segment is readable.
/// 2. Those of [`reserve`], for the length of the call.
#[inline]
pub unsafe fn write<A: Access>(
    region: &Region,
    buffer: usize,
    tid: Tid,
    id: u16,
    segments: &[Segment],
) -> Result<(), Loss> {
    // SAFETY: the caller's.
    unsafe { Look::<A>::new(region, buffer, false).write(tid, id, segments) }
}

impl<A: Access> Slot<A> {
    /// Writes the header and context of a slot that was just reserved.
    #[cfg_attr(not(debug_assertions), inline(always))] // as `Look`'s
    fn put_header(&mut self, tid: Tid, id: u16) {
        let (stamp, length) = (self.place.stamp, self.place.length as u16);
        // SAFETY: arrays are readable, and a slot has room for header and context.
        unsafe {
            if self.place.is_extended {
                self.put_raw(header_word(stamp, EXTENDED_ID, length).to_le_bytes().as_ptr(), 8);
                self.put_raw(stamp.to_le_bytes().as_ptr(), 8);
                self.put_raw(id.to_le_bytes().as_ptr(), 2);
            } else {
                self.put_raw(header_word(stamp, id, length).to_le_bytes().as_ptr(), HEADER);
            }
            self.put_raw(tid.0.to_le_bytes().as_ptr(), CONTEXT);
        }
    }

    /// Bytes of payload that are not written yet.
    pub fn remaining(&self) -> usize {
        self.place.at + self.place.length - self.at
    }

    /// Writes the next bytes of payload; those that do not fit are left out.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(self.remaining());
        // SAFETY: a slice is readable, and there is room.
        unsafe { self.put_raw(bytes.as_ptr(), len) }
    }

    /// # Safety
    /// 1. `len` bytes from `start` are readable.
    /// 2. `len` is at most [`Slot::remaining`].
    #[cfg_attr(not(debug_assertions), inline(always))] // as `Look`'s
    unsafe fn put_raw(&mut self, start: *const u8, len: usize) {
        // SAFETY: the obligations; the slot was reserved by this caller, and lies in one sub-buffer.
        unsafe { self.buffer.write(self.place.physical, self.at, start, len) };
        self.at += len;
    }

    /// Commits the event. Payload that was not written is zero.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn commit(self) {
        ManuallyDrop::new(self).finish();
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn finish(&mut self) {
        while self.remaining() > 0 {
            self.put(&[0; HEADER]);
        }
        commit_slot::<A>(&self.buffer, self.place.sequence, self.place.length);
    }
}

impl<A: Access> Drop for Slot<A> {
    #[inline(always)]
    fn drop(&mut self) {
        self.finish();
    }
}
