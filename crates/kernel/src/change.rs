//! Changes in tracefs, each as a small request, so that another process can make them ([`change_by`]): one
//! that reads no events ([`crate::Changer`]). To read tracefs, only its owner's rights are needed, which
//! recorders keep.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

type Elsewhere = Box<dyn Fn(&[u8]) -> io::Result<Option<OwnedFd>> + Send + Sync>;

static ELSEWHERE: OnceLock<Elsewhere> = OnceLock::new();

/// From now on, `elsewhere` makes the changes of this process, and gives the result of
/// [`Changer::make`](crate::Changer::make). Only the first call has an effect. It also removes the instance
/// of this process once that has ended ([`Changer::clean_up`](crate::Changer::clean_up)).
pub fn change_by(elsewhere: impl Fn(&[u8]) -> io::Result<Option<OwnedFd>> + Send + Sync + 'static) {
    let _ = ELSEWHERE.set(Box::new(elsewhere));
}

/// Whether another process makes the changes.
pub(crate) fn are_made_elsewhere() -> bool {
    ELSEWHERE.get().is_some()
}

/// A change; paths are of tracefs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change<'p> {
    /// Opens a file to write to it.
    Open(&'p Path),
    /// Empties the list in a file.
    Empty(&'p Path),
    /// Makes an instance.
    Make(&'p Path),
    /// Removes an instance.
    Remove(&'p Path),
    /// Removes a probe, `GROUP/EVENT`, from the file that defines it.
    Undefine(&'p Path, &'p str),
    /// From now on, no probe is defined, and nothing of other recorders is removed.
    Settle,
}

impl<'p> Change<'p> {
    /// Makes it, here or in the process that does so for this one.
    pub(crate) fn make(self) -> io::Result<()> {
        self.made().map(drop)
    }

    /// Opens a file to write to it.
    pub(crate) fn open(path: &'p Path) -> io::Result<File> {
        Change::Open(path).made()?.map(File::from).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn made(self) -> io::Result<Option<OwnedFd>> {
        ELSEWHERE.get().map_or_else(|| self.here(), |elsewhere| elsewhere(&self.encode()))
    }

    /// Makes it; gives the file that it opens.
    pub(crate) fn here(self) -> io::Result<Option<OwnedFd>> {
        let open = |path: &Path| File::options().write(true).open(path);
        match self {
            Self::Open(path) => return Ok(Some(open(path)?.into())),
            Self::Empty(path) => File::options().write(true).truncate(true).open(path).map(drop)?,
            Self::Make(path) => fs::create_dir(path)?,
            Self::Remove(path) => fs::remove_dir(path)?,
            Self::Undefine(path, probe) => open(path)?.write_all(format!("-:{probe}").as_bytes())?,
            Self::Settle => {}
        }
        Ok(None)
    }

    fn encode(self) -> Vec<u8> {
        let (kind, path, probe) = match self {
            Self::Open(path) => (0, path, ""),
            Self::Empty(path) => (1, path, ""),
            Self::Make(path) => (2, path, ""),
            Self::Remove(path) => (3, path, ""),
            Self::Undefine(path, probe) => (4, path, probe),
            Self::Settle => (5, Path::new(""), ""),
        };
        [&[kind], path.as_os_str().as_bytes(), &[0], probe.as_bytes()].concat()
    }

    /// What [`Change::encode`] has made, or any other bytes.
    pub(crate) fn decode(request: &'p [u8]) -> Option<Self> {
        let (kind, rest) = request.split_first()?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (path, probe) = (Path::new(OsStr::from_bytes(&rest[..end])), &rest[end + 1..]);
        let change = match kind {
            0 => Self::Open(path),
            1 => Self::Empty(path),
            2 => Self::Make(path),
            3 => Self::Remove(path),
            4 => return Some(Self::Undefine(path, str::from_utf8(probe).ok()?)),
            5 if end == 0 => Self::Settle,
            _ => return None,
        };
        probe.is_empty().then_some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_say_what_is_changed() {
        let path = Path::new("/sys/kernel/tracing/x");
        for change in [
            Change::Open(path),
            Change::Empty(path),
            Change::Make(path),
            Change::Remove(path),
            Change::Undefine(path, "group/p0"),
            Change::Settle,
        ] {
            assert_eq!(Change::decode(&change.encode()), Some(change));
        }
        for other in [&[][..], &[0], b"\0/x", b"\0/x\0y", b"\x05/x\0", b"\x06/x\0", b"\x04/x\0\xff"] {
            assert_eq!(Change::decode(other), None, "{other:?}");
        }
    }
}
