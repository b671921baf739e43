//! The output of a recording: a trace folder, or the folder of a flight recorder's snapshots.

use tracewing_consumer::folder::Folder;
use tracewing_files::{Dir, Made};

use crate::Error;
use crate::options::Options;

/// The output of a recording.
pub(super) enum Output {
    Trace(Folder),
    /// The folder of a flight recorder's snapshots, and which of it and its parents were created for that.
    Snapshots(Dir, Made),
}

impl Output {
    pub(super) fn create(options: &Options) -> Result<Self, Error> {
        if options.flight_recorder.is_none() {
            return Ok(Self::Trace(Folder::create(&options.output)?));
        }
        let path = &options.output;
        let (dir, made) = Dir::create(path).map_err(tracewing_consumer::Error::folder(path))?;
        // Other flight recorders of its session see that it lives.
        dir.lock();
        Ok(Self::Snapshots(dir, made))
    }

    pub(super) fn discard(&self) {
        match self {
            Self::Trace(folder) => folder.clone().discard(),
            Self::Snapshots(_, made) => made.remove_empty(),
        }
    }

    pub(super) fn dir(&self) -> &Dir {
        match self {
            Self::Trace(folder) => folder.dir(),
            Self::Snapshots(dir, _) => dir,
        }
    }

    pub(super) fn folder(&self) -> Option<&Folder> {
        match self {
            Self::Trace(folder) => Some(folder),
            Self::Snapshots(..) => None,
        }
    }
}
