//! What `tracewing record` accepts.

use super::help;
use super::values::{
    Size, check_name, parse_archive_size, parse_hertz, parse_keep, parse_name, parse_period, parse_pid,
    parse_seconds, parse_size, parse_stacks, parse_total_size,
};
use crate::format::TextFormatOption;
use crate::selection::{self, Condition, Selection};
use clap::{ArgGroup, Args as _, FromArgMatches, ValueEnum};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use tracewing_abi::functions::ALL_FUNCTIONS;
use tracewing_consumer::pace::FLUSH;
use tracewing_session::options::Stacks;
use tracewing_units::Pid;

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("running").args(["pids", "names", "cgroups"]).multiple(true).conflicts_with("with"))]
#[command(after_help = help::EXAMPLES, after_long_help = format!("{}\n\n{}\n\n{}", selection::LONG_HELP, help::LONG_HELP, help::EXAMPLES))]
pub struct Args {
    /// Folder for the trace, or for the snapshots of a flight recorder. If it exists, it must be empty,
    /// yours, and not writable by others. It gets mode 0750 and its files 0640, less the umask [default:
    /// tracewing-DATE-TIME]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub kernel: KernelArgs,

    #[command(flatten)]
    pub buffer: BufferArgs,

    #[command(flatten)]
    pub context: ContextArgs,

    #[command(flatten)]
    pub rotate: RotateArgs,

    /// Clock of the recording. auto: the time stamp counter if it is reliable, otherwise CLOCK_MONOTONIC
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t)]
    pub clock: Clock,

    // Of the summary at the end.
    #[command(flatten)]
    pub format: TextFormatOption,

    /// Print only warnings and errors
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub preload: PreloadArgs,

    /// Take HZ samples per second of CMD and everything it starts, with call chains, and read counters; with
    /// --system-wide, of the whole machine [default HZ: 997]
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "997",
        value_parser = parse_hertz, conflicts_with = "flight_recorder")]
    pub profile: Option<u32>,

    /// How samples find the callers of a program's functions. fp: the kernel follows frame pointers. dwarf,
    /// for programs without frame pointers: the kernel copies BYTES of each sampled thread's stack [default:
    /// 8K, at most 60K], and the recorder unwinds the copy with the tables that compilers write for
    /// exceptions
    #[arg(long, value_name = "fp|dwarf[,BYTES]", value_parser = parse_stacks, requires = "profile")]
    pub call_graph: Option<Stacks>,

    /// Also record the processes of a running recording, which is not affected; PID or NAME is its process id
    /// or its command. Without CMD, record these processes and those that they fork, as --pid does, until the
    /// last one ends or until Ctrl-C. With CMD, record CMD, and of these processes only their own events;
    /// kernel events then need --system-wide
    #[arg(long, value_name = "PID|NAME")]
    pub with: Option<String>,

    /// Record all instrumented programs of this user (as root: of all users) instead of CMD: those that run,
    /// and those that start later, until --for or Ctrl-C. Kernel events then need --system-wide
    #[arg(long, conflicts_with_all = ["running", "with", "command", "locks", "functions"])]
    pub all: bool,

    /// Call the recording NAME: `tracewing snapshot NAME`, for example, finds it by that
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub session: Option<String>,

    /// Not with the terminal: what a session's recorder is
    #[arg(long, hide = true, requires = "session")]
    pub background: bool,

    #[command(flatten)]
    pub trigger: TriggerArgs,

    /// The triggers of the session that wait for full buffers and sizes: for each, a JSON list of its name
    /// and its options
    #[arg(long = "session-trigger", value_name = "WORDS", value_parser = parse_trigger, hide = true)]
    pub session_triggers: Vec<NamedTrigger>,

    /// With --with: use a recording of this user instead of your own; needs root
    #[arg(long, value_name = "NAME|UID", requires = "with")]
    pub user: Option<String>,

    /// End the recording after SECONDS, or earlier if CMD or the last of the processes ends; programs that
    /// are still running continue
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse_seconds)]
    pub duration: Option<Duration>,

    #[command(flatten)]
    pub attach: AttachArgs,

    /// The command to record, and its arguments
    #[arg(conflicts_with = "running", trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,

    #[command(flatten)]
    pub selection: Selection,

    #[command(flatten)]
    pub condition: Condition,
}

/// Processes that run already.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct AttachArgs {
    /// Record the running process PID instead of CMD, with all its threads and the processes that it forks,
    /// until it ends or until Ctrl-C; the process continues
    #[arg(long = "pid", value_name = "PID[,PID]...", value_delimiter = ',', value_parser = parse_pid)]
    pub pids: Vec<Pid>,

    /// Record the running processes whose executable or main thread has a name that matches GLOB; may be
    /// given several times
    #[arg(long = "name", value_name = "GLOB", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub names: Vec<String>,

    /// Record the processes in the control group PATH and below, and those that enter it later; may be given
    /// several times
    #[arg(long = "cgroup", value_name = "PATH")]
    pub cgroups: Vec<PathBuf>,

    /// With --pid, --name and --cgroup: also record the processes that they fork (the default)
    #[arg(long, requires = "running", overrides_with = "no_children")]
    pub children: bool,

    /// With --pid, --name and --cgroup: leave out the processes that they fork. The first half second of
    /// threads that begin during the recording may be missing
    #[arg(long, requires = "running")]
    pub no_children: bool,
}

/// What of the kernel is recorded, and of programs by probes.
#[derive(Debug, clap::Args)]
pub struct KernelArgs {
    /// Record the kernel events whose names (EVENT or SYSTEM:EVENT) match GLOB instead of the default set;
    /// may be given several times. For a command, sched_switch also enables task_newtask, sched_process_exec
    /// and sched_process_exit, which show whose switches are recorded, and sched_waking also enables
    /// sched_process_exec
    #[arg(short = 'k', long = "kernel-event", value_name = "GLOB")]
    pub kernel_events: Vec<String>,

    /// Record no kernel events except those of --probe and --usdt
    #[arg(long, conflicts_with = "kernel_events")]
    pub no_kernel: bool,

    /// Record kernel events of the whole machine, not only those of CMD's processes; needs root. Without CMD,
    /// no events of programs are recorded, and the recording ends with --for or Ctrl-C
    #[arg(long)]
    pub system_wide: bool,

    /// Record an event with the values of ARGs whenever the program or library PROGRAM reaches FUNCTION, or
    /// returns from it; PROGRAM need not be instrumented. May be given several times
    #[arg(long = "probe", value_name = "PROGRAM:FUNCTION[+OFFSET][%return] [ARG]...")]
    pub probes: Vec<String>,

    /// Record the USDT probes of CMD and its libraries, or of PROGRAM, whose names match; may be given
    /// several times
    #[arg(long = "usdt", value_name = "[PROGRAM:]PROVIDER:NAME [ARG]...")]
    pub usdt: Vec<String>,
}

/// Which buffers there are, and when they are written.
#[derive(Debug, clap::Args)]
pub struct BufferArgs {
    /// Keep the newest events in memory, and write them only when a snapshot is taken
    #[arg(long, conflicts_with_all = ["flush", "on_full"])]
    pub flight_recorder: bool,

    /// Take snapshots only for this reason, and for `tracewing snapshot`; may be given several times
    /// [default: all of these reasons]
    #[arg(long, value_enum, value_name = "WHAT", requires = "flight_recorder", ignore_case = true)]
    pub snapshot_on: Vec<SnapshotOn>,

    /// What a full buffer loses: the new event, or its oldest sub-buffer. With -k, --system-wide, --probe and
    /// --usdt, this and the size and number of sub-buffers also apply to the kernel's buffers if they are
    /// given (one of the two alone makes those no smaller)
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub on_full: OnFull,

    /// Size of a sub-buffer: a power of two, in bytes or with K, M, G [default: 512K]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub sub_buffer_size: Option<Size>,

    /// Sub-buffers per CPU: a power of two [default: 8]
    #[arg(long, value_name = "N")]
    pub sub_buffers: Option<usize>,

    /// Write each event to the trace folder at most MS milliseconds after it was emitted
    #[arg(long, value_name = "MS", default_value_t = FLUSH.as_millis() as u32, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    pub flush: u32,

    /// Which processes share buffers. A process can damage the events in buffers that it shares, even after
    /// it has dropped privileges
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub buffers: Buffers,

    /// Keep the buffers of programs as files in DIR, so that `tracewing recover` can read the events if
    /// program and recorder are killed. If DIR exists, it must be empty; in a session, each recorder has a
    /// new folder in it
    #[arg(long, value_name = "DIR")]
    pub buffers_in: Option<PathBuf>,
}

/// What is recorded of the context of events.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct ContextArgs {
    /// Also record this of the threads of programs: once for each thread, and when it changes, so that
    /// events become no larger; `tracewing list --context` shows it with each event. Only `ip` is a field of
    /// each event, which `tracewing list` always shows
    #[arg(long = "context", value_enum, value_name = "NAME[,NAME]...", value_delimiter = ',')]
    pub fields: Vec<Context>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Context {
    /// Process id
    Pid,
    /// Name of the process's first thread
    Process,
    /// Name of the thread
    Thread,
    /// Real user id
    Uid,
    /// Real group id
    Gid,
    /// Control group
    Cgroup,
    /// Namespaces
    Namespaces,
    /// Instruction pointer: the address in the program that emits the event
    Ip,
}

/// When the trace is divided into archives.
#[derive(Debug, clap::Args)]
pub struct RotateArgs {
    /// Complete an archive whenever it has SIZE (in bytes or with K, M, G; at least 64K), and begin the next
    /// one: each is a complete trace in the folder archives of the trace folder
    #[arg(long, value_name = "SIZE", value_parser = parse_archive_size,
        conflicts_with = "flight_recorder")]
    pub rotate_size: Option<u64>,

    /// Complete an archive every SECONDS (at least 1), and begin the next one
    #[arg(long, value_name = "SECONDS", value_parser = parse_period,
        conflicts_with = "flight_recorder")]
    pub rotate_every: Option<Duration>,

    /// Run CMD for each archive when it is complete, with its path as the only argument: one after the other,
    /// without a shell, as this user. The recording does not wait for it
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new(),
        conflicts_with = "flight_recorder")]
    pub on_archive: Option<String>,

    /// Kill the command of --on-archive if it runs for longer than SECONDS (at least 1) for one archive
    #[arg(long, value_name = "SECONDS", value_parser = parse_period, default_value = "600",
        conflicts_with = "flight_recorder")]
    pub on_archive_limit: Duration,

    /// Remove the oldest archives, or snapshots of a flight recorder, so that all together have at most SIZE
    /// (at least 512K). Without --rotate-size, an archive ends when it has an eighth of that
    #[arg(long, value_name = "SIZE", value_parser = parse_total_size)]
    pub total_size: Option<u64>,

    /// As --total-size, which `tracewing session create` takes for all channels of the session together, and
    /// this for the one that it makes
    #[arg(long, value_name = "SIZE", value_parser = parse_total_size)]
    pub max_size: Option<u64>,

    /// Remove the oldest archives, or snapshots of a flight recorder, so that there are at most N (at least
    /// 2), with the archive that is being written. With --max-size or --total-size, and without
    /// --rotate-size, an archive ends when it has its part of that
    #[arg(long, value_name = "N", value_parser = parse_keep)]
    pub keep: Option<NonZeroUsize>,

    /// Remove the oldest archives or snapshots so that those of all channels of the session have at most SIZE
    #[arg(long, value_name = "SIZE", value_parser = parse_total_size, hide = true)]
    pub session_size: Option<u64>,
}

/// A trigger that is one of several of a recorder.
#[derive(Debug, Clone)]
pub struct NamedTrigger {
    pub name: String,
    pub args: TriggerArgs,
}

/// The words of a trigger, of which the first one is its name.
fn parse_trigger(text: &str) -> Result<NamedTrigger, String> {
    let words: Vec<String> = serde_json::from_str(text).map_err(|_| "expected a JSON list of texts")?;
    let name = words.first().ok_or("expected a name")?.clone();
    check_name(&name)?;
    let command = TriggerArgs::augment_args(clap::Command::new("trigger"));
    let matches = command.try_get_matches_from(words).map_err(|error| error.to_string())?;
    let args = TriggerArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    Ok(NamedTrigger { name, args })
}

/// What `tracewing trigger add` gives the recorder that waits for events.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct TriggerArgs {
    /// What is done when an event comes
    #[arg(long = "do", value_enum, value_name = "WHAT", hide = true)]
    pub actions: Vec<Done>,

    /// Run the program CMD when an event comes
    #[arg(long = "exec", value_name = "CMD", hide = true, required_if_eq("actions", "exec"))]
    pub exec: Option<OsString>,

    /// Not when events come, but when the fullest buffer is PERCENT full
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100), hide = true,
        conflicts_with = "when_size")]
    pub when_full: Option<u8>,

    /// Not when events come, but whenever SIZE more has been written
    #[arg(long, value_name = "SIZE", value_parser = parse_archive_size, hide = true)]
    pub when_size: Option<u64>,

    /// Do it once in SECONDS at most
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, default_value = "10", hide = true)]
    pub at_most_every: Duration,

    /// The channels to which it is done
    #[arg(long = "on", value_name = "NAME", value_parser = parse_name, hide = true)]
    pub targets: Vec<String>,
}

/// What a pre-loaded library records.
#[derive(Debug, clap::Args)]
pub struct PreloadArgs {
    /// Record the locks of CMD, which need not be instrumented, and contended locks of the kernel
    #[arg(long)]
    pub locks: bool,

    /// Which lock acquisitions are recorded with their call chain
    #[arg(long, value_enum, value_name = "WHICH", default_value_t, requires = "locks")]
    pub lock_chains: Chains,

    /// Record the functions of CMD that match GLOB, if CMD was built for this: with -finstrument-functions or
    /// -pg -mfentry of gcc or clang, or with #[traced]; may be given several times
    #[arg(long, value_name = "GLOB", num_args = 0..=1, default_missing_value = ALL_FUNCTIONS,
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub functions: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Buffers {
    /// A program and the children that it forks; a program that can become another user shares with none
    Program,
    /// Programs of a user that start with the same privileges, and their children; a program that can become
    /// another user shares with none
    User,
    /// None: each process has its own buffers, and a forked child does not use its parent's
    #[default]
    Process,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Chains {
    /// Acquisitions that wait
    #[default]
    Contended,
    /// All acquisitions; each then costs a few microseconds
    All,
    /// None
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotOn {
    /// The signal SIGUSR2, sent to tracewing record
    #[value(name = "SIGUSR2", alias = "USR2")]
    Signal,
    /// The end of CMD (including by a signal) or of the recording
    Exit,
    /// A panic in a program that has called tracewing::snapshot_on_panic()
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Done {
    /// Take a snapshot of the session's flight recorders
    Snapshot,
    /// Complete the present archives, and begin the next ones
    Rotate,
    /// Record events of programs again, after `stop`
    #[value(alias = "resume")]
    Start,
    /// Record no events of programs until `start`; the recorders continue
    #[value(alias = "pause")]
    Stop,
    /// Nothing else: the trigger's own recording has the event
    Notify,
    /// Run the program of --exec, as this option alone does
    Exec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OnFull {
    /// The new event, which is counted
    #[default]
    Discard,
    /// The oldest sub-buffer, which is counted
    Overwrite,
    /// Nothing. Refused: programs and the kernel never wait
    #[value(hide = true)]
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Clock {
    #[default]
    Auto,
    Tsc,
    Mono,
}
