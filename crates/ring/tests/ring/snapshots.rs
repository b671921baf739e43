//! Snapshots of a region in overwrite mode: the readers rewind, read, and return everything to the ring.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Acquire;

use tracewing_abi::region::{Mode, Protocol, SUB_BUFFER_HEADER};
use tracewing_ring::{Reader, Region, UpTo};
use tracewing_units::Cycles;

use crate::collector::Gap;
use crate::events::{Event, PINNED, decode};

/// The readers, and what the snapshots have shown so far.
pub struct Snapshots {
    readers: Vec<Reader>,
    region: Region,
    gaps: HashSet<Gap>,
    taken: u64,
}

/// One CPU's part of a snapshot.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Sub-buffers overwritten before the first event and while the snapshot was taken.
    pub overwritten: u64,
}

impl Snapshots {
    /// For a region that has no readers yet.
    pub fn new(region: Region) -> Self {
        assert_eq!(region.geometry().mode(), Mode::Overwrite);
        // SAFETY: the only readers of a test's own region.
        let readers = (0..region.geometry().cpus()).map(|cpu| unsafe { region.reader(cpu) });
        Self { readers: readers.collect(), region, gaps: HashSet::new(), taken: 0 }
    }

    /// Gaps in the events of [`PINNED`] writers in a snapshot, although nothing was overwritten there.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> {
        self.gaps.iter().copied()
    }

    /// Number of snapshots taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes a snapshot. Checks that each CPU's events are in order; with `Publish` also that it includes
    /// everything that was there when it began. The other protocols cannot promise that: an uncommitted event
    /// hides those after it.
    pub fn take(&mut self) -> Vec<Snapshot> {
        self.taken += 1;
        (0..self.readers.len()).map(|cpu| self.take_cpu(cpu)).collect()
    }

    fn take_cpu(&mut self, cpu: usize) -> Snapshot {
        let reader = &mut self.readers[cpu];
        let begin = self.region.buffer(cpu).control().head.load(Acquire);
        reader.rewind();
        let (mut snapshot, mut stamp) = (Snapshot::default(), Cycles::ZERO);
        let mut last: HashMap<u32, (u32, u64)> = HashMap::new();
        while let Some(chunk) = reader.next(UpTo::LastWritten).expect("undamaged") {
            assert!(chunk.begin >= stamp, "a chunk begins before the end of the one before");
            assert!(chunk.overwritten.sub_buffers >= snapshot.overwritten);
            (stamp, snapshot.overwritten) = (chunk.end, chunk.overwritten.sub_buffers);
            for event in decode(&chunk) {
                if let Some((counter, overwritten)) =
                    last.insert(event.writer, (event.counter, snapshot.overwritten))
                {
                    assert!(counter < event.counter, "{counter} before {event:?}");
                    let is_explained = event.writer & PINNED == 0 || overwritten < snapshot.overwritten;
                    if !is_explained && counter + 1 < event.counter {
                        self.gaps.insert(Gap { writer: event.writer, from: counter + 1, to: event.counter });
                    }
                }
                snapshot.events.push(event);
            }
            reader.give_back(chunk);
        }
        if self.region.protocol() == Protocol::Publish {
            let geometry = self.region.geometry();
            let waiting = reader.waiting();
            let now = self.region.buffer(cpu).control().head.load(Acquire);
            let position = |head| (geometry.sequence(head), geometry.at(head) as i64);
            let ((begin, from), (now, to)) = (position(begin), position(now));
            let written = geometry.distance(begin, now) * geometry.sub_buffer_bytes() as i64 + to - from;
            let new = written.min(geometry.capacity() as i64) as usize;
            assert!(waiting <= new + SUB_BUFFER_HEADER, "{waiting} bytes were left out, {new} were new");
        }
        snapshot
    }

    /// When all writers have ended: two more snapshots, which are equal.
    pub fn finish(&mut self) {
        let (one, two) = (self.take(), self.take());
        assert!(one == two, "nothing was written in between, yet the second snapshot differs");
    }
}
