//! One CPU's raw pages as a flight recorder keeps them: the newest ones, without gaps from overwriting.
//!
//! Reading pages takes them out of the kernel's buffer, so the pages of a snapshot are kept for the next one,
//! which overlaps it. Their size is limited to that of the kernel's buffer: kept and new pages together reach
//! as far back as a buffer that was never read.

use crate::error::Error;
use crate::losses::LossRange;
use crate::page::{Page, PageLayout};
use crate::reader::Taker;
use crate::stream::{Programs, Sink, Stream};
use std::collections::{BTreeSet, VecDeque};
use tracewing_units::{Cycles, Tid};

/// The newest pages of one CPU.
#[derive(Debug)]
pub(crate) struct Kept {
    layout: PageLayout,
    /// Most bytes of pages.
    most: usize,
    /// Each up to the end of its records; empty for a page that could not be decoded.
    pages: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Drops in the time of these pages, in order of `at`.
    gaps: Vec<Gap>,
    /// Events from before the first of these pages.
    overwritten: u64,
}

/// As [`Taker::dropped`] gets it.
#[derive(Debug, Clone, Copy)]
struct Gap {
    begin: Option<Cycles>,
    at: Cycles,
    events: u64,
}

impl Kept {
    pub(crate) fn new(layout: PageLayout, most: usize) -> Self {
        Self { layout, most, pages: VecDeque::new(), bytes: 0, gaps: Vec::new(), overwritten: 0 }
    }

    /// Converts all pages, which stay; also those after one that could not be written. The first error is
    /// returned.
    pub(crate) fn convert<S: Sink<Error = Error>>(
        &self,
        stream: &mut Stream,
        programs: &Programs,
        sink: &mut S,
    ) -> Result<(), Error> {
        for gap in &self.gaps {
            stream.expect_gap(gap.begin, gap.at, gap.events);
        }
        let mut written = Ok(());
        for bytes in &self.pages {
            match Page::parse(&self.layout, bytes) {
                Ok(page) => written = written.and(stream.page(&page, programs, sink)),
                Err(_) => stream.damage(),
            }
        }
        written
    }

    /// The threads that recorded the events in these pages.
    pub(crate) fn tids(&self, programs: &Programs) -> BTreeSet<Tid> {
        let pages = self.pages.iter().filter_map(|bytes| Page::parse(&self.layout, bytes).ok());
        let records = pages.flat_map(|page| page.records().flatten());
        records.filter_map(|record| programs.tid(record.data)).collect()
    }

    /// Events that were recorded between `begin` and the first of these pages and overwritten; `None` if
    /// there were none.
    pub(crate) fn gone_since(&self, begin: Cycles) -> Option<LossRange> {
        let end = self.first_stamp().unwrap_or(begin).max(begin);
        (self.overwritten > 0).then_some(LossRange { begin, end, events: self.overwritten })
    }

    /// Up to when a snapshot of the moment `taken` has these pages' events: other CPUs' pages, which were
    /// read earlier or later, are complete until then. If all that was here then is overwritten, nothing is
    /// left out: an end of other streams before the first of these events shows to readers what is unknown.
    pub(crate) fn until(&self, taken: Cycles) -> Cycles {
        let is_newer = self.overwritten > 0 && self.first_stamp().is_some_and(|first| first > taken);
        if is_newer { Cycles::MAX } else { taken }
    }

    fn first_stamp(&self) -> Option<Cycles> {
        self.pages.iter().find_map(|bytes| Page::parse(&self.layout, bytes).ok()).map(|page| page.stamp)
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.pages.push_back(bytes.into());
        if self.bytes > self.most {
            while self.bytes > self.most && self.pages.len() > 1 {
                self.drop_oldest();
            }
            self.drop_gaps(self.first_stamp().unwrap_or_default());
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(bytes) = self.pages.pop_front() {
            self.bytes -= bytes.len();
            let events = Page::parse(&self.layout, &bytes)
                .map_or(1, |page| page.records().filter(Result::is_ok).count() as u64);
            self.overwritten = self.overwritten.saturating_add(events);
        }
    }

    /// Forgets drops up to `stamp`, which no kept page follows any more.
    fn drop_gaps(&mut self, stamp: Cycles) {
        let before = self.gaps.partition_point(|gap| gap.at <= stamp);
        let events: u64 = self.gaps.drain(..before).map(|gap| gap.events).sum();
        self.overwritten = self.overwritten.saturating_add(events);
    }
}

impl Taker for Kept {
    fn dropped(&mut self, begin: Option<Cycles>, at: Cycles, events: u64) {
        if events > 0 {
            let place = self.gaps.partition_point(|gap| gap.at <= at);
            self.gaps.insert(place, Gap { begin, at, events });
        }
    }

    /// The kept pages are from before a gap, and are dropped.
    fn overwritten(&mut self, at: Cycles, events: u64) {
        while !self.pages.is_empty() {
            self.drop_oldest();
        }
        self.drop_gaps(at);
        self.overwritten = self.overwritten.saturating_add(events);
    }

    fn damaged(&mut self) {
        self.push(&[]);
    }

    fn page(&mut self, page: &Page<'_>, bytes: &[u8]) -> Result<Cycles, Error> {
        self.push(&bytes[..page.extent()]);
        Ok(page.stamp)
    }
}

#[cfg(test)]
mod tests;
