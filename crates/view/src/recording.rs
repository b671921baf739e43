//! A recording and its index, which is made while the recording is, or is filled if there is none.

use crate::choice::Choice;
use crate::jobs::Jobs;
use crate::marks::Marks;
use crate::members::Members;
use crate::notes::Notes;
use crate::search::Searches;
use crate::series::AllSeries;
use std::collections::HashMap;
use std::ops::{ControlFlow, Deref};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tracewing_index::{Cache, Changes, Error, Index, Look, LossMark, RowId, RowKind};
use tracewing_trace::{Outline, Progress, Recording};

/// A recording that grows is opened anew for questions about its events, but not more often.
const OPENED: Duration = Duration::from_secs(1);

/// Parts of an outline: as many as pixels of a wide screen.
const PARTS: usize = 2048;

/// The number of the row that stands for all CPUs.
pub(crate) const ALL_CPUS: u32 = u32::MAX;

/// A row that stands for all tasks of a process has the number of the process, with this bit. No index has so
/// many rows.
const TASKS: u32 = 1 << 30;

/// A recording that is viewed.
#[derive(Debug)]
pub(crate) struct Viewed {
    pub(crate) searches: Searches,
    pub(crate) jobs: Jobs,
    pub(crate) marks: Marks,
    pub(crate) series: AllSeries,
    pub(crate) notes: Notes,
    /// When its recorder began, in nanoseconds of real time, if it is known.
    pub(crate) began: OnceLock<Option<i64>>,
    /// Whether it is compared with another one.
    pub(crate) is_compared: bool,
    /// The same for both if a recording is compared with itself.
    source: Arc<Source>,
}

/// A recording and its index.
#[derive(Debug)]
pub(crate) struct Source {
    inputs: Vec<PathBuf>,
    /// As it was at a time.
    recording: Mutex<(Arc<Recording>, Instant)>,
    cache: Cache,
    /// Whether it is followed while it is made.
    is_followed: bool,
    ready: RwLock<Option<Arc<Ready>>>,
    /// Why there is no index, or why it does not grow any more.
    failure: OnceLock<String>,
    /// Bytes of the recording that were read, and that are to be read, for the index.
    done: AtomicU64,
    total: AtomicU64,
    is_stopped: AtomicBool,
    /// While the index is filled, where the recording has how much; another thread finds it.
    outline: Arc<OnceLock<Outline>>,
}

/// An index, and what is asked often.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) index: Index,
    /// The members of groups: of a process, its threads and tasks.
    members: HashMap<RowId, Vec<RowId>>,
    /// Those that the picture of a group, or of all CPUs, sums up; found when it is drawn first.
    drawn: HashMap<u32, OnceLock<Members>>,
    /// Of processes that have tasks of several names, the rows of these.
    names: HashMap<RowId, Vec<RowId>>,
    pub(crate) cpus: Vec<RowId>,
    /// The rows that pages have; found when they are asked for first.
    pub(crate) choice: OnceLock<Choice>,
    losses: OnceLock<Vec<LossMark>>,
    /// While there will be more: which index this is, and what differs from earlier ones.
    pub(crate) grows: Option<(u64, Changes)>,
    /// Whether all of the recording is there, but not all of it has been read.
    pub(crate) is_filling: bool,
    /// Whether there were other ones before it.
    has_grown: bool,
}

impl Viewed {
    pub(crate) fn new(recording: Recording, cache: Cache, is_followed: bool) -> Self {
        Self::of(Arc::new(Source {
            inputs: recording.inputs().to_vec(),
            recording: Mutex::new((Arc::new(recording), Instant::now())),
            cache,
            is_followed,
            ready: RwLock::default(),
            failure: OnceLock::new(),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            outline: Arc::default(),
        }))
    }

    fn of(source: Arc<Source>) -> Self {
        Viewed {
            searches: Searches::default(),
            jobs: Jobs::default(),
            marks: Marks::default(),
            series: AllSeries::default(),
            notes: Notes::default(),
            began: OnceLock::new(),
            is_compared: false,
            source,
        }
    }

    /// The same recording once more.
    pub(crate) fn again(&self) -> Self {
        Self::of(self.source.clone())
    }

    /// Whether another one has the same index, too.
    pub(crate) fn is_same(&self, other: &Viewed) -> bool {
        Arc::ptr_eq(&self.source, &other.source)
    }

    /// Ends [`Source::prepare`], and all that reads the recording.
    pub(crate) fn stop(&self) {
        self.source.is_stopped.store(true, Ordering::Relaxed);
        self.searches.stop();
        self.jobs.stop();
        self.marks.stop();
        self.series.stop();
    }
}

impl Deref for Viewed {
    type Target = Source;

    fn deref(&self) -> &Source {
        &self.source
    }
}

impl Source {
    /// The index, or why there is none; `None` while it is made.
    pub(crate) fn ready(&self) -> Option<Result<Arc<Ready>, &str>> {
        let ready = self.ready.read().unwrap_or_else(PoisonError::into_inner).clone();
        ready.map(Ok).or_else(|| Some(Err(self.failure()?)))
    }

    /// Why the index does not grow any more.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Its folders.
    pub(crate) fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// The recording; one that grows as it was at most a second ago.
    pub(crate) fn recording(&self) -> Arc<Recording> {
        let is_growing = self.is_followed
            && self.ready().is_some_and(|ready| ready.is_ok_and(|ready| ready.grows.is_some()));
        let mut known = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        if is_growing
            && known.1.elapsed() > OPENED
            // Metadata may be half written: the earlier one is good enough.
            && let Ok(newer) = Recording::open(&self.inputs)
        {
            *known = (Arc::new(newer), Instant::now());
        }
        known.0.clone()
    }

    /// How many bytes of how many were read for the index. Nothing else is published with the numbers.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Whether more of the recording is being read, or will be.
    pub(crate) fn is_being_read(&self) -> bool {
        let is_whole = |ready: Arc<Ready>| !ready.is_filling;
        self.failure().is_none() && !self.ready().is_some_and(|ready| ready.is_ok_and(is_whole))
    }

    /// Where the recording has how much, while its index is filled.
    pub(crate) fn outline(&self) -> Option<&Outline> {
        self.outline.get()
    }

    /// Finds the index or makes it; returns when it is complete, or was stopped.
    pub(crate) fn prepare(&self) {
        match if self.is_followed { self.follow() } else { self.fill() } {
            Ok(Some(index)) => {
                let (checkpoints, lacks) = (index.checkpoints(), index.tail().lacks_checkpoints);
                checkpoints.into_iter().for_each(|kept| self.recording().use_checkpoints(Box::new(kept)));
                self.show(index, None);
                if lacks {
                    self.complete();
                }
            }
            // It was stopped.
            Ok(None) => {}
            Err(error) => {
                let _ = self.failure.set(error.to_string());
            }
        }
    }

    /// Makes an index with checkpoints in place of the one that was made while the recording was. What is
    /// shown does not need it; if it cannot be made, analyses read from the beginning.
    fn complete(&self) {
        let recording = self.recording();
        if self.cache.make(&recording, &mut |_| self.goes_on()).is_ok() {
            let kept = self.cache.checkpoints(&recording);
            kept.into_iter().for_each(|kept| recording.use_checkpoints(Box::new(kept)));
        }
    }

    fn show(&self, index: Index, grows: Option<(u64, Changes)>) {
        let has_grown = grows.is_some() || self.ready().is_some();
        let is_filling = grows.is_some() && !self.is_followed;
        let ready = Arc::new(Ready { is_filling, has_grown, ..Ready::new(index, grows) });
        *self.ready.write().unwrap_or_else(PoisonError::into_inner) = Some(ready);
    }

    /// Finds the index or makes it, and shows what there is of it.
    fn fill(&self) -> Result<Option<Index>, Error> {
        let recording = self.recording();
        if let Some(index) = self.cache.find(&recording) {
            return Ok(Some(index));
        }
        let (outline, of) = (self.outline.clone(), recording.clone());
        // The index is filled without an outline, too. With very many packets, it takes a while: it is not
        // waited for when the viewer ends.
        let _ = std::thread::Builder::new().name("outline".to_owned()).spawn(move || {
            let found = of.outline(PARTS, &mut || ControlFlow::Continue(()));
            found.into_iter().for_each(|found| _ = outline.set(found));
        });
        self.cache.fill(&recording, &mut self.watch())
    }

    /// Shows what there is of an index.
    fn watch(&self) -> impl FnMut(Look) -> ControlFlow<()> {
        let mut version = 0;
        move |look| match look {
            Look::Waits => self.goes_on(),
            Look::Reads(progress) => self.reads(progress),
            Look::Grown(index, changed) => {
                version += 1;
                self.show(*index, Some((version, changed)));
                self.goes_on()
            }
        }
    }

    fn follow(&self) -> Result<Option<Index>, Error> {
        let index = self.cache.follow(&self.inputs, &mut self.watch())?;
        // What it is now is what the index is of.
        let mut known = self.recording.lock().unwrap_or_else(PoisonError::into_inner);
        if index.is_some() {
            *known = (Arc::new(Recording::open(&self.inputs)?), Instant::now());
        }
        Ok(index)
    }

    fn reads(&self, progress: Progress) -> ControlFlow<()> {
        self.done.store(progress.done, Ordering::Relaxed);
        self.total.store(progress.total, Ordering::Relaxed);
        self.goes_on()
    }

    fn goes_on(&self) -> ControlFlow<()> {
        match self.is_stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Ready {
    fn new(index: Index, grows: Option<(u64, Changes)>) -> Self {
        let (mut members, mut cpus) = (HashMap::<_, Vec<RowId>>::new(), Vec::new());
        let mut names = HashMap::<_, Vec<RowId>>::new();
        for (id, row) in index.rows() {
            match (row.kind, row.parent) {
                (RowKind::Cpu(_), _) => cpus.push(id),
                (RowKind::Tasks(_), Some(process)) => names.entry(process).or_default().push(id),
                _ => {}
            }
            if !row.is_part() && !row.is_group() {
                let groups = [row.parent, row.group].into_iter().flatten();
                groups.for_each(|group| members.entry(group).or_default().push(id));
            }
        }
        names.retain(|_, names| names.len() > 1);
        let groups = index.rows().filter(|(_, row)| row.is_group()).map(|(id, _)| id.0);
        let drawn = groups.chain([ALL_CPUS]).map(|number| (number, OnceLock::new())).collect();
        let (choice, losses, is_filling, has_grown) = Default::default();
        Ready { index, members, drawn, names, cpus, choice, losses, grows, is_filling, has_grown }
    }

    /// Its losses by time.
    pub(crate) fn losses(&self) -> &[LossMark] {
        self.losses.get_or_init(|| {
            let mut losses = self.index.tail().losses.clone();
            losses.sort_by_key(|loss| (loss.from, loss.to, loss.scope, loss.cpu));
            losses
        })
    }

    /// Whether a row of this number may have existed in an earlier index of the recording, and has another
    /// number now.
    pub(crate) fn is_gone(&self, number: u32) -> bool {
        let is_there = number == ALL_CPUS || self.names(number).is_some() || self.index.has(RowId(number));
        self.has_grown && !is_there
    }

    /// The threads and tasks of a process, or the tasks of a name.
    pub(crate) fn members(&self, group: RowId) -> &[RowId] {
        self.members.get(&group).map_or(&[], Vec::as_slice)
    }

    /// The number of the row that stands for all tasks of a process, and the rows of their names, if there
    /// are several.
    pub(crate) fn all_tasks(&self, process: RowId) -> Option<(u32, &[RowId])> {
        Some((process.0 | TASKS, self.names.get(&process)?))
    }

    /// The rows of names that a number stands for which is that of all tasks of a process.
    pub(crate) fn names(&self, number: u32) -> Option<&[RowId]> {
        let process = RowId(Some(number).filter(|number| number & TASKS != 0)? & !TASKS);
        self.names.get(&process).map(Vec::as_slice)
    }

    /// The row of a number; of one that stands for all tasks of a process, that of the process.
    pub(crate) fn row_of(&self, number: u32) -> RowId {
        RowId(if self.names(number).is_some() { number & !TASKS } else { number })
    }

    /// What the picture of a group sums up: the threads of a process, the tasks of a name, or all CPUs.
    pub(crate) fn drawn(&self, group: u32) -> Option<&Members> {
        let all = if group == ALL_CPUS { &self.cpus[..] } else { self.members(RowId(group)) };
        // The tasks of a process run on its threads.
        let is_process =
            group != ALL_CPUS && matches!(self.index.row(RowId(group)).kind, RowKind::Process(_));
        let is_drawn = |id: &RowId| !is_process || matches!(self.index.row(*id).kind, RowKind::Thread(_));
        let found = || Members::new(&self.index, all.iter().copied().filter(is_drawn));
        self.drawn.get(&group).map(|known| known.get_or_init(found))
    }
}
