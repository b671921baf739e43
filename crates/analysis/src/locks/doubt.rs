//! While events of the kernel are missing: of waits that only these show, what ended them is unknown.

use tracewing_trace::super_trace::{Bytes, Scope, Stored};
use tracewing_units::Timestamp;

use super::event::LockEvent;
use super::thread::Thread;
use crate::analysis::Loss;

/// Until when events of the kernel are missing, as far as losses have been reported.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KernelDoubt(Option<Timestamp>);

impl Stored for KernelDoubt {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(bytes: &mut Bytes<'_>) -> Option<Self> {
        Stored::take(bytes).map(Self)
    }
}

impl KernelDoubt {
    /// Handles a loss. Returns how many waits of `threads` have no certain end any more.
    pub(super) fn lost<'t>(&mut self, lost: &Loss, threads: impl Iterator<Item = &'t mut Thread>) -> u64 {
        if !matches!(lost.scope, Scope::Kernel(_)) || lost.is_of_others {
            return 0;
        }
        self.0 = self.0.max(Some(lost.to));
        threads.map(Thread::doubt_kernels).sum()
    }

    /// Whether the event begins a wait whose end may be missing, so that an end that is recorded may be that
    /// of a later wait.
    pub(super) fn hides_end_of(&self, event: &LockEvent, at: Timestamp) -> bool {
        let is_begin = matches!(event, LockEvent::FutexWait { .. } | LockEvent::KernelWait { .. });
        is_begin && self.0.is_some_and(|until| at <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::thread::{By, Outcome};
    use tracewing_units::LockAddress;

    /// A thread sleeps on a futex, on another CPU wakes and sleeps again, and wakes here: that is not one
    /// wait.
    #[test]
    fn waits_of_which_the_kernels_events_are_missing_have_no_length() {
        let waits = LockEvent::FutexWait { address: LockAddress(8) };
        let ends = LockEvent::FutexEnd { result: 0 };
        let loss = |scope| Loss {
            scope,
            cpu: None,
            from: Timestamp::from_ns(20),
            to: Timestamp::from_ns(40),
            events: None,
            is_of_others: false,
            is_elsewhere: false,
            is_of_order: false,
        };
        let waited = |scope, begins: i64| {
            let (mut thread, mut doubt, mut waited) = (Thread::default(), KernelDoubt::default(), Vec::new());
            let mut event = |doubt: &KernelDoubt, thread: &mut Thread, event: &LockEvent, at| {
                let at = Timestamp::from_ns(at);
                if !doubt.hides_end_of(event, at) {
                    thread.event(event, By::default(), at, &mut |outcome| waited.push(outcome));
                }
            };
            if begins < 20 {
                event(&doubt, &mut thread, &waits, begins);
            }
            let unfinished = doubt.lost(&loss(scope), [&mut thread].into_iter());
            if begins >= 20 {
                event(&doubt, &mut thread, &waits, begins);
            }
            event(&doubt, &mut thread, &ends, 100);
            let is_wait = |outcome: &&Outcome| matches!(outcome, Outcome::Acquired { .. });
            (waited.iter().filter(is_wait).count(), unfinished)
        };
        assert_eq!(waited(Scope::Kernel(None), 10), (0, 1));
        assert_eq!(waited(Scope::Kernel(None), 30), (0, 0));
        assert_eq!(waited(Scope::Kernel(None), 50), (1, 0));
        assert_eq!(waited(Scope::User, 10), (1, 0));
    }
}
