//! Code that programs compile at run time: the samples in it, and the names that the programs' perf maps have
//! for it.
//!
//! Maps are read when the recording or an archive ends, since some programs write them at their end. The
//! names are stamped before the first sample of their process in such code, so that readers know them in
//! time; they have a stream of their own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use tracewing_units::{Cycles, Pid};
use tracewing_vocabulary::profile::is_generated;

use crate::perf_map::{self, Function, Place, Unused};
use crate::record::{Mapping, Record, Thread};

/// Addresses that are kept per process; functions of all others have no names.
const MOST_ADDRESSES: usize = 1 << 18;
/// Processes whose addresses are kept: each takes a descriptor.
const MOST_SAMPLED: usize = 256;
/// When there are so many others, those that have ended are forgotten.
const MOST_PROCESSES: usize = 1 << 12;
/// With so many addresses of samples in code without names, a line says how it gets some.
const MANY_HITS: u64 = 20;

/// All processes with code that was compiled at run time.
pub(crate) struct Jit {
    processes: HashMap<Pid, Process>,
    /// Of samples since the last look: records of mappings may follow in the buffers of other CPUs.
    recent: Vec<(Cycles, Pid, u64)>,
    sampled: usize,
    /// Seconds since 1970.
    began: i64,
}

#[derive(Default)]
struct Process {
    /// Memory for such code: begin, to end.
    memory: BTreeMap<u64, u64>,
    sampled: Option<Sampled>,
}

struct Sampled {
    place: Place,
    first: Cycles,
    hits: u64,
    addresses: BTreeSet<u64>,
}

impl Sampled {
    fn named(self, pid: Pid, map: File) -> Named {
        let addresses: Vec<u64> = self.addresses.into_iter().collect();
        Named {
            stamp: Cycles(self.first.0.saturating_sub(1)),
            thread: Thread { pid, tid: pid.first_thread() },
            functions: perf_map::functions(map, &addresses),
        }
    }
}

/// Names for a process's code.
pub(crate) struct Named {
    /// Before the first sample in the code.
    pub(crate) stamp: Cycles,
    pub(crate) thread: Thread,
    pub(crate) functions: Vec<Function>,
}

impl Default for Jit {
    fn default() -> Self {
        let began = clock_gettime(ClockId::Realtime).tv_sec;
        Self { processes: HashMap::new(), recent: Vec::new(), sampled: 0, began }
    }
}

impl Jit {
    /// Follows what is mapped.
    pub(crate) fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::Mapping(mapping) => self.map(mapping),
            Record::Name { thread, exec: true, .. } => self.forget(thread.pid),
            Record::Fork { parent, child } if parent.pid != child.pid => {
                self.forget(child.pid);
                if let Some(parent) = self.processes.get(&parent.pid) {
                    let memory = parent.memory.clone();
                    self.processes.insert(child.pid, Process { memory, sampled: None });
                }
            }
            _ => {}
        }
    }

    /// A sample of a process, whose addresses are the innermost first.
    pub(crate) fn sample(&mut self, stamp: Cycles, pid: Pid, addresses: &[u64]) {
        for (at, address) in addresses.iter().enumerate() {
            // A call may return to the first address after its function.
            let inside = if at == 0 { *address } else { address.saturating_sub(1) };
            self.recent.push((stamp, pid, inside));
        }
    }

    /// Keeps those addresses of recent samples that are in code compiled at run time.
    pub(crate) fn look(&mut self) {
        for (stamp, pid, address) in self.recent.drain(..) {
            let Some(process) = self.processes.get_mut(&pid) else { continue };
            let before = process.memory.range(..=address).next_back();
            if before.is_none_or(|(_, end)| address >= *end) {
                continue;
            }
            if process.sampled.is_none() && self.sampled < MOST_SAMPLED {
                let new = |place| Sampled { place, first: stamp, hits: 0, addresses: BTreeSet::new() };
                process.sampled = Place::of(pid, self.began).map(new);
                self.sampled += usize::from(process.sampled.is_some());
            }
            let Some(sampled) = &mut process.sampled else { continue };
            sampled.first = sampled.first.min(stamp);
            sampled.hits += 1;
            if sampled.addresses.len() < MOST_ADDRESSES {
                sampled.addresses.insert(address);
            }
        }
    }

    /// The names so far, in the order of their stamps. Later ones are for later samples.
    pub(crate) fn cut(&mut self) -> Vec<Named> {
        self.look();
        self.sampled = 0;
        let sampled =
            self.processes.iter_mut().filter_map(|(pid, process)| Some((*pid, process.sampled.take()?)));
        let named = |(pid, sampled): (Pid, Sampled)| {
            let map = sampled.place.open().ok()?;
            Some(sampled.named(pid, map))
        };
        let mut all: Vec<Named> = sampled.filter_map(named).collect();
        all.sort_by_key(|named| named.stamp);
        all
    }

    /// The names, in the order of their stamps, and lines for the user.
    pub(crate) fn finish(mut self) -> (Vec<Named>, Vec<String>) {
        self.look();
        let (mut all, mut notices, mut nameless) = (Vec::new(), Vec::new(), Vec::new());
        let processes = self.processes.into_iter().filter_map(|(pid, process)| Some((pid, process.sampled?)));
        for (pid, sampled) in processes {
            let unused = |why| {
                format!(
                    "profile: {} {why}, so the code that process {pid} compiled at run time has no names",
                    sampled.place.path()
                )
            };
            match sampled.place.open() {
                Ok(map) => all.push(sampled.named(pid, map)),
                Err(Unused::Absent) if sampled.hits >= MANY_HITS => nameless.push(pid),
                Err(Unused::Absent) => {}
                Err(Unused::Irregular) => notices.push(unused("is not a regular file".to_owned())),
                Err(Unused::Foreign(user)) => {
                    notices.push(unused(format!("belongs to another user ({user})")))
                }
                Err(Unused::Stale) => notices.push(unused("is older than the process".to_owned())),
            }
        }
        all.sort_by_key(|named| named.stamp);
        notices.sort();
        if let Some(one) = nameless.iter().min() {
            let others = match nameless.len() - 1 {
                0 => String::new(),
                1 => " and 1 other".to_owned(),
                more => format!(" and {more} others"),
            };
            notices.push(format!(
                "profile: the code that process {one}{others} compiled at run time has no names, since there is no \
                 /tmp/perf-PID.map (java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit, node --perf-basic-prof, python -X perf)"
            ));
        }
        (all, notices)
    }

    fn map(&mut self, mapping: &Mapping<'_>) {
        let is_generated = is_generated(mapping.path);
        let pid = mapping.thread.pid;
        if !is_generated && !self.processes.contains_key(&pid) {
            return;
        }
        if self.processes.len() > MOST_PROCESSES {
            let exists = |pid: &Pid| Path::new(&format!("/proc/{pid}")).exists();
            self.processes.retain(|pid, process| process.sampled.is_some() || exists(pid));
        }
        let memory = &mut self.processes.entry(pid).or_default().memory;
        let overlapped = memory.range(..mapping.end).rev().take_while(|(_, end)| **end > mapping.begin);
        let overlapped: Vec<(u64, u64)> = overlapped.map(|(begin, end)| (*begin, *end)).collect();
        for (begin, end) in overlapped {
            memory.remove(&begin);
            if begin < mapping.begin {
                memory.insert(begin, mapping.begin);
            }
            if end > mapping.end {
                memory.insert(mapping.end, end);
            }
        }
        if is_generated && mapping.begin < mapping.end {
            memory.insert(mapping.begin, mapping.end);
        }
    }

    /// A process has a new program, or is a new one with an old number.
    fn forget(&mut self, pid: Pid) {
        let gone = self.processes.remove(&pid);
        self.sampled -= usize::from(gone.is_some_and(|process| process.sampled.is_some()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Thread = Thread { pid: Pid(i32::MAX), tid: tracewing_units::Tid(i32::MAX) };

    fn mapping(begin: u64, end: u64, path: &[u8]) -> Record<'_> {
        Record::Mapping(Mapping { thread: THREAD, begin, end, offset: 0, build_id: &[], path })
    }

    fn addresses(jit: &mut Jit, samples: &[u64]) -> Vec<u64> {
        samples.iter().for_each(|address| jit.sample(Cycles(9), THREAD.pid, &[*address]));
        jit.look();
        let sampled = jit.processes.get(&THREAD.pid).and_then(|process| process.sampled.as_ref());
        sampled.map(|sampled| sampled.addresses.iter().copied().collect()).unwrap_or_default()
    }

    #[test]
    fn only_addresses_in_code_without_a_file_are_kept() {
        let mut jit = Jit::default();
        jit.note(&mapping(0x5000, 0x6000, b"/lib/x"));
        assert_eq!(addresses(&mut jit, &[0x5000, 0x1000]), [0_u64; 0]);
        jit.note(&mapping(0x1000, 0x4000, b"//anon"));
        jit.note(&mapping(0x2000, 0x3000, b"/lib/x"));
        assert_eq!(addresses(&mut jit, &[0xfff, 0x1000, 0x2000, 0x3000, 0x4000, 0x5000]), [0x1000, 0x3000]);
    }

    #[test]
    fn a_mapping_may_be_reported_after_the_sample() {
        let mut jit = Jit::default();
        jit.sample(Cycles(9), THREAD.pid, &[0x1000, 0x1101]);
        jit.note(&mapping(0x1000, 0x1101, b"//anon"));
        assert_eq!(addresses(&mut jit, &[]), [0x1000, 0x1100], "callers are before where they continue");
    }

    #[test]
    fn a_new_program_has_none_of_the_earlier_code() {
        let mut jit = Jit::default();
        jit.note(&mapping(0x1000, 0x2000, b"//anon"));
        assert_eq!(addresses(&mut jit, &[0x1000]), [0x1000]);
        let child = Thread { pid: Pid(i32::MAX - 1), tid: tracewing_units::Tid(i32::MAX - 1) };
        jit.note(&Record::Fork { parent: THREAD, child });
        jit.note(&Record::Name { thread: THREAD, name: b"x", exec: true });
        assert_eq!((addresses(&mut jit, &[0x1000]), jit.sampled), (Vec::new(), 0));
        jit.sample(Cycles(9), child.pid, &[0x1000]);
        jit.look();
        assert!(jit.processes[&child.pid].sampled.is_some(), "it has its parent's");
    }
}
