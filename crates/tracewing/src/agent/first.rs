//! First events of classes that are made while the program runs. Such a class has no id before the recorder
//! has answered, and no thread waits for that or asks for it. Until then its events are written as
//! `tracewing:first`, with the class's key (`tracewing_abi::first`), and before the first of them its
//! description; the recorder replaces them by the events themselves. So they are recorded even if the program
//! ends at once, or is killed.
//!
//! When the recorder finds such events, it has the agent's thread describe the class, like all others. From
//! then on the class has an id, and its events take the fast path. In a program under a filter for system
//! calls they remain first events.

use core::sync::atomic::Ordering::*;

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER};
use tracewing_abi::first::{DESCRIPTION, HEADER, Key};
use tracewing_abi::region::{Loss, Mode};
use tracewing_ring::{Segment, opened};

use super::attach::{self, Joined};
use super::identity;
use super::made::{First, Made};
use super::write::{count_loss, lose_in_child, write};
use crate::Event;
use crate::class::EventClass;

/// Segments of a first event; of one with more than this the recorder learns by a counted loss.
const MOST_SEGMENTS: usize = 16;
/// A process's id if it is unknown; the event is then lost.
const NOT_KNOWN: u32 = u32::MAX;

/// Writes an event of a class without an id, where the recording takes it; else the class has been switched
/// off since, or has just got its id: then gives that, for an event that its filter accepts, and else 0.
///
/// # Safety
/// Every segment is readable.
#[cold]
#[inline(never)]
pub(crate) unsafe fn first(class: &'static EventClass, slot: usize, segments: &[Segment]) -> u16 {
    if !class.is_pending(slot) {
        let id = class.want(slot).id();
        // SAFETY: the caller's.
        let accepts = || unsafe { super::accepts(class, slot, segments) };
        return if id != 0 && (class.filter(slot) == 0 || accepts()) { id } else { 0 };
    }
    // SAFETY: the caller's.
    unsafe { write_first(class, slot, segments) };
    0
}

/// # Safety
/// As for [`first`]; the class is pending.
unsafe fn write_first(class: &'static EventClass, slot: usize, segments: &[Segment]) {
    // SAFETY: only classes that `made` has made are ever pending.
    let made = unsafe { Made::of(class) };
    let pid = identity::of_caller().map_or(NOT_KNOWN, |caller| caller.pid.as_unsigned());
    let Some(joined) = attach::joined(slot) else { return };
    if !joined.has_region() {
        return lose_in_child(&joined, First::class().want(slot).get());
    }
    let is_described = describe(made, slot, &joined);
    drop(joined);
    // Where the description is lost, so is the event, and both are counted as one.
    if is_described {
        // SAFETY: the caller's.
        unsafe { send(slot, made.key(), pid, segments) };
    }
}

/// Makes sure that the class's description is in the buffers before its first event. `false` if it was lost.
///
/// Written once per recording: the recorder reads everything that it does not count as lost. In overwrite
/// mode the description may be overwritten before the recorder reads it, so it is repeated in each sub-buffer
/// that this process has opened. Threads and signal handlers that get here simultaneously write it several
/// times, which is harmless.
fn describe(made: &Made, slot: usize, joined: &Joined) -> bool {
    let described = made.described(slot);
    if described.load(Relaxed) == place(joined) {
        return true;
    }
    let encoded = made.encoded();
    if encoded.len() + MOST_AROUND > joined.region.geometry().largest_event() {
        return true; // the recorder asks for it
    }
    let segment = Segment::new(encoded.as_ptr(), encoded.len());
    // SAFETY: a slice of a class that is never freed.
    let is_written = unsafe { send(slot, made.key(), DESCRIPTION, &[segment]) };
    if is_written {
        // Relaxed: a thread that finds this finds the description before its own event, since the buffers are
        // read whole.
        described.store(place(joined), Relaxed);
        if joined.region.geometry().mode() == Mode::Overwrite {
            joined.region.news().fetch_add(1, Relaxed); // orders nothing: the recorder asks later
        }
    }
    is_written
}

/// Bytes of an event around a description.
const MOST_AROUND: usize = HEADER + EXTENDED_HEADER + CONTEXT;

/// Where a description that is written now can be read: a number for the recording, and in overwrite mode for
/// the sub-buffer.
fn place(joined: &Joined) -> u64 {
    let recording = joined.region.recording();
    let recording = u32::from_le_bytes([recording[0], recording[1], recording[2], recording[3]]) | 1;
    let sub_buffer = match joined.region.geometry().mode() {
        Mode::Overwrite => opened(),
        Mode::Discard => 0,
    };
    u64::from(recording) << 32 | u64::from(sub_buffer)
}

/// Writes a [`First`] with this payload, or counts it lost. Says whether it is written.
///
/// # Safety
/// Every segment is readable.
unsafe fn send(slot: usize, key: Key, pid: u32, segments: &[Segment]) -> bool {
    let size = Segment::total(segments);
    let (Ok(length), true) = (u16::try_from(size), segments.len() < MOST_SEGMENTS) else {
        if let Some(joined) = attach::joined(slot) {
            count_loss(&joined, Loss::TooLarge);
        }
        return false;
    };
    let mut header = [0_u8; HEADER];
    header[..8].copy_from_slice(&key[0].to_le_bytes());
    header[8..16].copy_from_slice(&key[1].to_le_bytes());
    header[16..20].copy_from_slice(&pid.to_le_bytes());
    header[20..].copy_from_slice(&length.to_le_bytes());
    let mut all = [Segment::new(header.as_ptr(), HEADER); MOST_SEGMENTS];
    all[1..=segments.len()].copy_from_slice(segments);
    let first = First::class();
    let id = first.want(slot).id();
    // SAFETY: the header is this function's, the rest the caller's.
    id != 0 && unsafe { write(first, slot, id, &all[..=segments.len()]) }
}
