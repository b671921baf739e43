//! The time of each process: in each system call, in its own code, and what others did for it outside
//! (Wisniewski, Rosenburg: Efficient, Unified, and Scalable Performance Monitoring for Multiprocessor
//! Operating Systems, section 4.7, Figure 8).
//!
//! K42's page faults and calls to servers have times of their own. Here the kernel has no event for the end
//! of a page fault, so faults are counted, and their time is attributed to the place where they occurred;
//! servers are threads, so a call to one is a wait that its wake ends.
//!
//! | file | does |
//! |---|---|
//! | `account` | the time of one LWP |
//! | `entries` | where threads begin |
//! | `ipc` | waits for other threads |
//! | `outside` | work of others for a process |
//! | `table` | the result |

mod account;
mod entries;
mod ipc;
mod outside;
mod table;

pub use account::Waits;
pub use entries::Start;
pub use ipc::Ipc;
pub use table::{BreakdownTable, Entry, Machine, Outside, ProcessBreakdown, Row, Spent};

use crate::analysis::{Analysis, Input};
use crate::run::Ran;
use crate::serials::Serials;
use crate::times::grow;
use account::{Account, Place};
use entries::Entries;
use ipc::{Cause, Means};
use outside::Served;
use std::collections::HashMap;
use table::Ended;
use tracewing_trace::super_trace::{Change, Doing, Fold, Kind, Lwp, Mode, Name, Seen, Waker};
use tracewing_trace::super_trace::{LwpSerial, TaskState};
use tracewing_units::{Cpu, Duration, Pid, Tid, Timestamp};

/// The analysis of `tracewing breakdown`: the time of processes by system call.
#[derive(Debug, Default)]
pub struct Breakdown {
    lwps: Serials<LwpSerial, Account>,
    ended: Vec<Ended>,
    /// What names mean, by their numbers.
    means: Vec<Means>,
    served: Served,
    entries: Entries,
    /// What processes are called.
    processes: HashMap<Pid, String>,
    /// Time of CPUs without a thread.
    idle_ns: Duration,
    idle_interrupts_ns: Duration,
}

impl Breakdown {
    /// An analysis that has seen nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table, when all has been read.
    pub fn finish(self, ran: &Ran) -> BreakdownTable {
        table::table(self, ran)
    }

    /// What an LWP did counts for those that it did it for; for itself, the caller has counted it.
    fn serves(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        let ns = to - from;
        let account = self.lwps.at(lwp.serial);
        match doing {
            Doing::Running { cpu, mode: Mode::Interrupt(by) } => self.served.interrupt(cpu, by, ns),
            Doing::Running { .. } => {
                if let Some((client, server)) = account.client.zip(lwp.process) {
                    self.served.ran(client, server, ns);
                }
            }
            _ => {}
        }
    }

    fn woken(&mut self, lwp: &Lwp, by: &Waker, at: Timestamp, is_selected: bool) {
        let means = |name: Name| self.means.get(name.0 as usize).copied().unwrap_or_default();
        if let (None, Some(waker)) = (by.interrupt, by.lwp) {
            self.lwps.at(waker).at(Place::new(by.mode, by.is_kernel)).woke += 1;
        }
        if let (Some(interrupt), Some(cpu), Some(process)) = (by.interrupt, by.cpu, lwp.process) {
            self.served.wakes(cpu, interrupt, process);
        }
        let account = self.lwps.at(lwp.serial);
        let Some(block) = account.woken(at) else { return };
        if is_selected && let Place::Call(call) = block.place {
            account.waited(block, ipc::cause(means(call), by, means));
        }
        // A thread that creates a process does not wait for it, and one that waits for an end does not serve
        // the ended one.
        let asks = by.call.is_some_and(|call| !matches!(means(call), Means::Start | Means::End));
        account.client = by.process.filter(|client| asks && Some(*client) != lwp.process);
        if let Some((client, server)) = account.client.zip(lwp.process) {
            self.served.asks(client, server);
        }
    }

    /// No event shows what ends a wait that lasts at this time.
    fn breaks_off(&mut self, lwp: &Lwp, at: Timestamp) {
        let account = self.lwps.at(lwp.serial);
        if let Some(block) = account.woken(at)
            && let (false, Place::Call(_)) = (block.ns.is_zero(), block.place)
        {
            account.waited(block, Cause::Unseen);
        }
    }

    fn learn_name(&mut self, lwp: &Lwp) {
        let process = lwp.tid.as_process();
        if lwp.process == Some(process) && !lwp.name.is_empty() {
            self.processes.insert(process, lwp.name.clone());
        }
    }
}

impl Analysis for Breakdown {
    const CONTINUES: bool = true;
    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Name { name, text } => self.name(name, text),
            Input::Event(seen) => self.event(seen),
            Input::Dumped { tid, process, name } => self.dumped(tid, process, name),
            Input::LeftOut(Change::LwpDid { lwp, doing, from, to }) => self.other(lwp, doing, from, to),
            Input::LeftOut(Change::LwpWoken { lwp, by, at }) => self.other_woken(lwp, by, at),
            Input::LeftOut(Change::LwpEnds { lwp }) => self.other_ends(lwp),
            _ => {}
        }
    }
}

impl Breakdown {
    fn name(&mut self, name: Name, text: &str) {
        let index = name.0 as usize;
        if self.means.len() <= index {
            self.means.resize(index + 1, Means::Other);
        }
        self.means[index] = Means::of(text);
    }

    fn event(&mut self, seen: &Seen<'_>) {
        let (Some(activity), Some(lwp)) = (seen.activity, seen.lwp()) else { return };
        self.entries.follow(seen);
        let account = self.lwps.at(lwp.serial);
        if activity.kind == Kind::User
            && let Some(function) = self.entries.event(seen)
        {
            account.entry.get_or_insert(function);
        }
        if !matches!(seen.place.mode, Mode::Interrupt(_)) {
            account.at(Place::new(seen.place.mode, lwp.is_kernel)).events += 1;
        }
    }

    fn dumped(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        if tid == process.first_thread() {
            self.processes.entry(process).or_insert_with(|| String::from_utf8_lossy(name).into_owned());
        }
    }

    fn other(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        self.lwps.at(lwp.serial).did_unseen(lwp, doing, to);
        self.serves(lwp, doing, from, to);
    }

    fn other_woken(&mut self, lwp: &Lwp, by: &Waker, at: Timestamp) {
        self.woken(lwp, by, at, false);
    }

    fn other_ends(&mut self, lwp: &Lwp) {
        self.learn_name(lwp);
        self.lwps.take(lwp.serial);
    }
}

impl Fold for Breakdown {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } => self.lwp(lwp, doing, from, to),
            Change::CpuIdled { cpu, interrupt, from, to } => self.cpu_idles(cpu, interrupt, from, to),
            Change::LwpWas { lwp, mode } => self.lwp_was(lwp, mode),
            Change::LwpHidesCalls { lwp } => self.lwps.at(lwp.serial).hides_calls(),
            Change::LwpCalls { lwp, call, .. } => self.lwp_calls(lwp, call),
            Change::LwpFaults { lwp, .. } => self.lwp_faults(lwp),
            Change::LwpUsesSocket { lwp, .. } => self.lwp_uses_socket(lwp),
            Change::LwpWoken { lwp, by, at } => self.lwp_woken(lwp, by, at),
            Change::LwpStops { lwp, prev_state, .. } => self.lwp_stops(lwp, prev_state),
            Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            _ => {}
        }
    }
}

impl Breakdown {
    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        if doing == Doing::Unknown {
            self.breaks_off(lwp, from);
        }
        self.lwps.at(lwp.serial).did(lwp, doing, from, to);
        self.serves(lwp, doing, from, to);
    }

    fn cpu_idles(&mut self, cpu: Cpu, interrupt: Option<Name>, from: Timestamp, to: Timestamp) {
        let ns = to - from;
        match interrupt {
            None => grow(&mut self.idle_ns, ns),
            Some(_) => {
                grow(&mut self.idle_interrupts_ns, ns);
                self.served.interrupt(cpu, interrupt, ns);
            }
        }
    }

    fn lwp_was(&mut self, lwp: &Lwp, mode: Mode) {
        self.lwps.at(lwp.serial).was(Place::new(mode, lwp.is_kernel));
    }

    fn lwp_calls(&mut self, lwp: &Lwp, call: Name) {
        self.lwps.at(lwp.serial).calls(call);
    }

    fn lwp_faults(&mut self, lwp: &Lwp) {
        self.lwps.at(lwp.serial).at(Place::new(lwp.mode(), lwp.is_kernel)).faults += 1;
    }

    fn lwp_uses_socket(&mut self, lwp: &Lwp) {
        self.lwps.at(lwp.serial).uses_socket();
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: Timestamp) {
        self.woken(lwp, by, at, true);
    }

    fn lwp_stops(&mut self, lwp: &Lwp, prev_state: TaskState) {
        self.lwps.at(lwp.serial).stops(prev_state);
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.learn_name(lwp);
        self.breaks_off(lwp, lwp.reported_to());
        let mut account = self.lwps.take(lwp.serial);
        if !lwp.is_kernel {
            account.ends();
        }
        self.ended.push(Ended {
            process: lwp.process,
            name: lwp.name.clone(),
            followed: lwp.followed,
            account,
        });
    }
}
