//! What a flight recorder keeps of programs that have ended: the next snapshot may be about one of them.
//!
//! It is copied out of the buffers, so a short program takes the memory of its events, and nothing else. What
//! programs held that lived at the same time is kept until other programs take their place: together with
//! the regions of living programs, it takes no more memory than the most regions that there ever were at
//! once, and always as much as one. The programs that ended first go first; snapshots report what they held
//! as overwritten. Buffers in files stay files, since they are to survive the recorder.

use std::collections::VecDeque;

use tracewing_abi::region::Geometry;
use tracewing_consumer::drain::Drain;
use tracewing_consumer::firsts::Firsts;
use tracewing_consumer::snapshot::{Contents, Dropped, Snapshot, Writers};

/// Files of ended programs that are kept.
const MOST_FILES: usize = 32;

/// The programs, in the order of their ends.
pub(crate) struct Past {
    in_files: bool,
    files: VecDeque<Drain>,
    memory: VecDeque<Contents>,
    bytes: usize,
    /// Bytes that the buffers of a region hold.
    of_region: usize,
    /// The most regions that there were at once.
    most_regions: usize,
    /// What is kept no longer.
    dropped: Dropped,
}

impl Past {
    /// None yet; regions have this shape.
    pub(crate) fn new(geometry: Geometry, in_files: bool) -> Self {
        Self {
            in_files,
            files: VecDeque::new(),
            memory: VecDeque::new(),
            bytes: 0,
            of_region: geometry.cpus() * geometry.capacity(),
            most_regions: 1,
            dropped: Dropped::default(),
        }
    }

    /// There are so many regions.
    pub(crate) fn see(&mut self, regions: usize) {
        self.most_regions = self.most_regions.max(regions);
    }

    /// Keeps what a region holds to which no process writes any more, next to `living` regions. Gives the
    /// names of those that are kept no longer and may be in files. Looks for classes of first events in it.
    pub(crate) fn keep(&mut self, mut drain: Drain, firsts: &Firsts, living: usize) -> Vec<String> {
        let contents = Contents::of(&mut drain, Writers::Dead);
        contents.scan(firsts);
        if self.in_files {
            self.files.push_back(drain);
            let given_up = self.files.len().saturating_sub(MOST_FILES);
            let dropped = &mut self.dropped;
            let given_up = self.files.drain(..given_up).map(|mut drain| {
                dropped.add(&Contents::of(&mut drain, Writers::Dead));
                drain.name().to_owned()
            });
            return given_up.collect();
        }
        self.bytes += contents.bytes();
        self.memory.push_back(contents);
        let most = self.most_regions.saturating_sub(living).max(1) * self.of_region;
        while self.bytes > most
            && self.memory.len() > 1
            && let Some(oldest) = self.memory.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.dropped.add(&oldest);
        }
        Vec::new()
    }

    /// Adds everything to a snapshot.
    ///
    /// # Errors
    /// A file of it cannot be written.
    pub(crate) fn add_to(
        &mut self,
        snapshot: &mut Snapshot,
        firsts: &Firsts,
    ) -> Result<(), tracewing_consumer::Error> {
        snapshot.add_dropped(&self.dropped);
        self.memory.iter().try_for_each(|contents| snapshot.add(contents, firsts))?;
        self.files.iter_mut().try_for_each(|drain| snapshot.add(&Contents::of(drain, Writers::Dead), firsts))
    }
}
