//! Protocol `Publish` where the platform lacks it: the same functions, none of which ever writes. No process
//! is attached to a `Publish` region there, since [`crate::thread::rseq_of_libc`] finds nothing.

use tracewing_units::Cpu;

use super::{Destination, Opened, Outcome};
use crate::{Attachment, EnableWord, Region, Segment};

/// Writes nothing and returns `false`.
///
/// # Safety
/// None is needed.
#[inline(always)]
pub unsafe fn fixed<const LEN: usize, const ORDERED: bool>(
    _attachment: *const Attachment,
    _rseq_offset: isize,
    _entry_offset: isize,
    _enabled: &EnableWord,
    _id: u16,
    _payload: *const u8,
) -> bool {
    false
}

/// Writes nothing and reports that the process is detached.
///
/// # Safety
/// None is needed.
pub unsafe fn gather<const ORDERED: bool>(
    _to: Destination<'_>,
    _enabled: &EnableWord,
    _id: u16,
    _segments: &[Segment],
    _extended: bool,
) -> Outcome {
    Outcome::Detached
}

/// Opens nothing and reports so.
///
/// # Safety
/// None is needed.
pub unsafe fn open(_to: Destination<'_>, _region: &Region, _cpu: Cpu, _head: u64) -> Opened {
    Opened::Retry
}
