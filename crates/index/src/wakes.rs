//! Wakes: when a thread or a task was woken, and by what.
//!
//! A block is a sequence of numbers ([`crate::bytes::put`]): for each wake the time since the one before it
//! in nanoseconds (0 for the block's first, whose time is in the [`Entry`]), and the number of its waker.

use crate::body::Body;
use crate::bytes::{Bytes, put, put_time};
use crate::error::{Damage, Damaged};
use crate::row::{Entry, RowId};
use std::collections::HashMap;
use tracewing_analysis::Names;
use tracewing_timeline::WokenBy;
use tracewing_units::Duration;

/// Wakes in a block; more where several have the time of the last.
const WAKES: u32 = 512;
/// Blocks end after their last wake.
const SHORTEST: Duration = Duration::from_ns(1);

/// What woke a thread or a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waker {
    /// No event determines it.
    Unknown,
    /// An interrupt or softirq of this name, which is empty if no event identifies it.
    Interrupt(String),
    /// A thread or a task.
    Row(RowId),
}

/// The wakers that have occurred, by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wakers {
    wakers: Vec<WokenBy>,
    /// Of threads and tasks by their tracks, of interrupts by their names, of others.
    tracks: Vec<Option<u32>>,
    interrupts: Vec<Option<u32>>,
    others: HashMap<WokenBy, u32>,
}

impl Wakers {
    #[inline]
    pub(crate) fn number(&mut self, by: WokenBy) -> u32 {
        let known = match by {
            WokenBy::Track(track) => self.tracks.get(track as usize).copied().flatten(),
            WokenBy::Interrupt(Some(name)) => self.interrupts.get(name.0 as usize).copied().flatten(),
            WokenBy::Interrupt(None) | WokenBy::Unknown => self.others.get(&by).copied(),
        };
        known.unwrap_or_else(|| self.add(by))
    }

    #[cold]
    fn add(&mut self, by: WokenBy) -> u32 {
        let new = self.wakers.len() as u32;
        self.wakers.push(by);
        match by {
            WokenBy::Track(track) => keep(&mut self.tracks, track as usize, new),
            WokenBy::Interrupt(Some(name)) => keep(&mut self.interrupts, name.0 as usize, new),
            WokenBy::Interrupt(None) | WokenBy::Unknown => _ = self.others.insert(by, new),
        }
        new
    }

    /// All of them, with their names.
    pub(crate) fn finish(&self, texts: &Names) -> Vec<Waker> {
        let waker = |by: &WokenBy| match *by {
            WokenBy::Unknown => Waker::Unknown,
            WokenBy::Interrupt(name) => Waker::Interrupt(name.map_or("", |name| texts.get(name)).to_owned()),
            WokenBy::Track(track) => Waker::Row(RowId(track)),
        };
        self.wakers.iter().map(waker).collect()
    }
}

fn keep(numbers: &mut Vec<Option<u32>>, place: usize, number: u32) {
    if numbers.len() <= place {
        numbers.resize(place + 1, None);
    }
    numbers[place] = Some(number);
}

/// The block of a row that is being filled, and where the others are.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenWakes {
    block: Vec<u8>,
    count: u32,
    from: Duration,
    last: Duration,
    entries: Vec<Entry>,
}

impl OpenWakes {
    /// Adds the next wake, by the waker of this number.
    pub(crate) fn push(&mut self, at: Duration, waker: u32, body: &mut Body<'_>) {
        let at = at.max(self.last);
        // Blocks have no time in common.
        if self.count >= WAKES && at > self.last {
            self.flush(body);
        }
        if self.count == 0 {
            (self.from, self.last) = (at, at);
        }
        put_time(&mut self.block, at - self.last);
        put(&mut self.block, waker.into());
        (self.last, self.count) = (at, self.count + 1);
    }

    fn flush(&mut self, body: &mut Body<'_>) {
        let (offset, length) = body.block(&self.block);
        let (from, to, count) = (self.from, self.last + SHORTEST, self.count);
        self.entries.push(Entry { from, to, offset, length, count });
        self.block.clear();
        self.count = 0;
    }

    /// Where all blocks are.
    pub(crate) fn finish(mut self, body: &mut Body<'_>) -> Vec<Entry> {
        if self.count > 0 {
            self.flush(body);
        }
        self.entries
    }
}

/// The wakes of a block: when, and the number of the waker.
pub(crate) fn read(
    block: &[u8],
    entry: &Entry,
    mut each: impl FnMut(Duration, u32) -> Result<(), Damaged>,
) -> Result<(), Damaged> {
    let (mut bytes, mut at) = (Bytes(block), entry.from);
    for _ in 0..entry.count {
        at = at.checked_add(bytes.time()?).filter(|at| *at < entry.to).ok_or(Damaged(Damage::LateWake))?;
        each(at, bytes.small()?)?;
    }
    bytes.end()
}
