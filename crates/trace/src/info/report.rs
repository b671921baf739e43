//! What `tracewing info` says about a recording, as data: ready for tables, and for JSON under the names of
//! its fields.
//!
//! Times are nanoseconds since the clock's origin, which is the Unix epoch for most traces; sizes are bytes.

use crate::info::describe;
use crate::info::summary::{ClassSummary, StreamSummary, Summary, TraceSummary};
use crate::open::description::described;
use crate::open::gone::{GoneStream, GoneTrace};
use crate::open::recording::{Recording, Trace};
use crate::stream::cursor::{Lost, LostKind};
use crate::stream::losses::Losses;
use crate::{Error, uuid_text};
use serde::Serialize;
use tracewing_ctf::model::{ClockClass, EnvValue, EventRecordClass};
use tracewing_units::{Cycles, Duration, Timestamp};
use tracewing_vocabulary::environment::{Note, note_of};

/// What `tracewing info` prints about a recording.
#[derive(Debug)]
pub struct Report {
    /// First stamp of all traces.
    pub begin_ns: Option<Timestamp>,
    /// Last stamp of all traces.
    pub end_ns: Option<Timestamp>,
    /// Nanoseconds between the two.
    pub duration_ns: Option<Duration>,
    /// Contents of the `tracewing.json` files, if there are any.
    pub recordings: Vec<serde_json::Value>,
    /// The traces, then those whose folders are missing.
    pub traces: Vec<TraceReport>,
    /// What is missing: one line per message.
    pub missing: Vec<String>,
    /// What could not be read.
    pub errors: Vec<String>,
}

/// One CTF trace of the recording, with the counts of its streams and event classes.
#[derive(Debug)]
pub struct TraceReport {
    /// Host name and path from where the search began.
    pub name: String,
    /// Its folders: several for a trace in chunks, or for snapshots.
    pub folders: Vec<String>,
    /// UUID of the metadata, if it has one.
    pub uuid: Option<String>,
    /// The metadata's environment, without the notes about event classes.
    pub environment: Vec<(String, serde_json::Value)>,
    /// The clocks that its metadata declares.
    pub clocks: Vec<ClockReport>,
    /// Its data streams, with what was lost in each.
    pub streams: Vec<StreamReport>,
    /// Its event classes, with the number of events of each.
    pub event_classes: Vec<ClassReport>,
}

/// A clock: value `v` is `offset_seconds + (offset_cycles + v) / frequency_hz` seconds after its origin.
#[derive(Debug, Serialize)]
pub struct ClockReport {
    /// Its name in the metadata.
    pub name: String,
    /// What the tracer says about it: free text.
    pub description: Option<String>,
    /// Clocks with one UUID are one clock.
    pub uuid: Option<String>,
    /// Cycles per second.
    pub frequency_hz: u64,
    /// Uncertainty of a reading, in cycles.
    pub precision_cycles: Cycles,
    /// Whole seconds from the origin to value 0.
    pub offset_seconds: i64,
    /// Cycles from there to value 0.
    pub offset_cycles: Cycles,
}

/// A data stream and what it contains.
#[derive(Debug)]
pub struct StreamReport {
    /// Data stream class id.
    pub class: u64,
    /// Data stream id.
    pub id: u64,
    /// Its files, by time.
    pub files: Vec<String>,
    /// The CPU, where all packets name the same one.
    pub cpu: Option<u64>,
    /// Number of packets that its files contain.
    pub packets: u64,
    /// Number of events that its packets contain; lost ones are in `lost`.
    pub events: u64,
    /// Size of its packets, in bytes.
    pub bytes: u64,
    /// The earliest stamp of a packet or an event in it.
    pub begin_ns: Option<Timestamp>,
    /// The latest stamp of a packet or an event in it.
    pub end_ns: Option<Timestamp>,
    /// Sum of its losses.
    pub lost: Losses,
    /// Each loss, up to 10,000.
    pub losses: Vec<LossReport>,
}

/// Something that the tracer could not record.
#[derive(Debug, Serialize)]
pub struct LossReport {
    /// `events` or `packets`.
    pub what: &'static str,
    /// How many, where that is known.
    pub count: Option<u64>,
    /// Not before this stamp.
    pub begin_ns: Option<Timestamp>,
    /// Not after this stamp.
    pub end_ns: Option<Timestamp>,
}

/// An event class and how often it occurs.
#[derive(Debug, Serialize)]
pub struct ClassReport {
    /// Data stream class id.
    pub stream_class: u64,
    /// Event class id, unique within its data stream class.
    pub id: u64,
    /// Its name, which some tracers leave out.
    pub name: Option<String>,
    /// LTTng's log level, 0 (emergency) to 14 (debug).
    pub log_level: Option<i64>,
    /// K42's major class of an event of tracewing, if that is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub major: Option<i64>,
    /// How often it occurs.
    pub count: u64,
    /// What its author says about it.
    pub description: Option<String>,
    /// How its author wants it printed.
    pub print: Option<String>,
    /// Its place in the program's source, as `file:line`.
    pub source: Option<String>,
    /// The fields of its payload, in order.
    pub fields: Vec<FieldReport>,
}

/// A field of an event class.
#[derive(Debug, Serialize)]
pub struct FieldReport {
    /// Its name in the metadata, without the `_` that CTF 1.8 may put before it.
    pub name: String,
    /// Its type, such as `u32`, `string`, `u8[16]` or `enum u8 { idle = 0, busy = 1..3 }`.
    #[serde(rename = "type")]
    pub class: String,
    /// Unit of its values, such as `ns` or `bytes`, if the author gave one.
    pub unit: Option<String>,
}

impl Report {
    /// Reads all of `recording` and reports. Errors are part of the report, and are given as well.
    pub fn new(recording: &Recording) -> (Self, Vec<Error>) {
        let summary = Summary::collect(recording);
        // Events before an extract's beginning only give names.
        let part = recording.extract_begin().unwrap_or(Timestamp::MIN);
        let range = summary.range().map(|(begin, end)| (begin.max(part), end.max(part)));
        let report = Report {
            begin_ns: range.map(|(begin, _)| begin),
            end_ns: range.map(|(_, end)| end),
            duration_ns: range.map(|(begin, end)| end - begin),
            recordings: described(recording),
            traces: (summary.traces.iter().map(|trace| TraceReport::new(recording, trace)))
                .chain(recording.gone().iter().map(TraceReport::of_gone))
                .collect(),
            missing: recording.missing().to_vec(),
            errors: summary.errors.iter().map(ToString::to_string).collect(),
        };
        (report, summary.errors)
    }
}

impl TraceReport {
    fn new(recording: &Recording, summary: &TraceSummary) -> Self {
        let trace = &recording.traces()[summary.trace];
        let class = trace.class();
        let environment = class.env.iter().filter(|(key, _)| note_of(key).is_none());
        TraceReport {
            name: trace.name().to_owned(),
            folders: trace.folders().iter().map(|folder| folder.display().to_string()).collect(),
            uuid: class.uuid.as_ref().map(uuid_text),
            environment: environment.map(|(key, value)| (key.clone(), json(value))).collect(),
            clocks: class.clock_classes.iter().map(ClockReport::new).collect(),
            streams: summary.streams.iter().map(|stream| StreamReport::new(recording, stream)).collect(),
            event_classes: summary
                .classes
                .iter()
                .filter_map(|class| ClassReport::new(trace, class))
                .collect(),
        }
    }
}

impl TraceReport {
    /// What the recording's description says of a trace that is gone.
    fn of_gone(trace: &GoneTrace) -> Self {
        TraceReport {
            name: trace.name.clone(),
            folders: vec![trace.folder.display().to_string()],
            uuid: None,
            environment: Vec::new(),
            clocks: Vec::new(),
            streams: trace.streams.iter().map(StreamReport::of_gone).collect(),
            event_classes: Vec::new(),
        }
    }
}

impl StreamReport {
    fn of_gone(stream: &GoneStream) -> Self {
        let (what, count) = ("events", stream.lost.events());
        StreamReport {
            class: stream.class,
            id: stream.id,
            files: Vec::new(),
            cpu: None,
            packets: 0,
            events: 0,
            bytes: 0,
            begin_ns: None,
            end_ns: None,
            lost: stream.lost,
            losses: vec![LossReport { what, count, begin_ns: None, end_ns: None }],
        }
    }
}

impl ClockReport {
    fn new(clock: &ClockClass) -> Self {
        ClockReport {
            name: clock.name.clone().unwrap_or_else(|| clock.id.clone()),
            description: clock.description.clone(),
            uuid: clock.uuid.as_ref().map(uuid_text),
            frequency_hz: clock.frequency,
            precision_cycles: clock.precision.unwrap_or_default(),
            offset_seconds: clock.offset_seconds,
            offset_cycles: clock.offset_cycles,
        }
    }
}

impl StreamReport {
    fn new(recording: &Recording, summary: &StreamSummary) -> Self {
        let stream = &recording.streams()[summary.stream];
        StreamReport {
            class: stream.class_id(),
            id: stream.id(),
            files: stream.files().map(|file| file.display().to_string()).collect(),
            cpu: summary.cpu,
            packets: summary.packets,
            events: summary.events,
            bytes: summary.bytes,
            begin_ns: summary.range.map(|(begin, _)| begin),
            end_ns: summary.range.map(|(_, end)| end),
            lost: summary.lost,
            losses: summary.losses.iter().map(LossReport::new).collect(),
        }
    }
}

impl LossReport {
    fn new(lost: &Lost) -> Self {
        LossReport {
            what: match lost.kind {
                LostKind::Events => "events",
                LostKind::Packets => "packets",
            },
            count: lost.count,
            begin_ns: lost.range.map(|(begin, _)| begin),
            end_ns: lost.range.map(|(_, end)| end),
        }
    }
}

impl ClassReport {
    fn new(trace: &Trace, summary: &ClassSummary) -> Option<Self> {
        let stream = trace.class().data_stream_class(summary.stream_class)?;
        let class: &EventRecordClass = stream.event_record_class(summary.id)?;
        let note = |note: Note<'_>| match trace.note(class.id, note)? {
            EnvValue::String(text) => Some(text.clone()),
            EnvValue::Integer(number) => Some(number.to_string()),
        };
        let members = class.payload.iter().flat_map(|payload| &payload.members);
        Some(ClassReport {
            stream_class: stream.id,
            id: class.id,
            name: class.name.clone(),
            log_level: class.log_level,
            major: match trace.note(class.id, Note::Major) {
                Some(EnvValue::Integer(number)) => Some(*number),
                _ => None,
            },
            count: summary.count,
            description: note(Note::Description),
            print: note(Note::Print),
            source: trace.source(class.id),
            fields: members
                .map(|member| FieldReport {
                    name: member.name.clone(),
                    class: describe::field(&member.class),
                    unit: note(Note::Unit(&member.name)),
                })
                .collect(),
        })
    }
}

fn json(value: &EnvValue) -> serde_json::Value {
    match value {
        EnvValue::String(text) => text.as_str().into(),
        EnvValue::Integer(number) => (*number).into(),
    }
}
