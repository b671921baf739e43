//! A single output file: a new one, one that replaces a regular file of this user, or a pipe or device.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, fstat, openat, renameat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::{Dir, Refused};

/// A file that is being written. A regular file gets its name by [`OutputFile::finish`]; if it is dropped
/// before, nothing remains and an existing file is unchanged.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// The folder, the temporary name, and the final name.
    place: Option<(Dir, String, String)>,
}

impl OutputFile {
    /// Output to `path`: a new file, one that replaces a regular file of this user, or an existing pipe or
    /// device. `/dev/stdout`, `/dev/stderr` and `/dev/fd/N` are this process's descriptors.
    ///
    /// # Errors
    /// The file cannot be created, or is [`Refused`]: a symbolic link, a file or pipe of another user, a
    /// folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(file) = Self::stream(path)? {
            return Ok(Self { file, place: None });
        }
        let (folder, name) = split(path)?;
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => match FileType::from_raw_mode(found.st_mode as RawMode) {
                FileType::RegularFile if found.st_uid == geteuid().as_raw() => Self::temporary(folder, name),
                FileType::RegularFile => Err(Refused::Foreign(found.st_uid).into()),
                FileType::Symlink => Err(Refused::Link.into()),
                _ => Err(Refused::NotAFile.into()),
            },
            Err(Errno::NOENT) => Self::temporary(folder, name),
            Err(error) => Err(error.into()),
        }
    }

    /// Output to a pipe or device at `path`, or to one of this process's descriptors; `None` if the path does
    /// not exist, or is anything else.
    ///
    /// # Errors
    /// The file cannot be opened, or is another user's pipe ([`Refused`]).
    pub fn stream(path: &Path) -> io::Result<Option<File>> {
        if let Some(number) = descriptor(path) {
            // SAFETY: only borrowed for the call, and the kernel refuses a number that is not open.
            return Ok(Some(unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()?.into()));
        }
        let (folder, name) = split(path)?;
        let found = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            found => found?,
        };
        match FileType::from_raw_mode(found.st_mode as RawMode) {
            FileType::Fifo if found.st_uid != geteuid().as_raw() => {
                Err(Refused::Foreign(found.st_uid).into())
            }
            FileType::Fifo | FileType::CharacterDevice => Self::open(&folder, name).map(Some),
            _ => Ok(None),
        }
    }

    /// A regular file: a temporary one, renamed when it is complete. Other names (hard links) of an existing
    /// file keep its content.
    fn temporary(folder: Dir, name: &OsStr) -> io::Result<Self> {
        let name = name.to_str().ok_or(Refused::NotAFile)?.to_owned();
        let mut taken = io::ErrorKind::AlreadyExists.into();
        for number in 0..100 {
            let temporary = format!(".{name}.{}.{number}", std::process::id());
            match folder.create_file(&temporary) {
                Ok(file) => return Ok(Self { file, place: Some((folder, temporary, name)) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
                Err(error) => return Err(error),
            }
        }
        Err(taken)
    }

    /// A pipe or device. If it has become a regular file meanwhile, it is left alone.
    fn open(folder: &Dir, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::empty())?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode as RawMode) {
            FileType::Fifo | FileType::CharacterDevice => Ok(file.into()),
            _ => Err(Refused::NotAFile.into()),
        }
    }

    /// Completes the file: gives it its final name.
    ///
    /// # Errors
    /// The file cannot be renamed.
    pub fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if let Some((folder, temporary, name)) = &self.place {
            renameat(folder, temporary, folder, name)?;
            self.place = None;
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((folder, temporary, _)) = &self.place {
            let _ = folder.remove(temporary);
        }
    }
}

/// The folder of a path, and the name in it.
fn split(path: &Path) -> io::Result<(Dir, &OsStr)> {
    let name = path.file_name().ok_or(Refused::NotAFile)?;
    Ok((Dir::parent(path.parent().unwrap_or(Path::new("")))?, name))
}

/// The descriptor in a path such as `/dev/fd/N`.
fn descriptor(path: &Path) -> Option<i32> {
    let path = path.to_str()?;
    match path {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => {
            let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"))?;
            number.parse().ok().filter(|number| *number >= 0)
        }
    }
}
