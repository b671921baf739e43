//! `tracewing info`: what a recording holds, as text, JSON or CSV.
//!
//! | module | what |
//! |---|---|
//! | `rows` | streams and event classes as rows of tables |
//! | `text` | all of it for people |

mod rows;
mod text;

use crate::format::TableFormat;
use crate::input::warn_of_incomplete;
use crate::options::TimeZone;
use crate::output::{print_error, raise_file_limit, warn_of_missing};
use crate::screen;
use crate::table::reference::{self, View};
use crate::table::{Layout, Table, TableOptions, heads};
use crate::traces::Traces;
use anyhow::{Result, ensure};
use rows::{Class, Stream, class_columns, stream_columns};
use serde::Serialize;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use tracewing_trace::{ClockReport, Filter, Recording, Report, TraceReport, Zone};
use tracewing_units::{Duration, Timestamp};

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{EXAMPLES}{}", reference::help(&views())))]
pub struct Args {
    #[command(flatten)]
    traces: Traces,

    /// Print one table alone, of all traces
    #[arg(long, value_enum, value_name = "WHAT")]
    show: Option<Show>,

    #[command(flatten)]
    table: TableOptions,

    #[command(flatten)]
    time_zone: TimeZone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Show {
    /// Streams: their packets, events, losses, and files
    Streams,
    /// Event classes: how many events, their fields, descriptions and sources
    Classes,
}

const EXAMPLES: &str = "\
Examples:
  tracewing info my-trace
  tracewing info my-trace --show classes --sort events -n 10
  tracewing info my-trace --show streams --format csv > streams.csv
  tracewing info my-trace --format json | jq '.traces[].event_classes[].name'

--columns, --wide, --sort, -n and CSV need --show, since they apply to one table.
";

pub fn run(args: &Args) -> Result<ExitCode> {
    raise_file_limit();
    let format = args.table.format();
    let options = &args.table;
    let has_choice =
        options.choice.is_fixed() || options.sort.sort.is_some() || options.first.count.is_some();
    ensure!(
        args.show.is_some() || !(has_choice || format == TableFormat::Csv),
        "CSV and --columns, --wide, --sort and -n are for one table: give --show streams or --show classes"
    );
    let recording = Recording::open(args.traces.folders()?)?;
    warn_of_missing(&recording);
    warn_of_incomplete(&recording, &Filter::default())?;
    let (report, errors) = Report::new(&recording);
    let zone = args.time_zone.zone();
    let mut out = screen::stdout(format.into());
    match (args.show, format) {
        (Some(show), _) => {
            let (name, table) = one(show, &report, options, zone)?;
            table.write(&mut out, format, (name, &[]), |_| Ok(()))?;
        }
        (None, TableFormat::Json) => {
            serde_json::to_writer(&mut out, &Document::new(&report, zone)).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        (None, _) => text::print(&mut out, &report, zone)?,
    }
    out.flush()?;
    let damaged = !errors.is_empty();
    for error in errors {
        print_error(&error.into());
    }
    Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A table of all traces, and its name in JSON.
fn one(show: Show, report: &Report, options: &TableOptions, zone: Zone) -> Result<(&'static str, Table)> {
    let traces = report.traces.iter();
    Ok(match show {
        Show::Streams => {
            let layout = options.layout(&stream_columns())?;
            ("streams", layout.table(&traces.flat_map(|trace| streams(trace, zone)).collect::<Vec<_>>()))
        }
        Show::Classes => {
            let layout = options.layout(&class_columns())?;
            ("event_classes", layout.table(&traces.flat_map(classes).collect::<Vec<_>>()))
        }
    })
}

fn streams(trace: &TraceReport, zone: Zone) -> Vec<Stream<'_>> {
    trace.streams.iter().map(|stream| Stream::new(trace, stream, zone)).collect()
}

fn classes(trace: &TraceReport) -> Vec<Class<'_>> {
    trace.event_classes.iter().map(|report| Class { trace: &trace.name, report }).collect()
}

/// The report as JSON: streams and event classes by their columns.
#[derive(Serialize)]
struct Document<'r> {
    begin_ns: Option<Timestamp>,
    end_ns: Option<Timestamp>,
    duration_ns: Option<Duration>,
    recordings: &'r [Value],
    traces: Vec<TraceDocument<'r>>,
    missing: &'r [String],
    errors: &'r [String],
}

#[derive(Serialize)]
struct TraceDocument<'r> {
    name: &'r str,
    folders: &'r [String],
    uuid: &'r Option<String>,
    environment: &'r [(String, Value)],
    clocks: &'r [ClockReport],
    streams: Table,
    event_classes: Table,
}

impl<'r> Document<'r> {
    fn new(report: &'r Report, zone: Zone) -> Self {
        let trace = |trace: &'r TraceReport| TraceDocument {
            name: &trace.name,
            folders: &trace.folders,
            uuid: &trace.uuid,
            environment: &trace.environment,
            clocks: &trace.clocks,
            streams: Layout::all(&stream_columns(), TableFormat::Json).table(&streams(trace, zone)),
            event_classes: Layout::all(&class_columns(), TableFormat::Json).table(&classes(trace)),
        };
        Document {
            begin_ns: report.begin_ns,
            end_ns: report.end_ns,
            duration_ns: report.duration_ns,
            recordings: &report.recordings,
            traces: report.traces.iter().map(trace).collect(),
            missing: &report.missing,
            errors: &report.errors,
        }
    }
}

pub fn views() -> Vec<View> {
    vec![
        View::new("info --show streams", heads(stream_columns())),
        View::new("info --show classes", heads(class_columns())),
    ]
}
