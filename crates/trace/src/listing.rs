//! Prints a recording: merge, choose, print, in the order in which `tracewing list` does it.

use crate::Error;
use crate::backwards::Backwards;
use crate::chooser::Chooser;
use crate::csv::CsvPrinter;
use crate::filter::Filter;
use crate::json::JsonPrinter;
use crate::merge::{EventRef, Merge, Message};
use crate::open::Recording;
use crate::parallel::{self, Plan};
use crate::slices::slices;
use crate::stamp::Stamp;
use crate::style::Style;
use crate::super_trace::{Seen, SuperPrinter};
use crate::text::TextPrinter;
use crate::time_range::TimeRange;
use std::io::{self, Write};

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
    /// Which events are printed.
    pub filter: Filter,
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
    /// Prints `recording` to `sink`; much of it by as many threads as there are CPUs, 16 at most.
    ///
    /// # Errors
    /// A stream is damaged: everything before that has been printed. Times make no sense, or `sink` fails
    /// ([`Error::Output`]).
    pub fn print(&self, recording: &Recording, sink: &mut impl Sink) -> Result<(), Error> {
        let range = self.filter.range(recording)?;
        let mut printer = Printer::new(self, range, recording)?;
        if let Some(last) = self.last {
            let chooser = Chooser::new(&self.filter, range, recording, false)?;
            printer.skipped = count(recording, chooser, printer.left).saturating_sub(last);
        }
        let result = printer.print_all(recording, Plan::default(), sink);
        printer.finish(result, sink)
    }
}

/// A listing at work.
#[derive(Debug)]
pub(crate) struct Printer<'l> {
    listing: &'l Listing,
    chooser: Chooser,
    lines: Lines,
    /// How many events are wanted still, and how many of them are not printed.
    left: u64,
    skipped: u64,
    warning: Vec<u8>,
    backwards: Backwards,
    /// Bytes of lines that are handed on at once.
    enough: usize,
}

impl<'l> Printer<'l> {
    pub(crate) fn new(listing: &'l Listing, range: TimeRange, recording: &Recording) -> Result<Self, Error> {
        let chooser = Chooser::new(&listing.filter, range, recording, listing.super_trace)?;
        let lines = Lines::new(listing, &chooser, recording);
        let left = listing.count.unwrap_or(u64::MAX);
        Ok(Printer {
            listing,
            chooser,
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
        let text = new.lines.text.continuing(self.lines.text);
        let backwards = self.backwards;
        Ok(Printer { lines: Lines { text, ..new.lines }, left: self.left, backwards, ..new })
    }

    /// Whether it needs the super-trace's state, which has to be followed from the recording's begin.
    pub(crate) fn needs_places(&self) -> bool {
        self.chooser.needs_places()
    }

    /// Whether all that is wanted has been printed.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Prints what is left of `merge`. [`Printer::finish`] prints the last of it.
    pub(crate) fn print(&mut self, merge: &mut Merge<'_>, sink: &mut impl Sink) -> Result<(), Error> {
        // What was printed before may be of a time that others come to only now.
        self.backwards.restart();
        self.print_some(merge, u64::MAX, sink).map(|_| ())
    }

    /// Prints the recording, by several threads if `plan` says so and that is possible.
    pub(crate) fn print_all(
        &mut self,
        recording: &Recording,
        plan: Plan,
        sink: &mut impl Sink,
    ) -> Result<(), Error> {
        let mut merge = Merge::new(recording, self.range());
        let has_counts = self.left < u64::MAX || self.skipped > 0;
        if plan.threads == 1 || has_counts || self.needs_places() || !merge.is_orderly() {
            return self.print(&mut merge, sink);
        }
        // Up to a time at which all streams stand, so that others can go on from there.
        if !self.print_some(&mut merge, plan.alone, sink)? {
            return Ok(());
        }
        let last = merge.last_ns();
        merge.go_on_to(last);
        self.print(&mut merge, sink)?;
        self.finish(Ok(()), sink)?;
        let range = self.range();
        let slices = match last {
            0.. if last < range.end => slices(recording, range, last + 1, plan.slice),
            _ => Vec::new(),
        };
        if !slices.is_empty() {
            merge = parallel::print(self, recording, merge, &slices, plan.threads, sink)?;
            self.lines.text.forget_packets();
        }
        merge.go_on_to(range.end);
        self.print(&mut merge, sink)
    }

    /// Prints the next so many events and losses of `merge`; false at its end.
    fn print_some(&mut self, merge: &mut Merge<'_>, most: u64, sink: &mut impl Sink) -> Result<bool, Error> {
        let Printer { chooser, lines, left, skipped, warning, backwards, enough, .. } = self;
        let mut steps = 0;
        while *left > 0 && steps < most {
            steps += 1;
            match merge.advance()? {
                Some(Message::Event(event)) => {
                    if let Some(range) = backwards.notice(&event)
                        && let Some(source) = event.source()
                    {
                        warning.clear();
                        lines.text.backwards(warning, range, source);
                        sink.warning(warning).map_err(Error::Output)?;
                    }
                    chooser.event(&event, |seen| {
                        *left -= 1;
                        match *skipped {
                            0 => lines.event(&event, seen),
                            _ => *skipped -= 1,
                        }
                    });
                    if lines.batch.len() >= *enough {
                        sink.events(&lines.batch).map_err(Error::Output)?;
                        lines.batch.clear();
                    }
                }
                Some(Message::Lost(lost, trace, stream)) => {
                    let Some(lost) = chooser.lost(lost, trace, stream).filter(|_| *skipped == 0) else {
                        continue;
                    };
                    warning.clear();
                    lines.text.lost(warning, &lost, trace, stream);
                    sink.warning(warning).map_err(Error::Output)?;
                }
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// One that prints slices of the same for it.
    pub(crate) fn for_slices(&self, recording: &Recording) -> Result<Self, Error> {
        let mut printer = Printer::new(self.listing, self.range(), recording)?;
        printer.backwards = self.backwards.beside();
        // Head lines are there already.
        printer.lines.batch.clear();
        Ok(printer)
    }

    /// What is printed, and nothing outside of it.
    pub(crate) fn range(&self) -> TimeRange {
        self.chooser.reads()
    }

    /// Prints up to the first event, of which it gives the line without the stamp, and the stamp.
    pub(crate) fn first_of_slice(
        &mut self,
        merge: &mut Merge<'_>,
        sink: &mut impl Sink,
    ) -> (Vec<u8>, Option<Stamp>, Result<(), Error>) {
        self.lines.text.forget_packets();
        self.lines.text.stamps().withhold();
        (self.left, self.enough) = (1, usize::MAX);
        let result = self.print(merge, sink);
        (self.left, self.enough) = (u64::MAX, BATCH);
        let line = std::mem::replace(&mut self.lines.batch, Vec::with_capacity(2 * BATCH));
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
    pub(crate) fn last_stamp(&mut self) -> Option<u64> {
        self.lines.text.stamps().last()
    }

    /// Has the next stamp follow the last one of a slice.
    pub(crate) fn go_on_behind(&mut self, last: Option<u64>) {
        last.into_iter().for_each(|last| self.lines.text.stamps().go_on_behind(last));
    }

    /// Hands the last lines to `sink`, also where printing failed with `result`.
    pub(crate) fn finish(&mut self, result: Result<(), Error>, sink: &mut impl Sink) -> Result<(), Error> {
        let batch = &mut self.lines.batch;
        if matches!(result, Err(Error::Output(_))) || batch.is_empty() {
            return result;
        }
        let printed = sink.events(batch).map_err(Error::Output);
        batch.clear();
        printed.and(result)
    }
}

/// Lines of events that have not been handed on.
#[derive(Debug)]
struct Lines {
    format: Format,
    text: TextPrinter,
    json: JsonPrinter,
    csv: Option<CsvPrinter>,
    super_trace: Option<SuperPrinter>,
    batch: Vec<u8>,
}

impl Lines {
    fn new(listing: &Listing, chooser: &Chooser, recording: &Recording) -> Self {
        let text = match listing.format {
            Format::Pretty => TextPrinter::pretty(listing.style, recording),
            Format::Text | Format::Json | Format::Csv => TextPrinter::new(listing.style, recording),
        };
        let super_trace =
            listing.super_trace.then(|| SuperPrinter::new(listing.format, &listing.style, recording));
        let with_csv = listing.format == Format::Csv && super_trace.is_none();
        let mut csv = with_csv.then(|| CsvPrinter::new(recording, chooser.selection()));
        let mut batch = Vec::with_capacity(2 * BATCH);
        csv.iter_mut().for_each(|csv| csv.header(&mut batch));
        super_trace.iter().for_each(|printer| printer.header(&mut batch));
        Lines { format: listing.format, text, json: JsonPrinter::new(), csv, super_trace, batch }
    }

    fn event(&mut self, event: &EventRef<'_>, seen: Option<&Seen<'_>>) {
        let out = &mut self.batch;
        match (self.format, &mut self.super_trace, seen) {
            (_, Some(printer), Some(seen)) => printer.event(out, seen),
            (Format::Json, ..) => self.json.event(out, event),
            (Format::Text | Format::Pretty, ..) => self.text.event(out, event),
            (Format::Csv, ..) => self.csv.iter_mut().for_each(|csv| csv.event(out, event)),
        }
    }
}

/// How many wanted events there are, `most` at most, in front of what is damaged.
fn count(recording: &Recording, mut chooser: Chooser, most: u64) -> u64 {
    let mut merge = Merge::new(recording, chooser.reads());
    let mut count = 0;
    while count < most
        && let Ok(Some(message)) = merge.advance()
    {
        match message {
            Message::Event(event) => count += u64::from(chooser.event(&event, |_| ()).is_some()),
            Message::Lost(lost, trace, stream) => drop(chooser.lost(lost, trace, stream)),
        }
    }
    count
}

/// When the recording begins: when it says so, as a part of another one does; else with its first packet, or where no packet says, with its first event.
pub(crate) fn begin(recording: &Recording) -> Result<i64, Error> {
    if let Some(begin) = recording.part_begin().or(recording.begin()) {
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
