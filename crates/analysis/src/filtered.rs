//! An analysis behind a filter: it is told of those LWPs and user threads that are wanted, and of their time what is.
//!
//! As long as nobody knows to which process an LWP belongs, or what that is called, it is told what it does, unless the analysis
//! makes something of that at once ([`Analysis::AT_ONCE`]); that it has ended is told only if it is wanted.

use crate::names::Names;
use crate::run::{Analysis, Loss};
use crate::subjects::Subjects;
use std::collections::HashSet;
use tracewing_trace::super_trace::{
    Activity, Doing, Fold, Kind, Lwp, Mode, Name, Seen, SuperTrace, SwitchCause, UserThread, Waker,
};
use tracewing_trace::{EventRef, Filter};

/// An analysis behind a filter.
#[derive(Debug)]
pub(crate) struct Filtered<'a, A> {
    analysis: &'a mut A,
    /// `None` where nobody is left out.
    subjects: Option<Subjects<'a>>,
    names: Names,
    /// Of whom something was told, by serial number; only where somebody is left out.
    lwps: HashSet<usize>,
    threads: HashSet<usize>,
    /// LWPs of which something was told since it was told for whom they did it.
    pending: HashSet<usize>,
}

/// What a user thread does that has just been made ready.
const READY: Doing = Doing::Runnable { preempted: false };

impl<'a, A: Analysis> Filtered<'a, A> {
    pub(crate) fn new(filter: &'a Filter, analysis: &'a mut A) -> Self {
        Filtered {
            analysis,
            subjects: Subjects::new(filter),
            names: Names::default(),
            lwps: HashSet::new(),
            threads: HashSet::new(),
            pending: HashSet::new(),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.analysis.is_done()
    }

    pub(crate) fn begins(&mut self, time: i64) {
        self.analysis.begins(time);
    }

    /// Whether somebody, or a part of the time, is left out.
    pub(crate) fn leaves_out(&self) -> bool {
        self.subjects.is_some()
    }

    /// How many names have been told.
    pub(crate) fn known_names(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn name(&mut self, name: Name, text: &str) {
        self.names.learn(name, text);
        self.analysis.name(name, text);
    }

    #[inline]
    pub(crate) fn explained(&mut self, event: &EventRef<'_>) {
        self.analysis.explained(event);
    }

    pub(crate) fn event(&mut self, seen: &Seen<'_>) {
        self.analysis.event(seen);
    }

    pub(crate) fn lost(&mut self, lost: &Loss) {
        self.analysis.lost(lost);
    }

    pub(crate) fn loss_over(&mut self, time: i64) {
        self.analysis.loss_over(time);
    }

    /// Looks at what an event has changed, beside what it has ended.
    #[inline]
    pub(crate) fn follow(&mut self, event: &Activity<'_>, state: &SuperTrace) {
        if let Kind::Dump { tid, process, name, .. } = event.kind {
            self.analysis.dumped(tid, process, name);
        }
        if let Some(subjects) = &mut self.subjects {
            subjects.follow(event, state);
        }
    }

    /// All names, when all has been told.
    pub(crate) fn into_names(self) -> Names {
        self.names
    }

    /// Whether what an LWP does now is told.
    #[inline]
    fn tells_lwp(&mut self, lwp: &Lwp, doing: Doing) -> bool {
        let Some(subjects) = &self.subjects else { return true };
        let told = subjects.lwp_does(lwp, doing, &self.names, A::AT_ONCE);
        if told {
            self.lwps.insert(lwp.serial);
        }
        told
    }

    /// Whether what a user thread does now is told: on an LWP, or on none.
    #[inline]
    fn tells_thread(&mut self, thread: &UserThread, lwp: Option<&Lwp>, doing: Doing) -> bool {
        let Some(subjects) = &self.subjects else { return true };
        let told = subjects.thread_does(thread, lwp, doing, &self.names);
        if told {
            self.threads.insert(thread.serial);
        }
        told
    }

    /// The same of one that an LWP begins or ceases to run.
    fn tells_poll(&mut self, thread: &UserThread, lwp: &Lwp) -> bool {
        let doing = match lwp.cpu() {
            Some(cpu) => Doing::Running { cpu, mode: Mode::User },
            None => Doing::Unknown,
        };
        self.tells_thread(thread, Some(lwp), doing)
    }
}

impl<A: Analysis> Fold for Filtered<'_, A> {
    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: i64, to: i64) {
        match self.tells_lwp(lwp, doing) {
            true => {
                if self.subjects.is_some() {
                    self.pending.insert(lwp.serial);
                }
                self.analysis.lwp(lwp, doing, from, to);
            }
            false => self.analysis.other(lwp, doing, from, to),
        }
    }

    fn cpu_idles(&mut self, cpu: u32, interrupt: Option<Name>, from: i64, to: i64) {
        self.analysis.cpu_idles(cpu, interrupt, from, to);
    }

    fn lwp_was(&mut self, lwp: &Lwp, mode: Mode) {
        if self.tells_lwp(lwp, lwp.doing()) {
            self.analysis.lwp_was(lwp, mode);
        }
    }

    fn lwp_calls(&mut self, lwp: &Lwp, call: Name, at: i64) {
        if self.tells_lwp(lwp, lwp.doing()) {
            self.analysis.lwp_calls(lwp, call, at);
        }
    }

    fn lwp_uses_socket(&mut self, lwp: &Lwp, at: i64) {
        if self.tells_lwp(lwp, lwp.doing()) {
            self.analysis.lwp_uses_socket(lwp, at);
        }
    }

    fn lwp_faults(&mut self, lwp: &Lwp, at: i64) {
        if self.tells_lwp(lwp, lwp.doing()) {
            self.analysis.lwp_faults(lwp, at);
        }
    }

    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let Some(subjects) = &self.subjects else { return self.analysis.ran(lwp, thread) };
        let did = self.pending.remove(&lwp.serial);
        let thread = thread.filter(|thread| did && subjects.thread(thread));
        if let Some(thread) = thread {
            self.threads.insert(thread.serial);
        }
        self.analysis.ran(lwp, thread);
    }

    fn user_thread(&mut self, thread: &UserThread, doing: Doing, from: i64, to: i64) {
        if self.tells_thread(thread, None, doing) {
            self.analysis.user_thread(thread, doing, from, to);
        }
    }

    fn lwp_woken(&mut self, lwp: &Lwp, by: &Waker, at: i64) {
        match self.tells_lwp(lwp, READY) {
            true => self.analysis.lwp_woken(lwp, by, at),
            false => self.analysis.other_woken(lwp, by, at),
        }
    }

    fn lwp_runs(&mut self, lwp: &Lwp, cpu: u32, at: i64) {
        if self.tells_lwp(lwp, Doing::Running { cpu, mode: lwp.mode() }) {
            self.analysis.lwp_runs(lwp, cpu, at);
        }
    }

    fn lwp_stops(&mut self, lwp: &Lwp, cpu: u32, prev_state: i64, at: i64) {
        if self.tells_lwp(lwp, Doing::Running { cpu, mode: lwp.mode() }) {
            self.analysis.lwp_stops(lwp, cpu, prev_state, at);
        }
    }

    fn user_thread_created(&mut self, thread: &UserThread, by: &Waker, at: i64) {
        if self.tells_thread(thread, None, READY) {
            self.analysis.user_thread_created(thread, by, at);
        }
    }

    fn user_thread_woken(&mut self, thread: &UserThread, by: &Waker, at: i64) {
        if self.tells_thread(thread, None, READY) {
            self.analysis.user_thread_woken(thread, by, at);
        }
    }

    fn user_thread_runs(&mut self, thread: &UserThread, lwp: &Lwp, at: i64) {
        if self.tells_poll(thread, lwp) {
            self.analysis.user_thread_runs(thread, lwp, at);
        }
    }

    fn user_thread_stops(&mut self, thread: &UserThread, lwp: &Lwp, cause: SwitchCause, at: i64) {
        if self.tells_poll(thread, lwp) {
            self.analysis.user_thread_stops(thread, lwp, cause, at);
        }
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        if let Some(subjects) = &mut self.subjects {
            subjects.forget(lwp);
            self.pending.remove(&lwp.serial);
            if !subjects.is_of_lwp(lwp, self.lwps.remove(&lwp.serial)) {
                return self.analysis.other_ends(lwp);
            }
        }
        self.analysis.lwp_ends(lwp);
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        let told = self.threads.remove(&thread.serial);
        if self.subjects.as_ref().is_none_or(|subjects| subjects.is_of_thread(thread, told)) {
            self.analysis.user_thread_ends(thread);
        }
    }
}
