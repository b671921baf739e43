//! A recording while it is being made: packets as they become complete, in order of time as far as possible.
//!
//! Each round merges the events before the end of the complete packets of every stream, since a stream may
//! have any events after its own. An idle stream would delay all others, so events that have waited for a
//! while are merged, and events of other streams that arrive later come when they arrive. No event comes
//! twice or is left out: each round continues where the previous one has stopped. Files are only read.

use crate::merge::messages::Merge;
use crate::merge::tail::Tails;
use crate::open::recording::{Recording, Stream, Trace};
use crate::open::{description, find};
use crate::stream::cursor::Stop;
use crate::stream::packet::has_size;
use crate::time::range::TimeRange;
use crate::{Error, UsageFault};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tracewing_units::Timestamp;

/// A recording that grows.
#[derive(Debug)]
pub struct Growing {
    inputs: Vec<PathBuf>,
    recording: Recording,
    files: Files,
    tails: Tails,
    /// Where each stream has stopped in the last round.
    stops: Vec<Stop>,
    reached: Timestamp,
    /// Up to when there are messages.
    until: Timestamp,
    found: bool,
    is_over: bool,
}

impl Growing {
    /// Opens the recording at `inputs`. An event waits at most for `hold` for earlier ones of streams in
    /// which nothing happens.
    ///
    /// # Errors
    /// As [`Recording::open`]. Packets of a stream do not declare their size.
    pub fn open<P: AsRef<Path>>(inputs: &[P], hold: Duration) -> Result<Self, Error> {
        let inputs: Vec<PathBuf> = inputs.iter().map(|input| input.as_ref().to_owned()).collect();
        let files = files(&inputs)?;
        let recording = Recording::open(&inputs)?;
        must_have_sizes(&recording)?;
        let mut tails = Tails::new(hold);
        tails.open(&recording);
        Ok(Self {
            inputs,
            recording,
            files,
            tails,
            stops: Vec::new(),
            reached: Timestamp::MIN,
            until: Timestamp::MIN,
            found: false,
            is_over: false,
        })
    }

    /// What is known of it now: its traces and streams.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Up to when it has been read.
    pub fn reached(&self) -> Timestamp {
        self.reached
    }

    /// Up to when it can be read, as the last look found.
    pub fn until(&self) -> Timestamp {
        self.until
    }

    /// Whether there is anything to read, as the last look found.
    pub fn has_more(&self) -> bool {
        self.found || self.until > self.reached
    }

    /// Whether all traces were tracewing's own, and complete or left by a recorder that was killed, before
    /// the last look: what that found is all that there will be.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Within what time each event is written (`--flush`); `None` unless recorders of tracewing make all of
    /// it.
    pub fn flush(&self) -> Option<Duration> {
        let of = |folder: &PathBuf| {
            let ms = description::parsed(folder.parent()?)?["buffers"]["flush_ms"].as_u64()?;
            Some(Duration::from_millis(ms))
        };
        let mut all = self.recording.traces().iter().flat_map(Trace::folders).map(of);
        all.try_fold(Duration::ZERO, |most, one| Some(most.max(one?)))
    }

    /// When the last of it was written, as far as is known.
    pub fn written(&self) -> Option<SystemTime> {
        let files = self.recording.streams().iter().flat_map(Stream::files);
        files.filter_map(|path| fs::metadata(path).ok()?.modified().ok()).max()
    }

    /// Looks for what has been added. Returns whether there are other streams or classes than before: the
    /// recording was opened anew, and its streams may have other numbers.
    ///
    /// # Errors
    /// It has ended and cannot be opened.
    pub fn look(&mut self) -> Result<bool, Error> {
        self.is_over = is_over(&self.recording, &self.inputs);
        let (present, now) = (files(&self.inputs)?, Instant::now());
        self.found |= self.tails.look(now);
        let mut is_other = false;
        if present != self.files || self.tails.has_unknown() {
            match Recording::open(&self.inputs) {
                Ok(newer) => {
                    self.stops
                        .iter_mut()
                        .for_each(|stop| stop.follow(|path| moved(path, &self.files, &present)));
                    (self.recording, self.files) = (newer, present);
                    must_have_sizes(&self.recording)?;
                    self.tails.open(&self.recording);
                    self.found |= self.tails.look(now);
                    is_other = true;
                }
                Err(error) if self.is_over => return Err(error),
                // Metadata may be half written.
                Err(_) => {}
            }
        }
        self.until = match self.is_over {
            true => Timestamp::MAX,
            false => self.tails.until(&self.recording, now),
        };
        Ok(is_other)
    }

    /// Has `take` read what there is in `range`.
    ///
    /// # Errors
    /// A stream cannot be read, or `take` fails.
    pub fn read<T>(
        &mut self,
        range: TimeRange,
        take: impl FnOnce(&Recording, &mut Merge<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Self { recording, tails, stops, is_over, .. } = &*self;
        let limit = |path: &Path| if *is_over { u64::MAX } else { tails.whole(path) };
        let resume = |stream: &Stream| recording.resume(stream, range.begin, limit, stops);
        let cursors = recording.streams().iter().map(resume).collect::<Result<_, _>>()?;
        let mut merge = Merge::of(recording, range, cursors).pause_at(self.until);
        let taken = take(recording, &mut merge)?;
        (self.stops, self.reached, self.found) = (merge.stops(), self.until, false);
        Ok(taken)
    }

    /// The next round reads everything again, from the beginning.
    pub fn rewind(&mut self) {
        (self.stops, self.found) = (Vec::new(), true);
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

/// Changes when a recording must be opened again: its stream files with device and inode, and size and time
/// of its metadata.
type Files = Vec<(PathBuf, (u64, u64), Option<(u64, SystemTime)>)>;

/// The new path of a file that was moved: the first rotation of a recording moves its files.
fn moved(path: &Path, before: &Files, present: &Files) -> Option<PathBuf> {
    let (_, inode, _) = before.iter().find(|(file, ..)| file == path)?;
    let is_there = present.iter().any(|(file, ..)| file == path);
    let (now, ..) = present.iter().find(|(_, other, _)| other == inode).filter(|_| !is_there)?;
    Some(now.clone())
}

fn files(inputs: &[PathBuf]) -> Result<Files, Error> {
    let mut files = Vec::new();
    for input in inputs {
        for folder in find::find(input)? {
            for entry in fs::read_dir(&folder.path).map_err(Error::io(&folder.path))?.flatten() {
                let Ok(meta) = fs::metadata(entry.path()) else { continue };
                let is_metadata = entry.file_name() == "metadata";
                let version =
                    is_metadata.then(|| (meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
                if meta.len() > 0 {
                    files.push((entry.path(), (meta.dev(), meta.ino()), version));
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether all traces are tracewing's own, and complete or left by a recorder that was killed. While a
/// rotated recording is made, another archive follows those that are complete.
fn is_over(recording: &Recording, inputs: &[PathBuf]) -> bool {
    let has_ended = |folder: &PathBuf| folder.parent().is_some_and(description::is_over);
    let is_made = |input: &PathBuf| description::read(input).is_some() && !description::is_over(input);
    recording.traces().iter().flat_map(Trace::folders).all(has_ended) && !inputs.iter().any(is_made)
}
