//! The index of a recording up to now, while more of it is read.
//!
//! The pass that reads it is copied, and the copy is finished as if the recording ended there: the blocks
//! that were full are in the file that the pass writes, and what the copy adds to them is kept in memory. So
//! an index of now is that which would be made of the recording up to now.
//!
//! Rows of the copy that the pass does not have yet (of threads whose first state lasts, and of processes)
//! get numbers from [`NEW`] on, which they keep as long as the pass lasts.

use crate::body::Body;
use crate::cache::Cache;
use crate::error::Error;
use crate::format::Tail;
use crate::index::Index;
use crate::make::Pass;
use crate::parts::FunctionNames;
use crate::row::{RowId, RowKind};
use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tracewing_analysis::{Analysis, Ongoing};
use tracewing_files::Dir;
use tracewing_trace::Progress;
use tracewing_units::{Pid, Timestamp};

/// Shortest time between two indexes of now.
const SHORTEST: Duration = Duration::from_millis(250);
/// The same while nothing is read, and how many times as long as it took.
const IDLE: Duration = Duration::from_secs(1);
const IDLE_SHARE: u32 = 30;
/// The first number of rows that have no place yet. They get other numbers when the recording has ended.
pub const NEW: u32 = 1 << 31;

/// What has become of a recording that is followed, or read for the first time.
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
pub(crate) type Watch<'w> = &'w mut dyn FnMut(Look) -> ControlFlow<()>;

/// What distinguishes a row that has no place yet from others: its kind, its process, what it is a part of,
/// of tasks of one name that name, and how many came before it that are the same in all of these.
type Key = (RowKind, Option<Pid>, Option<RowId>, String, u32);

/// Numbers of rows that have no place yet.
#[derive(Default)]
pub(crate) struct Numbers(HashMap<Key, RowId>);

impl Numbers {
    fn of(&mut self, key: Key) -> RowId {
        let next = RowId(NEW + self.0.len() as u32);
        *self.0.entry(key).or_insert(next)
    }
}

impl Cache {
    /// Why a pass cannot write its index.
    pub(crate) fn failure(&self, pass: Pass<'_>, folder: &Dir) -> Error {
        let cause = pass.failure().unwrap_or_else(|| std::io::ErrorKind::Other.into());
        self.unwritten(folder, Error::Io { path: self.path().to_owned(), cause })
    }

    /// The index of now, of which all that the pass has written is in the file; and a number that grows when
    /// states change that were certain. The times are the begin, up to when events were read, and the end.
    pub(crate) fn now(
        &self,
        file: File,
        ongoing: &mut Ongoing<'_, Pass<'_>>,
        (begin, reached, end): (Timestamp, Timestamp, Timestamp),
        functions: &mut FunctionNames,
        numbers: &mut Numbers,
    ) -> Result<(Index, u64), Error> {
        let io = |cause| Error::Io { path: self.path().to_owned(), cause };
        let (failed, mut rest) = (Cell::new(false), Vec::new());
        let pass = ongoing.analysis();
        let (offset, known) = (pass.states.sink.body().offset, pass.states.sink.count());
        let changed = pass.states.sink.doubted().as_ns();
        let mut copy = pass.same(Body::after(&mut rest, offset), reached, &failed).map_err(io)?;
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
            checkpoints: Vec::new(),
            lacks_checkpoints: false,
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
            let (kind, name) = match row.kind {
                // The number of a name changes when an earlier task turns out to have it.
                RowKind::Tasks(number) if number != RowKind::OTHERS => (RowKind::Tasks(0), row.name.clone()),
                kind => (kind, String::new()),
            };
            let same = same.entry((kind, row.process, of, name.clone())).or_insert(0);
            new.push(numbers.of((kind, row.process, of, name, *same)));
            *same += 1;
        }
        Ok((Index::of_now((file, self.path()), tail, (offset, rest), &new), changed))
    }
}

/// Whether the pass cannot write its index; `is_flushed`: all that it has written goes to the file first.
pub(crate) fn has_failed(ongoing: &mut Ongoing<'_, Pass<'_>>, is_flushed: bool) -> bool {
    let pass = ongoing.analysis();
    if is_flushed {
        pass.states.sink.body().flush();
    }
    pass.is_done()
}

/// When an index of now is made.
pub(crate) struct Shows {
    next: Instant,
    /// One may take one part of so many of the time.
    share: u32,
    /// When another one may be made although nothing was read.
    idle: Instant,
    /// Whether something was read since the last one.
    pub(crate) is_old: bool,
}

impl Shows {
    /// An index of now that takes long is made less often: it may take one part of so many of the time.
    /// The first one is made after `pause`.
    pub(crate) fn new(share: u32, pause: Duration) -> Self {
        let next = Instant::now() + pause;
        Shows { next, share, idle: next, is_old: false }
    }

    pub(crate) fn are_due(&self) -> bool {
        self.is_old && Instant::now() >= self.next
    }

    /// Time passes. If nothing has been read for long, another one would only be drawn further.
    pub(crate) fn ages(&mut self, is_quiet: bool) {
        self.is_old |= is_quiet && Instant::now() >= self.idle;
    }

    /// One was made since `begin`.
    pub(crate) fn took(&mut self, begin: Instant) {
        let now = Instant::now();
        self.next = now + SHORTEST.max((now - begin) * self.share);
        self.idle = now + IDLE.max((now - begin) * IDLE_SHARE);
        self.is_old = false;
    }
}
