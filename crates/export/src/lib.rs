//! Converts recordings for other viewers: the states of each CPU, process, thread and task of the super-trace
//! ([`tracewing_trace::super_trace`]) over time, events of programs, and wake-ups with their wakers.
//!
//! | module | does |
//! |---|---|
//! | `timeline` | the analysis: states of [`tracewing_timeline`] and wakes, events, functions, locks, samples |
//! | `model` | the final containers and names |
//! | `change`, `sort` | sorts everything by time in bounded memory |
//! | `encoder` | the interface of a format |
//! | `paje`, `perfetto` (with `protobuf`), `chrome` | the formats |
//!
//! States are those of [`tracewing_timeline`], so times here equal those of
//! [`tracewing_analysis::Threads`].
//!
//! ```no_run
//! use std::{fs::File, ops::ControlFlow, path::Path};
//! use tracewing_export::{Export, Format};
//! use tracewing_trace::{Filter, Recording};
//!
//! let recording = Recording::open(&["my-trace"])?;
//! let proceed = &mut |_| ControlFlow::Continue(());
//! let mut out = File::create("my-trace.paje")?;
//! let export = Export { format: Format::Paje, folder: Path::new(".") };
//! export.run(&recording, &Filter::default(), proceed)?.write(&mut out, proceed)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(unreachable_pub)]

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

use model::{Kind, Model};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use tracewing_analysis::{Pairs, Ran};
use tracewing_trace::{Error, Filter, Progress, Recording};

/// The format of a viewer, which [`Export::run`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Pajé, for ViTE and pajeng.
    Paje,
    /// Perfetto: protocol buffers.
    Perfetto,
    /// Chrome trace events: JSON.
    Chrome,
}

/// Settings of an export.
#[derive(Debug)]
pub struct Export<'a> {
    /// What is written.
    pub format: Format,
    /// Folder of anonymous temporary files; it needs as much free space as the output.
    pub folder: &'a Path,
}

/// A recording that has been read completely and can be written.
#[derive(Debug)]
pub struct Ready {
    encoder: Box<dyn encoder::Encoder>,
    model: Model,
    sorted: sort::Sorted,
    /// Facts about the recording.
    pub ran: Ran,
}

impl Export<'_> {
    /// Reads the part of a recording that `filter` lets through. `watch` is called with the progress from
    /// time to time and may stop the reading early; what has been read until then is kept.
    ///
    /// # Errors
    /// The filter does not fit the recording, or a temporary file cannot be written. An unreadable part of
    /// the recording is not an error but reported in [`Ran::failure`].
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
        let pairs = Pairs::of(recording, filter);
        let mut timeline = timeline::Timeline::new(encoder, self.folder, pairs);
        let ran = tracewing_analysis::run(recording, filter, &mut timeline, watch)?;
        let temporary = |cause| Error::Io { path: self.folder.to_owned(), cause };
        let (encoder, model, sorted) = timeline.finish(&ran).map_err(temporary)?;
        Ok(Ready { encoder, model, sorted, ran })
    }
}

/// Number of containers by kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// CPUs with any activity.
    pub cpus: u64,
    /// LWPs that are shown.
    pub threads: u64,
    /// User threads that are shown.
    pub tasks: u64,
    /// LWPs that appear in events but are not followed, so they are not shown.
    pub strangers: u64,
    /// Whether functions are left out, because not all of their ends are there.
    pub lacks_functions: bool,
    /// Whether waits or holds of locks are left out, because not all events that mark them are there.
    pub lacks_locks: bool,
}

impl Ready {
    /// Counts the containers by kind.
    pub fn shown(&self) -> Shown {
        let Model { lacks_functions, lacks_locks, .. } = self.model;
        let mut shown = Shown { lacks_functions, lacks_locks, ..Shown::default() };
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

    /// Writes everything; returns its size in bytes and facts about the recording. `watch` is called with the
    /// progress and may stop the writing early: the rest is left out, but `out` is still a complete file.
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
