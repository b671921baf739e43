//! A recording from begin to end: one thread, one loop over descriptors and a timer.
//!
//! The timer is the loop's time-out. It is short while buffers fill fast, so that they get no fuller than a quarter
//! between two looks, and long when little happens; programs never wake the recorder. A look at an empty buffer costs one
//! load.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use std::{fs, path::Path};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use tracewing_abi::SOCKET_VARIABLE;
use tracewing_abi::message::MAX_MESSAGE;
use tracewing_consumer::classes::{Classes, clock_class};
use tracewing_consumer::clock::{Calibration, TraceClock};
use tracewing_consumer::drain::UserTrace;
use tracewing_consumer::folder::{BufferDescription, Description, Folder, State};
use tracewing_consumer::glob::EventRules;
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::pace::Pace;

use crate::child::{Child, Command, Inheritance};
use crate::client::Client;
use crate::join::Join;
use crate::kernel::Kernel;
use crate::options::{Options, Sharing};
use crate::outcome::{Outcome, Summary};
use crate::priority::Priority;
use crate::regions::Regions;
use crate::signals::Signals;
use crate::socket::Listener;
use crate::{Error, system};

/// What a descriptor in the loop is, as the kernel keeps it for us.
pub(crate) const LISTENER: u64 = 0;
pub(crate) const SIGNALS: u64 = 1;
pub(crate) const CHILD: u64 = 2;
/// From here on odd numbers are processes with buffers of their own and even ones are clients.
pub(crate) const FIRST: u64 = 4;

/// Is told what happens while it happens.
pub trait Observer {
    /// How often [`Observer::progress`] is wanted; `None` for never.
    fn progress_interval(&self) -> Option<Duration> {
        None
    }
    /// How far the recording is.
    fn progress(&mut self, _progress: &Progress) {}
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
}

/// Records a command and everything it starts, until it ends, a signal stops the recording or the disk is full.
///
/// Blocks the stopping signals of the calling thread meanwhile: call it before other threads start.
///
/// # Errors
/// There was nothing to record, or no way to. Once the command runs, what goes wrong is told in the [`Outcome`] and to the
/// observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    let command = Command::find(&options.command)?;
    let clock = TraceClock::new(options.clock)?;
    let folder = Folder::create(&options.output)?;
    let mut recorder = match Recorder::start(options, observer, &command, clock, &folder) {
        Ok(recorder) => recorder,
        Err(error) => {
            folder.discard();
            return Err(error);
        }
    };
    recorder.run();
    let summary = recorder.finish(&folder);
    let exit_status = recorder.wait_for_child();
    Ok(Outcome { exit_status, summary })
}

/// A recording under way.
pub(crate) struct Recorder<'a> {
    pub(crate) options: &'a Options,
    pub(crate) observer: &'a mut dyn Observer,
    // The loop's descriptors come before what they watch.
    pub(crate) epoll: OwnedFd,
    pub(crate) listener: Option<Listener>,
    pub(crate) listening: bool,
    pub(crate) clients: BTreeMap<u64, Client>,
    pub(crate) next_client: u64,
    pub(crate) watched: BTreeMap<u64, OwnedFd>,
    pub(crate) child: Child,
    pub(crate) exit_status: Option<i32>,
    pub(crate) kernel: Kernel,
    pub(crate) join: Join,
    /// Notes that the observer has seen.
    pub(crate) told: usize,
    pub(crate) message: Vec<u8>,
    pub(crate) started: Instant,
    /// The recording's clock at `started`, cycles.
    began: u64,
    pub(crate) pace: Pace,
    pub(crate) shown: Instant,
    pub(crate) stop: Stop,
    pub(crate) signals: Signals,
    _priority: Option<Priority>,
}

/// Why the loop ends, or will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    No,
    /// A signal came; the command has until then to end.
    Asked {
        until: Instant,
    },
    /// A second signal came: nothing is waited for.
    AtOnce {
        signal: i32,
    },
    /// The trace cannot be written.
    CannotWrite,
}

impl<'a> Recorder<'a> {
    fn start(
        options: &'a Options,
        observer: &'a mut dyn Observer,
        command: &Command,
        clock: TraceClock,
        folder: &Folder,
    ) -> Result<Self, Error> {
        let identity = || random_uuid().map_err(Error::system("getrandom"));
        let signals = Signals::block()?;
        let open_files = system::raise_open_files();
        let listener = Listener::new()?;
        let begin = clock.calibrate();
        let class = clock_class(&clock, &begin, identity()?);
        let trace = UserTrace::new(&folder.user(), identity()?)?;
        let rules = EventRules::new(options.events.iter().cloned());
        let classes = Classes::new(&folder.user(), trace.recording(), class.clone(), rules)?;
        let regions = Regions::new(options.geometry, clock, options.sharing, trace);
        let description = describe(options, &clock, begin);
        folder.describe(&description)?;
        let mut join = Join { clock, regions, classes, description, error: None, watches: Vec::new() };

        let inheritance = Inheritance {
            mask: signals.mask_before(),
            file_size_signal: signals.file_size_before(),
            open_files,
        };
        let mut child = command.fork(SOCKET_VARIABLE, listener.path(), &inheritance)?;
        let priority = Priority::raise();
        let kernel = Kernel::start(options, folder, &clock, class, child.pid(), &mut |line| join.note(line))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(Error::system("epoll_create"))?;
        let watch = |file, number| {
            epoll::add(&epoll, file, EventData::new_u64(number), EventFlags::IN)
                .map_err(Error::system("epoll_ctl"))
        };
        watch(signals.as_fd(), SIGNALS)?;
        watch(child.as_fd(), CHILD)?;
        let (started, began) = (Instant::now(), join.clock.now());
        child.release().map_err(|source| Error::Command { command: options.command[0].clone(), source })?;
        Ok(Self {
            options,
            observer,
            epoll,
            listener: Some(listener),
            listening: false,
            clients: BTreeMap::new(),
            next_client: FIRST,
            watched: BTreeMap::new(),
            child,
            exit_status: None,
            kernel,
            join,
            told: 0,
            message: vec![0; MAX_MESSAGE + 1],
            started,
            began,
            pace: Pace::new(options.flush),
            shown: started,
            stop: Stop::No,
            signals,
            _priority: priority,
        })
    }

    /// Closes the buffers, writes what is left, and says what it all amounts to.
    fn finish(&mut self, folder: &Folder) -> Summary {
        let seconds = self.started.elapsed().as_secs_f64();
        self.listener = None;
        self.clients.clear();
        self.watched.clear();
        let (user, written) = self.join.regions.finish(self.stop != Stop::CannotWrite);
        if let Err(error) = written {
            self.cannot_write(&error);
        }
        user.damages.into_iter().for_each(|damage| self.join.note(damage));
        let kernel = self.kernel.finish(&mut |line| self.join.note(line));
        if let Some(error) = &kernel.error {
            self.cannot_write(error);
        }

        let description = &mut self.join.description;
        description.state = if self.stop == Stop::CannotWrite { State::CutShort } else { State::Complete };
        description.clock.end = Some(self.join.clock.calibrate());
        description.user_streams = user.streams;
        description.kernel_streams = kernel.streams;
        description.losses = user.losses;
        description.losses.extend(kernel.losses);
        if let Err(error) = folder.describe(description) {
            self.join.note(error.to_string());
        }
        self.tell_notes();
        let description = &self.join.description;
        let streams = || description.user_streams.iter().chain(&description.kernel_streams);
        Summary {
            folder: folder.path().to_owned(),
            state: description.state,
            seconds,
            begin: self.began,
            frequency: description.clock.frequency,
            events: streams().map(|stream| stream.events).sum(),
            lost: streams().map(|stream| stream.lost).fold(0, u64::saturating_add),
            bytes: size_of_folder(folder.path()),
            processes: description.processes.len(),
            user_streams: description.user_streams.clone(),
            kernel_streams: description.kernel_streams.clone(),
            losses: description.losses.clone(),
            notes: description.notes.clone(),
        }
    }
}

fn describe(options: &Options, clock: &TraceClock, begin: Calibration) -> Description {
    let buffers = BufferDescription {
        sub_buffer_bytes: options.geometry.sub_buffer_bytes(),
        sub_buffers: options.geometry.sub_buffers(),
        per_process: options.sharing == Sharing::Process,
        flush_ms: options.flush.as_millis() as u64,
    };
    let command = options.command.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    Description { command, event_rules: options.events.clone(), ..Description::new(clock, begin, buffers) }
}

/// Bytes of all files in a folder.
fn size_of_folder(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, data)| if data.is_dir() { size_of_folder(&path) } else { data.len() })
        .sum()
}
