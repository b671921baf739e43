//! A folder for output, opened once: everything below it is named relative to its descriptor.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{
    AtFlags, FallocateFlags, FileType, FlockOperation, Mode, OFlags, RawMode, RenameFlags, ResolveFlags,
    fallocate, flock, fstat, openat, openat2, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::Refused;

/// Permissions of files, before the umask.
const FILE: Mode = Mode::from_raw_mode(0o640);
/// Maximum depth of folders that are removed or summed up; this process creates three levels.
pub(crate) const DEEPEST: usize = 16;
/// How often a folder is tried to be locked, and the time in between.
const LOCK_ATTEMPTS: usize = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// A folder for output. Clones refer to the same folder.
#[derive(Debug, Clone)]
pub struct Dir(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// As the user gave it, for messages.
    path: PathBuf,
    /// Its path when it was opened, to notice that it was moved.
    place: PathBuf,
    file: OwnedFd,
    entries: Mutex<Entries>,
}

/// What this process has created in a folder.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) files: BTreeMap<OsString, Inode>,
    pub(crate) folders: BTreeMap<OsString, Dir>,
    /// The last file that was checked.
    pub(crate) looked: OsString,
}

/// The object of a name: device and inode.
pub(crate) type Inode = (u64, u64);

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.file.as_fd()
    }
}

impl Dir {
    pub(crate) fn new(path: &Path, file: OwnedFd) -> Self {
        let place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self(Arc::new(Inner { path: path.to_owned(), place, file, entries: Mutex::default() }))
    }

    /// The path as given, for messages.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    pub(crate) fn place(&self) -> &Path {
        &self.0.place
    }

    pub(crate) fn made(&self) -> MutexGuard<'_, Entries> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keep_folder(&self, name: &str, folder: &Dir) {
        self.made().folders.insert(name.into(), folder.clone());
    }

    /// A folder that was created in this one with [`Dir::make`].
    pub fn made_folder(&self, name: &str) -> Option<Dir> {
        self.made().folders.get(OsStr::new(name)).cloned()
    }

    /// A folder in this one, to read its entries; no link is followed.
    ///
    /// # Errors
    /// It does not exist, is no folder, or cannot be read.
    pub fn below(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        Ok(Self::new(&self.path().join(name), open_below(self.as_fd(), name)?))
    }

    /// The same; `None` if there is no folder of this name that this process may read.
    ///
    /// # Errors
    /// The system cannot open it now: this process has too many descriptors, for example.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Self>> {
        let name = name.as_ref();
        let folder = found(open_below(self.as_fd(), name))?;
        Ok(folder.map(|folder| Self::new(&self.path().join(name), folder)))
    }

    /// The device and inode of what has a name in this folder, which is not followed; `None` if nothing has.
    ///
    /// # Errors
    /// The system cannot say: the disk fails, for example.
    pub fn id_of(&self, name: impl AsRef<OsStr>) -> io::Result<Option<(u64, u64)>> {
        match statat(self, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(data) => Ok(Some((data.st_dev, data.st_ino))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The folder in which this one is, to read its entries, wherever both are moved later.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn above(&self) -> io::Result<Self> {
        let path = self.path().parent().unwrap_or(Path::new(".."));
        Ok(Self::new(path, open_below(self.as_fd(), OsStr::new(".."))?))
    }

    /// A new file, open for reading and writing.
    ///
    /// # Errors
    /// The name exists already, or the file cannot be created.
    pub fn create_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name.as_ref();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(self, name, flags, FILE)?;
        let data = fstat(&file)?;
        self.made().files.insert(name.to_owned(), (data.st_dev, data.st_ino));
        Ok(file.into())
    }

    /// Replaces the content of a file: writes a temporary file and renames it, so that readers find the old
    /// or the new content.
    ///
    /// # Errors
    /// The file cannot be written; the old one is then unchanged.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let temporary = format!(".{name}.new");
        // Only this user can have left it there.
        self.remove(&temporary)?;
        let written = self.create_file(&temporary).and_then(|mut file| file.write_all(content));
        // Held across the rename: `check` looks for the file by one of the two names.
        let mut made = self.made();
        let renamed = written.and_then(|()| Ok(renameat(self, &temporary, self, name)?));
        match made.files.remove(OsStr::new(&temporary)) {
            Some(inode) if renamed.is_ok() => drop(made.files.insert(name.into(), inode)),
            _ => {
                let _ = unlinkat(self, &temporary, AtFlags::empty());
            }
        }
        renamed
    }

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.made().files.remove(OsStr::new(name));
        match unlinkat(self, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a folder in this one, if it exists, and everything in it. Links are removed, not followed.
    ///
    /// # Errors
    /// Something cannot be removed, or another file system is mounted on something.
    pub fn remove_all(&self, name: &str) -> io::Result<()> {
        self.made().folders.remove(OsStr::new(name));
        remove_below(self.as_fd(), OsStr::new(name), DEEPEST)
    }

    /// Renames a file or folder in this folder. The new name must be free, or that of an empty folder.
    ///
    /// # Errors
    /// The new name exists, or the file cannot be renamed.
    pub fn rename(&self, from: &str, to: &OsStr) -> io::Result<()> {
        self.free(to)?;
        let mut made = self.made(); // as in `replace`
        match renameat_with(self, from, self, to, RenameFlags::NOREPLACE) {
            // Not every file system can refuse to replace.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(self, from, self, to)?,
            result => result?,
        }
        // It is complete, and the user may move or remove it.
        made.folders.remove(OsStr::new(from));
        made.files.remove(OsStr::new(from));
        Ok(())
    }

    /// Moves a folder of this one into another one on the same file system, where the name must be free.
    ///
    /// # Errors
    /// The name exists there, or the folder cannot be moved.
    pub fn move_folder(&self, name: &str, to: &Dir) -> io::Result<()> {
        let mut made = self.made(); // as in `replace`
        match renameat_with(self, name, to, name, RenameFlags::NOREPLACE) {
            // Not every file system can refuse to replace; an empty folder of this user is in the way at
            // most.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(self, name, to, name)?,
            result => result?,
        }
        made.folders.remove(OsStr::new(name));
        Ok(())
    }

    /// No longer expects a folder to be in its place: it is complete, and the user may move or remove it.
    pub fn release(&self, name: &str) {
        self.made().folders.remove(OsStr::new(name));
    }

    /// Checks that a folder of this name could be created here: the name is free, or that of an empty folder.
    ///
    /// # Errors
    /// The name exists ([`Refused::NotEmpty`]), or the folder cannot be read.
    pub fn check_free(&self, name: &OsStr) -> io::Result<()> {
        let folder = match open_below(self.as_fd(), name) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if names(folder.as_fd())?.is_empty() { Ok(()) } else { Err(Refused::NotEmpty.into()) }
    }

    /// Removes an empty folder of this name.
    fn free(&self, name: &OsStr) -> io::Result<()> {
        match unlinkat(self, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Refused::NotEmpty.into()),
            Err(Errno::NOTDIR) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The user that it belongs to: on some file systems, not the one that has made it.
    ///
    /// # Errors
    /// The system call fails.
    pub fn owner(&self) -> io::Result<u32> {
        Ok(fstat(self)?.st_uid)
    }

    /// Whether something of this name is there, and belongs to this user.
    pub fn has_of(&self, name: impl AsRef<OsStr>, owner: u32) -> bool {
        let data = statat(self, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW);
        data.is_ok_and(|data| data.st_uid == owner)
    }

    /// Whether the name exists, as a file or anything else.
    pub fn has(&self, name: impl AsRef<OsStr>) -> bool {
        statat(self, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// The names in the folder.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn entries(&self) -> io::Result<Vec<OsString>> {
        Ok(names(self.as_fd())?)
    }

    /// The regular files in the folder with their sizes, the least recently written first.
    pub fn files_by_age(&self) -> Vec<(String, u64)> {
        let about = |name: OsString| {
            let data = statat(self, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let is_file = FileType::from_raw_mode(data.st_mode as RawMode).is_file();
            let size = u64::try_from(data.st_size).ok().filter(|_| is_file)?;
            Some(((data.st_mtime, data.st_mtime_nsec), name.into_string().ok()?, size))
        };
        let mut files: Vec<_> = self.entries().into_iter().flatten().filter_map(about).collect();
        files.sort();
        files.into_iter().map(|(_, name, size)| (name, size)).collect()
    }

    /// A new file without a name that reserves `size` bytes on the disk, if its file system supports that.
    pub fn reserve(&self, size: u64) -> Option<File> {
        let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(self, ".", flags, Mode::RUSR | Mode::WUSR).ok()?;
        fallocate(&file, FallocateFlags::empty(), 0, size).ok()?;
        Some(file.into())
    }

    /// Locks the folder while a clone of it lives, so that readers can distinguish a running recorder from a
    /// killed one. Some file systems have no locks: there a killed recorder is not noticed.
    pub fn lock(&self) {
        for _ in 0..LOCK_ATTEMPTS {
            match flock(self, FlockOperation::NonBlockingLockExclusive) {
                // A reader that looks whether it is locked has a lock itself, for a moment.
                Err(Errno::WOULDBLOCK) => sleep(LOCK_PAUSE),
                _ => return,
            }
        }
    }

    /// Whether another process has locked it, or another [`Dir`] for it that is no clone of this one.
    pub fn is_locked(&self) -> bool {
        let tried = flock(self, FlockOperation::NonBlockingLockShared);
        if tried.is_ok() {
            let _ = flock(self, FlockOperation::Unlock);
        }
        tried == Err(Errno::WOULDBLOCK)
    }

    /// Bytes of all files in it and in the folders below it, as far as these can be read.
    pub fn size(&self) -> u64 {
        let names = self.entries().unwrap_or_default();
        names.iter().map(|name| self.size_of(name).unwrap_or(0)).sum()
    }

    /// Bytes of a file, or of all files in a folder and in the folders below it; links are not followed. What
    /// this process may not read has none, nor has what is not there.
    ///
    /// # Errors
    /// The system cannot open a folder now: this process has too many descriptors, for example.
    pub fn size_of(&self, name: impl AsRef<OsStr>) -> io::Result<u64> {
        Ok(size_at(self.as_fd(), name.as_ref(), DEEPEST)?)
    }
}

/// Opens a folder in a folder, for reading its entries.
pub(crate) fn open_below(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// The same, if nothing else is mounted there.
pub(crate) fn open_unmounted(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat2(parent, name, flags, Mode::empty(), ResolveFlags::NO_XDEV) {
        // Kernels before 5.6, and filters of containers that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => {
            let folder = open_below(parent, name)?;
            let is_same = fstat(&folder)?.st_dev == fstat(parent)?.st_dev;
            if is_same { Ok(folder) } else { Err(Errno::XDEV) }
        }
        opened => opened,
    }
}

pub(crate) fn names(folder: BorrowedFd<'_>) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn remove_below(parent: BorrowedFd<'_>, name: &OsStr, depth: usize) -> io::Result<()> {
    let folder = match open_unmounted(parent, name) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for name in names(folder.as_fd())? {
        match unlinkat(&folder, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR | Errno::PERM) if depth > 0 => remove_below(folder.as_fd(), &name, depth - 1)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// What was opened; `None` if it is not there, is of another kind, or may not be read by this process. What
/// this process or the disk lacks now is an error.
pub(crate) fn found<T>(opened: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::ACCESS | Errno::PERM) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn size_at(folder: BorrowedFd<'_>, name: &OsStr, depth: usize) -> Result<u64, Errno> {
    let Some(data) = found(statat(folder, name, AtFlags::SYMLINK_NOFOLLOW))? else { return Ok(0) };
    match FileType::from_raw_mode(data.st_mode as RawMode) {
        FileType::Directory if depth > 0 => {
            let Some(below) = found(open_below(folder, name))? else { return Ok(0) };
            let names = found(names(below.as_fd()))?.unwrap_or_default();
            names.iter().map(|name| size_at(below.as_fd(), name, depth - 1)).sum()
        }
        FileType::RegularFile => Ok(data.st_size.try_into().unwrap_or(0)),
        _ => Ok(0),
    }
}
