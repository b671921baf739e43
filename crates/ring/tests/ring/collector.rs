//! Reads a region and checks what must always hold: whole events, stamps in order on each CPU, each writer's
//! events in order on each CPU, nothing twice, and a gap only where the reader reports one.

use std::collections::HashMap;

use tracewing_abi::region::{Mode, SUB_BUFFER_HEADER};
use tracewing_ring::{Chunk, Left, Overwritten, Reader, Region, UpTo};
use tracewing_units::Cycles;

use crate::events::{Event, PINNED, decode};

/// All readers of a region.
pub struct Collector {
    region: Region,
    cpus: Vec<Cpu>,
    seen: HashMap<u32, Vec<u64>>,
    gaps: Vec<Gap>,
    restarts: u64,
    /// Events read.
    pub read: u64,
}

/// Missing events of a writer that stays on one CPU, although nothing was overwritten there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gap {
    pub writer: u32,
    /// Number of the first missing event.
    pub from: u32,
    /// Number after the last missing event.
    pub to: u32,
}

struct Cpu {
    reader: Reader,
    stamp: Cycles,
    lost: u64,
    overwritten: Overwritten,
    /// What earlier readers found overwritten.
    before: Overwritten,
    last: HashMap<u32, Last>,
}

/// The last event of a writer on a CPU, and how many sub-buffers had been overwritten then.
struct Last {
    counter: u32,
    overwritten: u64,
}

impl Collector {
    /// A collector for a region that has no readers yet.
    pub fn new(region: Region) -> Self {
        let cpu = |cpu| Cpu {
            // SAFETY: the only readers of a test's own region.
            reader: unsafe { region.reader(cpu) },
            stamp: Cycles::ZERO,
            lost: 0,
            overwritten: Overwritten::default(),
            before: Overwritten::default(),
            last: HashMap::new(),
        };
        let cpus = (0..region.geometry().cpus()).map(cpu).collect();
        Self { region, cpus, seen: HashMap::new(), gaps: Vec::new(), restarts: 0, read: 0 }
    }

    /// In overwrite mode: a collector that starts at the oldest sub-buffer still in the ring, whatever was
    /// read already.
    pub fn rewound(region: Region) -> Self {
        let mut this = Self::new(region);
        this.cpus.iter_mut().for_each(|cpu| cpu.reader.rewind());
        this
    }

    /// What a full buffer of the region loses.
    pub fn mode(&self) -> Mode {
        self.region.geometry().mode()
    }

    /// Reads everything there is; returns the events in the order of CPUs.
    pub fn drain(&mut self, partial: bool) -> Vec<Event> {
        (0..self.cpus.len()).flat_map(|cpu| self.drain_cpu(cpu, partial)).collect()
    }

    /// As [`Collector::drain`], one CPU.
    pub fn drain_cpu(&mut self, cpu: usize, partial: bool) -> Vec<Event> {
        let mut events = Vec::new();
        self.drain_with(cpu, partial, |chunk, _| events.extend_from_slice(chunk));
        events
    }

    /// As [`Collector::drain_cpu`], calling `before` with each chunk's events before the chunk is released,
    /// and with what was overwritten before it.
    pub fn drain_with(&mut self, cpu: usize, partial: bool, mut before: impl FnMut(&[Event], Overwritten)) {
        let up_to = if partial { UpTo::LastWritten } else { UpTo::LastFull };
        while let Some(chunk) = self.cpus[cpu].reader.next(up_to).expect("undamaged") {
            self.take(cpu, chunk, &mut before);
        }
    }

    /// What a dead process left in a `Smp` or `Local` buffer, and the bytes of each stretch that was
    /// unfinished.
    pub fn finalise(&mut self, cpu: usize) -> (Vec<Event>, Vec<u64>) {
        let (mut events, mut unfinished) = (Vec::new(), Vec::new());
        loop {
            match self.cpus[cpu].reader.finalise().expect("undamaged") {
                Left::Nothing => break,
                Left::Chunk(chunk) => self.take(cpu, chunk, |chunk, _| events.extend_from_slice(chunk)),
                Left::Unfinished(rest) => {
                    assert!(rest.bytes > 0);
                    assert!(rest.after >= self.cpus[cpu].stamp);
                    unfinished.push(rest.bytes);
                }
            }
        }
        (events, unfinished)
    }

    /// Replaces a CPU's reader by a new one, like a consumer that died and was restarted.
    pub fn restart(&mut self, cpu: usize) {
        let cpu_of_region = &mut self.cpus[cpu];
        // The new reader begins after the last chunk that was released.
        let overwritten = std::mem::take(&mut cpu_of_region.overwritten);
        cpu_of_region.before.sub_buffers += overwritten.sub_buffers;
        cpu_of_region.before.bytes += overwritten.bytes;
        // The new reader does not know what the old one knew of earlier sub-buffers.
        cpu_of_region.lost = 0;
        // SAFETY: the earlier reader is not used any more.
        cpu_of_region.reader = unsafe { self.region.reader(cpu) };
        self.restarts += 1;
    }

    /// How often a reader was replaced.
    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    /// Whether no event is left: only headers of sub-buffers that a writer opened and then, migrated or
    /// killed, did not use.
    pub fn is_drained(&self) -> bool {
        self.cpus.iter().all(|cpu| matches!(cpu.reader.waiting(), 0 | SUB_BUFFER_HEADER))
    }

    /// Events that the writers counted as lost.
    pub fn lost(&self) -> u64 {
        (0..self.cpus.len()).map(|cpu| self.region.buffer(cpu).lost_total()).sum()
    }

    /// Events that a CPU's chunks report as lost before their ends.
    pub fn reported(&self, cpu: usize) -> u64 {
        self.cpus[cpu].lost
    }

    /// What was overwritten unread, on all CPUs.
    pub fn overwritten(&self) -> Overwritten {
        let mut sum = Overwritten::default();
        for cpu in &self.cpus {
            let now = cpu.reader.overwritten();
            sum.sub_buffers += cpu.before.sub_buffers + now.sub_buffers;
            sum.bytes += cpu.before.bytes + now.bytes;
        }
        sum
    }

    /// Gaps in the events of [`PINNED`] writers.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> {
        self.gaps.iter().copied()
    }

    /// Whether this event has been read.
    pub fn has(&self, writer: u32, counter: u32) -> bool {
        let words = self.seen.get(&writer).map_or(&[][..], Vec::as_slice);
        words.get(counter as usize / 64).is_some_and(|word| word >> (counter % 64) & 1 == 1)
    }

    fn take(&mut self, index: usize, chunk: Chunk, before_release: impl FnOnce(&[Event], Overwritten)) {
        let cpu = &mut self.cpus[index];
        assert!(chunk.begin >= cpu.stamp, "a chunk begins before the end of the one before");
        assert!(chunk.lost >= cpu.lost && chunk.lost <= self.region.buffer(index).lost_total());
        let (before, after) = (cpu.overwritten, chunk.overwritten);
        assert!(after.sub_buffers >= before.sub_buffers && after.bytes >= before.bytes, "{after:?}");
        (cpu.stamp, cpu.lost, cpu.overwritten) = (chunk.end, chunk.lost, after);
        let events = decode(&chunk);
        let overwritten = cpu.before.sub_buffers + after.sub_buffers;
        for event in &events {
            let last = Last { counter: event.counter, overwritten };
            let (expected, is_explained) = match cpu.last.insert(event.writer, last) {
                Some(last) => (last.counter + 1, last.overwritten < overwritten),
                None => (0, overwritten > 0),
            };
            assert!(expected <= event.counter, "{expected} was to come before {event:?}");
            if expected < event.counter && event.writer & PINNED != 0 && !is_explained {
                self.gaps.push(Gap { writer: event.writer, from: expected, to: event.counter });
            }
            let words = self.seen.entry(event.writer).or_default();
            let (word, bit) = (event.counter as usize / 64, event.counter % 64);
            words.resize(words.len().max(word + 1), 0);
            assert!(words[word] >> bit & 1 == 0, "read twice: {event:?}");
            words[word] |= 1 << bit;
        }
        self.read += events.len() as u64;
        before_release(&events, after);
        cpu.reader.release(chunk);
    }
}
