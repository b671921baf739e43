//! Events of some names: how many there are, and where. One thread looks for all names of a choice; what it
//! has found so far can be asked meanwhile.

use crate::events::{Each, placed};
use crate::places::Places;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use tracewing_index::{Index, RowId, RowKind};
use tracewing_trace::{Filter, Recording};
use tracewing_units::{Cpu, Duration, Tid, Timestamp};

/// Most choices that are kept; a further one ends the oldest.
const KEPT: usize = 2;
/// Most threads: one that was stopped works until it sees that.
const THREADS: usize = 2 * KEPT;
/// Most events of which the places are kept, of all names together; further ones are only counted.
const MARKED: usize = 4_000_000;
/// Events that are published together.
const BATCH: usize = 1 << 12;
/// No row.
const NONE: RowId = RowId(u32::MAX - 1);

/// The choices of names of a recording.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    kept: Mutex<Vec<Arc<Choice>>>,
    last: AtomicU64,
    places: Places<THREADS>,
}

#[derive(Debug)]
pub(crate) struct Choice {
    number: u64,
    names: Vec<String>,
    is_stopped: AtomicBool,
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
    pub(crate) fn start(
        &self,
        recording: &Arc<Recording>,
        index: &Index,
        names: Vec<String>,
    ) -> Result<u64, String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.remove(0).stop();
        }
        let Some(place) = self.places.take() else {
            return Err("earlier choices have not ended yet: try again".to_owned());
        };
        // Nothing else is published with the number.
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let found = Found { names: vec![Events::default(); names.len()], ..Found::default() };
        let choice = Choice { number, names, is_stopped: AtomicBool::new(false), found: Mutex::new(found) };
        let choice = Arc::new(choice);
        let (own, recording) = (choice.clone(), recording.clone());
        let (rows, begin) = (Rows::of(index), index.tail().begin);
        let started = Builder::new().spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(|| own.run(&recording, &rows, begin)));
            // Before the answer, after which another choice can be made.
            drop(place);
            own.ends(done.unwrap_or_else(|_| Err("the events could not be read".to_owned())));
        });
        started.map_err(|error| format!("the choice has no thread: {error}"))?;
        kept.push(choice);
        Ok(number)
    }

    /// The choice of a number, if it is kept.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<Choice>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|choice| choice.number == number).cloned()
    }

    /// Ends a choice and forgets what was found.
    pub(crate) fn end(&self, number: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|choice| choice.number == number).for_each(|choice| choice.stop());
        kept.retain(|choice| choice.number != number);
    }

    /// Ends all of them.
    pub(crate) fn stop(&self) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().for_each(|choice| choice.stop());
    }
}

impl Choice {
    fn stop(&self) {
        // It is only looked at from time to time.
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// What was found so far.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Found) -> T) -> T {
        look(&self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn goes_on(&self) -> ControlFlow<()> {
        match self.is_stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn run(&self, recording: &Recording, rows: &Rows, begin: Timestamp) -> Result<(), String> {
        let filter =
            Filter { events: self.names.iter().map(|name| literal(name)).collect(), ..Filter::default() };
        let mut batch = Vec::with_capacity(BATCH);
        let ended = placed(recording, &filter, &mut |_| self.goes_on(), &mut |event| {
            batch.push(self.mark(rows, begin, event));
            if batch.len() == BATCH {
                self.publish(&mut batch);
            }
            ControlFlow::Continue(())
        });
        self.publish(&mut batch);
        ended
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

    fn ends(&self, ended: Result<(), String>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // Clocks may go back a little.
        found.names.iter_mut().for_each(|events| events.marks.sort_by_key(|mark| mark.at));
        (found.is_done, found.failure) = (true, ended.err());
    }
}

/// A pattern that only this name matches.
fn literal(name: &str) -> String {
    let special = |sign: char| matches!(sign, '*' | '?' | '[' | ']' | '\\');
    name.chars().flat_map(|sign| special(sign).then_some('\\').into_iter().chain([sign])).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use tracewing_trace::Glob;

    #[test]
    fn a_name_is_no_pattern() {
        for name in ["shop:served", "a*", "[x]", "b?c", "d\\", ""] {
            let glob = Glob::new(literal(name));
            assert!(glob.matches(name), "{name}");
            assert!(!glob.matches(&format!("{name}x")) && !glob.matches("ax"), "{name}");
        }
    }
}
