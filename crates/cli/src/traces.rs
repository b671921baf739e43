//! The recordings that a command reads: those that it is given, otherwise the one around the current folder,
//! or the newest one in it.

use crate::output::print_warning;
use anyhow::{Context, Result, bail};
use std::cell::OnceCell;
use std::env::current_dir;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracewing_ctf::{Error, MetadataFault, metadata};
use tracewing_trace::shown;

/// Files of which each recording, or trace of any tracer, has one; the last are those of a flight recorder's
/// first snapshot, and of a trace of several levels.
const MARKS: [&str; 4] = ["tracewing.json", "metadata", "snapshot-1/tracewing.json", "kernel/metadata"];

/// Those of tracewing's recordings alone, which are in the folder of the whole.
const OURS: [&str; 2] = ["tracewing.json", "snapshot-1/tracewing.json"];

/// The recordings on the command line.
#[derive(Debug, clap::Args)]
pub struct Traces {
    /// Trace folders, or folders that contain traces [default: the recording that the current folder belongs
    /// to, otherwise your newest recording in the current folder]
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
        let newest = match around(&current_dir().unwrap_or_default()) {
            Some(whole) => whole,
            None => newest(Path::new("."))?,
        };
        print_warning(&format!("reading {}", shown(&newest.display().to_string())));
        Ok(self.newest.get_or_init(|| [newest]))
    }

    /// What is given, if it is one.
    pub fn sole(&self) -> Option<&Path> {
        if let [one] = &self.given[..] { Some(one) } else { None }
    }

    /// What is given, if it is two.
    pub fn pair(&self) -> Option<&[PathBuf; 2]> {
        self.given.as_slice().try_into().ok()
    }

    /// Whether any is given.
    pub fn are_given(&self) -> bool {
        !self.given.is_empty()
    }

    /// Takes the last of several, for a command that writes there.
    pub fn take_last(&mut self) -> Option<PathBuf> {
        if self.given.len() > 1 { self.given.pop() } else { None }
    }
}

/// Folders between that of a rotated recording and the index files of its archives' traces.
const DEPTH: usize = 4;

/// The whole recording whose folder, or a folder of which, is `place`.
fn around(place: &Path) -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let is_own = |folder: &Path| fs::symlink_metadata(folder).is_ok_and(|about| about.uid() == user);
    let is_one = |folder: &Path, marks| is_own(folder) && date(folder, marks, user).is_some();
    let above = place.ancestors().take(DEPTH + 1).filter(|folder| is_one(folder, &OURS)).last();
    above.or_else(|| Some(place).filter(|place| is_one(place, &MARKS))).map(Path::to_owned)
}

/// The folder with the newest recording that belongs to this user; links are not followed.
fn newest(place: &Path) -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(place).context("cannot look for recordings in the current folder")?;
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let owned = folders.filter(|entry| entry.metadata().is_ok_and(|folder| folder.uid() == user));
    let dated = owned.filter_map(|entry| Some((date(&entry.path(), &MARKS, user)?, entry.file_name())));
    let Some((_, name)) = dated.max() else {
        bail!("the current folder has no recording of yours: give the folder of one");
    };
    Ok(name.into())
}

/// When the recording in a folder was last described, if it is one.
fn date(folder: &Path, marks: &[&str], user: u32) -> Option<SystemTime> {
    let modified = |mark: &&str| {
        let path = folder.join(mark);
        let file = fs::symlink_metadata(&path).ok()?;
        let is_own = file.is_file() && file.uid() == user;
        // Files of this name are common.
        let is_mark = is_own && (!path.ends_with("metadata") || is_metadata(&path));
        file.modified().ok().filter(|_| is_mark)
    };
    marks.iter().filter_map(modified).max()
}

/// Whether a file begins as the metadata of a trace.
fn is_metadata(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = tracewing_files::open_regular(path).and_then(|file| file.take(64).read_to_end(&mut begin));
    let is_other = |error: Error| match error {
        Error::Metadata { fault, .. } => matches!(*fault, MetadataFault::NeitherVersion),
        _ => false,
    };
    read.is_ok() && !metadata::parse(&begin).is_err_and(is_other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    const METADATA: &str = "/* CTF 1.8 */";

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
            fs::write(&mark, METADATA).unwrap();
            let file = File::options().append(true).open(mark).unwrap();
            file.set_modified(begin + Duration::from_secs(60 * minutes as u64)).unwrap();
        }
        fs::create_dir(place.path().join("no-recording")).unwrap();
        std::os::unix::fs::symlink("old", place.path().join("link")).unwrap();
        assert_eq!(newest(place.path()).unwrap(), Path::new("other"));
        fs::remove_dir_all(place.path().join("other")).unwrap();
        assert_eq!(newest(place.path()).unwrap(), Path::new("flight"));
    }

    #[test]
    fn other_files_called_metadata_make_no_recording() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("package");
        fs::create_dir(&folder).unwrap();
        for (begin, is_one) in [
            ("", false),
            ("Name: package\n", false),
            ("/* CTF 1.8 */ trace {", true),
            ("\x1e{\"type\": \"preamble\"", true),
        ] {
            fs::write(folder.join("metadata"), begin).unwrap();
            assert_eq!(newest(place.path()).is_ok(), is_one, "{begin:?}");
            assert_eq!(around(&folder).is_some(), is_one, "{begin:?}");
        }
        for packet in [0x75d1_1d57_u32.to_le_bytes(), 0x75d1_1d57_u32.to_be_bytes()] {
            fs::write(folder.join("metadata"), packet).unwrap();
            assert_eq!(newest(place.path()).unwrap(), Path::new("package"));
        }
    }

    #[test]
    fn within_a_recording_it_is_the_whole() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        for mark in
            ["t/tracewing.json", "flight/snapshot-1/tracewing.json", "lttng/kernel/metadata", "one/metadata"]
        {
            fs::create_dir_all(at(mark).parent().unwrap()).unwrap();
            fs::write(at(mark), METADATA).unwrap();
        }
        for folder in ["t/kernel/index", "t/archives/20261127T230000Z-1/user/index", "flight/snapshot-1/user"]
        {
            fs::create_dir_all(at(folder)).unwrap();
        }
        File::create(at("t/kernel/metadata")).unwrap();
        for (from, whole) in [
            ("t", "t"),
            ("t/kernel", "t"),
            ("t/kernel/index", "t"),
            ("t/archives/20261127T230000Z-1/user/index", "t"),
            ("flight", "flight"),
            ("flight/snapshot-1/user", "flight"),
            ("lttng", "lttng"),
            ("one", "one"),
        ] {
            assert_eq!(around(&at(from)), Some(at(whole)), "{from}");
        }
        assert_eq!(around(place.path()), None);
    }
}
