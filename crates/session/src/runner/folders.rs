//! Which folders a recorder of root may have programs run for: its own archives, and for triggers the
//! snapshots and archives of its session. The process that runs the programs is given this at its start,
//! since it has more rights than the recorder, which may name a folder by mistake.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::archive_names::{FOLDER, SNAPSHOT, is_name};

/// Below a session's folder: one for each start, and in that one for each channel.
const LEVELS: usize = 2;

/// The folders that programs may be given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folders {
    /// That of a recorder, if it has a program run for its archives, and how many levels below are its
    /// channels.
    places: Vec<(PathBuf, usize)>,
}

impl Folders {
    /// Those that programs of a recording are for which is written to `output`: for its archives, and for
    /// triggers.
    pub(crate) fn of(output: &Path, for_archives: bool, for_triggers: bool) -> Self {
        let output = std::path::absolute(output).unwrap_or_else(|_| output.to_owned());
        let session = output.ancestors().nth(LEVELS).filter(|_| for_triggers);
        let session = session.map(|at| (at.to_owned(), LEVELS));
        let own = for_archives.then_some((output, 0));
        Self { places: own.into_iter().chain(session).collect() }
    }

    /// Whether it is a folder that they are for, which is there, and to which no link leads on the way: a
    /// recorder can make links.
    pub(crate) fn is_there(&self, path: &Path) -> bool {
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|data| data.is_dir());
        self.below(path).is_some_and(|levels| path.ancestors().take(levels).all(is_folder))
    }

    /// How many names it has below the place where it is allowed; `None` if it has not the form of a folder
    /// that programs are for. The place itself may be one such as `../flights`.
    fn below(&self, path: &Path) -> Option<usize> {
        self.places.iter().find_map(|(place, levels)| {
            let names: Vec<&OsStr> = path.strip_prefix(place).ok()?.iter().collect();
            if names.contains(&OsStr::new("..")) {
                return None;
            }
            let is_right = match names.get(*levels..)? {
                [snapshot] => is_snapshot(snapshot),
                [folder, archive] => *folder == FOLDER && archive.to_str().is_some_and(is_name),
                _ => false,
            };
            is_right.then_some(names.len())
        })
    }
}

fn is_snapshot(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix(SNAPSHOT));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const ARCHIVE: &str = "archives/20260101T000000Z-1";

    #[test]
    fn programs_get_what_the_recording_makes() {
        for (archives, triggers, path, expected) in [
            (true, false, format!("/srv/web/start/main/{ARCHIVE}"), true),
            (true, false, "/srv/web/start/main/archives/other".to_owned(), false),
            (true, false, "/srv/web/start/main/archives".to_owned(), false),
            (true, false, format!("/srv/web/start/other/{ARCHIVE}"), false),
            (true, false, format!("/srv/web/start/main/x/{ARCHIVE}"), false),
            (true, false, "/etc".to_owned(), false),
            (false, true, "/srv/web/start/other/snapshot-12".to_owned(), true),
            (false, true, format!("/srv/web/earlier/other/{ARCHIVE}"), true),
            (false, true, "/srv/web/start/other/snapshot-".to_owned(), false),
            (false, true, "/srv/web/start/other/snapshot-x".to_owned(), false),
            (false, true, "/srv/web/start/snapshot-1".to_owned(), false),
            (false, true, "/srv/other/start/main/more/snapshot-1".to_owned(), false),
            (false, true, "/srv/web/start/../start/main/snapshot-1".to_owned(), false),
            (false, true, "/srv/web/../main/snapshot-1".to_owned(), false),
            (true, false, format!("/srv/web/start/main/../main/{ARCHIVE}"), false),
            (false, false, format!("/srv/web/start/main/{ARCHIVE}"), false),
        ] {
            // The place may have been given as one outside the current folder.
            for place in ["/srv", "/opt/../srv"] {
                let folders = Folders::of(&Path::new(place).join("web/start/main"), archives, triggers);
                let path = path.replacen("/srv", place, 1);
                assert_eq!(folders.below(Path::new(&path)).is_some(), expected, "{path}");
            }
        }
    }

    #[test]
    fn no_link_leads_to_what_programs_get() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path().join("start/main");
        let folders = Folders::of(&output, true, true);
        let (archive, snapshot) = (output.join(ARCHIVE), output.join("snapshot-1"));
        let is_there = |path: &Path| folders.is_there(path);
        assert!(!is_there(&archive) && !is_there(&snapshot), "they are not there");
        fs::create_dir_all(&archive).unwrap();
        fs::create_dir(&snapshot).unwrap();
        assert!(is_there(&archive) && is_there(&snapshot));
        fs::remove_dir(&snapshot).unwrap();
        std::os::unix::fs::symlink("/etc", &snapshot).unwrap();
        assert!(!is_there(&snapshot), "a link");
        fs::rename(output.join("archives"), place.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(place.path().join("moved"), output.join("archives")).unwrap();
        assert!(!is_there(&archive), "a link on the way");
    }
}
