//! What was done for processes outside of them: by the threads that they woke, and by the interrupts that
//! woke their threads.

use super::account::Waits;
use crate::times::grow;
use std::collections::HashMap;
use tracewing_trace::super_trace::Name;
use tracewing_units::{Cpu, Duration, Pid};

/// What did something for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Helper {
    Process(Pid),
    Interrupt(Name),
}

/// How much each helper did for which process.
#[derive(Debug, Default)]
pub(super) struct Served {
    sums: HashMap<(Pid, Helper), Waits>,
    /// By CPU: the current interrupt, and the processes whose threads it has woken.
    interrupts: HashMap<Cpu, (Name, Vec<Pid>)>,
}

impl Served {
    /// A process has woken a thread of another one.
    pub(super) fn asks(&mut self, client: Pid, server: Pid) {
        self.sums.entry((client, Helper::Process(server))).or_default().count += 1;
    }

    /// A thread of `server` ran for `ns`, on behalf of `client`.
    pub(super) fn ran(&mut self, client: Pid, server: Pid, ns: Duration) {
        grow(&mut self.sums.entry((client, Helper::Process(server))).or_default().ns, ns);
    }

    /// An interrupt has woken a thread of a process.
    pub(super) fn wakes(&mut self, cpu: Cpu, interrupt: Name, process: Pid) {
        self.sums.entry((process, Helper::Interrupt(interrupt))).or_default().count += 1;
        let (name, processes) = self.interrupts.entry(cpu).or_insert((interrupt, Vec::new()));
        if *name != interrupt {
            (*name, *processes) = (interrupt, Vec::new());
        }
        processes.push(process);
    }

    /// An interrupt had a CPU for an interval. It is shared by the processes that it woke, in proportion to
    /// their wakes.
    pub(super) fn interrupt(&mut self, cpu: Cpu, interrupt: Option<Name>, ns: Duration) {
        let Some((name, processes)) = self.interrupts.get_mut(&cpu) else { return };
        let count = processes.len() as u64;
        for process in processes.drain(..) {
            if interrupt == Some(*name) {
                grow(&mut self.sums.entry((process, Helper::Interrupt(*name))).or_default().ns, ns / count);
            }
        }
    }

    /// For each process and helper: how often it helped, and for how long.
    pub(super) fn into_sums(self) -> impl Iterator<Item = (Pid, Helper, Waits)> {
        self.sums.into_iter().map(|((process, helper), waits)| (process, helper, waits))
    }
}
