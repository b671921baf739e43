//! The options of a recording, and their defaults.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use tracewing_abi::region::Geometry;
use tracewing_consumer::clock::ClockChoice;
use tracewing_consumer::cpus::possible_cpus;
use tracewing_consumer::memory::{SUB_BUFFER_BYTES, SUB_BUFFERS};
use tracewing_consumer::pace::FLUSH;
use tracewing_kernel::Probe;
pub use tracewing_profile::Stacks;
use tracewing_rules::{Majors, Rules};

use crate::preload::Preload;
pub use crate::processes::Attach;
use crate::running::Running;

/// Which programs share buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// A program and the children that it forks. One that can become another user shares with none of them.
    Program,
    /// All programs of a user that join with the same rights, and the children that they fork. Those that can
    /// become another user share with none. What is mapped when a process enters a filter for system calls or
    /// a user namespace later, others still have.
    User,
    /// Every process has its own, forked children included: what a process has mapped when it drops rights,
    /// no other has.
    #[default]
    Process,
}

/// On what a flight recorder takes a snapshot by itself. It also takes one whenever `tracewing snapshot` or a
/// recorded program asks for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotOn {
    /// SIGUSR2, sent to the recorder.
    pub signal: bool,
    /// The end of the recording: the command's, by itself or by a signal, or the recorder's.
    pub exit: bool,
    /// A recorded program panics that has called `tracewing::snapshot_on_panic`.
    pub panic: bool,
}

impl Default for SnapshotOn {
    /// On all of it.
    fn default() -> Self {
        Self { signal: true, exit: true, panic: true }
    }
}

/// When a recording is rotated by itself, and what is kept of it. It also is rotated whenever `tracewing
/// rotate` asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rotate {
    /// An archive ends soon after it has so many bytes.
    pub size: Option<u64>,
    /// An archive ends this long after its begin.
    pub every: Option<Duration>,
    /// All archives, or all snapshots of a flight recorder, together have at most so many bytes: the oldest
    /// ones are removed.
    pub total: Option<u64>,
    /// There are at most so many archives, with the present one, or snapshots: the oldest ones are removed.
    pub keep: Option<NonZeroUsize>,
    /// All archives and snapshots of this recording and of the others of its session, whose folders are in
    /// the same one, have at most so many bytes.
    pub shared: Option<u64>,
    /// Run for each archive that is complete, with its path as the only argument.
    pub command: Option<ArchiveCommand>,
}

/// A program that is run for archives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveCommand {
    /// Its path or name.
    pub program: OsString,
    /// How long it may run for one archive; it is killed then.
    pub limit: Duration,
}

/// When a trigger fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// When events come. Then none of the tracer's own events are recorded, only those of the rules.
    Event,
    /// When the fullest buffer is at least so full, in hundredths, and was not at the look before. Never in a
    /// flight recorder.
    Full(u8),
    /// Whenever so many more bytes have been written.
    Size(u64),
}

/// What is done when something comes to pass in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    /// What the user has called it, where a recorder has several.
    pub name: Option<String>,
    /// What has to come to pass.
    pub when: When,
    /// Names of the recordings, or of the sessions, that it is done to.
    pub targets: Vec<String>,
    /// One after the other.
    pub actions: Vec<Action>,
    /// Least time from one time to the next. What comes to pass meanwhile has no effect.
    pub pause: Duration,
}

impl Trigger {
    /// Whether a recorder has no other purpose than this.
    pub(crate) fn waits_for_events(&self) -> bool {
        self.when == When::Event
    }
}

/// One thing that a trigger does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Takes snapshots of flight recorders.
    Snapshot,
    /// Completes archives.
    Rotate,
    /// Records the events of programs again.
    Start,
    /// Records none of them until [`Action::Start`].
    Stop,
    /// Nothing: the event is recorded.
    Notify,
    /// Runs a program without a shell, with the folder of the snapshot or archive as its argument if an
    /// action before this one has made one.
    Run(OsString),
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Snapshot => f.write_str("snapshot"),
            Self::Rotate => f.write_str("rotate"),
            Self::Start => f.write_str("start"),
            Self::Stop => f.write_str("stop"),
            Self::Notify => f.write_str("notify"),
            Self::Run(command) => write!(f, "run {}", command.display()),
        }
    }
}

/// What is recorded of the context of events. Only [`Ip`](Self::Ip) is in the events themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextField {
    /// Process id.
    Pid,
    /// Name of the process's first thread.
    Process,
    /// Name of the thread.
    Thread,
    /// Real user id.
    Uid,
    /// Real group id.
    Gid,
    /// Control group.
    Cgroup,
    /// Namespaces.
    Namespaces,
    /// Instruction pointer: the address of the code that emits the event.
    Ip,
}

impl ContextField {
    /// Each, in the order in which it is recorded and shown.
    pub const ALL: [Self; 8] = [
        Self::Pid,
        Self::Process,
        Self::Thread,
        Self::Uid,
        Self::Gid,
        Self::Cgroup,
        Self::Namespaces,
        Self::Ip,
    ];

    /// Its name in options and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pid => "pid",
            Self::Process => "process",
            Self::Thread => "thread",
            Self::Uid => "uid",
            Self::Gid => "gid",
            Self::Cgroup => "cgroup",
            Self::Ip => "ip",
            Self::Namespaces => "namespaces",
        }
    }
}

/// The shape of the kernel's buffers, if its events are requested: by name, by probes, or of the whole
/// machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelGeometry {
    /// Their own size, whatever shape those of programs have.
    Default,
    /// That of the buffers of programs, but no smaller than by default: of the number and the size of
    /// sub-buffers, only one was chosen.
    AtLeastDefault,
    /// That of the buffers of programs.
    Same,
}

/// How much a recording lists at the same time. One that is rotated forgets the oldest once complete archives
/// have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Programs that have joined; of complete archives, a tenth of that stays.
    pub programs: usize,
    /// Notes, but for those of the recording's end; of complete archives, half of that stays.
    pub notes: usize,
}

impl Default for Listed {
    /// Enough for a very large build.
    fn default() -> Self {
        Self { programs: 100_000, notes: 1000 }
    }
}

/// A recording to be made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Trace folder, or for a flight recorder the folder of its snapshots; must not exist, or be empty.
    pub output: PathBuf,
    /// Command and arguments. Empty where `attach` is set. May be empty where `with` is: then the recording
    /// lasts as long as any of the other one's processes; and where `system_wide` is: then it lasts until
    /// `duration` is over, or a signal comes.
    pub command: Vec<OsString>,
    /// Records processes that run already, in place of a command, until the last of them ends.
    pub attach: Option<Attach>,
    /// Records the programs of this recording, too: those that it has, and those that join it later. Without
    /// a command also what the kernel records of all its processes.
    pub with: Option<Running>,
    /// Records all programs that are instrumented, of this user, or if this is root of all users, in place of
    /// a command: those that run, and those that start later. Lasts until `duration` is over, or a signal
    /// comes.
    pub all_programs: bool,
    /// This thread, and those that it starts, give up the capabilities that the recording does not need, for
    /// good: for a process that does nothing else, and has no other threads.
    pub is_confined: bool,
    /// What other commands can call the recording by.
    pub name: Option<String>,
    /// Done when something comes to pass.
    pub triggers: Vec<Trigger>,
    /// The recording ends after this time, whatever the command does.
    pub duration: Option<Duration>,
    /// Event rules for user events; none means every event.
    pub rules: Rules,
    /// Major classes of user events that are on: the recording's mask word.
    pub majors: Majors,
    /// Kernel events to record; `None` for no kernel events, empty for the default set.
    pub kernel_events: Option<Vec<String>>,
    /// Probes in programs, which are kernel events in addition to the others, or instead of them.
    pub probes: Vec<Probe>,
    /// Kernel events of the whole machine, not only what concerns the command's process tree.
    pub system_wide: bool,
    /// Shape and mode of every buffer region; a flight recorder's always overwrite.
    pub geometry: Geometry,
    /// The shape of the kernel's buffers.
    pub kernel_geometry: KernelGeometry,
    /// Time after which an event is in the trace folder.
    pub flush: Duration,
    /// Which programs share buffers.
    pub sharing: Sharing,
    /// The clock whose cycles stamp events.
    pub clock: ClockChoice,
    /// A flight recorder: nothing is written before a snapshot.
    pub flight_recorder: Option<SnapshotOn>,
    /// Records the command's locks, or functions; with locks, the kernel's events about them are among those
    /// that are recorded.
    pub preload: Option<Preload>,
    /// Takes so many samples a second of what runs, and reads counters: of the command and what it starts, or
    /// with `system_wide` of the whole machine. Not in a flight recorder.
    pub profile: Option<u32>,
    /// How samples find the callers of a program's functions.
    pub stacks: Stacks,
    /// Context of programs' threads that is recorded in addition to their events.
    pub context: Vec<ContextField>,
    /// When the trace is divided into archives, and how much of it is kept: of a flight recorder, only that.
    pub rotate: Rotate,
    /// Keeps the buffers of programs as files in this folder, which must not exist, or be empty; they survive
    /// the recorder.
    pub buffers_in: Option<PathBuf>,
    /// How many programs and notes are listed.
    pub listed: Listed,
}

impl Options {
    /// The defaults for a command.
    pub fn new(output: impl Into<PathBuf>, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            output: output.into(),
            command: command.into_iter().map(Into::into).collect(),
            rules: Rules::new(),
            majors: Majors::ALL,
            kernel_events: Some(Vec::new()),
            probes: Vec::new(),
            system_wide: false,
            attach: None,
            with: None,
            all_programs: false,
            is_confined: false,
            name: None,
            triggers: Vec::new(),
            duration: None,
            geometry: default_geometry(),
            kernel_geometry: KernelGeometry::Default,
            flush: FLUSH,
            sharing: Sharing::default(),
            clock: ClockChoice::default(),
            flight_recorder: None,
            preload: None,
            profile: None,
            stacks: Stacks::default(),
            context: Vec::new(),
            rotate: Rotate::default(),
            buffers_in: None,
            listed: Listed::default(),
        }
    }
}

impl Options {
    /// Whether programs join, and not the kernel alone is recorded.
    pub(crate) fn records_programs(&self) -> bool {
        !self.command.is_empty() || self.with.is_some() || self.attach.is_some() || self.all_programs
    }

    /// The words of the command, or of that of the recording whose programs are recorded.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let other = self.with.as_ref().filter(|_| self.command.is_empty()).map(|with| with.command.clone());
        self.command.iter().map(|word| word.to_string_lossy().into_owned()).chain(other)
    }

    /// The options by which more is asked for than events of programs that have such, and of the kernel.
    pub(crate) fn asked_for(&self) -> Vec<String> {
        let preload = self.preload.as_ref();
        let locks = preload.and_then(|preload| preload.locks).map(|_| "--locks".to_owned());
        let functions = preload.into_iter().flat_map(|preload| &preload.functions);
        let functions = functions.map(|glob| format!("--functions {glob}"));
        locks
            .into_iter()
            .chain(functions)
            .chain(self.profile.map(|hertz| format!("--profile {hertz}")))
            .chain((!self.context.is_empty()).then(|| {
                let names: Vec<_> = self.context.iter().map(|field| field.name()).collect();
                format!("--context {}", names.join(","))
            }))
            .collect()
    }
}

fn default_geometry() -> Geometry {
    // The constants are within the bounds that are checked, and so is the number of CPUs.
    match Geometry::new(possible_cpus(), SUB_BUFFERS, SUB_BUFFER_BYTES) {
        Ok(geometry) => geometry,
        Err(reason) => unreachable!("{reason}"),
    }
}
