//! The streams of a trace, shared among threads: each is written by one of them, to a file of its own.

use super::packets::StreamRun;
use super::{Converted, Run};
use crate::Error;
use crate::open::recording::Stream;
use crate::stream::cursor::Lost;
use crate::stream::index_source;
use crate::threads::start;
use std::ffi::OsString;
use std::iter::repeat_n;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Builder};
use tracewing_ctf::decode::Decoder;
use tracewing_files::Dir;

/// Streams that are written at a time, at most: each takes memory for its packets.
const MOST_THREADS: usize = 16;

/// How many reports of progress may wait.
const WAITING: usize = 64;

/// A stream that is to be written.
pub(super) struct Job<'r> {
    /// Its place in the recording.
    pub(super) at: usize,
    pub(super) stream: &'r Stream,
    /// The name of its file.
    pub(super) name: OsString,
}

/// A stream that has been written.
pub(super) struct Written {
    pub(super) converted: Converted,
    /// The losses that its packets do not report.
    pub(super) lost: Vec<Lost>,
}

/// What a thread reports of its work.
enum Told {
    /// Bytes of packets that are done.
    Done(u64),
    /// How the job of this number has ended.
    Ended(usize, Result<Option<Written>, Error>),
}

/// What the threads share.
struct Shared<'w> {
    run: &'w Run<'w>,
    jobs: &'w [Job<'w>],
    classes: &'w Arc<Decoder>,
    folder: &'w Dir,
    /// The next job.
    next: AtomicUsize,
    /// Jobs from this number on are needed no more: one before has failed.
    needed: AtomicUsize,
    /// Held by whatever adds to the folder of indexes.
    indexing: Mutex<()>,
}

impl Run<'_> {
    /// Writes streams to files in `folder`; `None` for those that have no packets. `done` is called with the
    /// bytes of the packets that are done, and may end it.
    ///
    /// # Errors
    /// That of the first of the streams that cannot be written.
    pub(super) fn write(
        &self,
        jobs: &[Job<'_>],
        classes: &Arc<Decoder>,
        folder: &Dir,
        done: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Vec<Option<Written>>, Error> {
        let (next, needed) = (AtomicUsize::new(0), AtomicUsize::new(jobs.len()));
        let shared = &Shared { run: self, jobs, classes, folder, next, needed, indexing: Mutex::default() };
        let threads =
            thread::available_parallelism().map_or(1, usize::from).min(jobs.len()).min(MOST_THREADS);
        if threads <= 1 {
            return shared.all(done);
        }
        let mut written: Vec<Option<Written>> = jobs.iter().map(|_| None).collect();
        let mut failed: Option<(usize, Error)> = None;
        let (telling, told) = mpsc::sync_channel(WAITING);
        thread::scope(|scope| {
            let work = move || shared.work(&telling);
            if start(scope, Builder::new, repeat_n(work, threads)) == 0 {
                return shared.all(done);
            }
            for told in told {
                match told {
                    Told::Done(bytes) if done(bytes).is_break() => {
                        shared.needed.store(0, Ordering::Relaxed);
                        return Err(Error::Stopped);
                    }
                    Told::Done(_) => {}
                    Told::Ended(job, Ok(stream)) => written[job] = stream,
                    Told::Ended(job, Err(error)) => {
                        shared.needed.fetch_min(job, Ordering::Relaxed);
                        if failed.as_ref().is_none_or(|(first, _)| job < *first) {
                            failed = Some((job, error));
                        }
                    }
                }
            }
            failed.map_or(Ok(written), |(_, error)| Err(error))
        })
    }
}

impl Shared<'_> {
    /// Writes all streams, one after the other.
    fn all(&self, done: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<Vec<Option<Written>>, Error> {
        self.jobs.iter().map(|job| self.stream(job, done)).collect()
    }

    /// Writes streams until none is left, or the reports are not received any more.
    fn work(&self, telling: &SyncSender<Told>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let is_needed = || number < self.needed.load(Ordering::Relaxed);
            let Some(job) = self.jobs.get(number).filter(|_| is_needed()) else { return };
            let result = self.stream(job, &mut |bytes| match telling.send(Told::Done(bytes)) {
                Ok(()) if is_needed() => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            });
            if telling.send(Told::Ended(number, result)).is_err() {
                return;
            }
        }
    }

    fn stream(
        &self,
        Job { at, stream, name }: &Job<'_>,
        done: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Option<Written>, Error> {
        if stream.files().next().is_none() {
            return Ok(None);
        }
        let converted = Converted { streams: 1, ..Converted::default() };
        let mut run = StreamRun { run: self.run, converted, done };
        let mut written = Written { converted, lost: Vec::new() };
        if let Some((file, lost)) = run.stream(*at, stream, self.classes, self.folder, name)? {
            written.lost = lost;
            let _indexing = self.indexing.lock().unwrap_or_else(PoisonError::into_inner);
            index_source::write_next_to(self.folder, name, file, self.classes.clone())?;
        }
        written.converted = run.converted;
        Ok(Some(written))
    }
}
