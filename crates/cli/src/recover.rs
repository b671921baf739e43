//! `tracewing recover`: the last events that a program left in its buffers: out of its memory as `list`
//! prints events, or out of buffers in files into a trace folder.

use crate::format::EventFormatOption;
use crate::options::{EventNames, TimeZone};
use crate::output::{Output, raise_file_limit, say, shown};
use crate::screen::Form;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_programs::image::{AddressSpace, CoreDump, Process};
use tracewing_recover::{BufferFolder, Recovered, Selection, write_trace};
use tracewing_trace::{ClockStyle, Filter, Listing, Recording, Sink, Style};
use tracewing_units::Pid;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[command(group = clap::ArgGroup::new("source").required(true).args(["folder", "core", "pid"]))]
pub struct Args {
    /// The folder with the buffers of a recording (`tracewing record --buffers-in DIR`); their events are
    /// written as a trace
    #[arg(value_name = "DIR", conflicts_with_all = ["count", "EventNames", "format", "pretty", "TimeZone"])]
    folder: Option<PathBuf>,

    /// Trace folder to write; must not exist, or be empty [default: DIR-recovered]
    #[arg(short, long, value_name = "TRACE", requires = "folder")]
    output: Option<PathBuf>,

    /// Also write events that the recording's own trace already has, if the buffers still hold them
    #[arg(long, requires = "folder")]
    all: bool,

    /// A core dump of the program
    #[arg(long, value_name = "FILE")]
    core: Option<PathBuf>,

    /// The id of the program's process, which may be stopped
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// Print only the last N events
    #[arg(short = 'n', long = "count", value_name = "N")]
    count: Option<u64>,

    #[command(flatten)]
    names: EventNames,

    #[command(flatten)]
    format: EventFormatOption,

    /// Print each event in its author's print form, with units
    #[arg(long, conflicts_with = "format")]
    pretty: bool,

    #[command(flatten)]
    time_zone: TimeZone,
}

const HELP: &str = "\
Examples:
  tracewing recover --core core.4711                  all events that the buffers still held
  tracewing recover --core core.4711 -n 20            the last 20
  tracewing recover --pid 4711 -e 'app:*'             events of one provider in a running process
  tracewing recover -o T buffers                      what buffers in files hold, as a trace in the folder T

The program must have been recorded, by `tracewing record` (with or without --flight-recorder) or by itself. Its \
buffers hold its last events and those of other programs that share the buffers, whether or not a recorder has \
written them to its trace. Kernel events are not in the memory of programs.

Events of classes that the program does not know are shown as `?`, with the id of the class and the bytes. A process \
is only read; events that are overwritten meanwhile are left out. A core dump must contain the program's shared \
memory (bit 1 of /proc/PID/coredump_filter, which is set by default).

The trace of a recording with --buffers-in holds the older events. By default, recover writes only events that the \
recorder had not written yet (the last packet of a CPU may be in both); --all writes everything in the buffers. A \
flight recorder has written no events. After a crash of the machine, events that had not reached the disk are \
missing, and damaged parts are left out with a warning. The files are not changed; remove them when you no longer \
need them.

In gdb: contrib/gdb/tracewing.py adds a command that does this for the current program or core dump.";

impl Args {
    /// Whether it prints events, rather than writing a trace.
    pub fn prints_events(&self) -> bool {
        self.folder.is_none()
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.folder {
        return recover_folder(folder, args);
    }
    let space: Box<dyn AddressSpace> = match (&args.core, args.pid) {
        (Some(core), _) => Box::new(CoreDump::open(core)?),
        (None, Some(pid)) => Box::new(Process::open(Pid::from_unsigned(pid))?),
        (None, None) => anyhow::bail!("give a core dump or a process"),
    };
    let folder = tempfile::Builder::new().prefix("tracewing-recover-").tempdir()?;
    let recovered = write_trace(&*space, folder.path())?;
    let mut output = Output::new(args.format.format.into());
    for warning in warnings(&recovered) {
        output.warning(format!("WARNING: {}\n", shown(&warning)).as_bytes())?;
    }
    let listing = Listing {
        format: args.format.format.of_list(args.pretty),
        style: Style {
            clock: ClockStyle { zone: args.time_zone.zone(), ..ClockStyle::default() },
            ..Style::default()
        },
        filter: Filter {
            events: args.names.events.clone(),
            exclude: args.names.exclude.clone(),
            ..Filter::default()
        },
        last: args.count,
        ..Listing::default()
    };
    raise_file_limit();
    listing.print(&Recording::open(&[folder.path()])?, &mut output)?;
    Ok(ExitCode::SUCCESS)
}

fn recover_folder(path: &Path, args: &Args) -> anyhow::Result<ExitCode> {
    let folder = BufferFolder::open(path)?;
    let output = args.output.clone().unwrap_or_else(|| next_to(path));
    let recovered =
        folder.write_trace(&output, if args.all { Selection::All } else { Selection::Unwritten })?;
    let mut sink = Output::new(Form::Text);
    if folder.is_live() {
        sink.warning(b"WARNING: a program, or the recorder, still writes to these buffers\n")?;
    }
    for warning in warnings(&recovered) {
        sink.warning(format!("WARNING: {}\n", shown(&warning)).as_bytes())?;
    }
    let events = plural(recovered.events, "event");
    say!("{events} recovered into {}", shown(&output.to_string_lossy()));
    if let Some(trace) = folder.trace_folder().filter(|_| !args.all) {
        say!("The events before them are in {}", shown(&trace.to_string_lossy()));
    }
    Ok(ExitCode::SUCCESS)
}

/// `DIR-recovered`.
fn next_to(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let mut name = absolute.file_name().unwrap_or_default().to_owned();
    name.push("-recovered");
    absolute.with_file_name(name)
}

/// What the events themselves do not have.
fn warnings(recovered: &Recovered) -> Vec<String> {
    const MOST_DAMAGES: usize = 8;
    const MOST_IDS: usize = 16;
    let Recovered { events, unknown, damages } = recovered;
    let mut warnings: Vec<_> = damages.iter().take(MOST_DAMAGES).cloned().collect();
    if damages.len() > MOST_DAMAGES {
        warnings.push(format!("{} more stretches could not be read", damages.len() - MOST_DAMAGES));
    }
    if !unknown.is_empty() {
        let ids: Vec<_> = unknown.keys().take(MOST_IDS).map(u16::to_string).collect();
        let more = if unknown.len() > MOST_IDS { ", …" } else { "" };
        let of = plural(unknown.values().sum(), "event");
        warnings.push(format!(
            "{of} of classes that the program does not know, named ?: id {}{more}",
            ids.join(", ")
        ));
    }
    if *events == 0 {
        warnings.push("the buffers hold no events".to_owned());
    }
    warnings
}

fn plural(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
