//! Values of counters: blocks of them, and their levels.
//!
//! A value holds from one time to another. A block is a sequence of numbers: for each value by how much it
//! differs from the one before (from 0), the time without a value before it, and how long it holds. A node of
//! a level ([`crate::levels`]) is how many values begin in its bucket, for how long there is one, the least,
//! the greatest and the last of them: nothing is averaged.

use crate::body::Body;
use crate::bytes::{Bytes, put, put_time};
use crate::error::{Damage, Damaged};
use crate::levels::{Levels, Summary};
use crate::row::{Counter, Entry, Row};
use std::ops::ControlFlow;
use tracewing_units::Duration;

/// Most values in a block.
const VALUES: u32 = 512;

/// A value from one time to another, each since the index begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    /// In the unit of the row.
    pub value: u64,
    /// When it begins to hold.
    pub from: Duration,
    /// Its end, which is after its beginning.
    pub to: Duration,
}

/// The values of a counter in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    /// The least.
    pub least: u64,
    /// The greatest.
    pub most: u64,
    /// The one that holds last.
    pub last: u64,
    /// How many begin in it.
    pub changes: u64,
    /// For how long there is one.
    pub known: Duration,
}

impl Summary for Values {
    type Span = Value;

    fn add(&mut self, Value { value, from: begin, .. }: Value, from: Duration, to: Duration) {
        let changes = u64::from(begin == from);
        self.add_all(&Values { least: value, most: value, last: value, changes, known: to - from });
    }

    fn add_all(&mut self, other: &Values) {
        if other.known.is_zero() {
            return;
        }
        let is_first = self.known.is_zero();
        self.least = if is_first { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.last = other.last;
        self.changes = self.changes.saturating_add(other.changes);
        self.known += other.known;
    }

    fn changes(&self) -> u64 {
        self.changes
    }

    fn time(&self) -> Duration {
        self.known
    }

    fn write(&self, out: &mut Vec<u8>) {
        put(out, self.changes);
        put_time(out, self.known);
        put(out, self.least);
        put(out, self.most - self.least);
        put(out, self.last - self.least);
    }

    fn read(bytes: &mut Bytes<'_>) -> Result<Self, Damaged> {
        let (changes, known, least) = (bytes.number()?, bytes.time()?, bytes.number()?);
        let above = |more: u64| least.checked_add(more).ok_or(Damaged(Damage::LargeNumber));
        let (most, last) = (above(bytes.number()?)?, above(bytes.number()?)?);
        Ok(Values { least, most, last, changes, known })
    }
}

/// The values of a counter while they are read from the recording.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenValues {
    /// The last value, which the next one may extend.
    last: Option<Value>,
    block: Vec<u8>,
    count: u32,
    from: Duration,
    to: Duration,
    before: u64,
    levels: Levels<Values>,
}

impl OpenValues {
    /// A value held for a time, which is after those that were added before.
    pub(crate) fn add(&mut self, value: Value, row: &mut Row, body: &mut Body<'_>) {
        let from = value.from.max(self.last.map_or(Duration::ZERO, |last| last.to));
        if from >= value.to {
            return;
        }
        match &mut self.last {
            Some(last) if last.value == value.value && last.to == from => last.to = value.to,
            last => {
                if let Some(before) = last.replace(Value { from, ..value }) {
                    self.keep(before, row, body);
                }
            }
        }
    }

    /// Up to when values are certain.
    pub(crate) fn certain(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| last.to)
    }

    /// Nothing follows.
    pub(crate) fn end(mut self, row: &mut Row, body: &mut Body<'_>) {
        if let Some(last) = self.last.take() {
            self.keep(last, row, body);
        }
        self.flush(row, body);
        if let Some(counter) = &mut row.counter {
            counter.levels = self.levels.finish(body);
        }
    }

    fn keep(&mut self, value: Value, row: &mut Row, body: &mut Body<'_>) {
        let has_values = row.has_states();
        if let Some(Counter { range, .. }) = row.counter.as_deref_mut() {
            *range = match has_values {
                true => (range.0.min(value.value), range.1.max(value.value)),
                false => (value.value, value.value),
            };
        }
        row.covers(value.from, value.to);
        if self.count == 0 {
            (self.from, self.to, self.before) = (value.from, value.from, 0);
        }
        let by = value.value.wrapping_sub(self.before).cast_signed();
        put(&mut self.block, ((by << 1) ^ (by >> 63)).cast_unsigned());
        put_time(&mut self.block, value.from - self.to);
        put_time(&mut self.block, value.to - value.from);
        (self.to, self.before, self.count) = (value.to, value.value, self.count + 1);
        self.levels.push(value, (value.from, value.to), body);
        if self.count == VALUES {
            self.flush(row, body);
        }
    }

    fn flush(&mut self, row: &mut Row, body: &mut Body<'_>) {
        if self.count > 0 {
            let (offset, length) = body.block(&self.block);
            let entry = Entry { from: self.from, to: self.to, offset, length, count: self.count };
            row.counter.iter_mut().for_each(|counter| counter.values.push(entry));
            self.block.clear();
            self.count = 0;
        }
    }
}

/// The values of a block, in order.
pub(crate) fn read(
    block: &[u8],
    entry: &Entry,
    mut each: impl FnMut(Value) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Damaged> {
    const LATE: Damaged = Damaged(Damage::LargeTime);
    let (mut bytes, mut at, mut value) = (Bytes(block), entry.from, 0_u64);
    for _ in 0..entry.count {
        let by = bytes.number()?;
        value = value.wrapping_add((by >> 1) ^ (by & 1).wrapping_neg());
        let from = at.checked_add(bytes.time()?).ok_or(LATE)?;
        at = from.checked_add(bytes.time()?).filter(|to| from < *to && *to <= entry.to).ok_or(LATE)?;
        if each(Value { value, from, to: at }).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    bytes.end().map(|()| ControlFlow::Continue(()))
}
