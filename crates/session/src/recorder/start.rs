//! Begins a recording: folders, buffers, the command, the kernel's events and samples.

use super::output::{Kind, Output};
use super::{Observer, Recorder, Subject, Watches};
use std::collections::HashMap;
use std::env;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;
use rustix::process::Rlimit;
use tracewing_abi::region::{Geometry, Mode};
use tracewing_abi::{FILTERS_VARIABLE, LATE_VARIABLE, SOCKET_VARIABLE};
use tracewing_consumer::classes::Classes;
use tracewing_consumer::clock::{Calibration, TraceClock};
use tracewing_consumer::description::{BufferDescription, Description};
use tracewing_consumer::folder::Folder;
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::metadata::clock_class;
use tracewing_consumer::names::Names;
use tracewing_consumer::survival::{BufferFolder, CLASSES};
use tracewing_consumer::trace::UserTrace;
use tracewing_ctf::model::ClockClass;
use tracewing_rules::Majors;
use tracewing_units::Cycles;

use crate::archives::Archives;
use crate::attacher::Attaching;
use crate::changes::Changes;
use crate::child::{Child, Inheritance};
use crate::connections::Connections;
use crate::context::Contexts;
use crate::course::Course;
use crate::drains::Drains;
use crate::entrance::Entrance;
use crate::flight::{Flight, absolute};
use crate::helpers::Helpers;
use crate::join::Join;
use crate::kernel::Kernel;
use crate::left_out::LeftOut;
use crate::listing::{self, Listing};
use crate::maker::Maker;
use crate::on_archive::OnArchive;
use crate::options::{ContextField, Options, Sharing, Trigger};
use crate::places::Places;
use crate::poll::{Poll, Token};
use crate::priority::Priority;
use crate::processes::Processes;
use crate::profile::Profile;
use crate::regions::Regions;
use crate::rules::RecordingRules;
use crate::runner::Runner;
use crate::scope::Scope;
use crate::signals::Signals;
use crate::socket::{Listener, MOST_RECORDERS, sockets};
use crate::threads::Threads;
use crate::timers::Timers;
use crate::trigger::Firing;
use crate::{Error, seccomp, system};

impl<'a> Recorder<'a> {
    pub(super) fn start(
        options: &'a Options,
        observer: &'a mut dyn Observer,
        subject: &Subject,
        clock: TraceClock,
        (output, files): (&Output, Option<BufferFolder>),
        (listener, helpers): (Listener, Helpers),
    ) -> Result<Self, Error> {
        let signals = Signals::block(options.flight_recorder.is_some_and(|on| on.signal))?;
        let open_files = system::raise_open_files();
        let begin = clock.calibrate();
        let class = clock_class(&clock, &begin, identity()?);
        let recording = identity()?;
        let places = Places::new(output.dir(), files.as_ref().map(BufferFolder::dir));
        let mut join = prepare(options, output, files, (clock, begin, class.clone()), recording)?;

        // The child waits until all that should see it has begun.
        let mut child = child(options, subject, &listener, (&signals, open_files), &mut join)?;
        let archives = archives(options, output, begin.cycles, &helpers.runner)?;
        let firing = firing(options, &helpers.runner)?;
        let priority = Priority::raise();
        let (drains, flight) =
            drains(options, output, &scope(options, subject, child.as_ref()), (&clock, class), &mut join)?;
        let processes = processes(subject)?;
        let poll = watch(&signals, child.as_ref(), processes.as_ref())?;
        let timers = Timers::new(join.clock.now(), options.flush);
        let listing = release(options, subject, &listener, child.as_mut())?;
        let left_out = matches!(subject, Subject::Command(_)).then(LeftOut::new);
        let mut recorder = Self {
            options,
            observer,
            poll,
            entrance: Entrance::new(listener),
            listing,
            connections: Connections::new(system::open_files()),
            changes: Changes::new(options.majors.0),
            attaching: Attaching::new(recording, helpers.attaches.clone()),
            course: Course::new(child, signals),
            processes,
            drains,
            flight,
            firing,
            archives,
            timers,
            join,
            watches: Watches::new(places, left_out),
            helpers,
            shown_notes: 0,
            priority,
        };
        match subject {
            Subject::Processes { found, .. } => recorder.attached_at_begin(found),
            Subject::Programs => recorder.attach_to_all(),
            Subject::Command(_) | Subject::Machine => {}
        }
        Ok(recorder)
    }
}

/// Whether the recording's purpose is that something is done when its events come.
fn is_for_events(options: &Options) -> bool {
    options.triggers.iter().any(Trigger::waits_for_events)
}

/// Lets the command run, and has programs join that the recorder does not start: those of another recording,
/// or all that start later.
fn release(
    options: &Options,
    subject: &Subject,
    listener: &Listener,
    child: Option<&mut Child>,
) -> Result<Option<Listing>, Error> {
    if let Some(child) = child {
        let name = || options.command.first().cloned().unwrap_or_default();
        child.release().map_err(|source| Error::Command { command: name(), source })?;
    }
    if let Some(with) = &options.with {
        with.invite(listener.path()).map_err(Error::With)?;
    }
    matches!(subject, Subject::Programs).then(|| Listing::add(listener.path())).transpose()
}

/// The archives of a recording that is not a flight recorder's, and the thread that runs the command for
/// them.
fn archives(
    options: &Options,
    output: &Output,
    begin: Cycles,
    runner: &Runner,
) -> Result<Option<Archives>, Error> {
    let Some(root) = output.folder() else { return Ok(None) };
    let command =
        options.rotate.command.clone().map(|command| OnArchive::new(command, runner.clone())).transpose();
    let command = command.map_err(Error::system("clone"))?;
    Ok(Some(Archives::new(root.clone(), options.rotate.clone(), command, begin)))
}

/// The threads that do what triggers say.
fn firing(options: &Options, runner: &Runner) -> Result<Vec<Firing>, Error> {
    let firing = |trigger: &Trigger| Firing::new(trigger.clone(), runner.clone());
    options.triggers.iter().map(firing).collect::<Result<_, _>>().map_err(Error::system("clone"))
}

/// The processes that run already, if such are recorded.
fn processes(subject: &Subject) -> Result<Option<Processes>, Error> {
    match subject {
        Subject::Processes { found, children } => Ok(Some(Processes::new(found, *children)?)),
        Subject::Command(_) | Subject::Programs | Subject::Machine => Ok(None),
    }
}

fn identity() -> Result<[u8; 16], Error> {
    random_uuid().map_err(Error::system("getrandom"))
}

/// Makes what programs will join: the user trace, the table of classes, the maker of buffers. The folders
/// get their descriptions.
fn prepare(
    options: &Options,
    output: &Output,
    files: Option<BufferFolder>,
    (clock, begin, class): (TraceClock, Calibration, ClockClass),
    recording: [u8; 16],
) -> Result<Join, Error> {
    let user = output.folder().map(Folder::user);
    let trace = user.map(|user| UserTrace::new(user, recording)).transpose()?;
    // The thread that writes is as urgent as this one: what it does not get to is lost. What waits for it
    // would not survive, as buffers in files do.
    let trace = match &files {
        Some(_) => trace,
        None => trace.map(|trace| trace.write_in_background(Priority::raise)),
    };
    let trace = trace.map(|trace| trace.with_names(Arc::new(Names::new(clock))));
    let rules = RecordingRules::new(&options.rules, !is_for_events(options));
    let with_sites = options.context.contains(&ContextField::Ip);
    let mut classes = Classes::new(user.as_slice(), recording, class)?.with_sites(with_sites);
    let trace = trace.map(|trace| trace.with_state_of(&classes));
    let geometry = match output.kind {
        Kind::Trace(_) => options.geometry,
        Kind::Snapshots(..) => options.geometry.overwriting(),
    };
    let description = describe(options, &rules, geometry, &clock, begin);
    if let Some(files) = &files {
        classes.keep_table(files.dir(), CLASSES)?;
        let trace_folder = output.folder().map(|folder| absolute(folder.path()).display().to_string());
        files.describe(&Description { trace_folder, ..description.clone() })?;
    }
    let majors = options.majors.0;
    let maker = Maker { geometry, clock, begin, recording, majors, files, names: HashMap::new() };
    let open_files = system::open_files();
    let contexts = Contexts::new(&options.context, clock, &mut classes);
    let regions = Regions::new(maker, clock, options.sharing, options.flush, trace, open_files);
    let regions = regions.with_contexts(contexts);
    if let Some(folder) = output.folder() {
        folder.describe(&description)?;
    }
    Ok(Join::new(clock, regions, classes, rules, description, options.listed))
}

/// The command, if there is one, stopped before its first instruction.
fn child(
    options: &Options,
    subject: &Subject,
    listener: &Listener,
    (signals, open_files): (&Signals, Rlimit),
    join: &mut Join,
) -> Result<Option<Child>, Error> {
    let command = match subject {
        Subject::Processes { .. } | Subject::Programs | Subject::Machine => return Ok(None),
        Subject::Command(command) => command,
    };
    let outer = env::var_os(SOCKET_VARIABLE);
    let (sockets, recorders) = sockets(listener.path(), outer.as_deref());
    if recorders > MOST_RECORDERS {
        join.note(
            "this is one recording in too many others: the outermost gets no events of programs".to_owned(),
        );
    }
    let joined = recorders.min(MOST_RECORDERS);
    let surplus = (joined + listing::listed()).saturating_sub(MOST_RECORDERS);
    if surplus > 0 {
        join.note(format!(
            "programs join {MOST_RECORDERS} recordings at most: the newest {surplus} of those of all programs get no \
             events of what this recording starts"
        ));
    }
    let mut variables = vec![(SOCKET_VARIABLE.into(), sockets), (LATE_VARIABLE.into(), "0".into())];
    let filters = seccomp::hand_down();
    if filters > 0 {
        variables.push((FILTERS_VARIABLE.into(), filters.to_string().into()));
    }
    if let Some(preload) = &options.preload {
        variables.extend(preload.variables(command.path(), &mut |line| join.note(line)));
    }
    let (mask, file_size_signal) = (signals.mask_before(), signals.file_size_before());
    let inheritance = Inheritance { mask, file_size_signal, open_files };
    Ok(Some(command.fork(&variables, &inheritance)?))
}

/// The threads of which the kernel's events and samples are recorded.
fn scope(options: &Options, subject: &Subject, child: Option<&Child>) -> Scope {
    match (subject, child) {
        _ if options.system_wide => Scope::System,
        (Subject::Processes { found, children }, _) => Scope::Processes {
            pids: found.processes.iter().map(|process| process.pid).collect(),
            children: *children,
        },
        (_, Some(child)) => Scope::Tree(child.pid()),
        (_, None) => Scope::System,
    }
}

/// Begins to record what comes from the kernel: its events, and samples. A flight recorder keeps the latest
/// of them, and lists threads itself if the kernel's events do not name them.
fn drains(
    options: &Options,
    output: &Output,
    scope: &Scope,
    (clock, class): (&TraceClock, ClockClass),
    join: &mut Join,
) -> Result<(Drains, Option<Flight>), Error> {
    let folder = output.folder().map(Folder::dir);
    let note = &mut |line| join.note(line);
    let kernel = Kernel::start(options, folder, clock, class.clone(), scope, note)?;
    let profile = match options.profile.zip(folder) {
        Some((hertz, folder)) => {
            let samples = (hertz, options.stacks);
            Profile::start(folder, samples, scope, (clock, class), options.flush, note)?
        }
        None => Profile::none(),
    };
    let flight = match &output.kind {
        Kind::Trace(_) => None,
        Kind::Snapshots(dir, _) => {
            options.flight_recorder.map(|on| Flight::new(dir.clone(), on, options.rotate.clone()))
        }
    };
    let threads = (flight.is_some() && !kernel.is_recorded()).then(Threads::new);
    Ok((Drains { kernel, profile, threads }, flight))
}

/// The loop's descriptors that are there from the begin on.
fn watch(signals: &Signals, child: Option<&Child>, processes: Option<&Processes>) -> Result<Poll, Error> {
    let poll = Poll::new()?;
    let watch = |file, token| poll.add(file, token, EventFlags::IN).map_err(Error::system("epoll_ctl"));
    watch(signals.as_fd(), Token::Signals)?;
    if let Some(child) = child {
        watch(child.as_fd(), Token::Child)?;
    }
    if let Some(processes) = processes {
        watch(processes.as_fd(), Token::Processes)?;
    }
    Ok(poll)
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
    let is_trigger = is_for_events(options);
    let new = Description::new(clock, begin, buffers);
    Description { is_trigger, command, event_rules, majors, asked_for, ..new }
}
