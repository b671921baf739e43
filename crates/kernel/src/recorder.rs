//! A recording of kernel events: sets an instance up, drains it into a trace folder, takes it down.

use crate::choose::choose;
use crate::class::{Class, compile};
use crate::clock::KernelClock;
use crate::error::Error;
use crate::folder::KernelTrace;
use crate::instance::Instance;
use crate::metadata::trace_class;
use crate::reader::{Buffers, CpuReader};
use crate::stream::{Programs, Stream, StreamSummary};
use crate::tracefs::{Tracefs, read};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use tracewing_ctf::model::{ClockClass, EnvValue, Uuid};

/// KiB of buffer per CPU that lose nothing of a compile on every CPU with the default events, nor of programs that do
/// nothing but system calls (the measurement is in the documentation of [`crate`]).
pub const DEFAULT_BUFFER_KIB: u32 = 16 * 1024;

/// [`DEFAULT_BUFFER_KIB`], or less where all CPUs together would take more than a 32nd of the memory, but at least 1 MiB.
pub fn default_buffer_kib() -> u32 {
    let system = rustix::system::sysinfo();
    let memory = system.totalram as u64 * u64::from(system.mem_unit) / 1024;
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    (memory / 32 / cpus).clamp(1024, u64::from(DEFAULT_BUFFER_KIB)) as u32
}

/// How often to poll so that [`DEFAULT_BUFFER_KIB`] suffices. Polling without a flush writes only full packets.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Whose events are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Everybody's.
    System,
    /// Those of one process and its descendants, which [`KernelRecorder::set_root_pid`] names. What the kernel
    /// counts to them is said in the documentation of [`crate`].
    Tree,
}

/// How to record.
#[derive(Debug, Clone)]
pub struct Options {
    /// Patterns of events, see [`crate::choose::choose`]; none for the default set.
    pub globs: Vec<String>,
    /// Whose events.
    pub scope: Scope,
    /// By which clock they are stamped.
    pub clock: KernelClock,
    /// What that clock is in the trace.
    pub clock_class: ClockClass,
    /// The trace's UUID.
    pub uuid: Uuid,
    /// Buffer per CPU, in KiB.
    pub buffer_kib: u32,
    /// Entries for the metadata's environment, besides those of the machine.
    pub env: Vec<(String, EnvValue)>,
}

/// How far a recording has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Events written.
    pub events: u64,
    /// Events lost.
    pub lost: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// What a recording has come to.
#[derive(Debug, Default)]
pub struct Summary {
    /// One per CPU, in order of their numbers.
    pub streams: Vec<StreamSummary>,
    /// What the user should know, a line each.
    pub notices: Vec<String>,
    /// Why what was left could not all be written, unless [`KernelRecorder::poll`] has said it.
    pub unwritten: Option<Error>,
}

/// A running recording. Dropped without [`KernelRecorder::finish`], it leaves what was written and removes its
/// instance.
#[derive(Debug)]
pub struct KernelRecorder {
    // Before `instance`: the kernel does not remove an instance of which a file is open.
    cpus: Vec<CpuReader>,
    instance: Instance,
    trace: KernelTrace,
    programs: Programs,
    clock: KernelClock,
    scope: Scope,
    notices: Vec<String>,
    /// Whether a poll has met an error.
    failed: bool,
}

impl KernelRecorder {
    /// Begins a recording into the folder `dir`. With [`Scope::Tree`] nothing is recorded before
    /// [`KernelRecorder::set_root_pid`].
    ///
    /// # Errors
    /// [`Error::Missing`] without the privileges; [`Error::NothingChosen`]; what fails in tracefs or in `dir`. In
    /// every case no instance is left.
    pub fn start(dir: &Path, options: &Options) -> Result<Self, Error> {
        let tracefs = Tracefs::open()?;
        let choice = choose(tracefs.events()?, &options.globs)?;
        if choice.events.len() >= usize::from(u16::MAX) {
            return Err(Error::TooMany(choice.events.len()));
        }
        let mut notices = Vec::new();
        if !choice.absent.is_empty() {
            notices.push(format!("not in this kernel, left out: {}", choice.absent.join(", ")));
        }
        let instance = Instance::create(&tracefs)?;
        set_up(&instance, options)?;
        let (classes, enabled) = enable(&tracefs, &instance, &choice.events)?;
        if let Some(notice) = enabled {
            notices.push(notice);
        }
        let metadata = trace_class(&classes, options.uuid, &options.clock_class, &options.env);
        let trace = KernelTrace::create(dir, &tracewing_ctf::tsdl::print(&metadata))?;
        let cpus = open_cpus(&tracefs, &instance, options)?;
        let recorder = Self {
            cpus,
            instance,
            trace,
            programs: Programs::new(&classes),
            clock: options.clock,
            scope: options.scope,
            notices,
            failed: false,
        };
        if recorder.scope == Scope::System {
            recorder.instance.set("tracing_on", "1")?;
        }
        Ok(recorder)
    }

    /// Names the process whose tree is to be recorded and begins; it should be one that waits for this. Its number is
    /// that of the initial PID namespace.
    ///
    /// # Errors
    /// [`Error::PidNamespace`] in a container, where that number cannot be known; what fails in tracefs.
    ///
    /// # Panics
    /// If the recording is of the whole system.
    pub fn set_root_pid(&mut self, pid: u32) -> Result<(), Error> {
        assert_eq!(self.scope, Scope::Tree, "only a recording of a process tree has a root");
        if !in_initial_pid_namespace() {
            return Err(Error::PidNamespace);
        }
        self.instance.set("set_event_pid", &pid.to_string())?;
        self.instance.set("tracing_on", "1")
    }

    /// What the user should know of the recording's begin, a line each.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Moves what is in the kernel's buffers into packets, and with `flush` all packets into the folder.
    ///
    /// # Errors
    /// What fails in tracefs or in the folder; the folder is good up to there. There is no use in polling again:
    /// end the recording with [`KernelRecorder::finish`].
    pub fn poll(&mut self, flush: bool) -> Result<Progress, Error> {
        for cpu in &mut self.cpus {
            let drained = cpu.drain(&self.programs, &mut self.trace);
            let flushed =
                drained.and_then(|()| if flush { cpu.stream.end_packet(&mut self.trace) } else { Ok(()) });
            if let Err(error) = flushed {
                self.failed = true;
                return Err(error);
            }
        }
        Ok(self.progress())
    }

    fn progress(&self) -> Progress {
        self.cpus.iter().fold(Progress::default(), |sum, cpu| {
            let stream = cpu.stream.summary();
            Progress {
                events: sum.events + stream.events,
                lost: sum.lost.saturating_add(cpu.stream.lost()),
                bytes: sum.bytes + stream.bytes,
            }
        })
    }

    /// Stops, writes what is left, and removes the instance. What can no longer be written is counted as lost.
    ///
    /// # Errors
    /// What fails in tracefs; the instance is removed also then.
    pub fn finish(mut self) -> Result<Summary, Error> {
        let stopped = self.instance.set("tracing_on", "0");
        let drained = stopped.and_then(|()| self.drain_rest());
        let streams = self.cpus.iter().map(|cpu| cpu.stream.summary().clone()).collect();
        let Self { cpus, instance, mut notices, failed, .. } = self;
        drop(cpus);
        if let Err(error) = instance.remove() {
            notices.push(format!("{error}; the next recording removes it"));
        }
        let unwritten = match drained {
            Ok(()) => None,
            Err(Error::Write { .. }) if failed => None,
            Err(error @ Error::Write { .. }) => Some(error),
            Err(error) => return Err(error),
        };
        Ok(Summary { streams, notices, unwritten })
    }

    /// Goes on after a failed write, so that what is lost by it is counted; returns the first such error.
    fn drain_rest(&mut self) -> Result<(), Error> {
        let mut written = Ok(());
        for cpu in &mut self.cpus {
            loop {
                match cpu.drain_all(&self.programs, &mut self.trace) {
                    Ok(()) => break,
                    // The page that met it is consumed, and no new ones come.
                    Err(error @ Error::Write { .. }) => written = written.and(Err(error)),
                    Err(error) => return Err(error),
                }
            }
            written = written.and(cpu.stream.finish(self.clock.now(), &mut self.trace));
        }
        written
    }
}

/// Settings that a new instance takes over from the top level, where anybody may have changed them.
const OPTIONS: &[(&str, &str)] = &[("overwrite", "0"), ("stacktrace", "0"), ("userstacktrace", "0")];

fn set_up(instance: &Instance, options: &Options) -> Result<(), Error> {
    instance.set("trace_clock", options.clock.name())?;
    for (option, value) in OPTIONS {
        instance.set(&format!("options/{option}"), value)?;
    }
    instance.set("options/event-fork", if options.scope == Scope::Tree { "1" } else { "0" })?;
    instance.set("buffer_size_kb", &options.buffer_kib.to_string()).map_err(|error| match error {
        Error::Tracefs { source, .. } => Error::Buffer { kib: options.buffer_kib, source },
        error => error,
    })
}

/// Compiles and enables events. Those that the kernel refuses are left out and named in a line.
fn enable(
    tracefs: &Tracefs,
    instance: &Instance,
    events: &[(String, String)],
) -> Result<(Vec<Class>, Option<String>), Error> {
    let mut classes: Vec<Class> = Vec::with_capacity(events.len());
    let mut refused = Vec::new();
    for (system, name) in events {
        let Some(format) = tracefs.format(system, name)? else { continue };
        let path = tracefs.root().join("events").join(system).join(name).join("format");
        let id = classes.len() as u16;
        let class = compile(id, system, &format, tracefs.layout().word())
            .map_err(|source| Error::Format { path, source })?;
        match instance.set(&format!("events/{system}/{name}/enable"), "1") {
            Ok(()) => classes.push(class),
            Err(Error::Tracefs { source, .. }) => refused.push(format!("{system}:{name} ({source})")),
            Err(error) => return Err(error),
        }
    }
    if classes.is_empty() {
        return Err(Error::NothingEnabled(refused.join(", ")));
    }
    let notice =
        (!refused.is_empty()).then(|| format!("the kernel refused, left out: {}", refused.join(", ")));
    Ok((classes, notice))
}

fn open_cpus(tracefs: &Tracefs, instance: &Instance, options: &Options) -> Result<Vec<CpuReader>, Error> {
    // Kernels before 6.8 have pages of one size only.
    let page_size = match read(&instance.path().join("buffer_subbuf_size_kb")) {
        Ok(text) => text.trim().parse::<usize>().ok().map(|kib| kib * 1024),
        Err(_) => None,
    };
    let page_size = page_size.unwrap_or_else(|| tracefs.layout().page_size()).clamp(4096, 1 << 20);
    let pages = (options.buffer_kib as usize * 1024).div_ceil(page_size);
    let buffers = Buffers { layout: tracefs.layout(), clock: options.clock, page_size, pages };
    let dir = instance.path().join("per_cpu");
    let list = |source: io::Error| Error::Tracefs { action: "list", path: dir.clone(), source };
    let mut numbers = Vec::new();
    for entry in fs::read_dir(&dir).map_err(list)? {
        let name = entry.map_err(list)?.file_name();
        numbers.extend(name.to_str().and_then(|n| n.strip_prefix("cpu")?.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    let open = |cpu| CpuReader::open(&dir.join(format!("cpu{cpu}")), buffers, Stream::new(cpu, options.uuid));
    numbers.into_iter().map(open).collect()
}

/// Whether process numbers mean here what they mean to the kernel (`PROC_PID_INIT_INO`, `include/linux/proc_ns.h`).
fn in_initial_pid_namespace() -> bool {
    const INITIAL: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() == INITIAL)
}
