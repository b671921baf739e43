//! Which LWPs and user threads, and which of their time, a filter lets through.
//!
//! | filter | of an LWP | of a user thread |
//! |---|---|---|
//! | process | all, if it belongs to it | the same |
//! | LWP | all, if it is the one | what the LWP did for it |
//! | user thread | what it did for it | all, if it is the one |
//! | CPU | what it did there | the same |
//! | condition | while it is true, if it uses only [columns](tracewing_trace::super_trace::Column) | the same
//! |

use crate::names::Names;
use std::collections::HashMap;
use tracewing_rules::ProcessPattern;
use tracewing_trace::Filter;
use tracewing_trace::super_trace::{
    Activity, Carried, Doing, Kind, Known, Lwp, LwpSerial, SuperTrace, TimeCondition, Timed, UserThread,
};
use tracewing_units::{Pid, Task};

/// Whether an LWP or user thread is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fits {
    Yes,
    No,
    /// Its process, or that process's name, has not been reported yet.
    Unknown,
}

/// A filter of subjects, and what it has to know of them.
#[derive(Debug)]
pub(crate) struct Subjects<'a> {
    filter: &'a Filter,
    condition: Option<TimeCondition>,
    /// Whether names of processes are needed, and whether user threads that LWPs run are.
    needs: [bool; 2],
    /// Names of processes, and whether their name selects them.
    named: HashMap<Pid, (String, bool)>,
    /// How many of these are kept: without all of them, none.
    most: usize,
    /// The user threads that LWPs run, by the LWPs' serial numbers.
    carried: HashMap<LwpSerial, CarriedThread>,
}

/// Names of processes that a checkpoint has, at most.
pub(crate) const MOST: usize = 1 << 18;

/// A user thread as it was when its LWP last recorded something.
#[derive(Debug)]
struct CarriedThread {
    process: Option<Pid>,
    id: Task,
    name: String,
    is_selected: bool,
}

impl<'a> Subjects<'a> {
    /// `None` if nothing is left out.
    pub(crate) fn new(filter: &'a Filter) -> Option<Self> {
        let condition = filter.predicate.as_ref().and_then(TimeCondition::new);
        let some = condition.is_some() || filter.chooses_subjects() || !filter.cpus.is_empty();
        let needs = [filter.processes.is_empty(), filter.threads.is_empty()];
        let needs = needs.map(|is_empty| !is_empty || condition.is_some());
        some.then(|| Subjects { condition, needs, ..Self::all(filter, usize::MAX) })
    }

    /// Those of all that a filter may need, for [`Known`], with at most so many names.
    pub(crate) fn all(filter: &'a Filter, most: usize) -> Self {
        let (named, carried) = Default::default();
        Subjects { filter, condition: None, needs: [true; 2], named, most, carried }
    }

    /// What is to be known of earlier events that the state does not know: names of processes, and which user
    /// threads LWPs ran, as they were when these last recorded something.
    pub(crate) fn put(&self, known: &mut Known) {
        let named = self.named.iter().map(|(process, (name, _))| (*process, name.clone()));
        known.named = self.needs[0].then(|| named.collect());
        known.named.iter_mut().for_each(|named| named.sort_unstable());
        let thread = |(lwp, of): (&LwpSerial, &CarriedThread)| (*lwp, (of.process, of.id), of.name.clone());
        known.carried = self.carried.iter().map(thread).collect();
        known.carried.sort_unstable();
    }

    /// Whether all is known of earlier events that it needs.
    pub(crate) fn has_all(&self, known: &Known) -> bool {
        known.named.is_some() || !self.needs[0]
    }

    /// Takes what is known of earlier events.
    pub(crate) fn take(&mut self, known: &Known) {
        let [names, threads] = self.needs;
        for (process, name) in known.named.iter().flatten().filter(|_| names) {
            self.name(*process, name);
        }
        for (lwp, (process, id), name) in known.carried.iter().filter(|_| threads) {
            let is_selected = self.has_thread(*process, *id, name);
            let thread = CarriedThread { process: *process, id: *id, name: name.clone(), is_selected };
            self.carried.insert(*lwp, thread);
        }
    }

    /// A process has a name.
    fn name(&mut self, process: Pid, name: &str) {
        let fits = |pattern: &ProcessPattern| pattern.fits(process, Some(name));
        let is_selected = self.filter.processes.iter().any(fits);
        self.named.insert(process, (name.to_owned(), is_selected));
        if self.named.len() > self.most {
            self.needs[0] = false;
            self.named = HashMap::new();
        }
    }

    /// Looks at what an event has changed.
    pub(crate) fn follow(&mut self, event: &Activity<'_>, state: &SuperTrace) {
        let [names, threads] = self.needs;
        if names {
            let other = match event.kind {
                Kind::Switch { next, .. } => Some(next),
                Kind::Waking { tid, .. }
                | Kind::Wakeup { tid, .. }
                | Kind::Dump { tid, .. }
                | Kind::Asleep { tid, .. } => Some(tid),
                Kind::Fork { child, .. } => Some(child),
                _ => None,
            };
            for tid in [event.tid, other].into_iter().flatten() {
                let Some(process) = state.lwp(tid).and_then(|lwp| lwp.process) else { continue };
                if let Some(name) = state.process_name(process)
                    && self.named.get(&process).is_none_or(|(known, _)| known != name)
                {
                    self.name(process, name);
                }
            }
        }
        if threads {
            let Some(lwp) = event.tid.and_then(|tid| state.lwp(tid)) else { return };
            match state.carried(lwp) {
                None if self.carried.is_empty() => {}
                None => drop(self.carried.remove(&lwp.serial)),
                Some(thread) => {
                    let known = self.carried.get(&lwp.serial);
                    if known.is_none_or(|known| known.id != thread.id || known.name != thread.name) {
                        self.carries(lwp, thread);
                    }
                }
            }
        }
    }

    fn carries(&mut self, lwp: &Lwp, thread: &UserThread) {
        let UserThread { process, id, ref name, .. } = *thread;
        let is_selected = self.has_thread(process, id, name);
        self.carried.insert(lwp.serial, CarriedThread { process, id, name: name.clone(), is_selected });
    }

    /// An LWP has ended.
    pub(crate) fn forget(&mut self, lwp: &Lwp) {
        self.carried.remove(&lwp.serial);
    }

    /// Whether a process is selected.
    fn process(&self, process: Option<Pid>) -> Fits {
        let processes = &self.filter.processes;
        if processes.is_empty() {
            return Fits::Yes;
        }
        let Some(process) = process else { return Fits::Unknown };
        if processes.iter().any(|pattern| pattern.fits(process, None)) {
            return Fits::Yes;
        }
        match self.named.get(&process) {
            Some((_, true)) => Fits::Yes,
            Some((_, false)) => Fits::No,
            None if processes.iter().all(|pattern| matches!(pattern, ProcessPattern::Id(_))) => Fits::No,
            None => Fits::Unknown,
        }
    }

    /// Whether an LWP is selected, at some time.
    fn lwp(&self, lwp: &Lwp) -> Fits {
        match self.filter.tids.is_empty() || self.filter.tids.contains(&lwp.tid) {
            true => self.process(lwp.process),
            false => Fits::No,
        }
    }

    /// Whether a user thread is selected, at some time.
    pub(crate) fn thread(&self, thread: &UserThread) -> bool {
        self.has_thread(thread.process, thread.id, &thread.name) && self.process(thread.process) != Fits::No
    }

    fn has_thread(&self, process: Option<Pid>, id: Task, name: &str) -> bool {
        let patterns = &self.filter.threads;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(process, id, name))
    }

    /// Whether an LWP that has ended is selected; `was_reported`: whether any of its time was.
    pub(crate) fn is_of_lwp(&self, lwp: &Lwp, was_reported: bool) -> bool {
        self.lwp(lwp) == Fits::Yes
            && (was_reported || (self.filter.threads.is_empty() && !self.chooses_times()))
    }

    /// The same of a user thread.
    pub(crate) fn is_of_thread(&self, thread: &UserThread, was_reported: bool) -> bool {
        self.has_thread(thread.process, thread.id, &thread.name)
            && self.process(thread.process) == Fits::Yes
            && (was_reported || (self.filter.tids.is_empty() && !self.chooses_times()))
    }

    fn chooses_times(&self) -> bool {
        self.condition.is_some() || !self.filter.cpus.is_empty()
    }

    /// Whether what an LWP does at a time is selected; or may be, if it need not be `certain`.
    pub(crate) fn lwp_does(&self, lwp: &Lwp, doing: Doing, names: &Names, certain: bool) -> bool {
        let carried = self.carried.get(&lwp.serial).filter(|_| lwp.runs_user_thread());
        let thread = carried.map_or(Carried::Unknown, |of| Carried::Thread { id: of.id, name: &of.name });
        let fits = match self.lwp(lwp) {
            Fits::Yes => true,
            Fits::No => false,
            Fits::Unknown => !certain,
        };
        fits && (self.filter.threads.is_empty() || carried.is_some_and(|of| of.is_selected))
            && self.holds(lwp.process, Some(lwp), thread, doing, names)
    }

    /// Whether what a user thread does at a time is selected: on an LWP, or on none.
    pub(crate) fn thread_does(
        &self,
        thread: &UserThread,
        lwp: Option<&Lwp>,
        doing: Doing,
        names: &Names,
    ) -> bool {
        let carried = Carried::Thread { id: thread.id, name: &thread.name };
        let on_lwp = match lwp {
            Some(lwp) => self.lwp(lwp) != Fits::No,
            None => self.filter.tids.is_empty(),
        };
        on_lwp && self.thread(thread) && self.holds(thread.process, lwp, carried, doing, names)
    }

    fn holds(
        &self,
        process: Option<Pid>,
        lwp: Option<&Lwp>,
        thread: Carried<'_>,
        doing: Doing,
        names: &Names,
    ) -> bool {
        let cpu = match doing {
            Doing::Running { cpu, .. } => Some(cpu),
            _ => None,
        };
        let condition = |condition: &TimeCondition| {
            let name = process.and_then(|process| self.named.get(&process));
            let process_name = name.map(|(name, _)| name.as_str());
            let call = Timed::call_of(doing).map(|call| names.get(call));
            condition.holds(&Timed { process, process_name, lwp, thread, doing, call })
        };
        self.filter.has_cpu(cpu) && self.condition.as_ref().is_none_or(condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_all_names_or_none() {
        let filter = Filter::default();
        let named = |most| {
            let (mut subjects, mut known) = (Subjects::all(&filter, most), Known::default());
            subjects.name(Pid(2), "b");
            subjects.name(Pid(1), "a");
            subjects.put(&mut known);
            known.named
        };
        assert_eq!(named(2), Some(vec![(Pid(1), "a".to_owned()), (Pid(2), "b".to_owned())]));
        assert_eq!(named(1), None);
    }
}
