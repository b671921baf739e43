//! What `tracewing record` accepts.

use super::help;
use super::values::{Size, parse_hertz, parse_pid, parse_seconds, parse_size};
use crate::format::TextFormatOption;
use crate::selection::{self, Condition, Selection};
use clap::{ArgGroup, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tracewing_abi::functions::ALL_FUNCTIONS;
use tracewing_consumer::memory::{SUB_BUFFER_BYTES, SUB_BUFFERS};
use tracewing_consumer::pace::FLUSH;
use tracewing_units::Pid;

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("running").args(["pids", "names", "cgroups"]).multiple(true).conflicts_with("with"))]
#[command(after_help = help::EXAMPLES, after_long_help = format!("{}\n\n{}\n\n{}", selection::LONG_HELP, help::LONG_HELP, help::EXAMPLES))]
pub struct Args {
    /// Trace folder, or for a flight recorder the folder of its snapshots; must not exist, or be empty, of
    /// your own and not writable by others. It gets mode 0750 and its files 0640, less the umask
    /// [default: tracewing-DATE-TIME]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub kernel: KernelArgs,

    #[command(flatten)]
    pub buffer: BufferArgs,

    /// Clock of the recording: the time stamp counter where it is reliable, else CLOCK_MONOTONIC; or one of
    /// them
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t)]
    pub clock: Clock,

    // Of the summary at the end.
    #[command(flatten)]
    pub format: TextFormatOption,

    /// Print nothing but problems
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub preload: PreloadArgs,

    /// Take HZ samples a second of what CMD and all that it starts are executing, with call chains, and read
    /// counters; with --system-wide, of the whole machine [default HZ: 997]
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "997",
        value_parser = parse_hertz, conflicts_with_all = ["with", "flight_recorder"])]
    pub profile: Option<u32>,

    /// Record the programs of a running recording, too: the one with this process id or command. Its own
    /// trace is not affected. Without CMD, until that recording's command ends, or Ctrl-C. Events of the
    /// kernel only with --system-wide
    #[arg(long, value_name = "PID|NAME")]
    pub with: Option<String>,

    /// With --with: a recording of this user instead of your own; needs root
    #[arg(long, value_name = "NAME|UID", requires = "with")]
    pub user: Option<String>,

    /// End the recording after SECONDS, or before that with CMD or the last of the processes; what still runs
    /// then continues
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse_seconds)]
    pub duration: Option<Duration>,

    #[command(flatten)]
    pub attach: AttachArgs,

    /// The command to record, and its arguments
    #[arg(required_unless_present_any = ["with", "running"], conflicts_with = "running", trailing_var_arg = true, value_name = "CMD")]
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
    /// Record the running process PID instead of CMD, with all its threads and what it forks, until it ends
    /// or Ctrl-C; the process continues
    #[arg(long = "pid", value_name = "PID[,PID]...", value_delimiter = ',', value_parser = parse_pid)]
    pub pids: Vec<Pid>,

    /// Record the running processes whose executable or first thread has a name that matches GLOB; may be
    /// given several times
    #[arg(long = "name", value_name = "GLOB", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub names: Vec<String>,

    /// Likewise the processes in the control group PATH and below, and those that enter it later; may be
    /// given several times
    #[arg(long = "cgroup", value_name = "PATH")]
    pub cgroups: Vec<PathBuf>,

    /// With --pid, --name and --cgroup: also the processes that they fork (the default)
    #[arg(long, requires = "running", overrides_with = "no_children")]
    pub children: bool,

    /// Without the processes that they fork. Of threads that begin during the recording, what they do in
    /// their first half second may be missing
    #[arg(long, requires = "running")]
    pub no_children: bool,
}

/// What of the kernel is recorded, and of programs by probes.
#[derive(Debug, clap::Args)]
pub struct KernelArgs {
    /// Record the kernel events whose names (EVENT or SYSTEM:EVENT) match GLOB instead of the default set;
    /// may be given several times. Of a command, sched_switch comes with task_newtask, which shows whose
    /// switches are recorded
    #[arg(short = 'k', long = "kernel-event", value_name = "GLOB")]
    pub kernel_events: Vec<String>,

    /// Record no kernel events but those of --probe and --usdt
    #[arg(long, conflicts_with = "kernel_events")]
    pub no_kernel: bool,

    /// Record kernel events of the whole machine, not only those around CMD's processes; needs root
    #[arg(long)]
    pub system_wide: bool,

    /// Record an event wherever the program or library PROGRAM reaches FUNCTION, or returns from it, which
    /// need not have been instrumented, with values of ARGs; may be given several times
    /// (docs/reference/probes.md)
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

    /// Take snapshots only on this (and on `tracewing snapshot`); may be given several times
    /// [default: all of it]
    #[arg(long, value_enum, value_name = "WHAT", requires = "flight_recorder", ignore_case = true)]
    pub snapshot_on: Vec<SnapshotOn>,

    /// What a full buffer loses: the new event, or its oldest sub-buffer
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub on_full: OnFull,

    /// Size of a sub-buffer: a power of two, in bytes or with K, M, G
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value_t = Size(SUB_BUFFER_BYTES))]
    pub sub_buffer_size: Size,

    /// Sub-buffers per CPU: a power of two
    #[arg(long, value_name = "N", default_value_t = SUB_BUFFERS)]
    pub sub_buffers: usize,

    /// An event is in the trace folder at most MS milliseconds after it was emitted
    #[arg(long, value_name = "MS", default_value_t = FLUSH.as_millis() as u32, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    pub flush: u32,

    /// Which processes share buffers. A process that drops its rights can still damage the events of those
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    pub buffers: Buffers,

    /// Keep the buffers of programs as files in DIR, from which `tracewing recover` gets the events if
    /// program and recorder are killed; must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub buffers_in: Option<PathBuf>,
}

/// What a pre-loaded library records.
#[derive(Debug, clap::Args)]
pub struct PreloadArgs {
    /// Record the locks of CMD, which need not have been instrumented, and those of the kernel that are
    /// contended
    #[arg(long, conflicts_with = "with")]
    pub locks: bool,

    /// Which acquisitions of locks are recorded with their call chain
    #[arg(long, value_enum, value_name = "WHICH", default_value_t, requires = "locks")]
    pub lock_chains: Chains,

    /// Record the functions of CMD that match GLOB, if it was built for that: by gcc or clang with
    /// -finstrument-functions or -pg -mfentry, or with #[traced]; may be given several times
    #[arg(long, value_name = "GLOB", num_args = 0..=1, default_missing_value = ALL_FUNCTIONS, conflicts_with = "with",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub functions: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Buffers {
    /// A program and the children that it forks; one that can become another user shares with none of them
    Program,
    /// Programs of a user that start with the same rights, and their children; those that can become another
    /// user share with none
    User,
    /// None: each process has its own, and no forked child has its parent's
    #[default]
    Process,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Chains {
    /// Those that wait
    #[default]
    Contended,
    /// All, each of which then costs some microseconds
    All,
    /// None
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SnapshotOn {
    /// The signal, sent to tracewing record
    #[value(name = "SIGUSR2", alias = "USR2")]
    Signal,
    /// The end of CMD, also by a signal, or of the recording
    Exit,
    /// A panic in a program that has called tracewing::snapshot_on_panic()
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OnFull {
    /// The new event, which is counted
    #[default]
    Discard,
    /// The oldest sub-buffer, which is counted
    Overwrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Clock {
    #[default]
    Auto,
    Tsc,
    Mono,
}
