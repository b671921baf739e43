//! A recording from begin to end: one thread, one loop over descriptors and a timer. A second one writes to
//! the disk, so that the first never waits for it.
//!
//! The timer is the loop's time-out. It is short while buffers fill fast, so that they get no fuller than a
//! quarter between two looks, and long when little happens; programs never wake the recorder. A look at an
//! empty buffer costs one load.

use std::collections::HashMap;
use std::env;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use tracewing_abi::region::{Geometry, Mode};
use tracewing_abi::{FILTERS_VARIABLE, LATE_VARIABLE, SOCKET_VARIABLE};
use tracewing_consumer::classes::{Classes, clock_class};
use tracewing_consumer::clock::{Calibration, TraceClock};
use tracewing_consumer::folder::{BufferDescription, Description, Folder, State};
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::names::Names;
use tracewing_consumer::survival::{BufferFolder, CLASSES};
use tracewing_consumer::trace::UserTrace;
use tracewing_files::{Dir, Made};
use tracewing_rules::Majors;

use crate::accept::Entrance;
use crate::child::{Child, Command, Inheritance};
use crate::connections::Connections;
use crate::control::Changes;
use crate::course::{Course, Stop};
use crate::drains::Drains;
use crate::filters::{self, Filters};
use crate::flight::{Flight, absolute};
use crate::join::Join;
use crate::kernel::{self, Kernel};
use crate::left_out::LeftOut;
use crate::maker::Maker;
use crate::options::{Options, Sharing};
use crate::outcome::{Outcome, SnapshotSummary, Summary};
use crate::places::Places;
use crate::poll::{Poll, Token};
use crate::priority::Priority;
use crate::profile::{self, Profile};
use crate::regions::Regions;
use crate::rules::RecordingRules;
use crate::running::Running;
use crate::signals::Signals;
use crate::socket::{Listener, sockets};
use crate::threads::Threads;
use crate::timers::Timers;
use crate::{Error, system};

/// Is told what happens while it happens.
pub trait Observer {
    /// How often [`Observer::progress`] is wanted; `None` for never.
    fn progress_interval(&self) -> Option<Duration> {
        None
    }
    /// How far the recording is.
    fn progress(&mut self, _progress: &Progress) {}
    /// A flight recorder has taken a snapshot.
    fn snapshot(&mut self, _snapshot: &SnapshotSummary) {}
    /// One line that the user should see.
    fn note(&mut self, line: &str);
}

/// How far a recording is.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Since it began.
    pub elapsed: Duration,
    /// Events written so far.
    pub events: u64,
    /// Events lost so far.
    pub lost: u64,
    /// Bytes written so far.
    pub bytes: u64,
    /// A flight recorder's snapshots so far; `None` where a trace is written.
    pub snapshots: Option<usize>,
}

/// Records a command and everything it starts, until it ends, a signal stops the recording, its time is over
/// or the disk is full; or the programs of another recording ([`Options::with`]).
///
/// Blocks the stopping signals of the calling thread meanwhile: call it before other threads start.
///
/// # Errors
/// There was nothing to record, or no way to. Once the command runs, what goes wrong is told in the
/// [`Outcome`] and to the observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    let subject = match &options.with {
        Some(with) if options.command.is_empty() => Subject::ProgramsOf(with),
        _ => Subject::Command(Command::find(&options.command)?),
    };
    let clock = TraceClock::new(options.clock)?;
    profile::check(options, &clock)?;
    kernel::check(options)?;
    let output = Output::create(options)?;
    let files = options.buffers_in.as_deref().map(BufferFolder::create).transpose();
    let files = files.inspect_err(|_| output.discard())?;
    let mut recorder = match Recorder::start(options, observer, &subject, clock, &output, files.clone()) {
        Ok(recorder) => recorder,
        Err(error) => {
            output.discard();
            files.iter().for_each(BufferFolder::discard);
            return Err(error);
        }
    };
    recorder.run();
    let summary = recorder.finish(&output);
    match files {
        Some(folder) if summary.state == State::Complete => folder.discard(),
        Some(folder) => recorder.observer.note(&format!(
            "the buffers, with what could not be written, stay in {0}: tracewing recover --all -o DIR {0}",
            folder.path().display()
        )),
        None => {}
    }
    recorder.priority = None;
    let exit_status = match recorder.wait_for_child() {
        0 if options.flight_recorder.is_some() && summary.state == State::CutShort => 1,
        0 if recorder.watches.places.are_lost() => 1,
        status => status,
    };
    recorder.course.child.reap();
    Ok(Outcome { exit_status, summary })
}

/// What is recorded, and how long.
enum Subject<'a> {
    /// A command, until it ends.
    Command(Command),
    /// The programs of another recording, until its command ends.
    ProgramsOf(&'a Running),
}

/// Where a recording goes.
enum Output {
    Trace(Folder),
    /// The folder of a flight recorder's snapshots; and it and its parents, as far as they were not there
    /// before.
    Snapshots(Dir, Made),
}

impl Output {
    fn create(options: &Options) -> Result<Self, Error> {
        if options.flight_recorder.is_none() {
            return Ok(Self::Trace(Folder::create(&options.output)?));
        }
        let path = &options.output;
        let (dir, made) = Dir::create(path).map_err(tracewing_consumer::Error::folder(path))?;
        Ok(Self::Snapshots(dir, made))
    }

    fn discard(&self) {
        match self {
            Self::Trace(folder) => folder.clone().discard(),
            Self::Snapshots(_, made) => made.remove_empty(),
        }
    }

    fn dir(&self) -> &Dir {
        match self {
            Self::Trace(folder) => folder.dir(),
            Self::Snapshots(dir, _) => dir,
        }
    }

    fn folder(&self) -> Option<&Folder> {
        match self {
            Self::Trace(folder) => Some(folder),
            Self::Snapshots(..) => None,
        }
    }
}

/// A recording under way.
pub(crate) struct Recorder<'a> {
    pub(crate) options: &'a Options,
    pub(crate) observer: &'a mut dyn Observer,
    // The loop's descriptors come before what they watch.
    pub(crate) poll: Poll,
    pub(crate) entrance: Entrance,
    pub(crate) connections: Connections,
    pub(crate) changes: Changes,
    pub(crate) course: Course,
    pub(crate) drains: Drains,
    pub(crate) flight: Option<Flight>,
    pub(crate) join: Join,
    pub(crate) watches: Watches,
    pub(crate) timers: Timers,
    /// Notes that the observer has seen.
    pub(crate) told: usize,
    priority: Option<Priority>,
}

/// What is looked for from time to time.
pub(crate) struct Watches {
    pub(crate) places: Places,
    pub(crate) filters: Filters,
    pub(crate) left_out: LeftOut,
    /// Programs that were told because the library is not loaded into them.
    pub(crate) obstacles: usize,
}

impl<'a> Recorder<'a> {
    fn start(
        options: &'a Options,
        observer: &'a mut dyn Observer,
        subject: &Subject<'_>,
        clock: TraceClock,
        output: &Output,
        files: Option<BufferFolder>,
    ) -> Result<Self, Error> {
        let identity = || random_uuid().map_err(Error::system("getrandom"));
        let signals = Signals::block(options.flight_recorder.is_some_and(|on| on.signal))?;
        let open_files = system::raise_open_files();
        let listener = Listener::new()?;
        let begin = clock.calibrate();
        let class = clock_class(&clock, &begin, identity()?);
        let (recording, user) = (identity()?, output.folder().map(Folder::user));
        let trace = user.map(|user| UserTrace::new(user, recording)).transpose()?;
        // The thread that writes is as urgent as this one: what it does not get to is lost. What waits for it
        // would not survive, as buffers in files do.
        let trace = match &files {
            Some(_) => trace,
            None => trace.map(|trace| trace.write_behind(Priority::raise)),
        };
        let trace = trace.map(|trace| trace.with_names(Arc::new(Names::new(clock))));
        let places = Places::new(output.dir(), files.as_ref().map(BufferFolder::dir));
        let rules = RecordingRules::new(&options.rules);
        let mut classes = Classes::new(user.as_slice(), recording, class.clone())?;
        let geometry = match output {
            Output::Trace(_) => options.geometry,
            Output::Snapshots(..) => options.geometry.overwriting(),
        };
        let description = describe(options, &rules, geometry, &clock, begin);
        if let Some(files) = &files {
            classes.keep_table(files.dir(), CLASSES)?;
            let trace_folder = output.folder().map(|folder| absolute(folder.path()).display().to_string());
            files.describe(&Description { trace_folder, ..description.clone() })?;
        }
        let majors = options.majors.0;
        let maker = Maker { geometry, clock, begin, recording, majors, files, names: HashMap::new() };
        let files = system::open_files();
        let regions = Regions::new(maker, clock, options.sharing, options.flush, trace, files);
        if let Some(folder) = output.folder() {
            folder.describe(&description)?;
        }
        let mut join = Join::new(clock, regions, classes, rules, description);

        let inheritance = Inheritance {
            mask: signals.mask_before(),
            file_size_signal: signals.file_size_before(),
            open_files,
        };
        let mut child = match subject {
            Subject::ProgramsOf(other) => Child::of_another(other.command_pid)?,
            Subject::Command(command) => {
                let outer = env::var_os(SOCKET_VARIABLE);
                let (sockets, is_too_many) = sockets(listener.path(), outer.as_deref());
                if is_too_many {
                    join.note(
                        "this is one recording in too many others: the outermost gets no events of programs"
                            .to_owned(),
                    );
                }
                let mut variables =
                    vec![(SOCKET_VARIABLE.into(), sockets), (LATE_VARIABLE.into(), "0".into())];
                let filters = filters::own();
                if filters > 0 {
                    variables.push((FILTERS_VARIABLE.into(), filters.to_string().into()));
                }
                if let Some(preload) = &options.preload {
                    variables.extend(preload.variables(command.path(), &mut |line| join.note(line)));
                }
                command.fork(&variables, &inheritance)?
            }
        };
        let priority = Priority::raise();
        let folder = output.folder().map(Folder::dir);
        let note = &mut |line| join.note(line);
        let kernel = Kernel::start(options, folder, &clock, class.clone(), child.pid(), note)?;
        let profile = match options.profile.zip(folder) {
            Some((hertz, folder)) => {
                let root = (!options.system_wide).then(|| child.pid());
                Profile::start(folder, hertz, root, (&clock, class), options.flush, note)?
            }
            None => Profile::none(),
        };
        let flight = match output {
            Output::Trace(_) => None,
            Output::Snapshots(dir, _) => options.flight_recorder.map(|on| Flight::new(dir.clone(), on)),
        };
        let threads = (flight.is_some() && !kernel.is_recorded()).then(Threads::new);
        let poll = Poll::new()?;
        let watch = |file, token| poll.add(file, token, EventFlags::IN).map_err(Error::system("epoll_ctl"));
        watch(signals.as_fd(), Token::Signals)?;
        watch(child.as_fd(), Token::Child)?;
        let timers = Timers::new(join.clock.now(), options.flush);
        let name = || options.command.first().cloned().unwrap_or_default();
        child.release().map_err(|source| Error::Command { command: name(), source })?;
        if let Some(with) = &options.with {
            with.invite(listener.path()).map_err(Error::With)?;
        }
        Ok(Self {
            options,
            observer,
            poll,
            entrance: Entrance::new(listener),
            connections: Connections::new(system::open_files()),
            changes: Changes::new(options.majors.0),
            course: Course::new(child, signals),
            drains: Drains { kernel, profile, threads },
            flight,
            join,
            watches: Watches { places, filters: Filters::new(), left_out: LeftOut::new(), obstacles: 0 },
            timers,
            told: 0,
            priority,
        })
    }

    /// Closes the buffers, writes what is left, and says what it all amounts to.
    fn finish(&mut self, output: &Output) -> Summary {
        let seconds = self.timers.started.elapsed().as_secs_f64();
        self.join.description.clock.stopped = Some(self.join.clock.now());
        self.find_left_out();
        self.turn_away_waiting();
        self.entrance.listener = None;
        // First, since its counters are read at the end of what was recorded; the kernel takes a while to end
        // the rest.
        let profile = self.drains.profile.finish(&mut |line| self.join.note(line));
        if let Some(error) = profile.unwritten {
            self.cannot_write(&error.into());
        }
        // Programs that see their connection end look at their buffers: whether the recording is over.
        self.join.regions.close();
        self.bid_farewell();
        self.connections.clients.clear();
        let is_snapshot_written = self.last_snapshot();
        if self.course.stop != Stop::CannotWrite {
            self.join.write_firsts(true);
            self.join.error.take().into_iter().for_each(|error| self.cannot_write(&error));
        }
        let (user, written) = self.join.regions.finish(self.course.stop != Stop::CannotWrite);
        if let Err(error) = written {
            self.cannot_write(&error);
        }
        user.damages.iter().for_each(|damage| self.join.note(damage.clone()));
        let kernel = self.drains.kernel.finish(&mut |line| self.join.note(line));
        if let Some(error) = &kernel.error {
            self.cannot_write(error);
        }
        self.tell_of_executed(kernel.executed);

        // Of what could not be written, or is lost, nobody knows.
        if self.course.stop != Stop::CannotWrite {
            let Join { rules, classes, regions, .. } = &self.join;
            let is_whole = user.losses.is_empty() && user.overwritten.is_empty();
            let has_met = |id| regions.has_met(id).filter(|met| *met || is_whole);
            let hints = rules.hints(classes, self.options.preload.as_ref(), has_met);
            hints.into_iter().for_each(|hint| self.join.note(hint));
        }

        self.check_places(true);
        self.join.tell_left_out();
        let description = &mut self.join.description;
        let is_all_written = is_snapshot_written && self.course.stop != Stop::CannotWrite;
        description.state = if is_all_written { State::Complete } else { State::CutShort };
        description.clock.end = Some(self.join.clock.calibrate());
        description.user_streams = user.streams();
        description.kernel_streams = kernel.streams;
        description.losses = user.losses;
        description.losses.extend(kernel.losses);
        description.profile_streams = profile.streams;
        description.losses.extend(profile.losses);
        description.overwritten = user.overwritten;
        if let Some(Err(error)) = output.folder().map(|folder| folder.describe(description))
            && !self.watches.places.are_lost()
        {
            self.join.note(error.to_string());
        }
        self.check_places(true);
        if self.course.stop == Stop::CannotWrite {
            self.join.description.state = State::CutShort;
        }
        self.tell_notes();
        let (path, bytes) = match output {
            Output::Trace(folder) => (folder.path().to_owned(), folder.dir().size()),
            Output::Snapshots(dir, made) => {
                made.remove_empty(); // empty without a snapshot
                (absolute(dir.path()), dir.size())
            }
        };
        let description = &self.join.description;
        let (user, kernel, profile) =
            (&description.user_streams, &description.kernel_streams, &description.profile_streams);
        let streams = || user.iter().chain(kernel).chain(profile);
        let snapshots = self.flight.take().map(|flight| flight.taken);
        let in_snapshots = snapshots.iter().flatten().map(|snapshot| snapshot.events).sum::<u64>();
        Summary {
            folder: path,
            state: description.state,
            seconds,
            begin: self.timers.began,
            frequency: description.clock.frequency,
            events: in_snapshots + streams().map(|stream| stream.events).sum::<u64>(),
            lost: streams().map(|stream| stream.lost).fold(0, u64::saturating_add),
            bytes,
            processes: description.processes.len(),
            user_streams: description.user_streams.clone(),
            kernel_streams: description.kernel_streams.clone(),
            profile_streams: description.profile_streams.clone(),
            losses: description.losses.clone(),
            overwritten: description.overwritten.clone(),
            snapshots,
            notes: description.notes.clone(),
        }
    }
}

fn describe(
    options: &Options,
    rules: &RecordingRules,
    geometry: Geometry,
    clock: &TraceClock,
    begin: Calibration,
) -> Description {
    let buffers = BufferDescription {
        sub_buffer_bytes: geometry.sub_buffer_bytes(),
        sub_buffers: geometry.sub_buffers(),
        per_process: options.sharing == Sharing::Process,
        overwrite: geometry.mode() == Mode::Overwrite,
        flush_ms: options.flight_recorder.is_none().then_some(options.flush.as_millis() as u64),
    };
    let command = options.words().collect();
    let majors = (options.majors != Majors::ALL).then(|| options.majors.to_string());
    let asked_for = options.asked_for();
    let event_rules = rules.texts();
    Description { command, event_rules, majors, asked_for, ..Description::new(clock, begin, buffers) }
}
