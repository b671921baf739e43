//! `tracewing record`: records a command and shows how it goes. All of it is printed to standard error, since standard
//! output and input are the command's.

use crate::format::TextFormat;
use crate::screen::{self, Form};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use tracewing_abi::functions::ALL_FUNCTIONS;
use tracewing_abi::region::Geometry;
use tracewing_consumer::clock::ClockChoice;
use tracewing_consumer::memory::{SUB_BUFFER_BYTES, SUB_BUFFERS, possible_cpus};
use tracewing_consumer::pace::FLUSH;
use tracewing_kernel::Probe;
use tracewing_probes::{Resolved, Resolver};
use tracewing_rules::{Majors, Rule, Rules};
use tracewing_session::options::Sharing;
use tracewing_session::outcome::SnapshotSummary;
use tracewing_session::preload::{self, Preload};
use tracewing_session::running::Kind;
use tracewing_session::{Observer, Options, Progress, record};
use tracewing_trace::Zone;

use crate::output::{print_warning, say, shown};
use crate::owner;
use crate::preloaded;
use crate::record_summary;
use crate::selection::{self, Condition, Selection, Wish};

const EXAMPLES: &str = "\
Examples:
  tracewing record -- ./server --port 8080
      a program, all that it starts, and the kernel's view of them
  tracewing record -o T -e 'shop:*' -- ./server
      into the folder T, of user events only those of the provider shop
  tracewing record -e 'shop:*' --exclude '*:started' --where 'depth > 3' -- ./server
      of these only those that fulfil a condition
  tracewing record --system-wide -- make -j4
      kernel events of the whole machine while make runs
  tracewing record -k 'sched_*' -k 'block:*' -- dd if=/dev/zero of=x count=9
      only these kernel events
  tracewing record --with server --for 10 -o T -e 'shop:*'
      the programs of a recording that runs, for ten seconds, into a trace of their own
  tracewing record --no-kernel -- ./server
      no kernel events: needs no privileges
  tracewing record --probe 'libc.so.6:malloc bytes=%di:u64' --probe './server:handle%return $retval' -- ./server
      two functions of programs that were never instrumented
  tracewing record --no-kernel --usdt 'python:function__*' -- /usr/bin/python3.11 server.py
      of the kernel's events only those of USDT probes
  tracewing record --locks -- ./server
      the locks of a program that was never instrumented
  tracewing record --functions 'queue_*' -- ./server
      the functions of these names, of a program built with gcc -finstrument-functions or -pg -mfentry
  tracewing record --profile -- ./server
      also 997 samples a second of where it is, for `tracewing profile`
  tracewing record --flight-recorder -o T -- ./server
      keeps the newest events in memory; `tracewing snapshot` and the end of ./server write them to T/snapshot-1, ...

Kernel events need root: without it they are left out, or refused where they are asked for (-k, --system-wide, --probe). Programs that link the crate tracewing join by themselves; any other program can be \
recorded as the kernel sees it. The exit status is that of CMD, or 1 where that is 0 and a flight recorder's \
last snapshot could not be written, or the output was deleted or moved while it was recorded. A signal that is ignored at the start \
(nohup, a script's commands in the background) does not stop the recording.";

const LONG_HELP: &str = "\
Buffers: each CPU has a buffer of --sub-buffers times --sub-buffer-size bytes. When one is full, events are lost \
and counted; programs never wait. Memory is taken only as far as it is used. If events were lost, make the buffers \
larger.

A flight recorder writes nothing until a snapshot is asked for: by `tracewing snapshot`, by SIGUSR2 sent to tracewing record, by the end of CMD, by tracewing::snapshot() in CMD, or by a panic in a Rust program that has called tracewing::snapshot_on_panic(). Each snapshot is a complete trace folder below -o with the last sub-buffers of every CPU; recording goes on, and the next snapshot has again what is still there. Larger buffers reach further back; of kernel events the newest 16 MiB of each CPU are kept, or a 32nd of the memory for all CPUs. --snapshot-on chooses: with it, only what it names leads to a snapshot, besides `tracewing snapshot` and tracewing::snapshot().

With --on-full overwrite a buffer that is full loses its oldest sub-buffer instead of the new event. Nobody knows how many events were in it; sub-buffers and bytes are counted. The kernel's buffers lose new events in any case.

With --buffers-in DIR the buffers of programs survive whatever becomes of tracewing and CMD, kill -9 included; on a disk, a crash of the machine leaves what had reached the disk. Their full size is taken from the disk at the start. DIR is emptied when the recording ends well. The kernel's buffers are not in it.

With --locks the library libtracewing_preload.so is pre-loaded under CMD and all that it starts: POSIX mutexes, \
read-write locks, spin locks, semaphores, condition variables and barriers are events of provider lock, which are recorded \
whatever -e, --level, --major and --process ask for, but not where --exclude names them. Locks that Rust's standard library and others build \
themselves are seen only where threads wait for them, as futex system calls; the kernel's own only where they are contended \
(contention_begin, contention_end), since the kernel has no event for others. Programs that are statically linked or get \
privileges when they are executed cannot be recorded so.

With --probe and --usdt the kernel puts a breakpoint onto an instruction, in every process that executes it, and is to \
record an event there (a uprobe; needs root). Events are named PROGRAM:FUNCTION and PROVIDER:NAME. ARG is [NAME=]WHAT[:TYPE]; WHAT is a \
variable of the function (`size`, `order->customer.name`), for which there must be debug information, argN of a USDT probe, `$retval` at a \
%return, or a place in the kernel's words (`%di`, `+8(%si)`). TYPE is u8 to u64, s8 to s64, x8 to x64 or string. A \
function is named by its symbol or as in the source, a place without a name by its address: PROGRAM:0x1234. `tracewing \
sites PROGRAM` lists USDT probes.

With --functions the same library records when functions begin and end, of programs and libraries that gcc or clang has built with \
-finstrument-functions, or with -pg -mfentry; and functions of Rust that have the attribute #[tracewing::traced]. GLOB is \
compared with names as in the source, C++'s with and without parameters, once for each function. `tracewing functions` reads \
them. They are events of provider function, chosen like locks.

With --profile the kernel looks HZ times a second at what each CPU runs for CMD: program counter and call chains of program and kernel, by frame pointers (for programs: -fno-omit-frame-pointer, or -C force-frame-pointers). 997 is no multiple of what else happens periodically. Without root it is programs only, if /proc/sys/kernel/perf_event_paranoid is 2 or less.

Ctrl-C, SIGTERM, SIGHUP and SIGQUIT are passed on to CMD and end the recording when CMD ends, at the latest after \
two seconds; a second one does not wait for CMD.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{}\n\n{LONG_HELP}\n\n{EXAMPLES}", selection::LONG_HELP))]
pub struct Args {
    /// Trace folder, or for a flight recorder the folder of its snapshots; must not exist, or be empty, of your own and not
    /// writable by others. It gets mode 0750 and its files 0640, less the umask [default: tracewing-DATE-TIME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Record the kernel events whose names (EVENT or SYSTEM:EVENT) match GLOB instead of the default set; may be
    /// given several times
    #[arg(short = 'k', long = "kernel-event", value_name = "GLOB")]
    kernel_events: Vec<String>,

    /// Record no kernel events but those of --probe and --usdt
    #[arg(long, conflicts_with = "kernel_events")]
    no_kernel: bool,

    /// Record kernel events of the whole machine, not only those around CMD's processes; needs root
    #[arg(long)]
    system_wide: bool,

    /// Record an event wherever the program or library PROGRAM comes to FUNCTION, or returns from it, which need not have been
    /// instrumented, with values of ARGs; may be given several times (docs/probes.md)
    #[arg(long = "probe", value_name = "PROGRAM:FUNCTION[+OFFSET][%return] [ARG]...")]
    probes: Vec<String>,

    /// Record the USDT probes of CMD and its libraries, or of PROGRAM, whose names match; may be given several times
    #[arg(long = "usdt", value_name = "[PROGRAM:]PROVIDER:NAME [ARG]...")]
    usdt: Vec<String>,

    /// Keep the newest events in memory, and write them only when a snapshot is asked for
    #[arg(long, conflicts_with_all = ["flush", "on_full"])]
    flight_recorder: bool,

    /// Take snapshots only on this (and on `tracewing snapshot`); may be given several times [default: all of it]
    #[arg(long, value_enum, value_name = "WHAT", requires = "flight_recorder", ignore_case = true)]
    snapshot_on: Vec<SnapshotOn>,

    /// What a full buffer loses: the new event, or its oldest sub-buffer
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    on_full: OnFull,

    /// Size of a sub-buffer: a power of two, in bytes or with K, M, G
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value_t = Size(SUB_BUFFER_BYTES))]
    sub_buffer_size: Size,

    /// Sub-buffers per CPU: a power of two
    #[arg(long, value_name = "N", default_value_t = SUB_BUFFERS)]
    sub_buffers: usize,

    /// An event is in the trace folder at most MS milliseconds after it was emitted
    #[arg(long, value_name = "MS", default_value_t = FLUSH.as_millis() as u32, value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    flush: u32,

    /// Which processes share buffers. A process that drops its rights can still damage the events of those
    #[arg(long, value_enum, value_name = "WHO", default_value_t)]
    buffers: Buffers,

    /// Keep the buffers of programs as files in DIR, from which `tracewing recover` gets the events if program and
    /// recorder are killed; must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    buffers_in: Option<PathBuf>,

    /// Clock of the recording: the time stamp counter where it is reliable, else CLOCK_MONOTONIC; or one of them
    #[arg(long, value_enum, value_name = "CLOCK", default_value_t)]
    clock: Clock,

    /// How to print the summary at the end; json: as one line
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: TextFormat,

    /// Print nothing but problems
    #[arg(short, long)]
    quiet: bool,

    /// Record the locks of CMD, which need not have been instrumented, and those of the kernel that are contended
    #[arg(long, conflicts_with = "with")]
    locks: bool,

    /// Which acquisitions of locks are recorded with their call chain
    #[arg(long, value_enum, value_name = "WHICH", default_value_t, requires = "locks")]
    lock_chains: Chains,

    /// Record the functions of CMD that match GLOB, if it was built for that: by gcc or clang with -finstrument-functions or -pg
    /// -mfentry, or with #[traced]; may be given several times
    #[arg(long, value_name = "GLOB", num_args = 0..=1, default_missing_value = ALL_FUNCTIONS, conflicts_with = "with",
        value_parser = clap::builder::NonEmptyStringValueParser::new())]
    functions: Vec<String>,
    /// Take HZ samples a second of what CMD and all that it starts are at, with call chains, and read counters; with
    /// --system-wide of the whole machine [default HZ: 997]
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "997",
        value_parser = parse_hertz, conflicts_with_all = ["with", "flight_recorder"])]
    profile: Option<u32>,

    /// Record the programs of the recording that runs by this process id or command, too, into buffers of its own; without CMD
    /// until that one's command ends, or Ctrl-C. Of the kernel's events only those of the whole machine can be had
    #[arg(long, value_name = "PID|NAME")]
    with: Option<String>,

    /// With --with: a recording of this user, in place of one of your own; only root may
    #[arg(long, value_name = "NAME|UID", requires = "with")]
    user: Option<String>,

    /// End the recording after SECONDS, if CMD has not ended before; CMD goes on
    #[arg(long = "for", value_name = "SECONDS", value_parser = parse_seconds)]
    duration: Option<Duration>,

    /// The command to record, and its arguments
    #[arg(required_unless_present = "with", trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    selection: Selection,

    #[command(flatten)]
    condition: Condition,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Buffers {
    /// A program and the children that it forks; one that can become another user shares with none of them
    Program,
    /// Programs of a user that start with the same rights, and their children; those that can become another user share with none
    User,
    /// None: each process has its own, and no forked child has its parent's
    #[default]
    Process,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Chains {
    /// Those that wait
    #[default]
    Contended,
    /// All, each of which then costs some microseconds
    All,
    /// None
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SnapshotOn {
    /// The signal, sent to tracewing record
    #[value(name = "SIGUSR2", alias = "USR2")]
    Signal,
    /// The end of CMD, also by a signal, or of the recording
    Exit,
    /// A panic in a program that has called tracewing::snapshot_on_panic()
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum OnFull {
    /// The new event, which is counted
    #[default]
    Discard,
    /// The oldest sub-buffer, which is counted
    Overwrite,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Clock {
    #[default]
    Auto,
    Tsc,
    Mono,
}

/// Bytes, written as people write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size(usize);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            size if size.is_multiple_of(1 << 20) => write!(f, "{}M", size >> 20),
            size if size.is_multiple_of(1 << 10) => write!(f, "{}K", size >> 10),
            size => write!(f, "{size}"),
        }
    }
}

fn parse_size(text: &str) -> Result<Size, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    size.map(Size).ok_or_else(|| "a number of bytes, or one followed by K, M or G, is expected".to_owned())
}

fn parse_hertz(text: &str) -> Result<u32, String> {
    let hertz = text.parse().ok().filter(|hertz| *hertz > 0);
    hertz
        .ok_or_else(|| "a number of samples a second is expected; a command is to stand behind --".to_owned())
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "a number of seconds is expected".to_owned())
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let options = options(args)?;
    let quiet = args.quiet || args.format == TextFormat::Json;
    let mut screen =
        Screen { live: !args.quiet && std::io::stderr().is_terminal(), quiet, shown: false, last: None };
    let outcome = match record(&options, &mut screen) {
        Ok(outcome) => outcome,
        Err(error) => {
            let status = error.exit_status();
            let style = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
            say!("{style}error{style:#}: {}", shown(&error.to_string()));
            return Ok(ExitCode::from(status.clamp(1, 255) as u8));
        }
    };
    screen.clear();
    match args.format {
        TextFormat::Json => {
            let line = serde_json::to_string(&outcome.summary).context("cannot write the summary as JSON")?;
            // The recording is complete, whether its summary can be printed or not.
            let _ = writeln!(screen::stderr(Form::Json), "{line}");
        }
        TextFormat::Text if !args.quiet => {
            let has_rules = !matches!(args.selection.enable(&args.condition), Wish::Nothing);
            record_summary::print(&outcome.summary, has_rules);
        }
        TextFormat::Text => record_summary::print_losses(&outcome.summary),
    }
    Ok(ExitCode::from(outcome.exit_status.clamp(0, 255) as u8))
}

/// The probes that are asked for, and what the user should know of them.
fn probes(args: &Args) -> Result<(Vec<Probe>, Vec<String>)> {
    if args.probes.is_empty() && args.usdt.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let resolver = Resolver::new(args.command.first().and_then(|command| command.to_str()));
    let mut all = Resolved::default();
    let functions = args.probes.iter().map(|text| resolver.probe(text));
    for resolved in functions.chain(args.usdt.iter().map(|text| resolver.usdt(text))) {
        all.unite(resolved?);
    }
    Ok((all.probes, all.remarks))
}

fn options(args: &Args) -> Result<Options> {
    let geometry = Geometry::new(possible_cpus(), args.sub_buffers, args.sub_buffer_size.0)
        .map_err(|reason| anyhow!("{reason} (see --sub-buffer-size and --sub-buffers)"))?;
    let is_preloaded = args.locks || !args.functions.is_empty();
    let beside = |rule| preloaded::beside(rule, &args.selection, args.locks, &args.functions);
    let (rules, majors) = match args.selection.enable(&args.condition) {
        Wish::Nothing => (preloaded::beside_all(args.locks, &args.functions), Majors::ALL),
        // The mask is for all events, a rule only for the program's other ones.
        Wish::Majors(majors) if is_preloaded => (beside(Rule { majors, ..Rule::default() }), Majors::ALL),
        Wish::Majors(majors) => (Rules::new(), majors),
        Wish::Rule(rule) => {
            // What decides is the last one.
            let names = args.selection.names_of_tasks(&args.condition);
            (beside(*rule).iter().cloned().chain(names).collect(), Majors::ALL)
        }
    };
    let preload = is_preloaded.then(preload::find_library).transpose()?.map(|library| Preload {
        library,
        locks: args.locks.then_some(match args.lock_chains {
            Chains::Contended => preload::Chains::Contended,
            Chains::All => preload::Chains::All,
            Chains::None => preload::Chains::None,
        }),
        functions: args.functions.clone(),
    });
    let with = args
        .with
        .as_deref()
        .map(|wanted| anyhow::Ok(owner::recordings(args.user.as_deref())?.choose(Some(wanted), Kind::Any)?));
    let (probes, remarks) = probes(args)?;
    remarks.iter().for_each(|remark| print_warning(remark));
    if with.is_some() && !args.system_wide && !(args.kernel_events.is_empty() && probes.is_empty()) {
        bail!(
            "with the programs of another recording, kernel events can only be had of the whole machine (--system-wide)"
        );
    }
    if args.no_kernel && args.system_wide && probes.is_empty() {
        bail!("--system-wide is about kernel events, of which --no-kernel leaves none");
    }
    let no_kernel = args.no_kernel || (with.is_some() && !args.system_wide);
    Ok(Options {
        with: with.transpose()?,
        duration: args.duration,
        output: args.output.clone().unwrap_or_else(default_folder),
        command: args.command.clone(),
        rules,
        majors,
        kernel_events: (!no_kernel).then(|| args.kernel_events.clone()),
        probes,
        system_wide: args.system_wide,
        geometry: match args.on_full {
            OnFull::Discard => geometry,
            OnFull::Overwrite => geometry.overwriting(),
        },
        preload,
        profile: args.profile,
        buffers_in: args.buffers_in.clone(),
        flight_recorder: args.flight_recorder.then(|| {
            let on = |what| args.snapshot_on.is_empty() || args.snapshot_on.contains(&what);
            tracewing_session::options::SnapshotOn {
                signal: on(SnapshotOn::Signal),
                exit: on(SnapshotOn::Exit),
                panic: on(SnapshotOn::Panic),
            }
        }),
        flush: Duration::from_millis(args.flush.into()),
        sharing: match args.buffers {
            Buffers::Program => Sharing::Program,
            Buffers::User => Sharing::User,
            Buffers::Process => Sharing::Process,
        },
        clock: match args.clock {
            Clock::Auto => ClockChoice::Auto,
            Clock::Tsc => ClockChoice::Tsc,
            Clock::Mono => ClockChoice::Monotonic,
        },
    })
}

/// `tracewing-YYYYmmdd-HHMMSS`, local time.
fn default_folder() -> PathBuf {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
    let name = Zone::Local.civil(seconds).map_or_else(
        || format!("tracewing-{seconds}"),
        |t| {
            format!(
                "tracewing-{:04}{:02}{:02}-{:02}{:02}{:02}",
                t.year, t.month, t.day, t.hour, t.minute, t.second
            )
        },
    );
    name.into()
}

/// Standard error: notes, and on a terminal a line that is written over and over.
struct Screen {
    live: bool,
    /// Snapshots are not told as they come.
    quiet: bool,
    /// The live line stands on the screen.
    shown: bool,
    last: Option<Progress>,
}

impl Screen {
    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            erase_and_write("");
        }
    }

    fn show(&mut self, line: &str) {
        erase_and_write(line);
        self.shown = true;
    }
}

/// Writes over a terminal's line; as for [`say`], it is no matter where that fails.
fn erase_and_write(line: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{line}").and_then(|()| stderr.flush());
}

impl Observer for Screen {
    fn progress_interval(&self) -> Option<Duration> {
        self.live.then_some(Duration::from_millis(500))
    }

    fn progress(&mut self, progress: &Progress) {
        let since = self.last.replace(*progress);
        let (events, elapsed) = since.map_or((0, Duration::ZERO), |last| (last.events, last.elapsed));
        if let Some(snapshots) = progress.snapshots {
            self.show(&format!(
                "flight recorder {:.1} s   {snapshots} {}   {} lost",
                progress.elapsed.as_secs_f64(),
                if snapshots == 1 { "snapshot" } else { "snapshots" },
                record_summary::number(progress.lost)
            ));
            return;
        }
        let seconds = (progress.elapsed - elapsed).as_secs_f64();
        let rate = (progress.events - events) as f64 / seconds.max(1e-3);
        self.show(&format!(
            "recording {:.1} s   {} events/s   {} lost   {}",
            progress.elapsed.as_secs_f64(),
            record_summary::number(rate as u64),
            record_summary::number(progress.lost),
            record_summary::bytes(progress.bytes)
        ));
    }

    fn snapshot(&mut self, snapshot: &SnapshotSummary) {
        if !self.quiet {
            self.clear();
            record_summary::print_snapshot(snapshot);
        }
    }

    fn note(&mut self, line: &str) {
        self.clear();
        print_warning(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, size) in [("4096", 4096), ("512K", 512 << 10), ("1m", 1 << 20), ("1G", 1 << 30)] {
            assert_eq!(parse_size(text), Ok(Size(size)));
        }
        for text in ["", "K", "-1", "1T", "99999999999999999999", "18446744073709551615G", "ö"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(Size(512 << 10).to_string(), "512K");
    }
}
