//! The output of a recording: a trace folder, or the folder of a flight recorder's snapshots.

use tracewing_consumer::folder::Folder;
use tracewing_files::{Dir, Exclusive, LOCK_FILE, Made};

use crate::Error;
use crate::options::Options;

/// The output of a recording.
pub(super) struct Output {
    pub(super) kind: Kind,
    /// By this lock, commands and other recorders of a session with a size see that the recorder lives.
    /// `None` outside of such a session, and on a file system without locks.
    _alive: Option<Exclusive>,
}

pub(super) enum Kind {
    Trace(Folder),
    /// The folder of a flight recorder's snapshots, and which of it and its parents were created for that.
    Snapshots(Dir, Made),
}

impl Output {
    pub(super) fn create(options: &Options) -> Result<Self, Error> {
        let kind = Kind::create(options)?;
        let _alive = options.rotate.shared.and_then(|_| Exclusive::wait(kind.dir()).ok());
        Ok(Self { kind, _alive })
    }

    pub(super) fn discard(&self) {
        let _ = self.dir().remove(LOCK_FILE);
        match &self.kind {
            Kind::Trace(folder) => folder.clone().discard(),
            Kind::Snapshots(_, made) => made.remove_empty(),
        }
    }

    /// Removes the folder of a flight recorder, with its parents that were created, if there are no
    /// snapshots.
    pub(super) fn remove_empty(&self) {
        if let Kind::Snapshots(dir, made) = &self.kind {
            if dir.entries().is_ok_and(|names| names.iter().all(|name| name == LOCK_FILE)) {
                let _ = dir.remove(LOCK_FILE);
            }
            made.remove_empty();
        }
    }

    pub(super) fn dir(&self) -> &Dir {
        self.kind.dir()
    }

    pub(super) fn folder(&self) -> Option<&Folder> {
        match &self.kind {
            Kind::Trace(folder) => Some(folder),
            Kind::Snapshots(..) => None,
        }
    }
}

impl Kind {
    fn create(options: &Options) -> Result<Self, Error> {
        if options.flight_recorder.is_none() {
            return Ok(Self::Trace(Folder::create(&options.output)?));
        }
        let path = &options.output;
        let (dir, made) = Dir::create(path).map_err(tracewing_consumer::Error::folder(path))?;
        dir.lock();
        Ok(Self::Snapshots(dir, made))
    }

    fn dir(&self) -> &Dir {
        match self {
            Self::Trace(folder) => folder.dir(),
            Self::Snapshots(dir, _) => dir,
        }
    }
}
