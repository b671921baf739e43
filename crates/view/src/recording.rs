//! A recording and its index, which is made if there is none.

use crate::jobs::Jobs;
use crate::notes::Notes;
use crate::search::Searches;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tracewing_index::{Cache, Class, Error, Index, RowId, RowKind, Window};
use tracewing_trace::Recording;
use tracewing_units::Duration;

/// A recording that is viewed.
#[derive(Debug)]
pub(crate) struct Viewed {
    pub(crate) recording: Arc<Recording>,
    pub(crate) searches: Searches,
    pub(crate) jobs: Jobs,
    pub(crate) notes: Notes,
    cache: Cache,
    ready: OnceLock<Result<Ready, String>>,
    /// Bytes of the recording that were read, and that are to be read, for the index.
    done: AtomicU64,
    total: AtomicU64,
    is_stopped: AtomicBool,
}

/// An index, and what is asked often.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) index: Index,
    /// Time on CPUs of each row, in nanoseconds; of processes, that of their threads.
    pub(crate) used: Vec<Duration>,
    /// The members of each row that is a process: threads and tasks.
    pub(crate) members: Vec<Vec<RowId>>,
    pub(crate) cpus: Vec<RowId>,
}

impl Viewed {
    pub(crate) fn new(recording: Recording, cache: Cache) -> Self {
        Viewed {
            recording: Arc::new(recording),
            searches: Searches::default(),
            jobs: Jobs::default(),
            notes: Notes::default(),
            cache,
            ready: OnceLock::new(),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The index, or why there is none; `None` while it is made.
    pub(crate) fn ready(&self) -> Option<Result<&Ready, &str>> {
        self.ready.get().map(|ready| ready.as_ref().map_err(String::as_str))
    }

    /// How many bytes of how many were read for the index. Nothing else is published with the numbers.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Finds the index or makes it; returns when it is there, or was stopped.
    pub(crate) fn prepare(&self) {
        let prepared = self.find().map_err(|error| error.to_string());
        let _ = self.ready.set(prepared);
    }

    /// Ends [`Viewed::prepare`], and all searches and analyses.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.searches.stop();
        self.jobs.stop();
    }

    fn find(&self) -> Result<Ready, Error> {
        if let Some(index) = self.cache.find(&self.recording) {
            return Ready::new(index);
        }
        self.cache.make(&self.recording, &mut |progress| {
            self.done.store(progress.done, Ordering::Relaxed);
            self.total.store(progress.total, Ordering::Relaxed);
            match self.is_stopped.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        Ready::new(self.cache.find(&self.recording).ok_or(tracewing_trace::Error::Stopped)?)
    }
}

impl Ready {
    fn new(index: Index) -> Result<Self, Error> {
        let count = index.tail().rows.len();
        let whole = Window::covering(Duration::ZERO, index.tail().length, 2);
        let (mut used, mut members) = (vec![Duration::ZERO; count], vec![Vec::new(); count]);
        let mut cpus = Vec::new();
        for (id, row) in index.rows() {
            let buckets = index.picture(id, whole)?;
            let running = |class: &Class| class.is_running();
            let times = buckets.iter().flat_map(|bucket| {
                Class::ALL
                    .iter()
                    .filter(|class| running(class))
                    .map(|class| bucket.content.times[*class as usize])
            });
            let time: Duration = times.sum();
            used[id.0 as usize] += time;
            if let RowKind::Cpu(_) = row.kind {
                cpus.push(id);
            }
            if let Some(parent) = row.parent.filter(|_| !row.is_part()) {
                members[parent.0 as usize].push(id);
                // A task runs on a thread of the same process, whose time this is.
                if let RowKind::Thread(_) = row.kind {
                    used[parent.0 as usize] += time;
                }
            }
        }
        Ok(Ready { index, used, members, cpus })
    }
}
