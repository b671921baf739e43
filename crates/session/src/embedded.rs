//! The library to pre-load that the executable contains: as a file in the user's cache folder, since the
//! loader of a recorded program needs a path.

use std::env;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tracewing_abi::locks::LIBRARY;
use tracewing_files::{Dir, Tree};

/// The path of a file with the library: the one that an earlier recording has left, or a new one. Each
/// version of the library has a folder of its own, so that no program loads another one than its recorder
/// has put there.
///
/// # Errors
/// There is no cache folder, another user could change what is in it, or it cannot be written or executed.
pub(crate) fn put(library: &[u8]) -> io::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let cache = cache.ok_or_else(|| io::Error::other("neither XDG_CACHE_HOME nor HOME is set"))?;
    put_below(&cache, library)
}

fn put_below(cache: &Path, library: &[u8]) -> io::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    library.hash(&mut hasher);
    let path = cache.join(format!("tracewing/library/{:016x}", hasher.finish()));
    let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let folder = Dir::private(&path).map_err(at)?;
    // Programs of other rights may load it: not even a link on the way may be another user's.
    let own = folder.own_path().map_err(at)?;
    if !folder.is_executable().map_err(at)? {
        return Err(at(io::Error::other("the file system is mounted with noexec")));
    }
    let is_there = || is_there(&own, library);
    // Another recorder may write it at the same time, and one of the two can fail for that reason.
    if !is_there() && write(&folder, library).is_err() && !is_there() {
        write(&folder, library).map_err(at)?;
    }
    Ok(own.join(LIBRARY))
}

fn write(folder: &Dir, library: &[u8]) -> io::Result<()> {
    folder.remove_abandoned()?;
    let unfinished = folder.create_private_file(LIBRARY)?;
    match unfinished.file().write_all(library) {
        Ok(()) => folder.supersede(unfinished, LIBRARY),
        Err(error) => folder.discard(unfinished).and(Err(error)),
    }
}

/// Whether the folder has the whole library, in a file that only this user can have written.
fn is_there(folder: &Path, library: &[u8]) -> bool {
    let is_same = |mut file: File| {
        let about = file.metadata()?;
        let is_own = about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0;
        let mut bytes = Vec::new();
        if is_own && about.len() == library.len() as u64 {
            file.read_to_end(&mut bytes)?;
        }
        Ok::<_, io::Error>(bytes == library)
    };
    let file = Tree::open(folder).and_then(|tree| tree.file(Path::new(LIBRARY)));
    file.and_then(is_same).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_library_is_written_once_and_again_if_it_is_damaged() {
        let cache = tempfile::tempdir().unwrap();
        let put = |library: &[u8]| put_below(cache.path(), library).unwrap();
        let inode = |path: &Path| fs::metadata(path).unwrap().ino();
        let (one, other) = (put(b"one"), put(b"other"));
        assert_ne!(one, other, "programs of a running recording keep theirs");
        let first = inode(&one);
        assert_eq!((put(b"one"), inode(&one)), (one.clone(), first));
        fs::write(&one, b"two").unwrap();
        assert_eq!(fs::read(put(b"one")).unwrap(), b"one");
        fs::remove_file(&one).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &one).unwrap();
        assert_eq!(fs::read(put(b"one")).unwrap(), b"one");
        assert!(fs::symlink_metadata(&one).unwrap().is_file());
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let cache = tempfile::tempdir().unwrap();
        let folder = put_below(cache.path(), b"x").unwrap();
        let folder = folder.parent().unwrap();
        fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(put_below(cache.path(), b"x").unwrap_err().to_string().contains("library"));
    }
}
