//! What a flight recorder keeps of programs that have ended: the next snapshot may be about one of them.
//!
//! It is copied out of the buffers, so a short program takes the memory of its events, and nothing else.
//! Altogether it is as much as one program's buffers hold; the programs that ended first go first. Buffers in
//! files stay files, since they are to survive the recorder.

use std::collections::VecDeque;

use tracewing_abi::region::Geometry;
use tracewing_consumer::drain::Drain;
use tracewing_consumer::firsts::Firsts;
use tracewing_consumer::snapshot::{Contents, Snapshot, Writers};

/// Files of ended programs that are kept.
const MOST_FILES: usize = 32;

/// The programs, in the order of their ends.
pub(crate) struct Past {
    in_files: bool,
    files: VecDeque<Drain>,
    memory: VecDeque<Contents>,
    bytes: usize,
    most_bytes: usize,
    dropped: u64,
}

impl Past {
    /// None yet. They get as much memory as a region of this shape.
    pub(crate) fn new(geometry: Geometry, in_files: bool) -> Self {
        let most_bytes = geometry.cpus() * geometry.capacity();
        Self { in_files, files: VecDeque::new(), memory: VecDeque::new(), bytes: 0, most_bytes, dropped: 0 }
    }

    /// Keeps what a region holds to which no process writes any more. Gives the names of those that are kept
    /// no longer and may be in files. Looks for classes of first events in it.
    pub(crate) fn keep(&mut self, mut drain: Drain, firsts: &Firsts) -> Vec<String> {
        if self.in_files {
            Contents::of(&mut drain, Writers::Dead).scan(firsts);
            self.files.push_back(drain);
            let given_up = self.files.len().saturating_sub(MOST_FILES);
            self.dropped += given_up as u64;
            return self.files.drain(..given_up).map(|drain| drain.name().to_owned()).collect();
        }
        let contents = Contents::of(&mut drain, Writers::Dead);
        contents.scan(firsts);
        self.bytes += contents.bytes();
        self.memory.push_back(contents);
        while self.bytes > self.most_bytes
            && self.memory.len() > 1
            && let Some(oldest) = self.memory.pop_front()
        {
            self.bytes -= oldest.bytes();
            self.dropped += 1;
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
        self.memory.iter().try_for_each(|contents| snapshot.add(contents, firsts))?;
        self.files.iter_mut().try_for_each(|drain| snapshot.add(&Contents::of(drain, Writers::Dead), firsts))
    }

    /// Programs that are kept no longer.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
