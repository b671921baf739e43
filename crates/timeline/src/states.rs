//! The fold: changes of the super-trace become states of tracks.
//!
//! A state is reported when it ends, and only then is it certain: an assumed state may turn out to be
//! unknown. What an LWP did for a user thread is attributed to that when the user thread stops.

use crate::state::{StateId, StateNames};
use crate::undecided::{Interval, Undecided};
use std::collections::{BTreeMap, HashMap};
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use tracewing_trace::super_trace::{Change, Doing, Lwp, LwpSerial, Name, TaskSerial, UserThread, Waker};
use tracewing_units::{Cpu, Pid, Task, Tid, Timestamp};

/// CPUs below this number are found by it.
const SMALL_CPUS: u32 = 1 << 10;

/// Number of a track, which the [`Sink`] gives.
pub type TrackId = u32;

/// Something with states over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Track {
    /// A CPU: its state is the thread that it runs.
    Cpu(Cpu),
    /// An LWP; numbers are reused after their owners have ended.
    Lwp(Tid),
    /// A user thread, by its number in its process.
    Task(Task),
}

/// What made an LWP or a user thread ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WokenBy {
    /// No event determines it.
    Unknown,
    /// An interrupt or softirq; `None` if no event identifies it.
    Interrupt(Option<Name>),
    /// An LWP, or the user thread that it ran.
    Track(TrackId),
}

/// What is known of an LWP or a user thread at its end, or at the recording's.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The process it belongs to, if the events say: its first thread's number.
    pub process: Option<Pid>,
    /// Its last known name; may be empty.
    pub name: &'a str,
    /// Whether the recording follows it.
    pub is_followed: bool,
}

/// Takes the states of tracks.
pub trait Sink {
    /// A new track; returns its number.
    fn track(&mut self, track: Track) -> TrackId;

    /// An LWP or a user thread was in one state for an interval, which is not empty. Those of a track come in
    /// the order of time; time between them is unknown, or passed before the track was seen.
    fn state(&mut self, of: TrackId, state: StateId, names: &StateNames, from: Timestamp, to: Timestamp);

    /// An LWP ran a user thread for an interval, in which it was in this state.
    fn ran(&mut self, of: TrackId, state: StateId, names: &StateNames, from: Timestamp, to: Timestamp) {
        self.state(of, state, names, from, to);
    }

    /// A CPU ran an LWP that was in this state, or no LWP, for an interval. Intervals of a CPU may overlap
    /// where events contradict each other: then the first report is right.
    fn cpu(
        &mut self,
        of: TrackId,
        lwp: Option<TrackId>,
        state: StateId,
        names: &StateNames,
        from: Timestamp,
        to: Timestamp,
    );

    /// An LWP or a user thread was woken; those of a track come in the order of time. It may have been ready
    /// before, or running.
    fn woken(&mut self, of: TrackId, by: WokenBy, at: Timestamp);

    /// Time of an LWP in user mode up to `until` was of unknown mode: it makes system calls that are not
    /// recorded.
    fn doubt_mode(&mut self, of: TrackId, until: Timestamp);

    /// An LWP or a user thread has ended, or the recording has.
    fn ends(&mut self, of: TrackId, end: End<'_>);

    /// A state dump names the thread of a track, which may have ended. What is known of it otherwise takes
    /// precedence.
    fn dumped(&mut self, of: TrackId, process: Pid, name: &[u8]);
}

/// What is kept for an LWP that runs user threads.
#[derive(Debug)]
struct Pending {
    undecided: Undecided,
    /// Up to then, user mode was of unknown mode.
    doubted: Timestamp,
}

/// The fold that turns the changes of the super-trace into states on tracks.
#[derive(Debug)]
pub struct States<S> {
    /// Takes the states.
    pub sink: S,
    /// The states that have occurred.
    pub names: StateNames,
    folder: PathBuf,
    /// Tracks by the serial number of the LWP or user thread.
    lwps: Vec<Option<TrackId>>,
    tasks: Vec<Option<TrackId>>,
    /// By number; great ones apart.
    cpus: Vec<Option<TrackId>>,
    great_cpus: BTreeMap<Cpu, TrackId>,
    /// The last LWP of each number.
    by_tid: HashMap<Tid, TrackId>,
    /// Indexed by the LWP's serial number.
    pending: Vec<Option<Box<Pending>>>,
    failure: Option<Error>,
}

impl<S: Sink> States<S> {
    /// One that has seen nothing yet; temporary files lie in `folder`.
    pub fn new(sink: S, folder: &Path) -> Self {
        States {
            sink,
            names: StateNames::default(),
            folder: folder.to_owned(),
            lwps: Vec::new(),
            tasks: Vec::new(),
            cpus: Vec::new(),
            great_cpus: BTreeMap::new(),
            by_tid: HashMap::new(),
            pending: Vec::new(),
            failure: None,
        }
    }

    /// Whether a temporary file could not be written: no result is possible then.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Another one that has seen the same, with this sink: it can be finished while this one continues.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub fn same<T>(&mut self, sink: T) -> Result<States<T>> {
        let mut pending = Vec::with_capacity(self.pending.len());
        for of in &mut self.pending {
            let same = |of: &mut Box<Pending>| {
                Ok::<_, Error>(Box::new(Pending { undecided: of.undecided.same()?, doubted: of.doubted }))
            };
            pending.push(of.as_mut().map(same).transpose()?);
        }
        Ok(States {
            sink,
            names: self.names.clone(),
            folder: self.folder.clone(),
            lwps: self.lwps.clone(),
            tasks: self.tasks.clone(),
            cpus: self.cpus.clone(),
            great_cpus: self.great_cpus.clone(),
            by_tid: self.by_tid.clone(),
            pending,
            failure: None,
        })
    }

    /// The sink and the names, at the end of the input.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub fn finish(self) -> Result<(S, StateNames)> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok((self.sink, self.names)),
        }
    }

    /// Takes the next change.
    #[inline(always)]
    pub fn change(&mut self, change: Change<'_>) {
        match change {
            Change::LwpDid { lwp, doing, from, to } if from < to => self.lwp(lwp, doing, from, to),
            Change::LwpRan { lwp, thread } => self.ran(lwp, thread),
            Change::UserThreadDid { thread, doing, from, to } if from < to => {
                let task = self.task_track(thread.serial, thread.id);
                let state = self.names.of(doing, None);
                self.sink.state(task, state, &self.names, from, to);
            }
            Change::CpuIdled { cpu, interrupt, from, to } if from < to => {
                self.idle(cpu, interrupt, from, to);
            }
            Change::LwpWoken { lwp, by, at } => {
                let (of, by) = (self.lwp_track(lwp.serial, lwp.tid), self.waker(by));
                self.sink.woken(of, by, at);
            }
            Change::UserThreadWoken { thread, by, at } => {
                let (of, by) = (self.task_track(thread.serial, thread.id), self.waker(by));
                self.sink.woken(of, by, at);
            }
            Change::LwpHidesCalls { lwp } => self.hides_calls(lwp),
            Change::LwpEnds { lwp } => self.lwp_ends(lwp),
            Change::UserThreadEnds { thread } => self.user_thread_ends(thread),
            _ => {}
        }
    }

    /// The track of the last LWP of a number.
    pub fn last_lwp(&self, tid: Tid) -> Option<TrackId> {
        self.by_tid.get(&tid).copied()
    }

    /// A state dump names a thread.
    pub fn dumped(&mut self, tid: Tid, process: Pid, name: &[u8]) {
        // Numbers are reused: the last one is meant.
        if let Some(track) = self.by_tid.get(&tid) {
            self.sink.dumped(*track, process, name);
        }
    }

    #[inline]
    fn lwp(&mut self, lwp: &Lwp, doing: Doing, from: Timestamp, to: Timestamp) {
        let track = self.lwp_track(lwp.serial, lwp.tid);
        let state = self.names.of(doing, lwp.waits_for);
        self.sink.state(track, state, &self.names, from, to);
        if lwp.runs_user_thread() {
            let pushed = self.pending(lwp.serial).undecided.push(Interval { state, from, to });
            self.check(pushed);
        }
        if let Doing::Running { cpu, .. } = doing {
            let cpu = self.cpu_track(cpu);
            self.sink.cpu(cpu, Some(track), state, &self.names, from, to);
        }
    }

    fn idle(&mut self, cpu: Cpu, interrupt: Option<Name>, from: Timestamp, to: Timestamp) {
        let cpu = self.cpu_track(cpu);
        let state = match interrupt {
            Some(_) => self.names.of_interrupt(interrupt),
            None => StateId::IDLE,
        };
        self.sink.cpu(cpu, None, state, &self.names, from, to);
    }

    /// Attributes the LWP's time since the last call to a user thread, or to none.
    fn ran(&mut self, lwp: &Lwp, thread: Option<&UserThread>) {
        let Some(mut pending) = self.pending.get_mut(lwp.serial.0).and_then(Option::take) else { return };
        let done = match thread {
            Some(thread) => {
                let task = self.task_track(thread.serial, thread.id);
                let (sink, names, doubted) = (&mut self.sink, &self.names, pending.doubted);
                pending.undecided.drain(|Interval { state, from, to }| {
                    let is_doubted = to <= doubted && names.class(state) == crate::Class::User;
                    let state = if is_doubted { StateId::RUNNING } else { state };
                    sink.ran(task, state, names, from, to);
                    Ok(())
                })
            }
            None => {
                pending.undecided.clear();
                Ok(())
            }
        };
        self.pending[lwp.serial.0] = Some(pending);
        self.check(done);
    }

    /// The track of a waker.
    fn waker(&mut self, by: &Waker) -> WokenBy {
        match *by {
            Waker { interrupt: Some(name), .. } => WokenBy::Interrupt(Some(name)),
            // The idle thread wakes nothing, so it was an interrupt that was not recorded.
            Waker { tid: Some(Tid::IDLE), .. } => WokenBy::Interrupt(None),
            Waker { user_thread: Some(id), user_thread_serial: Some(serial), .. } => {
                WokenBy::Track(self.task_track(serial, id))
            }
            Waker { tid: Some(tid), lwp: Some(serial), .. } => WokenBy::Track(self.lwp_track(serial, tid)),
            _ => WokenBy::Unknown,
        }
    }

    fn hides_calls(&mut self, lwp: &Lwp) {
        let (track, until) = (self.lwp_track(lwp.serial, lwp.tid), lwp.reported_to());
        self.sink.doubt_mode(track, until);
        if let Some(Some(pending)) = self.pending.get_mut(lwp.serial.0) {
            pending.doubted = until;
        }
    }

    fn lwp_ends(&mut self, lwp: &Lwp) {
        let track = self.lwp_track(lwp.serial, lwp.tid);
        let end = End { process: lwp.process, name: &lwp.name, is_followed: lwp.followed };
        self.sink.ends(track, end);
        if let Some(pending) = self.pending.get_mut(lwp.serial.0) {
            *pending = None;
        }
    }

    fn user_thread_ends(&mut self, thread: &UserThread) {
        let track = self.task_track(thread.serial, thread.id);
        let end = End { process: thread.process, name: &thread.name, is_followed: true };
        self.sink.ends(track, end);
    }

    /// The track of an LWP; a new one if it has none yet.
    #[inline]
    pub fn lwp_track(&mut self, serial: LwpSerial, tid: Tid) -> TrackId {
        if let Some(known) = self.known_lwp(serial) {
            return known;
        }
        let new = self.sink.track(Track::Lwp(tid));
        *at(&mut self.lwps, serial.0) = Some(new);
        self.by_tid.insert(tid, new);
        new
    }

    /// The track of an LWP if it has one.
    #[inline]
    pub fn known_lwp(&self, serial: LwpSerial) -> Option<TrackId> {
        *self.lwps.get(serial.0)?
    }

    /// The track of a user thread; a new one if it has none yet.
    #[inline]
    pub fn task_track(&mut self, serial: TaskSerial, id: Task) -> TrackId {
        if let Some(known) = self.known_task(serial) {
            return known;
        }
        let new = self.sink.track(Track::Task(id));
        *at(&mut self.tasks, serial.0) = Some(new);
        new
    }

    /// The track of a user thread if it has one.
    #[inline]
    pub fn known_task(&self, serial: TaskSerial) -> Option<TrackId> {
        *self.tasks.get(serial.0)?
    }

    /// The track of a CPU; a new one if it has none yet.
    #[inline]
    pub fn cpu_track(&mut self, cpu: Cpu) -> TrackId {
        match self.cpus.get(cpu.0 as usize) {
            Some(Some(known)) => *known,
            _ => self.find_cpu(cpu),
        }
    }

    #[cold]
    fn find_cpu(&mut self, cpu: Cpu) -> TrackId {
        if cpu.0 >= SMALL_CPUS {
            return *self.great_cpus.entry(cpu).or_insert_with(|| self.sink.track(Track::Cpu(cpu)));
        }
        let new = self.sink.track(Track::Cpu(cpu));
        *at(&mut self.cpus, cpu.0 as usize) = Some(new);
        new
    }

    fn pending(&mut self, serial: LwpSerial) -> &mut Pending {
        at(&mut self.pending, serial.0).get_or_insert_with(|| {
            Box::new(Pending { undecided: Undecided::new(&self.folder), doubted: Timestamp::MIN })
        })
    }

    #[inline]
    fn check(&mut self, result: Result<()>) {
        if let Err(failure) = result {
            self.failure.get_or_insert(failure);
        }
    }
}

/// The element at a small index; grows the vector if needed.
fn at<T: Default>(of: &mut Vec<T>, number: usize) -> &mut T {
    if of.len() <= number {
        of.resize_with(number + 1, T::default);
    }
    &mut of[number]
}
