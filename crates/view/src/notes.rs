//! Notes that the user keeps about a recording: each has a time, perhaps a track, and a text. They are in a
//! file of the user's data folder that other users cannot read; the recording itself stays as it is.

use crate::token::folder;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tracewing_files::{Dir, Tree};
use tracewing_units::{Duration, Timestamp};

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
    /// Only one request at a time changes them.
    changing: Mutex<()>,
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
        Notes { name: name.to_owned(), changing: Mutex::default() }
    }

    /// The name of the file. Another recording at the same place begins at another time.
    fn file(&self, begin: Timestamp) -> String {
        format!("{}-{}.notes", self.name, begin.as_ns())
    }

    /// All of them in the order of time; none if there is no such file. Or why they are not shown: the file
    /// cannot be read, or others could have written it.
    pub(crate) fn all(&self, begin: Timestamp) -> Result<Vec<Note>, String> {
        let folder = folder().map_err(|error| error.to_string())?;
        self.read(&folder, begin).map_err(|error| self.unread(&folder, begin, &error))
    }

    /// Changes them; gives all, or why they are not kept.
    pub(crate) fn change(
        &self,
        begin: Timestamp,
        change: impl FnOnce(&mut Vec<Note>),
    ) -> Result<Vec<Note>, String> {
        self.change_in(&folder().map_err(|error| error.to_string())?, begin, change)
    }

    fn change_in(
        &self,
        folder: &Path,
        begin: Timestamp,
        change: impl FnOnce(&mut Vec<Note>),
    ) -> Result<Vec<Note>, String> {
        let _only = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let unread = |error| format!("{}: they were not changed", self.unread(folder, begin, &error));
        let mut notes = self.read(folder, begin).map_err(unread)?;
        change(&mut notes);
        notes.sort_by(|one, other| (one.time, &one.text).cmp(&(other.time, &other.text)));
        notes.dedup();
        if notes.len() > MOST {
            return Err(format!("a recording has at most {MOST} notes"));
        }
        let written = self.write(folder, begin, &notes);
        written.map_err(|error| format!("cannot keep notes in {}: {error}", folder.display()))?;
        Ok(notes)
    }

    fn unread(&self, folder: &Path, begin: Timestamp, error: &io::Error) -> String {
        format!("cannot read notes in {}: {error}", folder.join(self.file(begin)).display())
    }

    fn read(&self, folder: &Path, begin: Timestamp) -> io::Result<Vec<Note>> {
        let name = self.file(begin);
        let file = match Tree::open(folder).and_then(|tree| tree.file(Path::new(&name))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let about = file.metadata()?;
        if about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o077 != 0 {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "other users may use the file"));
        }
        let mut text = String::new();
        file.take(BYTES).read_to_string(&mut text)?;
        let notes: Vec<Note> = serde_json::from_str(&text)?;
        Ok(notes.into_iter().filter(|note| note.fault().is_none()).take(MOST).collect())
    }

    fn write(&self, folder: &Path, begin: Timestamp, notes: &[Note]) -> io::Result<()> {
        let own = Dir::private(folder)?;
        own.remove_abandoned()?;
        let file = self.file(begin);
        let (temporary, mut out) = own.create_private_file(&file)?;
        out.write_all(serde_json::to_string(notes)?.as_bytes())?;
        own.supersede(&temporary, &file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const BEGIN: Timestamp = Timestamp::from_ns(5);

    fn note(time: u64, text: &str) -> Note {
        Note { time: Duration::from_ns(time), track: None, text: text.to_owned() }
    }

    #[test]
    fn they_are_kept_for_this_user_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        let notes = Notes::of("a");
        assert_eq!(notes.read(&folder, BEGIN).unwrap(), []);
        let kept = [note(7, "<b>\u{202e}\"'\n"), note(9, "two")];
        notes.write(&folder, BEGIN, &kept).unwrap();
        assert_eq!(notes.read(&folder, BEGIN).unwrap(), kept);
        assert_eq!(Notes::of("b").read(&folder, BEGIN).unwrap(), []);
        assert_eq!(notes.read(&folder, BEGIN.next()).unwrap(), [], "another recording at the same place");
        let file = folder.join("a-5.notes");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o600);
        // Others could have written these.
        fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(notes.read(&folder, BEGIN).is_err());
        let add = || notes.change_in(&folder, BEGIN, |notes| notes.push(note(8, "more")));
        assert!(add().unwrap_err().ends_with("they were not changed"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(notes.read(&folder, BEGIN).unwrap(), kept);
        assert_eq!(add().unwrap().len(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_read_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("data");
        let notes = Notes::of("a");
        notes.write(&folder, BEGIN, &[note(7, "seven")]).unwrap();
        let file = folder.join("a-5.notes");
        let newer = r#"[{"time":7,"track":null,"text":"seven","colour":"red"}]"#;
        for text in ["", "[{", "{}", newer] {
            fs::write(&file, text).unwrap();
            let why = notes.change_in(&folder, BEGIN, |notes| notes.push(note(8, "more"))).unwrap_err();
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
        notes.write(&folder, BEGIN, &[note(1, &long), note(2, " \n"), note(3, "three")]).unwrap();
        assert_eq!(notes.read(&folder, BEGIN).unwrap(), [note(3, "three")]);
        let track =
            |kind: &str| Track { kind: kind.to_owned(), number: "7".to_owned(), process: String::new() };
        let of = |kind| Note { track: Some(track(kind)), ..note(1, "one") };
        assert_eq!(of("thread").fault(), None);
        assert!(of("<b>").fault().is_some() && of(&"x".repeat(PART + 1)).fault().is_some());
    }
}
