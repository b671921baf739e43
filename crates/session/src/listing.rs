//! The file by which all programs that start find the recorders that want them
//! ([`JOIN_FILE`](tracewing_abi::JOIN_FILE)).
//!
//! It is there only while a recorder wants them; without it, the start of a program costs two look-ups that
//! fail. A recorder's entry is its socket, whose name is no secret then: root's recorder lets in programs of
//! all users anyway, and the file of another user can be read by that user alone. Entries of recorders that
//! were killed are removed by the next recorder. The newest one is the last, and programs join it last. A
//! recorder that changes the file holds the lock of its folder ([`Exclusive`]), and puts a new file in its
//! place, so that programs always see a whole one.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, fstat, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Uid, getuid};
use tracewing_abi::{JOIN_FILE, LARGEST_JOIN_FILE, ROOT_FOLDER, USER_FOLDER_VARIABLE, USER_FOLDERS};
use tracewing_files::Exclusive;

use crate::Error;
use crate::socket::{FOLDER, MOST_RECORDERS, is_private};

/// The file while it is written.
const NEW: &str = "join.new";

/// A recorder's entry in the file, until this is dropped.
pub(crate) struct Listing {
    folder: OwnedFd,
    socket: PathBuf,
}

impl Listing {
    /// Adds the recorder that listens at a socket.
    ///
    /// # Errors
    /// This user has no folder for the file, or as many recorders as programs can join are listed.
    pub(crate) fn add(socket: &Path) -> Result<Self, Error> {
        let parent = parent().ok_or(Error::NoUserFolder)?;
        let of_root = if getuid() == Uid::ROOT { 0 } else { living_in(Path::new(ROOT_FOLDER)).len() };
        Self::within(&parent, of_root, socket)
    }

    /// `before`: how many others programs join before those of this file.
    fn within(parent: &Path, before: usize, socket: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Listing { path: parent.join(JOIN_FILE), source };
        let folder = folder(parent).map_err(failed)?;
        let this = Self { folder, socket: socket.to_owned() };
        let is_added = this.change(|others| {
            (before + others.len() < MOST_RECORDERS).then(|| [others, &[socket.to_owned()]].concat())
        });
        if is_added.map_err(failed)? { Ok(this) } else { Err(Error::TooManyListed(MOST_RECORDERS)) }
    }

    /// Replaces the entries of other recorders that live by what `change` makes of them, if anything. Says
    /// whether it did.
    fn change(&self, change: impl FnOnce(&[PathBuf]) -> Option<Vec<PathBuf>>) -> io::Result<bool> {
        let _locked = Exclusive::wait(&self.folder)?;
        self.change_locked(change)
    }

    /// As [`is_crowded_out`], of this recorder.
    pub(crate) fn is_crowded_out(&self) -> Option<bool> {
        self.socket.parent().and_then(is_crowded_out)
    }

    fn change_locked(&self, change: impl FnOnce(&[PathBuf]) -> Option<Vec<PathBuf>>) -> io::Result<bool> {
        let others: Vec<PathBuf> =
            living(&self.folder).into_iter().filter(|path| *path != self.socket).collect();
        let Some(all) = change(&others) else { return Ok(false) };
        let name = file_name();
        if all.is_empty() {
            match unlinkat(&self.folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
        let paths: Vec<&OsStr> = all.iter().map(|path| path.as_os_str()).collect();
        let _ = unlinkat(&self.folder, NEW, AtFlags::empty());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, NEW, flags, Mode::RUSR | Mode::WUSR)?;
        // Regardless of the umask.
        let is_root = getuid() == Uid::ROOT;
        fchmod(&file, Mode::from_raw_mode(if is_root { 0o644 } else { 0o600 }))?;
        File::from(file).write_all(paths.join(OsStr::new(":")).as_bytes())?;
        renameat(&self.folder, NEW, &self.folder, name)?;
        Ok(true)
    }
}

/// How many recorders the programs of this user find in files when they start.
pub(crate) fn listed() -> usize {
    let own = parent().filter(|_| getuid() != Uid::ROOT).map_or_else(Vec::new, |own| living_in(&own));
    living_in(Path::new(ROOT_FOLDER)).len() + own.len()
}

/// Whether programs of this user that start now join too many other recorders to join the one that has its
/// sockets in this folder, too. `None` if it is not listed.
pub(crate) fn is_crowded_out(sockets: &Path) -> Option<bool> {
    is_crowded_out_of(Path::new(ROOT_FOLDER), &parent()?, sockets)
}

/// The same, by the file of root and the own one.
fn is_crowded_out_of(root: &Path, own: &Path, sockets: &Path) -> Option<bool> {
    let first = if own == root { Vec::new() } else { entries_in(root) };
    // Those of killed recorders take places, too, as long as they are listed.
    let all = [first, entries_in(own)].concat();
    all.iter().position(|socket| socket.parent() == Some(sockets)).map(|place| place >= MOST_RECORDERS)
}

fn living_in(parent: &Path) -> Vec<PathBuf> {
    entries_in(parent).into_iter().filter(|path| path.exists()).collect()
}

fn entries_in(parent: &Path) -> Vec<PathBuf> {
    let folder = Path::new(JOIN_FILE).parent().map(|name| parent.join(name));
    folder
        .and_then(|folder| openat(CWD, folder, FOLDER, Mode::empty()).ok())
        .map_or_else(Vec::new, |folder| entries(&folder))
}

/// The entries of recorders that live.
fn living(folder: &OwnedFd) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|path| path.exists()).collect()
}

/// All entries, or none where they cannot be read: what another program has written is not kept.
fn entries(folder: &OwnedFd) -> Vec<PathBuf> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut bytes = Vec::new();
    if let Ok(file) = openat(folder, file_name(), flags, Mode::empty()) {
        let _ = File::from(file).take(LARGEST_JOIN_FILE as u64).read_to_end(&mut bytes);
    }
    let paths = bytes.split(|byte| *byte == b':').map(|path| Path::new(OsStr::from_bytes(path)));
    paths.filter(|path| path.is_absolute()).map(Path::to_owned).collect()
}

impl Drop for Listing {
    fn drop(&mut self) {
        // Otherwise the next recorder removes the entry.
        let _ = self.change(|others| Some(others.to_vec()));
    }
}

fn file_name() -> &'static str {
    JOIN_FILE.rsplit('/').next().unwrap_or(JOIN_FILE)
}

/// Opens the folder of the file for this user, or makes it. A service has its socket there, too. `None` if
/// this user has none, or others can write to it.
pub fn open_folder() -> Option<OwnedFd> {
    parent().and_then(|parent| folder(&parent).ok())
}

/// Opens the file's folder, or makes it.
fn folder(parent: &Path) -> io::Result<OwnedFd> {
    let parent = openat(CWD, parent, FOLDER & !OFlags::NOFOLLOW, Mode::empty())?;
    let name = JOIN_FILE.split('/').next().unwrap_or(JOIN_FILE);
    match mkdirat(&parent, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = openat(&parent, name, FOLDER, Mode::empty())?;
    let data = fstat(&folder)?;
    if data.st_uid != getuid().as_raw() || data.st_mode & 0o022 != 0 {
        return Err(io::Error::other("the folder is another user's, or others can write to it"));
    }
    // Regardless of the umask. Programs of all users read root's file.
    let is_root = getuid() == Uid::ROOT;
    fchmod(&folder, Mode::from_raw_mode(if is_root { 0o755 } else { 0o700 }))?;
    Ok(folder)
}

/// Where programs look for the file of this user.
fn parent() -> Option<PathBuf> {
    let user = getuid();
    if user == Uid::ROOT {
        return Some(ROOT_FOLDER.into());
    }
    let own = env::var_os(USER_FOLDER_VARIABLE).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = own.unwrap_or_else(|| Path::new(USER_FOLDERS).join(user.as_raw().to_string()));
    is_private(&own).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn text(parent: &Path) -> String {
        fs::read_to_string(parent.join(JOIN_FILE)).unwrap_or_default()
    }

    #[test]
    fn the_file_is_there_while_a_recorder_is_listed() {
        let parent = tempfile::tempdir().unwrap();
        let sockets: Vec<PathBuf> =
            (0..MOST_RECORDERS + 1).map(|number| parent.path().join(number.to_string())).collect();
        sockets.iter().for_each(|path| fs::write(path, "").unwrap());
        let add = |number: usize| Listing::within(parent.path(), 0, &sockets[number]);
        let (first, second) = (add(0).unwrap(), add(1).unwrap());
        assert_eq!(text(parent.path()), format!("{}:{}", sockets[0].display(), sockets[1].display()));
        drop(first);
        assert_eq!(text(parent.path()), sockets[1].display().to_string());
        let rest: Vec<Listing> = (2..MOST_RECORDERS + 1).map(|number| add(number).unwrap()).collect();
        assert!(matches!(add(0), Err(Error::TooManyListed(MOST_RECORDERS))));
        assert_eq!(text(parent.path()).split(':').count(), MOST_RECORDERS);
        assert_eq!(living_in(parent.path()).len(), MOST_RECORDERS);
        // That of a recorder that was killed.
        fs::remove_file(&sockets[1]).unwrap();
        std::mem::forget(second);
        let first = add(0).unwrap();
        assert!(!text(parent.path()).contains(&*sockets[1].to_string_lossy()));
        drop((rest, first));
        assert!(!parent.path().join(JOIN_FILE).exists() && living_in(parent.path()).is_empty());
        // Those of root take places, too.
        let with_others = |before| Listing::within(parent.path(), before, &sockets[0]);
        assert!(matches!(with_others(MOST_RECORDERS), Err(Error::TooManyListed(MOST_RECORDERS))));
        drop(with_others(MOST_RECORDERS - 1).unwrap());
    }

    #[test]
    fn a_recorder_is_crowded_out_while_programs_join_as_many_before_it() {
        let (root, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let add = |parent: &Path, name: usize| {
            let folder = parent.join(name.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("socket"), "").unwrap();
            Listing::within(parent, 0, &folder.join("socket")).unwrap()
        };
        let is_crowded_out = |name: usize| {
            let sockets = own.path().join(name.to_string());
            is_crowded_out_of(root.path(), own.path(), &sockets)
        };
        let of_user = [add(own.path(), 0), add(own.path(), 1)];
        assert_eq!([0, 1, 2].map(is_crowded_out), [Some(false), Some(false), None]);
        let mut of_root: Vec<Listing> = (0..MOST_RECORDERS - 1).map(|name| add(root.path(), name)).collect();
        assert_eq!([0, 1].map(is_crowded_out), [Some(false), Some(true)]);
        of_root.push(add(root.path(), MOST_RECORDERS));
        assert_eq!([0, 1].map(is_crowded_out), [Some(true), Some(true)]);
        let of_last = root.path().join(MOST_RECORDERS.to_string());
        assert_eq!(is_crowded_out_of(root.path(), root.path(), &of_last), Some(false));
        // One that was killed has its place until it is removed from the list.
        fs::remove_dir_all(&of_last).unwrap();
        assert_eq!(is_crowded_out(0), Some(true));
        of_root.clear();
        assert_eq!([0, 1].map(is_crowded_out), [Some(false), Some(false)]);
        drop(of_user);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("tracewing");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        assert!(Listing::within(parent.path(), 0, Path::new("/s")).is_err());
        fs::remove_dir(&folder).unwrap();
        std::os::unix::fs::symlink("/tmp", &folder).unwrap();
        assert!(Listing::within(parent.path(), 0, Path::new("/s")).is_err());
    }
}
