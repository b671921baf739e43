//! All tasks of a runtime, through hooks that tokio has only with `tokio_unstable`.
//!
//! Tasks that this crate spawned record themselves, and more than the hooks could: the hooks leave them out
//! ([`Known`]).
//!
//! While a runtime ends, tokio calls the hooks in other orders: a task that is spawned then has ended before
//! `on_task_spawn` is called, and is never recorded. A task that has ended on one worker may be taken from
//! another's queue, and the hooks around a poll are called without a poll.
//!
//! In general, when the hook after a poll is called, another worker may already run the task, or have run it
//! to its end: so each thread keeps its own list of what it runs ([`RUNS`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Builder, TaskMeta};
use tokio::task::{Id, coop::has_budget_remaining};
use tracewing::user_thread::{self, Cause, Outcome, Reported, UserThread};

thread_local! {
    /// Whether tasks that this thread spawns record themselves.
    static KNOWN: Cell<bool> = const { Cell::new(false) };
    /// The last task that ended on this thread without having been spawned.
    static STILLBORN: Cell<Option<Id>> = const { Cell::new(None) };
    /// The hooked tasks that this thread runs, the innermost last.
    static RUNS: RefCell<Vec<Run>> = const { RefCell::new(Vec::new()) };
}

/// A task that a thread runs.
struct Run {
    id: Id,
    /// The user thread that ran before on this thread.
    before: Option<UserThread>,
    ended: bool,
}

/// Until this is dropped, tasks that the calling thread spawns record themselves.
pub(crate) struct Known(bool);

impl Known {
    pub fn begin() -> Self {
        Self(KNOWN.replace(true))
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        KNOWN.set(self.0);
    }
}

/// Hashes task ids, which are consecutive, to the whole range of numbers.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, id: u64) {
        const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15; // of 2^64
        self.0 = id.wrapping_mul(GOLDEN_RATIO);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0.rotate_left(8) ^ u64::from(*byte));
        }
    }
}

/// A task of the runtime.
struct Task {
    thread: UserThread,
    reported: Reported,
}

impl Task {
    /// Reports it to recordings that began after its creation.
    fn existed(&mut self, runtime: &str, meta: &TaskMeta<'_>) {
        let describe = || user_thread::describe("", runtime, meta.spawned_at());
        user_thread::existed(self.thread, &mut self.reported, describe);
    }
}

type Part = HashMap<Id, Task, BuildHasherDefault<Spread>>;

/// The tasks of a runtime, by their ids, in parts with a lock each, so that workers seldom contend.
#[derive(Default)]
struct Tasks([Mutex<Part>; 32]);

impl Tasks {
    fn part(&self, id: Id) -> MutexGuard<'_, Part> {
        // Not the bits that the map itself uses.
        let part = BuildHasherDefault::<Spread>::default().hash_one(id) >> 32;
        // A panic leaves every entry whole.
        self.0[part as usize % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawned(&self, runtime: &str, meta: &TaskMeta<'_>) {
        if STILLBORN.take() == Some(meta.id()) || KNOWN.get() {
            return;
        }
        let reported = Reported::at_creation();
        let thread = user_thread::create("", runtime, meta.spawned_at());
        self.part(meta.id()).insert(meta.id(), Task { thread, reported });
    }

    fn run(&self, runtime: &str, meta: &TaskMeta<'_>) {
        let id = meta.id();
        let thread = match self.part(id).get_mut(&id) {
            None => return,
            Some(task) => {
                task.existed(runtime, meta);
                task.thread
            }
        };
        let before = user_thread::switch(Some(thread), Cause::Nested);
        RUNS.with_borrow_mut(|runs| runs.push(Run { id, before, ended: false }));
    }

    /// Handles the end of a run; another worker may already have begun the next one.
    fn stopped(meta: &TaskMeta<'_>) {
        let taken = RUNS.with_borrow_mut(|runs| {
            let place = runs.iter().rposition(|run| run.id == meta.id())?;
            runs.drain(place..).next()
        });
        let Some(run) = taken else { return };
        let cause = if run.ended {
            Cause::Ended
        } else if has_budget_remaining() {
            // It may have been woken meanwhile: no hook is called for wakes.
            Cause::Pending
        } else {
            Cause::Budget
        };
        user_thread::switch(run.before, cause);
    }

    /// Handles the end of a task, in its last run or, if it was cancelled, perhaps between two runs.
    fn ended(&self, runtime: &str, meta: &TaskMeta<'_>) {
        let Some(mut task) = self.part(meta.id()).remove(&meta.id()) else {
            return STILLBORN.set(Some(meta.id()));
        };
        task.existed(runtime, meta);
        let runs = RUNS.with_borrow_mut(|runs| {
            let run = runs.iter_mut().rfind(|run| run.id == meta.id());
            run.map(|run| run.ended = true).is_some()
        });
        // An aborted task also ends in a run.
        user_thread::exit(task.thread, if runs { Outcome::Unknown } else { Outcome::Cancelled });
    }
}

impl Drop for Tasks {
    /// The runtime is gone, and with it each task whose end no hook reported: a task that a worker shut down
    /// while another thread spawned it.
    fn drop(&mut self) {
        for part in &mut self.0 {
            let tasks = std::mem::take(part.get_mut().unwrap_or_else(PoisonError::into_inner));
            tasks.into_values().for_each(|task| user_thread::exit(task.thread, Outcome::Cancelled));
        }
    }
}

/// Makes the runtime report its tasks.
pub(crate) fn install(builder: &mut Builder, runtime: Arc<str>) {
    let tasks = Arc::new(Tasks::default());
    let [spawned, run, ended] = [(); 3].map(|()| (tasks.clone(), runtime.clone()));
    builder
        .on_task_spawn(move |meta| spawned.0.spawned(&spawned.1, meta))
        .on_before_task_poll(move |meta| run.0.run(&run.1, meta))
        .on_after_task_poll(Tasks::stopped)
        .on_task_terminate(move |meta| ended.0.ended(&ended.1, meta));
}
