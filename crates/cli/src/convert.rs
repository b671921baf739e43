//! `tracewing convert`: a recording, or a part of it, as CTF traces of either version, as JSON, or as comma-separated values.

use crate::output::{Output, raise_file_limit, shown, warn_of_unmatched};
use crate::progress::Watch;
use clap::ValueEnum;
use indicatif::ProgressBar;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_ctf::model::Version;
use tracewing_trace::{
    ClockStyle, Conversion, Converted, Filter, Format, Listing, Predicate, Progress, Recording, Sink, Style,
    TimePoint, Zone,
};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// What to write
    #[arg(long, value_enum)]
    to: Target,

    /// A trace, or a folder with traces below it
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// The folder (ctf1, ctf2) or file (json, csv) to write, where nothing may be yet
    #[arg(value_name = "OUT")]
    out: PathBuf,

    /// Leave out what lies before TIME
    #[arg(long = "from", value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,

    /// Leave out what lies behind TIME
    #[arg(long = "until", value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,

    /// Write only events whose names match GLOB; may be given several times
    #[arg(short = 'e', long = "event", value_name = "GLOB")]
    events: Vec<String>,

    /// But not those whose names match GLOB; may be given several times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,

    /// Write only events for which this is true, as in 'depth > 3 && customer == "x"'
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<Predicate>,

    /// Read times in UTC instead of the local time zone
    #[arg(long)]
    clock_gmt: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// CTF 1.8, which babeltrace2 2.0 reads
    Ctf1,
    /// CTF 2
    Ctf2,
    /// A JSON object per line and event, as `tracewing list --format json` prints it
    Json,
    /// Comma-separated values: a line per event below one with the columns' names
    Csv,
}

const HELP: &str = "\
Examples:
  tracewing convert --to ctf1 my-trace my-trace-ctf1
  tracewing convert --to ctf2 -e 'sched_*' --from +1s --until +2s my-trace one-second
  tracewing convert --to json --where 'depth > 3' my-trace deep.json
  tracewing convert --to csv -e shop:enqueued my-trace enqueued.csv

TIME and CONDITION are as in `tracewing list --help`.

Traces keep packets, stamps, and what they tell of losses; events that are left out are no losses. What CTF 2 has and \
CTF 1.8 has not is said otherwise there, with the same values (docs/convert.md), or refused with the name of the field.

The columns of csv follow from the metadata and -e and --exclude, not from the events: choose few events for few columns.

OUT gets its name when it is complete. After an error, or Ctrl-C, there is nothing.";

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let zone = if args.clock_gmt { Zone::Utc } else { Zone::Local };
    let point = |text: &Option<String>| text.as_deref().map(|text| TimePoint::parse(text, zone)).transpose();
    let filter = Filter {
        from: point(&args.from)?,
        to: point(&args.until)?,
        zone,
        events: args.events.clone(),
        exclude: args.exclude.clone(),
        predicate: args.condition.clone(),
        ..Filter::default()
    };
    check_outside(&args.trace, &args.out)?;
    raise_file_limit();
    let watch = Watch::new()?;
    let recording = Recording::open(&[&args.trace])?;
    warn_of_unmatched(&recording, &args.events);
    let mut progress = |progress: Progress| watch.show(progress);
    let out = &args.out;
    let said = match args.to {
        Target::Ctf1 | Target::Ctf2 => {
            let version = if args.to == Target::Ctf1 { Version::V1_8 } else { Version::V2 };
            summary(&Conversion { version, filter }.run(&recording, out, &mut progress)?, out)
        }
        Target::Json => export(Format::Json, filter, &recording, out, &watch.bar, &mut progress)?,
        Target::Csv => export(Format::Csv, filter, &recording, out, &watch.bar, &mut progress)?,
    };
    drop(watch);
    writeln!(std::io::stdout(), "{}", shown(&said))?;
    Ok(ExitCode::SUCCESS)
}

/// What were written into `trace` would from then on be read as a part of it.
pub fn check_outside(trace: &Path, out: &Path) -> anyhow::Result<()> {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What does not exist has an error of its own, which tells more.
    let inside = trace
        .canonicalize()
        .is_ok_and(|trace| parent.canonicalize().is_ok_and(|parent| parent.starts_with(trace)));
    anyhow::ensure!(
        !inside,
        "{} lies in {} and would be read as a part of it; give a path outside",
        out.display(),
        trace.display()
    );
    Ok(())
}

fn export(
    format: Format,
    filter: Filter,
    recording: &Recording,
    out: &Path,
    bar: &ProgressBar,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> anyhow::Result<String> {
    let Filter { from, to, zone, events, exclude, predicate, .. } = filter;
    let clock = ClockStyle { zone, ..ClockStyle::default() };
    let style = Style { clock, ..Style::default() };
    let listing = Listing { format, style, from, to, events, exclude, predicate, ..Listing::default() };
    // A warning that cannot be printed is no reason to stop.
    let mut warn = |line: &[u8]| bar.suspend(|| drop(Output::new().warning(line)));
    let bytes = listing.export(recording, out, &mut warn, watch)?;
    Ok(format!("{}: {}", out.display(), indicatif::HumanBytes(bytes)))
}

fn summary(converted: &Converted, out: &Path) -> String {
    let Converted { traces, streams, packets, events, bytes, lost_events, lost_packets, unknown_losses } =
        *converted;
    let mut said = format!(
        "{}: {events} events in {packets} packets of {streams} streams, {}",
        out.display(),
        indicatif::HumanBytes(bytes)
    );
    if traces > 1 {
        said += &format!(", {traces} traces");
    }
    for (count, what) in [
        (lost_events, "events lost in the recording"),
        (lost_packets, "packets lost in the recording"),
        (unknown_losses, "losses of unknown size in the recording"),
    ] {
        if count > 0 {
            said += &format!("; {count} {what}");
        }
    }
    said
}
