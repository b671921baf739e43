//! Begins a recording: folders, buffers, the command, and what is recorded besides.

use super::output::Output;
use super::{Observer, Recorder, Subject, Watches};
use std::collections::HashMap;
use std::env;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use rustix::event::epoll::EventFlags;
use tracewing_abi::region::{Geometry, Mode};
use tracewing_abi::{FILTERS_VARIABLE, LATE_VARIABLE, SOCKET_VARIABLE};
use tracewing_consumer::classes::{Classes, clock_class};
use tracewing_consumer::clock::{Calibration, TraceClock};
use tracewing_consumer::folder::{BufferDescription, Description, Folder};
use tracewing_consumer::identity::random_uuid;
use tracewing_consumer::names::Names;
use tracewing_consumer::survival::{BufferFolder, CLASSES};
use tracewing_consumer::trace::UserTrace;
use tracewing_rules::Majors;

use crate::attacher::Attaching;
use crate::changes::Changes;
use crate::child::{Child, Inheritance};
use crate::connections::Connections;
use crate::course::Course;
use crate::drains::Drains;
use crate::entrance::Entrance;
use crate::flight::{Flight, absolute};
use crate::join::Join;
use crate::kernel::Kernel;
use crate::left_out::LeftOut;
use crate::maker::Maker;
use crate::options::{Options, Sharing};
use crate::places::Places;
use crate::poll::{Poll, Token};
use crate::priority::Priority;
use crate::processes::Processes;
use crate::profile::Profile;
use crate::regions::Regions;
use crate::rules::RecordingRules;
use crate::scope::Scope;
use crate::signals::Signals;
use crate::socket::{Listener, sockets};
use crate::threads::Threads;
use crate::timers::Timers;
use crate::{Error, seccomp, system};

impl<'a> Recorder<'a> {
    pub(super) fn start(
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
            Subject::Processes(..) => None,
            Subject::ProgramsOf(other) => Some(Child::of_another(other.command_pid)?),
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
                let filters = seccomp::own();
                if filters > 0 {
                    variables.push((FILTERS_VARIABLE.into(), filters.to_string().into()));
                }
                if let Some(preload) = &options.preload {
                    variables.extend(preload.variables(command.path(), &mut |line| join.note(line)));
                }
                Some(command.fork(&variables, &inheritance)?)
            }
        };
        let priority = Priority::raise();
        let folder = output.folder().map(Folder::dir);
        let note = &mut |line| join.note(line);
        let scope = match (subject, &child) {
            _ if options.system_wide => Scope::System,
            (Subject::Processes(found, attach), _) => Scope::Processes {
                pids: found.processes.iter().map(|process| process.pid).collect(),
                children: attach.children,
            },
            (_, Some(child)) => Scope::Tree(child.pid()),
            (_, None) => Scope::System,
        };
        let kernel = Kernel::start(options, folder, &clock, class.clone(), &scope, note)?;
        let profile = match options.profile.zip(folder) {
            Some((hertz, folder)) => {
                Profile::start(folder, hertz, &scope, (&clock, class), options.flush, note)?
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
        if let Some(child) = &child {
            watch(child.as_fd(), Token::Child)?;
        }
        let processes = match subject {
            Subject::Processes(found, attach) => Some(Processes::new(found, attach.children)?),
            _ => None,
        };
        if let Some(processes) = &processes {
            watch(processes.as_fd(), Token::Processes)?;
        }
        let timers = Timers::new(join.clock.now(), options.flush);
        let name = || options.command.first().cloned().unwrap_or_default();
        if let Some(child) = &mut child {
            child.release().map_err(|source| Error::Command { command: name(), source })?;
        }
        if let Some(with) = &options.with {
            with.invite(listener.path()).map_err(Error::With)?;
        }
        let mut recorder = Self {
            options,
            observer,
            poll,
            entrance: Entrance::new(listener),
            connections: Connections::new(system::open_files()),
            changes: Changes::new(options.majors.0),
            attaching: Attaching::new(recording),
            course: Course::new(child, signals),
            processes,
            drains: Drains { kernel, profile, threads },
            flight,
            join,
            watches: Watches { places, filters_due: Instant::now(), left_out: LeftOut::new(), obstacles: 0 },
            timers,
            told: 0,
            priority,
        };
        if let Subject::Processes(found, _) = subject {
            recorder.attached_at_begin(found);
        }
        Ok(recorder)
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
