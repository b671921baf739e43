//! Indexes that were built by reading, kept for the next time in the user's cache folder: `$XDG_CACHE_HOME/tracewing/index`,
//! or `~/.cache/tracewing/index`. Nothing is ever written into a trace.
//!
//! A file holds what LTTng's index file of the stream would hold, or positions inside of one packet, behind a head of 64 bytes:
//! magic, then as little-endian words device, inode, size and modification time (seconds, nanoseconds) of the stream file, a
//! hash of its path (and of the packet), and a hash of all that follows. Where one of them differs the file is not used, and replaced by what is built anew. All files
//! together are kept below [`MOST_BYTES`]; the least recently written go first. Whoever cannot write there does without.

use std::fs::{self, DirEntry, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const MAGIC: [u8; 8] = *b"TWIndex1";
const HEAD_SIZE: usize = 64;

/// Largest index that is kept, bytes: a trace of 60 GB in packets of 16 KiB.
pub(crate) const MOST_BYTES: u64 = 256 << 20;

/// What an index is of.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Subject<'s> {
    /// The stream file.
    pub(crate) stream: &'s Path,
    /// Of events inside of a packet: the packet's offset in bytes, and a hash of how events are laid out.
    pub(crate) inside: Option<(u64, u64)>,
}

impl Subject<'_> {
    /// Its index; `meta` is of the stream file.
    pub(crate) fn load(&self, meta: &Metadata) -> Option<Vec<u8>> {
        let path = self.place(&folder()?);
        if fs::metadata(&path).ok()?.len() > MOST_BYTES {
            return None;
        }
        let bytes = fs::read(path).ok()?;
        let (own, index) = bytes.split_at_checked(HEAD_SIZE)?;
        (own == self.head(meta, index)).then(|| index.to_vec())
    }

    /// Keeps its index; what stood there under its name is replaced in one step.
    pub(crate) fn store(&self, meta: &Metadata, index: &[u8]) {
        let Some(folder) = folder().filter(|_| index.len() as u64 <= MOST_BYTES) else { return };
        let path = self.place(&folder);
        let unfinished = path.with_extension(format!("{}.unfinished", std::process::id()));
        let content = [self.head(meta, index).as_slice(), index].concat();
        let written = fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&unfinished, content))
            .and_then(|()| fs::rename(&unfinished, &path));
        match written {
            Ok(()) => shrink(&folder, MOST_BYTES),
            Err(_) => drop(fs::remove_file(unfinished)),
        }
    }

    fn place(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{:016x}", hash(self)))
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
fn shrink(folder: &Path, most: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let age = |entry: DirEntry| {
        let meta = entry.metadata().ok()?;
        Some((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.flatten().filter_map(age).collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in files {
        if total <= most {
            break;
        }
        total -= size;
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
}
