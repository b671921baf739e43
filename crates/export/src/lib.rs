//! Writes recordings for other viewers: what each CPU, process, thread and task of the super-trace
//! ([`tracewing_trace::super_trace`]) did from when to when, events of programs, and who woke whom.
//!
//! | module | does |
//! |---|---|
//! | `timeline` | the analysis: lines of states, events and wakes; in `parts` of functions, locks, samples and counters |
//! | `model` | what there is in the end: containers and names |
//! | `undecided` | what an LWP did for a user thread that is not known yet |
//! | `change`, `sort` | everything by time, in bounded memory |
//! | `encoder` | what a format is told |
//! | `paje`, `perfetto` (by `protobuf`), `chrome` | the formats |
//!
//! What states are and how long they last is [`tracewing_trace::super_trace`]'s: the times here are those of
//! [`tracewing_analysis::Threads`].
//!
//! ```no_run
//! use std::{fs::File, ops::ControlFlow, path::Path};
//! use tracewing_export::{Export, Format};
//! use tracewing_trace::{Filter, Recording};
//!
//! let recording = Recording::open(&["my-trace"])?;
//! let go_on = &mut |_| ControlFlow::Continue(());
//! let mut out = File::create("my-trace.paje")?;
//! let export = Export { format: Format::Paje, folder: Path::new(".") };
//! export.run(&recording, &Filter::default(), go_on)?.write(&mut out, go_on)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod change;
mod chrome;
mod encoder;
mod model;
mod paje;
mod perfetto;
mod protobuf;
mod sort;
#[cfg(test)]
mod tests;
mod timeline;
mod undecided;

use model::Kind;
use std::cell::Cell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use tracewing_analysis::Ran;
use tracewing_trace::{Error, Filter, Progress, Recording};

/// What other viewers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Pajé's, for ViTE and pajeng.
    Paje,
    /// Perfetto's, protocol buffers.
    Perfetto,
    /// Chrome's trace events, JSON.
    Chrome,
}

/// An export that is to be made.
#[derive(Debug)]
pub struct Export<'a> {
    /// What to write.
    pub format: Format,
    /// Where temporary files are made, which have no names: a folder with as much room as the output takes.
    pub folder: &'a Path,
}

/// Everything that is to be written, once all has been read.
#[derive(Debug)]
pub struct Ready {
    encoder: Box<dyn encoder::Encoder>,
    model: model::Model,
    sorted: sort::Sorted,
    /// What is known of the recording.
    pub ran: Ran,
}

impl Export<'_> {
    /// Reads what `filter` lets through of a recording. `watch` is told from time to time how far it is, and
    /// may end it: what was read is then there.
    ///
    /// # Errors
    /// The filter makes no sense for the recording, or a temporary file cannot be written. What cannot be
    /// read is no error: it is in [`Ran::failure`].
    pub fn run(
        &self,
        recording: &Recording,
        filter: &Filter,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Ready, Error> {
        let encoder: Box<dyn encoder::Encoder> = match self.format {
            Format::Paje => Box::<paje::Paje>::default(),
            Format::Perfetto => Box::<perfetto::Perfetto>::default(),
            Format::Chrome => Box::<chrome::Chrome>::default(),
        };
        let failed = Rc::new(Cell::new(false));
        let mut timeline = timeline::Timeline::new(encoder, self.folder, failed.clone());
        let mut watch = |progress| match failed.get() {
            true => ControlFlow::Break(()),
            false => watch(progress),
        };
        let ran = tracewing_analysis::run(recording, filter, &mut timeline, &mut watch)?;
        let temporary = |cause| Error::Io { path: self.folder.to_owned(), cause };
        let (encoder, model, sorted) = timeline.finish(&ran).map_err(temporary)?;
        Ok(Ready { encoder, model, sorted, ran })
    }
}

/// How much there is to see.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// CPUs on which anything was.
    pub cpus: u64,
    /// LWPs.
    pub threads: u64,
    /// User threads.
    pub tasks: u64,
    /// LWPs that the recording does not follow and met only beside those that it does: they are not shown.
    pub strangers: u64,
}

impl Ready {
    /// How much there is to see.
    pub fn shown(&self) -> Shown {
        let mut shown = Shown::default();
        for container in &self.model.containers {
            match (container.kind, container.shown) {
                (Kind::Cpu { .. }, true) => shown.cpus += 1,
                (Kind::Lwp { .. }, true) => shown.threads += 1,
                (Kind::Task { .. }, true) => shown.tasks += 1,
                (Kind::Lwp { .. }, false) if container.ended => shown.strangers += 1,
                _ => {}
            }
        }
        shown
    }

    /// Writes everything; gives its size in bytes and what is known of the recording. `watch` is told how
    /// much is written, and may end it: what comes later is left out then, and `out` is complete all the
    /// same.
    ///
    /// # Errors
    /// `out` cannot be written, or a temporary file read.
    pub fn write(
        mut self,
        out: &mut dyn Write,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> std::io::Result<(u64, Ran)> {
        let bytes = encoder::write(&mut *self.encoder, &self.model, self.sorted, out, watch)?;
        Ok((bytes, self.ran))
    }
}
