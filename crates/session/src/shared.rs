//! The room on the disk that the channels of a session share.
//!
//! Each channel has a recorder of its own, and all write below one folder. Each looks at what all of them
//! have there. If that is more than the limit, the oldest archives are to go, as many as it takes, and each
//! recorder removes those of them that are its own. The others' are left to them, though not for long, since
//! a recorder may have been killed. No recorder removes another one's archives, and none asks another one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use tracewing_files::Dir;

use crate::archive_names::{FOLDER, key};

/// Least time between two looks, how many times as long as a look itself it is, and most.
const LOOK: Duration = Duration::from_millis(10);
const PART: u32 = 20;
const LONGEST: Duration = Duration::from_millis(100);
/// Time that another recorder has to remove its oldest archive.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same at the end of the recording, for all together.
const ENDING: Duration = Duration::from_secs(1);
/// Archives of a recorder, the newest, that may still grow: it completes one while it writes the next.
const GROWING: usize = 2;

/// What a recorder knows of the others.
pub(crate) struct Shared {
    /// Bytes that all may have.
    most: u64,
    /// The folder that has one for each channel: open from the begin on, since it may be moved, and another
    /// one be put in its place; `None` if it could not be opened.
    session: Option<Dir>,
    /// The name of this recorder's folder in it, and its owner.
    own: OsString,
    owner: u32,
    next_look: Option<Instant>,
    /// What the last look has found.
    others: Others,
    /// Bytes of archives that grow no more, by their recorder's folder and their name.
    known: BTreeMap<OsString, BTreeMap<String, u64>>,
    /// Recorders that are to remove archives: the oldest one, and since when it is.
    awaited: BTreeMap<OsString, (Age, Instant)>,
    /// Until when others are waited for at the end of the recording.
    end: Option<Instant>,
}

/// What the others have.
#[derive(Default)]
struct Others {
    /// With what is not in archives, of this recorder, too.
    bytes: u64,
    /// The archives that they can remove, by their age, each with its recorder's folder and bytes.
    archives: BTreeMap<(Age, OsString), u64>,
}

/// An archive's date and number.
type Age = (String, u64);

impl Shared {
    /// For the recorder that writes to `output`. Nothing was looked at yet.
    pub(crate) fn new(most: u64, output: &Dir) -> Self {
        Self {
            most,
            session: output.above().ok(),
            own: output.path().file_name().map(OsStr::to_owned).unwrap_or_default(),
            owner: output.owner().unwrap_or_else(|_| geteuid().as_raw()),
            next_look: None,
            others: Others::default(),
            known: BTreeMap::new(),
            awaited: BTreeMap::new(),
            end: None,
        }
    }

    /// Whether this recorder, with so many bytes of its own, is to remove its oldest archive.
    pub(crate) fn is_due(&mut self, own: u64, oldest: &str, now: Instant) -> bool {
        if self.next_look.is_none_or(|time| now >= time) {
            self.look();
            self.next_look = Some(now + (now.elapsed() * PART).clamp(LOOK, LONGEST));
            self.wait_for_others(own, oldest, now);
        }
        // What an older look has shown may be gone, by as many bytes.
        self.is_next(own, oldest, now)
    }

    /// As [`Shared::is_due`] at the end of the recording: waits for the others, which may be ending, too.
    pub(crate) fn is_due_at_end(&mut self, own: u64, oldest: &str) -> bool {
        let until = *self.end.get_or_insert_with(|| Instant::now() + ENDING);
        loop {
            self.look();
            let now = Instant::now();
            if self.excess(own) == 0 {
                return false;
            }
            if self.is_next(own, oldest, now) || now >= until {
                return true;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Bytes that have to go.
    fn excess(&self, own: u64) -> u64 {
        self.others.bytes.saturating_add(own).saturating_sub(self.most)
    }

    /// Whether more has to go than what the others remove that is older than this recorder's oldest archive.
    fn is_next(&self, own: u64, oldest: &str, now: Instant) -> bool {
        let age = (key(oldest), self.own.clone());
        let older = self.others.archives.range(..age).filter(|((_, of), _)| !self.is_in_vain(of, now));
        older.map(|(_, bytes)| bytes).sum::<u64>() < self.excess(own)
    }

    /// Whether a recorder was to remove an archive, and has not.
    fn is_in_vain(&self, of: &OsString, now: Instant) -> bool {
        let since = self.awaited.get(of).map(|(_, since)| *since);
        since.is_some_and(|since| now.saturating_duration_since(since) >= PATIENCE)
    }

    /// Notes which of the others are to remove archives now.
    fn wait_for_others(&mut self, own: u64, oldest: &str, now: Instant) {
        let mut left = self.excess(own);
        let mut waits = BTreeMap::new();
        let age = (key(oldest), self.own.clone());
        for ((age, of), bytes) in self.others.archives.range(..age) {
            if left == 0 {
                break;
            }
            let before = self.awaited.get(of).filter(|(known, _)| known == age);
            let is_first = !waits.contains_key(of);
            if is_first {
                waits.insert(of.clone(), before.cloned().unwrap_or_else(|| (age.clone(), now)));
            }
            if !self.is_in_vain(of, now) {
                left = left.saturating_sub(*bytes);
            }
        }
        self.awaited = waits;
    }

    /// If something cannot be read now, what is known stays.
    fn look(&mut self) {
        if let Ok(others) = self.find() {
            self.others = others;
        }
    }

    fn find(&mut self) -> io::Result<Others> {
        let session = self.session.clone().ok_or(io::ErrorKind::NotFound)?;
        let mut others = Others::default();
        let names = session.entries()?;
        self.known.retain(|name, _| names.contains(name));
        // What others have put there takes nothing from this user's recorders.
        let owner = self.owner;
        for name in names.into_iter().filter(|name| session.has_of(name, owner)) {
            let Some(folder) = session.folder(&name)? else {
                others.add(session.size_of(name)?);
                continue;
            };
            for entry in folder.entries()? {
                match (entry == FOLDER, name == self.own) {
                    (false, _) => others.add(folder.size_of(entry)?),
                    (true, false) => self.look_at_archives(&mut others, &name, &folder)?,
                    // This recorder knows its own.
                    (true, true) => {}
                }
            }
        }
        Ok(others)
    }

    fn look_at_archives(&mut self, others: &mut Others, of: &OsString, folder: &Dir) -> io::Result<()> {
        let Some(archives) = folder.folder(FOLDER)? else { return Ok(()) };
        let names = archives.entries()?.into_iter();
        // Hidden ones are being removed.
        let names = names.filter_map(|name| name.into_string().ok()).filter(|name| !name.starts_with('.'));
        let mut names: Vec<(Age, String)> = names.map(|name| (key(&name), name)).collect();
        names.sort_unstable();
        let complete = names.len().saturating_sub(GROWING);
        let known = self.known.entry(of.clone()).or_default();
        known.retain(|name, _| names.binary_search(&(key(name), name.clone())).is_ok());
        // The last one is being written.
        let last = names.len().saturating_sub(1);
        for (place, (age, name)) in names.into_iter().enumerate() {
            let bytes = match known.get(&name) {
                Some(bytes) => *bytes,
                None => archives.size_of(&name)?,
            };
            if place < complete {
                known.insert(name, bytes);
            }
            others.add(bytes);
            if place < last {
                others.archives.insert((age, of.clone()), bytes);
            }
        }
        Ok(())
    }
}

impl Others {
    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A session's folder in which the channel `other` has archives, of 1000 bytes each.
    fn session(archives: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for archive in archives {
            let path = folder.path().join("other").join(FOLDER).join(archive);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("stream"), [0; 1000]).unwrap();
        }
        std::fs::create_dir_all(folder.path().join("own")).unwrap();
        folder
    }

    /// The channel `own`, in a session that may have 4000 bytes.
    fn of_own(folder: &tempfile::TempDir) -> Shared {
        Shared::new(4000, &Dir::parent(&folder.path().join("own")).unwrap())
    }

    fn remove(folder: &tempfile::TempDir, archive: &str) {
        std::fs::remove_dir_all(folder.path().join("other").join(FOLDER).join(archive)).unwrap();
    }

    const THREE: [&str; 3] = ["20260101T000000Z-9", "20260101T000000Z-10", "20260101T000009Z-11"];

    #[test]
    fn the_recorder_with_the_oldest_archive_removes_it() {
        let folder = session(&THREE);
        let now = Instant::now();
        let shared = || of_own(&folder);
        assert!(!shared().is_due(1000, "20250101T000000Z-1", now), "there is room");
        assert!(shared().is_due(1001, "20250101T000000Z-1", now), "its own is the oldest");
        let mut one = shared();
        assert!(!one.is_due(1001, "20260101T000001Z-1", now), "the other one's is older");
        assert!(!one.is_due(1001, "20260101T000000Z-10", now), "9 comes before 10");
        assert!(!one.is_due(1001, "20260101T000001Z-1", now + PATIENCE - LOOK));
        assert!(one.is_due(1001, "20260101T000001Z-1", now + PATIENCE), "the other one does nothing");
        remove(&folder, THREE[0]);
        assert!(!one.is_due(2001, "20260101T000001Z-1", now + PATIENCE + SECOND), "now it does");
    }

    #[test]
    fn one_look_suffices_for_as_many_archives_as_are_to_go() {
        let folder = session(&THREE);
        let now = Instant::now();
        let mut one = of_own(&folder);
        // Of 4500 bytes too many, the other one has 2000 in older archives that it can remove.
        let mut own = 5500;
        let mut removed = 0;
        while one.is_due(own, &format!("20260101T000001Z-{removed}"), now) {
            own -= 1000;
            removed += 1;
        }
        assert_eq!(removed, 3);
        // It has removed these, and has written meanwhile.
        remove(&folder, THREE[0]);
        remove(&folder, THREE[1]);
        assert!(!one.is_due(3000, "20260101T000001Z-4", now + SECOND));
        assert!(one.is_due(3001, "20260101T000001Z-4", now + SECOND));
    }

    #[test]
    fn the_room_is_bounded_after_the_session_was_moved() {
        let folder = session(&THREE);
        let now = Instant::now();
        let mut one = of_own(&folder);
        let moved = folder.path().with_extension("moved");
        std::fs::rename(folder.path(), &moved).unwrap();
        assert!(one.is_due(1001, "20250101T000000Z-1", now));
        std::fs::remove_dir_all(&moved).unwrap();
        assert!(!one.is_due(1001, "20250101T000000Z-1", now + SECOND), "nothing is left");
    }

    #[test]
    fn a_look_that_fails_changes_nothing() {
        let folder = session(&THREE);
        let now = Instant::now();
        let mut one = of_own(&folder);
        assert!(one.is_due(1001, "20250101T000000Z-1", now));
        one.session = None;
        assert!(one.is_due(1001, "20250101T000000Z-1", now + SECOND));
        assert!(!one.is_due(1000, "20250101T000000Z-1", now + SECOND));
    }
}
