//! The index of a recording while that is made.
//!
//! One pass reads what has been added, as often as that is asked. Now and then it is copied, and the copy is
//! finished as if the recording ended there: the blocks that were full are in a file without a name, and what
//! the copy adds to them is kept in memory. So an index of now is that which would be made of the recording
//! up to now. When the recording has ended, the pass itself is finished, and its index is kept like any
//! other.
//!
//! Rows of the copy that the pass does not have yet (of threads whose first state lasts, and of processes)
//! get numbers from [`NEW`] on, which they keep as long as the recording is followed.

use crate::body::Body;
use crate::cache::{Cache, Careful};
use crate::error::Error;
use crate::format::{HEAD, Tail, head};
use crate::identity;
use crate::index::Index;
use crate::make::{Pass, conclude};
use crate::parts::FunctionNames;
use crate::row::{RowId, RowKind};
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tracewing_analysis::{Analysis, Ongoing, Pairs, Ran};
use tracewing_files::Dir;
use tracewing_trace::{Filter, Growing, Progress, Recording, TimeRange};
use tracewing_units::{Pid, Timestamp};

/// For how long an event waits for earlier ones of streams in which nothing happens: a recorder writes each
/// event within 0.2 s.
const HOLD: Duration = Duration::from_millis(400);
/// Time that a recorder has to write its first metadata.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time between two looks at the recording.
const PAUSE: Duration = Duration::from_millis(50);
/// Shortest time between two indexes of now.
const SHORTEST: Duration = Duration::from_millis(250);
/// An index of now that takes long is made less often: it may take one part of so many of the time.
const SHARE: u32 = 5;
/// The first number of rows that have no place yet. They get other numbers when the recording has ended.
pub const NEW: u32 = 1 << 31;

/// What has become of a recording that is followed.
#[derive(Debug)]
pub enum Look {
    /// Nothing new is known.
    Waits,
    /// So much of what there is has been read.
    Reads(Progress),
    /// The index of now, and what differs from earlier ones.
    Grown(Box<Index>, Changes),
}

/// Numbers of an index of now: if one of them has another value, what was certain before may be wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// Passes over the recording, this one included. In another pass, rows have other places.
    pub passes: u64,
    /// Grows within a pass when states change that were certain.
    pub states: u64,
}

/// Takes each [`Look`], several times a second; breaks to stop.
type Watch<'w> = &'w mut dyn FnMut(Look) -> ControlFlow<()>;

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

/// What distinguishes a row that has no place yet from others: its kind, its process, what it is a part of,
/// and how many came before it that are the same in all of these.
type Key = (RowKind, Option<Pid>, Option<RowId>, u32);

/// Numbers of rows that have no place yet.
#[derive(Default)]
struct Numbers(HashMap<Key, RowId>);

impl Numbers {
    fn of(&mut self, key: Key) -> RowId {
        let next = RowId(NEW + self.0.len() as u32);
        *self.0.entry(key).or_insert(next)
    }
}

impl Cache {
    /// Makes the index of a recording while that is made, and shows it to `watch` as it grows. Returns the
    /// complete index when the recording has ended, which is the one that [`Cache::make`] would make; `None`
    /// if `watch` has stopped it, and then nothing is kept.
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
            (Shows::new(), FunctionNames::new(), Numbers::default());
        loop {
            if growing.look()? && !reopened(&mut ongoing, growing.recording(), pairs)? {
                return Ok(Passed::Again);
            }
            if growing.until() > Timestamp::MIN && growing.has_more() {
                let is_stopped = !read(growing, &mut ongoing, watch)?;
                if is_stopped && !ongoing.analysis().is_done() {
                    return Ok(Passed::Stopped);
                }
                shows.is_old = true;
            }
            let is_due = shows.are_due();
            if has_failed(&mut ongoing, is_due) {
                drop(ongoing);
                return Err(self.failure(pass, folder));
            }
            if growing.is_over() {
                break;
            }
            let look = match ongoing.times().filter(|_| is_due) {
                Some(times) => {
                    let begin = Instant::now();
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
        let recording = Recording::open(inputs)?;
        let is_in_order = ongoing.is_in_order();
        let ran = ongoing.finish(&recording);
        if !is_in_order {
            return Ok(Passed::Late);
        }
        self.conclude(pass, &ran, &recording, folder, &file)
    }

    /// Why a pass cannot write its index.
    fn failure(&self, pass: Pass<'_>, folder: &Dir) -> Error {
        let path = self.path().to_owned();
        match pass.failure().unwrap_or_else(|| ErrorKind::Other.into()) {
            cause if cause.kind() == ErrorKind::StorageFull => {
                Error::NoSpace { path, free: folder.free_bytes().unwrap_or(0) }
            }
            cause => Error::Io { path, cause },
        }
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
        conclude(pass, ran, &head(identity::of(recording))).map_err(io)?;
        self.keep(recording, folder, file)?;
        Ok(Passed::Over)
    }

    /// The index of now, of which all that the pass has written is in the file; and a number that grows when
    /// states change that were certain.
    fn now(
        &self,
        file: File,
        ongoing: &mut Ongoing<'_, Pass<'_>>,
        (begin, end): (Timestamp, Timestamp),
        functions: &mut FunctionNames,
        numbers: &mut Numbers,
    ) -> Result<(Index, u64), Error> {
        let io = |cause| Error::Io { path: self.path().to_owned(), cause };
        let (failed, mut rest) = (Cell::new(false), Vec::new());
        let pass = ongoing.analysis();
        let (offset, known) = (pass.states.sink.body().offset, pass.states.sink.count());
        let changed = pass.states.sink.doubted().as_ns();
        let mut copy = pass.same(Body::after(&mut rest, offset), end, &failed).map_err(io)?;
        ongoing.report(end, &mut copy);
        let (builder, names, _, losses) = copy.close(end).map_err(io)?;
        let texts = ongoing.names().clone();
        let (events, is_partial) = (ongoing.events(), ongoing.is_partial());
        let parts = &ongoing.analysis().parts;
        let (rows, table, wakers, _) = builder.finish();
        let tail = Tail {
            begin,
            length: end - begin,
            events,
            is_partial,
            is_cut_off: false,
            losses,
            rows,
            states: table.finish(&names, &texts, |number| parts.name(number, functions)),
            wakers: wakers.finish(&texts),
        };
        let (mut new, mut same) = (Vec::with_capacity(tail.rows.len() - known), HashMap::new());
        for row in &tail.rows[known..] {
            // What it is a part of comes before it.
            let of = row.parent.filter(|_| row.is_part());
            let of = of.map(|of| (of.0 as usize).checked_sub(known).map_or(of, |place| new[place]));
            let same = same.entry((row.kind, row.process, of)).or_insert(0);
            new.push(numbers.of((row.kind, row.process, of, *same)));
            *same += 1;
        }
        Ok((Index::of_now((file, self.path()), tail, (offset, rest), &new), changed))
    }
}

/// Whether the pass cannot write its index; `is_flushed`: all that it has written goes to the file first.
fn has_failed(ongoing: &mut Ongoing<'_, Pass<'_>>, is_flushed: bool) -> bool {
    let pass = ongoing.analysis();
    if is_flushed {
        pass.states.sink.body().flush();
    }
    pass.is_done()
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
    Ok(growing.read(TimeRange::ALL, |_, merge| ongoing.read(merge, until, &mut watch))?)
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

/// When an index of now is made.
struct Shows {
    next: Instant,
    /// Whether something was read since the last one.
    is_old: bool,
}

impl Shows {
    fn new() -> Self {
        Shows { next: Instant::now(), is_old: false }
    }

    fn are_due(&self) -> bool {
        self.is_old && Instant::now() >= self.next
    }

    /// One was made since `begin`.
    fn took(&mut self, begin: Instant) {
        let now = Instant::now();
        self.next = now + SHORTEST.max((now - begin) * SHARE);
        self.is_old = false;
    }
}
