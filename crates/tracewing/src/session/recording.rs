//! What a session's thread does: drains the buffers until the session ends, or waits for orders of snapshots.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use tracewing_abi::region::{Clock, Geometry, Mode, Protocol};
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::cpus::possible_cpus;
use tracewing_consumer::description::{
    BufferDescription, Description, ProcessDescription, Removed, SnapshotDescription, State,
};
use tracewing_consumer::drain::{Backing, Drain};
use tracewing_consumer::firsts::Firsts;
use tracewing_consumer::folder::Folder;
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::metadata::clock_class;
use tracewing_consumer::pace::Pace;
use tracewing_consumer::snapshot::{Contents, Snapshot, Writers};
use tracewing_consumer::summary::StreamSummary;
use tracewing_consumer::trace::UserTrace;
use tracewing_rules::Rule;
use tracewing_vocabulary::Pid;

use super::bell::{Bell, Order};
use super::builder::SessionBuilder;
use super::enabled::Enabled;
use super::error::switched;
use super::{Session, SessionError, SessionSummary, Worker};
use crate::agent::{self, ClassTable};

/// Time between two looks at whether the trace folder is still there.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two looks of a flight recorder for new classes.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How often the buffers are read at most until nothing is left in them that can be read.
const MOST_ROUNDS: usize = 1000;

/// What the thread works on.
pub(super) struct Recording {
    /// Where events are written; nowhere in a flight recorder.
    output: Option<(Folder, UserTrace)>,
    clock: TraceClock,
    drain: Drain,
    enabled: Arc<Enabled>,
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

impl SessionBuilder {
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

impl Recording {
    pub(super) fn begin(settings: SessionBuilder, folder: Option<&Folder>) -> Result<Self, SessionError> {
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
            enabled: Enabled::new(classes, rules, firsts.clone()),
            firsts,
            news: 0,
            description,
            table: None,
            flush: settings.flush,
            snapshots: 0,
            summary: SessionSummary { folder: PathBuf::new(), events: 0, lost: 0, bytes: 0 },
        })
    }

    pub(super) fn spawn(mut self) -> Result<Session, SessionError> {
        let bell = Arc::new(Bell::default());
        let region = self.drain.region();
        let slot = agent::attach(&region, self.drain.memory().as_fd().as_raw_fd())
            .ok_or(SessionError::CannotTakePart)?;
        // All classes begin at once, however long it takes to switch their sites on.
        agent::set_majors(slot, 0);
        let joined = switched(agent::join(slot, self.enabled.registrar()).0);
        let failed = joined.err().or_else(|| self.enabled.state().error.take().map(SessionError::from));
        if let Some(error) = failed {
            leave(slot);
            return Err(error);
        }
        agent::set_majors(slot, u64::MAX);
        self.table = ClassTable::new(slot, &region.recording());
        let is_flight_recorder = self.output.is_none();
        let enabled = self.enabled.clone();
        let work = {
            let bell = bell.clone();
            move || self.run(slot, &bell)
        };
        let thread = thread::Builder::new().name("tracewing".to_owned()).spawn(work).map_err(|source| {
            leave(slot);
            SessionError::System { action: "start a thread", source }
        })?;
        Ok(Session {
            worker: Some(Worker { bell, is_flight_recorder, slot, enabled, thread }),
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
        self.enabled.find(found)
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
        description.notes.append(&mut self.enabled.state().notes);
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
        let about = SnapshotDescription {
            number: self.snapshots,
            reason,
            taken: snapshot.taken(),
            removed: Removed::default(),
        };
        let mut description = self.description.clone();
        description.clock.end = Some(self.clock.calibrate());
        let description = snapshot.finish(&self.enabled.state().classes, about, description)?;
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
