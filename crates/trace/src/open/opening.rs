//! Opens recordings: reads metadata, groups stream files into streams, and puts what belongs together into
//! one trace.
//!
//! Traces with one UUID (of CTF 2: with one identity) are one trace, as in babeltrace2: the chunks of a
//! rotated LTTng session, or its snapshots, which may overlap. Of their metadata the one with the most
//! classes serves all, since later ones only add.

use crate::open::find::{self, Found};
use crate::open::missing;
use crate::open::recording::{Recording, Stream, Trace, identity};
use crate::stream::file::{StreamFile, first_packet};
use crate::stream::index_source::IndexSlot;
use crate::{Error, StreamFault};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tracewing_ctf::decode::Decoder;
use tracewing_ctf::metadata;
use tracewing_ctf::model::{EnvValue, TraceClass};
use tracewing_files::{Refused, Tree};
use tracewing_vocabulary::{environment, renamed};

/// Largest metadata file that is read, in bytes; it takes up to fifty times as much memory. Real ones have a
/// few megabytes.
const MAX_METADATA: u64 = 64 << 20;

impl Recording {
    /// Opens the traces at and below `inputs`.
    ///
    /// # Errors
    /// A path leads to no trace, metadata cannot be read, or a folder cannot be listed. A stream file that
    /// cannot be read is no error here: the merge reports it where it gets there.
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
            gone: Vec::new(),
            warnings,
            checkpoints: OnceLock::new(),
        };
        for group in groups {
            recording.add(group)?;
        }
        missing::learn(&mut recording);
        recording.note_left_out_cpus();
        Ok(recording)
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
            let head = first_packet(decoder, &path, root).ok();
            let (begin, cpu) = head.as_ref().map_or((None, None), |head| (head.begin, head.cpu));
            let class_id = head.as_ref().map_or(0, |head| head.class_id);
            // Without stamps the order of two files is unknown, so they stay separate.
            let is_known = head.is_some();
            let instance_id = head.and_then(|head| head.instance_id).filter(|_| begin.is_some());
            let (index, remarks) = (IndexSlot::default(), Arc::default());
            let file = StreamFile { path, root: root.clone(), begin, cpu, is_known, index, remarks };
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
                    lost: Vec::new(),
                    loses_more: false,
                    loses_of_others: false,
                    is_left_out: false,
                    state_events: None,
                }),
            }
        }
        Ok(())
    }
}

fn trace_name(class: &TraceClass, suffix: Option<&str>) -> String {
    match (class.env(environment::HOSTNAME), suffix) {
        (Some(EnvValue::String(host)), Some(suffix)) => format!("{host}/{suffix}"),
        (Some(EnvValue::String(host)), None) => host.clone(),
        (_, suffix) => suffix.unwrap_or_default().to_owned(),
    }
}

/// Whether a file is a regular one that is not empty. An unreadable file is treated as one, since reading it
/// will report the cause.
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
        let cause = StreamFault::LongMetadata { bytes: size, most: MAX_METADATA };
        return Err(Error::Stream { path, offset: 0, cause });
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::io(&path))?;
    let (mut class, ignored) = metadata::parse_with_warnings(&bytes).map_err(Error::ctf(&path))?;
    for (key, _) in &mut class.env {
        if let Some(present) = renamed::environment_key(key) {
            *key = present;
        }
    }
    warnings.extend(ignored.into_iter().map(|line| format!("{}: {line}", path.display())));
    Ok(Arc::new(class))
}
