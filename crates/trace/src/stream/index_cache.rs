//! Indexes that were built by reading, kept for the next time in the user's cache folder:
//! `$XDG_CACHE_HOME/tracewing/index`, or `~/.cache/tracewing/index`. Nothing is ever written into a trace.
//!
//! A file holds the content of LTTng's index file of the stream, or positions inside one packet, after a
//! header of 64 bytes: magic, then as little-endian words device, inode, size and modification time (seconds,
//! nanoseconds) of the stream file, a hash of its path (and of the packet), and a hash of all that follows.
//! Where one of them differs the file is not used, and replaced by what is built anew. All files together are
//! kept below [`MOST_BYTES`]; the least recently written go first. Where the folder, or the one in which it
//! is to be made, belongs to another user (root with the home of another user), nothing is kept.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracewing_files::{Dir, Tree};

const MAGIC: [u8; 8] = *b"TWIndex1";
const HEAD_SIZE: usize = 64;

/// Largest index that is kept, bytes: a trace of 60 GB in packets of 16 KiB.
pub(crate) const MOST_BYTES: u64 = 256 << 20;

/// What an index is of.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Subject<'s> {
    pub(crate) stream: &'s Path,
    /// Of events inside of a packet: the packet's offset in bytes, and a hash of how events are laid out.
    pub(crate) inside: Option<(u64, u64)>,
}

impl Subject<'_> {
    /// Its index; `meta` is of the stream file.
    pub(crate) fn load(&self, meta: &Metadata) -> Option<Vec<u8>> {
        let file = Tree::open(&folder()?).ok()?.file(Path::new(&self.name())).ok()?;
        let about = file.metadata().ok()?;
        // Another user's would be believed.
        if about.len() > MOST_BYTES || about.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let (own, index) = bytes.split_at_checked(HEAD_SIZE)?;
        (own == self.head(meta, index)).then(|| index.to_vec())
    }

    /// Keeps its index; what stood there under its name is replaced in one step.
    pub(crate) fn store(&self, meta: &Metadata, index: &[u8]) {
        if index.len() as u64 > MOST_BYTES {
            return;
        }
        let Some(folder) = folder().and_then(|folder| Dir::private(&folder).ok()) else { return };
        let content = [self.head(meta, index).as_slice(), index].concat();
        if folder.replace(&self.name(), &content).is_ok() {
            shrink(&folder, MOST_BYTES);
        }
    }

    fn name(&self) -> String {
        format!("{:016x}", hash(self))
    }

    fn head(&self, meta: &Metadata, index: &[u8]) -> Vec<u8> {
        let time = [meta.mtime(), meta.mtime_nsec()].map(i64::cast_unsigned);
        let words = [meta.dev(), meta.ino(), meta.size(), time[0], time[1], hash(self), hash(index)];
        MAGIC.into_iter().chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
    }
}

fn folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("tracewing/index"))
}

/// Differs from release to release of the standard library, which makes old files useless, not wrong.
fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Removes the oldest files until all together have at most `most` bytes.
fn shrink(folder: &Dir, most: u64) {
    let mut files = folder.files_by_age();
    let mut total: u64 = files.iter().map(|(_, size)| size).sum();
    for (name, size) in files.drain(..) {
        if total <= most {
            break;
        }
        total -= size;
        // Another process may have removed it.
        let _ = folder.remove(&name);
    }
}
