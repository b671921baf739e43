//! The file: a head, blocks, the tail, a foot.
//!
//! | part | holds |
//! |---|---|
//! | head, 64 bytes | magic with the version, [`Identity`] of the recording, zeros |
//! | blocks | checkpoints ([`crate::checkpoints`]) and blocks of leaves ([`crate::leaf`]), levels ([`crate::levels`]), wakes ([`crate::wakes`]) and values ([`crate::values`]) in the order in which they were full, each with 4 bytes of its sum ([`crate::bytes::checksum`]) |
//! | tail | [`Tail`] as numbers and texts: names of states, wakers, rows with the places of their blocks, marks |
//! | foot, 32 bytes | where the tail begins, its length, its sum, a sum of head and foot |
//!
//! Nothing before the tail is written twice, so an index can be made while a recording runs. All numbers in
//! head and foot are little-endian and have 8 bytes.

use crate::bytes::{Bytes, checksum, put, put_text, put_time};
use crate::checkpoints::{self, Place};
use crate::error::{Damage, Damaged};
use crate::row::{Row, RowId};
use crate::wakes::Waker;
use tracewing_timeline::{Class, StateId};
use tracewing_units::{Cpu, Duration, Timestamp};

/// The last figure is the version: a change of the format changes it, and one of what an index has of a
/// recording.
const MAGIC: [u8; 8] = *b"TWStatsC";
pub(crate) const HEAD: usize = 64;
pub(crate) const FOOT: usize = 32;

/// Which recording an index is of, as [`crate::identity`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) u64);

/// The head of an index of this recording.
pub(crate) fn head(identity: Identity) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..16].copy_from_slice(&identity.0.to_le_bytes());
    head
}

/// The foot after a tail at `offset`.
pub(crate) fn foot(head: &[u8; HEAD], offset: u64, tail: &[u8]) -> [u8; FOOT] {
    let mut foot = [0; FOOT];
    foot[..8].copy_from_slice(&offset.to_le_bytes());
    foot[8..16].copy_from_slice(&(tail.len() as u64).to_le_bytes());
    foot[16..24].copy_from_slice(&checksum(tail).to_le_bytes());
    let sum = checksum(&[head.as_slice(), &foot[..24]].concat());
    foot[24..].copy_from_slice(&sum.to_le_bytes());
    foot
}

/// A state by its number: what it is called, and of which class it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The class whose sums include it, and by which it is coloured.
    pub class: Class,
    /// Its name for people, such as `system call read`.
    pub name: String,
    /// What it is about: the system call, the cause of waiting, the interrupt; empty if nothing else. Of a
    /// CPU's state, see `thread`.
    pub about: String,
    /// Of a CPU's state, the row of the thread that it ran.
    pub thread: Option<RowId>,
}

/// A time in which events are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossMark {
    /// Events of the kernel (0), of programs (1), samples (2).
    pub scope: u8,
    /// The CPU whose buffer was full, if the stream declares it.
    pub cpu: Option<Cpu>,
    /// After this time, since the index begins.
    pub from: Duration,
    /// Before this time.
    pub to: Duration,
    /// How many; `None` if unknown.
    pub events: Option<u64>,
}

/// What is known when all has been read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tail {
    /// Beginning of the recording, on its clock: time 0 of the index.
    pub begin: Timestamp,
    /// Its end, since then.
    pub length: Duration,
    /// Events that were read.
    pub events: u64,
    /// Where checkpoints are, by time.
    pub(crate) checkpoints: Vec<Place>,
    /// Whether it has none where an index that is made of the complete recording has some: it was made while
    /// the recording was. [`Cache::make`](crate::Cache::make) makes one that has them.
    pub lacks_checkpoints: bool,
    /// Whether the recording follows only some threads, so that others appear without being complete.
    pub is_partial: bool,
    /// Whether a part of the recording could not be read: nothing is known after it.
    pub is_cut_off: bool,
    /// States, by number.
    pub states: Vec<State>,
    /// What woke threads and tasks, by number.
    pub wakers: Vec<Waker>,
    /// Rows, by number.
    pub rows: Vec<Row>,
    /// Losses, in the order in which they were found.
    pub losses: Vec<LossMark>,
}

impl Tail {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        checkpoints::write(&self.checkpoints, &mut out);
        put(&mut out, self.begin.as_ns().cast_unsigned());
        put_time(&mut out, self.length);
        put(&mut out, self.events);
        let flags = [self.is_partial, self.is_cut_off, self.lacks_checkpoints];
        put(&mut out, flags.iter().rev().fold(0, |flags, flag| flags << 1 | u64::from(*flag)));
        put(&mut out, self.states.len() as u64);
        for state in &self.states {
            put(&mut out, state.class as u64);
            put_text(&mut out, &state.name);
            put_text(&mut out, &state.about);
            put(&mut out, state.thread.map_or(0, |row| u64::from(row.0) + 1));
        }
        put(&mut out, self.wakers.len() as u64);
        self.wakers.iter().for_each(|waker| waker.write(&mut out));
        put(&mut out, self.rows.len() as u64);
        self.rows.iter().for_each(|row| row.write(&mut out));
        put(&mut out, self.losses.len() as u64);
        for loss in &self.losses {
            put(&mut out, u64::from(loss.scope));
            put(&mut out, loss.cpu.map_or(0, |cpu| u64::from(cpu.0) + 1));
            put_time(&mut out, loss.from);
            put_time(&mut out, loss.to);
            put(&mut out, u64::from(loss.events.is_some()));
            put(&mut out, loss.events.unwrap_or(0));
        }
        out
    }

    /// The tail in these bytes; all blocks lie before `body`.
    pub(crate) fn read(bytes: &[u8], body: u64) -> Result<Tail, Damaged> {
        let mut bytes = Bytes(bytes);
        let checkpoints = checkpoints::read(&mut bytes, body)?;
        let begin = Timestamp::from_ns(bytes.number()?.cast_signed());
        let (length, events, flags) = (bytes.time()?, bytes.number()?, bytes.number()?);
        let mut tail = Tail {
            begin,
            length,
            events,
            checkpoints,
            is_partial: flags & 1 != 0,
            is_cut_off: flags & 2 != 0,
            lacks_checkpoints: flags & 4 != 0,
            ..Tail::default()
        };
        for _ in 0..bytes.number()? {
            tail.states.push(State::read(&mut bytes)?);
        }
        for _ in 0..bytes.number()? {
            tail.wakers.push(Waker::read(&mut bytes)?);
        }
        for _ in 0..bytes.number()? {
            tail.rows.push(Row::read(&mut bytes, body)?);
        }
        for _ in 0..bytes.number()? {
            tail.losses.push(LossMark::read(&mut bytes)?);
        }
        bytes.end()?;
        tail.check().map(|()| tail)
    }

    /// Numbers of rows lead to rows, and states that all rows have exist.
    fn check(&self) -> Result<(), Damaged> {
        let threads = self.states.iter().filter_map(|state| state.thread);
        let parents = self.rows.iter().flat_map(|row| [row.parent, row.group]).flatten();
        let wakers = self.wakers.iter().filter_map(|waker| match waker {
            Waker::Row(row) => Some(*row),
            Waker::Unknown | Waker::Interrupt(_) => None,
        });
        match threads.chain(parents).chain(wakers).all(|row| (row.0 as usize) < self.rows.len()) {
            true if self.states.len() > StateId::RUNNING.0 as usize => Ok(()),
            true => Err(Damaged(Damage::FewStates)),
            false => Err(Damaged(Damage::NoRow)),
        }
    }
}

impl State {
    fn read(bytes: &mut Bytes<'_>) -> Result<State, Damaged> {
        let class = Class::from_number(bytes.number()?).ok_or(Damaged(Damage::NoClass))?;
        let (name, about) = (bytes.text()?, bytes.text()?);
        Ok(State { class, name, about, thread: bytes.small()?.checked_sub(1).map(RowId) })
    }
}

impl Waker {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Waker::Unknown => put(out, 0),
            Waker::Interrupt(name) => {
                put(out, 1);
                put_text(out, name);
            }
            Waker::Row(row) => put(out, u64::from(row.0) + 2),
        }
    }

    fn read(bytes: &mut Bytes<'_>) -> Result<Waker, Damaged> {
        Ok(match bytes.small()? {
            0 => Waker::Unknown,
            1 => Waker::Interrupt(bytes.text()?),
            row => Waker::Row(RowId(row - 2)),
        })
    }
}

impl LossMark {
    fn read(bytes: &mut Bytes<'_>) -> Result<LossMark, Damaged> {
        let scope = bytes.number()?.try_into().map_err(|_| Damaged(Damage::NoScope))?;
        let cpu = bytes.small()?.checked_sub(1).map(Cpu);
        let (from, to) = (bytes.time()?, bytes.time()?);
        let (is_known, events) = (bytes.number()? != 0, bytes.number()?);
        Ok(LossMark { scope, cpu, from, to, events: is_known.then_some(events) })
    }
}
