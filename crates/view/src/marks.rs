//! Events of some names: how many there are, and where.

use crate::events::{Each, literal, placed};
use crate::passes::{Pass, Passes, Work};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use tracewing_index::{Index, RowId, RowKind};
use tracewing_trace::{Filter, Recording};
use tracewing_units::{Cpu, Duration, Tid, Timestamp};

/// Most events of which the places are kept, of all names together; further ones are only counted.
const MARKED: usize = 4_000_000;
/// Events that are published together.
const BATCH: usize = 1 << 12;
/// No row.
const NONE: RowId = RowId(u32::MAX - 1);

/// The choices of names of a recording.
pub(crate) type Marks = Passes<Choice>;

#[derive(Debug)]
pub(crate) struct Choice {
    names: Vec<String>,
    found: Mutex<Found>,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// By name, in the order of the choice.
    pub(crate) names: Vec<Events>,
    /// Up to when all are found.
    pub(crate) until: Duration,
    pub(crate) is_done: bool,
    /// Why not all were found.
    pub(crate) failure: Option<String>,
}

/// The events of a name.
#[derive(Debug, Default, Clone)]
pub(crate) struct Events {
    pub(crate) count: u64,
    /// In the order of time.
    pub(crate) marks: Vec<Mark>,
}

/// Where an event is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    /// Since the recording begins.
    pub(crate) at: Duration,
    /// Its thread's row, and that of its CPU.
    pub(crate) thread: RowId,
    pub(crate) cpu: RowId,
}

impl Marks {
    /// Starts to look for events of some names; gives the number of the choice, or why there is none.
    pub(crate) fn mark(
        &self,
        recording: &Arc<Recording>,
        index: &Index,
        names: Vec<String>,
    ) -> Result<u64, String> {
        let found = Found { names: vec![Events::default(); names.len()], ..Found::default() };
        let (recording, rows, begin) = (recording.clone(), Rows::of(index), index.tail().begin);
        let choice = Choice { names, found: Mutex::new(found) };
        self.start(choice, move |pass| run(pass, &recording, &rows, begin))
    }
}

impl Work for Choice {
    type Done = ();
    const NAMES: [&'static str; 2] = ["choice", "choices"];
    const KEPT: usize = 2;

    fn ends(&self, done: Result<(), String>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // Clocks may go back a little.
        found.names.iter_mut().for_each(|events| events.marks.sort_by_key(|mark| mark.at));
        (found.is_done, found.failure) = (true, done.err());
    }
}

fn run(choice: &Pass<Choice>, recording: &Recording, rows: &Rows, begin: Timestamp) -> Result<(), String> {
    let filter =
        Filter { events: choice.names.iter().map(|name| literal(name)).collect(), ..Filter::default() };
    let mut batch = Vec::with_capacity(BATCH);
    let ended = placed(recording, &filter, &mut |_| choice.goes_on(), &mut |event| {
        batch.push(choice.mark(rows, begin, event));
        if batch.len() == BATCH {
            choice.publish(&mut batch);
        }
        ControlFlow::Continue(())
    });
    choice.publish(&mut batch);
    ended
}

impl Choice {
    /// What was found so far.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Found) -> T) -> T {
        look(&self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of an event's name, and where it is.
    fn mark(&self, rows: &Rows, begin: Timestamp, event: Each<'_>) -> (usize, Mark) {
        let name = self.names.iter().position(|name| name == event.name).unwrap_or_default();
        let at = event.time - begin;
        (name, Mark { at, thread: rows.thread(event.tid, at), cpu: rows.cpu(event.cpu) })
    }

    fn publish(&self, batch: &mut Vec<(usize, Mark)>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut marked: usize = found.names.iter().map(|events| events.marks.len()).sum();
        for (name, mark) in batch.drain(..) {
            found.until = found.until.max(mark.at);
            let events = &mut found.names[name];
            events.count += 1;
            if marked < MARKED {
                marked += 1;
                events.marks.push(mark);
            }
        }
    }
}

/// Rows by what events say of them.
struct Rows {
    /// Numbers of threads are used again: with the time of each.
    threads: HashMap<Tid, Vec<(Duration, Duration, RowId)>>,
    cpus: HashMap<Cpu, RowId>,
}

impl Rows {
    fn of(index: &Index) -> Self {
        let (mut threads, mut cpus) = (HashMap::<_, Vec<_>>::new(), HashMap::new());
        for (id, row) in index.rows() {
            match row.kind {
                RowKind::Thread(tid) => threads.entry(tid).or_default().push((row.begin, row.end, id)),
                RowKind::Cpu(cpu) => drop(cpus.insert(cpu, id)),
                _ => {}
            }
        }
        Rows { threads, cpus }
    }

    /// The row of a thread at a time, or its only one.
    fn thread(&self, tid: Option<Tid>, at: Duration) -> RowId {
        let Some(all) = tid.and_then(|tid| self.threads.get(&tid)) else { return NONE };
        let fits = all.iter().find(|(begin, end, _)| *begin <= at && at <= *end);
        fits.or(all.first()).map_or(NONE, |(.., id)| *id)
    }

    fn cpu(&self, cpu: Option<Cpu>) -> RowId {
        cpu.and_then(|cpu| self.cpus.get(&cpu)).copied().unwrap_or(NONE)
    }
}
