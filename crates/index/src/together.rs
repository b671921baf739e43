//! What several rows did together in each of many buckets: as if the pictures of all were added up, but a
//! span of many buckets takes no longer than a short one.
//!
//! The time in whole buckets is counted where it begins and where it ends. The longest span of a bucket is
//! the first of its length. Whatever is so long that it may cover many buckets is kept apart until the end,
//! or until there is much of it, and then painted over the rest, the longest first, each bucket once.

use crate::leaf::Span;
use crate::levels::{Content, Summary, begin_of, bucket_of};
use crate::picture::Canvas;
use tracewing_timeline::{CLASSES, Class, StateId};
use tracewing_units::Duration;

/// Spans of at least so many buckets are long.
const LONG: u64 = 4;

/// So many long spans are painted at once.
pub(crate) const MOST: usize = 1 << 16;

/// Collects what rows did.
pub(crate) struct Together {
    shift: u32,
    contents: Vec<Content>,
    /// How many more rows than in the bucket before are in a class for all of a bucket.
    whole: Vec<[i32; CLASSES]>,
    long: Vec<Long>,
    /// Most of them.
    most: usize,
}

/// A long span touches these buckets; both are included.
struct Long {
    first: u32,
    last: u32,
    state: StateId,
    length: Duration,
}

impl Together {
    /// One of so many buckets of this length, a power of two of nanoseconds, from the beginning on; `most`
    /// long spans are painted at once.
    pub(crate) fn new(shift: u32, count: u32, most: usize) -> Self {
        let (contents, whole) =
            (vec![Content::default(); count as usize], vec![[0; CLASSES]; count as usize]);
        Together { shift, contents, whole, long: Vec::new(), most }
    }

    fn is_long(&self, length: Duration) -> bool {
        length >= begin_of(LONG, self.shift)
    }

    fn keep_long(&mut self, long: Long) {
        self.long.push(long);
        if self.long.len() >= self.most {
            self.paint_long();
        }
    }

    /// Paints what is kept apart.
    fn paint_long(&mut self) {
        // Of those of one length, the first stays the first.
        self.long.sort_by_key(|long| std::cmp::Reverse(long.length));
        // For each bucket, itself if it is not painted yet, else one that is nearer to the next such bucket.
        let mut next: Vec<u32> = (0..=self.contents.len() as u32).collect();
        for Long { first, last, state, length } in self.long.drain(..) {
            let mut at = free(&mut next, first);
            while at <= last {
                self.contents[at as usize].keep_longest((state, length));
                next[at as usize] = at + 1;
                at = free(&mut next, at + 1);
            }
        }
    }

    /// What lies in each bucket.
    pub(crate) fn finish(mut self) -> Vec<Content> {
        self.paint_long();
        let (bucket, mut rows) = (begin_of(1, self.shift), [0_i64; CLASSES]);
        for (content, changes) in self.contents.iter_mut().zip(&self.whole) {
            for ((time, rows), change) in content.times.iter_mut().zip(&mut rows).zip(changes) {
                *rows += i64::from(*change);
                *time += bucket * rows.cast_unsigned();
            }
        }
        self.contents
    }
}

/// The first bucket from this one on that is not painted yet.
fn free(next: &mut [u32], mut at: u32) -> u32 {
    while next[at as usize] != at {
        let further = next[next[at as usize] as usize];
        next[at as usize] = further;
        at = further;
    }
    at
}

impl Canvas for Together {
    fn node(&mut self, number: u64, content: &Content) {
        let longest = content.longest.filter(|(_, length)| self.is_long(*length));
        let rest = Content { longest: content.longest.filter(|_| longest.is_none()), ..*content };
        self.contents[number as usize].add_all(&rest);
        if let Some((state, length)) = longest {
            self.keep_long(Long { first: number as u32, last: number as u32, state, length });
        }
    }

    #[inline]
    fn span(&mut self, class: Class, span: Span, from: Duration, to: Duration) {
        let (first, last) = (bucket_of(from, self.shift), bucket_of(to - Duration::from_ns(1), self.shift));
        let length = span.to - span.from;
        let is_long = self.is_long(length);
        if is_long {
            self.keep_long(Long { first: first as u32, last: last as u32, state: span.state, length });
        }
        let longest = (!is_long).then_some((span.state, length));
        let mut part = |bucket: u64, from: Duration, to: Duration| {
            let content = &mut self.contents[bucket as usize];
            content.times[class as usize] += to - from;
            content.changes = content.changes.saturating_add(u64::from(span.from == from));
            longest.into_iter().for_each(|longest| content.keep_longest(longest));
        };
        if first == last {
            return part(first, from, to);
        }
        part(first, from, begin_of(first + 1, self.shift));
        part(last, begin_of(last, self.shift), to);
        if is_long {
            self.whole[first as usize + 1][class as usize] += 1;
            self.whole[last as usize][class as usize] -= 1;
        } else {
            for bucket in first + 1..last {
                part(bucket, begin_of(bucket, self.shift), begin_of(bucket + 1, self.shift));
            }
        }
    }
}
