//! Prints a recording while it is being made: packets as they become complete, in order of time as far as
//! possible.
//!
//! Each round prints the events before the end of the complete packets of every stream, since a stream may
//! have any events after its own. An idle stream would delay all others, so events that have waited for a
//! second are printed, and events of other streams that arrive later are printed when they arrive. No event
//! is printed twice or left out: each round continues where the previous one has stopped.

use crate::merge::messages::Merge;
use crate::merge::tail::Tails;
use crate::open::recording::{Recording, Stream, Trace};
use crate::open::{description, find};
use crate::print::listing::{Listing, Sink};
use crate::print::printer::Printer;
use crate::print::style::Format;
use crate::stream::packet::has_size;
use crate::time::range::TimeRange;
use crate::{Error, UsageFault};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tracewing_units::Timestamp;

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(100);

impl Listing {
    /// Prints the recording at `inputs`, and what is added to it, until it ends: when all of its traces are
    /// tracewing's own and complete, or their recorder was killed; when the requested number of events has
    /// been printed, or after the end of the time range.
    ///
    /// An event is printed at most 1.1 s after its packet has become whole. Only events whose packets come
    /// later than that are not in order.
    ///
    /// # Errors
    /// As [`Recording::open`] and [`Listing::print`]. Packets of a stream do not declare their size. A
    /// complete packet that cannot be decoded is damaged after 5 s; before that the metadata may be out of
    /// date.
    pub fn follow<P: AsRef<Path>>(&self, inputs: &[P], sink: &mut impl Sink) -> Result<(), Error> {
        if self.format == Format::Csv {
            return Err(UsageFault::FollowedAsCsv.into());
        }
        let mut files = files(inputs)?;
        let mut recording = Recording::open(inputs)?;
        let mut printer = Printer::new(self, TimeRange::ALL, &recording)?;
        if printer.needs_places() {
            return Err(UsageFault::FollowedBySubject.into());
        }
        must_have_sizes(&recording)?;
        let mut tails = Tails::default();
        tails.open(&recording);
        let (mut stops, mut printed, mut range) = (Vec::new(), Timestamp::MIN, None);
        loop {
            // What is there now is all that there will be, if it was over before.
            let is_over = is_over(&recording);
            let (present, now) = (self::files(inputs)?, Instant::now());
            let mut found = tails.look(now);
            if present != files || tails.has_unknown() {
                match Recording::open(inputs) {
                    Ok(newer) => {
                        (recording, files) = (newer, present);
                        must_have_sizes(&recording)?;
                        printer = printer.reopen(&recording)?;
                        tails.open(&recording);
                        found |= tails.look(now);
                    }
                    Err(error) if is_over => return Err(error),
                    // Metadata may be half written.
                    Err(_) => {}
                }
            }
            let until = if is_over { Timestamp::MAX } else { tails.until(&recording, now) };
            if found || until > printed {
                let range = match range {
                    Some(range) => range,
                    None => *range.insert(self.filter.range(&recording)?),
                };
                let limit = |path: &Path| if is_over { u64::MAX } else { tails.whole(path) };
                let resume = |stream: &Stream| recording.resume(stream, range.begin, limit, &stops);
                let cursors = recording.streams().iter().map(resume).collect::<Result<_, _>>()?;
                let mut merge = Merge::of(&recording, range, cursors).pause_at(until);
                let result = printer.print(&mut merge, sink);
                printer.finish(result, sink)?;
                (stops, printed) = (merge.stops(), until);
                if until > range.end {
                    return Ok(());
                }
            }
            if is_over || printer.is_done() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Refuses a stream without packet sizes: only the end of its file marks its end, so it is unknown what is
/// complete.
fn must_have_sizes(recording: &Recording) -> Result<(), Error> {
    for stream in recording.streams() {
        let classes = &recording.traces()[stream.trace_index()].class().data_stream_classes;
        let is_known = stream.files.iter().any(|file| file.is_known);
        if let Some(class) = classes.iter().find(|class| is_known && class.id == stream.class_id())
            && !has_size(class)
        {
            return Err(UsageFault::FollowedWithoutSizes(stream.name().to_string()).into());
        }
    }
    Ok(())
}

/// Changes when a recording must be opened again: its stream files, and size and time of its metadata.
type Files = Vec<(PathBuf, Option<(u64, SystemTime)>)>;

fn files<P: AsRef<Path>>(inputs: &[P]) -> Result<Files, Error> {
    let mut files = Vec::new();
    for input in inputs {
        for folder in find::find(input.as_ref())? {
            for entry in fs::read_dir(&folder.path).map_err(Error::io(&folder.path))?.flatten() {
                let Ok(meta) = fs::metadata(entry.path()) else { continue };
                let is_metadata = entry.file_name() == "metadata";
                let version =
                    is_metadata.then(|| (meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
                if meta.len() > 0 {
                    files.push((entry.path(), version));
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether all traces are tracewing's own, and complete or left by a recorder that was killed.
fn is_over(recording: &Recording) -> bool {
    let has_ended = |folder: &PathBuf| folder.parent().is_some_and(description::is_over);
    recording.traces().iter().flat_map(Trace::folders).all(has_ended)
}
