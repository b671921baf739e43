//! A recording: traces, and the streams of each.

use crate::open::gone::GoneTrace;
use crate::stream::cursor::{Lost, Stop, StreamCursor};
use crate::stream::file::StreamFile;
use crate::stream::index_source;
use crate::stream::losses::Losses;
use crate::stream::packet::PacketFile;
use crate::time::range::TimeRange;
use crate::{Error, uuid_text};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tracewing_ctf::decode::Decoder;
use tracewing_ctf::model::{EnvValue, TraceClass, Version};
use tracewing_units::{Cpu, Timestamp};
use tracewing_vocabulary::environment::{Note, note_key};

/// Everything found at the paths that a user gave.
#[derive(Debug)]
pub struct Recording {
    pub(super) inputs: Vec<PathBuf>,
    pub(super) traces: Vec<Trace>,
    pub(super) streams: Vec<Stream>,
    pub(super) missing: Vec<String>,
    pub(super) gone: Vec<GoneTrace>,
    pub(super) warnings: Vec<String>,
    pub(super) checkpoints: OnceLock<Box<dyn Checkpoints>>,
}

/// States of a recording at times, as [`Pause::checkpoint`](crate::super_trace::Pause::checkpoint) makes
/// them, so that what is before these times need not be read. They must be of this recording as it is now.
pub trait Checkpoints: fmt::Debug + Send + Sync {
    /// The last one before a time.
    fn before(&self, time: Timestamp) -> Option<Vec<u8>>;

    /// The times of all, in order.
    fn times(&self) -> Vec<Timestamp>;
}

/// A CTF trace: one set of metadata, and the folders that share its UUID.
#[derive(Debug)]
pub struct Trace {
    pub(super) name: String,
    pub(super) folders: Vec<PathBuf>,
    pub(super) decoder: Arc<Decoder>,
}

/// A data stream: one or several files whose packets belong together.
#[derive(Debug)]
pub struct Stream {
    pub(super) trace: usize,
    pub(super) name: String,
    pub(super) class_id: u64,
    /// What packet headers say, if they do.
    pub(super) instance_id: Option<u64>,
    pub(super) id: u64,
    pub(crate) files: Vec<StreamFile>,
    /// What is missing before its first packet.
    pub(crate) lost_at_begin: Option<Lost>,
    /// Losses that its packets do not report: after the last packet, or declared.
    pub(crate) lost: Vec<Lost>,
    /// Whether an unknown number of events is lost anywhere in it.
    pub(crate) loses_more: bool,
    /// See [`Stream::loses_of_others`].
    pub(crate) loses_of_others: bool,
    /// Whether it is of a CPU whose events an extract does not have: what it lost is no loss there.
    pub(crate) is_left_out: bool,
    /// How many of its events repeat the state; `None` if nothing says so.
    pub(crate) state_events: Option<u64>,
}

impl Recording {
    /// The paths that were given.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// The traces, in the order in which they were found.
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// The data streams of all traces, grouped by trace; at the end those without files, which only the
    /// recording's description lists.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// What of a recording of tracewing is missing, a line each: files that are gone or cut off, or what came
    /// when it could not be written any more. What that makes unknown comes as a loss, too.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Traces that the recording had and whose folders are gone.
    pub fn gone(&self) -> &[GoneTrace] {
        &self.gone
    }

    /// The names of their folders.
    pub(crate) fn gone_names(&self) -> Vec<String> {
        self.gone.iter().map(GoneTrace::folder_name).collect()
    }

    /// Has `say` called when a reader of a file finds something in it that makes numbers unknown but is no
    /// error, once for each file.
    pub fn say_remarks(&self, say: fn(&str)) {
        self.streams.iter().flat_map(|stream| &stream.files).for_each(|file| file.remarks.go_to(say));
    }

    /// What in metadata is ignored though it may mean something, a line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Has readers of the state continue from these checkpoints, unless they have others already.
    pub fn use_checkpoints(&self, checkpoints: Box<dyn Checkpoints>) {
        let _ = self.checkpoints.set(checkpoints);
    }

    /// The last checkpoint before a time, if there is one.
    pub(crate) fn checkpoint_before(&self, time: Timestamp) -> Option<Vec<u8>> {
        self.checkpoints.get()?.before(time)
    }

    /// The times of all checkpoints, in order.
    pub(crate) fn checkpoint_times(&self) -> Vec<Timestamp> {
        self.checkpoints.get().map(|checkpoints| checkpoints.times()).unwrap_or_default()
    }

    /// Adds a stream without a file; returns its index.
    pub(crate) fn add_missing(&mut self, trace: usize, path: &Path) -> usize {
        let (class_id, id) = self.listed_ids(trace, path).unwrap_or_else(|| {
            let classes = &self.traces[trace].class().data_stream_classes;
            let class_id = classes.first().map_or(0, |class| class.id);
            let is_free = |id: &u64| {
                let mut of_it = self.streams.iter().filter(|stream| stream.trace == trace);
                of_it.all(|stream| (stream.class_id, stream.id) != (class_id, *id))
            };
            (class_id, (0..).find(is_free).unwrap_or_default())
        });
        let name = path.to_string_lossy().into_owned();
        let files = Vec::new();
        self.streams.push(Stream {
            trace,
            name,
            class_id,
            instance_id: None,
            id,
            files,
            lost_at_begin: None,
            lost: Vec::new(),
            loses_more: false,
            loses_of_others: false,
            is_left_out: false,
            state_events: Some(0),
        });
        self.streams.len() - 1
    }

    /// The ids of a stream whose file is gone or empty, if its index is left.
    fn listed_ids(&self, trace: usize, path: &Path) -> Option<(u64, u64)> {
        let entry = index_source::first_entry(&self.traces[trace].folders[0], path)?;
        let class = self.traces[trace].class().data_stream_class(entry.stream_id)?;
        let id = entry.stream_instance_id?;
        let is_it = |stream: &Stream| (stream.trace, stream.class_id, stream.id) == (trace, class.id, id);
        (!self.streams.iter().any(is_it)).then_some((class.id, id))
    }

    /// Sets the loss before the first packet of a stream.
    pub(crate) fn set_lost_at_begin(&mut self, stream: usize, lost: Lost) {
        self.streams[stream].lost_at_begin = Some(lost);
    }

    /// Adds a loss that the packets of a stream do not report.
    pub(crate) fn add_lost(&mut self, stream: usize, lost: Lost) {
        self.streams[stream].lost.push(lost);
    }

    /// Until when some events of chosen streams are missing in a range, since buffers overwrote them before a
    /// snapshot was taken: streams begin at different times.
    pub fn incomplete_until(
        &self,
        range: TimeRange,
        is_chosen: impl Fn(&Stream) -> bool,
    ) -> Option<Timestamp> {
        let streams = self.streams.iter().filter(|stream| is_chosen(stream));
        streams.filter_map(|stream| self.unseen(stream, range)?.range).map(|(_, to)| to).max()
    }

    /// What a stream lost before its first packet, after the recording's beginning.
    fn unseen(&self, stream: &Stream, range: TimeRange) -> Option<Lost> {
        let begin = self.begin().map_or(range.begin, |begin| begin.max(range.begin));
        let mut lost = stream.lost_at_begin?;
        let is_there =
            lost.cut(&TimeRange { begin, ..range }) && lost.range.is_none_or(|(from, to)| from < to);
        is_there.then_some(lost)
    }

    /// What a stream has lost in a range besides what its packets and its end show.
    pub(crate) fn lost_besides(&self, stream: &Stream, range: TimeRange) -> Losses {
        let mut lost = if stream.loses_more { Losses::of_events(None) } else { Losses::default() };
        if let Some(unseen) = self.unseen(stream, range) {
            // Of all of the time, its number is known, though it began before the first event that is left.
            let count = stream.lost_at_begin.and_then(|lost| lost.count).filter(|_| range == TimeRange::ALL);
            lost.note(&Lost { count: count.or(unseen.count), ..unseen });
        }
        lost
    }

    /// How many of all events repeat the state (state dumps, and names that programs report again), so that
    /// their recorder has not counted them as events; `None` if it does not say that of each stream.
    pub fn state_events(&self) -> Option<u64> {
        self.streams.iter().try_fold(0_u64, |sum, stream| Some(sum.saturating_add(stream.state_events?)))
    }

    /// When the first packet begins, in nanoseconds since the clock's origin; `None` where no packet says.
    pub fn begin(&self) -> Option<Timestamp> {
        self.streams.iter().flat_map(|stream| &stream.files).filter_map(|file| file.begin).min()
    }

    /// The current size of all stream files.
    pub fn bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        self.streams.iter().flat_map(Stream::files).map(size).sum()
    }

    /// Reads what `stream` has from `from` on.
    pub(crate) fn cursor(&self, stream: &Stream, from: Timestamp) -> StreamCursor {
        self.cursor_over(stream, from, from)
    }

    /// The same, but all packets from `first` on are looked at, whether or not their stamps are before
    /// `from`; with [`Timestamp::MIN`] all.
    pub(crate) fn cursor_over(&self, stream: &Stream, first: Timestamp, from: Timestamp) -> StreamCursor {
        StreamCursor::new(&self.traces[stream.trace].decoder, &stream.files, first, from).losing(&stream.lost)
    }

    /// Reads on from where `stops` say, up to each file's `limit`.
    pub(crate) fn resume(
        &self,
        stream: &Stream,
        from: Timestamp,
        limit: impl Fn(&Path) -> u64,
        stops: &[Stop],
    ) -> Result<StreamCursor, Error> {
        StreamCursor::resume(&self.traces[stream.trace].decoder, &stream.files, from, limit, stops)
    }

    /// A reader for a file of `stream`, positioned before the last packets if `at_end` is set and an index
    /// contains their offsets.
    pub(crate) fn reader(&self, stream: &Stream, file: &StreamFile, at_end: bool) -> PacketFile {
        let mut packets = file.packets(&self.traces[stream.trace].decoder);
        if at_end && file.begin.is_some() {
            file.index.seek_packet(&mut packets, Timestamp::MAX);
        }
        packets
    }
}

impl Trace {
    /// Host name and path from where the search began, if there are any.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folders: one, or those of all chunks or snapshots.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// What reads its packets, and finds the fields of its classes.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// What the metadata says.
    pub fn class(&self) -> &TraceClass {
        self.decoder.trace_class()
    }

    /// What the metadata notes about the event class `id`.
    pub fn note(&self, id: u64, note: Note<'_>) -> Option<&EnvValue> {
        self.class().env(&note_key(id, note))
    }

    /// Where the program's source declares the event class `id`, as `file:line`.
    pub fn source(&self, id: u64) -> Option<String> {
        let text = |note| match self.note(id, note)? {
            EnvValue::String(text) => Some(text.clone()),
            EnvValue::Integer(number) => Some(number.to_string()),
        };
        let file = text(Note::File)?;
        Some(text(Note::Line).map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }
}

impl Stream {
    /// The place of its trace in [`Recording::traces`].
    pub fn trace_index(&self) -> usize {
        self.trace
    }

    /// The path of its earliest file, or of the one that is gone.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id of its data stream class.
    pub fn class_id(&self) -> u64 {
        self.class_id
    }

    /// Its own id within that class; a number is given to one that does not say.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its CPU. Streams are numbered by CPU, as in `channel_0` and `uid0_1`, by us and by LTTng.
    pub fn cpu(&self) -> Option<Cpu> {
        let file = self.name().rsplit('/').next().unwrap_or_default();
        file.rsplit('_').next().and_then(|cpu| cpu.parse().ok())
    }

    /// The CPU of all its events, if the names of its files and their packets agree.
    pub(crate) fn only_cpu(&self) -> Option<Cpu> {
        self.cpu().filter(|cpu| self.files.iter().all(|file| file.cpu == Some(*cpu)))
    }

    /// Whether all that it loses is of threads of which the recording has nothing at that time, so that no
    /// other thread's events are missing.
    pub fn loses_of_others(&self) -> bool {
        self.loses_of_others
    }

    /// Its files, by time.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }
}

/// The identity that files of one trace share: the UUID in CTF 1.8; in CTF 2 namespace, name and unique id,
/// or the metadata's UUID if these are missing.
pub(crate) fn identity(class: &TraceClass) -> Option<[String; 3]> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    match (class.version, &class.uid) {
        (Version::V2, Some(uid)) => Some([text(&class.namespace), text(&class.name), uid.clone()]),
        _ => Some([String::new(), String::new(), uuid_text(class.uuid.as_ref()?)]),
    }
}
