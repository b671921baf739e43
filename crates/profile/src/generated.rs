//! Where processes have memory for code that they compile at run time.
//!
//! The kernel reports what is mapped, but not what is unmapped, so the number of ranges is bounded. Records
//! of different CPUs are not in the order of time, so each range has the stamp of its record.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use tracewing_units::{Cycles, Pid};
use tracewing_vocabulary::profile::is_generated;

use crate::record::{Mapping, Record};

/// Ranges that are kept of a process. If it has more, the older half is dropped: most of these are no longer
/// mapped.
const MOST_RANGES: usize = 1 << 12;
/// When there are so many more processes than lived at the last look, those that have ended are forgotten.
const MOST_NEW: usize = 1 << 12;

/// The memory of all processes that have some.
#[derive(Debug, Default)]
pub(crate) struct Memories {
    processes: HashMap<Pid, Memory>,
    /// How many of them lived at the last look.
    lived: usize,
}

impl Memories {
    /// Follows what is mapped.
    pub(crate) fn note(&mut self, stamp: Cycles, record: &Record<'_>) {
        match record {
            Record::Mapping(mapping) => self.map(stamp, mapping),
            Record::Name { thread, exec: true, .. } => self.forget(stamp, thread.pid),
            Record::Fork { parent, child } if parent.pid != child.pid => {
                self.forget(stamp, child.pid);
                self.inherit(stamp, parent.pid, child.pid);
            }
            _ => {}
        }
    }

    pub(crate) fn contain(&self, pid: Pid, address: u64) -> bool {
        self.processes.get(&pid).is_some_and(|memory| memory.contains(address))
    }

    fn map(&mut self, stamp: Cycles, mapping: &Mapping<'_>) {
        let pid = mapping.thread.pid;
        if is_generated(mapping.path) {
            self.process(pid).map(mapping.begin, mapping.end, stamp);
        } else if let Some(memory) = self.processes.get_mut(&pid) {
            memory.unmap(mapping.begin, mapping.end);
        }
    }

    /// A child has its parent's memory.
    fn inherit(&mut self, stamp: Cycles, parent: Pid, child: Pid) {
        let Some(parent) = self.processes.get(&parent) else { return };
        let younger = self.processes.get(&child);
        let memory = parent.inherited(stamp, younger.unwrap_or(&Memory::default()));
        if !memory.is_empty() {
            *self.process(child) = memory;
        }
    }

    /// That of a process, which may be new.
    fn process(&mut self, pid: Pid) -> &mut Memory {
        if self.processes.len() > self.lived + MOST_NEW && !self.processes.contains_key(&pid) {
            self.processes.retain(|pid, _| Path::new(&format!("/proc/{pid}")).exists());
            self.lived = self.processes.len();
        }
        self.processes.entry(pid).or_default()
    }

    /// A process has a new program, or is a new one with an old number. What is younger belongs to it.
    fn forget(&mut self, stamp: Cycles, pid: Pid) {
        let Some(memory) = self.processes.get_mut(&pid) else { return };
        memory.drop_before(stamp);
        if memory.is_empty() {
            self.processes.remove(&pid);
        }
    }
}

/// Ranges that do not overlap.
#[derive(Debug, Default)]
struct Memory {
    /// Begin, to end and stamp.
    ranges: BTreeMap<u64, (u64, Cycles)>,
}

impl Memory {
    fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn contains(&self, address: u64) -> bool {
        self.ranges.range(..=address).next_back().is_some_and(|(_, (end, _))| address < *end)
    }

    /// Adds a range.
    fn map(&mut self, begin: u64, end: u64, stamp: Cycles) {
        self.unmap(begin, end);
        if begin < end {
            self.ranges.insert(begin, (end, stamp));
            self.bound();
        }
    }

    /// Removes a range, in which there is something else now.
    fn unmap(&mut self, begin: u64, end: u64) {
        let overlapped = self.ranges.range(..end).rev().take_while(|(_, (ends, _))| *ends > begin);
        let overlapped: Vec<_> = overlapped.map(|(begins, range)| (*begins, *range)).collect();
        for (begins, (ends, stamp)) in overlapped {
            self.ranges.remove(&begins);
            if begins < begin {
                self.ranges.insert(begins, (begin, stamp));
            }
            if ends > end {
                self.ranges.insert(end, (ends, stamp));
            }
        }
        self.bound();
    }

    /// Drops what is older than a new program.
    fn drop_before(&mut self, stamp: Cycles) {
        self.ranges.retain(|_, (_, since)| *since >= stamp);
    }

    /// The memory of a child that was made at `stamp` and has mapped `younger` since then.
    fn inherited(&self, stamp: Cycles, younger: &Self) -> Self {
        let older = self.ranges.iter().filter(|(_, (_, since))| *since <= stamp);
        let mut child = Self { ranges: older.map(|(begin, range)| (*begin, *range)).collect() };
        for (begin, (end, since)) in &younger.ranges {
            child.map(*begin, *end, *since);
        }
        child
    }

    fn bound(&mut self) {
        if self.ranges.len() <= MOST_RANGES {
            return;
        }
        let mut by_age: Vec<(Cycles, u64)> =
            self.ranges.iter().map(|(begin, (_, stamp))| (*stamp, *begin)).collect();
        by_age.sort_unstable();
        for (_, begin) in &by_age[..MOST_RANGES / 2] {
            self.ranges.remove(begin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Thread;

    const ANONYMOUS: &[u8] = b"//anon";

    fn thread(number: i32) -> Thread {
        let pid = Pid(i32::MAX - number);
        Thread { pid, tid: pid.first_thread() }
    }

    fn mapping(thread: Thread, begin: u64, end: u64) -> Record<'static> {
        Record::Mapping(Mapping { thread, begin, end, offset: 0, build_id: &[], path: ANONYMOUS })
    }

    #[test]
    fn a_program_keeps_what_is_younger_than_it() {
        let mut memories = Memories::default();
        memories.note(Cycles(5), &mapping(thread(0), 0x1000, 0x2000));
        memories.note(Cycles(8), &mapping(thread(0), 0x3000, 0x4000));
        memories.note(Cycles(7), &Record::Name { thread: thread(0), name: b"x", exec: true });
        let contained = [0x1000, 0x3000].map(|address| memories.contain(thread(0).pid, address));
        assert_eq!(contained, [false, true]);
        memories.note(Cycles(9), &Record::Name { thread: thread(0), name: b"x", exec: true });
        assert!(memories.processes.is_empty());
    }

    #[test]
    fn a_child_keeps_what_it_mapped_before_its_fork_was_read() {
        let mut memories = Memories::default();
        memories.note(Cycles(5), &mapping(thread(0), 0x1000, 0x2000));
        memories.note(Cycles(4), &mapping(thread(1), 0x5000, 0x6000));
        memories.note(Cycles(8), &mapping(thread(1), 0x3000, 0x4000));
        memories.note(Cycles(7), &Record::Fork { parent: thread(0), child: thread(1) });
        let contained = [0x1000, 0x3000, 0x5000].map(|address| memories.contain(thread(1).pid, address));
        assert_eq!(contained, [true, true, false]);
    }

    #[test]
    fn children_that_have_ended_are_forgotten() {
        let mut memories = Memories::default();
        let me = Pid(std::process::id() as i32);
        let parent = Thread { pid: me, tid: me.first_thread() };
        memories.note(Cycles(5), &mapping(parent, 0x1000, 0x2000));
        for number in 0..2 * MOST_NEW as i32 {
            memories.note(Cycles(6), &Record::Fork { parent, child: thread(number) });
            assert!(memories.processes.len() <= memories.lived + MOST_NEW + 1);
        }
        assert!(memories.lived == 1 && memories.contain(me, 0x1000), "{}", memories.lived);
    }

    fn ranges(memory: &Memory) -> Vec<(u64, u64, u64)> {
        memory.ranges.iter().map(|(begin, (end, stamp))| (*begin, *end, stamp.0)).collect()
    }

    #[test]
    fn a_mapping_replaces_what_it_overlaps() {
        let mut memory = Memory::default();
        memory.map(0x1000, 0x4000, Cycles(1));
        memory.unmap(0x2000, 0x3000);
        memory.map(0x3800, 0x5000, Cycles(2));
        assert_eq!(ranges(&memory), [(0x1000, 0x2000, 1), (0x3000, 0x3800, 1), (0x3800, 0x5000, 2)]);
        let inside = [0xfff, 0x1000, 0x1fff, 0x2000, 0x4fff, 0x5000].map(|address| memory.contains(address));
        assert_eq!(inside, [false, true, true, false, true, false]);
    }

    #[test]
    fn only_what_is_older_than_a_program_is_dropped() {
        let mut memory = Memory::default();
        memory.map(0x1000, 0x2000, Cycles(4));
        memory.map(0x3000, 0x4000, Cycles(6));
        memory.drop_before(Cycles(5));
        assert_eq!(ranges(&memory), [(0x3000, 0x4000, 6)]);
    }

    #[test]
    fn a_child_has_what_its_parent_had_and_its_own() {
        let (mut parent, mut child) = (Memory::default(), Memory::default());
        parent.map(0x1000, 0x2000, Cycles(4));
        parent.map(0x3000, 0x4000, Cycles(6));
        child.map(0x1800, 0x2800, Cycles(7));
        let child = parent.inherited(Cycles(5), &child);
        assert_eq!(ranges(&child), [(0x1000, 0x1800, 4), (0x1800, 0x2800, 7)]);
    }

    #[test]
    fn the_youngest_of_many_ranges_are_kept() {
        let mut memory = Memory::default();
        let many = 3 * MOST_RANGES as u64;
        for number in 0..many {
            // The younger, the lower.
            let begin = 16 * (many - number);
            memory.map(begin, begin + 8, Cycles(number));
            assert!(memory.ranges.len() <= MOST_RANGES);
        }
        assert!(memory.contains(16) && !memory.contains(16 * many));
        assert!(memory.ranges.len() >= MOST_RANGES / 2);
    }
}
