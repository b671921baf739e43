//! An instance of the tracer as a recording needs it: clock, buffers, scope, the chosen events and probes
//! enabled. It records nothing before [`Source::record`].

use crate::buffers::{self, KernelBuffers};
use crate::change::Change;
use crate::choose::{Choice, choose, system_calls};
use crate::class::{Class, compile};
use crate::error::{Action, Error, RefusedEvent, joined};
use crate::instance::Instance;
use crate::options::{Options, Scope};
use crate::probes::{self, Probe};
use crate::reader::{Buffers, CpuReader};
use crate::statedump::{self, Thread};
use crate::stream::Programs;
use crate::tracefs::{Tracefs, clear, read};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use tracewing_units::{Cpu, Pid, Tid};

/// Whether the buffers are read while events are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    /// Again and again. What a full buffer loses is an option.
    Continuously,
    /// For a snapshot. A full buffer loses its oldest sub-buffer, so that it always has the newest events.
    OnDemand,
}

/// A set-up instance; removed when dropped, after its readers.
#[derive(Debug)]
pub(crate) struct Source {
    tracefs: Tracefs,
    instance: Instance,
    scope: Scope,
    pub(crate) buffers: KernelBuffers,
    /// The events that the kernel lets be recorded, in the order of their ids in the trace.
    pub(crate) classes: Vec<Class>,
    /// The value of [`environment::SYSTEM_CALLS`](tracewing_vocabulary::environment::SYSTEM_CALLS).
    pub(crate) calls: Option<&'static str>,
    /// Index of the first class of a probe in `classes`.
    first_probe: usize,
    /// Lines for the user.
    pub(crate) notices: Vec<String>,
}

impl Source {
    /// Sets an instance up and opens the buffers of its CPUs.
    pub(crate) fn set_up(options: &Options, read: Read) -> Result<(Self, Vec<CpuReader>), Error> {
        let tracefs = Tracefs::open()?;
        let available = tracefs.events()?;
        let mut choice = match options.only_probes {
            true => Choice::default(),
            false => choose(available.clone(), &options.globs)?,
        };
        if options.scope.follows_forks() {
            choice.add_lives(&available);
        }
        let chosen = choice.events.len() + options.probes.len();
        if chosen >= usize::from(u16::MAX) {
            return Err(Error::TooMany(chosen));
        }
        let mut notices = Vec::new();
        if !choice.absent.is_empty() {
            notices.push(format!("not in this kernel, left out: {}", choice.absent.join(", ")));
        }
        let instance = Instance::create(&tracefs)?;
        configure(&instance, options, read)?;
        let overwrites = options.overwrites || read == Read::OnDemand;
        let buffers = buffers::set_up(&tracefs, &instance, options, overwrites)?;
        notices.extend(buffers.differs_from(options));
        let (mut classes, refused) = enable(&tracefs, &instance, &mut choice.events)?;
        let first_probe = classes.len();
        place(&tracefs, &instance, &options.probes, &mut classes)?;
        if classes.is_empty() {
            return Err(Error::NothingEnabled(refused));
        }
        if !refused.is_empty() {
            notices.push(format!("the kernel refused, left out: {}", joined(&refused)));
        }
        let cpus = open_cpus(&tracefs, &instance, options, buffers)?;
        // A process that makes the changes for this one makes fewer from now on.
        let settled = Change::Settle.make();
        settled.map_err(|source| Error::Tracefs {
            action: Action::Write,
            path: tracefs.root().to_owned(),
            source,
        })?;
        let calls = system_calls(&available, &choice.events);
        let source =
            Self { tracefs, instance, scope: options.scope, buffers, classes, calls, first_probe, notices };
        Ok((source, cpus))
    }

    /// Begins to record the whole system, if that is the scope; a tree is recorded from
    /// [`Source::set_root_pid`] on.
    pub(crate) fn record(&self) -> Result<(), Error> {
        match self.scope {
            Scope::System => self.instance.switch(true),
            Scope::Tree | Scope::Processes { .. } => Ok(()),
        }
    }

    /// As [`crate::KernelRecorder::set_root_pid`].
    pub(crate) fn set_root_pid(&self, pid: Pid) -> Result<(), Error> {
        assert_eq!(self.scope, Scope::Tree, "only a recording of a process tree has a root");
        if !in_initial_pid_namespace() {
            return Err(Error::PidNamespace);
        }
        self.instance.set("set_event_pid", &pid.to_string())?;
        self.instance.switch(true)
    }

    /// The threads that live and are recorded; none where their numbers are not those of the events.
    pub(crate) fn living(&self) -> Result<Vec<Thread>, Error> {
        if !in_initial_pid_namespace() {
            return Ok(Vec::new());
        }
        match self.scope {
            Scope::System => Ok(statedump::all()),
            Scope::Tree | Scope::Processes { .. } => Ok(statedump::of(&self.recorded()?)),
        }
    }

    /// The numbers of the threads that are recorded, where not all are.
    pub(crate) fn recorded(&self) -> Result<Vec<Tid>, Error> {
        let text = read(&self.instance.path().join("set_event_pid"))?;
        Ok(text.split_ascii_whitespace().filter_map(|tid| tid.parse().ok()).collect())
    }

    /// Records these threads, too.
    pub(crate) fn add(&self, tids: &BTreeSet<Tid>) -> Result<(), Error> {
        let text = tids.iter().map(Tid::to_string).collect::<Vec<_>>().join(" ");
        self.instance.set("set_event_pid", &text)
    }

    /// Records all that were added but these. Kernels before 5.7 cannot leave out any.
    pub(crate) fn leave_out(&self, tids: &BTreeSet<Tid>) -> Result<(), Error> {
        const FILE: &str = "set_event_notrace_pid";
        let file = self.instance.path().join(FILE);
        if !file.exists() {
            return Ok(());
        }
        // Meanwhile none is left out.
        clear(&file)?;
        let text = tids.iter().map(Tid::to_string).collect::<Vec<_>>().join(" ");
        if text.is_empty() { Ok(()) } else { self.instance.set(FILE, &text) }
    }

    /// Begins to record the threads that were added.
    pub(crate) fn resume(&self) -> Result<(), Error> {
        self.instance.switch(true)
    }

    /// The threads whose events are recorded.
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    /// The processes of threads that ran since the recording began, ended ones too, as lines of
    /// `TID PROCESS`.
    pub(crate) fn saved_processes(&self) -> String {
        read(&self.tracefs.root().join("saved_tgids")).unwrap_or_default()
    }

    /// Stops recording; what is in the buffers can still be read.
    pub(crate) fn stop(&self) -> Result<(), Error> {
        self.instance.switch(false)
    }

    /// The note about probes of which no event was converted.
    pub(crate) fn never_seen(&self, programs: &Programs) -> Option<String> {
        let probes = || {
            let of = |id: usize| {
                (self.classes[id].record.name.as_deref().unwrap_or_default(), programs.has_seen(id))
            };
            (self.first_probe..self.classes.len()).map(of)
        };
        // A USDT probe may have several places.
        let seen: BTreeSet<&str> = probes().filter(|(_, seen)| *seen).map(|(name, _)| name).collect();
        let others: BTreeSet<&str> =
            probes().map(|(name, _)| name).filter(|name| !seen.contains(name)).collect();
        let names = others.into_iter().collect::<Vec<_>>().join(", ");
        (!names.is_empty()).then(|| format!("no event of {names}: nothing that was recorded came there"))
    }

    /// Removes the instance, and returns the notices. Its readers must have been closed.
    pub(crate) fn remove(self) -> Vec<String> {
        let Self { instance, mut notices, .. } = self;
        if let Err(error) = instance.remove() {
            notices.push(format!("{error}; the next recording removes it"));
        }
        notices
    }
}

/// Settings that a new instance takes over from the top level, where anybody may have changed them.
const OPTIONS: &[(&str, &str)] = &[("stacktrace", "0"), ("userstacktrace", "0")];

fn configure(instance: &Instance, options: &Options, read: Read) -> Result<(), Error> {
    instance.set("trace_clock", options.clock.name())?;
    for (option, value) in OPTIONS {
        instance.set(&format!("options/{option}"), value)?;
    }
    instance.set("options/event-fork", if options.scope.follows_forks() { "1" } else { "0" })?;
    if read == Read::OnDemand {
        // For the state dump. Kernels before 4.13 do not have it.
        let _ = instance.set("options/record-tgid", "1");
    }
    Ok(())
}

/// Compiles and enables events. Removes from `events` those that the kernel no longer has or refuses; the
/// returned text names the refused ones.
fn enable(
    tracefs: &Tracefs,
    instance: &Instance,
    events: &mut Vec<(String, String)>,
) -> Result<(Vec<Class>, Vec<RefusedEvent>), Error> {
    let mut classes: Vec<Class> = Vec::with_capacity(events.len());
    let mut refused = Vec::new();
    for (system, name) in std::mem::take(events) {
        let Some(class) = class(tracefs, classes.len(), &system, &name)? else { continue };
        match instance.set(&format!("events/{system}/{name}/enable"), "1") {
            Ok(()) => {
                classes.push(class);
                events.push((system, name));
            }
            Err(Error::Tracefs { source, .. }) => refused.push(RefusedEvent { system, name, source }),
            Err(error) => return Err(error),
        }
    }
    Ok((classes, refused))
}

/// Defines, compiles and enables probes. All of them are wanted: one that the kernel refuses is an error.
fn place(
    tracefs: &Tracefs,
    instance: &Instance,
    probes: &[Probe],
    classes: &mut Vec<Class>,
) -> Result<(), Error> {
    let group = instance.define(tracefs, probes)?;
    for (nth, probe) in probes.iter().enumerate() {
        let event = probes::event(nth);
        let Some(mut class) = class(tracefs, classes.len(), &group, &event)? else { continue };
        class.record.name = Some(probe.name.clone());
        instance.set(&format!("events/{group}/{event}/enable"), "1").map_err(|error| match error {
            Error::Tracefs { source, .. } => Error::Probe { name: probe.name.clone(), source, reason: None },
            error => error,
        })?;
        classes.push(class);
    }
    Ok(())
}

/// The class with that number of an event; `None` where the kernel has it no longer.
fn class(tracefs: &Tracefs, id: usize, system: &str, name: &str) -> Result<Option<Class>, Error> {
    let Some(format) = tracefs.format(system, name)? else { return Ok(None) };
    let path = tracefs.root().join("events").join(system).join(name).join("format");
    let class = compile(id as u16, system, &format, tracefs.layout().word());
    class.map(Some).map_err(|source| Error::Format { path, source })
}

fn open_cpus(
    tracefs: &Tracefs,
    instance: &Instance,
    options: &Options,
    KernelBuffers { sub_buffers, sub_buffer_bytes, .. }: KernelBuffers,
) -> Result<Vec<CpuReader>, Error> {
    let buffers = Buffers {
        layout: tracefs.layout(),
        clock: options.clock,
        page_size: sub_buffer_bytes as usize,
        pages: sub_buffers as usize,
    };
    let dir = instance.path().join("per_cpu");
    let list = |source: io::Error| Error::Tracefs { action: Action::List, path: dir.clone(), source };
    let mut numbers = Vec::new();
    for entry in fs::read_dir(&dir).map_err(list)? {
        let name = entry.map_err(list)?.file_name();
        numbers.extend(name.to_str().and_then(|n| n.strip_prefix("cpu")?.parse::<Cpu>().ok()));
    }
    numbers.sort_unstable();
    let open = |cpu| CpuReader::open(&dir.join(format!("cpu{cpu}")), cpu, buffers);
    numbers.into_iter().map(open).collect()
}

/// Whether process numbers mean here what they mean to the kernel (`PROC_PID_INIT_INO`,
/// `include/linux/proc_ns.h`).
pub(crate) fn in_initial_pid_namespace() -> bool {
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == INITIAL)
}
