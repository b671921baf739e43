//! A recording from begin to end: one thread, one loop over descriptors and a timer. A second one writes to
//! the disk, so that the first never waits for it.
//!
//! The timer is the loop's time-out. It is short while buffers fill fast, so that they get no fuller than a
//! quarter between two looks, and long when little happens; programs never wake the recorder. A look at an
//! empty buffer costs one load.

mod accept;
mod again;
mod archives;
mod clients;
mod control;
mod describe;
mod doors;
mod executed;
mod filtered;
mod finish;
mod output;
mod processes;
mod rights;
mod run;
mod snapshots;
mod start;
mod watch;

use std::time::{Duration, Instant};

use tracewing_consumer::clock::TraceClock;
use tracewing_consumer::description::State;
use tracewing_consumer::survival::BufferFolder;

use self::output::Output;
use crate::Error;
use crate::archives::Archives;
use crate::attacher::Attaching;
use crate::changes::Changes;
use crate::child::{Child, Command};
use crate::connections::Connections;
use crate::course::Course;
use crate::drains::Drains;
use crate::entrance::Entrance;
use crate::flight::Flight;
use crate::helpers::Helpers;
use crate::join::Join;
use crate::kernel;
use crate::left_out::LeftOut;
use crate::listing::Listing;
use crate::options::Options;
use crate::outcome::{Outcome, SnapshotSummary};
use crate::places::Places;
use crate::poll::Poll;
use crate::priority::Priority;
use crate::processes::{Found, Processes};
use crate::profile;
use crate::socket::Listener;
use crate::timers::Timers;
use crate::trigger::Firing;

/// Gets what happens while it happens.
pub trait Observer {
    /// How often [`Observer::progress`] is to be called; `None` for never.
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
    /// Time since the recording began.
    pub elapsed: Duration,
    /// Events written so far.
    pub events: u64,
    /// Events known to be lost so far.
    pub lost: u64,
    /// Whether more were lost.
    pub is_lost_unknown: bool,
    /// Bytes written so far.
    pub bytes: u64,
    /// A flight recorder's snapshots so far; `None` where a trace is written.
    pub snapshots: Option<usize>,
}

/// Records a command and everything it starts, until it ends, a signal stops the recording, its time is over
/// or the disk is full; or processes that run already: chosen ones ([`Options::attach`]), or those of
/// another recording ([`Options::with`]); or all programs ([`Options::all_programs`]); or the kernel's events
/// alone ([`Options::system_wide`]).
///
/// Blocks the stopping signals of the calling thread meanwhile: call it before other threads start.
///
/// # Errors
/// There is nothing to record, or the recording cannot begin. Faults after the command has started are in the
/// [`Outcome`] and are reported to the observer.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<Outcome, Error> {
    let subject = match (&options.with, &options.attach) {
        (_, Some(attach)) => Subject::Processes { found: Found::of(attach)?, children: attach.children },
        (Some(with), None) if options.command.is_empty() => {
            Subject::Processes { found: Found::of_recording(with)?, children: true }
        }
        (None, None) if options.command.is_empty() && options.all_programs => Subject::Programs,
        (None, None) if !options.records_programs() && options.system_wide => Subject::Machine,
        _ => Subject::Command(Command::find(&options.command)?),
    };
    let clock = TraceClock::new(options.clock)?;
    profile::check(options, &clock)?;
    kernel::check(options)?;
    let output = Output::create(options)?;
    let files = options.buffers_in.as_deref().map(BufferFolder::create).transpose();
    let files = files.inspect_err(|_| output.discard())?;
    // The kernel's files are mounted by now, and at most `--probe` has left a thread, which reads a program.
    let started = Listener::new().and_then(|listener| {
        let helpers = rights::divide(options, &subject, (&output, files.as_ref(), &listener), observer);
        Recorder::start(options, observer, &subject, clock, (&output, files.clone()), (listener, helpers))
    });
    let mut recorder = match started {
        Ok(recorder) => recorder,
        Err(error) => {
            output.discard();
            files.iter().for_each(BufferFolder::discard);
            return Err(error);
        }
    };
    recorder.run();
    let mut summary = recorder.finish(&output);
    match files {
        Some(folder) if summary.state == State::Complete => folder.discard(),
        Some(folder) => recorder.observer.note(&format!(
            "the buffers, with what could not be written, stay in {0}: tracewing recover --all -o DIR {0}",
            folder.path().display()
        )),
        None => {}
    }
    recorder.priority = None;
    summary.on_archive = recorder.finish_commands();
    summary.notes.clone_from(&recorder.join.description.notes);
    let exit_status = match recorder.wait_for_child() {
        // A script that reads the trace next must not mistake an incomplete trace for a complete one.
        0 if summary.state == State::CutShort => 1,
        0 if recorder.watches.places.are_lost() || recorder.join.lacked_disk_space => 1,
        status => status,
    };
    recorder.course.child.iter().for_each(Child::reap);
    recorder.helpers.end();
    Ok(Outcome { exit_status, summary })
}

/// What is recorded, and how long.
enum Subject {
    /// A command, until it ends.
    Command(Command),
    /// Processes that are already running, with `children` also their later children, until the last of them
    /// ends.
    Processes { found: Found, children: bool },
    /// All programs of this user, or root's: of all users, until the time is over or a signal arrives.
    Programs,
    /// The whole machine, until the time is over or a signal arrives. No program joins.
    Machine,
}

/// A recording under way.
pub(crate) struct Recorder<'a> {
    pub(crate) options: &'a Options,
    pub(crate) observer: &'a mut dyn Observer,
    // The loop's descriptors come before what they watch.
    pub(crate) poll: Poll,
    pub(crate) entrance: Entrance,
    /// While all programs are recorded.
    pub(crate) listing: Option<Listing>,
    pub(crate) connections: Connections,
    pub(crate) changes: Changes,
    pub(crate) attaching: Attaching,
    pub(crate) course: Course,
    /// The processes that ran already, if such are recorded.
    pub(crate) processes: Option<Processes>,
    pub(crate) drains: Drains,
    pub(crate) flight: Option<Flight>,
    /// What is done when events come.
    pub(crate) firing: Vec<Firing>,
    /// `None` in a flight recorder.
    pub(crate) archives: Option<Archives>,
    pub(crate) join: Join,
    pub(crate) watches: Watches,
    pub(crate) helpers: Helpers,
    pub(crate) timers: Timers,
    /// Notes that the observer has seen.
    pub(crate) shown_notes: usize,
    priority: Option<Priority>,
}

/// What the recorder checks periodically, since nothing reports its changes.
pub(crate) struct Watches {
    pub(crate) places: Places,
    /// When to look again which programs that have joined are filtered.
    pub(crate) filters_due: Instant,
    /// Programs that have not joined. `None` unless the recorder starts a command, since the environment of
    /// other programs does not name the recorder.
    pub(crate) left_out: Option<LeftOut>,
    /// Whether programs that start do not join, as was found last.
    pub(crate) is_crowded_out: bool,
    /// Programs that were named because the library is not loaded into them.
    pub(crate) obstacles: usize,
}

impl Watches {
    /// Nothing has been found so far.
    fn new(places: Places, left_out: Option<LeftOut>) -> Self {
        Self { places, filters_due: Instant::now(), left_out, is_crowded_out: false, obstacles: 0 }
    }
}
