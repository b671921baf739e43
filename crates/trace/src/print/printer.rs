//! A listing at work: takes merged messages in order, prints the events that are chosen, and warns of losses.

use crate::merge::backwards::Backwards;
use crate::merge::event::Message;
use crate::merge::messages::Merge;
use crate::open::recording::Recording;
use crate::print::context::Known;
use crate::print::lines::{BATCH, BATCH_OF_SLICE, Lines};
use crate::print::listing::{Listing, Sink};
use crate::print::stamp::PrintedStamp;
use crate::select::in_order::OrderedSelection;
use crate::time::range::TimeRange;
use crate::time::stamp::Stamp;
use crate::{Error, UsageFault};
use std::ops::ControlFlow;
use std::sync::Arc;
use tracewing_units::Timestamp;

/// After so many messages, the sink learns how far the listing is.
const PERIOD: u64 = 1 << 13;

/// A listing at work.
#[derive(Debug)]
pub(crate) struct Printer<'l> {
    listing: &'l Listing,
    selection: OrderedSelection,
    lines: Lines,
    /// How many more events are requested, and how many of them are not printed.
    left: u64,
    skipped: u64,
    warning: Vec<u8>,
    backwards: Backwards,
    /// Bytes of lines that are handed on at once.
    enough: usize,
}

impl<'l> Printer<'l> {
    pub(crate) fn new(listing: &'l Listing, range: TimeRange, recording: &Recording) -> Result<Self, Error> {
        let known = listing.context.then(|| Arc::new(Known::of(recording)));
        if known.as_ref().is_some_and(|known| known.names().is_empty()) {
            return Err(UsageFault::NoContext.into());
        }
        Self::with_context(listing, range, recording, known)
    }

    /// With what is `known` of the context of threads, if that is printed.
    fn with_context(
        listing: &'l Listing,
        range: TimeRange,
        recording: &Recording,
        known: Option<Arc<Known>>,
    ) -> Result<Self, Error> {
        let selection = OrderedSelection::new(&listing.filter, range, recording, listing.super_trace)?;
        let lines = Lines::new(listing, selection.selection(), recording, known);
        let left = listing.count.unwrap_or(u64::MAX);
        Ok(Printer {
            listing,
            selection,
            lines,
            left,
            skipped: 0,
            warning: Vec::new(),
            backwards: Backwards::default(),
            enough: BATCH,
        })
    }

    /// The same for a recording that was opened anew.
    ///
    /// # Errors
    /// The predicate fits no event class of it.
    pub(crate) fn reopen(self, recording: &Recording) -> Result<Self, Error> {
        let new = Printer::new(self.listing, TimeRange::ALL, recording)?;
        let (lines, backwards) = (new.lines.continuing(self.lines), self.backwards);
        Ok(Printer { lines, left: self.left, backwards, ..new })
    }

    /// Whether it needs the super-trace's state, which has to be followed from the recording's beginning.
    pub(crate) fn needs_places(&self) -> bool {
        self.selection.needs_places()
    }

    /// Whether the requested number of events has been printed.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// What has to be read of a recording, of which nothing was read so far.
    ///
    /// # Errors
    /// What was lost cannot be printed.
    pub(super) fn merge<'r>(
        &mut self,
        recording: &'r Recording,
        sink: &mut impl Sink,
    ) -> Result<Merge<'r>, Error> {
        let Printer { selection, lines, left, skipped, backwards, .. } = self;
        let mut all = Vec::new();
        let (merge, latest) = selection.merge(recording, |lost, trace, stream| {
            let mut warning = Vec::new();
            lines.text.lost(&mut warning, lost, trace, stream);
            all.push(warning);
        });
        backwards.restart_after(latest);
        if *skipped == 0 && *left > 0 {
            all.iter().try_for_each(|warning| sink.warning(warning)).map_err(Error::Output)?;
        }
        Ok(merge)
    }

    /// Prints what is left of `merge`. [`Printer::finish`] prints the last of it.
    pub(crate) fn print(&mut self, merge: &mut Merge<'_>, sink: &mut impl Sink) -> Result<(), Error> {
        // Other streams may only now reach the time of events that were printed before.
        self.backwards.restart_after(Timestamp::MIN);
        self.print_some(merge, u64::MAX, sink).map(|_| ())
    }

    /// Prints the next events and losses of `merge`, this many; false at its end.
    pub(super) fn print_some(
        &mut self,
        merge: &mut Merge<'_>,
        most: u64,
        sink: &mut impl Sink,
    ) -> Result<bool, Error> {
        let mut steps = 0;
        while self.left > 0 && steps < most {
            if steps > 0 {
                if !self.lines.batch.is_empty() {
                    sink.take(&mut self.lines.batch).map_err(Error::Output)?;
                }
                if sink.reached(merge.last_ns()).is_break() {
                    return Err(Error::Stopped);
                }
            }
            let pause = most.min(steps + PERIOD);
            let mut result = Ok(());
            let flow = merge.for_each(|message| {
                steps += 1;
                result = self.message(&message, sink);
                match result.is_ok() && self.left > 0 && steps < pause {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            result?;
            if flow?.is_continue() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline(always)]
    fn message(&mut self, message: &Message<'_>, sink: &mut impl Sink) -> Result<(), Error> {
        let Printer { selection, lines, left, skipped, warning, backwards, enough, .. } = self;
        match message {
            Message::Event(event) => {
                if let Some(range) = backwards.notice(event)
                    && let Some(source) = event.source()
                {
                    warning.clear();
                    lines.text.backwards(warning, range, source);
                    sink.warning(warning).map_err(Error::Output)?;
                }
                selection.event(event, |seen| {
                    *left -= 1;
                    match *skipped {
                        0 => lines.event(event, seen),
                        _ => *skipped -= 1,
                    }
                });
                if lines.batch.len() >= *enough {
                    sink.take(&mut lines.batch).map_err(Error::Output)?;
                }
            }
            Message::Lost(lost, trace, stream) => {
                if let Some(lost) = selection.lost(lost, trace, stream).filter(|_| *skipped == 0) {
                    warning.clear();
                    lines.text.lost(warning, &lost, trace, stream);
                    sink.warning(warning).map_err(Error::Output)?;
                }
            }
        }
        Ok(())
    }

    /// Whether several threads cannot share it: it counts events, or follows the state of threads.
    pub(super) fn is_sequential(&self) -> bool {
        self.left < u64::MAX || self.skipped > 0 || self.needs_places()
    }

    /// Skips all events except the last `last`; the recording is read once to count them.
    pub(super) fn keep_last(&mut self, last: u64, recording: &Recording) -> Result<(), Error> {
        let selection =
            OrderedSelection::new(&self.listing.filter, self.selection.range(), recording, false)?;
        self.skipped = count(recording, selection, self.left).saturating_sub(last);
        Ok(())
    }

    /// The next packet of each stream is treated as a new one, as others have printed in between.
    pub(super) fn forget_packets(&mut self) {
        self.lines.text.forget_packets();
    }

    /// One that prints slices of the same for it.
    pub(crate) fn for_slices(&self, recording: &Recording) -> Result<Self, Error> {
        let known = self.lines.known();
        let mut printer = Printer::with_context(self.listing, self.range(), recording, known)?;
        printer.backwards = self.backwards.sibling();
        // Head lines are there already.
        printer.lines.batch.clear();
        Ok(printer)
    }

    /// What is printed, and nothing outside of it.
    pub(crate) fn range(&self) -> TimeRange {
        self.selection.reads()
    }

    /// Prints up to the first event, and returns its line without the stamp, and the stamp.
    pub(crate) fn first_of_slice(
        &mut self,
        merge: &mut Merge<'_>,
        sink: &mut impl Sink,
    ) -> (Vec<u8>, Option<Stamp>, Result<(), Error>) {
        self.lines.text.forget_packets();
        self.lines.text.stamps().withhold();
        (self.left, self.enough) = (1, usize::MAX);
        let result = self.print(merge, sink);
        (self.left, self.enough) = (u64::MAX, BATCH_OF_SLICE);
        let line = std::mem::replace(&mut self.lines.batch, Vec::with_capacity(2 * BATCH_OF_SLICE));
        (line, self.lines.text.stamps().withheld(), result)
    }

    /// A slice's first line with its stamp.
    pub(crate) fn with_stamp(&mut self, stamp: Option<Stamp>, line: Vec<u8>) -> Vec<u8> {
        let Some(stamp) = stamp else { return line };
        let mut whole = Vec::with_capacity(line.len() + 64);
        self.lines.text.stamps().event(&mut whole, stamp);
        whole.extend_from_slice(&line);
        whole
    }

    /// The last stamp that was printed, if there was one.
    pub(crate) fn last_stamp(&mut self) -> Option<PrintedStamp> {
        self.lines.text.stamps().last()
    }

    /// Has the next stamp follow the last one of a slice.
    pub(crate) fn continue_after(&mut self, last: Option<PrintedStamp>) {
        last.into_iter().for_each(|last| self.lines.text.stamps().continue_after(last));
    }

    /// Hands the last lines to `sink`, even where printing failed with `result`.
    pub(crate) fn finish(&mut self, result: Result<(), Error>, sink: &mut impl Sink) -> Result<(), Error> {
        if matches!(result, Err(Error::Output(_) | Error::Stopped)) {
            return result;
        }
        let batch = &mut self.lines.batch;
        if batch.is_empty() {
            return result;
        }
        sink.take(batch).map_err(Error::Output).and(result)
    }
}

/// Number of selected events, at most `most`, before the first damage.
fn count(recording: &Recording, mut selection: OrderedSelection, most: u64) -> u64 {
    let (mut merge, _) = selection.merge(recording, |_, _, _| {});
    let mut count = 0;
    while count < most
        && let Ok(Some(message)) = merge.advance()
    {
        match message {
            Message::Event(event) => count += u64::from(selection.event(&event, |_| ()).is_some()),
            Message::Lost(lost, trace, stream) => drop(selection.lost(lost, trace, stream)),
        }
    }
    count
}
