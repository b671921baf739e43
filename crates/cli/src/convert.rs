//! `tracewing convert`: a recording, or a part of it, as CTF traces of either version, as JSON, or as
//! comma-separated values.

use crate::input::Input;
use crate::no_result::ANY;
use crate::output::{Output, print_warning, shown};
use crate::progress::Watch;
use crate::screen::{self, Form};
use anyhow::ensure;
use clap::ValueEnum;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracewing_ctf::model::Version;
use tracewing_trace::{ClockStyle, Conversion, Converted, Format, Listing, Sink, Style};

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// What to write; --to does the same
    #[arg(long, value_enum)]
    format: Option<Target>,

    /// Folder (ctf1, ctf2) or file (json, csv) to write. It must not exist, but a file may be a pipe, and -
    /// is standard output. Without this option, the last TRACE is OUT
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// CTF 1.8, which babeltrace2 2.0 reads
    Ctf1,
    /// CTF 2
    Ctf2,
    /// A JSON object per line and event, as `tracewing list --format json` prints it
    Json,
    /// Comma-separated values: one line per event, after a line of column names
    Csv,
}

const HELP: &str = "\
Examples:
  tracewing convert --to ctf1 my-trace my-trace-ctf1
  tracewing convert my-trace --format ctf2 -e 'sched_*' --from +1s --to +2s -o one-second
  tracewing convert my-trace --to json --where 'outcome == \"Sold\"' -o sold.json
  tracewing convert my-trace --to csv -e shop:enqueued -o enqueued.csv

TIME and CONDITION are as in `tracewing list --help`. `tracewing extract` keeps the CTF version of the traces.

Traces keep their packets, time stamps and loss counts; events that a filter leaves out do not count as losses. What \
CTF 1.8 cannot express is written in another form with the same values, or refused with the name of the field.

CSV has a column for each field of the event classes that -e and --exclude select, whether or not such events occur. \
To get fewer columns, select fewer classes.

OUT appears when it is complete. After an error or Ctrl-C, nothing remains.";

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { mut input, format, output } = args;
    let mut formats = input.take_to(|text| Target::from_str(text, false).ok());
    formats.extend(format);
    let [format] = formats[..] else {
        // Times begin with digits, or name events by number.
        let is_time = |text: &&String| !text.starts_with(char::is_alphabetic) || text.contains('#');
        let other = input.to().iter().find(|text| !is_time(text));
        let other = other.map(|text| format!("there is no format `{text}`; ")).unwrap_or_default();
        anyhow::bail!("{other}give the output format once: --to ctf1, --to ctf2, --to json or --to csv");
    };
    let Some(out) = output.or_else(|| input.take_last()) else {
        anyhow::bail!("say where to write: tracewing convert --to FORMAT TRACE OUT");
    };
    match format {
        Target::Ctf1 => write_traces(&input, Some(Version::V1_8), false, &out),
        Target::Ctf2 => write_traces(&input, Some(Version::V2), false, &out),
        Target::Json => write_lines(&input, Format::Json, &out),
        Target::Csv => write_lines(&input, Format::Csv, &out),
    }
}

/// Writes the selected part of the input as traces of a version, or each in its own; with everything that
/// explains it, if `explained`.
pub fn write_traces(
    input: &Input,
    version: Option<Version>,
    explained: bool,
    out: &Path,
) -> anyhow::Result<ExitCode> {
    ensure!(
        out.as_os_str() != "-",
        "a trace is a folder and cannot be written to standard output: give a path"
    );
    check_outside(input.traces()?, out)?;
    let (recording, filter) = input.open()?;
    let watch = Watch::new()?;
    let written = Conversion { version, filter, explained }
        .run(recording, out, &mut |progress| watch.show(progress))?;
    drop(watch);
    writeln!(screen::stdout(Form::Text), "{}", shown(&summary(&written, out)))?;
    if written.chosen == 0 {
        print_warning(&ANY.why_empty_in(input)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn write_lines(input: &Input, format: Format, out: &Path) -> anyhow::Result<ExitCode> {
    let (recording, filter) = input.open()?;
    let clock = ClockStyle { zone: filter.zone, ..ClockStyle::default() };
    let style = Style { clock, ..Style::default() };
    let listing = Listing { format, style, filter, ..Listing::default() };
    if out.as_os_str() == "-" {
        let form = if format == Format::Csv { Form::Data } else { Form::Json };
        // Below the line of column names.
        let head = usize::from(format == Format::Csv);
        let mut output = Output::new(form);
        listing.print(recording, &mut output)?;
        if output.lines() == head {
            print_warning(&ANY.why_empty_in(input)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    check_outside(input.traces()?, out)?;
    let watch = Watch::new()?;
    // A warning that cannot be printed is no reason to stop.
    let mut warn = |line: &[u8]| watch.bar.suspend(|| drop(Output::new(Form::Text).warning(line)));
    let exported = listing.export(recording, out, &mut warn, &mut |progress| watch.show(progress))?;
    drop(watch);
    if exported.is_file {
        let size = indicatif::HumanBytes(exported.bytes);
        writeln!(screen::stdout(Form::Text), "{}: {size}", shown(&out.display().to_string()))?;
    }
    if exported.is_empty {
        print_warning(&ANY.why_empty_in(input)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Output inside one of the traces would from then on be read as part of it.
pub fn check_outside(traces: &[PathBuf], out: &Path) -> anyhow::Result<()> {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for trace in traces {
        // What does not exist has an error of its own, which is more precise.
        let inside = trace
            .canonicalize()
            .is_ok_and(|trace| parent.canonicalize().is_ok_and(|parent| parent.starts_with(trace)));
        anyhow::ensure!(
            !inside,
            "{} lies in {} and would be read as a part of it; give a path outside",
            out.display(),
            trace.display()
        );
    }
    Ok(())
}

fn summary(converted: &Converted, out: &Path) -> String {
    let Converted {
        traces, streams, packets, events, bytes, lost_events, lost_packets, unknown_losses, ..
    } = *converted;
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
