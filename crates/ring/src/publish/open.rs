//! Opens the next sub-buffer of a CPU: rare, and a sequence of its own (`open/sequence.rs`).

#[cfg(not(loom))]
mod sequence;

use tracewing_abi::region::{Loss, SUB_BUFFER_HEADER, SubBufferHeader};
use tracewing_units::Cpu;

#[cfg(not(loom))]
use super::Destination;
use super::Opened;
use crate::Buffer;
#[cfg(not(loom))]
use crate::Region;
#[cfg(not(loom))]
use crate::opened;
use crate::region::Claim;
use crate::sync::AtomicU64;
use crate::sync::Ordering::*;

/// Inputs that the sequence reads from memory, because registers are scarce.
#[repr(C)]
pub(super) struct Request {
    pub(super) cpu: u64,
    pub(super) head: u64,
    pub(super) new_head: u64,
    pub(super) control: *const AtomicU64,
    pub(super) old: *const SubBufferHeader,
    pub(super) new: *const SubBufferHeader,
    pub(super) used: u64,
    pub(super) sequence: u64,
    pub(super) lost: u64,
    pub(super) before: u64,
}

/// Closes the sub-buffer of `cpu` that an event found full at position `head`, and opens the next one, unless
/// the reader still holds it.
///
/// The beginning time of the new sub-buffer is the end time of the old one, which is never below the old
/// one's begin.
///
/// # Safety
/// As for [`super::gather`], with `region` the attached region while the attachment's key is `to.key`; and
/// `region` stays mapped during the call whatever the key.
#[cfg(not(loom))]
#[cold]
#[inline(never)]
pub unsafe fn open(to: Destination<'_>, region: &Region, cpu: Cpu, head: u64) -> Opened {
    match plan(&region.buffer(cpu.index()), cpu, head) {
        Ok(request) => {
            // SAFETY: the caller's; the request was made of this region's parts for that CPU and position.
            let opened = unsafe { sequence::run(to, &request) };
            opened::note();
            opened
        }
        Err(opened) => opened,
    }
}

/// The inputs of the sequence, once the next sub-buffer is claimed.
pub(super) fn plan(buffer: &Buffer, cpu: Cpu, head: u64) -> Result<Request, Opened> {
    let geometry = buffer.geometry();
    let (current, used) = (geometry.sequence(head), geometry.at(head));
    let next = if used == 0 { current } else { geometry.later(current, 1) };
    let physical = match buffer.claim(next) {
        Claim::Granted(physical) => physical,
        Claim::Stale => return Err(Opened::Retry),
        Claim::Full => {
            buffer.count_loss(Loss::Full);
            return Err(Opened::Full);
        }
    };
    // The very first sub-buffer has no predecessor to close: its own header takes those two stores, and its
    // begin then replaces nothing that anything reads.
    let new = buffer.header(physical);
    let (old, written) = match used {
        0 => (new, 0),
        _ => (buffer.header(geometry.physical(head)), (used - SUB_BUFFER_HEADER) as u64),
    };
    Ok(Request {
        cpu: cpu.0.into(),
        head,
        new_head: geometry.position(next, physical, SUB_BUFFER_HEADER),
        control: &raw const buffer.control().head,
        old,
        new,
        used: used as u64,
        sequence: next + 1,
        lost: buffer.lost_total(),
        // Constant while `head` is unchanged.
        before: old.before.load(Relaxed).wrapping_add(written),
    })
}
