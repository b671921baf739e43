//! Lines of events in the form that a listing has.

use crate::merge::event::EventRef;
use crate::open::recording::Recording;
use crate::print::context::{Contexts, Known};
use crate::print::csv::CsvPrinter;
use crate::print::json::JsonPrinter;
use crate::print::listing::Listing;
use crate::print::places::SuperPrinter;
use crate::print::style::Format;
use crate::print::text::TextPrinter;
use crate::select::selection::Selection;
use crate::super_trace::Seen;
use std::sync::Arc;

/// Bytes collected before they are written.
pub(super) const BATCH: usize = 1 << 16;

/// Bytes of the lines of a slice that are handed on at once. Each time, the thread that passes them on is
/// woken, and on a machine with few CPUs takes one from a thread that prints.
pub(super) const BATCH_OF_SLICE: usize = 1 << 18;

/// Lines of events that have not been handed on.
#[derive(Debug)]
pub(super) struct Lines {
    format: Format,
    pub text: TextPrinter,
    json: JsonPrinter,
    csv: Option<CsvPrinter>,
    super_trace: Option<SuperPrinter>,
    contexts: Option<Contexts>,
    pub batch: Vec<u8>,
}

impl Lines {
    /// With what is `known` of the context of threads, if that is printed.
    pub(super) fn new(
        listing: &Listing,
        selection: &Selection,
        recording: &Recording,
        known: Option<Arc<Known>>,
    ) -> Self {
        let text = match listing.format {
            Format::Pretty => TextPrinter::pretty(listing.style, recording),
            Format::Text | Format::Json | Format::Csv => TextPrinter::new(listing.style, recording),
        };
        let super_trace =
            listing.super_trace.then(|| SuperPrinter::new(listing.format, &listing.style, recording));
        let with_csv = listing.format == Format::Csv && super_trace.is_none();
        let names = known.as_ref().map_or(&[][..], |known| known.names());
        let mut csv = with_csv.then(|| CsvPrinter::new(recording, selection, names));
        let mut batch = Vec::with_capacity(2 * BATCH);
        csv.iter_mut().for_each(|csv| csv.header(&mut batch));
        super_trace.iter().for_each(|printer| printer.header(&mut batch));
        let contexts = known.map(Contexts::new);
        Lines { format: listing.format, text, json: JsonPrinter::new(), csv, super_trace, contexts, batch }
    }

    /// What is known of the context of threads, if that is printed.
    pub(super) fn known(&self) -> Option<Arc<Known>> {
        self.contexts.as_ref().map(Contexts::known)
    }

    /// The same, after those that were printed `before` of an older state of the recording.
    pub(super) fn continuing(self, before: Self) -> Self {
        Lines { text: self.text.continuing(before.text), ..self }
    }

    pub(super) fn event(&mut self, event: &EventRef<'_>, seen: Option<&Seen<'_>>) {
        let out = &mut self.batch;
        let context = self.contexts.as_mut().and_then(|contexts| contexts.of(event));
        match (self.format, &mut self.super_trace, seen) {
            (_, Some(printer), Some(seen)) => printer.event(out, seen),
            (Format::Json, ..) => self.json.event_in(out, event, context),
            (Format::Text | Format::Pretty, ..) => self.text.event_in(out, event, context),
            (Format::Csv, ..) => self.csv.iter_mut().for_each(|csv| csv.event(out, event, context)),
        }
    }
}
