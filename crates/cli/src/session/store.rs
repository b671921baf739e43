//! Where the sessions of a user are: a file for each, in `$XDG_STATE_HOME/tracewing/sessions` or
//! `.local/state/tracewing/sessions` in the home; root's are in `/var/lib/tracewing/sessions`, since root may
//! have the home of another user.
//!
//! Only this user can write there: what a session says is run with the user's rights. A command that changes
//! a session, or starts or stops one, holds a lock.

use super::definition::Definition;
use crate::output::print_warning;
use anyhow::{Context, Error, Result, anyhow, bail, ensure};
use rustix::fs::{FlockOperation, Stat, flock, stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use tracewing_files::{Dir, Exclusive, Refused};

const ROOTS: &str = "/var/lib/tracewing/sessions";
const EXTENSION: &str = "toml";

/// The sessions of this user.
pub struct Store {
    folder: Dir,
}

/// The same, while no other command changes them.
pub struct Locked<'a>(&'a Store, #[expect(dead_code, reason = "held")] Exclusive);

impl Store {
    /// Finds the folder, or makes it.
    pub fn open() -> Result<Self> {
        let path = folder()?;
        Ok(Self { folder: Dir::private(&path).map_err(|error| refused(&path, error))? })
    }

    pub fn lock(&self) -> Result<Locked<'_>> {
        let lock = Exclusive::wait(&self.folder).context("cannot lock the folder for sessions")?;
        Ok(Locked(self, lock))
    }

    /// The same if no command changes a session at present.
    pub fn try_lock(&self) -> Option<Locked<'_>> {
        Some(Locked(self, Exclusive::attempt(&self.folder).ok()??))
    }

    pub fn get(&self, name: &str) -> Result<Definition> {
        Definition::read(&self.folder.path().join(file(&self.named(Some(name))?)))
    }

    /// The name of the session that is meant: this one if it is there, or the only one that there is.
    pub fn named(&self, name: Option<&str>) -> Result<String> {
        if let Some(name) = name.filter(|name| self.folder.has(file(name))) {
            return Ok(name.to_owned());
        }
        let mut names = self.names()?;
        match (name, names.len()) {
            (_, 0) => bail!("there are no sessions: `tracewing session create NAME` describes one"),
            (Some(name), _) => bail!("there is no session {name}; there are: {}", names.join(", ")),
            (None, 1) => Ok(names.remove(0)),
            (None, _) => bail!("there are several sessions, name one: {}", names.join(", ")),
        }
    }

    /// All that can be read, in the order of their names. A warning names the others. Whether these are all.
    pub fn all(&self) -> Result<(Vec<Definition>, bool)> {
        let (mut all, mut is_whole) = (Vec::new(), true);
        for name in self.names()? {
            match self.get(&name) {
                Ok(definition) => all.push(definition),
                // It was destroyed meanwhile.
                Err(_) if !self.folder.has(file(&name)) => {}
                Err(error) => {
                    is_whole = false;
                    let remedy = match is_invalid(&error) {
                        true => format!(
                            "; correct the file, or forget the session and end its recorders: `tracewing session destroy \
                             {name}`"
                        ),
                        false => String::new(),
                    };
                    print_warning(&format!("{error:#}{remedy}"));
                }
            }
        }
        Ok((all, is_whole))
    }

    /// Says that a service keeps the sessions of a folder started, while what is given lives.
    ///
    /// # Errors
    /// Another one does.
    pub fn serve(&self, folder: &Path) -> Result<Option<Dir>> {
        let Ok(data) = stat(folder) else { return Ok(None) };
        let name = format!("service-{}-{}", data.st_dev, data.st_ino);
        let made = self.folder.make(&name).or_else(|_| self.folder.below(&name));
        let lock = made.with_context(|| format!("cannot lock {}", folder.display()))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                bail!("another service keeps the sessions of {} started", folder.display())
            }
            // Some file systems have no locks.
            _ => Ok(Some(lock)),
        }
    }

    /// The folder that a service has a session from; `None` if no service has made or taken it.
    pub fn served_from(&self, name: &str) -> Option<PathBuf> {
        let path = std::fs::read(self.folder.path().join(marker(name))).ok()?;
        Some(PathBuf::from(OsString::from_vec(path)))
    }

    /// Whether a service that has a session from a file must leave the one of this name alone: a command
    /// has made it, in another form.
    pub fn is_made_otherwise(&self, file: &Definition) -> bool {
        self.served_from(&file.name).is_none() && self.get(&file.name).is_ok_and(|stored| stored != *file)
    }

    /// The file with the starts of a session that has a size, if it has one.
    ///
    /// # Errors
    /// It cannot be read now: the disk fails, or this process has too many descriptors.
    pub fn starts(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.read(&starts(name))
    }

    fn read(&self, file: &str) -> Result<Option<Vec<u8>>> {
        let path = self.folder.path().join(file);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = self.folder.entries().context("cannot read the folder for sessions")?;
        let paths = entries.iter().map(Path::new);
        let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
        let mut names: Vec<String> =
            files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
        names.sort_unstable();
        Ok(names)
    }
}

impl Locked<'_> {
    /// Keeps a new session.
    pub fn add(&self, definition: &Definition) -> Result<()> {
        let name = &definition.name;
        ensure!(
            !self.0.folder.has(file(name)),
            "there is a session {name} already: `tracewing session destroy {name}` forgets it"
        );
        let removed = self.0.folder.remove(&marker(name)).and_then(|()| self.0.folder.remove(&starts(name)));
        removed.context("cannot write to the folder for sessions")?;
        self.replace(definition)
    }

    /// Keeps a session as it is now.
    pub fn replace(&self, definition: &Definition) -> Result<()> {
        let file = file(&definition.name);
        let written = self.0.folder.replace(&file, definition.to_toml()?.as_bytes());
        written.with_context(|| format!("cannot write {}", self.0.folder.path().join(file).display()))
    }

    /// Notes that a service has a session from this folder.
    pub fn serve_from(&self, name: &str, folder: &Path) -> Result<()> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let written = self.0.folder.replace(&marker(name), folder.as_os_str().as_bytes());
        written.context("cannot write to the folder for sessions")
    }

    /// Notes that no service has a session any more.
    pub fn serve_no_more(&self, name: &str) -> Result<()> {
        self.0.folder.remove(&marker(name)).context("cannot write to the folder for sessions")
    }

    /// As [`Store::starts`].
    pub fn starts(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.0.starts(name)
    }

    /// Keeps a copy of a file with starts, under a name that no other copy has. Gives its path.
    pub fn keep_starts(&self, name: &str, text: &[u8]) -> Result<PathBuf> {
        let mut number = 1;
        loop {
            let copy = format!("{}.damaged-{number}", starts(name));
            let path = self.0.folder.path().join(&copy);
            match self.0.read(&copy)? {
                None => {
                    let written = self.0.folder.replace(&copy, text);
                    written.with_context(|| format!("cannot write {}", path.display()))?;
                    return Ok(path);
                }
                // A command that was ended before it replaced the file has made it.
                Some(kept) if kept == text => return Ok(path),
                Some(_) => number += 1,
            }
        }
    }

    /// Replaces the file with the starts of a session.
    pub fn set_starts(&self, name: &str, text: &str) -> Result<()> {
        let written = self.0.folder.replace(&starts(name), text.as_bytes());
        written.context("cannot write to the folder for sessions")
    }

    pub fn remove(&self, name: &str) -> Result<()> {
        let file = file(name);
        self.serve_no_more(name)?;
        self.0.folder.remove(&starts(name)).context("cannot write to the folder for sessions")?;
        let removed = self.0.folder.remove(&file);
        removed.with_context(|| format!("cannot remove {}", self.0.folder.path().join(file).display()))
    }
}

fn file(name: &str) -> String {
    format!("{name}.{EXTENSION}")
}

/// Whether a session cannot be read because of what is in its file, and not because of the disk or this
/// process.
pub fn is_invalid(error: &Error) -> bool {
    let of_system = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
    of_system.is_none_or(|error| error.kind() == io::ErrorKind::InvalidData)
}

/// That the folder cannot be used, and what to do if it, or the one that it is to be made in, is refused.
fn refused(path: &Path, error: io::Error) -> Error {
    let failed = format!("cannot use the folder for sessions, {}", path.display());
    let about = |path: &Path| Some((stat(path).ok()?, path.display().to_string()));
    let parent = path.ancestors().skip(1).find_map(about);
    let all = || parent.clone().into_iter().chain(about(path));
    let is_refused = |data: &Stat| match Refused::of(&error) {
        Some(Refused::Writable) => data.st_mode & 0o022 != 0,
        Some(Refused::Foreign(_)) => data.st_uid != geteuid().as_raw(),
        _ => false,
    };
    match (Refused::of(&error), all().find(|(data, _)| is_refused(data))) {
        (Some(Refused::Writable), Some((_, at))) => anyhow!(
            "{failed}: group or others may write to {at}, and could change sessions; `chmod go-w {at}`, or set \
             XDG_STATE_HOME to a folder that only you can write to"
        ),
        (Some(Refused::Foreign(owner)), Some((_, at))) => anyhow!(
            "{failed}: {at} belongs to user {owner}, and that user could change sessions; set XDG_STATE_HOME to a \
             folder of your own"
        ),
        _ => Error::from(error).context(failed),
    }
}

/// The file that says that a service has a session, and from where.
fn marker(name: &str) -> String {
    format!("{name}.service")
}

/// The file with the starts of a session.
fn starts(name: &str) -> String {
    format!("{name}.starts")
}

fn folder() -> Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(state) = absolute("XDG_STATE_HOME") {
        return Ok(state.join("tracewing/sessions"));
    }
    if geteuid().is_root() {
        return Ok(ROOTS.into());
    }
    let home = absolute("HOME").context("no folder for sessions: neither XDG_STATE_HOME nor HOME is set")?;
    Ok(home.join(".local/state/tracewing/sessions"))
}
