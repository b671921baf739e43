//! What the snapshots of a flight recorder may have of the room that the channels of a session share.
//!
//! Channels come and go while a session is started, so each flight recorder looks at the session's folder:
//! which of the recorders there live (they hold locks on their folders), and of what kind they are. What
//! has ended keeps what it has written. Of the rest, the snapshots of all flight recorders have a half, or
//! all if no other channel lives, and each recorder has an equal part of that. The archives of other channels
//! make room for what the snapshots have ([`crate::shared`]).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

use tracewing_consumer::description::{DESCRIPTION, IS_TRIGGER};
use tracewing_consumer::folder::USER;
use tracewing_files::{Dir, Tree};

use crate::archive_names::FOLDER;

/// Bytes of a description in which its first members are.
const BEGIN: u64 = 4096;

/// The session's folder, and what is known of its recorders.
pub(crate) struct Share {
    /// Bytes that all channels may have.
    most: u64,
    folder: PathBuf,
    /// The name of this recorder's folder.
    own: OsString,
    /// By their folders, those that are no flight recorders.
    known: BTreeMap<OsString, Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flight,
    /// Writes a trace.
    Channel,
    /// Waits for events.
    Trigger,
    /// Writes a trace that is not described yet.
    Beginning,
}

impl Share {
    pub(crate) fn new(most: u64, output: &Path) -> Self {
        let own = output.file_name().map(OsStr::to_owned).unwrap_or_default();
        let folder = output.parent().map(ToOwned::to_owned).unwrap_or_default();
        Self { most, folder, own, known: BTreeMap::new() }
    }

    /// Bytes that this recorder's snapshots may have at present; `None` if the folder cannot be read.
    pub(crate) fn bytes(&mut self) -> Option<u64> {
        let parent = Dir::parent(self.folder.parent()?).ok()?;
        let session = parent.below(self.folder.file_name()?).ok()?;
        let (mut taken, mut flights, mut has_channel) = (0_u64, 1, false);
        for name in session.entries().ok()? {
            if name == self.own {
                continue;
            }
            let living = session.below(&name).ok().filter(Dir::is_locked);
            match living.map(|folder| self.kind(&name, &folder)) {
                Some(Kind::Flight) => flights += 1,
                Some(Kind::Channel) => has_channel = true,
                Some(Kind::Trigger | Kind::Beginning) | None => {
                    taken = taken.saturating_add(session.size_of(&name));
                }
            }
        }
        let rest = self.most.saturating_sub(taken);
        Some(if has_channel { rest / 2 } else { rest } / flights)
    }

    fn kind(&mut self, name: &OsString, folder: &Dir) -> Kind {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        if ![USER, FOLDER, DESCRIPTION].iter().any(|part| folder.has(part)) {
            return Kind::Flight;
        }
        let mut begin = Vec::new();
        let read = Tree::open(folder.path()).and_then(|folder| folder.file(Path::new(DESCRIPTION)));
        if !read.is_ok_and(|file| file.take(BEGIN).read_to_end(&mut begin).is_ok()) {
            return Kind::Beginning;
        }
        // What others have named has no line of its own there.
        let is_trigger = String::from_utf8_lossy(&begin).lines().any(|line| line.trim() == IS_TRIGGER);
        let kind = if is_trigger { Kind::Trigger } else { Kind::Channel };
        self.known.insert(name.clone(), kind);
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MOST: u64 = 10_000;

    /// A recorder's folder, which lives as long as what is given.
    fn recorder(session: &Path, name: &str, description: Option<&str>) -> Dir {
        let (dir, _) = Dir::create(&session.join(name)).unwrap();
        if let Some(text) = description {
            fs::write(session.join(name).join(DESCRIPTION), text).unwrap();
        }
        dir.lock();
        dir
    }

    fn write(session: &Path, file: &str, bytes: usize) {
        fs::create_dir_all(session.join(file).parent().unwrap()).unwrap();
        fs::write(session.join(file), vec![0; bytes]).unwrap();
    }

    #[test]
    fn the_room_is_divided_among_the_recorders_that_live() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path();
        let _own = recorder(session, "own", None);
        let mut share = Share::new(MOST, &session.join("own"));
        let mut bytes = || share.bytes().unwrap();
        write(session, "own/snapshot-1/stream", 9000);
        write(session, "own.log", 100);
        assert_eq!(bytes(), MOST - 100, "there is no other");

        let channel = recorder(session, "channel", Some(""));
        assert_eq!(bytes(), (MOST - 100) / 2, "archives have a half");
        write(session, "channel/archives/x", 4000);
        let flight = recorder(session, "flight", None);
        assert_eq!(bytes(), (MOST - 100) / 4, "two flight recorders");
        write(session, "flight/snapshot-1/stream", 300);

        let trigger = recorder(session, "hit", Some(&format!("{{\n  {IS_TRIGGER}\n  \"command\"")));
        let of_trigger = fs::metadata(session.join("hit").join(DESCRIPTION)).unwrap().len();
        assert_eq!(bytes(), (MOST - 100 - of_trigger) / 4, "what has fired");

        drop(channel);
        assert_eq!(bytes(), (MOST - 100 - of_trigger - 4000) / 2, "what has ended keeps what it has");
        drop(flight);
        assert_eq!(bytes(), MOST - 100 - of_trigger - 4300);
        drop(trigger);
        assert_eq!(bytes(), MOST - 100 - of_trigger - 4300);
        write(session, "ended/archives/x", 20_000);
        assert_eq!(bytes(), 0, "there is no more room");
    }

    #[test]
    fn a_recorder_that_begins_is_no_flight_recorder() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path();
        let _own = recorder(session, "own", None);
        let mut share = Share::new(MOST, &session.join("own"));
        let begins = recorder(session, "begins", None);
        fs::create_dir(session.join("begins").join(USER)).unwrap();
        assert_eq!(share.bytes(), Some(MOST));
        // It is described now; what it records is called like a member of a trigger.
        let text = format!("{{\n  \"command\": [\n    \"{}\"", IS_TRIGGER.replace('"', "\\\""));
        fs::write(session.join("begins").join(DESCRIPTION), text).unwrap();
        assert_eq!(share.bytes(), Some(MOST / 2));
        drop(begins);
        assert!(share.bytes().unwrap() < MOST);
    }
}
