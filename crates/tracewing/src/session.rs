//! A program that records itself: the buffers, their consumer and the trace folder, all in one process.
//!
//! The files are those of `tracewing record`, made by the same code (crate `consumer`), without kernel events. One thread
//! is started, which drains the buffers by timer and sleeps otherwise.

use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tracewing_abi::message::{ClassesWriter, MAX_MESSAGE, decode_classes};
use tracewing_abi::region::{Clock, Geometry, Mode, Protocol};
use tracewing_consumer::classes::{Classes, clock_class};
use tracewing_consumer::clock::{ClockChoice, TraceClock};
use tracewing_consumer::drain::{Drain, UserTrace};
use tracewing_consumer::folder::{BufferDescription, Description, Folder, ProcessDescription, State};
use tracewing_consumer::glob::EventRules;
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::memory::{SUB_BUFFER_BYTES, SUB_BUFFERS, possible_cpus};
use tracewing_consumer::pace::{FLUSH, Pace};

use crate::agent;
use crate::class::{self, EventClass};

/// A recording that the program makes of itself. It ends when this is dropped, or with [`Session::stop`], which also says
/// what became of it.
///
/// Recorded are the events of this copy of the crate, in all threads; also those of forked children where the thread that
/// emits has restartable sequences (x86-64, glibc 2.35), until the parent ends the session. At most one recording sees a
/// program at a time: while `tracewing record` does, no session can begin.
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
    thread: JoinHandle<Result<SessionSummary, SessionError>>,
}

/// What a recording came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The trace folder.
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
    /// Another recording has the program already: `tracewing record`, or another [`Session`].
    #[error("this program is being recorded already")]
    AlreadyRecorded,
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
    /// The session was begun by the process that this one was forked from, and goes on there.
    #[error("the session belongs to the parent process")]
    OfParent,
}

/// How a [`Session`] is to record.
#[derive(Debug, Clone)]
#[must_use = "nothing is recorded before `start`"]
pub struct SessionBuilder {
    output: PathBuf,
    events: Vec<String>,
    sub_buffer_bytes: usize,
    sub_buffers: usize,
    flush: Duration,
    clock: ClockChoice,
}

impl Session {
    /// A recording of all events into the folder `tracewing`, unless its setters say otherwise.
    pub fn builder() -> SessionBuilder {
        SessionBuilder {
            output: "tracewing".into(),
            events: Vec::new(),
            sub_buffer_bytes: SUB_BUFFER_BYTES,
            sub_buffers: SUB_BUFFERS,
            flush: FLUSH,
            clock: ClockChoice::Auto,
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
        let Worker { bell, thread } = self.worker.take()?;
        if self.process != std::process::id() {
            // The thread is not here, and the standard library must not look for it.
            std::mem::forget((bell, thread));
            return None;
        }
        bell.ring();
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

    /// Records only events whose names (`provider:event`) match the shell pattern, or one of several.
    pub fn event(mut self, pattern: impl Into<String>) -> Self {
        self.events.push(pattern.into());
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

    /// Begins the recording.
    ///
    /// # Errors
    /// The program is being recorded already; the folder is not empty or cannot be made; there is no memory for the
    /// buffers, or their numbers are no powers of two.
    pub fn start(self) -> Result<Session, SessionError> {
        if agent::is_attached() {
            return Err(SessionError::AlreadyRecorded);
        }
        let folder = Folder::create(&self.output)?;
        let started = Recording::begin(self, &folder).and_then(Recording::spawn);
        if started.is_err() {
            folder.discard();
        }
        started
    }
}

/// Wakes the thread before its time.
#[derive(Debug, Default)]
struct Bell {
    rung: Mutex<bool>,
    condition: Condvar,
}

impl Bell {
    fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.condition.notify_one();
    }

    /// Sleeps for `time`, or until somebody rings; tells whether somebody did.
    fn wait(&self, time: Duration) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.condition.wait_timeout_while(rung, time, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// What the thread works on.
struct Recording {
    folder: Folder,
    clock: TraceClock,
    trace: UserTrace,
    drain: Drain,
    description: Description,
    ids: Vec<u16>,
    flush: Duration,
}

impl Recording {
    fn begin(settings: SessionBuilder, folder: &Folder) -> Result<Self, SessionError> {
        let identity =
            || random_uuid().map_err(|source| SessionError::System { action: "get random bytes", source });
        let geometry = Geometry::new(possible_cpus(), settings.sub_buffers, settings.sub_buffer_bytes)
            .map_err(tracewing_consumer::Error::Geometry)?;
        let clock = TraceClock::new(settings.clock)?;
        let begin = clock.calibrate();
        let trace = UserTrace::new(&folder.user(), identity()?)?;
        let rules = EventRules::new(settings.events.iter().cloned());
        let class = clock_class(&clock, &begin, identity()?);
        let mut classes = Classes::new(&[&folder.user()], trace.recording(), class, rules)?;
        let publishes = agent::can_publish() && clock.kind() == Clock::Tsc;
        let protocol = if publishes { Protocol::Publish } else { Protocol::Smp };
        let process = std::process::id();
        let drain = Drain::new(format!("pid{process}"), geometry, protocol, &clock, trace.recording())?;

        let buffers = BufferDescription {
            sub_buffer_bytes: settings.sub_buffer_bytes,
            sub_buffers: settings.sub_buffers,
            per_process: true,
            overwrite: geometry.mode() == Mode::Overwrite,
            flush_ms: Some(settings.flush.as_millis() as u64),
        };
        let mut description = Description::new(&clock, begin, buffers);
        description.command = std::env::args_os().map(|part| part.to_string_lossy().into_owned()).collect();
        description.event_rules = settings.events;
        // SAFETY: the call has no arguments and cannot fail.
        let user = unsafe { libc::getuid() };
        description.processes = vec![ProcessDescription::of(process, user, begin.cycles)];
        let ids = register(&mut classes, &mut description.notes)?;
        folder.describe(&description)?;
        Ok(Self { folder: folder.clone(), clock, trace, drain, description, ids, flush: settings.flush })
    }

    fn spawn(self) -> Result<Session, SessionError> {
        let bell = Arc::new(Bell::default());
        if !agent::attach(&self.drain.region(), self.drain.memory().as_fd().as_raw_fd()) {
            return Err(SessionError::AlreadyRecorded);
        }
        for (class, id) in class::all().zip(&self.ids) {
            class.set_id(u32::from(*id));
        }
        let work = {
            let bell = bell.clone();
            move || self.run(&bell)
        };
        let thread = thread::Builder::new().name("tracewing".to_owned()).spawn(work).map_err(|source| {
            agent::detach();
            SessionError::System { action: "start a thread", source }
        })?;
        Ok(Session { worker: Some(Worker { bell, thread }), process: std::process::id() })
    }

    fn run(mut self, bell: &Bell) -> Result<SessionSummary, SessionError> {
        let mut pace = Pace::new(self.flush);
        let mut result = Ok(());
        while !bell.wait(pace.remaining()) {
            let now = Instant::now();
            match self.drain.poll(&mut self.trace, &self.clock, self.flush, pace.longest()) {
                Ok(found) => pace.looked(now, &found),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        agent::detach();
        self.drain.close();
        match result {
            Ok(()) => result = self.drain.finish(&mut self.trace, &self.clock),
            Err(_) => self.drain.abandon(&self.clock),
        }
        let description = &mut self.description;
        description.state = if result.is_ok() { State::Complete } else { State::CutShort };
        description.clock.end = Some(self.clock.calibrate());
        description.user_streams = self.drain.summary();
        description.losses = self.drain.losses().cloned().collect();
        let described = self.folder.describe(description);
        result.and(described)?;
        let sum = |part: fn(&tracewing_consumer::drain::StreamSummary) -> u64| {
            self.description.user_streams.iter().map(part).fold(0, u64::saturating_add)
        };
        Ok(SessionSummary {
            folder: self.folder.path().to_owned(),
            events: sum(|stream| stream.events),
            lost: sum(|stream| stream.lost),
            bytes: sum(|stream| stream.bytes),
        })
    }
}

/// Ids for all classes of this copy of the crate, in the order of [`class::all`].
fn register(classes: &mut Classes, notes: &mut Vec<String>) -> Result<Vec<u16>, SessionError> {
    let mut buffer = vec![0; MAX_MESSAGE];
    // No class is too large for a message: `describe` has seen to that when it was compiled.
    let mut encode = |class: &EventClass| -> Option<Vec<u8>> {
        let mut writer = ClassesWriter::new(&mut buffer).ok()?;
        writer.push(class.description()).ok()?;
        let description = decode_classes(writer.finish()).ok()?.next()?.ok()?;
        Some(description.to_vec())
    };
    let descriptions: Vec<Vec<u8>> = class::all().map(|class| encode(class).unwrap_or_default()).collect();
    let registered = classes.register(descriptions.iter().map(Vec::as_slice))?;
    notes.extend(registered.refused);
    Ok(registered.ids)
}
