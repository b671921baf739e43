//! Parts of threads and tasks while the recording is read: the functions that they are in, and the locks
//! that they wait for or have, one by one as [`Calls`] and [`LockUses`] report them; and their own events and
//! spans ([`Own`]).

use crate::builder::Builder;
use crate::counters::Counters;
use crate::own::{Own, OwnRead, OwnReader};
use crate::row::RowKind;
use std::collections::HashMap;
use tracewing_analysis::profile::{ExplanationRead, ExplanationReader};
use tracewing_analysis::{
    Call, Calls, Explanations, Function, FunctionId, FunctionRead, FunctionReader, Input, LockRead,
    LockReader, LockUse, LockUses, Loss, Pairs, Party, ThreadKey,
};
use tracewing_programs::symbols::Symbols;
use tracewing_timeline::{Class, States, TrackId};
use tracewing_trace::super_trace::{Carried, Change, Located, Part, Scope, Seen, TaskSerial};
use tracewing_trace::{Classes, EventRef};
use tracewing_units::{Pid, Task, Tid, Timestamp};

/// Calls within so many others have no row.
const DEEPEST: usize = 64;

/// What was read of an event, on whichever thread.
#[derive(Debug)]
pub(crate) struct PartRead {
    function: Option<FunctionRead>,
    lock: Option<LockRead>,
    explanation: Option<ExplanationRead>,
    own: Option<OwnRead>,
}

/// Reads events, and remembers their classes.
#[derive(Debug, Default)]
pub(crate) struct PartReader {
    /// Which classes have events that say something here.
    classes: Classes<bool>,
    functions: FunctionReader,
    locks: LockReader,
    explanations: ExplanationReader,
    own: OwnReader,
}

impl PartReader {
    /// Reads an event; `None` if it is about nothing that has parts.
    #[inline]
    pub(crate) fn read(&mut self, event: &EventRef<'_>) -> Option<PartRead> {
        let Self { functions, locks, explanations, own, .. } = self;
        let says = *self.classes.of(event, |event| {
            functions.knows(event) || locks.knows(event) || explanations.knows(event) || own.knows(event)
        });
        if says { self.read_said(event) } else { None }
    }

    fn read_said(&mut self, event: &EventRef<'_>) -> Option<PartRead> {
        let (function, lock) = (self.functions.read(event), self.locks.read(event));
        let (explanation, own) = (self.explanations.read(event), self.own.read(event));
        Some(PartRead { function, lock, explanation, own })
    }
}

/// What is known of the user thread of a serial number: the process that it was last seen in.
type SeenIn = Option<Option<Pid>>;

/// Follows functions and locks.
#[derive(Debug)]
pub(crate) struct Parts {
    /// For events that no other thread has read.
    pub(crate) reader: PartReader,
    /// Which of them have a begin and an end in the recording.
    pairs: Pairs,
    calls: Calls,
    locks: LockUses,
    /// What checkpoints need, where they are made.
    explanations: Option<Explanations>,
    own: Own,
    counters: Counters,
    /// Rows by thread and depth.
    of_calls: HashMap<(ThreadKey, usize), TrackId>,
    /// Rows of locks by the row of the thread or task.
    of_locks: HashMap<TrackId, Vec<TrackId>>,
    /// Rows of user threads by their names.
    tasks: HashMap<(Option<Pid>, Task), TrackId>,
    last_task: Option<TaskSerial>,
    /// By serial numbers of user threads.
    seen: Vec<SeenIn>,
    /// Room for what one event reports.
    room: (Vec<(ThreadKey, Timestamp, Call)>, Vec<LockUse>),
}

impl Parts {
    pub(crate) fn new(pairs: Pairs) -> Self {
        let (reader, calls, locks, own, counters) = Default::default();
        let (of_calls, of_locks, tasks, last_task, seen, room) = Default::default();
        Parts {
            reader,
            pairs,
            calls,
            locks,
            explanations: None,
            own,
            counters,
            of_calls,
            of_locks,
            tasks,
            last_task,
            seen,
            room,
        }
    }

    /// Handles an event that this thread has decoded.
    pub(crate) fn event(&mut self, seen: &Seen<'_>, states: &mut States<Builder<'_>>) {
        let mut read = self.reader.read(seen.event);
        self.located(read.as_mut(), &seen.located(), states);
    }

    /// Handles an event of which this was read.
    #[inline]
    pub(crate) fn located(
        &mut self,
        mut read: Option<&mut PartRead>,
        at: &Located<'_>,
        states: &mut States<Builder<'_>>,
    ) {
        self.own.settle(at.state, states);
        self.learn(at, states);
        self.explains(read.as_deref_mut(), at);
        match read {
            Some(read) => self.said(read, at, states),
            None => {
                let calls = &mut self.room.0;
                self.calls.located(None, at, &mut |thread, time, call| calls.push((thread, time, call)));
            }
        }
        if !self.room.0.is_empty() || !self.room.1.is_empty() {
            self.report(at, states);
        }
    }

    /// Handles an event that says something of functions, locks, or itself.
    fn said(&mut self, read: &mut PartRead, at: &Located<'_>, states: &mut States<Builder<'_>>) {
        read.own.iter_mut().for_each(|own| self.own.learn(own));
        let (calls, uses) = &mut self.room;
        let mut call = |thread, time, call| calls.push((thread, time, call));
        if !self.calls.located(read.function.take(), at, &mut call) {
            if let Some(lock) = read.lock.take() {
                self.locks.located(lock, at, &mut |lock| uses.push(lock));
            }
            if let Some(own) = read.own.take() {
                self.own.event(own, at, states, &mut self.counters);
            }
        }
    }

    /// Notes what an event explains, for checkpoints.
    #[inline]
    fn explains(&mut self, read: Option<&mut PartRead>, at: &Located<'_>) {
        if let Some(explanations) = &mut self.explanations {
            match read {
                Some(PartRead { function, lock, explanation, .. }) => {
                    explanations.learn(function.as_ref(), lock.as_ref(), explanation.take(), at);
                }
                None => explanations.learn(None, None, None, at),
            }
        }
    }

    /// Notes a change, for checkpoints.
    #[inline]
    pub(crate) fn change(&mut self, change: Change<'_>, states: &mut States<Builder<'_>>) {
        // After the last event, nothing else says that its thread is known.
        if let Change::LwpDid { lwp, .. } = change {
            self.own.did(lwp, states);
        }
        self.explanations.iter_mut().for_each(|explanations| explanations.change(change));
    }

    /// Notes what is neither an event nor a change.
    pub(crate) fn input(&mut self, input: Input<'_>) {
        self.explanations.iter_mut().for_each(|explanations| explanations.input(input));
    }

    /// What was explained so far, without parts that take more than `room` bytes.
    pub(crate) fn explained(&mut self, room: u64) -> Vec<Part> {
        let explanations = self.explanations.as_mut();
        explanations.map(|explanations| explanations.parts(room)).unwrap_or_default()
    }

    /// Keeps what checkpoints need.
    pub(crate) fn keep_explanations(&mut self) {
        self.explanations = Some(Explanations::default());
    }

    /// Makes states of what an event has ended.
    #[cold]
    fn report(&mut self, at: &Located<'_>, states: &mut States<Builder<'_>>) {
        let (mut calls, mut uses) = std::mem::take(&mut self.room);
        if let (Some(tid), Some(lwp)) = (at.place.tid, at.place.lwp) {
            // Its own events are about this one, whichever had the number before.
            states.lwp_track(lwp, tid);
        }
        calls.drain(..).for_each(|(thread, time, call)| self.call(thread, time, call, states));
        uses.drain(..).for_each(|lock| self.lock(&lock, states));
        self.room = (calls, uses);
    }

    /// Which user thread is meant by its number in its process.
    #[inline]
    fn learn(&mut self, at: &Located<'_>, states: &mut States<Builder<'_>>) {
        let place = &at.place;
        if let (Carried::Thread { id, .. }, Some(serial)) = (place.thread, place.thread_serial)
            && self.last_task != Some(serial)
        {
            self.last_task = Some(serial);
            // A number belongs to one user thread of a process after the other. Without the process, several
            // can have it.
            if place.process.is_none()
                || self.seen.get(serial.0).is_none_or(|seen| *seen != Some(place.process))
            {
                self.learn_task((place.process, id), serial, states);
            }
        }
    }

    #[cold]
    fn learn_task(
        &mut self,
        (process, id): (Option<Pid>, Task),
        serial: TaskSerial,
        states: &mut States<Builder<'_>>,
    ) {
        if self.seen.len() <= serial.0 {
            self.seen.resize(serial.0 + 1, None);
        }
        self.seen[serial.0] = Some(process);
        self.tasks.insert((process, id), states.task_track(serial, id));
    }

    /// A function begins or ends in a thread.
    fn call(&mut self, thread: ThreadKey, time: Timestamp, call: Call, states: &mut States<Builder<'_>>) {
        let Call::Ends { function, depth, begin, certain, .. } = call else { return };
        if !self.pairs.calls || depth >= DEEPEST {
            return;
        }
        let Some(of) = states.last_lwp(thread.1) else { return };
        let builder = &mut states.sink;
        let row = *self
            .of_calls
            .entry((thread, depth))
            .or_insert_with(|| builder.part(RowKind::Calls(depth as u32), "", of));
        let state = builder.table.called(function);
        // Where events were lost, only a part of a call is certain.
        let end = certain.map_or(time, |certain| begin + certain.total_ns);
        builder.did(row, state, begin, end);
    }

    /// A lock was held, or waited for.
    fn lock(&mut self, lock: &LockUse, states: &mut States<Builder<'_>>) {
        // The idle task's locks belong to no thread.
        if lock.party == Party::Thread(Tid::IDLE) || !self.pairs.has(lock) {
            return;
        }
        let of = match lock.party {
            Party::Thread(tid) => states.last_lwp(tid),
            Party::Task(process, task) => self.tasks.get(&(process, task)).copied(),
            Party::Place(..) => None,
        };
        let Some(of) = of else { return };
        let builder = &mut states.sink;
        let begin = builder.time(lock.begin);
        let rows = self.of_locks.entry(of).or_default();
        let free = rows.iter().copied().find(|row| builder.is_free(*row, begin));
        let row = free.unwrap_or_else(|| {
            let new = builder.part(RowKind::Locks(rows.len() as u32), "", of);
            rows.push(new);
            new
        });
        let class = if lock.is_held { Class::Holds } else { Class::Waits };
        let state = builder.table.lock(class, lock.kind, lock.lock);
        builder.did(row, state, lock.begin, lock.end);
    }

    /// A thread or a task has ended, and with it its waits.
    pub(crate) fn ends(&mut self, party: Party, at: Timestamp, states: &mut States<Builder<'_>>) {
        let mut uses = Vec::new();
        self.locks.ends(party, at, &mut |lock| uses.push(lock));
        uses.iter().for_each(|lock| self.lock(lock, states));
    }

    /// The recording is opened anew: its streams and classes may have other numbers.
    pub(crate) fn reopen(&mut self) {
        self.reader = PartReader::default();
        self.own.reopen();
    }

    /// Another one of which only what lasts is known: it can be closed while this one continues.
    pub(crate) fn same(&self) -> Self {
        Parts {
            calls: self.calls.begun(),
            locks: self.locks.same(),
            counters: self.counters.clone(),
            of_calls: self.of_calls.clone(),
            of_locks: self.of_locks.clone(),
            own: self.own.same(),
            tasks: self.tasks.clone(),
            last_task: self.last_task,
            seen: self.seen.clone(),
            ..Parts::new(self.pairs)
        }
    }

    /// Learns where code is from events before those that are indexed.
    pub(crate) fn earlier(&mut self, mut read: Option<&mut PartRead>, at: &Located<'_>) {
        self.explanations.iter_mut().for_each(Explanations::lacks_changes);
        self.explains(read.as_deref_mut(), at);
        let Some(read) = read else { return self.calls.located_earlier(None, at) };
        read.own.iter_mut().for_each(|own| self.own.learn(own));
        self.calls.located_earlier(read.function.take(), at);
    }

    pub(crate) fn lost(&mut self, lost: &Loss, states: &mut States<Builder<'_>>) {
        self.locks.lost(lost);
        if let Scope::Kernel(_) = lost.scope {
            self.counters.lost(lost.from, lost.to, states);
        }
        if lost.tears_programs() {
            self.calls.lost(lost.from);
            self.own.lost(lost.from);
        }
    }

    pub(crate) fn loss_over(&mut self, time: Timestamp) {
        self.locks.loss_over();
        self.calls.loss_over(time);
    }

    /// The recording is over: what lasts ends.
    pub(crate) fn close(&mut self, end: Timestamp, states: &mut States<Builder<'_>>) {
        let (mut calls, mut uses) = (Vec::new(), Vec::new());
        self.calls.finish(&mut |thread, time, call| calls.push((thread, time, call)));
        self.locks.finish(end, &mut |lock| uses.push(lock));
        self.counters.close(end, states);
        calls.into_iter().for_each(|(thread, time, call)| self.call(thread, time, call, states));
        uses.iter().for_each(|lock| self.lock(lock, states));
    }

    /// What a function is called, as far as it is known now.
    pub(crate) fn name(&self, number: FunctionId, symbols: &mut FunctionNames) -> String {
        if let Some(known) = symbols.known.get(&number) {
            return known.clone();
        }
        let name = match self.calls.function(number) {
            Function::Named(name) => name,
            Function::InFile { path, address } => symbols.symbols.name(&path, address),
            // The file may become known later.
            Function::InMemory(address) => return format!("{address:#x}"),
        };
        symbols.known.insert(number, name.clone());
        name
    }
}

/// Names of functions that were looked up.
pub(crate) struct FunctionNames {
    symbols: Symbols,
    known: HashMap<FunctionId, String>,
}

impl FunctionNames {
    pub(crate) fn new() -> Self {
        FunctionNames { symbols: Symbols::new(), known: HashMap::new() }
    }
}
