//! A program that records itself: the buffers, their consumer and the trace folder, all in one process.
//!
//! The files are those of `tracewing record`, made by the same code (crate `consumer`), without kernel
//! events. One thread drains the buffers periodically, and a second one writes to the disk. A flight recorder
//! has only one, which sleeps until a snapshot is requested, and writes it itself.

mod bell;
mod wishes;

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tracewing_abi::region::{Clock, Geometry, Mode, Protocol};
use tracewing_consumer::classes::{Classes, clock_class};
use tracewing_consumer::clock::{ClockChoice, TraceClock};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::firsts::Firsts;
use tracewing_consumer::folder::{
    BufferDescription, Description, Folder, ProcessDescription, SnapshotDescription, State,
};
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::memory::{SUB_BUFFER_BYTES, SUB_BUFFERS, possible_cpus};
use tracewing_consumer::pace::{FLUSH, Pace};
use tracewing_consumer::snapshot::{Contents, Snapshot, Writers};
use tracewing_consumer::summary::StreamSummary;
use tracewing_consumer::trace::UserTrace;
use tracewing_rules::{Rule, Rules, TooManyRules};
use tracewing_vocabulary::Pid;

use crate::agent::{self, ClassTable};
use bell::{Bell, Order};
use wishes::Wishes;

/// A recording that the program makes of itself. It ends when this is dropped, or with [`Session::stop`],
/// which also returns its results.
///
/// It contains the events of this copy of the crate, in all threads; also those of forked children if the
/// emitting thread has restartable sequences (x86-64, glibc 2.35), until the parent ends the session. Up to
/// eight recordings see a program at a time, sessions and `tracewing record`, each with its own rules and
/// buffers.
///
/// ```no_run
/// #[derive(tracewing::Event)]
/// struct Enqueued {
///     id: u64,
/// }
///
/// let session = tracewing::Session::builder().output("trace").start()?;
/// tracewing::emit!(Enqueued { id: 1 });
/// let summary = session.stop()?;
/// assert_eq!(summary.lost, 0);
/// # Ok::<(), tracewing::SessionError>(())
/// ```
#[must_use = "the recording ends when the session is dropped"]
#[derive(Debug)]
pub struct Session {
    worker: Option<Worker>,
    /// A forked child inherits the session without its thread.
    process: u32,
}

#[derive(Debug)]
struct Worker {
    bell: Arc<Bell>,
    is_flight_recorder: bool,
    slot: usize,
    wishes: Arc<Wishes>,
    thread: JoinHandle<Result<SessionSummary, SessionError>>,
}

/// What a recording, or a snapshot of it, came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The trace folder. Of a flight recorder, the last snapshot's; empty without one.
    pub folder: PathBuf,
    /// Events in it.
    pub events: u64,
    /// Events that were lost; `tracewing.json` in the folder says why and when.
    pub lost: u64,
    /// Bytes of packets.
    pub bytes: u64,
}

/// Why a program could not record itself, or not to the end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// As many recordings as can see a program see it already; or the system has no memory for what the
    /// program needs to take part.
    #[error("this program takes part in eight recordings already, or has no memory for one more")]
    CannotTakePart,
    /// Sites could not be switched on or off: the kernel does not let the program change its code, or a
    /// uprobe is on them. The others were.
    #[error("{failed} instrumentation points could not be switched: {why}")]
    NotSwitched {
        /// How many.
        failed: usize,
        /// Why the first could not.
        why: String,
    },
    /// The folder, the clock or the buffers.
    #[error(transparent)]
    Recording(#[from] tracewing_consumer::Error),
    /// The system refuses what every program needs.
    #[error("cannot {action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A snapshot was asked of a session that writes everything anyway, or has ended.
    #[error("the session is no flight recorder; begin it with `SessionBuilder::flight_recorder`")]
    NotFlightRecorder,
    /// The session has as many rules as it can have.
    #[error(transparent)]
    Rules(#[from] TooManyRules),
    /// The session was begun by the process that this one was forked from, and continues there.
    #[error("the session belongs to the parent process")]
    OfParent,
}

/// How a [`Session`] is to record.
#[derive(Debug, Clone)]
#[must_use = "nothing is recorded before `start`"]
pub struct SessionBuilder {
    output: PathBuf,
    rules: Rules,
    sub_buffer_bytes: usize,
    sub_buffers: usize,
    flush: Duration,
    clock: ClockChoice,
    flight_recorder: bool,
}

impl Session {
    /// A recording of all events into the folder `tracewing`, unless its setters say otherwise.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            output: "tracewing".into(),
            rules: Rules::new(),
            sub_buffer_bytes: SUB_BUFFER_BYTES,
            sub_buffers: SUB_BUFFERS,
            flush: FLUSH,
            clock: ClockChoice::Auto,
            flight_recorder: false,
        }
    }

    /// Writes the content of a flight recorder's buffers into a new folder: a complete trace with everything
    /// that was emitted before the call and is still in the buffers. Recording continues; the next
    /// snapshot contains the same events again as long as the buffers hold them.
    ///
    /// Any thread may call it, also from a panic hook, but not from a signal handler.
    ///
    /// # Errors
    /// [`SessionError::NotFlightRecorder`]; or the folder cannot be written, or exists and is not empty.
    pub fn snapshot(&self, folder: impl Into<PathBuf>) -> Result<SessionSummary, SessionError> {
        let worker = self.worker.as_ref().ok_or(SessionError::NotFlightRecorder)?;
        if self.process != std::process::id() {
            return Err(SessionError::OfParent);
        }
        // The session's own thread, panicking, would wait for itself.
        if !worker.is_flight_recorder || worker.thread.thread().id() == thread::current().id() {
            return Err(SessionError::NotFlightRecorder);
        }
        let (done, result) = mpsc::channel();
        worker.bell.snapshot(Order { folder: folder.into(), done });
        // A thread that is gone has dropped the other end.
        result.recv().unwrap_or(Err(SessionError::NotFlightRecorder))
    }

    /// Changes what is recorded: of all rules including this one, the last that matches a class decides. When
    /// it returns, disabled events are not recorded any more (if the program has restartable sequences;
    /// otherwise except events that threads had begun), and enabled ones are. Forked children are not
    /// affected.
    ///
    /// # Errors
    /// [`SessionError::NotSwitched`]; there are too many rules; the metadata cannot be written; or the
    /// session is the parent process's.
    pub fn rule(&self, rule: Rule) -> Result<(), SessionError> {
        let worker = self.worker.as_ref().ok_or(SessionError::OfParent)?;
        if self.process != std::process::id() {
            return Err(SessionError::OfParent);
        }
        // First events of classes fall under the rules of their time.
        if worker.thread.thread().id() != thread::current().id() {
            worker.bell.settle(|| worker.thread.is_finished());
        }
        let _turn = wishes::turn();
        let grants = worker.wishes.change(rule)?;
        switched(agent::change(worker.slot, grants.into_iter()))?;
        match worker.wishes.state().error.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Records nothing until [`Session::resume`]: one store, whatever the number of classes and threads. An
    /// event that a thread has begun may still be recorded.
    pub fn pause(&self) {
        self.set_majors(0);
    }

    /// Continues after [`Session::pause`].
    pub fn resume(&self) {
        self.set_majors(u64::MAX);
    }

    fn set_majors(&self, mask: u64) {
        if let Some(worker) = &self.worker {
            agent::set_majors(worker.slot, mask);
        }
    }

    /// Ends the recording and completes the trace folder.
    ///
    /// # Errors
    /// The trace could not be written to its end; what is in the folder is readable.
    pub fn stop(mut self) -> Result<SessionSummary, SessionError> {
        self.end().unwrap_or(Err(SessionError::OfParent))
    }

    fn end(&mut self) -> Option<Result<SessionSummary, SessionError>> {
        let Worker { bell, thread, .. } = self.worker.take()?;
        if self.process != std::process::id() {
            // The thread is not here, and the standard library must not look for it.
            std::mem::forget((bell, thread));
            return None;
        }
        bell.stop();
        Some(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl SessionBuilder {
    /// The trace folder; must not exist, or be empty.
    pub fn output(mut self, folder: impl Into<PathBuf>) -> Self {
        self.output = folder.into();
        self
    }

    /// Records only events whose names (`provider:event`) match the shell pattern, or one of several. Short
    /// for a [`rule`](Self::rule) that enables them.
    pub fn event(self, pattern: impl Into<String>) -> Self {
        self.rule(Rule::enable([pattern.into()]))
    }

    /// Adds a rule: of several, the last one that matches a class decides. Without any, everything is
    /// recorded; where the first one enables something, nothing but what rules enable.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Bytes of a sub-buffer, a power of two.
    pub fn sub_buffer_size(mut self, bytes: usize) -> Self {
        self.sub_buffer_bytes = bytes;
        self
    }

    /// Sub-buffers per CPU, a power of two.
    pub fn sub_buffers(mut self, count: usize) -> Self {
        self.sub_buffers = count;
        self
    }

    /// Time after which an event is in the folder.
    pub fn flush(mut self, time: Duration) -> Self {
        self.flush = time;
        self
    }

    /// Stamps events with `CLOCK_MONOTONIC` even where the time stamp counter is reliable.
    pub fn monotonic_clock(mut self) -> Self {
        self.clock = ClockChoice::Monotonic;
        self
    }

    /// Keeps the newest events in memory: full buffers lose their oldest sub-buffer instead of new events,
    /// and nothing is written before [`Session::snapshot`]. Output folder and flush time mean nothing then.
    pub fn flight_recorder(mut self) -> Self {
        self.flight_recorder = true;
        self
    }

    /// Begins the recording.
    ///
    /// # Errors
    /// The program takes part in eight recordings already; the folder is not empty or cannot be made; there
    /// is no memory for the buffers, or their numbers are not powers of two.
    pub fn start(self) -> Result<Session, SessionError> {
        if self.flight_recorder {
            return Recording::begin(self, None).and_then(Recording::spawn);
        }
        let folder = Folder::create(&self.output)?;
        let started = Recording::begin(self, Some(&folder)).and_then(Recording::spawn);
        if started.is_err() {
            folder.discard();
        }
        started
    }
}

/// Time between two looks at whether the trace folder is still there.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two looks of a flight recorder for new classes.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How often the buffers are read at most until nothing is left in them that can be read.
const MOST_ROUNDS: usize = 1000;

/// What the thread works on.
struct Recording {
    /// Where events are written; nowhere in a flight recorder.
    output: Option<(Folder, UserTrace)>,
    clock: TraceClock,
    drain: Drain,
    wishes: Arc<Wishes>,
    /// Without output, one that nothing else knows.
    firsts: Arc<Firsts>,
    /// The region's word when classes were described last.
    news: u64,
    description: Description,
    table: Option<ClassTable>,
    flush: Duration,
    snapshots: u64,
    summary: SessionSummary,
}

impl Recording {
    fn begin(settings: SessionBuilder, folder: Option<&Folder>) -> Result<Self, SessionError> {
        let geometry = Geometry::new(possible_cpus(), settings.sub_buffers, settings.sub_buffer_bytes)
            .map_err(tracewing_consumer::Error::Geometry)?;
        let geometry = if folder.is_some() { geometry } else { geometry.overwriting() };
        let clock = TraceClock::new(settings.clock)?;
        let begin = clock.calibrate();
        let (recording, user) = (identity()?, folder.map(Folder::user));
        let trace = user.map(|user| UserTrace::new(user, recording)).transpose()?;
        let trace = trace.map(|trace| trace.write_in_background(|| ()));
        let rules = settings.rules;
        let class = clock_class(&clock, &begin, identity()?);
        let classes = Classes::new(user.as_slice(), recording, class)?;
        let publishes = agent::can_publish() && clock.kind() == Clock::Tsc;
        let protocol = if publishes { Protocol::Publish } else { Protocol::Smp };
        let process = std::process::id();
        let drain =
            Drain::new(Backing::Memory, format!("pid{process}"), geometry, protocol, &clock, recording)?;
        drain.set_real_time(&clock, &begin);

        let buffers = BufferDescription {
            sub_buffer_bytes: settings.sub_buffer_bytes,
            sub_buffers: settings.sub_buffers,
            per_process: true,
            overwrite: geometry.mode() == Mode::Overwrite,
            flush_ms: folder.is_some().then_some(settings.flush.as_millis() as u64),
        };
        let mut description = Description::new(&clock, begin, buffers);
        description.command = std::env::args_os().map(|part| part.to_string_lossy().into_owned()).collect();
        description.event_rules = rules.iter().map(Rule::to_string).collect();
        // SAFETY: the call has no arguments and cannot fail.
        let user = unsafe { libc::getuid() };
        description.processes = vec![ProcessDescription::of(Pid::from_unsigned(process), user, begin.cycles)];
        if let Some(folder) = folder {
            folder.describe(&description)?;
        }
        let firsts: Arc<Firsts> = trace.as_ref().map(|trace| trace.firsts().clone()).unwrap_or_default();
        Ok(Self {
            output: folder.cloned().zip(trace),
            clock,
            drain,
            wishes: Wishes::new(classes, rules, firsts.clone()),
            firsts,
            news: 0,
            description,
            table: None,
            flush: settings.flush,
            snapshots: 0,
            summary: SessionSummary { folder: PathBuf::new(), events: 0, lost: 0, bytes: 0 },
        })
    }

    fn spawn(mut self) -> Result<Session, SessionError> {
        let bell = Arc::new(Bell::default());
        let region = self.drain.region();
        let slot = agent::attach(&region, self.drain.memory().as_fd().as_raw_fd())
            .ok_or(SessionError::CannotTakePart)?;
        // All classes begin at once, however long it takes to switch their sites on.
        agent::set_majors(slot, 0);
        let joined = switched(agent::join(slot, self.wishes.registrar()).0);
        let failed = joined.err().or_else(|| self.wishes.state().error.take().map(SessionError::from));
        if let Some(error) = failed {
            leave(slot);
            return Err(error);
        }
        agent::set_majors(slot, u64::MAX);
        self.table = ClassTable::new(slot, &region.recording());
        let is_flight_recorder = self.output.is_none();
        let wishes = self.wishes.clone();
        let work = {
            let bell = bell.clone();
            move || self.run(slot, &bell)
        };
        let thread = thread::Builder::new().name("tracewing".to_owned()).spawn(work).map_err(|source| {
            leave(slot);
            SessionError::System { action: "start a thread", source }
        })?;
        Ok(Session {
            worker: Some(Worker { bell, is_flight_recorder, slot, wishes, thread }),
            process: std::process::id(),
        })
    }

    fn run(mut self, slot: usize, bell: &Bell) -> Result<SessionSummary, SessionError> {
        let result = match self.output.take() {
            Some((folder, mut trace)) => {
                let drained = self.drain_until_stop(&folder, &mut trace, bell);
                self.complete(slot, &folder, &mut trace, drained)
            }
            None => {
                self.wait_for_orders(bell);
                leave(slot);
                Ok(())
            }
        };
        result.map(|()| self.summary)
    }

    fn drain_until_stop(
        &mut self,
        folder: &Folder,
        trace: &mut UserTrace,
        bell: &Bell,
    ) -> Result<(), SessionError> {
        let (mut pace, mut checked) = (Pace::new(self.flush), Instant::now());
        loop {
            let mut calls = bell.wait(pace.remaining());
            if calls.stop {
                break;
            }
            if !calls.settled.is_empty() {
                self.read_all(trace)?;
                calls.settle();
            }
            let now = Instant::now();
            let found = self.drain.poll(trace, &self.clock, self.flush, pace.longest())?;
            self.describe();
            pace.looked(now, Instant::now(), &found);
            if now.duration_since(checked) >= CHECK_INTERVAL {
                checked = now;
                folder.check(false)?;
            }
        }
        Ok(())
    }

    /// Has new classes described whose first events were found. `false` if there were none.
    fn describe(&self) -> bool {
        let found = self.firsts.take_found();
        if found.processes.is_empty() && !found.is_waited_for() {
            return false;
        }
        agent::describe();
        // Of children that have made classes of their own.
        self.wishes.find(found)
    }

    /// Writes all that is in the buffers, but for what waits for classes that nothing describes.
    fn read_all(&mut self, trace: &mut UserTrace) -> Result<(), SessionError> {
        for _ in 0..MOST_ROUNDS {
            trace.wait_for_room(usize::MAX);
            let found = self.drain.poll(trace, &self.clock, Duration::ZERO, Duration::ZERO)?;
            if !self.describe() && found.written == 0 {
                break;
            }
        }
        Ok(())
    }

    fn complete(
        &mut self,
        slot: usize,
        folder: &Folder,
        trace: &mut UserTrace,
        mut result: Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        self.description.clock.stopped = Some(self.clock.now());
        agent::set_majors(slot, 0);
        if result.is_ok() {
            result = self.read_all(trace);
        }
        leave(slot);
        self.drain.close();
        match result {
            Ok(()) => result = self.drain.finish(trace, &self.clock).map_err(SessionError::from),
            Err(_) => self.drain.abandon(&self.clock),
        }
        let description = &mut self.description;
        description.state = if result.is_ok() { State::Complete } else { State::CutShort };
        description.clock.end = Some(self.clock.calibrate());
        description.user_streams = self.drain.summary();
        description.notes.append(&mut self.wishes.state().notes);
        description.losses = self.drain.losses().cloned().collect();
        description.overwritten = self.drain.overwritten().cloned().collect();
        let described = folder.describe(description).and_then(|()| folder.check(true));
        result?;
        described?;
        self.summary = sum(folder.path(), &self.description);
        Ok(())
    }

    fn wait_for_orders(&mut self, bell: &Bell) {
        let mut stop = false;
        while !stop {
            let mut calls = bell.wait(LOOK_INTERVAL);
            let news = self.drain.region().news().load(Relaxed); // orders nothing
            if std::mem::replace(&mut self.news, news) != news {
                agent::describe();
            }
            stop = calls.stop;
            calls.settle();
            for Order { folder, done } in calls.snapshots {
                let taken = self.snapshot(&folder);
                if let Ok(summary) = &taken {
                    self.summary = summary.clone();
                }
                // The requester may have given up.
                let _ = done.send(taken);
            }
        }
    }

    fn snapshot(&mut self, folder: &Path) -> Result<SessionSummary, SessionError> {
        let mut snapshot = Snapshot::begin(folder, identity()?, &self.clock)?;
        self.drain.watch(&self.clock);
        let contents = Contents::of(&mut self.drain, Writers::Living);
        contents.scan(&self.firsts);
        self.describe();
        snapshot.add(&contents, &self.firsts)?;
        self.snapshots += 1;
        let reason = "Session::snapshot".to_owned();
        let about = SnapshotDescription { number: self.snapshots, reason, taken: snapshot.taken() };
        let mut description = self.description.clone();
        description.clock.end = Some(self.clock.calibrate());
        let description = snapshot.finish(&self.wishes.state().classes, about, description)?;
        Ok(sum(folder, &description))
    }
}

fn identity() -> Result<[u8; 16], SessionError> {
    random_uuid().map_err(|source| SessionError::System { action: "get random bytes", source })
}

/// What a trace folder with this description has.
fn sum(folder: &Path, description: &Description) -> SessionSummary {
    let sum = |part: fn(&StreamSummary) -> u64| {
        description.user_streams.iter().map(part).fold(0, u64::saturating_add)
    };
    SessionSummary {
        folder: folder.to_owned(),
        events: sum(|stream| stream.events),
        lost: sum(|stream| stream.lost),
        bytes: sum(|stream| stream.bytes),
    }
}

/// Ends the process's part in the session: when it returns, no thread writes to the session's buffers.
fn leave(slot: usize) {
    agent::set_majors(slot, 0); // all classes end at once
    agent::forget(slot);
    agent::leave(slot);
}

fn switched(changed: agent::Changed) -> Result<(), SessionError> {
    match changed.why {
        Some(why) => Err(SessionError::NotSwitched { failed: changed.failed, why }),
        None => Ok(()),
    }
}
