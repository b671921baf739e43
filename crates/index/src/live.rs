//! The index of a recording while that is made.
//!
//! One pass reads what has been added, as often as that is asked, and writes to a file without a name. When
//! the recording has ended, the pass itself is finished, and its index is kept like any other.

use crate::body::Body;
use crate::cache::{Cache, Careful};
use crate::error::Error;
use crate::format::{HEAD, head};
use crate::identity;
use crate::index::Index;
use crate::make::{Pass, conclude};
use crate::now::{Changes, Look, Numbers, Shows, Watch, has_failed};
use crate::parts::FunctionNames;
use std::cell::Cell;
use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracewing_analysis::{Analysis, Ongoing, Pairs, Ran};
use tracewing_files::Dir;
use tracewing_trace::super_trace::Pauses;
use tracewing_trace::{Filter, Growing, Progress, Recording, TimeRange};
use tracewing_units::Timestamp;

/// For how long an event waits for earlier ones of streams in which nothing happens: a recorder writes each
/// event within 0.2 s, unless `--flush` says otherwise.
const HOLD: Duration = Duration::from_millis(400);
/// So long after it was written, an event would have been read.
const QUIET: Duration = HOLD.saturating_mul(2);
/// Time that a recorder has to write its first metadata.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two looks at the recording.
const PAUSE: Duration = Duration::from_millis(50);
/// See [`Shows::new`].
const SHARE: u32 = 5;

/// How a pass has ended.
enum Passed {
    /// The recording can show more than before: all has to be read again.
    Again,
    Stopped,
    /// The recording has ended.
    Over,
    /// It has ended, and the index has to be made anew: something came too late.
    Late,
}

impl Cache {
    /// Makes the index of a recording while that is made, and shows it to `watch` as it grows. Returns the
    /// complete index when the recording has ended, which is the one that [`Cache::make`] would make, except
    /// that it has no checkpoints ([`Tail::lacks_checkpoints`](crate::Tail)); `None` if `watch` has stopped
    /// it, and then nothing is kept.
    ///
    /// # Errors
    /// As [`Cache::make`].
    pub fn follow(&self, inputs: &[PathBuf], watch: Watch<'_>) -> Result<Option<Index>, Error> {
        let folder = self.folder()?;
        let mut growing = opened(inputs)?;
        growing.look()?;
        let mut passed = if growing.is_over() { Passed::Late } else { Passed::Again };
        let mut passes = 0;
        while let Passed::Again = passed {
            growing.rewind();
            passes += 1;
            passed = self.pass(&folder, (&mut growing, passes), inputs, watch)?;
        }
        if let Passed::Stopped = passed {
            return Ok(None);
        }
        let recording = Recording::open(inputs)?;
        if let Some(index) = self.find(&recording) {
            return Ok(Some(index));
        }
        // Something came too late, or the recording has changed since the pass.
        let begins = Progress { done: 0, total: recording.bytes() };
        if watch(Look::Reads(begins)).is_break() {
            return Ok(None);
        }
        if self.make(&recording, &mut |progress| watch(Look::Reads(progress)))?.ran.stopped {
            return Ok(None);
        }
        let gone = || Error::Io { path: self.path_of(&recording), cause: ErrorKind::NotFound.into() };
        self.find(&recording).map(Some).ok_or_else(gone)
    }

    /// Reads the recording from its beginning until it ends.
    fn pass(
        &self,
        folder: &Dir,
        (growing, passes): (&mut Growing, u64),
        inputs: &[PathBuf],
        watch: Watch<'_>,
    ) -> Result<Passed, Error> {
        let io = |cause| Error::Io { path: self.path().to_owned(), cause };
        let file = tempfile::tempfile_in(self.path()).map_err(io)?;
        let mut out = Careful::new(folder, file.try_clone().map_err(io)?);
        let mut body = Body::new(&mut out);
        body.write(&[0; HEAD]);
        let (failed, filter) = (Cell::new(false), Filter::default());
        let pairs = Pairs::of(growing.recording(), &filter);
        let mut pass = Pass::new(body, pairs, self.path(), &failed);
        let mut ongoing = Ongoing::new(growing.recording(), &filter, &mut pass)?;
        let (mut shows, mut functions, mut numbers) =
            (Shows::new(SHARE, Duration::ZERO), FunctionNames::new(), Numbers::default());
        let mut quiet = Quiet::new(growing);
        loop {
            if growing.look()? && !reopened(&mut ongoing, growing.recording(), pairs)? {
                return Ok(Passed::Again);
            }
            if growing.until() > Timestamp::MIN && growing.has_more() {
                let is_stopped = !read(growing, &mut ongoing, watch)?;
                if is_stopped && !ongoing.analysis().is_done() {
                    return Ok(Passed::Stopped);
                }
                quiet.read(growing);
                shows.is_old = true;
            }
            shows.ages(quiet.lasts() > Duration::ZERO);
            let is_due = shows.are_due();
            if has_failed(&mut ongoing, is_due) {
                drop(ongoing);
                return Err(self.failure(pass, folder));
            }
            if growing.is_over() {
                break;
            }
            let look = match ongoing.times().filter(|_| is_due) {
                Some((first, last)) => {
                    let (begin, times) = (Instant::now(), (first, last, quiet.until(last)));
                    let file = file.try_clone().map_err(io)?;
                    let now = self.now(file, &mut ongoing, times, &mut functions, &mut numbers)?;
                    shows.took(begin);
                    Look::Grown(Box::new(now.0), Changes { passes, states: now.1 })
                }
                None => Look::Waits,
            };
            if watch(look).is_break() {
                return Ok(Passed::Stopped);
            }
            std::thread::sleep(PAUSE);
        }
        let (recording, is_in_order) = (Recording::open(inputs)?, ongoing.is_in_order());
        let ran = ongoing.finish(&recording, None);
        if is_in_order { self.conclude(pass, &ran, &recording, folder, &file) } else { Ok(Passed::Late) }
    }

    /// The pass is over: its index is kept.
    fn conclude(
        &self,
        pass: Pass<'_>,
        ran: &Ran,
        recording: &Recording,
        folder: &Dir,
        file: &File,
    ) -> Result<Passed, Error> {
        let io = |cause| Error::Io { path: self.path().to_owned(), cause };
        let lacks_checkpoints = !Pauses::of(recording).are_over();
        conclude(pass, ran, &head(identity::of(recording)), lacks_checkpoints).map_err(io)?;
        self.keep(recording, folder, file)?;
        Ok(Passed::Over)
    }
}

/// Since when nothing has been written.
struct Quiet {
    /// `None` before anything was read.
    since: Option<Instant>,
    /// After so long, what happened would have been read; `None` if that is not known.
    wait: Option<Duration>,
    /// What was said to be the end.
    end: Timestamp,
}

impl Quiet {
    fn new(growing: &Growing) -> Self {
        Quiet { since: None, wait: growing.flush().map(|flush| flush + QUIET), end: Timestamp::MIN }
    }

    /// More was read. At first, that may have been written long ago.
    fn read(&mut self, growing: &Growing) {
        let now = Instant::now();
        let first = || {
            let age = growing.written().and_then(|time| time.elapsed().ok()).unwrap_or_default();
            now.checked_sub(age).unwrap_or(now)
        };
        self.since = Some(if self.since.is_some() { now } else { first() });
    }

    /// For how long nothing has happened after what was read last, at least: that was no later than its
    /// writing.
    fn lasts(&self) -> Duration {
        let both = self.since.zip(self.wait);
        both.map_or(Duration::ZERO, |(since, wait)| since.elapsed().saturating_sub(wait))
    }

    /// Up to when what lasts is drawn if events reach up to `last`. On a busy machine, later events may come
    /// before that time: the end stays where it is until they reach it.
    fn until(&mut self, last: Timestamp) -> Timestamp {
        let ns = u64::try_from(self.lasts().as_nanos()).unwrap_or(0);
        self.end = self.end.max(last + tracewing_units::Duration::from_ns(ns));
        self.end
    }
}

/// The recording was opened anew. False if all has to be read again.
fn reopened(ongoing: &mut Ongoing<'_, Pass<'_>>, recording: &Recording, pairs: Pairs) -> Result<bool, Error> {
    ongoing.analysis().parts.reopen();
    Ok(ongoing.reopen(recording)? && pairs == Pairs::of(recording, &Filter::default()))
}

/// Reads what there is; false if that was stopped.
fn read(growing: &mut Growing, ongoing: &mut Ongoing<'_, Pass<'_>>, watch: Watch<'_>) -> Result<bool, Error> {
    let (total, until) = (growing.recording().bytes(), growing.until());
    let mut watch = |done| watch(Look::Reads(Progress { done, total }));
    Ok(growing.read(TimeRange::ALL, |recording, merge| ongoing.read(recording, merge, until, &mut watch))?)
}

/// Opens a recording that may just have begun.
fn opened(inputs: &[PathBuf]) -> Result<Growing, Error> {
    let begin = Instant::now();
    loop {
        match Growing::open(inputs, HOLD) {
            Err(_) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            growing => return Ok(growing?),
        }
    }
}
