//! Reads a region and checks what must hold whatever the writers did: whole events, stamps in order on each CPU, each
//! writer's events in order on each CPU, nothing twice.

use std::collections::HashMap;

use tracewing_abi::region::SUB_BUFFER_HEADER;
use tracewing_ring::{Chunk, Reader, Region};

use crate::events::{Event, decode};

/// All readers of a region.
pub struct Collector {
    region: Region,
    cpus: Vec<Cpu>,
    seen: HashMap<u32, Vec<u64>>,
    /// Events read.
    pub read: u64,
}

struct Cpu {
    reader: Reader,
    stamp: u64,
    lost: u64,
    last: HashMap<u32, u32>,
}

impl Collector {
    /// Of a region that has no readers yet.
    pub fn new(region: Region) -> Self {
        let cpu = |cpu| Cpu {
            // SAFETY: the only readers of a test's own region.
            reader: unsafe { region.reader(cpu) },
            stamp: 0,
            lost: 0,
            last: HashMap::new(),
        };
        let cpus = (0..region.geometry().cpus()).map(cpu).collect();
        Self { region, cpus, seen: HashMap::new(), read: 0 }
    }

    /// Reads what there is; gives the events in the order of CPUs.
    pub fn drain(&mut self, partial: bool) -> Vec<Event> {
        (0..self.cpus.len()).flat_map(|cpu| self.drain_cpu(cpu, partial)).collect()
    }

    /// As [`Collector::drain`], one CPU.
    pub fn drain_cpu(&mut self, cpu: usize, partial: bool) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(chunk) = self.cpus[cpu].reader.next(partial).expect("undamaged") {
            events.extend(self.take(cpu, chunk));
        }
        events
    }

    /// What a dead process left in a `Smp` buffer, and how many stretches were unfinished.
    pub fn finalise(&mut self, cpu: usize) -> (Vec<Event>, usize) {
        let (mut events, mut unfinished) = (Vec::new(), 0);
        while let Some(found) = self.cpus[cpu].reader.finalise().expect("undamaged") {
            match found {
                Ok(chunk) => events.extend(self.take(cpu, chunk)),
                Err(rest) => {
                    assert!(rest.bytes > 0);
                    assert!(rest.after >= self.cpus[cpu].stamp);
                    unfinished += 1;
                }
            }
        }
        (events, unfinished)
    }

    /// Whether no event is left: nothing but headers of sub-buffers that somebody opened and then, migrated or killed,
    /// did not use.
    pub fn is_drained(&self) -> bool {
        self.cpus.iter().all(|cpu| matches!(cpu.reader.waiting(), 0 | SUB_BUFFER_HEADER))
    }

    /// Events that the writers counted lost.
    pub fn lost(&self) -> u64 {
        (0..self.cpus.len()).map(|cpu| self.region.cpu(cpu).lost_total()).sum()
    }

    /// Whether this event has been read.
    pub fn has(&self, writer: u32, counter: u32) -> bool {
        let words = self.seen.get(&writer).map_or(&[][..], Vec::as_slice);
        words.get(counter as usize / 64).is_some_and(|word| word >> (counter % 64) & 1 == 1)
    }

    fn take(&mut self, index: usize, chunk: Chunk) -> Vec<Event> {
        let cpu = &mut self.cpus[index];
        assert!(chunk.begin >= cpu.stamp, "a chunk begins before the end of the one before");
        assert!(chunk.lost >= cpu.lost && chunk.lost <= self.region.cpu(index).lost_total());
        (cpu.stamp, cpu.lost) = (chunk.end, chunk.lost);
        let events = decode(&chunk);
        for event in &events {
            let last = cpu.last.insert(event.writer, event.counter);
            assert!(last.is_none_or(|last| last < event.counter), "{last:?} before {event:?}");
            let words = self.seen.entry(event.writer).or_default();
            let (word, bit) = (event.counter as usize / 64, event.counter % 64);
            words.resize(words.len().max(word + 1), 0);
            assert!(words[word] >> bit & 1 == 0, "read twice: {event:?}");
            words[word] |= 1 << bit;
        }
        self.read += events.len() as u64;
        cpu.reader.release(chunk);
        events
    }
}
