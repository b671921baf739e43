//! One pass over a recording that makes its index.

use crate::body::Body;
use crate::builder::Builder;
use crate::error::Error;
use crate::format::{self, HEAD, Identity, LossMark, Tail};
use crate::parts::{FunctionNames, PartRead, PartReader, Parts};
use crate::system::SystemCalls;
use std::cell::Cell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use tracewing_analysis::{Analysis, FunctionId, Input, Loss, Names, Pairs, Party, Ran, ReadApart};
use tracewing_timeline::{StateNames, States};
use tracewing_trace::super_trace::{Change, Fold, Located, Part, Pauses, Scope};
use tracewing_trace::{EventRef, Filter, Progress, Recording};
use tracewing_units::Timestamp;

/// Result of making an index.
#[derive(Debug)]
pub struct Made {
    /// Facts about the recording; if it was stopped or a part could not be read, the index covers what was.
    pub ran: Ran,
    /// Size of the index.
    pub bytes: u64,
    /// Number of rows: CPUs, processes, threads, tasks, functions and locks.
    pub rows: u64,
}

/// The pass: an analysis that takes states, losses, functions and locks.
pub(crate) struct Pass<'w> {
    pub(crate) states: States<Builder<'w>>,
    pub(crate) parts: Parts,
    calls: SystemCalls,
    losses: Vec<LossMark>,
    failed: &'w Cell<bool>,
}

impl Fold for Pass<'_> {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        self.parts.change(change, &mut self.states);
        match change {
            Change::LwpEnds { lwp } => self.ends(Party::Thread(lwp.tid), lwp.reported_to()),
            Change::UserThreadEnds { thread } => {
                self.ends(Party::Task(thread.process, thread.id), thread.reported_to());
            }
            _ => {}
        }
        self.states.change(change);
        match change {
            Change::LwpDid { lwp, doing, from, to } if from < to => {
                self.calls.did(lwp, doing, (from, to), &mut self.states);
            }
            Change::LwpHidesCalls { lwp } => self.calls.hides(lwp, &mut self.states),
            _ => {}
        }
    }
}

impl Analysis for Pass<'_> {
    const EARLIER: bool = true;

    #[inline(always)]
    fn input(&mut self, input: Input<'_>) {
        if !matches!(input, Input::Event(_) | Input::Earlier(_) | Input::Explained(_)) {
            self.parts.input(input);
        }
        match input {
            Input::Begins { time } => self.states.sink.begin = Some(time),
            Input::Dumped { tid, process, name } => self.states.dumped(tid, process, name),
            Input::Earlier(seen) => {
                let mut read = self.parts.reader.read(seen.event);
                self.parts.earlier(read.as_mut(), &seen.located());
            }
            Input::Event(seen) => self.parts.event(seen, &mut self.states),
            Input::LossOver { time } => self.parts.loss_over(time),
            Input::Lost(loss) => self.lost(loss),
            _ => {}
        }
    }

    fn parts(&mut self, room: u64) -> Vec<Part> {
        self.parts.explained(room)
    }

    fn checkpoint(&mut self, until: Timestamp, bytes: Vec<u8>) {
        self.states.sink.checkpoint(until, bytes);
    }

    fn is_done(&self) -> bool {
        self.failed.set(self.states.has_failed() || self.states.sink.writer.has_failed());
        self.failed.get()
    }
}

impl ReadApart for Pass<'_> {
    type Reader = PartReader;
    type Read = PartRead;

    #[inline]
    fn read(reader: &mut PartReader, event: &EventRef<'_>) -> Option<PartRead> {
        reader.read(event)
    }

    #[inline]
    fn located(&mut self, read: Option<&mut PartRead>, at: &Located<'_>) {
        self.parts.located(read, at, &mut self.states);
    }

    fn located_earlier(&mut self, read: Option<&mut PartRead>, at: &Located<'_>) {
        self.parts.earlier(read, at);
    }
}

impl<'w> Pass<'w> {
    /// One that has seen nothing yet; `scratch` is a folder for temporary files.
    pub(crate) fn new(body: Body<'w>, pairs: Pairs, scratch: &Path, failed: &'w Cell<bool>) -> Self {
        let states = States::new(Builder::new(body), scratch);
        let (calls, losses) = Default::default();
        Pass { states, parts: Parts::new(pairs), calls, losses, failed }
    }

    /// Another one that has seen the same up to `reached`, and writes to `body`: it can be finished while
    /// this one continues.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub(crate) fn same<'b>(
        &mut self,
        body: Body<'b>,
        reached: Timestamp,
        failed: &'b Cell<bool>,
    ) -> std::io::Result<Pass<'b>> {
        let reached = self.states.sink.time(reached);
        let sink = self.states.sink.same(body, reached);
        let states = self.states.same(sink)?;
        let (calls, losses) = (self.calls.clone(), self.losses.clone());
        Ok(Pass { states, parts: self.parts.same(), calls, losses, failed })
    }

    /// Ends what lasts. Gives what remains to be written, and a tail without states and rows.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub(crate) fn close(
        mut self,
        end: Timestamp,
    ) -> std::io::Result<(Builder<'w>, StateNames, Parts, Vec<LossMark>)> {
        self.parts.close(end, &mut self.states);
        let (builder, names) = self.states.finish()?;
        Ok((builder, names, self.parts, self.losses))
    }

    /// Why it cannot be written further.
    pub(crate) fn failure(self) -> Option<std::io::Error> {
        match self.states.finish() {
            Err(failure) => Some(failure),
            Ok((builder, _)) => builder.writer.into_blocks().body.finish().err(),
        }
    }

    fn ends(&mut self, party: Party, at: Timestamp) {
        self.parts.ends(party, at, &mut self.states);
    }

    fn lost(&mut self, loss: &Loss) {
        self.parts.lost(loss, &mut self.states);
        let (scope, events) = (loss.scope, loss.events);
        let scope = match scope {
            Scope::Kernel(_) => 0,
            Scope::User => 1,
            Scope::Samples => 2,
        };
        let [from, to] = [loss.from, loss.to].map(|time| self.states.sink.time(time));
        self.losses.push(LossMark { scope, cpu: loss.cpu, from, to, events });
    }
}

/// Reads a recording and writes its index to `out`; `scratch` is a folder for temporary files.
///
/// # Errors
/// The recording cannot be read at all, or the index cannot be written (`path` is for the message).
pub(crate) fn make(
    recording: &Recording,
    identity: Identity,
    (out, path): (&mut (dyn Write + Send), &Path),
    scratch: &Path,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Made, Error> {
    let is_shared = tracewing_analysis::is_worth_threads(recording);
    make_as(recording, identity, (out, path), scratch, (is_shared, Pauses::of(recording)), watch)
}

/// The same; `is_shared`: one thread reads the recording, another one follows it, and a third makes blocks.
/// It has checkpoints at `pauses`.
pub(crate) fn make_as(
    recording: &Recording,
    identity: Identity,
    (out, path): (&mut (dyn Write + Send), &Path),
    scratch: &Path,
    (is_shared, pauses): (bool, Pauses),
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Made, Error> {
    let io = |cause| Error::Io { path: path.to_owned(), cause };
    let head = format::head(identity);
    let mut body = Body::new(out);
    body.write(&head);
    let failed = Cell::new(false);
    let mut pass = Pass::new(body, Pairs::of(recording, &Filter::default()), scratch, &failed);
    if !pauses.are_over() {
        pass.parts.keep_explanations();
    }
    thread::scope(|scope| {
        if is_shared {
            pass.states.sink.writer.move_apart(scope, thread::Builder::new);
        }
        let ran = tracewing_analysis::run_apart(recording, &mut pass, is_shared, pauses, watch)?;
        let (bytes, rows) = conclude(pass, &ran, &head, false).map_err(io)?;
        Ok(Made { ran, bytes, rows })
    })
}

/// Writes what is left when all has been read. Returns the size of the index and the number of its rows.
pub(crate) fn conclude(
    pass: Pass<'_>,
    ran: &Ran,
    head: &[u8; HEAD],
    lacks_checkpoints: bool,
) -> std::io::Result<(u64, u64)> {
    let (builder, names, parts, losses) = pass.close(ran.end_ns)?;
    let mut functions = FunctionNames::new();
    let function = |number| parts.name(number, &mut functions);
    let tail = Tail {
        begin: ran.begin_ns,
        length: ran.duration_ns(),
        events: ran.events,
        is_partial: ran.partial,
        is_cut_off: ran.failure.is_some(),
        lacks_checkpoints,
        losses,
        ..Tail::default()
    };
    complete(builder, (&names, &ran.names, function), head, tail)
}

/// Writes what is left when all has been read; `tail` has neither states nor rows yet. Returns the size of
/// the index and the number of its rows.
pub(crate) fn complete(
    builder: Builder<'_>,
    (names, texts, function): (&StateNames, &Names, impl FnMut(FunctionId) -> String),
    head: &[u8; HEAD],
    mut tail: Tail,
) -> std::io::Result<(u64, u64)> {
    let (rows, table, wakers, mut body) = builder.finish();
    tail.rows = rows;
    tail.checkpoints = std::mem::take(&mut body.checkpoints);
    tail.states = table.finish(names, texts, function);
    tail.wakers = wakers.finish(texts);
    let bytes = tail.write();
    let foot = format::foot(head, body.offset, &bytes);
    body.write(&bytes);
    body.write(&foot);
    Ok((body.finish()?, tail.rows.len() as u64))
}
