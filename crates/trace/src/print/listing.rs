//! What of a recording `tracewing list` prints, how, and where that goes.

use crate::print::style::{Format, Style};
use crate::select::filter::Filter;
use std::io::{self, Write};
use std::ops::ControlFlow;
use tracewing_units::Timestamp;

/// What of a recording is printed, and how.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// How events are printed.
    pub format: Format,
    /// Whether events are printed with the CPU, process, LWP and user thread that they belong to. The state
    /// before what is printed has to be known, so everything before is read.
    pub super_trace: bool,
    /// Whether events are printed with the context of their threads, as far as it is recorded.
    pub context: bool,
    /// Stamps, names and fields, in the text formats.
    pub style: Style,
    /// Which events are printed.
    pub filter: Filter,
    /// How many events are printed at most.
    pub count: Option<u64>,
    /// Prints only the last ones, this many. They are counted first, so the
    /// recording is read twice.
    pub last: Option<u64>,
}

/// Where a listing goes.
pub trait Sink {
    /// Takes whole lines of events, many at a time.
    ///
    /// # Errors
    /// They cannot be written; the listing ends.
    fn events(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Takes lines as [`Self::events`] does, and leaves none. A sink that keeps them may leave
    /// another, empty vector.
    ///
    /// # Errors
    /// They cannot be written; the listing ends.
    fn take(&mut self, lines: &mut Vec<u8>) -> io::Result<()> {
        let taken = self.events(lines);
        lines.clear();
        taken
    }

    /// Takes a line about a loss. Lines of events that precede it may come later, in a batch.
    ///
    /// # Errors
    /// It cannot be written; the listing ends.
    fn warning(&mut self, line: &[u8]) -> io::Result<()>;

    /// Learns from time to time, also where no event is chosen, that the lines of all events before `time`
    /// have been passed on. Breaks to end the listing, which fails with [`Error::Stopped`](crate::Error).
    fn reached(&mut self, time: Timestamp) -> ControlFlow<()> {
        let _ = time;
        ControlFlow::Continue(())
    }
}

/// Events to the one, warnings to the other.
impl<E: Write, W: Write> Sink for (E, W) {
    fn events(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.write_all(lines)
    }

    fn warning(&mut self, line: &[u8]) -> io::Result<()> {
        self.1.write_all(line)
    }
}
