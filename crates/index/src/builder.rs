//! Makes an index while the recording is read: states of tracks, numbered and joined, become blocks, which a
//! [`Writer`] makes.

use crate::blocks::Addition;
use crate::body::Body;
use crate::leaf::Span;
use crate::processes;
use crate::row::{Counter, Row, RowId, RowKind};
use crate::table::Table;
use crate::values::Value;
use crate::wakes::Wakers;
use crate::writer::Writer;
use tracewing_timeline::{CLASSES, End, Sink, StateId, StateNames, Track, TrackId, WokenBy};
use tracewing_units::{Duration, Pid, Timestamp};

/// Takes the states of a recording.
pub(crate) struct Builder<'w> {
    pub(crate) writer: Writer<'w>,
    /// Time 0, once it is known.
    pub(crate) begin: Option<Timestamp>,
    pub(crate) table: Table,
    pub(crate) wakers: Wakers,
    rows: Vec<OpenRow>,
    /// Before this time, user mode of some thread was of unknown mode.
    doubted: Duration,
    /// Of one that was made by [`Builder::same`]: how many rows the other one had.
    known: Option<usize>,
}

/// A row while it is made, without its blocks.
#[derive(Clone)]
struct OpenRow {
    row: Row,
    /// The last state, which the next one may extend.
    last: Option<Span>,
    /// Whether its thread or task has ended.
    has_ended: bool,
    /// Whether none of it is shown.
    is_hidden: bool,
    /// Of a thread, the states of CPUs that run it, by class.
    on_cpu: [Option<StateId>; CLASSES],
}

impl<'w> Builder<'w> {
    pub(crate) fn new(body: Body<'w>) -> Self {
        Builder {
            writer: Writer::new(body),
            begin: None,
            table: Table::new(&StateNames::default()),
            wakers: Wakers::default(),
            rows: Vec::new(),
            doubted: Duration::ZERO,
            known: None,
        }
    }

    /// Number of rows so far.
    pub(crate) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Keeps a checkpoint.
    pub(crate) fn checkpoint(&mut self, until: Timestamp, bytes: Vec<u8>) {
        self.writer.checkpoint(until, bytes);
    }

    /// A moment as the time since the beginning; 0 before that.
    #[inline]
    pub(crate) fn time(&mut self, moment: Timestamp) -> Duration {
        moment - *self.begin.get_or_insert(moment)
    }

    /// The row was in this state.
    #[inline]
    pub(crate) fn did(&mut self, of: TrackId, state: StateId, from: Timestamp, to: Timestamp) {
        let (from, to) = (self.time(from), self.time(to));
        let open = &mut self.rows[of as usize];
        let from = from.max(open.last.map_or(Duration::ZERO, |last| last.to));
        if from >= to {
            return;
        }
        match &mut open.last {
            Some(last) if last.state == state && last.to == from => last.to = to,
            last => {
                if let Some(before) = last.replace(Span { state, from, to }) {
                    self.keep(of, before);
                }
            }
        }
    }

    /// A state is over, and the next one is another.
    #[inline]
    fn keep(&mut self, of: TrackId, span: Span) {
        self.writer.add(Addition::Span { of, class: self.table.class(span.state), span });
    }

    /// An event happened, which is a state of a nanosecond. Those of the same time lie side by side, so that
    /// each is counted.
    pub(crate) fn happened(&mut self, of: TrackId, state: StateId, at: Timestamp) {
        let at = self.time(at);
        let open = &mut self.rows[of as usize];
        let from = at.max(open.last.map_or(Duration::ZERO, |last| last.to));
        let to = from + Duration::from_ns(1);
        if from < to
            && let Some(before) = open.last.replace(Span { state, from, to })
        {
            self.keep(of, before);
        }
    }

    /// A row for a part of a thread or task.
    pub(crate) fn part(&mut self, kind: RowKind, name: &str, of: TrackId) -> TrackId {
        let name = name.to_owned();
        let row = Row { name, parent: Some(RowId(of)), is_followed: true, ..Row::new(kind) };
        self.add(row)
    }

    /// A row for a counter of a CPU, or of all that is recorded.
    pub(crate) fn counter(&mut self, number: u32, name: &str, unit: &str, of: Option<TrackId>) -> TrackId {
        let kind = RowKind::Counter(number);
        let (name, unit, parent) = (name.to_owned(), unit.to_owned(), of.map(RowId));
        let counter = Some(Box::new(Counter { unit, ..Counter::default() }));
        self.add(Row { name, counter, parent, is_followed: true, ..Row::new(kind) })
    }

    /// A counter had this value.
    pub(crate) fn value(&mut self, of: TrackId, value: u64, from: Timestamp, to: Timestamp) {
        let (from, to) = (self.time(from), self.time(to));
        self.writer.add(Addition::Value { of, value: Value { value, from, to } });
    }

    /// Nothing of a row is shown.
    pub(crate) fn hide(&mut self, of: TrackId) {
        self.rows[of as usize].is_hidden = true;
    }

    /// What a row did after its last state is unknown up to a time.
    pub(crate) fn mark_unknown_until(&mut self, of: TrackId, to: Timestamp) {
        let from = self.rows[of as usize].last.map_or(Duration::ZERO, |last| last.to);
        let from = self.begin.map_or(to, |begin| begin + from);
        self.did(of, StateId::UNKNOWN, from, to);
    }

    /// Whether a row has no state after a time.
    pub(crate) fn is_free(&self, row: TrackId, time: Duration) -> bool {
        self.rows[row as usize].last.is_none_or(|last| last.to <= time)
    }

    fn add(&mut self, row: Row) -> TrackId {
        self.writer.add(Addition::Row(row.kind));
        let (last, has_ended, is_hidden, on_cpu) = (None, false, false, [None; CLASSES]);
        self.rows.push(OpenRow { row, last, has_ended, is_hidden, on_cpu });
        (self.rows.len() - 1) as TrackId
    }

    /// Another one with the same rows, which writes to `body`: it can be finished while this one continues.
    /// Events are certain up to `reached`, states up to the last that has ended.
    pub(crate) fn same<'b>(&mut self, body: Body<'b>, reached: Duration) -> Builder<'b> {
        let blocks = self.writer.here();
        let mut rows = self.rows.clone();
        for (of, open) in (0..).zip(&mut rows) {
            let thread = if open.row.is_part() { open.row.parent } else { None };
            let has_ended = thread.map_or(open.has_ended, |of| self.rows[of.0 as usize].has_ended);
            open.row.certain = match open.row.kind {
                _ if has_ended => Duration::MAX,
                RowKind::Events(_) | RowKind::Samples => reached,
                RowKind::Counter(_) => blocks.values_certain(of),
                _ => open.last.map_or(Duration::ZERO, |last| last.to),
            };
        }
        let writer = Writer::of(blocks.same(body));
        let (table, wakers, known) = (self.table.clone(), self.wakers.clone(), Some(self.rows.len()));
        Builder { writer, begin: self.begin, table, wakers, rows, doubted: self.doubted, known }
    }

    /// For how long modes were doubted, summed up: if it grows, states that were certain have changed.
    pub(crate) fn doubted(&self) -> Duration {
        self.rows.iter().map(|open| open.row.doubted).sum()
    }

    /// What it writes to; this thread does so from now on.
    pub(crate) fn body(&mut self) -> &mut Body<'w> {
        &mut self.writer.here().body
    }

    /// All rows, with states and wakers, and what was written to.
    pub(crate) fn finish(mut self) -> (Vec<Row>, Table, Wakers, Body<'w>) {
        for of in 0..self.rows.len() {
            if let Some(last) = self.rows[of].last.take() {
                self.keep(of as TrackId, last);
            }
            self.writer.add(Addition::End { of: of as TrackId });
        }
        let (blocks, body) = self.writer.into_blocks().finish();
        let mut rows = Vec::with_capacity(self.rows.len());
        for (open, blocks) in self.rows.into_iter().zip(blocks) {
            let mut row = open.row.with_blocks_of(blocks);
            if let RowKind::Cpu(_) = row.kind {
                row.doubted = self.doubted;
            }
            if open.is_hidden {
                (row.begin, row.end, row.used) = (Duration::MAX, Duration::ZERO, Duration::ZERO);
                (row.leaves, row.levels) = (Vec::new(), Vec::new());
            }
            rows.push(row);
        }
        let new = self.known.map_or(&mut [][..], |known| &mut rows[known..]);
        new.iter_mut().for_each(|row| row.certain = Duration::ZERO);
        processes::add(&mut rows);
        (rows, self.table, self.wakers, body)
    }
}

impl Sink for Builder<'_> {
    fn track(&mut self, track: Track) -> TrackId {
        let kind = match track {
            Track::Cpu(cpu) => RowKind::Cpu(cpu),
            Track::Lwp(tid) => RowKind::Thread(tid),
            Track::Task(task) => RowKind::Task(task),
        };
        let row = Row { is_followed: matches!(track, Track::Cpu(_)), ..Row::new(kind) };
        self.add(row)
    }

    #[inline]
    fn state(&mut self, of: TrackId, state: StateId, names: &StateNames, from: Timestamp, to: Timestamp) {
        let state = self.table.number(state, names);
        self.did(of, state, from, to);
    }

    #[inline]
    fn cpu(
        &mut self,
        of: TrackId,
        lwp: Option<TrackId>,
        state: StateId,
        names: &StateNames,
        from: Timestamp,
        to: Timestamp,
    ) {
        let state = match lwp {
            None => self.table.number(state, names),
            Some(lwp) => {
                let class = names.class(state);
                let known = &mut self.rows[lwp as usize].on_cpu[class as usize];
                *known.get_or_insert_with(|| self.table.add_ran(class, RowId(lwp)))
            }
        };
        self.did(of, state, from, to);
    }

    fn woken(&mut self, of: TrackId, by: WokenBy, at: Timestamp) {
        let at = self.time(at);
        self.writer.add(Addition::Wake { of, waker: self.wakers.number(by), at });
    }

    fn doubt_mode(&mut self, of: TrackId, until: Timestamp) {
        let until = self.time(until);
        let row = &mut self.rows[of as usize].row;
        row.doubted = row.doubted.max(until);
        self.doubted = self.doubted.max(until);
    }

    fn ends(&mut self, of: TrackId, end: End<'_>) {
        let open = &mut self.rows[of as usize];
        (open.row.process, open.row.is_followed) = (end.process, end.is_followed);
        end.name.clone_into(&mut open.row.name);
        open.has_ended = true;
        if let Some(last) = open.last.take() {
            self.keep(of, last);
        }
        self.writer.add(Addition::End { of });
    }

    fn dumped(&mut self, of: TrackId, process: Pid, name: &[u8]) {
        let row = &mut self.rows[of as usize].row;
        row.process.get_or_insert(process);
        if row.name.is_empty() {
            row.name = String::from_utf8_lossy(name).into_owned();
        }
    }
}
