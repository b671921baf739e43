//! Notes that the user keeps about a recording: each has a time, perhaps a track, and a text. They are in a
//! file of the user's data folder that other users cannot read; the recording itself stays as it is.

use crate::token::folder;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;
use tracewing_files::{Dir, Tree};
use tracewing_units::{Duration, Timestamp};

/// How long another viewer may take to change the notes.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
/// Time between two attempts to lock them.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
/// Most notes of a recording.
const MOST: usize = 1000;
/// Longest text of a note, and longest part of a track's name, in bytes.
const LONGEST: usize = 2000;
const PART: usize = 32;
/// Most bytes of the file: all notes, each character as an escape.
const BYTES: u64 = (MOST * (6 * LONGEST + 1000)) as u64;

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    /// Since the recording begins.
    pub(crate) time: Duration,
    /// What it is about; everything if it is missing.
    pub(crate) track: Option<Track>,
    pub(crate) text: String,
}

/// A track, as in `tracks`. Rows have other numbers in another index; these have not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Track {
    pub(crate) kind: String,
    pub(crate) number: String,
    /// The number of its process, of a thread or task.
    pub(crate) process: String,
}

/// The notes of a recording.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    name: String,
}

/// A recording whose notes are asked for.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// What distinguishes it from others at the same place: the same while it is made.
    pub(crate) key: String,
    /// The time from which the page counts. While the recording is made, an earlier event may come.
    pub(crate) begin: Timestamp,
}

/// What is in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// The time from which the notes count, in nanoseconds.
    begin: i64,
    notes: Vec<Note>,
}

impl Note {
    /// Why it is not kept.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let is_part =
            |part: &str| part.len() <= PART && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_track =
            |track: &Track| is_part(&track.kind) && is_part(&track.number) && is_part(&track.process);
        match self {
            Note { text, .. } if text.len() > LONGEST => Some("a note has at most 2000 bytes"),
            Note { text, .. } if text.trim().is_empty() => Some("a note has no text"),
            Note { track: Some(track), .. } if !is_track(track) => Some("there is no such track"),
            _ => None,
        }
    }
}

impl Notes {
    /// Those of a recording, whose place `name` identifies.
    pub(crate) fn of(name: &str) -> Self {
        Notes { name: name.to_owned() }
    }

    /// The name of the file.
    fn file(&self, about: &About) -> String {
        format!("{}-{}.notes", self.name, about.key)
    }

    /// All of them in the order of time; none if there is no such file. Or why they are not shown: the file
    /// cannot be read, or others could have written it.
    pub(crate) fn all(&self, about: &About) -> Result<Vec<Note>, String> {
        let folder = folder().map_err(|error| error.to_string())?;
        self.read(&folder, about).map_err(|error| self.unread(&folder, about, &error))
    }

    /// Changes them; gives all, or why they are not kept.
    pub(crate) fn change(
        &self,
        about: &About,
        change: impl FnOnce(&mut Vec<Note>),
    ) -> Result<Vec<Note>, String> {
        self.change_in(&folder().map_err(|error| error.to_string())?, about, change)
    }

    fn change_in(
        &self,
        folder: &Path,
        about: &About,
        change: impl FnOnce(&mut Vec<Note>),
    ) -> Result<Vec<Note>, String> {
        let unkept = |error| format!("cannot keep notes in {}: {error}", folder.display());
        // Other requests, and other viewers of the recording, change the same file: one after the other.
        let own = Dir::private(folder).map_err(unkept)?;
        let _locked = locked(&own).map_err(unkept)?;
        let unread = |error| format!("{}: they were not changed", self.unread(folder, about, &error));
        let mut notes = self.read(folder, about).map_err(unread)?;
        change(&mut notes);
        notes.sort_by(|one, other| (one.time, &one.text).cmp(&(other.time, &other.text)));
        notes.dedup();
        if notes.len() > MOST {
            return Err(format!("a recording has at most {MOST} notes"));
        }
        self.write(&own, about, &notes).map_err(unkept)?;
        Ok(notes)
    }

    fn unread(&self, folder: &Path, about: &About, error: &io::Error) -> String {
        format!("cannot read notes in {}: {error}", folder.join(self.file(about)).display())
    }

    fn read(&self, folder: &Path, about: &About) -> io::Result<Vec<Note>> {
        let name = self.file(about);
        let file = match Tree::open(folder).and_then(|tree| tree.file(Path::new(&name))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let metadata = file.metadata()?;
        if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users may use the file"));
        }
        let mut text = String::new();
        file.take(BYTES).read_to_string(&mut text)?;
        let Stored { begin, notes } = serde_json::from_str(&text)?;
        let earlier = i128::from(begin) - i128::from(about.begin.as_ns());
        let moved = |note: Note| {
            let time = (i128::from(note.time.as_ns()) + earlier).max(0);
            Note { time: Duration::from_ns(u64::try_from(time).unwrap_or(u64::MAX)), ..note }
        };
        let notes = notes.into_iter().filter(|note| note.fault().is_none()).take(MOST);
        Ok(notes.map(moved).collect())
    }

    fn write(&self, own: &Dir, about: &About, notes: &[Note]) -> io::Result<()> {
        own.remove_abandoned()?;
        let file = self.file(about);
        let stored = Stored { begin: about.begin.as_ns(), notes: notes.to_vec() };
        let unfinished = own.create_private_file(&file)?;
        unfinished.file().write_all(serde_json::to_string(&stored)?.as_bytes())?;
        own.supersede(unfinished, &file)
    }
}

/// Locks the folder, also for other viewers, as long as the file is open. Some file systems have no locks.
fn locked(folder: &Dir) -> io::Result<File> {
    let file = File::from(folder.as_fd().try_clone_to_owned()?);
    let begin = Instant::now();
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        if begin.elapsed() >= PATIENCE {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "another viewer keeps the folder locked"));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn about(begin: i64) -> About {
        About { key: "5".to_owned(), begin: Timestamp::from_ns(begin) }
    }

    fn note(time: u64, text: &str) -> Note {
        Note { time: Duration::from_ns(time), track: None, text: text.to_owned() }
    }

    fn keep(notes: &Notes, folder: &Path, kept: &[Note]) {
        notes.write(&Dir::private(folder).unwrap(), &about(5), kept).unwrap();
    }

    #[test]
    fn they_are_kept_for_this_user_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        let notes = Notes::of("a");
        assert_eq!(notes.read(&folder, &about(5)).unwrap(), []);
        let kept = [note(7, "<b>\u{202e}\"'\n"), note(9, "two")];
        keep(&notes, &folder, &kept);
        assert_eq!(notes.read(&folder, &about(5)).unwrap(), kept);
        assert_eq!(Notes::of("b").read(&folder, &about(5)).unwrap(), []);
        let other = About { key: "6".to_owned(), ..about(5) };
        assert_eq!(notes.read(&folder, &other).unwrap(), [], "another recording at the same place");
        let file = folder.join("a-5.notes");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
        // Others could have written these.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(notes.read(&folder, &about(5)).is_err());
        let add = || notes.change_in(&folder, &about(5), |notes| notes.push(note(8, "more")));
        assert!(add().unwrap_err().ends_with("they were not changed"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(notes.read(&folder, &about(5)).unwrap(), kept);
        assert_eq!(add().unwrap().len(), 3);
    }

    #[test]
    fn they_stay_where_they_are_when_the_recording_turns_out_to_begin_earlier() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        let notes = Notes::of("a");
        keep(&notes, &folder, &[note(7, "seven")]);
        assert_eq!(notes.read(&folder, &about(2)).unwrap(), [note(10, "seven")]);
        let add =
            |begin, time| notes.change_in(&folder, &about(begin), |notes| notes.push(note(time, "more")));
        assert_eq!(add(2, 11).unwrap(), [note(10, "seven"), note(11, "more")]);
        assert_eq!(notes.read(&folder, &about(5)).unwrap(), [note(7, "seven"), note(8, "more")]);
        assert_eq!(notes.read(&folder, &about(-4)).unwrap(), [note(16, "seven"), note(17, "more")]);
    }

    #[test]
    fn what_changes_at_the_same_time_is_not_lost() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let folder = &folder;
                scope.spawn(move || {
                    // Each as if it were another process: it opens the folder by itself.
                    for time in 0..25 {
                        let own = note(time, &writer.to_string());
                        Notes::of("a").change_in(folder, &about(5), |notes| notes.push(own)).unwrap();
                    }
                });
            }
        });
        assert_eq!(Notes::of("a").read(&folder, &about(5)).unwrap().len(), 100);
    }

    #[test]
    fn a_file_that_cannot_be_read_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        let notes = Notes::of("a");
        keep(&notes, &folder, &[note(7, "seven")]);
        let file = folder.join("a-5.notes");
        let newer = r#"{"begin":5,"notes":[{"time":7,"track":null,"text":"seven","colour":"red"}]}"#;
        for text in ["", "[{", "{}", "[]", newer] {
            fs::write(&file, text).unwrap();
            let change = notes.change_in(&folder, &about(5), |notes| notes.push(note(8, "more")));
            let why = change.unwrap_err();
            assert!(why.starts_with("cannot read notes in ") && why.contains("a-5.notes"), "{why}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn what_is_no_note_is_left_out() {
        let place = tempfile::tempdir().unwrap();
        let notes = Notes::of("a");
        let long = "x".repeat(LONGEST + 1);
        let folder = place.path().join("data");
        keep(&notes, &folder, &[note(1, &long), note(2, " \n"), note(3, "three")]);
        assert_eq!(notes.read(&folder, &about(5)).unwrap(), [note(3, "three")]);
        let track =
            |kind: &str| Track { kind: kind.to_owned(), number: "7".to_owned(), process: String::new() };
        let of = |kind| Note { track: Some(track(kind)), ..note(1, "one") };
        assert_eq!(of("thread").fault(), None);
        assert!(of("<b>").fault().is_some() && of(&"x".repeat(PART + 1)).fault().is_some());
    }
}
