//! tracefs as a whole: finds or mounts it, lists the kernel's events, reads their descriptions.
//!
//! Only reads outside of the own instance; instances are [`crate::instance`]'s business.

use crate::change::Change;
use crate::error::{Action, Error, FormatError, Missing};
use crate::format::Format;
use crate::page::PageLayout;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What the groups of all recorders' probes begin with.
const PROBE_GROUPS: &str = "tracewing_";

const MOUNT_POINT: &str = "/sys/kernel/tracing";
/// How long the tracer may take to answer: much longer than others hold its lock.
const PATIENCE: Duration = Duration::from_secs(3);

/// A mounted tracefs that this process may use.
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
    layout: PageLayout,
}

/// Checks that this process may record kernel events, mounting tracefs where that is all that is missing.
///
/// # Errors
/// The missing privilege or file system; its text is one line with the remedy.
pub fn privileges() -> Result<(), Missing> {
    find().map(drop)
}

impl Tracefs {
    /// Finds tracefs, or mounts it at `/sys/kernel/tracing` (where it stays, as the kernel's own tools leave
    /// it).
    pub fn open() -> Result<Self, Error> {
        let root = find()?;
        let path = root.join("events/header_page");
        let text = read(&path)?;
        let layout = PageLayout::parse(&text).map_err(|source| Error::Format { path, source })?;
        Ok(Self { root, layout })
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How buffer pages are laid out (the size is that of a page of 4 KiB; instances may change theirs).
    pub fn layout(&self) -> PageLayout {
        self.layout
    }

    /// All events that can be recorded, as (system, name), in the kernel's order. The probes of recorders are
    /// theirs alone.
    pub fn events(&self) -> Result<Vec<(String, String)>, Error> {
        let text = read(&self.root.join("available_events"))?;
        let split =
            |line: &str| line.split_once(':').map(|(system, name)| (system.to_owned(), name.to_owned()));
        let events = text.lines().filter_map(split);
        Ok(events.filter(|(system, _)| !system.starts_with(PROBE_GROUPS)).collect())
    }

    /// The description of an event; `None` where the kernel has it no longer (its module is gone).
    pub fn format(&self, system: &str, name: &str) -> Result<Option<Format>, Error> {
        let path = self.root.join("events").join(system).join(name).join("format");
        let text = match read(&path) {
            Err(Error::Tracefs { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            text => text?,
        };
        let format = Format::parse(&text, self.layout.word());
        format.map(Some).map_err(|source: FormatError| Error::Format { path, source })
    }
}

fn find() -> Result<PathBuf, Missing> {
    if cfg!(target_endian = "big") {
        return Err(Missing::BigEndian);
    }
    let default_place = PathBuf::from(MOUNT_POINT);
    let root = match mounted(&default_place)? {
        true => default_place,
        false => match elsewhere() {
            Some(path) => path,
            None => {
                mount_at(&default_place)?;
                default_place
            }
        },
    };
    match accessat(CWD, root.join("instances"), Access::WRITE_OK, AtFlags::EACCESS) {
        Ok(()) => {}
        Err(Errno::ROFS) => return Err(Missing::ReadOnly { path: root }),
        Err(Errno::ACCESS) => return Err(Missing::Root),
        Err(errno) => return Err(Missing::Io { path: root.join("instances"), source: errno.into() }),
    }
    if !answers(&root) {
        return Err(Missing::Hangs);
    }
    // Lockdown forbids to open what may be written to otherwise.
    let probe = root.join("available_events");
    match fs::File::open(&probe) {
        Ok(_) => Ok(root),
        Err(e) if e.raw_os_error() == Some(Errno::PERM.raw_os_error()) => Err(Missing::Lockdown),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(Missing::Root),
        Err(source) => Err(Missing::Io { path: probe, source }),
    }
}

/// Whether the tracer's lock can be taken. Every open that could show this takes the lock, and a process that
/// waits for it cannot be killed. So a child process tries it, once per process.
fn answers(root: &Path) -> bool {
    static ANSWERS: OnceLock<bool> = OnceLock::new();
    *ANSWERS.get_or_init(|| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", ": < \"$1\"", "sh"]).arg(root.join("tracing_on"));
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Where there is no shell, this is unknown.
        let Ok(mut shell) = shell.spawn() else { return true };
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            match shell.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                _ => return true,
            }
        }
        false
    })
}

/// Whether `path` is the root of a tracefs. An unmounted mount point is an empty directory.
fn mounted(path: &Path) -> Result<bool, Missing> {
    match fs::symlink_metadata(path.join("available_events")) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        // A tracefs keeps everyone but root from looking in.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Err(Missing::Root),
        Err(source) => Err(Missing::Io { path: path.to_owned(), source }),
    }
}

/// Another place where tracefs is mounted already.
fn elsewhere() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut candidates = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (_, path, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "tracefs").then(|| PathBuf::from(path))
    });
    candidates.find(|path| matches!(mounted(path), Ok(true)))
}

fn mount_at(path: &Path) -> Result<(), Missing> {
    let kinds = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !path.is_dir() || !kinds.lines().any(|line| line.split_whitespace().last() == Some("tracefs")) {
        return Err(Missing::Tracefs);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount("tracefs", path, "tracefs", flags, None) {
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(Errno::PERM | Errno::ACCESS) => Err(Missing::Root),
        Err(errno) => Err(Missing::Io { path: path.to_owned(), source: errno.into() }),
    }
}

/// Reads a file of tracefs. Some of them, `header_page` for one, give all they have at the first call or
/// never.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    let result = fs::File::open(path).and_then(|mut file| {
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(len) => bytes.extend_from_slice(&chunk[..len]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    });
    match result {
        // Print formats may hold bytes of any kind.
        Ok(()) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(source) => Err(Error::Tracefs { action: Action::Read, path: path.to_owned(), source }),
    }
}

/// Empties a list in a file of tracefs.
pub(crate) fn clear(path: &Path) -> Result<(), Error> {
    let emptied = Change::Empty(path).make();
    emptied.map_err(|source| Error::Tracefs { action: Action::Write, path: path.to_owned(), source })
}

/// Writes a setting into a file of tracefs.
pub(crate) fn write(path: &Path, value: &str) -> Result<(), Error> {
    let result = Change::open(path).and_then(|mut file| file.write_all(value.as_bytes()));
    result.map_err(|source| Error::Tracefs { action: Action::Write, path: path.to_owned(), source })
}
