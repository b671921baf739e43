//! Code that programs compile at run time: the samples in it, and the names that the programs' perf maps have
//! for it.
//!
//! Maps are read when the recording or an archive ends, since some programs write them at their end. The
//! names are stamped before the first sample of their process in such code, so that readers know them in
//! time; they have a stream of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tracewing_units::{Cycles, Pid};

use crate::generated::Memories;
use crate::map_place::Place;
use crate::map_reader::{MapReader, Request};
use crate::perf_map::Function;
use crate::record::{Record, Thread};
use crate::unnamed::Unnamed;

/// Addresses that are kept per process; functions of all others have no names.
const MOST_ADDRESSES: usize = 1 << 18;
/// Processes whose addresses are kept: each takes a descriptor.
const MOST_SAMPLED: usize = 256;
/// How long the end of a recording waits for maps.
const MOST_AT_END: Duration = Duration::from_secs(5);
/// How long a rotation waits for them: meanwhile, the kernel's buffers fill.
const MOST_AT_CUT: Duration = Duration::from_millis(200);

/// All processes with code that was compiled at run time.
pub(crate) struct Jit {
    memories: Memories,
    /// Of samples since the last look: records of mappings may follow in the buffers of other CPUs.
    recent: Vec<(Cycles, Pid, u64)>,
    sampled: BTreeMap<Pid, Sampled>,
    /// Seconds since 1970.
    began: i64,
    reader: MapReader,
    /// Maps that others waited for in vain: they are not read again before the end.
    stuck: BTreeSet<Pid>,
    unnamed: Unnamed,
}

struct Sampled {
    place: Place,
    first: Cycles,
    hits: u64,
    addresses: BTreeSet<u64>,
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
        Self {
            memories: Memories::default(),
            recent: Vec::new(),
            sampled: BTreeMap::new(),
            began,
            reader: MapReader::default(),
            stuck: BTreeSet::new(),
            unnamed: Unnamed::default(),
        }
    }
}

impl Jit {
    /// Follows what is mapped. Records of different CPUs are not in the order of their stamps.
    pub(crate) fn note(&mut self, stamp: Cycles, record: &Record<'_>) {
        self.memories.note(stamp, record);
        match record {
            Record::Name { thread, exec: true, .. } => self.forget(stamp, thread.pid),
            Record::Fork { parent, child } if parent.pid != child.pid => self.forget(stamp, child.pid),
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
            if !self.memories.contain(pid, address) {
                continue;
            }
            if !self.sampled.contains_key(&pid) && self.sampled.len() < MOST_SAMPLED {
                let new = |place| Sampled { place, first: stamp, hits: 0, addresses: BTreeSet::new() };
                self.sampled.extend(Place::of(pid, self.began).map(new).map(|sampled| (pid, sampled)));
            }
            let Some(sampled) = self.sampled.get_mut(&pid) else {
                self.unnamed.left_out(pid);
                continue;
            };
            sampled.first = sampled.first.min(stamp);
            sampled.hits += 1;
            if sampled.addresses.len() < MOST_ADDRESSES {
                sampled.addresses.insert(address);
            }
        }
    }

    /// The names so far, in the order of their stamps. Later ones are for later samples.
    pub(crate) fn cut(&mut self) -> Vec<Named> {
        if self.reader.is_idle() {
            self.stuck.clear();
        }
        let mut sampled = self.take();
        sampled.retain(|(pid, _)| !self.stuck.contains(pid));
        self.read(sampled, MOST_AT_CUT)
    }

    /// The names, in the order of their stamps, and lines for the user about all names since the beginning.
    pub(crate) fn finish(mut self) -> (Vec<Named>, Vec<String>) {
        let mut sampled = self.take();
        sampled.sort_by_key(|(pid, _)| self.stuck.contains(pid));
        // One more thread, however many are stuck.
        self.reader = MapReader::default();
        let all = self.read(sampled, MOST_AT_END);
        (all, self.unnamed.lines())
    }

    /// What was sampled, in the order of processes.
    fn take(&mut self) -> Vec<(Pid, Sampled)> {
        self.look();
        std::mem::take(&mut self.sampled).into_iter().collect()
    }

    fn read(&mut self, sampled: Vec<(Pid, Sampled)>, most: Duration) -> Vec<Named> {
        let (mut about, mut requests) = (Vec::new(), Vec::new());
        for (pid, Sampled { place, first, hits, addresses }) in sampled {
            about.push((pid, first, hits, place.path()));
            requests.push(Request { place, addresses });
        }
        let answers = self.reader.read(requests, most);
        if answers.is_cut_short {
            self.unnamed.cut_short();
        }
        self.stuck.extend(about.get(answers.all.len()).map(|(pid, ..)| *pid));
        let mut all = Vec::new();
        let mut answers = answers.all.into_iter();
        for (pid, first, hits, path) in about {
            let Some(answer) = answers.next() else {
                self.unnamed.late(pid);
                continue;
            };
            let Some(functions) = self.unnamed.functions(pid, &path, hits, answer) else { continue };
            let stamp = Cycles(first.0.saturating_sub(1));
            all.push(Named { stamp, thread: Thread { pid, tid: pid.first_thread() }, functions });
        }
        all.sort_by_key(|named| named.stamp);
        all
    }

    /// A process has a new program, or is a new one with an old number. Its samples are lost if they were
    /// kept together with those of the old one.
    fn forget(&mut self, stamp: Cycles, pid: Pid) {
        if self.sampled.get(&pid).is_some_and(|sampled| sampled.first < stamp) {
            self.sampled.remove(&pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Mapping;

    const THREAD: Thread = Thread { pid: Pid(i32::MAX), tid: tracewing_units::Tid(i32::MAX) };

    fn mapping(begin: u64, end: u64, path: &[u8]) -> Record<'_> {
        Record::Mapping(Mapping { thread: THREAD, begin, end, offset: 0, build_id: &[], path })
    }

    fn code_of(thread: Thread, begin: u64) -> Record<'static> {
        let (end, path) = (begin + 0x1000, &b"//anon"[..]);
        Record::Mapping(Mapping { thread, begin, end, offset: 0, build_id: &[], path })
    }

    fn child(number: i32) -> Thread {
        let pid = Pid(i32::MAX - number - 1);
        Thread { pid, tid: pid.first_thread() }
    }

    fn addresses(jit: &mut Jit, samples: &[u64]) -> Vec<u64> {
        samples.iter().for_each(|address| jit.sample(Cycles(9), THREAD.pid, &[*address]));
        jit.look();
        let sampled = jit.sampled.get(&THREAD.pid);
        sampled.map(|sampled| sampled.addresses.iter().copied().collect()).unwrap_or_default()
    }

    #[test]
    fn only_addresses_in_code_without_a_file_are_kept() {
        let mut jit = Jit::default();
        jit.note(Cycles(5), &mapping(0x5000, 0x6000, b"/lib/x"));
        assert_eq!(addresses(&mut jit, &[0x5000, 0x1000]), [0_u64; 0]);
        jit.note(Cycles(5), &mapping(0x1000, 0x4000, b"//anon"));
        jit.note(Cycles(5), &mapping(0x2000, 0x3000, b"/lib/x"));
        assert_eq!(addresses(&mut jit, &[0xfff, 0x1000, 0x2000, 0x3000, 0x4000, 0x5000]), [0x1000, 0x3000]);
    }

    #[test]
    fn a_mapping_may_be_reported_after_the_sample() {
        let mut jit = Jit::default();
        jit.sample(Cycles(9), THREAD.pid, &[0x1000, 0x1101]);
        jit.note(Cycles(5), &mapping(0x1000, 0x1101, b"//anon"));
        assert_eq!(addresses(&mut jit, &[]), [0x1000, 0x1100], "callers are before where they continue");
    }

    #[test]
    fn a_new_program_has_none_of_the_earlier_code() {
        let mut jit = Jit::default();
        jit.note(Cycles(5), &mapping(0x1000, 0x2000, b"//anon"));
        assert_eq!(addresses(&mut jit, &[0x1000]), [0x1000]);
        let child = child(1);
        jit.note(Cycles(10), &Record::Fork { parent: THREAD, child });
        jit.note(Cycles(10), &Record::Name { thread: THREAD, name: b"x", exec: true });
        assert_eq!((addresses(&mut jit, &[0x1000]), jit.sampled.len()), (Vec::new(), 0));
        jit.sample(Cycles(9), child.pid, &[0x1000]);
        jit.look();
        assert!(jit.sampled.contains_key(&child.pid), "it has its parent's");
    }

    #[test]
    fn a_program_keeps_what_is_younger_than_it() {
        let mut jit = Jit::default();
        jit.note(Cycles(5), &mapping(0x1000, 0x2000, b"//anon"));
        jit.note(Cycles(8), &mapping(0x3000, 0x4000, b"//anon"));
        jit.note(Cycles(7), &Record::Name { thread: THREAD, name: b"x", exec: true });
        assert_eq!(addresses(&mut jit, &[0x1000, 0x3000]), [0x3000]);
        jit.note(Cycles(7), &Record::Name { thread: THREAD, name: b"x", exec: true });
        assert_eq!(addresses(&mut jit, &[]), [0x3000], "samples, too");
    }

    #[test]
    fn processes_without_room_are_counted_once() {
        let mut jit = Jit::default();
        for number in 0..=MOST_SAMPLED as i32 {
            jit.note(Cycles(5), &code_of(child(number), 0x1000));
            jit.sample(Cycles(9), child(number).pid, &[0x1000, 0x1008]);
        }
        jit.look();
        assert_eq!(jit.sampled.len(), MOST_SAMPLED);
        let lines = jit.unnamed.lines();
        assert!(lines.len() == 1 && lines[0].contains(" 1 more process "), "{lines:?}");
    }

    #[test]
    fn why_code_of_archives_has_no_names_is_said_at_the_end() {
        let mut jit = Jit::default();
        let mut named = 0;
        for _ in 0..2 {
            jit.note(Cycles(5), &code_of(THREAD, 0x1000));
            assert_eq!(addresses(&mut jit, &[0x1000; 100]), [0x1000]);
            let sampled = jit.take();
            named += jit.read(sampled, Duration::from_secs(3600)).len();
        }
        let lines = jit.unnamed.lines();
        assert!(named == 0 && lines.len() == 1 && lines[0].contains("there is no"), "{lines:?}");
    }

    #[test]
    fn a_map_that_others_waited_for_is_not_read_again_before_the_end() {
        let mut jit = Jit::default();
        jit.note(Cycles(5), &code_of(THREAD, 0x1000));
        let (reader, end) = MapReader::stuck();
        jit.reader = reader;
        jit.stuck.insert(THREAD.pid);
        assert_eq!(addresses(&mut jit, &[0x1000; 100]), [0x1000]);
        assert!(jit.cut().is_empty() && jit.stuck.contains(&THREAD.pid));
        drop(end);
        assert!(jit.unnamed.lines().is_empty());
    }
}
