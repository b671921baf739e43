//! Sources of a recording other than programs: the kernel's events, samples, and the names of threads.

use crate::kernel::Kernel;
use crate::profile::Profile;
use crate::regions::Totals;
use crate::threads::Threads;

/// The sources that are drained at each look.
pub(crate) struct Drains {
    pub(crate) kernel: Kernel,
    pub(crate) profile: Profile,
    /// Of a flight recorder without the kernel's events.
    pub(crate) threads: Option<Threads>,
}

impl Drains {
    /// Their totals so far, together with the events of programs.
    pub(crate) fn totals(&self, user: Totals) -> Totals {
        let kernel = self.kernel.progress();
        let (events, lost, bytes) = self.profile.progress();
        Totals {
            events: user.events + kernel.events + events,
            lost: user.lost.saturating_add(kernel.lost).saturating_add(lost),
            is_lost_unknown: user.is_lost_unknown,
            bytes: user.bytes + kernel.bytes + bytes,
        }
    }
}
