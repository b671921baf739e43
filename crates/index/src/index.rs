//! An index that was made: its rows and states, and what its blocks hold.

use crate::body::SUM;
use crate::bytes::{Bytes, checksum};
use crate::checkpoints::{self, Kept};
use crate::error::{Damage, Damaged, Error};
use crate::format::{self, FOOT, HEAD, Identity, State, Tail};
use crate::leaf::{self, Spans};
use crate::levels::{self, Content};
use crate::row::{Counter, Entry, Row, RowId, RowKind};
use crate::values::{self, Value, Values};
use crate::wakes::{self, Waker};
use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tracewing_timeline::{Class, StateId};
use tracewing_units::Duration;

/// An index that was opened and checked; its blocks are read when they are needed.
#[derive(Debug)]
pub struct Index {
    file: File,
    path: PathBuf,
    tail: Tail,
    /// Where the tail begins.
    end: u64,
    /// While the recording is made: blocks that are not in the file, and where they would be.
    rest: Option<(u64, Vec<u8>)>,
    /// While the recording is made: the places of rows whose numbers are not their places.
    places: HashMap<RowId, u32>,
}

/// Largest block that one reads: more than any writer makes.
const LARGEST: u32 = 1 << 20;

impl Index {
    /// The index in a file; `None` if it is of another recording, or of one that has changed since.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub(crate) fn open(file: File, path: &Path, identity: Identity) -> Result<Option<Self>, Error> {
        let Some((bytes, offset)) = tail(&file, path, identity)? else { return Ok(None) };
        let tail = Tail::read(&bytes, offset)?;
        Ok(Some(Index { file, path: path.to_owned(), tail, end: offset, rest: None, places: HashMap::new() }))
    }

    /// Its checkpoints; `None` if there are none.
    pub fn checkpoints(&self) -> Option<Kept> {
        let places = Some(self.tail.checkpoints.clone()).filter(|places| !places.is_empty())?;
        Some(Kept { file: self.file.try_clone().ok()?, places })
    }

    /// The index of a recording up to now: the file has the blocks before `end`, and `rest` the others. The
    /// first rows have their places as numbers, the others have `numbers`.
    pub(crate) fn of_now(
        (file, path): (File, &Path),
        mut tail: Tail,
        (end, rest): (u64, Vec<u8>),
        numbers: &[RowId],
    ) -> Self {
        let first = tail.rows.len() - numbers.len();
        let number = |row: &mut RowId| {
            let place = (row.0 as usize).checked_sub(first);
            *row = place.map_or(*row, |place| numbers[place]);
        };
        tail.rows.iter_mut().for_each(|row| {
            [&mut row.parent, &mut row.group].into_iter().flatten().for_each(number);
        });
        tail.states.iter_mut().filter_map(|state| state.thread.as_mut()).for_each(number);
        tail.wakers.iter_mut().for_each(|waker| {
            if let Waker::Row(row) = waker {
                number(row);
            }
        });
        let places = numbers.iter().copied().zip(first as u32..).collect();
        Index { file, path: path.to_owned(), tail, end, rest: Some((end, rest)), places }
    }

    /// What it says of the recording, its rows and states.
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Where the tail begins in the file.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    pub(crate) fn into_tail(self) -> Tail {
        self.tail
    }

    /// A row.
    ///
    /// # Panics
    /// It does not exist.
    pub fn row(&self, row: RowId) -> &Row {
        &self.tail.rows[self.places.get(&row).copied().unwrap_or(row.0) as usize]
    }

    /// Whether a row exists.
    pub fn has(&self, row: RowId) -> bool {
        self.places.contains_key(&row) || (row.0 as usize) < self.tail.rows.len() - self.places.len()
    }

    /// All rows with their numbers.
    pub fn rows(&self) -> impl Iterator<Item = (RowId, &Row)> {
        let mut ids: Vec<RowId> = (0..self.tail.rows.len() as u32).map(RowId).collect();
        for (number, place) in &self.places {
            ids[*place as usize] = *number;
        }
        ids.into_iter().zip(&self.tail.rows)
    }

    /// The name and class of a state; `None` if the index has no state of this number.
    pub fn state(&self, state: StateId) -> Option<&State> {
        self.tail.states.get(state.0 as usize)
    }

    /// Reads all blocks.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn check(&self) -> Result<(), Error> {
        let mut room = Vec::new();
        for row in &self.tail.rows {
            for entry in &row.wakes {
                self.wakes(entry, &mut room, |_, _| ())?;
            }
            for entry in &row.leaves {
                let (sums, spans) = self.leaf(entry, &mut room)?;
                for (state, _) in sums {
                    self.class(state)?;
                }
                for span in spans {
                    self.class(span?.state)?;
                }
            }
            for (level, entries) in row.levels.iter().enumerate() {
                for entry in entries {
                    self.nodes(row, level, entry, &mut room, |_, _| Ok(()))?;
                }
            }
            if let Some(counter) = &row.counter {
                self.check_counter(counter, &mut room)?;
            }
        }
        Ok(())
    }

    fn check_counter(&self, counter: &Counter, room: &mut Vec<u8>) -> Result<(), Error> {
        for entry in &counter.values {
            let _ = self.value_block(entry, room, |_| ControlFlow::Continue(()))?;
        }
        for (level, entries) in counter.levels.iter().enumerate() {
            for entry in entries {
                self.value_nodes(level, entry, room, |_, _| Ok(()))?;
            }
        }
        Ok(())
    }

    /// The class of a state that a block has.
    #[inline]
    pub(crate) fn class(&self, state: StateId) -> Result<Class, Damaged> {
        self.state(state).map(|state| state.class).ok_or(Damaged(Damage::NoState))
    }

    /// Before this time, user mode of this state of this row was of unknown mode.
    pub(crate) fn doubted(&self, row: &Row, state: StateId) -> Duration {
        match (row.kind, self.state(state).and_then(|state| state.thread)) {
            (RowKind::Cpu(_), Some(thread)) => self.row(thread).doubted,
            (RowKind::Cpu(_), None) => Duration::ZERO,
            _ => row.doubted,
        }
    }

    /// The sums and spans of a leaf block.
    pub(crate) fn leaf<'b>(
        &self,
        entry: &Entry,
        room: &'b mut Vec<u8>,
    ) -> Result<(Vec<(StateId, Duration)>, Spans<'b>), Error> {
        self.block(entry, room)?;
        Ok(leaf::read(room, entry)?)
    }

    /// The sums of a leaf block alone.
    pub(crate) fn sums(
        &self,
        entry: &Entry,
        room: &mut Vec<u8>,
        each: impl FnMut(StateId, Duration) -> Result<(), Damaged>,
    ) -> Result<(), Error> {
        self.block(entry, room)?;
        leaf::sums(room, each)?;
        Ok(())
    }

    /// The nodes of a block of a level.
    pub(crate) fn nodes(
        &self,
        row: &Row,
        level: usize,
        entry: &Entry,
        room: &mut Vec<u8>,
        each: impl FnMut(u64, &Content) -> Result<(), Damaged>,
    ) -> Result<(), Error> {
        self.block(entry, room)?;
        let members = if row.is_group() { self.tail.rows.len() as u64 } else { 1 };
        Ok(levels::read(room, entry, (level, members), each)?)
    }

    /// The values of a block of a counter, until `each` breaks.
    pub(crate) fn value_block(
        &self,
        entry: &Entry,
        room: &mut Vec<u8>,
        each: impl FnMut(Value) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        self.block(entry, room)?;
        Ok(values::read(room, entry, each)?)
    }

    /// The nodes of a block of a level of a counter.
    pub(crate) fn value_nodes(
        &self,
        level: usize,
        entry: &Entry,
        room: &mut Vec<u8>,
        each: impl FnMut(u64, &Values) -> Result<(), Damaged>,
    ) -> Result<(), Error> {
        self.block(entry, room)?;
        Ok(levels::read(room, entry, (level, 1), each)?)
    }

    /// The wakes of a block.
    pub(crate) fn wakes<'i>(
        &'i self,
        entry: &Entry,
        room: &mut Vec<u8>,
        mut each: impl FnMut(Duration, &'i Waker),
    ) -> Result<(), Error> {
        self.block(entry, room)?;
        Ok(wakes::read(room, entry, |at, waker| {
            each(at, self.tail.wakers.get(waker as usize).ok_or(Damaged(Damage::NoWaker))?);
            Ok(())
        })?)
    }

    fn block(&self, entry: &Entry, room: &mut Vec<u8>) -> Result<(), Error> {
        if entry.length > LARGEST {
            return Err(Damaged(Damage::LargeBlock).into());
        }
        let length = entry.length as usize;
        room.resize(length + SUM, 0);
        let io = |cause| Error::Io { path: self.path.clone(), cause };
        match &self.rest {
            Some((begin, rest)) if entry.offset >= *begin => {
                let at = (entry.offset - begin) as usize;
                let block = rest.get(at..at + length + SUM).ok_or(Damaged(Damage::BlockOutside))?;
                room.copy_from_slice(block);
            }
            _ => self.file.read_exact_at(room, entry.offset).map_err(io)?,
        }
        let sum = room[length..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        room.truncate(length);
        if checksum(room) as u32 != sum {
            return Err(Damaged(Damage::BlockSum).into());
        }
        Ok(())
    }
}

/// The checkpoints of the index in a file; `None` if it is of another recording, or damaged.
pub(crate) fn checkpoints(file: File, path: &Path, identity: Identity) -> Option<Kept> {
    let (bytes, offset) = tail(&file, path, identity).ok()??;
    let places = checkpoints::read(&mut Bytes(&bytes), offset).ok()?;
    Some(Kept { file, places })
}

/// The bytes of the tail of the index in a file, and where it begins; `None` if it is of another recording,
/// or of one that has changed since.
fn tail(file: &File, path: &Path, identity: Identity) -> Result<Option<(Vec<u8>, u64)>, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    let size = file.metadata().map_err(io)?.len();
    let Some(body) = size.checked_sub(FOOT as u64).filter(|body| *body >= HEAD as u64) else {
        return Err(Damaged(Damage::Short).into());
    };
    let (mut head, mut foot) = ([0; HEAD], [0; FOOT]);
    file.read_exact_at(&mut head, 0).map_err(io)?;
    file.read_exact_at(&mut foot, body).map_err(io)?;
    let word = |at: usize| foot[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let [offset, length] = [word(0), word(8)];
    if offset < HEAD as u64 || offset.checked_add(length) != Some(body) {
        return Err(Damaged(Damage::TailOutside).into());
    }
    // No larger than the file.
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset).map_err(io)?;
    if format::foot(&head, offset, &bytes) != foot {
        return Err(Damaged(Damage::TailSum).into());
    }
    if head != format::head(identity) {
        return Ok(None);
    }
    Ok(Some((bytes, offset)))
}
