//! External sort: items arrive nearly in order and leave in order, even if they do not fit into memory.
//!
//! An analysis reports an interval when it ends, so long intervals arrive late. Items fill a buffer of
//! [`BUFFER`] bytes. A full buffer is sorted and written to a temporary file as a run; all runs are merged at
//! the end. If everything fits into the buffer, no file is written.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tracewing_units::Timestamp;

/// Bytes of items that are kept in memory.
const BUFFER: usize = 32 << 20;

/// Maximum number of runs that are merged at once; each is read through a buffer of [`WINDOW`] bytes.
const RUNS: usize = 256;

/// Bytes that are read from a run at once.
const WINDOW: usize = 64 << 10;

/// Bytes of an item's header: length, rank, time.
const HEADER: usize = 4 + 1 + 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item<'s> {
    /// Primary sort key.
    pub time: Timestamp,
    /// Secondary sort key; items of equal time and rank keep their order.
    pub rank: u8,
    /// Payload, opaque to the sorter.
    pub bytes: &'s [u8],
}

/// Collects items and sorts them.
#[derive(Debug)]
pub(crate) struct Sorter {
    folder: PathBuf,
    /// Items with headers, back to back.
    items: Vec<u8>,
    /// Per item: its time, and one number with its rank (high byte) and its offset in `items`.
    keys: Vec<(Timestamp, u64)>,
    buffer: usize,
    runs: Runs,
}

/// Sorted runs, back to back in one file.
#[derive(Debug, Default)]
struct Runs {
    file: Option<File>,
    ranges: Vec<Range<u64>>,
}

impl Sorter {
    /// An empty sorter. Temporary files are anonymous and lie in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self::with_buffer(folder, BUFFER)
    }

    fn with_buffer(folder: &Path, buffer: usize) -> Self {
        Sorter {
            folder: folder.to_owned(),
            items: Vec::new(),
            keys: Vec::new(),
            buffer,
            runs: Runs::default(),
        }
    }

    /// Adds an item; `write` appends its payload.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    #[inline]
    pub(crate) fn push(
        &mut self,
        time: Timestamp,
        rank: u8,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> std::io::Result<()> {
        let start = self.items.len();
        self.items.extend_from_slice(&[0; HEADER]);
        write(&mut self.items);
        let length = u32::try_from(self.items.len() - start - HEADER)
            .map_err(|_| std::io::Error::other("an event of more than 4 GiB cannot be exported"))?;
        let header = &mut self.items[start..start + HEADER];
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4] = rank;
        header[5..].copy_from_slice(&time.as_ns().to_le_bytes());
        self.keys.push((time, u64::from(rank) << 56 | start as u64));
        if self.items.len() >= self.buffer { self.spill() } else { Ok(()) }
    }

    /// Returns all items in order.
    ///
    /// # Errors
    /// The temporary file cannot be written or read.
    pub(crate) fn finish(mut self) -> std::io::Result<Sorted> {
        if self.runs.ranges.is_empty() {
            self.keys.sort();
            return Ok(Sorted::Memory { items: self.items, keys: self.keys, next: 0 });
        }
        self.spill()?;
        Ok(Sorted::Files(Merge::new(self.runs)?))
    }

    #[cold]
    #[inline(never)]
    fn spill(&mut self) -> std::io::Result<()> {
        // The keys are mostly in order, which this sort exploits.
        self.keys.sort();
        if self.runs.ranges.len() == RUNS {
            let mut merge = Merge::new(std::mem::take(&mut self.runs))?;
            self.runs.write(&self.folder, |out| {
                while let Some(item) = merge.next()? {
                    out.write_all(item)?;
                }
                Ok(())
            })?;
        }
        let (items, keys) = (&self.items, &self.keys);
        self.runs.write(&self.folder, |out| {
            keys.iter().try_for_each(|(_, place)| out.write_all(with_header(items, *place)))
        })?;
        self.items.clear();
        self.keys.clear();
        Ok(())
    }
}

/// The item at an offset, with its header.
fn with_header(items: &[u8], place: u64) -> &[u8] {
    let start = (place & ((1 << 56) - 1)) as usize;
    &items[start..start + HEADER + length(&items[start..])]
}

/// Length of the payload, from the header that `bytes` begins with.
fn length(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize)
}

fn item(bytes: &[u8]) -> Item<'_> {
    let time = Timestamp::from_ns(bytes[5..].first_chunk().map_or(0, |time| i64::from_le_bytes(*time)));
    Item { time, rank: bytes[4], bytes: &bytes[HEADER..] }
}

impl Runs {
    fn write(
        &mut self,
        folder: &Path,
        write: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        let start = self.ranges.last().map_or(0, |range| range.end);
        let mut out = BufWriter::with_capacity(WINDOW, &*file);
        write(&mut out)?;
        out.flush()?;
        drop(out);
        self.ranges.push(start..file.metadata()?.len());
        Ok(())
    }
}

/// All items in order.
#[derive(Debug)]
pub(crate) enum Sorted {
    /// No run was written.
    Memory {
        items: Vec<u8>,
        keys: Vec<(Timestamp, u64)>,
        next: usize,
    },
    Files(Merge),
}

impl Sorted {
    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    #[inline]
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Item<'_>>> {
        Ok(match self {
            Sorted::Memory { items, keys, next } => {
                let Some((_, place)) = keys.get(*next) else { return Ok(None) };
                *next += 1;
                Some(item(with_header(items, *place)))
            }
            Sorted::Files(merge) => merge.next()?.map(item),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Merge {
    file: Option<File>,
    runs: Vec<Run>,
    /// Time, rank and run of the next item of each run.
    heap: BinaryHeap<Reverse<(Timestamp, u8, usize)>>,
    /// Whether the first item of the heap has been returned.
    given: bool,
}

/// A run that is being read.
#[derive(Debug)]
struct Run {
    /// Range of the file that is still unread.
    rest: Range<u64>,
    window: Vec<u8>,
    /// Offset of the next item in `window`.
    at: usize,
}

impl Merge {
    fn new(runs: Runs) -> std::io::Result<Self> {
        let new = |range| Run { rest: range, window: Vec::new(), at: 0 };
        let mut merge = Merge {
            file: runs.file,
            runs: runs.ranges.into_iter().map(new).collect(),
            heap: BinaryHeap::new(),
            given: false,
        };
        if let Some(file) = &merge.file {
            for (index, run) in merge.runs.iter_mut().enumerate() {
                if let Some((time, rank)) = run.fill(file)? {
                    merge.heap.push(Reverse((time, rank, index)));
                }
            }
        }
        Ok(merge)
    }

    /// The next item with its header.
    fn next(&mut self) -> std::io::Result<Option<&[u8]>> {
        if std::mem::replace(&mut self.given, true)
            && let (Some(mut first), Some(file)) = (self.heap.peek_mut(), &self.file)
        {
            let index = first.0.2;
            let run = &mut self.runs[index];
            run.at += HEADER + length(&run.window[run.at..]);
            match run.fill(file)? {
                Some((time, rank)) => first.0 = (time, rank, index),
                None => drop(PeekMut::pop(first)),
            }
        }
        Ok(self.heap.peek().map(|Reverse((_, _, index))| {
            let run = &self.runs[*index];
            &run.window[run.at..run.at + HEADER + length(&run.window[run.at..])]
        }))
    }
}

impl Run {
    /// Makes sure that the next item is in the window; returns its time and rank, or `None` at the end.
    #[inline]
    fn fill(&mut self, file: &File) -> std::io::Result<Option<(Timestamp, u8)>> {
        let here = self.window.len() - self.at;
        if here < HEADER || here < HEADER + length(&self.window[self.at..]) {
            self.read(HEADER, file)?;
            if self.window.is_empty() {
                return Ok(None);
            }
            self.read(HEADER + length(&self.window), file)?;
        }
        let Item { time, rank, .. } = item(&self.window[self.at..]);
        Ok(Some((time, rank)))
    }

    /// Moves the unread bytes to the window's start and reads until it has `least` bytes, if the run has
    /// that many left.
    fn read(&mut self, least: usize, file: &File) -> std::io::Result<()> {
        self.window.drain(..self.at);
        self.at = 0;
        let here = self.window.len();
        if here >= least {
            return Ok(());
        }
        let more = (WINDOW.max(least) - here).min((self.rest.end - self.rest.start) as usize);
        self.window.resize(here + more, 0);
        file.read_exact_at(&mut self.window[here..], self.rest.start)?;
        self.rest.start += more as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items in random order, of many lengths, with equal times and ranks.
    fn items() -> Vec<(Timestamp, u8, Vec<u8>)> {
        let mut state = 1_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        (0..3000_u32)
            .map(|number| {
                let (time, rank) = (Timestamp::from_ns(i64::from(random(400)) - 100), random(3) as u8);
                let mut bytes = number.to_le_bytes().to_vec();
                bytes.resize(4 + random(200) as usize, rank);
                (time, rank, bytes)
            })
            .collect()
    }

    fn check(buffer: usize, runs: Range<usize>) {
        let mut expected = items();
        let mut sorter = Sorter::with_buffer(&std::env::temp_dir(), buffer);
        let mut most = 0;
        for (time, rank, bytes) in &expected {
            sorter.push(*time, *rank, |out| out.extend_from_slice(bytes)).expect("a temporary file");
            most = most.max(sorter.runs.ranges.len());
        }
        assert!(runs.contains(&most), "{most} runs");
        expected.sort_by_key(|(time, rank, _)| (*time, *rank));
        let mut sorted = sorter.finish().expect("a temporary file");
        for (time, rank, bytes) in &expected {
            let item = sorted.next().expect("a temporary file").expect("as many items as were given");
            assert_eq!((item.time, item.rank, item.bytes), (*time, *rank, &bytes[..]));
        }
        assert_eq!(sorted.next().expect("a temporary file"), None);
    }

    #[test]
    fn in_memory() {
        check(BUFFER, 0..1);
    }

    #[test]
    fn in_runs() {
        check(20_000, 10..RUNS);
    }

    #[test]
    fn in_more_runs_than_are_merged_at_once() {
        check(300, RUNS..RUNS + 1);
    }

    #[test]
    fn an_item_is_longer_than_what_is_read_at_once() {
        let mut sorter = Sorter::with_buffer(&std::env::temp_dir(), 100);
        for time in [2, 1] {
            let long = [time as u8; 3 * WINDOW];
            sorter
                .push(Timestamp::from_ns(time), 0, |out| out.extend_from_slice(&long))
                .expect("a temporary file");
        }
        let mut sorted = sorter.finish().expect("a temporary file");
        for time in [1, 2] {
            let item = sorted.next().expect("a temporary file").expect("an item");
            assert!(item.time == Timestamp::from_ns(time) && item.bytes == [time as u8; 3 * WINDOW]);
        }
    }
}
