//! Which program each process executes, and that it executes another one, by which all ends that it was at.

use crate::stored::stored;
use std::collections::HashMap;
use tracewing_trace::super_trace::{LwpSerial, SuperTrace};
use tracewing_units::{Pid, Timestamp};

/// The programs of processes, as they were when last asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Programs {
    /// Of a process: the serial number of its first thread, where that is known, and the program's number.
    known: HashMap<Pid, Option<(LwpSerial, u32)>>,
}

stored! { SHAPE: Programs { known } }

impl Programs {
    /// How many processes are known.
    pub(crate) fn count(&self) -> usize {
        self.known.len()
    }

    /// Since when a process executes another program than when this was last asked.
    pub(crate) fn changed(&mut self, state: &SuperTrace, process: Option<Pid>) -> Option<Timestamp> {
        let process = process?;
        let first = state.lwp(process.first_thread());
        let now = first.map(|lwp| (lwp.serial, lwp.program.number));
        let before = self.known.get(&process).copied();
        // Where the first thread has ended, and others have not, the program is still the same.
        if before == Some(now) || (before.is_some() && now.is_none()) {
            return None;
        }
        self.known.insert(process, now);
        let is_another = match before? {
            Some(_) => true,
            None => first?.program.number > 0,
        };
        first.filter(|_| is_another).map(|lwp| lwp.program.since)
    }
}
