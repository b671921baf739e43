//! Prints a recording while it is being made ([`Growing`]).

use crate::merge::growing::Growing;
use crate::print::listing::{Listing, Sink};
use crate::print::printer::Printer;
use crate::print::style::Format;
use crate::time::range::TimeRange;
use crate::{Error, UsageFault};
use std::path::Path;
use std::time::Duration;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// For how long an event waits for earlier ones of streams in which nothing happens.
const HOLD: Duration = Duration::from_secs(1);

impl Listing {
    /// Prints the recording at `inputs`, and what is added to it, until it ends: when all of its traces are
    /// tracewing's own and complete, or their recorder was killed; when the requested number of events has
    /// been printed, or after the end of the time range.
    ///
    /// An event is printed at most 1.1 s after its packet has become whole. Only events whose packets come
    /// later than that are not in order.
    ///
    /// # Errors
    /// As [`Growing::open`] and [`Listing::print`]. A complete packet that cannot be decoded is damaged after
    /// 5 s; before that the metadata may be out of date.
    pub fn follow<P: AsRef<Path>>(&self, inputs: &[P], sink: &mut impl Sink) -> Result<(), Error> {
        if self.format == Format::Csv {
            return Err(UsageFault::FollowedAsCsv.into());
        }
        let mut growing = Growing::open(inputs, HOLD)?;
        let mut printer = Printer::new(self, TimeRange::ALL, growing.recording())?;
        if printer.needs_places() {
            return Err(UsageFault::FollowedBySubject.into());
        }
        let mut range = None;
        loop {
            if growing.look()? {
                printer = printer.reopen(growing.recording())?;
            }
            if growing.has_more() {
                let range = match range {
                    Some(range) => range,
                    None => *range.insert(self.filter.range(growing.recording())?),
                };
                growing.read(range, |_, merge| {
                    let result = printer.print(merge, sink);
                    printer.finish(result, sink)
                })?;
                if growing.reached() > range.end {
                    return Ok(());
                }
            }
            if growing.is_over() || printer.is_done() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }
}
