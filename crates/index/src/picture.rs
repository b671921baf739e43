//! What a row did in each of many equal buckets of time: from levels where much happened, from leaves
//! elsewhere. Times are exact, wherever they come from.

use crate::error::{Damaged, Error};
use crate::index::Index;
use crate::leaf::Span;
use crate::levels::{Content, Summary, begin_of, bucket_of, shift};
use crate::row::{Entry, Row, RowId, RowKind};
use tracewing_timeline::{Class, StateId};
use tracewing_units::Duration;

/// A window that is cut into buckets, which begin at whole multiples of their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Length of a bucket, as a power of two of nanoseconds; less than 63.
    pub shift: u32,
    /// Number of the first bucket: it begins `first << shift` nanoseconds after the index begins.
    pub first: u64,
    /// Number of buckets.
    pub count: u32,
}

/// What a row did in a bucket. The rest of the bucket's time is before or after the row's life, or nothing is
/// known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The bucket's number.
    pub number: u64,
    /// What lies in it.
    pub content: Content,
}

impl Window {
    /// The window that covers the times from `from` to `to` with at most `most` buckets, at least 2.
    pub fn covering(from: Duration, to: Duration, most: u32) -> Self {
        const SHORTEST: Duration = Duration::from_ns(1);
        let last = to.max(from + SHORTEST) - SHORTEST;
        let count = |shift: u32| bucket_of(last, shift) - bucket_of(from, shift) + 1;
        let shift = (0..62).find(|shift| count(*shift) <= u64::from(most.max(2))).unwrap_or(62);
        Window { shift, first: bucket_of(from, shift), count: count(shift) as u32 }
    }

    /// The window from the beginning to a time, with buckets of such a length.
    pub(crate) fn covering_all(end: Duration, shift: u32) -> Self {
        const SHORTEST: Duration = Duration::from_ns(1);
        Window { shift, first: 0, count: bucket_of(end.max(SHORTEST) - SHORTEST, shift) as u32 + 1 }
    }

    /// Its beginning and its end, each since the index begins.
    pub fn times(&self) -> (Duration, Duration) {
        let end = self.first.saturating_add(self.count.into());
        (begin_of(self.first, self.shift), begin_of(end, self.shift))
    }
}

impl Index {
    /// What a row did in each bucket of a window; buckets without any state are left out. A group has no
    /// states of its own: see [`Index::group`].
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn picture(&self, row: RowId, window: Window) -> Result<Vec<Bucket>, Error> {
        let mut buckets = Buckets { shift: window.shift, buckets: Vec::new() };
        // Its levels are those of its members together.
        if !self.row(row).is_group() {
            self.paint(row, window, &mut buckets)?;
        }
        Ok(buckets.buckets)
    }

    /// Paints what a row did in a window, in the order of time.
    pub(crate) fn paint(&self, row: RowId, window: Window, canvas: &mut impl Canvas) -> Result<(), Error> {
        let row = self.row(row);
        let (from, to) = window.times();
        let mut painter = Painter { index: self, row, shift: window.shift, canvas };
        let mut leaves = Leaves::new(self, row);
        let mut at = from;
        let mut room = Vec::new();
        if let Some(level) = level(&row.levels, window.shift) {
            for entry in overlapping(&row.levels[level], from, to) {
                let mut nodes = Vec::new();
                self.nodes(row, level, entry, &mut room, |bucket, content| {
                    nodes.push((bucket, *content));
                    Ok(())
                })?;
                for (bucket, content) in nodes {
                    let [begin, end] = [bucket, bucket + 1].map(|bucket| begin_of(bucket, shift(level)));
                    if begin < from || end > to || !painter.is_exact(begin, end) {
                        continue;
                    }
                    leaves.visit(at, begin, |span| painter.span(span, at, begin))?;
                    painter.node(begin, end, content);
                    at = end;
                }
            }
        }
        leaves.visit(at, to, |span| painter.span(span, at, to))
    }
}

/// The coarsest level whose buckets are no longer than those of a window.
pub(crate) fn level(levels: &[Vec<Entry>], wanted: u32) -> Option<usize> {
    (0..levels.len()).rev().find(|level| shift(*level) <= wanted)
}

/// The blocks that have to do with a time.
pub(crate) fn overlapping(entries: &[Entry], from: Duration, to: Duration) -> &[Entry] {
    let first = entries.partition_point(|entry| entry.to <= from);
    let count = entries[first..].partition_point(|entry| entry.from < to);
    &entries[first..first + count]
}

/// Takes what lies in buckets, in the order of time.
pub(crate) trait Canvas {
    /// All that lies in a part of a bucket.
    fn node(&mut self, number: u64, content: &Content);

    /// A part of a span, from one time to another.
    fn span(&mut self, class: Class, span: Span, from: Duration, to: Duration);
}

/// Collects what lies in each bucket.
struct Buckets {
    shift: u32,
    buckets: Vec<Bucket>,
}

impl Buckets {
    fn bucket(&mut self, number: u64) -> &mut Content {
        if self.buckets.last().is_none_or(|last| last.number != number) {
            self.buckets.push(Bucket { number, content: Content::default() });
        }
        let last = self.buckets.len() - 1;
        &mut self.buckets[last].content
    }
}

impl Canvas for Buckets {
    fn node(&mut self, number: u64, content: &Content) {
        self.bucket(number).add_all(content);
    }

    #[inline]
    fn span(&mut self, class: Class, span: Span, mut at: Duration, to: Duration) {
        while at < to {
            let number = bucket_of(at, self.shift);
            let end = begin_of(number + 1, self.shift).min(to);
            self.bucket(number).add((class, span), at, end);
            at = end;
        }
    }
}

/// Reads what a row did, as it is known now.
struct Painter<'i, C> {
    index: &'i Index,
    row: &'i Row,
    shift: u32,
    canvas: &'i mut C,
}

impl<C: Canvas> Painter<'_, C> {
    /// Whether the node of a bucket says what is known now: what is doubted there is all of it.
    fn is_exact(&self, begin: Duration, end: Duration) -> bool {
        let is_cpu = matches!(self.row.kind, RowKind::Cpu(_));
        begin >= self.row.doubted || (end <= self.row.doubted && !is_cpu)
    }

    fn node(&mut self, begin: Duration, end: Duration, mut content: Content) {
        if end <= self.row.doubted {
            let user = std::mem::take(&mut content.times[Class::User as usize]);
            content.times[Class::Running as usize] += user;
            content.longest = content.longest.map(|(state, ns)| (self.certain(state, begin), ns));
        }
        self.canvas.node(bucket_of(begin, self.shift), &content);
    }

    /// A span, of which the picture shows the part between two times.
    #[inline]
    fn span(&mut self, span: Span, from: Duration, to: Duration) -> Result<(), Damaged> {
        for span in certain(self.index, self.row, span)?.into_iter().flatten() {
            let class = self.index.class(span.state)?;
            let (from, to) = (span.from.max(from), span.to.min(to));
            if from < to {
                self.canvas.span(class, span, from, to);
            }
        }
        Ok(())
    }

    /// The state as it is known now, if that at `time` is.
    fn certain(&self, state: StateId, time: Duration) -> StateId {
        match self.index.class(state) {
            Ok(Class::User) if time < self.index.doubted(self.row, state) => StateId::RUNNING,
            _ => state,
        }
    }
}

/// A span, or its two parts, as they are known now: user mode may turn out to be of unknown mode.
#[inline]
pub(crate) fn certain(index: &Index, row: &Row, span: Span) -> Result<[Option<Span>; 2], Damaged> {
    if span.from >= row.doubted || index.class(span.state)? != Class::User {
        return Ok([Some(span), None]);
    }
    let doubted = index.doubted(row, span.state).clamp(span.from, span.to);
    let before = Span { state: StateId::RUNNING, to: doubted, ..span };
    let after = Span { from: doubted, ..span };
    Ok([before, after].map(|part| Some(part).filter(|part| part.from < part.to)))
}

/// Visits the spans of a row in the order of time; each block is read once.
struct Leaves<'i> {
    index: &'i Index,
    row: &'i Row,
    block: usize,
    spans: Vec<Span>,
    /// The first span that may be visited next.
    next: usize,
    room: Vec<u8>,
}

impl<'i> Leaves<'i> {
    fn new(index: &'i Index, row: &'i Row) -> Self {
        Leaves { index, row, block: 0, spans: Vec::new(), next: 0, room: Vec::new() }
    }

    /// Passes on the spans that have a part between two times, which are not before those of the last call.
    fn visit(
        &mut self,
        from: Duration,
        to: Duration,
        mut each: impl FnMut(Span) -> Result<(), Damaged>,
    ) -> Result<(), Error> {
        if from >= to {
            return Ok(());
        }
        loop {
            self.next += self.spans[self.next..].partition_point(|span| span.to <= from);
            while let Some(span) = self.spans.get(self.next).filter(|span| span.from < to) {
                each(*span)?;
                // One that continues is visited again for the next part.
                if span.to > to {
                    return Ok(());
                }
                self.next += 1;
            }
            let skipped = self.row.leaves[self.block..].partition_point(|entry| entry.to <= from);
            self.block += skipped;
            match self.row.leaves.get(self.block) {
                Some(entry) if entry.from < to && self.next == self.spans.len() => self.load(*entry)?,
                _ => return Ok(()),
            }
        }
    }

    fn load(&mut self, entry: Entry) -> Result<(), Error> {
        let (_, spans) = self.index.leaf(&entry, &mut self.room)?;
        self.spans.clear();
        for span in spans {
            self.spans.push(span?);
        }
        (self.next, self.block) = (0, self.block + 1);
        Ok(())
    }
}
