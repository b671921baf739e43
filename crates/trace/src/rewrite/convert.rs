//! Writes a recording as CTF traces of either version: all of it, or chosen events of a time range.
//!
//! Packets stay what they are, with fewer events where some are left out: their stamps, sequence numbers and
//! counters of discarded events are carried over, so that losses are reported as before. In a time range,
//! they begin and end in it, and what they cannot say of losses is declared in the metadata. Each data stream
//! becomes one file, even if it was several, with LTTng's index of it.
//!
//! The folder is written next to its final place, hidden and without metadata, and gets its name when it is
//! complete.

mod folders;
mod losses;
mod packets;
mod streams;

use crate::Error;
use crate::open::description;
use crate::open::extract::Extract;
use crate::open::recording::{Recording, Trace};
use crate::rewrite::names::is_explanation;
use crate::rewrite::naming::Naming;
use crate::rewrite::unfinished::Unfinished;
use crate::select::decisions::Decisions;
use crate::select::filter::Filter;
use crate::select::selection::Selection;
use crate::super_trace::{forget_scope, is_of_interrupt, is_of_system_call};
use crate::time::range::TimeRange;
use folders::{free_name, make_below, place};
use losses::Declared;
use std::collections::HashSet;
use std::ops::{AddAssign, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use streams::Job;
use tracewing_ctf::convert::{to_ctf1, to_ctf2, with_independent_packets, with_whole_stamps};
use tracewing_ctf::decode::Decoder;
use tracewing_ctf::model::{TraceClass, Version};
use tracewing_ctf::{json, tsdl};
use tracewing_files::Dir;
use tracewing_units::Timestamp;
use tracewing_vocabulary::{kernel, user_thread};

/// What of a recording is written, and as what.
#[derive(Debug, Clone, Default)]
pub struct Conversion {
    /// The CTF version; without one, each trace keeps its own.
    pub version: Option<Version>,
    /// Selects the events that are written.
    pub filter: Filter,
    /// Whether it also writes events that explain others, selected or not: names of threads, mappings of
    /// files. Also those before the range.
    pub explained: bool,
}

/// How much was written, and what the packets report as lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Converted {
    /// Number of traces.
    pub traces: u64,
    /// Number of data streams.
    pub streams: u64,
    /// Number of packets.
    pub packets: u64,
    /// Number of events.
    pub events: u64,
    /// The events among these that the filter selects; others explain them.
    pub chosen: u64,
    /// Size of all packets, in bytes.
    pub bytes: u64,
    /// Number of events that are known to be lost, which the packets report as before.
    pub lost_events: u64,
    /// Packets that are known to have been lost.
    pub lost_packets: u64,
    /// Losses of an unknown number of events.
    pub unknown_losses: u64,
}

impl AddAssign for Converted {
    fn add_assign(&mut self, other: Self) {
        let Self {
            traces,
            streams,
            packets,
            events,
            chosen,
            bytes,
            lost_events,
            lost_packets,
            unknown_losses,
        } = other;
        self.traces += traces;
        self.streams += streams;
        self.packets += packets;
        self.events += events;
        self.chosen += chosen;
        self.bytes += bytes;
        self.lost_events += lost_events;
        self.lost_packets += lost_packets;
        self.unknown_losses += unknown_losses;
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the recording's stream files that are done.
    pub done: u64,
    /// Bytes of all of them.
    pub total: u64,
}

impl Conversion {
    /// Writes `recording` to the folder `out`, which must not exist. `watch` is called with the progress from
    /// time to time, and may end it.
    ///
    /// A recording of one trace at the path that was given becomes a trace at `out`; traces below that path
    /// keep their places below `out`.
    ///
    /// # Errors
    /// `out` exists, a stream is damaged, a field cannot be expressed in the version, something cannot be
    /// written, or `watch` has ended it ([`Error::Stopped`]). There is nothing at `out` then.
    pub fn run(
        &self,
        recording: &Recording,
        out: &Path,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Converted, Error> {
        let range = match self.explained {
            true => self.filter.range(recording)?,
            false => self.filter.copied_range(recording)?,
        };
        let selection = Selection::new(&self.filter, recording)?;
        let total = recording.bytes();
        let start = Progress { done: 0, total };
        let decisions = Decisions::of(&self.filter, range, recording, &mut || watch(start))?;
        let naming = match self.explained {
            true => Naming::of(&self.filter, range, recording, &mut || watch(start))?,
            false => Naming::default(),
        };
        let (unfinished, top) = Unfinished::folder(out)?;
        let run = Run {
            recording,
            range,
            selection,
            decisions: &decisions,
            naming,
            filter: &self.filter,
            version: self.version,
            explained: self.explained,
        };
        let (mut converted, mut progress) = (Converted::default(), start);
        for (index, trace) in recording.traces().iter().enumerate() {
            let folder = make_below(&top, &place(recording, trace))?;
            converted += run.trace(index, trace, &folder, &mut |bytes| {
                progress.done += bytes;
                watch(progress)
            })?;
        }
        if let [input] = recording.inputs()
            && let Some(how) = description::for_copy(input, recording.missing(), recording.gone_names())
        {
            let copy = top.path().join(description::NAME);
            top.replace(description::NAME, &how).map_err(Error::io(&copy))?;
        }
        unfinished.finish()?;
        Ok(converted)
    }
}

struct Run<'r> {
    recording: &'r Recording,
    range: TimeRange,
    selection: Selection,
    decisions: &'r Decisions,
    /// The events that give the names of user threads.
    naming: Naming,
    filter: &'r Filter,
    version: Option<Version>,
    explained: bool,
}

impl Run<'_> {
    /// Writes a trace; `done` is called with the bytes of the packets that are done, and may end it.
    fn trace(
        &self,
        index: usize,
        trace: &Trace,
        folder: &Dir,
        done: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Converted, Error> {
        let metadata = trace.folders()[0].join("metadata");
        let version = self.version.unwrap_or(trace.class().version);
        let classes = self.classes(trace, version).map_err(Error::ctf(&metadata))?;
        let mut names = HashSet::new();
        let streams = self.recording.streams().iter().enumerate();
        let jobs: Vec<Job<'_>> = streams
            .filter(|(_, stream)| stream.trace_index() == index)
            .map(|(at, stream)| {
                let name = free_name(&names, stream);
                names.insert(name.clone());
                Job { at, stream, name }
            })
            .collect();
        let mut written = self.write(&jobs, &classes, folder, done)?.into_iter();
        let mut converted = Converted { traces: 1, ..Converted::default() };
        let mut declared = Declared::default();
        for Job { stream, name, .. } in &jobs {
            let of_file = name.to_string_lossy();
            for mut lost in stream.lost.iter().copied() {
                if lost.cut(&self.range) {
                    converted.note(&lost);
                    declared.add(&of_file, lost, &self.range);
                }
            }
            if let Some(mut lost) = stream.lost_at_begin
                && lost.cut(&self.range)
            {
                declared.at_begin.push((of_file.clone().into_owned(), lost));
            }
            let Some(written) = written.next().flatten() else { continue };
            written.lost.into_iter().for_each(|lost| declared.add(&of_file, lost, &self.range));
            converted += written.converted;
        }
        let mut class = TraceClass::clone(classes.trace_class());
        declared.set(&mut class);
        let text = match version {
            Version::V1_8 => tsdl::print(&class),
            Version::V2 => json::print(&class),
        };
        let path = folder.path().join("metadata");
        folder.replace("metadata", text.as_bytes()).map_err(Error::io(&path))?;
        Ok(converted)
    }

    /// The classes of the written trace.
    fn classes(&self, trace: &Trace, version: Version) -> Result<Arc<Decoder>, tracewing_ctf::Error> {
        let mut class = match version {
            Version::V1_8 => to_ctf1(trace.class())?,
            Version::V2 => to_ctf2(trace.class())?,
        };
        if !self.selection.is_everything() || self.range != TimeRange::ALL {
            class = with_whole_stamps(&class)?;
        } else if version != trace.class().version {
            class = with_independent_packets(&class)?;
        }
        if !self.selection.is_everything() {
            forget_scope(&mut class);
        }
        self.extract(trace).declare(&mut class);
        Decoder::new(Arc::new(class))
    }

    /// What the written trace says of itself.
    fn extract<'t>(&'t self, trace: &'t Trace) -> Extract<'t> {
        let (selection, filter) = (&self.selection, self.filter);
        let is_switch = |name: &str| [kernel::Switch::NAME, user_thread::Switch::NAME].contains(&name);
        let end = self.recording.end().filter(|_| self.explained);
        let left_out = selection.left_out(trace).into_iter();
        Extract {
            some_switches: selection.leaves_out(trace, is_switch),
            some_system_calls: selection.leaves_out(trace, is_of_system_call),
            some_interrupts: selection.leaves_out(trace, is_of_interrupt),
            left_out: left_out.filter(|name| !(self.explained && is_explanation(name))).collect(),
            threads: &filter.threads,
            of_tids: !filter.tids.is_empty(),
            cpus: &filter.cpus,
            lwps: self.decisions.lwps(),
            begin: Some(self.range.begin).filter(|begin| self.explained && *begin != Timestamp::MIN),
            end: end.map(|end| end.min(self.range.end)),
        }
    }
}
