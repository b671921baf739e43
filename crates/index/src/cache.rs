//! Where indexes are kept: `$XDG_CACHE_HOME/tracewing/view`, or `~/.cache/tracewing/view`, or a folder that
//! the user names. Never in a trace; they may be deleted at any time.
//!
//! Only this user may read or write the folder and its files. An index is written under a temporary name and
//! gets its own when it is complete. All of them together are kept below [`MOST_BYTES`]; the least recently
//! made go first.

use crate::checkpoints::Kept;
use crate::error::{Error, MUST_STAY_FREE};
use crate::format;
use crate::groups;
use crate::identity;
use crate::index::{self, Index};
use crate::make::{Made, make};
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tracewing_files::{Dir, Tree};
use tracewing_trace::{Progress, Recording};

/// Most bytes of all indexes in a folder together, not counting the one that was made last.
const MOST_BYTES: u64 = 16 << 30;

/// Bytes that are written between two looks at what is free.
const LOOK: u64 = 64 << 20;

/// A folder of indexes.
#[derive(Debug)]
pub struct Cache {
    path: PathBuf,
}

impl Cache {
    /// The user's own folder, or the one at `path`; it need not exist.
    ///
    /// # Errors
    /// [`Error::NoFolder`].
    pub fn new(path: Option<&Path>) -> Result<Self, Error> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let own = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        let path = path.map(Path::to_owned).or_else(|| Some(own()?.join("tracewing/view")));
        Ok(Cache { path: path.ok_or(Error::NoFolder)? })
    }

    /// The path of a recording's index, whether or not it exists.
    pub fn path_of(&self, recording: &Recording) -> PathBuf {
        self.path.join(identity::name(recording))
    }

    /// The index of a recording as it is now; `None` if there is none, or it is of an earlier state, or
    /// damaged, or another user could have written it.
    pub fn find(&self, recording: &Recording) -> Option<Index> {
        let index = Index::open(self.file_of(recording)?, &self.path_of(recording), identity::of(recording));
        index.ok().flatten()
    }

    /// The checkpoints of the index of a recording as it is now, if there is one. The rest of the index is
    /// not looked at.
    pub fn checkpoints(&self, recording: &Recording) -> Option<Kept> {
        index::checkpoints(self.file_of(recording)?, &self.path_of(recording), identity::of(recording))
    }

    /// The file with the index of a recording; `None` if another user could have written it.
    fn file_of(&self, recording: &Recording) -> Option<File> {
        let file = Tree::open(&self.path).ok()?.file(Path::new(&identity::name(recording))).ok()?;
        let about = file.metadata().ok()?;
        let is_own = about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0;
        is_own.then_some(file)
    }

    /// Makes the index of a recording, in place of the one that is there. `watch` is called with the progress
    /// from time to time and may stop it; then nothing is kept.
    ///
    /// # Errors
    /// The recording or the folder cannot be used; another user could write the folder; there is too little
    /// space.
    pub fn make(
        &self,
        recording: &Recording,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Made, Error> {
        self.put(
            recording,
            |folder, file| self.write(recording, folder, file, watch),
            |made| !made.ran.stopped,
        )
    }

    /// Has `write` write the index of a recording to a file, which takes the place of the one that is there
    /// if what was made is whole; otherwise nothing is kept.
    pub(crate) fn put<T>(
        &self,
        recording: &Recording,
        write: impl FnOnce(&Dir, File) -> Result<T, Error>,
        is_whole: impl Fn(&T) -> bool,
    ) -> Result<T, Error> {
        let io = |cause| Error::Io { path: self.path.clone(), cause };
        let folder = self.folder()?;
        let name = identity::name(recording);
        let unfinished = folder.create_private_file(&name).map_err(io)?;
        let made = unfinished.file().try_clone().map_err(io).and_then(|file| write(&folder, file));
        let kept = match made.as_ref().is_ok_and(is_whole) {
            true => folder.supersede(unfinished, &name),
            false => folder.discard(unfinished),
        };
        let made = made?;
        kept.map_err(io)?;
        shrink(&folder, &name, MOST_BYTES);
        Ok(made)
    }

    /// The folder, which is made if it does not exist, without the temporary files of processes that have
    /// died.
    pub(crate) fn folder(&self) -> Result<Dir, Error> {
        let io = |cause| Error::Io { path: self.path.clone(), cause };
        let folder = Dir::private(&self.path).map_err(io)?;
        folder.remove_abandoned().map_err(io)?;
        Ok(folder)
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps an index of this recording that is complete but for its head, in place of the one that is there.
    pub(crate) fn keep(&self, recording: &Recording, folder: &Dir, mut made: &File) -> Result<(), Error> {
        let io = |cause| Error::Io { path: self.path.clone(), cause };
        let name = identity::name(recording);
        let size = made.metadata().map_err(io)?.len();
        let free = folder.free_bytes().map_err(io)?;
        if free < size.saturating_add(MUST_STAY_FREE) {
            return Err(Error::NoSpace { path: self.path.clone(), free });
        }
        let identity = identity::of(recording);
        let unfinished = folder.create_private_file(&name).map_err(io)?;
        let kept = (|| {
            let mut to = unfinished.file();
            let [file, again] = [to.try_clone().map_err(io)?, to.try_clone().map_err(io)?];
            to.write_all(&format::head(identity)).map_err(io)?;
            made.seek(SeekFrom::Start(format::HEAD as u64)).map_err(io)?;
            std::io::copy(&mut made, &mut to).map_err(io)?;
            groups::add((again, &self.path), identity, groups::LEAST, &mut Careful::new(folder, file))
        })();
        match kept {
            Ok(_) => folder.supersede(unfinished, &name).map_err(io)?,
            Err(error) => {
                folder.discard(unfinished).map_err(io)?;
                return Err(error);
            }
        }
        shrink(folder, &name, MOST_BYTES);
        Ok(())
    }

    fn write(
        &self,
        recording: &Recording,
        folder: &Dir,
        file: File,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<Made, Error> {
        let again = file.try_clone().map_err(|cause| Error::Io { path: self.path.clone(), cause })?;
        let mut out = Careful::new(folder, file);
        let place = (&mut out as &mut (dyn Write + Send), self.path.as_path());
        let identity = identity::of(recording);
        let made = make(recording, identity, place, &self.path, watch);
        let made = made.and_then(|made| {
            let bytes = match made.ran.stopped {
                true => None,
                false => groups::add((again, &self.path), identity, groups::LEAST, &mut out)?,
            };
            Ok(Made { bytes: bytes.unwrap_or(made.bytes), ..made })
        });
        made.map_err(|error| self.unwritten(folder, error))
    }

    /// Why an index in the folder cannot be written further: it may be full.
    pub(crate) fn unwritten(&self, folder: &Dir, error: Error) -> Error {
        match error {
            Error::Io { path, cause } if cause.kind() == std::io::ErrorKind::StorageFull => {
                Error::NoSpace { path, free: folder.free_bytes().unwrap_or(0) }
            }
            error => error,
        }
    }
}

/// Writes as long as enough space is left for others.
pub(crate) struct Careful<'d> {
    folder: &'d Dir,
    file: BufWriter<File>,
    until_look: u64,
}

impl<'d> Careful<'d> {
    pub(crate) fn new(folder: &'d Dir, file: File) -> Self {
        Careful { folder, file: BufWriter::with_capacity(1 << 18, file), until_look: 0 }
    }
}

impl Write for Careful<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.until_look < bytes.len() as u64 {
            if self.folder.free_bytes()? < MUST_STAY_FREE {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            self.until_look = LOOK;
        }
        let written = self.file.write(bytes)?;
        self.until_look = self.until_look.saturating_sub(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Seek for Careful<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

/// Removes the oldest indexes until those other than `kept` have together at most `most` bytes.
fn shrink(folder: &Dir, kept: &str, most: u64) {
    let mut files = folder.files_by_age();
    files.retain(|(name, _)| name != kept && is_index(name));
    let mut total: u64 = files.iter().map(|(_, size)| size).sum();
    for (name, size) in files {
        if total <= most {
            break;
        }
        total -= size;
        // Another process may have removed it.
        let _ = folder.remove(&name);
    }
}

/// Whether a file of this name is an index, not one that the user keeps in the same folder.
fn is_index(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_process_removes_an_index_before_it_has_its_name() {
        let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/golden/recordings/server");
        let recording = Recording::open(&[recording]).unwrap();
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(&place.path().join("cache"))).unwrap();
        let write = |_: &Dir, mut file: File| {
            file.write_all(b"whole").unwrap();
            Ok(())
        };
        // Another process begins when all is written.
        cache.put(&recording, write, |()| cache.folder().is_ok()).unwrap();
        assert_eq!(std::fs::read(cache.path_of(&recording)).unwrap(), b"whole");
        cache.put(&recording, write, |_| false).unwrap();
        assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 1);
    }
}
