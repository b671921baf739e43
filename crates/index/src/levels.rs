//! Levels of detail of a row: for each bucket of time in which much happens, how long each class of states
//! lasted, exactly; of a counter, its least and its greatest value ([`crate::values`]).
//!
//! Level 0 has buckets of 2^14 ns, each further one of four times that. A bucket is stored only if at least
//! [`DENSE`] states begin in it: the others are drawn from the leaves, where they cost little. A block of a
//! level is a sequence of numbers: for each node the distance of its bucket from the one before (from the
//! block's first), how many states begin in it, which classes occur (a bit for each), the time of each of
//! these, and state and whole length of the longest span that touches it.

use crate::body::Body;
use crate::bytes::{Bytes, put, put_time};
use crate::error::{Damage, Damaged};
use crate::leaf::Span;
use crate::row::Entry;
use tracewing_timeline::{CLASSES, Class, StateId};
use tracewing_units::Duration;

/// Length of a bucket of level 0, as a power of two of nanoseconds.
const FINEST: u32 = 14;
/// The power of two by which a level's buckets are longer than those of the one below.
pub(crate) const STEP: u32 = 2;
/// Most levels: the highest has buckets of 36 years.
pub(crate) const LEVELS: usize = 24;
/// So many states begin at least in a bucket that is stored.
pub(crate) const DENSE: u64 = 16;
/// Most nodes in a block.
const NODES: u32 = 128;

/// Length of a level's buckets, as a power of two of nanoseconds.
pub(crate) fn shift(level: usize) -> u32 {
    FINEST + STEP * level as u32
}

/// The bucket in which a time lies, where buckets have a length of two to the power of `shift`.
#[inline]
pub(crate) fn bucket_of(time: Duration, shift: u32) -> u64 {
    time.as_ns() >> shift
}

/// When a bucket begins; [`Duration::MAX`] if that is too large a number, as after the last bucket of all
/// times.
#[inline]
pub(crate) fn begin_of(bucket: u64, shift: u32) -> Duration {
    match bucket.leading_zeros() >= shift {
        true => Duration::from_ns(bucket << shift),
        false => Duration::MAX,
    }
}

/// What a bucket says of the spans in it.
pub(crate) trait Summary: Copy + Default {
    /// A span.
    type Span: Copy;

    /// Adds the part of a span from `from` to `to`, which is after those that were added before.
    fn add(&mut self, span: Self::Span, from: Duration, to: Duration);

    /// Adds what lies in a part of this bucket, which is after those that were added before.
    fn add_all(&mut self, other: &Self);

    /// How many spans begin in it.
    fn changes(&self) -> u64;

    /// The time of all spans in it.
    fn time(&self) -> Duration;

    /// Appends it to a block, without the number of its bucket.
    fn write(&self, out: &mut Vec<u8>);

    /// What was written.
    fn read(bytes: &mut Bytes<'_>) -> Result<Self, Damaged>;
}

/// What lies in a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Content {
    /// Time in each class.
    pub times: [Duration; CLASSES],
    /// How many states begin in it.
    pub changes: u64,
    /// The longest span that touches it, with its whole length.
    pub longest: Option<(StateId, Duration)>,
}

impl Content {
    #[inline]
    pub(crate) fn keep_longest(&mut self, other: (StateId, Duration)) {
        if self.longest.is_none_or(|longest| longest.1 < other.1) {
            self.longest = Some(other);
        }
    }
}

impl Summary for Content {
    /// With the class of its state.
    type Span = (Class, Span);

    #[inline]
    fn add(&mut self, (class, span): (Class, Span), from: Duration, to: Duration) {
        self.times[class as usize] += to - from;
        self.changes = self.changes.saturating_add(u64::from(span.from == from));
        self.keep_longest((span.state, span.to - span.from));
    }

    fn add_all(&mut self, other: &Content) {
        self.times.iter_mut().zip(other.times).for_each(|(sum, time)| *sum += time);
        self.changes = self.changes.saturating_add(other.changes);
        other.longest.into_iter().for_each(|longest| self.keep_longest(longest));
    }

    fn changes(&self) -> u64 {
        self.changes
    }

    fn time(&self) -> Duration {
        self.times.iter().copied().sum()
    }

    fn write(&self, out: &mut Vec<u8>) {
        put(out, self.changes);
        let present = self.times.iter().enumerate().filter(|(_, time)| !time.is_zero());
        put(out, present.clone().map(|(class, _)| 1 << class).sum());
        present.for_each(|(_, time)| put_time(out, *time));
        let (state, length) = self.longest.unwrap_or((StateId::UNKNOWN, Duration::ZERO));
        put(out, u64::from(state.0));
        put_time(out, length);
    }

    fn read(bytes: &mut Bytes<'_>) -> Result<Self, Damaged> {
        let mut content = Content { changes: bytes.number()?, ..Content::default() };
        let present = bytes.number()?;
        if present >> CLASSES != 0 {
            return Err(Damaged(Damage::NoClass));
        }
        for class in (0..CLASSES).filter(|class| present >> class & 1 == 1) {
            content.times[class] = bytes.time()?;
        }
        content.longest = Some((StateId(bytes.small()?), bytes.time()?));
        Ok(content)
    }
}

/// One level of a row while it is made.
#[derive(Debug, Clone, Default)]
struct Level<C> {
    /// The bucket that is being filled.
    open: Option<u64>,
    content: C,
    /// Whether a bucket was complete already.
    has_closed: bool,
    block: Vec<u8>,
    nodes: u32,
    first: u64,
    last: u64,
    entries: Vec<Entry>,
}

/// The levels of a row while they are made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Levels<C = Content>(Vec<Level<C>>);

impl<C: Summary> Levels<C> {
    /// Adds the next span, which lasts from one time to another.
    #[inline]
    pub(crate) fn push(&mut self, span: C::Span, times: (Duration, Duration), body: &mut Body<'_>) {
        self.add(0, span, times, body);
    }

    /// Adds a part of a span, cut so that whole buckets go to the next level.
    fn add(
        &mut self,
        level: usize,
        span: C::Span,
        (mut from, to): (Duration, Duration),
        body: &mut Body<'_>,
    ) {
        let shift = shift(level);
        let (last, is_top) = (bucket_of(to - Duration::from_ns(1), shift), level + 1 == LEVELS);
        while from < to {
            let bucket = bucket_of(from, shift);
            if bucket == last || is_top {
                let end = if bucket == last { to } else { begin_of(bucket + 1, shift) };
                self.fill(level, bucket, span, (from, end), body);
                from = end;
            } else if from != begin_of(bucket, shift) || self.is_open(level, bucket) {
                let end = begin_of(bucket + 1, shift);
                self.fill(level, bucket, span, (from, end), body);
                from = end;
            } else {
                self.close(level, body);
                self.add(level + 1, span, (from, begin_of(last, shift)), body);
                from = begin_of(last, shift);
            }
        }
    }

    fn is_open(&self, level: usize, bucket: u64) -> bool {
        self.0.get(level).is_some_and(|level| level.open == Some(bucket))
    }

    #[inline]
    fn fill(
        &mut self,
        level: usize,
        bucket: u64,
        span: C::Span,
        (from, to): (Duration, Duration),
        body: &mut Body<'_>,
    ) {
        if !self.is_open(level, bucket) {
            self.open(level, bucket, body);
        }
        self.0[level].content.add(span, from, to);
    }

    fn open(&mut self, level: usize, bucket: u64, body: &mut Body<'_>) {
        if self.0.len() <= level {
            self.0.resize_with(level + 1, Level::default);
        }
        self.close(level, body);
        self.0[level].open = Some(bucket);
    }

    /// The open bucket of a level is complete.
    fn close(&mut self, level: usize, body: &mut Body<'_>) {
        let Some(this) = self.0.get_mut(level) else { return };
        let Some(bucket) = this.open.take() else { return };
        let content = std::mem::take(&mut this.content);
        this.has_closed = true;
        this.store(level, bucket, &content, body);
        if level + 1 < LEVELS {
            let above = bucket >> STEP;
            if !self.is_open(level + 1, above) {
                self.open(level + 1, above, body);
            }
            self.0[level + 1].content.add_all(&content);
        }
    }

    /// The blocks of each level, when the row is complete.
    pub(crate) fn finish(mut self, body: &mut Body<'_>) -> Vec<Vec<Entry>> {
        let mut level = 0;
        while level < self.0.len() {
            let this = &mut self.0[level];
            // All of the row lies in one bucket: further levels have nothing to add.
            if let Some(bucket) = this.open.filter(|_| !this.has_closed) {
                let content = this.content;
                this.store(level, bucket, &content, body);
                break;
            }
            self.close(level, body);
            level += 1;
        }
        self.0.truncate(level + 1);
        self.0.into_iter().enumerate().map(|(level, this)| this.finish(level, body)).collect()
    }
}

impl<C: Summary> Level<C> {
    fn store(&mut self, level: usize, bucket: u64, content: &C, body: &mut Body<'_>) {
        if content.changes() >= DENSE {
            self.put(level, bucket, content, body);
        }
    }

    fn put(&mut self, level: usize, bucket: u64, content: &C, body: &mut Body<'_>) {
        if self.nodes == 0 {
            (self.first, self.last) = (bucket, bucket);
        }
        put(&mut self.block, bucket - self.last);
        content.write(&mut self.block);
        self.last = bucket;
        self.nodes += 1;
        if self.nodes == NODES {
            self.flush(level, body);
        }
    }

    fn flush(&mut self, level: usize, body: &mut Body<'_>) {
        if self.nodes > 0 {
            let shift = shift(level);
            let (from, to) = (begin_of(self.first, shift), begin_of(self.last + 1, shift));
            let (offset, length) = body.block(&self.block);
            self.entries.push(Entry { from, to, offset, length, count: self.nodes });
            self.block.clear();
            self.nodes = 0;
        }
    }

    fn finish(mut self, level: usize, body: &mut Body<'_>) -> Vec<Entry> {
        self.flush(level, body);
        self.entries
    }
}

/// The blocks of a level, of which all contents are known; those without any state are left out.
pub(crate) fn write(level: usize, contents: &[Content], body: &mut Body<'_>) -> Vec<Entry> {
    let mut this = Level::default();
    let has_states = |(_, content): &(u64, &Content)| !content.time().is_zero();
    for (bucket, content) in (0..).zip(contents).filter(has_states) {
        this.put(level, bucket, content, body);
    }
    this.finish(level, body)
}

/// The nodes of a block of a level, in order: each with the number of its bucket. So many `members` have a
/// state at the same time.
pub(crate) fn read<C: Summary>(
    block: &[u8],
    entry: &Entry,
    (level, members): (usize, u64),
    mut each: impl FnMut(u64, &C) -> Result<(), Damaged>,
) -> Result<(), Damaged> {
    let mut bytes = Bytes(block);
    let mut bucket = bucket_of(entry.from, shift(level));
    for _ in 0..entry.count {
        bucket = bucket.checked_add(bytes.number()?).ok_or(Damaged(Damage::LargeBucket))?;
        if bucket > bucket_of(entry.to - Duration::from_ns(1), shift(level)) {
            return Err(Damaged(Damage::BucketOutside));
        }
        let content = C::read(&mut bytes)?;
        if content.time() > begin_of(1, shift(level)) * members {
            return Err(Damaged(Damage::FullBucket));
        }
        each(bucket, &content)?;
    }
    bytes.end()
}
