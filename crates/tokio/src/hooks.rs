//! All tasks of a runtime, through hooks that tokio has with `tokio_unstable` only.
//!
//! The tasks that this crate spawned tell everything by themselves, and more than the hooks could: the hooks leave them
//! out ([`Known`]).

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Builder, TaskMeta};
use tokio::task::{Id, coop::has_budget_remaining};
use tracewing::user_thread::{self, Cause, Outcome, UserThread};

thread_local! {
    /// What this thread spawns tells of itself.
    static KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// What the calling thread spawns until this is dropped tells of itself.
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

/// A task that only the hooks know.
struct Task {
    thread: UserThread,
    /// While it runs: what its thread ran before.
    running: Option<Option<UserThread>>,
    ended: bool,
}

/// Spreads the ids of tasks, which are counted, over all numbers.
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

type Part = HashMap<Id, Task, BuildHasherDefault<Spread>>;

/// The tasks of a runtime, by their ids, in parts with a lock each, so that workers seldom meet.
#[derive(Default)]
struct Tasks([Mutex<Part>; 32]);

impl Tasks {
    fn part(&self, id: Id) -> MutexGuard<'_, Part> {
        // Not by the bits that the map itself looks at.
        let part = BuildHasherDefault::<Spread>::default().hash_one(id) >> 32;
        // Whatever panicked left an entry whole.
        self.0[part as usize % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawned(&self, runtime: &str, meta: &TaskMeta<'_>) {
        if KNOWN.get() {
            return;
        }
        let thread = user_thread::create("", runtime, meta.spawned_at());
        self.part(meta.id()).insert(meta.id(), Task { thread, running: None, ended: false });
    }

    fn run(&self, meta: &TaskMeta<'_>) {
        if let Some(task) = self.part(meta.id()).get_mut(&meta.id()) {
            task.running = Some(user_thread::switch(Some(task.thread), Cause::Nested));
        }
    }

    fn stopped(&self, meta: &TaskMeta<'_>) {
        let mut part = self.part(meta.id());
        let Some(task) = part.get_mut(&meta.id()) else { return };
        let cause = if task.ended {
            Cause::Ended
        } else if has_budget_remaining() {
            Cause::Blocked
        } else {
            Cause::Budget
        };
        if let Some(before) = task.running.take() {
            user_thread::switch(before, cause);
        }
        if task.ended {
            part.remove(&meta.id());
        }
    }

    /// The task has ended, in its last run or, if it was cancelled, perhaps between two.
    fn ended(&self, meta: &TaskMeta<'_>) {
        let mut part = self.part(meta.id());
        let Some(task) = part.get_mut(&meta.id()) else { return };
        if task.running.is_some() {
            task.ended = true;
            // An aborted task ends in a run, too.
            user_thread::exit(task.thread, Outcome::Unknown);
        } else {
            user_thread::exit(task.thread, Outcome::Cancelled);
            part.remove(&meta.id());
        }
    }
}

/// Has the runtime tell of its tasks.
pub(crate) fn install(builder: &mut Builder, runtime: Arc<str>) {
    let [spawned, run, stopped, ended] = [(); 4].map({
        let tasks = Arc::new(Tasks::default());
        move |()| tasks.clone()
    });
    builder
        .on_task_spawn(move |meta| spawned.spawned(&runtime, meta))
        .on_before_task_poll(move |meta| run.run(meta))
        .on_after_task_poll(move |meta| stopped.stopped(meta))
        .on_task_terminate(move |meta| ended.ended(meta));
}
