//! States of an LWP until it is known whether they belong to a user thread, which is decided when the user
//! thread stops.
//!
//! A poll usually has few states. One that never ends may have any number, so everything beyond [`MEMORY`]
//! bytes goes to a file.

use crate::state::StateId;
use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tracewing_units::Timestamp;

/// Bytes kept in memory per LWP that runs user threads.
const MEMORY: usize = 64 << 10;

/// Encoded size of an interval: state, begin, end.
const SIZE: usize = 4 + 8 + 8;

/// Intervals that are read from the file at once.
const BLOCK: usize = 128;

/// A state of an LWP, which may be one of its user thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) state: StateId,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

/// A queue of states.
#[derive(Debug)]
pub(crate) struct Undecided {
    folder: PathBuf,
    /// The first states of a long queue, and how many they are.
    file: Option<(File, u64)>,
    /// The last states.
    recent: Vec<Interval>,
}

impl Undecided {
    /// An empty queue; the file, if one is needed, lies in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Undecided { folder: folder.to_owned(), file: None, recent: Vec::new() }
    }

    /// Appends a state.
    ///
    /// # Errors
    /// The file cannot be written.
    #[inline]
    pub(crate) fn push(&mut self, interval: Interval) -> Result<()> {
        self.recent.push(interval);
        if self.recent.len() < MEMORY / size_of::<Interval>() { Ok(()) } else { self.store() }
    }

    /// Moves what is in memory to the file.
    #[cold]
    fn store(&mut self) -> Result<()> {
        let (file, count) = match &mut self.file {
            Some(file) => file,
            None => self.file.insert((tempfile::tempfile_in(&self.folder)?, 0)),
        };
        let bytes: Vec<[u8; SIZE]> = self.recent.iter().map(bytes).collect();
        file.write_all(bytes.as_flattened())?;
        *count += bytes.len() as u64;
        self.recent.clear();
        Ok(())
    }

    /// Another queue of the same states.
    ///
    /// # Errors
    /// The file cannot be read, or another one cannot be written.
    pub(crate) fn same(&mut self) -> Result<Self> {
        let mut same = Undecided { recent: self.recent.clone(), ..Undecided::new(&self.folder) };
        if let Some((file, count)) = &mut self.file {
            let mut copy = tempfile::tempfile_in(&self.folder)?;
            file.rewind()?;
            std::io::copy(&mut Read::by_ref(file).take(*count * SIZE as u64), &mut copy)?;
            file.seek(SeekFrom::Start(*count * SIZE as u64))?;
            same.file = Some((copy, *count));
        }
        Ok(same)
    }

    /// Passes all intervals to `each` and empties the queue.
    ///
    /// # Errors
    /// The file cannot be read, or `each` fails.
    #[inline]
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Interval) -> Result<()>) -> Result<()> {
        if let Some((file, count)) = self.file.take() {
            read(file, count, &mut each)?;
        }
        self.recent.iter().try_for_each(|interval| each(*interval))?;
        self.recent.clear();
        Ok(())
    }

    /// Empties the queue.
    pub(crate) fn clear(&mut self) {
        self.file = None;
        self.recent.clear();
    }
}

/// Passes all intervals of a file to `each`.
#[cold]
fn read(mut file: File, mut count: u64, each: &mut impl FnMut(Interval) -> Result<()>) -> Result<()> {
    file.rewind()?;
    let mut room = [[0; SIZE]; BLOCK];
    while count > 0 {
        let some = BLOCK.min(usize::try_from(count).unwrap_or(usize::MAX));
        let some = &mut room[..some];
        file.read_exact(some.as_flattened_mut())?;
        count -= some.len() as u64;
        some.iter().try_for_each(|bytes| each(interval(bytes)))?;
    }
    Ok(())
}

fn bytes(interval: &Interval) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes[..4].copy_from_slice(&interval.state.0.to_le_bytes());
    bytes[4..12].copy_from_slice(&interval.from.as_ns().to_le_bytes());
    bytes[12..].copy_from_slice(&interval.to.as_ns().to_le_bytes());
    bytes
}

fn interval(bytes: &[u8; SIZE]) -> Interval {
    let time = |at: usize| {
        Timestamp::from_ns(bytes[at..].first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes)))
    };
    let state = StateId(bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)));
    Interval { state, from: time(4), to: time(12) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_comes_back_in_its_order_from_memory_and_from_a_file() {
        let mut undecided = Undecided::new(&std::env::temp_dir());
        for count in [3, 20_000, 5] {
            let expected: Vec<_> = (0..count)
                .map(|at| Interval {
                    state: StateId(at as u32),
                    from: Timestamp::from_ns(at),
                    to: Timestamp::from_ns(-at),
                })
                .collect();
            for interval in &expected {
                undecided.push(*interval).expect("a temporary file");
            }
            let mut found = Vec::new();
            undecided
                .drain(|interval| {
                    found.push(interval);
                    Ok(())
                })
                .expect("a temporary file");
            assert_eq!(found, expected);
        }
        let interval = |at| Interval { state: StateId(3), from: Timestamp::from_ns(at), to: Timestamp::MAX };
        (0..9_000).for_each(|at| undecided.push(interval(at)).expect("a temporary file"));
        let mut same = undecided.same().expect("two temporary files");
        undecided.push(interval(9_000)).expect("a temporary file");
        for (queue, count) in [(&mut same, 9_000), (&mut undecided, 9_001)] {
            let mut found = Vec::new();
            let mut keep = |interval| {
                found.push(interval);
                Ok(())
            };
            queue.drain(&mut keep).expect("a temporary file");
            assert_eq!(found, (0..count).map(interval).collect::<Vec<_>>());
        }
        undecided
            .push(Interval { state: StateId::USER, from: Timestamp::from_ns(1), to: Timestamp::from_ns(1) })
            .expect("memory");
        undecided.clear();
        undecided.drain(|interval| panic!("{interval:?}")).expect("memory");
    }
}
