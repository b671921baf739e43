//! Which recording an index is of: device, inode, size and time of change of each stream file and metadata
//! file, as with the indexes of streams; which version of checkpoints it has; and the order of its traces, as
//! checkpoints know streams by their places.

use crate::format::Identity;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracewing_trace::Recording;
use tracewing_trace::super_trace::checkpoint_version;

/// The identity of a recording, which changes when it grows, and with what is read of checkpoints: an index
/// whose checkpoints are of no use is made anew.
pub(crate) fn of(recording: &Recording) -> Identity {
    of_version(recording, version())
}

/// Numbers that change with what is read of checkpoints.
type Version = (u64, [u64; 3]);

fn version() -> Version {
    (checkpoint_version(), tracewing_analysis::shapes_of_parts())
}

fn of_version(recording: &Recording, version: Version) -> Identity {
    let mut hasher = DefaultHasher::new();
    version.hash(&mut hasher);
    inputs(recording).hash(&mut hasher);
    for path in files(recording) {
        let about = |meta: Metadata| (meta.dev(), meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec());
        (&path, std::fs::metadata(&path).ok().map(about)).hash(&mut hasher);
    }
    Identity(hasher.finish())
}

/// The name of the file with a recording's index: the same while the recording grows.
pub(crate) fn name(recording: &Recording) -> String {
    let mut hasher = DefaultHasher::new();
    let mut inputs = inputs(recording);
    inputs.sort();
    inputs.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn inputs(recording: &Recording) -> Vec<PathBuf> {
    let absolute = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    recording.inputs().iter().map(absolute).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::index::Index;
    use std::fs::File;
    use std::ops::ControlFlow;

    #[test]
    fn an_index_with_other_checkpoints_is_not_used() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings/server");
        let (recording, folder) = (Recording::open(&[&path]).unwrap(), tempfile::tempdir().unwrap());
        let cache = Cache::new(Some(&folder.path().join("indexes"))).unwrap();
        cache.make(&recording, &mut |_| ControlFlow::Continue(())).unwrap();
        let path = cache.path_of(&recording);
        let is_of = |version| {
            let identity = of_version(&recording, version);
            Index::open(File::open(&path).unwrap(), &path, identity).unwrap().is_some()
        };
        let (checkpoints, parts) = version();
        assert!(is_of((checkpoints, parts)) && cache.find(&recording).is_some());
        assert!(!is_of((checkpoints ^ 1, parts)));
        for at in 0..parts.len() {
            let mut others = parts;
            others[at] ^= 1;
            assert!(!is_of((checkpoints, others)));
        }
    }

    #[test]
    fn an_index_of_traces_in_another_order_is_not_used() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings");
        let [one, other] = ["server", "system"].map(|name| folder.join(name));
        let orders = [[&one, &other], [&other, &one]];
        let [first, second] = orders.map(|paths| Recording::open(&paths).unwrap());
        assert!(of(&first) == of(&Recording::open(&orders[0]).unwrap()) && of(&first) != of(&second));
        assert_eq!(name(&first), name(&second), "it takes the place of the other one");
    }
}
