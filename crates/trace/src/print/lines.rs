//! Lines of events in the form that a listing has.

use crate::merge::event::EventRef;
use crate::open::recording::Recording;
use crate::print::csv::CsvPrinter;
use crate::print::json::JsonPrinter;
use crate::print::listing::Listing;
use crate::print::places::SuperPrinter;
use crate::print::style::Format;
use crate::print::text::TextPrinter;
use crate::select::selection::Selection;
use crate::super_trace::Seen;

/// Bytes collected before they are written.
pub(super) const BATCH: usize = 1 << 16;

/// Lines of events that have not been handed on.
#[derive(Debug)]
pub(super) struct Lines {
    format: Format,
    pub text: TextPrinter,
    json: JsonPrinter,
    csv: Option<CsvPrinter>,
    super_trace: Option<SuperPrinter>,
    pub batch: Vec<u8>,
}

impl Lines {
    pub(super) fn new(listing: &Listing, selection: &Selection, recording: &Recording) -> Self {
        let text = match listing.format {
            Format::Pretty => TextPrinter::pretty(listing.style, recording),
            Format::Text | Format::Json | Format::Csv => TextPrinter::new(listing.style, recording),
        };
        let super_trace =
            listing.super_trace.then(|| SuperPrinter::new(listing.format, &listing.style, recording));
        let with_csv = listing.format == Format::Csv && super_trace.is_none();
        let mut csv = with_csv.then(|| CsvPrinter::new(recording, selection));
        let mut batch = Vec::with_capacity(2 * BATCH);
        csv.iter_mut().for_each(|csv| csv.header(&mut batch));
        super_trace.iter().for_each(|printer| printer.header(&mut batch));
        Lines { format: listing.format, text, json: JsonPrinter::new(), csv, super_trace, batch }
    }

    /// The same, after those that were printed `before` of an older state of the recording.
    pub(super) fn continuing(self, before: Self) -> Self {
        Lines { text: self.text.continuing(before.text), ..self }
    }

    pub(super) fn event(&mut self, event: &EventRef<'_>, seen: Option<&Seen<'_>>) {
        let out = &mut self.batch;
        match (self.format, &mut self.super_trace, seen) {
            (_, Some(printer), Some(seen)) => printer.event(out, seen),
            (Format::Json, ..) => self.json.event(out, event),
            (Format::Text | Format::Pretty, ..) => self.text.event(out, event),
            (Format::Csv, ..) => self.csv.iter_mut().for_each(|csv| csv.event(out, event)),
        }
    }
}
