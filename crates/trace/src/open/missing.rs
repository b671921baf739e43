//! Finds what `tracewing.json` lists but the files do not contain: losses before the first or after the last
//! packet of a stream, streams that are gone or cut off, and recorders that did not complete.
//!
//! Data that are missing at the end become a loss there, so that a reader of the stream treats nothing after
//! it as known. A stream that is gone has no files, and is lost as a whole. A trace that was converted from
//! another one declares itself what that had lost there.

mod traces;

use crate::open::carried::{self, At};
use crate::open::cut;
use crate::open::description::{self, Listed, known, real_time, streams};
use crate::open::gone::GoneTrace;
use crate::open::recording::{Recording, Stream};
use crate::stream::cursor::{Lost, LostKind};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use traces::TRACES;
use tracewing_units::{Duration, Timestamp};

const NS_PER_MS: u64 = 1_000_000;

/// More than times of a description and of its streams differ by rounding.
const ROUNDING: Duration = Duration::from_ns(1000);

/// What is missing at the end of a stream.
struct Gap {
    /// The stream's place in [`Recording::streams`].
    stream: usize,
    /// How many events, where that is known.
    count: Option<u64>,
    /// They are not before this, nor before the stream's last packet ends.
    since: Since,
}

/// Since when events may be missing.
#[derive(Debug, Clone, Copy)]
enum Since {
    /// Since the stream's last packet.
    LastPacket,
    /// They are no older at the recording's end.
    Age(Duration),
    Time(Timestamp),
}

/// Learns from the descriptions around the traces what is missing. A recording that is being made has not
/// ended anywhere yet.
pub(crate) fn learn(recording: &mut Recording) {
    for trace in 0..recording.traces().len() {
        learn_carried(recording, trace);
    }
    let mut folders: BTreeMap<PathBuf, Vec<usize>> = BTreeMap::new();
    let mut is_described: HashSet<usize> = HashSet::new();
    for (index, trace) in recording.traces().iter().enumerate() {
        // If several are merged into one, their order is unknown.
        if let [folder] = trace.folders()
            && let Some(parent) = folder.parent()
        {
            folders.entry(parent.to_owned()).or_default().push(index);
        }
    }
    for (folder, traces) in folders {
        match description::parsed(&folder) {
            Some(described) if described.is_object() => {
                is_described.extend(traces.iter().filter(|_| described[description::COPIED] != true));
                learn_from(recording, &folder, &traces, &described);
            }
            None if description::read(&folder).is_none() => {}
            _ => {
                let path = folder.join(description::NAME);
                let line =
                    format!("{} is broken: whether the recording is complete is unknown", path.display());
                recording.missing.push(line);
            }
        }
    }
    for stream in 0..recording.streams().len() {
        if !is_described.contains(&recording.streams()[stream].trace_index()) {
            cut::learn(recording, stream);
        }
    }
}

/// Learns what a trace that was made of another one says of the begins and ends of its streams.
fn learn_carried(recording: &mut Recording, trace: usize) {
    let of_file = |recording: &Recording, path: &Path| {
        let is_this = |stream: &Stream| {
            let mut files = stream.files().chain(stream.files.is_empty().then(|| Path::new(stream.name())));
            stream.trace_index() == trace && files.any(|file| file.file_name() == path.file_name())
        };
        recording.streams().iter().position(is_this)
    };
    for (name, lost) in carried::get(&recording.traces()[trace], At::Begin) {
        if let Some(stream) = of_file(recording, Path::new(&name)) {
            recording.set_lost_at_begin(stream, lost);
        }
    }
    let of_trace = &recording.traces()[trace];
    let declared = [At::Within, At::End].into_iter().flat_map(|at| carried::get(of_trace, at));
    for (name, lost) in declared.collect::<Vec<_>>() {
        let path = recording.traces()[trace].folders()[0].join(&name);
        let stream = of_file(recording, &path).unwrap_or_else(|| recording.add_missing(trace, &path));
        recording.add_lost(stream, Lost { count: lost.count.and_then(known), ..lost });
    }
}

fn learn_from(recording: &mut Recording, folder: &Path, traces: &[usize], described: &Value) {
    let is_copied = described[description::COPIED] == true;
    if is_copied && let Some(lines) = described[description::MISSING].as_array() {
        recording.missing.extend(lines.iter().filter_map(|line| Some(line.as_str()?.to_owned())));
        recording.gone.extend(traces::of_copy(folder, described));
        return;
    }
    let state = described["state"].as_str().unwrap_or_default();
    let why = match state {
        description::RECORDING => return,
        description::KILLED => Some("the recorder was killed: what it had not written by then is missing"),
        description::CUT_SHORT => {
            Some("the recording was cut short, and `tracewing info` says why: what came later is missing")
        }
        _ => None,
    };
    recording.missing.extend(why.map(|why| format!("{}: {why}", folder.display())));
    // What was older had been written when the recorder was killed.
    let flush = || described["buffers"]["flush_ms"].as_u64().and_then(|ms| ms.checked_mul(NS_PER_MS));
    let unwritten = match state {
        description::KILLED => {
            Some(flush().map_or(Since::LastPacket, |ns| Since::Age(Duration::from_ns(ns))))
        }
        _ => taken(described),
    };
    let mut gaps = Vec::new();
    for &trace in traces {
        let folder = recording.traces()[trace].folders()[0].clone();
        let name = folder.file_name().and_then(|name| name.to_str());
        let Some(name) = name.filter(|name| TRACES.contains(name)) else { continue };
        let mut listed = match is_copied {
            true => BTreeMap::new(),
            false => streams(described, name),
        };
        if !is_copied {
            learn_overwritten(recording, trace, described);
            learn_reasons(recording, trace, described);
        }
        for at in 0..recording.streams().len() {
            if recording.streams()[at].trace_index() == trace {
                gaps.extend(gap(recording, at, &mut listed, unwritten));
            }
        }
        for (name, listed) in listed {
            gaps.extend(gone_stream(recording, trace, &folder.join(name), listed));
        }
    }
    note(recording, traces, &gaps);
    // However the paths were given: relative, or through links.
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if !is_copied && recording.inputs().iter().any(|input| real(folder).starts_with(real(input))) {
        let gone = traces::of_recording(folder, described);
        gone.iter().for_each(|trace| report(recording, trace, described));
        recording.gone.extend(gone);
    }
}

/// Reports a trace that is gone, with the number of events that it held.
fn report(recording: &mut Recording, trace: &GoneTrace, described: &Value) {
    let (folder, events) = (trace.folder.display(), traces::events(trace, described));
    recording.missing.push(match trace.folder.exists() {
        true => format!("{folder} has no metadata, without which its {events} events cannot be read"),
        false => format!("{folder} is missing, with {events} events"),
    });
}

/// Learns what was overwritten before the streams of a trace begin; of a snapshot also what programs held
/// that had ended, in whose place another program's stream may be.
fn learn_overwritten(recording: &mut Recording, trace: usize, described: &Value) {
    for range in described["overwritten"].as_array().into_iter().flatten() {
        let begin = recording.streams().iter().position(|stream| {
            let name = stream.files().next().and_then(Path::file_name).and_then(|name| name.to_str());
            stream.trace_index() == trace && name.is_some() && name == range["stream"].as_str()
        });
        let Some(stream) = begin else { continue };
        let Some(to) = recording.streams()[stream].files[0].begin else { continue };
        let time = |key: &str| real_time(described, &range[key]);
        let to = match described["snapshot"].is_object() {
            true => time("end_cycles").map_or(to, |end| end.max(to)),
            false => to,
        };
        // Data that were overwritten later lie between two packets, which report them.
        if let Some(from) = time("begin_cycles").filter(|from| *from < to) {
            let lost = Lost { range: Some((from, to)), ..overwritten(range) };
            let before = recording.streams()[stream].lost_at_begin;
            recording.set_lost_at_begin(stream, before.map_or(lost, |before| both(before, lost)));
        }
    }
}

/// How much a description says that was overwritten: of programs packets, of the kernel events.
fn overwritten(range: &Value) -> Lost {
    let number = |key: &str| range[key].as_u64().and_then(known).filter(|count| *count > 0);
    match (number("sub_buffers"), number("events")) {
        (None, events @ Some(_)) => Lost { kind: LostKind::Events, count: events, range: None },
        (packets, _) => Lost { kind: LostKind::Packets, count: packets, range: None },
    }
}

/// Two losses as one, from the begin of one of them to the end of the other.
fn both(one: Lost, other: Lost) -> Lost {
    let range = one.range.zip(other.range).map(|(one, other)| (one.0.min(other.0), one.1.max(other.1)));
    let sum = one.count.zip(other.count).map(|(one, other)| one.saturating_add(other));
    Lost { count: sum.filter(|_| one.kind == other.kind), range, ..one }
}

/// Learns of which streams the losses leave no gap among a thread's events: children of `vfork` and of bare
/// `clone` use their parent's buffers without a place of their own in them, and lose all that they emit.
fn learn_reasons(recording: &mut Recording, trace: usize, described: &Value) {
    let Some(losses) = described["losses"].as_array() else { return };
    for stream in recording.streams.iter_mut().filter(|stream| stream.trace == trace) {
        let [file] = &stream.files[..] else { continue };
        let name = file.path.file_name().and_then(|name| name.to_str());
        let mut of_it =
            losses.iter().filter(|loss| name.is_some() && loss["stream"].as_str() == name).peekable();
        stream.loses_of_others =
            of_it.peek().is_some() && of_it.all(|loss| loss["reason"] == description::NOT_PROTECTED);
    }
}

/// The loss of a whole stream whose file is gone. One that has lost everything had none.
fn gone_stream(recording: &mut Recording, trace: usize, path: &Path, listed: Listed) -> Option<Gap> {
    let Listed { events, bytes, lost, .. } = listed;
    if bytes > 0 {
        let shown = path.display();
        recording.missing.push(match path.exists() {
            true => format!("{shown} is empty, and had {events} events"),
            false => format!("{shown} is missing, with {events} events"),
        });
    }
    let has_lost_more = !listed.more().is_nothing();
    (bytes > 0 || lost > 0 || has_lost_more).then(|| Gap {
        stream: recording.add_missing(trace, path),
        count: known(events.saturating_add(lost)).filter(|_| !has_lost_more),
        since: Since::LastPacket,
    })
}

/// The moment of a snapshot: until then, nothing is missing after the end of a stream. Later events are not
/// in all streams.
fn taken(described: &Value) -> Option<Since> {
    let taken = real_time(described, described.pointer("/snapshot/taken_cycles")?)?;
    Some(Since::Time(taken + ROUNDING))
}

/// The loss at the end of a stream, whose description is taken out of the map; unknown for a stream of
/// several files. Events since `unwritten` may be missing: those that a recorder had not written when it was
/// killed, or those since the moment of a snapshot.
fn gap(
    recording: &mut Recording,
    at: usize,
    listed: &mut BTreeMap<String, Listed>,
    unwritten: Option<Since>,
) -> Option<Gap> {
    let [file] = &recording.streams()[at].files[..] else { return None };
    let path = file.path.clone();
    let found = listed.remove(path.file_name()?.to_str()?);
    let listed = found.unwrap_or_default();
    if listed.is_lost_unknown {
        recording.streams[at].loses_more = true;
        let why = "a process has written nonsense into its counters of lost events: their number is unknown";
        recording.missing.push(format!("{}: {why}", path.display()));
    }
    let size = fs::metadata(&path).map_or(0, |meta| meta.len());
    if size < listed.bytes {
        let (gone, bytes) = (listed.bytes - size, listed.bytes);
        recording.missing.push(format!("{}: {gone} of its {bytes} bytes are missing", path.display()));
        return Some(Gap { stream: at, count: None, since: Since::LastPacket });
    }
    recording.streams[at].state_events = found.map(|found| found.state);
    let later = match listed.lost {
        0 => 0,
        lost => lost.saturating_sub(last_packet(recording, &recording.streams()[at])?.counted),
    };
    match (later, unwritten) {
        (0, unwritten) => Some(Gap { stream: at, count: None, since: unwritten? }),
        (later, _) => Some(Gap { stream: at, count: known(later), since: Since::LastPacket }),
    }
}

/// The last packet of a stream.
struct LastPacket {
    end: Option<Timestamp>,
    /// Number of events that it reports as lost.
    counted: u64,
}

/// The last packet of a stream's only file; `None` if it is unreadable, which readers of the stream report.
fn last_packet(recording: &Recording, stream: &Stream) -> Option<LastPacket> {
    let [file] = &stream.files[..] else { return None };
    let mut packets = recording.reader(stream, file, true);
    let mut last = None;
    while let Some(head) = packets.head().ok()? {
        packets.leave_packet();
        last = Some(LastPacket {
            end: head.end_ns.or(head.begin_ns),
            counted: head.discarded.map_or(0, |discarded| discarded.value),
        });
    }
    last
}

/// Notes at the end of each stream what is missing there: from that time on to the end of all.
fn note(recording: &mut Recording, traces: &[usize], gaps: &[Gap]) {
    if gaps.is_empty() {
        return;
    }
    let streams = recording.streams();
    let of_these = |stream: &&Stream| traces.contains(&stream.trace_index());
    let begin = streams.iter().filter(of_these).filter_map(|stream| stream.files.first()?.begin).min();
    let ends: Vec<_> =
        streams.iter().map(|stream| last_packet(recording, stream).and_then(|it| it.end)).collect();
    let end =
        streams.iter().zip(&ends).filter(|(stream, _)| of_these(stream)).filter_map(|(_, end)| *end).max();
    for gap in gaps {
        let from = ends[gap.stream].or(begin).zip(end).map(|(from, end)| match gap.since {
            Since::LastPacket => from,
            Since::Age(age) => from.max(end.saturating_sub(age)),
            Since::Time(time) => from.max(time),
        });
        let range = from.zip(end).map(|(from, end)| (from, end.max(from)));
        if gap.count.is_none() && range.is_some_and(|(from, end)| from == end) {
            continue;
        }
        recording.add_lost(gap.stream, Lost { kind: LostKind::Events, count: gap.count, range });
    }
}
