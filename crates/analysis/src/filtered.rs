//! Applies a filter to an analysis's input: the analysis receives the selected LWPs and user threads, and the
//! selected parts of their time.
//!
//! Until an LWP's process, or that process's name, is known, its activity is forwarded provisionally, unless
//! the analysis uses it immediately ([`Analysis::AT_ONCE`]); its end is reported only if it is selected.

use crate::analysis::{Analysis, Input};
use crate::dumps::Dumps;
use crate::names::Names;
use crate::subjects::{self, Subjects};
use std::collections::HashSet;
use tracewing_trace::Filter;
use tracewing_trace::super_trace::{
    Activity, Change, Doing, Fold, Kind, Known, Lwp, LwpSerial, Mode, SuperTrace, TaskSerial, UserThread,
};
use tracewing_units::Cpu;

/// Forwards selected input to an analysis.
#[derive(Debug)]
pub(crate) struct Filtered<'a, A> {
    analysis: &'a mut A,
    /// `None` if nothing is left out.
    subjects: Option<Subjects<'a>>,
    names: Names,
    /// Serial numbers of reported LWPs; only used if something is left out.
    lwps: HashSet<LwpSerial>,
    threads: HashSet<TaskSerial>,
    /// LWPs with reported activity that has not been attributed to a user thread yet.
    pending: HashSet<LwpSerial>,
    /// What checkpoints need, where they are made.
    kept: Option<Kept<'a>>,
}

/// What a run knows of earlier events that the state does not know, for [`Known`].
#[derive(Debug)]
struct Kept<'a> {
    dumps: Dumps,
    subjects: Subjects<'a>,
}

/// What a user thread does that has just been made ready.
const READY: Doing = Doing::Runnable { preempted: false };

/// What an LWP does that records an event on this CPU: its switch to the CPU may be missing.
fn doing_on(lwp: &Lwp, cpu: Cpu) -> Doing {
    match lwp.cpu() {
        Some(_) => lwp.doing(),
        None => Doing::Running { cpu, mode: lwp.mode() },
    }
}

impl<'a, A: Analysis> Filtered<'a, A> {
    pub(crate) fn new(filter: &'a Filter, analysis: &'a mut A) -> Self {
        Filtered {
            analysis,
            subjects: Subjects::new(filter),
            names: Names::default(),
            lwps: HashSet::new(),
            threads: HashSet::new(),
            pending: HashSet::new(),
            kept: None,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.analysis.is_done()
    }

    pub(crate) fn analysis(&mut self) -> &mut A {
        self.analysis
    }

    /// Whether any thread, or a part of the time, is left out.
    pub(crate) fn leaves_out(&self) -> bool {
        self.subjects.is_some()
    }

    /// Keeps what checkpoints need from now on; `filter` is that of the run.
    pub(crate) fn keep(&mut self, filter: &'a Filter) {
        let subjects = Subjects::all(filter, subjects::MOST);
        self.kept = Some(Kept { dumps: Dumps::default(), subjects });
    }

    /// Adds what was kept.
    pub(crate) fn put(&self, known: &mut Known) {
        if let Some(kept) = &self.kept {
            let dumped = kept.dumps.iter().map(|(tid, process, name)| (tid, process, name.into()));
            known.dumped = dumped.collect();
            kept.subjects.put(known);
        }
    }

    /// Whether all was known at a checkpoint that the filter and the analysis need.
    pub(crate) fn has_all(&self, known: &Known) -> bool {
        let has_all = self.subjects.as_ref().is_none_or(|subjects| subjects.has_all(known));
        has_all && self.analysis.can_take(&known.parts)
    }

    /// Takes what was known at a checkpoint.
    pub(crate) fn take(&mut self, known: &Known) {
        for (tid, process, name) in &known.dumped {
            self.analysis.input(Input::Dumped { tid: *tid, process: *process, name });
        }
        self.subjects.iter_mut().for_each(|subjects| subjects.take(known));
    }

    /// Number of names that have been reported.
    pub(crate) fn known_names(&self) -> usize {
        self.names.len()
    }

    /// Passes on what is no change.
    #[inline(always)]
    pub(crate) fn input(&mut self, input: Input<'_>) {
        if let Input::Name { name, text } = input {
            self.names.learn(name, text);
        }
        self.analysis.input(input);
    }

    /// Handles what an event has changed, other than the intervals that it has ended.
    #[inline]
    pub(crate) fn follow(&mut self, event: &Activity<'_>, state: &SuperTrace) {
        if let Kind::Dump { tid, process, name, .. } = event.kind {
            self.analysis.input(Input::Dumped { tid, process, name });
            self.kept.iter_mut().for_each(|kept| kept.dumps.learn(tid, process, name));
        }
        if let Some(subjects) = &mut self.subjects {
            subjects.follow(event, state);
        }
        if let Some(kept) = &mut self.kept {
            kept.subjects.follow(event, state);
        }
    }

    /// All names so far.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// All names; called at the end.
    pub(crate) fn into_names(self) -> Names {
        self.names
    }

    /// Whether the current state of an LWP is reported.
    #[inline]
    fn reports_lwp(&mut self, lwp: &Lwp, doing: Doing) -> bool {
        let Some(subjects) = &self.subjects else { return true };
        let is_reported = subjects.lwp_does(lwp, doing, &self.names, A::AT_ONCE);
        if is_reported {
            self.lwps.insert(lwp.serial);
        }
        is_reported
    }

    /// Whether the current state of a user thread is reported, on an LWP or on none.
    #[inline]
    fn reports_thread(&mut self, thread: &UserThread, lwp: Option<&Lwp>, doing: Doing) -> bool {
        let Some(subjects) = &self.subjects else { return true };
        let is_reported = subjects.thread_does(thread, lwp, doing, &self.names);
        if is_reported {
            self.threads.insert(thread.serial);
        }
        is_reported
    }

    /// Whether the current state of a user thread is reported that an LWP begins or ceases to run.
    fn reports_poll(&mut self, thread: &UserThread, lwp: &Lwp, cpu: Option<Cpu>) -> bool {
        let doing = match cpu {
            Some(cpu) => Doing::Running { cpu, mode: Mode::User },
            None => Doing::Unknown,
        };
        self.reports_thread(thread, Some(lwp), doing)
    }

    /// Attributes the LWP's time so far to this user thread, if the filter selects both.
    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let Some(subjects) = &self.subjects else {
            return self.analysis.change(Change::LwpRan { lwp, thread });
        };
        let did = self.pending.remove(&lwp.serial);
        let thread = thread.filter(|thread| did && subjects.thread(thread));
        if let Some(thread) = thread {
            self.threads.insert(thread.serial);
        }
        self.analysis.change(Change::LwpRan { lwp, thread });
    }

    /// Whether the end of an LWP is passed on.
    fn reports_end_of_lwp(&mut self, lwp: &Lwp) -> bool {
        self.kept.iter_mut().for_each(|kept| kept.subjects.forget(lwp));
        let Some(subjects) = &mut self.subjects else { return true };
        subjects.forget(lwp);
        self.pending.remove(&lwp.serial);
        subjects.is_of_lwp(lwp, self.lwps.remove(&lwp.serial))
    }

    /// Whether the end of a user thread is passed on.
    fn reports_end_of_thread(&mut self, thread: &UserThread) -> bool {
        let is_reported = self.threads.remove(&thread.serial);
        self.subjects.as_ref().is_none_or(|subjects| subjects.is_of_thread(thread, is_reported))
    }
}

/// Every change is listed: one that is new is decided on here, or this does not compile.
impl<A: Analysis> Fold for Filtered<'_, A> {
    #[inline(always)]
    fn change(&mut self, change: Change<'_>) {
        let is_let_through = match change {
            Change::LwpDid { lwp, doing, .. } => {
                let is_reported = self.reports_lwp(lwp, doing);
                if is_reported && self.subjects.is_some() {
                    self.pending.insert(lwp.serial);
                }
                is_reported
            }
            Change::LwpRan { lwp, thread } => return self.ran(lwp, thread),
            // What was passed on before has to be taken back, whatever it does now.
            Change::LwpHidesCalls { .. } => true,
            Change::LwpWas { lwp, .. } => self.reports_lwp(lwp, lwp.doing()),
            Change::LwpCalls { lwp, cpu, .. }
            | Change::LwpFaults { lwp, cpu, .. }
            | Change::LwpUsesSocket { lwp, cpu, .. } => self.reports_lwp(lwp, doing_on(lwp, cpu)),
            Change::LwpWoken { lwp, .. } => self.reports_lwp(lwp, READY),
            Change::LwpRecords { lwp, cpu, .. }
            | Change::LwpRuns { lwp, cpu, .. }
            | Change::LwpStops { lwp, cpu, .. } => {
                self.reports_lwp(lwp, Doing::Running { cpu, mode: lwp.mode() })
            }
            Change::LwpEnds { lwp } => self.reports_end_of_lwp(lwp),
            Change::CpuIdled { .. } => true,
            Change::UserThreadDid { thread, doing, .. } => self.reports_thread(thread, None, doing),
            Change::UserThreadCreated { thread, .. } | Change::UserThreadWoken { thread, .. } => {
                self.reports_thread(thread, None, READY)
            }
            Change::UserThreadNamed { thread } => {
                self.subjects.as_ref().is_none_or(|subjects| subjects.thread(thread))
            }
            Change::UserThreadRuns { thread, lwp, cpu, .. }
            | Change::UserThreadStops { thread, lwp, cpu, .. } => self.reports_poll(thread, lwp, cpu),
            Change::UserThreadEnds { thread } => self.reports_end_of_thread(thread),
        };
        match is_let_through {
            true => self.analysis.change(change),
            false => self.analysis.input(Input::LeftOut(change)),
        }
    }
}
