//! Opens recordings: reads metadata, groups stream files into streams, and puts what belongs together into one trace.
//!
//! Traces with one UUID (of CTF 2: with one identity) are one trace, as in babeltrace2: the chunks of a rotated LTTng session, or its snapshots,
//! which may overlap. Of their metadata the one with the most classes serves all, since later ones only add.

use crate::find::{self, Found};
use crate::index_source::IndexSlot;
use crate::packet::PacketFile;
use crate::stream::{self, Lost, Stop, StreamCursor};
use crate::{Error, told, uuid_text};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracewing_ctf::decode::Decoder;
use tracewing_ctf::metadata;
use tracewing_ctf::model::{EnvValue, TraceClass, Version};
use tracewing_files::{Refused, Tree};

/// Largest metadata file that is read, in bytes; it takes up to fifty times as much memory. Real ones have a few megabytes.
const MAX_METADATA: u64 = 64 << 20;

/// Everything found at the paths that a user gave.
#[derive(Debug)]
pub struct Recording {
    inputs: Vec<PathBuf>,
    traces: Vec<Trace>,
    streams: Vec<Stream>,
    pub(crate) missing: Vec<String>,
    warnings: Vec<String>,
}

/// A CTF trace.
#[derive(Debug)]
pub struct Trace {
    name: String,
    folders: Vec<PathBuf>,
    decoder: Arc<Decoder>,
}

/// A data stream: one or several files whose packets belong together.
#[derive(Debug)]
pub struct Stream {
    trace: usize,
    name: String,
    class_id: u64,
    /// What packet headers say, if they do.
    instance_id: Option<u64>,
    id: u64,
    pub(crate) files: Vec<StreamFile>,
    /// What is missing before its first packet.
    pub(crate) lost_at_begin: Option<Lost>,
    /// What is missing behind its last packet.
    pub(crate) lost_at_end: Option<Lost>,
}

/// A file of a data stream.
#[derive(Debug)]
pub(crate) struct StreamFile {
    pub(crate) path: PathBuf,
    /// The folder out of which no link is followed.
    pub(crate) root: Arc<Path>,
    /// When its first packet begins, in nanoseconds since the clock's origin.
    pub(crate) begin: Option<i64>,
    /// Whether its first packet's header could be read; else nobody knows to which stream it belongs.
    pub(crate) is_known: bool,
    pub(crate) index: IndexSlot,
}

impl StreamFile {
    /// Has `packets`, which reads this file, begin where it gives everything from `time` on.
    pub(crate) fn seek(&self, packets: &mut PacketFile, time: i64) {
        if self.begin.map_or(time > i64::MIN, |begin| begin < time) {
            self.index.seek(packets, time);
        }
    }
}

impl Recording {
    /// Opens the traces at and below `inputs`.
    ///
    /// # Errors
    /// A path leads to no trace, metadata cannot be read, or a folder cannot be listed. A stream file that cannot be
    /// read is no error here: the merge reports it where it gets there.
    pub fn open<P: AsRef<Path>>(inputs: &[P]) -> Result<Self, Error> {
        let mut groups: Vec<Vec<(Found, Arc<TraceClass>)>> = Vec::new();
        let mut warnings = Vec::new();
        for input in inputs {
            for found in find::find(input.as_ref())? {
                let class = read_metadata(&found, &mut warnings)?;
                let own = identity(&class);
                // One decoder is to do for all: packets repeat the metadata's UUID.
                let same = |group: &&mut Vec<(Found, Arc<TraceClass>)>| {
                    own.is_some() && group[0].1.uuid == class.uuid && identity(&group[0].1) == own
                };
                match groups.iter_mut().find(same) {
                    Some(group) => group.push((found, class)),
                    None => groups.push(vec![(found, class)]),
                }
            }
        }
        let mut recording = Recording {
            inputs: inputs.iter().map(|input| input.as_ref().to_owned()).collect(),
            traces: Vec::new(),
            streams: Vec::new(),
            missing: Vec::new(),
            warnings,
        };
        for group in groups {
            recording.add(group)?;
        }
        told::learn(&mut recording);
        Ok(recording)
    }

    /// The paths that were given.
    pub fn inputs(&self) -> &[PathBuf] {
        &self.inputs
    }

    /// The traces, in the order in which they were found.
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// The data streams of all traces, those of one trace together; at the end those of which only the recording's description tells,
    /// as their files are gone.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// What of a recording of tracewing is missing, a line each: files that are gone or cut off, or what came when it could not be
    /// written any more. What that makes unknown comes as a loss, too.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// What in metadata is ignored though it may mean something, a line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Adds a stream whose file is gone; gives its place.
    pub(crate) fn add_missing(&mut self, trace: usize, path: &Path) -> usize {
        let others = self.streams.iter().filter(|stream| stream.trace == trace);
        let id = others.map(|stream| stream.id.saturating_add(1)).max().unwrap_or(0);
        let class_id = self.traces[trace].class().data_stream_classes.first().map_or(0, |class| class.id);
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
            lost_at_end: None,
        });
        self.streams.len() - 1
    }

    /// Says what is missing before the first packet of a stream.
    pub(crate) fn set_lost_at_begin(&mut self, stream: usize, lost: Lost) {
        self.streams[stream].lost_at_begin = Some(lost);
    }

    /// Says what is missing behind the last packet of a stream.
    pub(crate) fn set_lost_at_end(&mut self, stream: usize, lost: Lost) {
        self.streams[stream].lost_at_end = Some(lost);
    }

    /// When the first packet begins, in nanoseconds since the clock's origin; `None` where no packet says.
    pub fn begin(&self) -> Option<i64> {
        self.streams.iter().flat_map(|stream| &stream.files).filter_map(|file| file.begin).min()
    }

    /// The size of all stream files, as the system tells it now.
    pub fn bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
        self.streams.iter().flat_map(Stream::files).map(size).sum()
    }

    /// Reads what `stream` has from `from` on.
    pub(crate) fn cursor(&self, stream: &Stream, from: i64) -> StreamCursor {
        let decoder = &self.traces[stream.trace].decoder;
        StreamCursor::new(decoder, &stream.files, from).losing_at_end(stream.lost_at_end)
    }

    /// Reads on from where `stops` say, up to each file's `limit`.
    pub(crate) fn resume(
        &self,
        stream: &Stream,
        from: i64,
        limit: impl Fn(&Path) -> u64,
        stops: &[Stop],
    ) -> Result<StreamCursor, Error> {
        StreamCursor::resume(&self.traces[stream.trace].decoder, &stream.files, from, limit, stops)
    }

    /// A reader for a file of `stream`, in front of the last packets if `at_end` and an index tells where they are.
    pub(crate) fn reader(&self, stream: &Stream, file: &StreamFile, at_end: bool) -> PacketFile {
        let mut packets =
            PacketFile::new(file.path.clone(), file.root.clone(), self.traces[stream.trace].decoder.clone());
        if at_end && file.begin.is_some() {
            file.index.seek_packet(&mut packets, i64::MAX);
        }
        packets
    }

    /// Adds traces that share a UUID as one.
    fn add(&mut self, group: Vec<(Found, Arc<TraceClass>)>) -> Result<(), Error> {
        let size = |class: &TraceClass| {
            let streams = &class.data_stream_classes;
            streams.len() + streams.iter().map(|stream| stream.event_record_classes.len()).sum::<usize>()
        };
        let mut best = 0;
        for at in 1..group.len() {
            if size(&group[at].1) > size(&group[best].1) {
                best = at;
            }
        }
        let class = group[best].1.clone();
        let path = group[best].0.path.join("metadata");
        let decoder = Decoder::new(class.clone()).map_err(|error| {
            let metadata = read_all(&group[best].0.root, &path).unwrap_or_default();
            Error::ctf(&path)(error.in_metadata(&metadata))
        })?;
        let suffix = if group.len() == 1 { group[0].0.name.as_deref() } else { None };
        let trace = self.traces.len();
        let first = self.streams.len();
        let others = (0..group.len()).filter(|&at| at != best);
        for at in std::iter::once(best).chain(others) {
            self.add_files(trace, first, &group[at].0, &decoder)?;
        }
        let mut next_id = 0;
        for stream in &mut self.streams[first..] {
            stream.files.sort_by_key(|file| file.begin);
            stream.name = stream.files[0].path.to_string_lossy().into_owned();
            stream.id = stream.instance_id.unwrap_or_else(|| {
                next_id += 1;
                next_id - 1
            });
        }
        self.traces.push(Trace {
            name: trace_name(&class, suffix),
            folders: group.into_iter().map(|(found, _)| found.path).collect(),
            decoder,
        });
        Ok(())
    }

    /// Adds the stream files of a folder to the streams from `first` on.
    fn add_files(
        &mut self,
        trace: usize,
        first: usize,
        found: &Found,
        decoder: &Arc<Decoder>,
    ) -> Result<(), Error> {
        let (folder, root) = (found.path.as_path(), &found.root);
        // Streams that have no ids of their own are numbered by the names of their files.
        let entries = fs::read_dir(folder).map_err(Error::io(folder))?;
        let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
        let mut paths = paths.map_err(Error::io(folder))?;
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            let is_stream = name != b"metadata" && !name.starts_with(b".") && has_content(root, &path)?;
            if !is_stream {
                continue;
            }
            // A file that cannot be read keeps its place as a stream of its own, for the merge to report.
            let head = stream::first_packet(decoder, &path, root).ok();
            let begin = head.as_ref().and_then(|head| head.begin);
            let class_id = head.as_ref().map_or(0, |head| head.class_id);
            // Without stamps there is no telling which of two files comes first, so they stay apart.
            let is_known = head.is_some();
            let instance_id = head.and_then(|head| head.instance_id).filter(|_| begin.is_some());
            let file = StreamFile { path, root: root.clone(), begin, is_known, index: IndexSlot::default() };
            let same = |stream: &&mut Stream| {
                instance_id.is_some() && (stream.class_id, stream.instance_id) == (class_id, instance_id)
            };
            match self.streams[first..].iter_mut().find(same) {
                Some(stream) => stream.files.push(file),
                None => self.streams.push(Stream {
                    trace,
                    name: String::new(),
                    class_id,
                    instance_id,
                    id: 0,
                    files: vec![file],
                    lost_at_begin: None,
                    lost_at_end: None,
                }),
            }
        }
        Ok(())
    }
}

impl Trace {
    /// Host name and path from where the search began, as far as there are any.
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

    /// What the metadata notes about the event class `id` under `key`: `description`, `print`, `file`, `line`, or
    /// `unit_<field>`.
    pub fn note(&self, id: u64, key: &str) -> Option<&EnvValue> {
        self.class().env(&format!("event_{id}_{key}"))
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

    /// Its files, by time.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }
}

/// What two traces that are one have in common: CTF 1.8's UUID; of CTF 2 namespace, name and unique id, or the UUID of the
/// metadata where there is none.
pub(crate) fn identity(class: &TraceClass) -> Option<[String; 3]> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    match (class.version, &class.uid) {
        (Version::V2, Some(uid)) => Some([text(&class.namespace), text(&class.name), uid.clone()]),
        _ => Some([String::new(), String::new(), uuid_text(class.uuid.as_ref()?)]),
    }
}

fn trace_name(class: &TraceClass, suffix: Option<&str>) -> String {
    match (class.env("hostname"), suffix) {
        (Some(EnvValue::String(host)), Some(suffix)) => format!("{host}/{suffix}"),
        (Some(EnvValue::String(host)), None) => host.clone(),
        (_, suffix) => suffix.unwrap_or_default().to_owned(),
    }
}

/// Whether a file is a regular one that is not empty. One that cannot be read counts as such: reading it will say why.
fn has_content(root: &Path, path: &Path) -> Result<bool, Error> {
    let meta = match Tree::open_file(root, path) {
        Ok(file) => file.metadata(),
        Err(error) if Refused::of(&error) == Some(Refused::LinkOut) => return Err(Error::io(path)(error)),
        Err(_) => fs::symlink_metadata(path),
    };
    Ok(meta.is_ok_and(|meta| meta.is_file() && meta.len() > 0))
}

fn read_all(root: &Path, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Tree::open_file(root, path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The trace class of a folder's metadata; what is ignored in it goes to `warnings`.
fn read_metadata(found: &Found, warnings: &mut Vec<String>) -> Result<Arc<TraceClass>, Error> {
    let path = found.path.join("metadata");
    let mut file = Tree::open_file(&found.root, &path).map_err(Error::io(&path))?;
    let size = file.metadata().map_err(Error::io(&path))?.len();
    if size > MAX_METADATA {
        let message = format!("the metadata has {size} bytes; more than {MAX_METADATA} are not read");
        return Err(Error::Stream { path, offset: 0, message });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::io(&path))?;
    let (class, ignored) = metadata::parse_with_warnings(&bytes).map_err(Error::ctf(&path))?;
    warnings.extend(ignored.into_iter().map(|line| format!("{}: {line}", path.display())));
    Ok(Arc::new(class))
}
