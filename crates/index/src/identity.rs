//! Which recording an index is of: device, inode, size and time of change of each stream file and metadata
//! file, as with the indexes of streams.

use crate::format::Identity;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracewing_trace::Recording;

/// The identity of a recording, which changes when it grows.
pub(crate) fn of(recording: &Recording) -> Identity {
    let mut hasher = DefaultHasher::new();
    for path in files(recording) {
        let about = |meta: Metadata| (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
        (&path, std::fs::metadata(&path).ok().map(about)).hash(&mut hasher);
    }
    Identity(hasher.finish())
}

/// The name of the file with a recording's index: the same while the recording grows.
pub(crate) fn name(recording: &Recording) -> String {
    let mut hasher = DefaultHasher::new();
    let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let mut inputs: Vec<PathBuf> = recording.inputs().iter().map(absolute).collect();
    inputs.sort();
    inputs.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn files(recording: &Recording) -> Vec<PathBuf> {
    let metadata = recording.traces().iter().flat_map(|trace| trace.folders());
    let metadata = metadata.map(|folder| folder.join("metadata"));
    let streams = recording.streams().iter().flat_map(|stream| stream.files().map(Path::to_owned));
    let described = recording.inputs().iter().map(|input| input.join("tracewing.json"));
    let all = metadata.chain(streams).chain(described);
    let mut all: Vec<_> = all.map(|path| path.canonicalize().unwrap_or(path)).collect();
    all.sort();
    all.dedup();
    all
}
