//! Tells an analysis of those LWPs and user threads only that a filter lets through, and of their time what fits it.
//!
//! | filter | of an LWP | of a user thread |
//! |---|---|---|
//! | process | all, if it belongs to it | the same |
//! | LWP | all, if it is the one | what the LWP did for it |
//! | user thread | what it did for it | all, if it is the one |
//! | CPU | what it did there | the same |
//!
//! As long as nobody knows to which process an LWP belongs, or what that is called, it is told what it does; that it has
//! ended is told only if it fits.

use crate::run::Analysis;
use std::collections::{HashMap, HashSet};
use tracewing_rules::ProcessPattern;
use tracewing_trace::Filter;
use tracewing_trace::super_trace::{
    Activity, Doing, Fold, Kind, Lwp, Name, Scope, Seen, SuperTrace, SwitchCause, UserThread, Waker,
};

/// An analysis behind a filter.
#[derive(Debug)]
pub(crate) struct Subjects<'a, A> {
    analysis: &'a mut A,
    filter: &'a Filter,
    /// Nobody is left out.
    all: bool,
    /// Whether processes that have a name are wanted by it.
    named: HashMap<i32, bool>,
    /// LWPs that run wanted user threads, by serial number; only where user threads are chosen.
    carrying: HashSet<usize>,
    /// Of whom something was told, by serial number; only where somebody is left out.
    told_lwps: HashSet<usize>,
    told_threads: HashSet<usize>,
}

/// Whether somebody is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fits {
    Yes,
    No,
    /// No event has told yet.
    Unknown,
}

impl<'a, A: Analysis> Subjects<'a, A> {
    pub(crate) fn new(filter: &'a Filter, analysis: &'a mut A) -> Self {
        let Filter { threads, pids, tids, processes, cpus, .. } = filter;
        let all = threads.is_empty()
            && pids.is_empty()
            && tids.is_empty()
            && processes.is_empty()
            && cpus.is_empty();
        Self {
            analysis,
            filter,
            all,
            named: HashMap::new(),
            carrying: HashSet::new(),
            told_lwps: HashSet::new(),
            told_threads: HashSet::new(),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.analysis.is_done()
    }

    pub(crate) fn begins(&mut self, time: i64) {
        self.analysis.begins(time);
    }

    pub(crate) fn name(&mut self, name: Name, text: &str) {
        self.analysis.name(name, text);
    }

    pub(crate) fn event(&mut self, seen: &Seen<'_>) {
        self.analysis.event(seen);
    }

    pub(crate) fn lost(&mut self, scope: Scope, from: i64, to: i64) {
        self.analysis.lost(scope, from, to);
    }

    /// Looks at what an event has changed, beside what it has ended.
    pub(crate) fn follow(&mut self, event: &Activity<'_>, state: &SuperTrace) {
        if let Kind::Dump { tid, process, name } = event.kind {
            self.analysis.dumped(tid, process, name);
        }
        if self.all {
            return;
        }
        if !self.filter.processes.is_empty() {
            let other = match event.kind {
                Kind::Switch { next, .. } => Some(next),
                Kind::Waking { tid, .. } | Kind::Wakeup { tid, .. } | Kind::Dump { tid, .. } => Some(tid),
                Kind::Fork { child, .. } => Some(child),
                _ => None,
            };
            for tid in [event.tid, other].into_iter().flatten() {
                let Some(process) = state.lwp(tid).and_then(|lwp| lwp.process) else { continue };
                if let Some(name) = state.process_name(process) {
                    let named = |pattern: &ProcessPattern| pattern.fits(process, Some(name));
                    self.named.insert(process, self.filter.processes.iter().any(named));
                }
            }
        }
        if !self.filter.threads.is_empty()
            && let Some(lwp) = event.tid.and_then(|tid| state.lwp(tid))
        {
            let thread = state.carried(lwp);
            match thread.is_some_and(|thread| self.has_thread(thread)) {
                true => self.carrying.insert(lwp.serial),
                false => self.carrying.remove(&lwp.serial),
            };
        }
    }

    fn process(&self, process: Option<i32>) -> Fits {
        let Filter { pids, processes, .. } = self.filter;
        if pids.is_empty() && processes.is_empty() {
            return Fits::Yes;
        }
        let Some(process) = process else { return Fits::Unknown };
        if !pids.is_empty() && !pids.contains(&process) {
            return Fits::No;
        }
        if processes.is_empty() || processes.iter().any(|pattern| pattern.fits(process, None)) {
            return Fits::Yes;
        }
        match self.named.get(&process) {
            Some(true) => Fits::Yes,
            Some(false) => Fits::No,
            None => Fits::Unknown,
        }
    }

    fn lwp_fits(&self, lwp: &Lwp) -> Fits {
        match self.filter.tids.is_empty() || self.filter.tids.contains(&lwp.tid) {
            true => self.process(lwp.process),
            false => Fits::No,
        }
    }

    fn has_thread(&self, thread: &UserThread) -> bool {
        let wanted = &self.filter.threads;
        wanted.is_empty()
            || wanted.iter().any(|pattern| pattern.matches(thread.process, thread.id, &thread.name))
    }

    /// Whether what an LWP does now, on a CPU or on none, is told.
    #[inline]
    fn lwp_is_told(&mut self, lwp: &Lwp, cpu: Option<u32>) -> bool {
        if self.all {
            return true;
        }
        let told = self.lwp_fits(lwp) != Fits::No
            && self.filter.has_cpu(cpu)
            && (self.filter.threads.is_empty() || self.carrying.contains(&lwp.serial));
        if told {
            self.told_lwps.insert(lwp.serial);
        }
        told
    }

    /// Whether what a user thread does now, on an LWP or on none, is told.
    fn thread_is_told(&mut self, thread: &UserThread, lwp: Option<&Lwp>) -> bool {
        if self.all {
            return true;
        }
        let told = self.has_thread(thread)
            && self.process(thread.process) != Fits::No
            && match lwp {
                Some(lwp) => self.lwp_fits(lwp) != Fits::No && self.filter.has_cpu(lwp.cpu()),
                None => self.filter.tids.is_empty() && self.filter.cpus.is_empty(),
            };
        if told {
            self.told_threads.insert(thread.serial);
        }
        told
    }
}

impl<A: Analysis> Fold for Subjects<'_, A> {
    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {
        let cpu = match doing {
            Doing::Running { cpu, .. } => Some(cpu),
            _ => None,
        };
        if self.lwp_is_told(lwp, cpu) {
            self.analysis.lwp(lwp, doing, from, to);
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let thread = thread.filter(|thread| self.thread_is_told(thread, Some(lwp)));
        self.analysis.ran(lwp, thread);
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64) {
        if self.thread_is_told(thread, None) {
            self.analysis.user_thread(thread, doing, from, to);
        }
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: i64) {
        if self.lwp_is_told(lwp, None) {
            self.analysis.lwp_woken(lwp, by, at);
        }
    }

    fn lwp_runs(&mut self, lwp: &Lwp, cpu: u32, at: i64) {
        if self.lwp_is_told(lwp, Some(cpu)) {
            self.analysis.lwp_runs(lwp, cpu, at);
        }
    }

    fn lwp_stops(&mut self, lwp: &Lwp, cpu: u32, prev_state: i64, at: i64) {
        if self.lwp_is_told(lwp, Some(cpu)) {
            self.analysis.lwp_stops(lwp, cpu, prev_state, at);
        }
    }

    fn user_thread_created(&mut self, thread: &UserThread, by: &Waker, at: i64) {
        if self.thread_is_told(thread, None) {
            self.analysis.user_thread_created(thread, by, at);
        }
    }

    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: i64) {
        if self.thread_is_told(thread, None) {
            self.analysis.user_thread_woken(thread, by, at);
        }
    }

    fn user_thread_runs(&mut self, thread: &UserThread, lwp: &Lwp, at: i64) {
        if self.thread_is_told(thread, Some(lwp)) {
            self.analysis.user_thread_runs(thread, lwp, at);
        }
    }

    fn user_thread_stops(&mut self, thread: &UserThread, lwp: &Lwp, cause: SwitchCause, at: i64) {
        if self.thread_is_told(thread, Some(lwp)) {
            self.analysis.user_thread_stops(thread, lwp, cause, at);
        }
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        self.carrying.remove(&lwp.serial);
        if self.all || (self.told_lwps.remove(&lwp.serial) && self.lwp_fits(lwp) == Fits::Yes) {
            self.analysis.lwp_ends(lwp);
        }
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        if self.all || (self.told_threads.remove(&thread.serial) && self.process(thread.process) == Fits::Yes)
        {
            self.analysis.user_thread_ends(thread);
        }
    }
}
