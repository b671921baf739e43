//! Leaf blocks: the states of a row, each with its beginning and end.
//!
//! A block is a sequence of numbers ([`crate::bytes::put`]): how many sums, for each state in it the state
//! and its whole time; then for each span the place of its state among these doubled, plus 1 if time without
//! a state comes before it, that time if so, and how long the state lasted. Times are in nanoseconds; when
//! the block begins is stored in its [`Entry`](crate::row::Entry). Few states occur in a block, so most of
//! their places take one byte, however many states there are.

use crate::bytes::{Bytes, put, put_time};
use crate::error::{Damage, Damaged};
use crate::row::Entry;
use tracewing_timeline::StateId;
use tracewing_units::Duration;

/// Most spans in a block.
pub(crate) const SPANS: u32 = 512;

/// Bytes for which a block has room at first.
const FIRST: usize = 128;

/// A state from one time to another, each since the index begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The state by its number in [`Index::state`](crate::Index::state).
    pub state: StateId,
    /// When the state begins.
    pub from: Duration,
    /// Its end, which is after its beginning.
    pub to: Duration,
}

/// The block that is being filled.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenLeaf {
    spans: Vec<u8>,
    /// The states in it, and for how long each lasted.
    pub(crate) sums: Vec<(StateId, Duration)>,
    pub(crate) count: u32,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
}

impl OpenLeaf {
    /// Adds the next span, which begins no earlier than the last one ends.
    #[inline]
    pub(crate) fn push(&mut self, span: Span) {
        if self.count == 0 {
            (self.from, self.to) = (span.from, span.from);
            self.spans.reserve(FIRST);
        }
        let gap = span.from - self.to;
        let known = self.sums.iter().position(|(state, _)| *state == span.state);
        let place = known.unwrap_or_else(|| {
            self.sums.push((span.state, Duration::ZERO));
            self.sums.len() - 1
        });
        self.sums[place].1 += span.to - span.from;
        put(&mut self.spans, (place as u64) << 1 | u64::from(!gap.is_zero()));
        if !gap.is_zero() {
            put_time(&mut self.spans, gap);
        }
        put_time(&mut self.spans, span.to - span.from);
        self.to = span.to;
        self.count += 1;
    }

    pub(crate) fn spans(&self) -> Spans<'_> {
        let states = self.sums.iter().map(|(state, _)| *state).collect();
        Spans { bytes: Bytes(&self.spans), states, left: self.count, at: self.from, end: self.to }
    }

    /// Writes the block to `out`; it is empty then.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        put(out, self.sums.len() as u64);
        for (state, ns) in self.sums.drain(..) {
            put(out, u64::from(state.0));
            put_time(out, ns);
        }
        out.extend_from_slice(&self.spans);
        self.spans.clear();
        self.count = 0;
    }
}

/// The spans of a block.
#[derive(Debug)]
pub(crate) struct Spans<'b> {
    bytes: Bytes<'b>,
    /// Those that occur, by place.
    states: Vec<StateId>,
    left: u32,
    at: Duration,
    /// No span ends later.
    end: Duration,
}

impl Iterator for Spans<'_> {
    type Item = Result<Span, Damaged>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.read())
    }
}

impl Spans<'_> {
    #[inline]
    fn read(&mut self) -> Result<Span, Damaged> {
        const LATE: Damaged = Damaged(Damage::LargeTime);
        let place = self.bytes.number()?;
        let gap = if place & 1 == 1 { self.bytes.time()? } else { Duration::ZERO };
        let from = self.at.checked_add(gap).ok_or(LATE)?;
        let to = from.checked_add(self.bytes.time()?);
        self.at = to.filter(|to| *to <= self.end).ok_or(LATE)?;
        let state = usize::try_from(place >> 1).ok().and_then(|place| self.states.get(place));
        Ok(Span { state: *state.ok_or(Damaged(Damage::NotInSums))?, from, to: self.at })
    }
}

/// The sums of a block that was read; gives what follows them.
#[inline]
pub(crate) fn sums(
    block: &[u8],
    mut each: impl FnMut(StateId, Duration) -> Result<(), Damaged>,
) -> Result<Bytes<'_>, Damaged> {
    let mut bytes = Bytes(block);
    for _ in 0..bytes.number()? {
        each(StateId(bytes.small()?), bytes.time()?)?;
    }
    Ok(bytes)
}

/// A block that was read: its sums and its spans.
pub(crate) fn read<'b>(
    block: &'b [u8],
    entry: &Entry,
) -> Result<(Vec<(StateId, Duration)>, Spans<'b>), Damaged> {
    let mut all = Vec::new();
    let bytes = sums(block, |state, ns| {
        all.push((state, ns));
        Ok(())
    })?;
    let sums = all;
    let states = sums.iter().map(|(state, _)| *state).collect();
    Ok((sums, Spans { bytes, states, left: entry.count, at: entry.from, end: entry.to }))
}
