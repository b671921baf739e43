//! Which recordings know a user thread.

use super::wants_create;
use crate::agent::changes;

/// The change of the recordings up to which a user thread has been reported, for [`existed`](super::existed).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported(u32);

impl Reported {
    /// Of a user thread that is created right after: reported, if a recording wants its creation.
    #[inline]
    pub fn at_creation() -> Self {
        // A recording that begins from here on is another change.
        let now = changes();
        Self(if wants_create() { now } else { now.wrapping_sub(1) })
    }

    /// Whether it has to be reported; the caller does that, so the next call gives false.
    #[inline]
    pub(super) fn take_due(&mut self) -> bool {
        let now = changes();
        std::mem::replace(&mut self.0, now) != now
    }
}
