//! A running recording, analysed window by window: threads, tasks, locks and system calls in one pass.
//!
//! A window's tables are those of `threads`, `tasks`, `locks` and `breakdown` with `--from` and `--to`.

use crate::analysis::{Analysis, Input};
use crate::breakdown::{Breakdown, BreakdownTable};
use crate::dumps::Dumps;
use crate::locks::{Bins, Group, Locks, LocksTable};
use crate::run::Ran;
use crate::run::window::Between;
use crate::tasks::{Task, Tasks, Thresholds};
use crate::threads::{Threads, ThreadsTable};
use std::ops::ControlFlow;
use tracewing_trace::super_trace::{Change, Fold, Name};
use tracewing_trace::{Error, Merge, Recording};
use tracewing_units::Timestamp;

/// What happened in a window.
#[derive(Debug)]
pub struct Window {
    /// Its times, losses, and what the recording can show.
    pub ran: Ran,
    /// By running time, longest first.
    pub threads: ThreadsTable,
    /// The busiest first.
    pub tasks: Vec<Task>,
    /// By waiting time, longest first.
    pub locks: LocksTable,
    /// System calls by process.
    pub breakdown: BreakdownTable,
}

/// The analysis of a running recording.
#[derive(Debug)]
pub struct Live {
    /// `None` while a window is read, and after one that failed.
    between: Option<Between>,
    past: Past,
    /// How many traces the recording had.
    traces: usize,
}

/// What a window needs of the time before it.
#[derive(Debug)]
struct Past {
    /// Owners of locks, and waits. It has no range of its own: it only follows.
    locks: Locks,
    dumps: Dumps,
}

impl Live {
    /// Of a recording that is read from its beginning; the first window begins at `begin`.
    pub fn new(recording: &Recording, begin: Timestamp) -> Self {
        let past = Past { locks: Locks::new(Group::Lock, Bins::default()), dumps: Dumps::default() };
        Self { between: Some(Between::before(recording, begin)), past, traces: recording.traces().len() }
    }

    /// When the next window begins.
    pub fn begin(&self) -> Timestamp {
        self.between.as_ref().map_or(Timestamp::MIN, Between::begin)
    }

    /// Whether a window had an event. Before that, the times of windows are unknown.
    pub fn has_begun(&self) -> bool {
        self.between.as_ref().is_some_and(Between::has_begun)
    }

    /// The recording was opened anew. False if all has to be read again from the beginning: it can now show
    /// more than before.
    pub fn reopen(&mut self, recording: &Recording) -> bool {
        self.past.locks = self.past.locks.same();
        let has_same_traces = self.traces == recording.traces().len();
        has_same_traces && self.between.as_mut().is_some_and(|between| between.follower.reopen(recording))
    }

    /// The window up to `end`, of which `merge` has the messages. `watch` may stop it.
    ///
    /// # Errors
    /// A stream cannot be read.
    pub fn window(
        &mut self,
        recording: &Recording,
        merge: &mut Merge<'_>,
        end: Timestamp,
        watch: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Window, Error> {
        let between = self.between.take().unwrap_or_else(|| Between::before(recording, Timestamp::MIN));
        let mut measures = Measures { past: &mut self.past, now: None, names: Vec::new(), closed: false };
        let closes = |measures: &mut Measures<'_>| measures.closed = true;
        let (ran, between) = between.window(recording, merge, end, &mut measures, closes, watch)?;
        let now = measures.now.unwrap_or_else(|| Now::new(&self.past));
        self.between = Some(between);
        Ok(Window {
            threads: now.threads.finish(&ran),
            tasks: now.tasks.finish(),
            locks: now.locks.finish(&ran),
            breakdown: now.breakdown.finish(&ran),
            ran,
        })
    }
}

/// The analyses of one window, which begin with it.
#[derive(Debug)]
struct Now {
    threads: Threads,
    tasks: Tasks,
    locks: Locks,
    breakdown: Breakdown,
}

impl Now {
    fn new(past: &Past) -> Self {
        let mut this = Self {
            threads: Threads::new(),
            tasks: Tasks::new(Thresholds::default(), false),
            locks: past.locks.same(),
            breakdown: Breakdown::new(),
        };
        for (tid, process, name) in past.dumps.iter() {
            let dumped = Input::Dumped { tid, process, name };
            this.threads.input(dumped);
            this.breakdown.input(dumped);
        }
        this
    }

    fn input(&mut self, input: Input<'_>) {
        self.threads.input(input);
        self.tasks.input(input);
        self.locks.input(input);
        self.breakdown.input(input);
    }
}

/// All of them as one analysis.
#[derive(Debug)]
struct Measures<'p> {
    past: &'p mut Past,
    now: Option<Now>,
    /// Of causes of waiting, by their numbers.
    names: Vec<String>,
    /// Whether what comes is no event, but the end of the window.
    closed: bool,
}

impl Analysis for Measures<'_> {
    const BEFORE: bool = true;

    fn input(&mut self, input: Input<'_>) {
        match input {
            Input::Begins { .. } => {
                let mut now = Now::new(self.past);
                self.names.iter().zip(0..).for_each(|(text, number)| {
                    now.breakdown.input(Input::Name { name: Name(number), text });
                });
                self.now = Some(now);
            }
            Input::Name { text, .. } => self.names.push(text.to_owned()),
            Input::Dumped { tid, process, name } => self.past.dumps.learn(tid, process, name),
            _ => {}
        }
        if !matches!(input, Input::Begins { .. }) {
            self.past.locks.input(input);
        }
        if let Some(now) = &mut self.now {
            now.input(input);
        }
    }
}

impl Fold for Measures<'_> {
    #[inline]
    fn change(&mut self, change: Change<'_>) {
        if !self.closed && matches!(change, Change::LwpEnds { .. } | Change::UserThreadEnds { .. }) {
            self.past.locks.change(change);
        }
        if let Some(now) = &mut self.now {
            now.threads.change(change);
            now.tasks.change(change);
            now.locks.change(change);
            now.breakdown.change(change);
        }
    }
}
