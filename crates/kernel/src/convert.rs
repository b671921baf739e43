//! Converts the pages of a CPU directly into packets, for a recording to disk.

use crate::error::Error;
use crate::page::Page;
use crate::reader::Taker;
use crate::stream::{Programs, Sink, Stream};
use tracewing_units::Cycles;

/// One CPU's pages on their way into a trace.
pub(crate) struct Converter<'a, S> {
    pub(crate) stream: &'a mut Stream,
    pub(crate) programs: &'a Programs,
    pub(crate) sink: &'a mut S,
}

impl<S: Sink<Error = Error>> Taker for Converter<'_, S> {
    fn dropped(&mut self, begin: Option<Cycles>, at: Cycles, events: u64) {
        self.stream.expect_gap(begin, at, events);
    }

    fn overwritten(&mut self, at: Cycles, events: u64) {
        self.stream.expect_gap(None, at, events);
    }

    fn damaged(&mut self) {
        self.stream.damage();
    }

    fn page(&mut self, page: &Page<'_>, _bytes: &[u8]) -> Result<Cycles, Error> {
        self.stream.page(page, self.programs, self.sink)?;
        Ok(self.stream.last())
    }
}
