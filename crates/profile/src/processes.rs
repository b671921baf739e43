//! Processes that have records; a continued trace begins with those still alive.

use std::collections::BTreeSet;

use tracewing_units::Pid;

use crate::present;
use crate::record::Record;

/// When there are so many more than lived at the last look, those that have ended are forgotten.
const MOST_NEW: usize = 1 << 12;

/// Processes that may live.
#[derive(Default)]
pub(crate) struct Processes {
    known: BTreeSet<Pid>,
    lived: usize,
}

impl Processes {
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        let pid = match record {
            Record::Mapping(mapping) => mapping.thread.pid,
            Record::Name { thread, .. } => thread.pid,
            Record::Fork { child, .. } => child.pid,
            // Its other records may be lost. The idle thread has number 0.
            Record::Sample(sample) if sample.thread.pid > Pid(0) => sample.thread.pid,
            Record::Sample(_) | Record::Lost(_) | Record::Throttled => return,
        };
        if self.known.insert(pid) && self.known.len() > self.lived + MOST_NEW {
            self.forget();
        }
    }

    /// Those that live.
    pub(crate) fn living(&mut self) -> Vec<Pid> {
        self.forget();
        self.known.iter().copied().collect()
    }

    fn forget(&mut self) {
        self.known.retain(|pid| !present::threads(*pid).is_empty());
        self.lived = self.known.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Thread;

    #[test]
    fn those_that_have_ended_are_forgotten() {
        let me = Pid(std::process::id() as i32);
        let parent = Thread { pid: me, tid: me.first_thread() };
        let mut processes = Processes::default();
        processes.note(&Record::Name { thread: parent, name: b"x", exec: false });
        for number in 0..=MOST_NEW as i32 {
            let pid = Pid(i32::MAX - number);
            processes.note(&Record::Fork { parent, child: Thread { pid, tid: pid.first_thread() } });
        }
        assert!(processes.known.len() < MOST_NEW);
        assert_eq!(processes.living(), [me]);
    }
}
