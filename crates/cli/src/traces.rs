//! The recordings that a command reads: those that it is given, otherwise the newest one here.

use crate::output::print_warning;
use anyhow::{Context, Result, bail};
use std::cell::OnceCell;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracewing_trace::shown;

/// Files of which each recording, or trace of any tracer, has one; the last are those of a flight recorder's
/// first snapshot, and of a trace of several levels.
const MARKS: [&str; 4] = ["tracewing.json", "metadata", "snapshot-1/tracewing.json", "kernel/metadata"];

/// The recordings on the command line.
#[derive(Debug, clap::Args)]
pub struct Traces {
    /// Trace folders, or folders that contain traces [default: the newest recording of yours in the current
    /// folder]
    #[arg(value_name = "TRACE")]
    given: Vec<PathBuf>,

    /// The newest one, once it was looked for.
    #[arg(skip)]
    newest: OnceCell<[PathBuf; 1]>,
}

impl Traces {
    /// Where the recordings are. The first time, it says on standard error which one is used if none was
    /// given.
    ///
    /// # Errors
    /// None was given, and there is none here.
    pub fn folders(&self) -> Result<&[PathBuf]> {
        if !self.given.is_empty() {
            return Ok(&self.given);
        }
        if let Some(newest) = self.newest.get() {
            return Ok(newest);
        }
        let newest = newest(Path::new("."))?;
        print_warning(&format!("reading {}", shown(&newest.display().to_string())));
        Ok(self.newest.get_or_init(|| [newest]))
    }

    /// Takes the last of several, for a command that writes there.
    pub fn take_last(&mut self) -> Option<PathBuf> {
        if self.given.len() > 1 { self.given.pop() } else { None }
    }
}

/// The folder with the newest recording that belongs to this user; links are not followed.
fn newest(place: &Path) -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(place).context("cannot look for recordings in the current folder")?;
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let owned = folders.filter(|entry| entry.metadata().is_ok_and(|folder| folder.uid() == user));
    let dated = owned.filter_map(|entry| Some((date(&entry.path(), user)?, entry.file_name())));
    let Some((_, name)) = dated.max() else {
        bail!("the current folder has no recording of yours: give the folder of one");
    };
    Ok(name.into())
}

/// When the recording in a folder was last described, if it is one.
fn date(folder: &Path, user: u32) -> Option<SystemTime> {
    let is_own = |file: &Metadata| file.is_file() && file.uid() == user;
    let files = MARKS.iter().filter_map(|mark| fs::symlink_metadata(folder.join(mark)).ok());
    files.filter(is_own).filter_map(|file| file.modified().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    #[test]
    fn the_newest_recording_is_found() {
        let place = tempfile::tempdir().unwrap();
        assert!(newest(place.path()).is_err());
        let begin = SystemTime::now() - Duration::from_secs(3600);
        for (minutes, mark) in
            ["old/tracewing.json", "flight/snapshot-1/tracewing.json", "other/metadata"].iter().enumerate()
        {
            let mark = place.path().join(mark);
            fs::create_dir_all(mark.parent().unwrap()).unwrap();
            let file = File::create(mark).unwrap();
            file.set_modified(begin + Duration::from_secs(60 * minutes as u64)).unwrap();
        }
        fs::create_dir(place.path().join("no-recording")).unwrap();
        std::os::unix::fs::symlink("old", place.path().join("link")).unwrap();
        assert_eq!(newest(place.path()).unwrap(), Path::new("other"));
        fs::remove_dir_all(place.path().join("other")).unwrap();
        assert_eq!(newest(place.path()).unwrap(), Path::new("flight"));
    }
}
