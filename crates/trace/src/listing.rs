//! Prints a recording: merge, choose, print, in the order in which `tracewing list` does it.

use crate::csv::CsvPrinter;
use crate::json::JsonPrinter;
use crate::merge::{Merge, Message};
use crate::open::Recording;
use crate::select::Selection;
use crate::style::Style;
use crate::super_trace::SuperPrinter;
use crate::text::TextPrinter;
use crate::time_range::{TimePoint, TimeRange};
use crate::{Error, Zone};
use std::io::{self, Write};
use tracewing_rules::Predicate;

/// Bytes collected before they are written.
const BATCH: usize = 1 << 16;

/// What of a recording is printed, and how.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// How events are printed.
    pub format: Format,
    /// Whether events are printed with the CPU, process, LWP and user thread that they belong to. The state before what is
    /// printed has to be known, so everything before is read.
    pub super_trace: bool,
    /// Stamps, names and fields, in the text formats.
    pub style: Style,
    /// What lies before is left out.
    pub from: Option<TimePoint>,
    /// What lies behind is left out.
    pub to: Option<TimePoint>,
    /// Patterns, one of which an event's name must match; all events where there is none.
    pub events: Vec<String>,
    /// Patterns, none of which an event's name may match.
    pub exclude: Vec<String>,
    /// What must hold for an event.
    pub predicate: Option<Predicate>,
    /// How many events are printed at most.
    pub count: Option<u64>,
    /// Of those that would be printed otherwise only the last so many are. They are counted first, so the recording is read
    /// twice.
    pub last: Option<u64>,
}

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// As babeltrace2 does.
    #[default]
    Text,
    /// As their authors meant them.
    Pretty,
    /// A line of JSON each.
    Json,
    /// A line of comma-separated values each, below one with the names of the columns.
    Csv,
}

/// Where a listing goes.
pub trait Sink {
    /// Takes whole lines of events, many at a time.
    ///
    /// # Errors
    /// They cannot be written; the listing ends.
    fn events(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Takes a line about a loss. Lines of events that precede it may come later, in a batch.
    ///
    /// # Errors
    /// It cannot be written; the listing ends.
    fn warning(&mut self, line: &[u8]) -> io::Result<()>;
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

impl Listing {
    /// Reads both ends of the time range; civil times in the zone in which stamps are printed.
    ///
    /// # Errors
    /// [`Error::Usage`] where one of them is no time.
    pub fn set_range(&mut self, from: Option<&str>, to: Option<&str>) -> Result<(), Error> {
        let zone: Zone = self.style.clock.zone;
        let read = |text: Option<&str>| text.map(|text| TimePoint::parse(text, zone)).transpose();
        (self.from, self.to) = (read(from)?, read(to)?);
        Ok(())
    }

    /// Prints `recording` to `sink`.
    ///
    /// # Errors
    /// A stream is damaged: everything before that has been printed. Times make no sense, or `sink` fails
    /// ([`Error::Output`]).
    pub fn print(&self, recording: &Recording, sink: &mut impl Sink) -> Result<(), Error> {
        let range = self.range(recording)?;
        let mut printer = Printer::new(self, recording)?;
        printer.range = range;
        if let Some(last) = self.last {
            let all = count(recording, range, &mut printer.selection, printer.left);
            printer.skipped = all.saturating_sub(last);
        }
        let read = if self.super_trace { TimeRange { begin: i64::MIN, ..range } } else { range };
        let mut merge = Merge::new(recording, read);
        let result = printer.print(&mut merge, sink);
        printer.finish(result, sink)
    }

    /// What is printed of a recording whose begin is known.
    pub(crate) fn range(&self, recording: &Recording) -> Result<TimeRange, Error> {
        let begin = match (self.from, self.to) {
            (None, None) => 0,
            _ => begin(recording)?,
        };
        TimeRange::between(self.from, self.to, begin, self.style.clock.zone)
    }
}

/// A listing at work.
#[derive(Debug)]
pub(crate) struct Printer<'l> {
    listing: &'l Listing,
    text: TextPrinter,
    json: JsonPrinter,
    csv: Option<CsvPrinter>,
    super_trace: Option<SuperPrinter>,
    selection: Selection,
    /// What lies outside is read for the super-trace's state only.
    range: TimeRange,
    /// How many events are wanted still, and how many of them are not printed.
    left: u64,
    skipped: u64,
    batch: Vec<u8>,
    warning: Vec<u8>,
}

impl<'l> Printer<'l> {
    pub(crate) fn new(listing: &'l Listing, recording: &Recording) -> Result<Self, Error> {
        let text = match listing.format {
            Format::Pretty => TextPrinter::pretty(listing.style, recording),
            Format::Text | Format::Json | Format::Csv => TextPrinter::new(listing.style, recording),
        };
        let mut selection = Selection::new(&listing.events).excluding(&listing.exclude);
        if let Some(predicate) = &listing.predicate {
            selection = selection.with_predicate(predicate.clone(), recording)?;
        }
        let super_trace =
            listing.super_trace.then(|| SuperPrinter::new(listing.format, &listing.style, recording));
        let with_csv = listing.format == Format::Csv && super_trace.is_none();
        let mut csv = with_csv.then(|| CsvPrinter::new(recording, &selection));
        let mut batch = Vec::with_capacity(2 * BATCH);
        csv.iter_mut().for_each(|csv| csv.header(&mut batch));
        super_trace.iter().for_each(|printer| printer.header(&mut batch));
        Ok(Printer {
            listing,
            text,
            json: JsonPrinter::new(),
            csv,
            super_trace,
            selection,
            range: TimeRange::ALL,
            left: listing.count.unwrap_or(u64::MAX),
            skipped: 0,
            batch,
            warning: Vec::new(),
        })
    }

    /// The same for a recording that was opened anew.
    ///
    /// # Errors
    /// The predicate fits no event class of it.
    pub(crate) fn reopen(self, recording: &Recording) -> Result<Self, Error> {
        let new = Printer::new(self.listing, recording)?;
        Ok(Printer { text: new.text.continuing(self.text), left: self.left, ..new })
    }

    /// Whether all that is wanted has been printed.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Prints what is left of `merge`. [`Printer::finish`] prints the last of it.
    pub(crate) fn print(&mut self, merge: &mut Merge<'_>, sink: &mut impl Sink) -> Result<(), Error> {
        while self.left > 0 {
            match merge.advance()? {
                Some(Message::Event(event)) => {
                    self.super_trace.iter_mut().for_each(|printer| printer.follow(&event));
                    let early = event.stamp().is_some_and(|stamp| stamp.ns < self.range.begin);
                    if early || !self.selection.wants(&event) {
                        continue;
                    }
                    self.left -= 1;
                    if self.skipped > 0 {
                        self.skipped -= 1;
                        continue;
                    }
                    match self.listing.format {
                        _ if let Some(printer) = &mut self.super_trace => {
                            printer.event(&mut self.batch, &event)
                        }
                        Format::Json => self.json.event(&mut self.batch, &event),
                        Format::Text | Format::Pretty => self.text.event(&mut self.batch, &event),
                        Format::Csv => self.csv.iter_mut().for_each(|csv| csv.event(&mut self.batch, &event)),
                    }
                    if self.batch.len() >= BATCH {
                        sink.events(&self.batch).map_err(Error::Output)?;
                        self.batch.clear();
                    }
                }
                Some(Message::Lost(lost, trace, stream)) => {
                    self.super_trace.iter_mut().for_each(|printer| printer.lost(lost, trace, stream));
                    let mut lost = *lost;
                    if self.skipped > 0 || !lost.cut(&self.range) {
                        continue;
                    }
                    self.warning.clear();
                    self.text.lost(&mut self.warning, &lost, trace, stream);
                    sink.warning(&self.warning).map_err(Error::Output)?;
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Hands the last lines to `sink`, also where printing failed with `result`.
    pub(crate) fn finish(&mut self, result: Result<(), Error>, sink: &mut impl Sink) -> Result<(), Error> {
        if matches!(result, Err(Error::Output(_))) || self.batch.is_empty() {
            return result;
        }
        let printed = sink.events(&self.batch).map_err(Error::Output);
        self.batch.clear();
        printed.and(result)
    }
}

/// How many wanted events there are, `most` at most, in front of what is damaged.
fn count(recording: &Recording, range: TimeRange, selection: &mut Selection, most: u64) -> u64 {
    let mut merge = Merge::new(recording, range);
    let mut count = 0;
    while count < most
        && let Ok(Some(message)) = merge.advance()
    {
        count += u64::from(matches!(message, Message::Event(event) if selection.wants(&event)));
    }
    count
}

/// When the recording begins: with its first packet, or where no packet says, with its first event.
pub(crate) fn begin(recording: &Recording) -> Result<i64, Error> {
    if let Some(begin) = recording.begin() {
        return Ok(begin);
    }
    let mut merge = Merge::new(recording, TimeRange::ALL);
    while let Some(message) = merge.advance()? {
        if let Message::Event(event) = message {
            return Ok(event.stamp().map_or(0, |stamp| stamp.ns));
        }
    }
    Ok(0)
}
