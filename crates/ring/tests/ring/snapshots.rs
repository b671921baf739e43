//! Snapshots of a region in overwrite mode: the readers go back, read, and put everything into the ring again.

use std::collections::HashMap;

use tracewing_abi::region::Mode;
use tracewing_ring::{Reader, Region};

use crate::events::{Event, PINNED, decode};

/// The readers, and what the snapshots so far have shown.
pub struct Snapshots {
    readers: Vec<Reader>,
    /// Per CPU and writer, its newest event in any snapshot.
    newest: HashMap<(usize, u32), u32>,
    taken: u64,
}

/// One CPU's part of a snapshot.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Sub-buffers overwritten before the first and while it was taken.
    pub overwritten: u64,
}

impl Snapshots {
    /// Of a region that has no readers yet.
    pub fn new(region: Region) -> Self {
        assert_eq!(region.geometry().mode(), Mode::Overwrite);
        // SAFETY: the only readers of a test's own region.
        let readers = (0..region.geometry().cpus()).map(|cpu| unsafe { region.reader(cpu) });
        Self { readers: readers.collect(), newest: HashMap::new(), taken: 0 }
    }

    /// How many were taken.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Takes one. Checks that each CPU's events are in order, that none of a writer that stays there is missing but
    /// where something was overwritten, and that no snapshot ends before an earlier one did.
    ///
    /// Losses count as gaps: [`Snapshots::take`] is for writers that lose nothing, or the check is theirs.
    pub fn take(&mut self) -> Vec<Snapshot> {
        self.taken += 1;
        (0..self.readers.len()).map(|cpu| self.take_cpu(cpu)).collect()
    }

    fn take_cpu(&mut self, cpu: usize) -> Snapshot {
        let reader = &mut self.readers[cpu];
        reader.rewind();
        let (mut snapshot, mut stamp) = (Snapshot::default(), 0);
        let mut last: HashMap<u32, (u32, u64)> = HashMap::new();
        while let Some(chunk) = reader.next(true).expect("undamaged") {
            assert!(chunk.begin >= stamp, "a chunk begins before the end of the one before");
            assert!(chunk.overwritten.sub_buffers >= snapshot.overwritten);
            (stamp, snapshot.overwritten) = (chunk.end, chunk.overwritten.sub_buffers);
            for event in decode(&chunk) {
                if let Some((counter, overwritten)) =
                    last.insert(event.writer, (event.counter, snapshot.overwritten))
                {
                    assert!(counter < event.counter, "{counter} before {event:?}");
                    let is_explained = event.writer & PINNED == 0 || overwritten < snapshot.overwritten;
                    // A handful: `Smp` and `Local` lose events behind a sub-buffer that is not committed yet.
                    assert!(is_explained || event.counter - counter < 1000, "{counter}, then {event:?}");
                }
                snapshot.events.push(event);
            }
            reader.give_back(chunk);
        }
        for (writer, (counter, _)) in last {
            let newest = self.newest.entry((cpu, writer)).or_default();
            assert!(counter >= *newest, "writer {writer:#x}: {counter}, was {newest} in an earlier snapshot");
            *newest = counter;
        }
        snapshot
    }

    /// When all writers have ended: two more snapshots, which are equal.
    pub fn finish(&mut self) {
        let (one, two) = (self.take(), self.take());
        assert!(one == two, "nobody wrote in between, and yet the second snapshot differs");
    }
}
