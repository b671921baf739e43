//! Writes a listing into a file, which is there when it is complete.

use crate::Error;
use crate::open::recording::Recording;
use crate::print::listing::{Listing, Sink};
use crate::print::style::Format;
use crate::rewrite::convert::Progress;
use crate::rewrite::unfinished::Unfinished;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;
use tracewing_units::Timestamp;

/// What was written into a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Whether no event is in it: at most what the columns are called.
    pub is_empty: bool,
    /// Whether it is a file, and no pipe or device.
    pub is_file: bool,
}

impl Listing {
    /// Writes the listing of `recording` to the file `out`, which must not exist, or to a pipe or device
    /// there. Lines about losses go to `warn`. `watch` is called from time to time with the bytes written
    /// ([`Progress::total`] is 0: unknown), and may end it.
    ///
    /// # Errors
    /// As [`Listing::print`]; also if `out` exists or cannot be written, or `watch` has ended it
    /// ([`Error::Stopped`]). There is nothing at `out` then.
    pub fn export(
        &self,
        recording: &Recording,
        out: &Path,
        warn: &mut dyn FnMut(&[u8]),
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Exported, Error> {
        let (unfinished, file) = Unfinished::file(out)?;
        let mut sink = Export { file, written: 0, lines: 0, warn, watch };
        self.print(recording, &mut sink).map_err(|error| match error {
            Error::Output(cause) if cause.kind() == ErrorKind::Interrupted => Error::Stopped,
            Error::Output(cause) => Error::io(out)(cause),
            other => other,
        })?;
        let head = u64::from(self.format == Format::Csv);
        let (bytes, is_empty) = (sink.written, sink.lines <= head);
        let is_file = unfinished.map(Unfinished::finish).transpose()?.is_some();
        Ok(Exported { bytes, is_empty, is_file })
    }
}

struct Export<'w> {
    file: File,
    written: u64,
    /// The first ones only.
    lines: u64,
    warn: &'w mut dyn FnMut(&[u8]),
    watch: &'w mut dyn FnMut(Progress) -> ControlFlow<()>,
}

impl Sink for Export<'_> {
    fn events(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)?;
        self.written += lines.len() as u64;
        if self.lines < 2 {
            self.lines += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
        match (self.watch)(Progress { done: self.written, total: 0 }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ErrorKind::Interrupted.into()),
        }
    }

    fn warning(&mut self, line: &[u8]) -> io::Result<()> {
        (self.warn)(line);
        Ok(())
    }

    fn reached(&mut self, _: Timestamp) -> ControlFlow<()> {
        (self.watch)(Progress { done: self.written, total: 0 })
    }
}
