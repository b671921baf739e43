//! An earlier start of a session, and what its recorders have left.

use super::items::{self, Item};
use crate::session::ended::log_name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use tracewing_files::{Dir, Seal};

#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    pub folder: PathBuf,
    pub inode: u64,
    /// That of its folder; `None` in files of older versions.
    #[serde(default)]
    pub device: Option<u64>,
    /// Bytes that its recorders may have.
    pub size: u64,
    /// The folders of its recorders, by name.
    pub parts: BTreeMap<String, Part>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    pub channel: String,
    /// What it has left; `None` as long as its recorder may run.
    pub items: Option<Vec<Item>>,
    /// The inode and the hash of its log, which goes with the rest.
    pub log: Option<(u64, u64)>,
}

/// What is where the folder of a start was.
pub enum Place {
    Same(Dir),
    Another,
    Nothing,
}

impl Start {
    /// What is where its folder was.
    ///
    /// # Errors
    /// That cannot be said now: the disk fails, is not mounted, or this process has too many descriptors.
    pub fn open(&self) -> io::Result<Place> {
        let (Some(parent), Some(name)) = (self.folder.parent(), self.folder.file_name()) else {
            return Ok(Place::Nothing);
        };
        let parent = Dir::parent(parent)?;
        let found = parent.id_of(name)?;
        if found.is_some_and(|(_, inode)| inode == self.inode) {
            let folder = parent.below(name)?;
            return Ok(if folder.inode()? == self.inode { Place::Same(folder) } else { Place::Another });
        }
        if self.device.is_some_and(|device| parent.id().is_ok_and(|(now, _)| now != device)) {
            return Err(io::Error::new(ErrorKind::NotFound, "its file system is not mounted there"));
        }
        Ok(if found.is_some() { Place::Another } else { Place::Nothing })
    }

    /// Removes its folder if nothing is left in it.
    pub fn remove_empty(&self) {
        let parent = self.folder.parent().and_then(|parent| Dir::parent(parent).ok());
        if let (Some(parent), Ok(Place::Same(_)), Some(name)) = (parent, self.open(), self.folder.file_name())
        {
            parent.remove_empty(name);
        }
    }
}

impl Part {
    /// Notes what its recorder has left. Gives what is not known to be a recorder's; `None` if nothing is
    /// left.
    pub fn find(&mut self, folder: &Dir, place: &str) -> io::Result<Option<Vec<OsString>>> {
        let Some(found) = items::find(folder, place)? else { return Ok(None) };
        let (log, mut items) = (log(folder, place)?, found.items);
        // It goes with the rest.
        items
            .iter_mut()
            .filter(|item| item.is_rest())
            .for_each(|rest| rest.bytes += log.map_or(0, |log| log.bytes));
        (self.items, self.log) = (Some(items), log.map(|log| (log.inode, log.hash)));
        Ok(Some(found.strange))
    }
}

pub fn log(folder: &Dir, place: &str) -> io::Result<Option<Seal>> {
    folder.seal(log_name(place), |_| false, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_what_is_gone_for_sure_is_gone() {
        let place = tempfile::tempdir().unwrap();
        let (parent, moved) = (place.path().join("traces"), place.path().join("moved"));
        let folder = parent.join("start");
        fs::create_dir_all(&folder).unwrap();
        let (device, inode) = Dir::parent(&folder).unwrap().id().unwrap();
        let start = |device| Start { folder: folder.clone(), inode, device, size: 0, parts: BTreeMap::new() };
        let is = |device, expected: fn(io::Result<Place>) -> bool| expected(start(device).open());
        assert!(is(Some(device), |place| matches!(place, Ok(Place::Same(_)))));
        assert!(
            is(Some(device + 1), |place| matches!(place, Ok(Place::Same(_)))),
            "its disk has another number"
        );
        fs::rename(&parent, &moved).unwrap();
        assert!(is(Some(device), |place| place.is_err()), "the disk may be mounted later");
        fs::create_dir(&parent).unwrap();
        assert!(is(Some(device), |place| matches!(place, Ok(Place::Nothing))));
        assert!(is(None, |place| matches!(place, Ok(Place::Nothing))));
        assert!(is(Some(device + 1), |place| place.is_err()), "its disk is not mounted");
        fs::create_dir(&folder).unwrap();
        assert!(is(Some(device), |place| matches!(place, Ok(Place::Another))));
        fs::remove_dir(&folder).unwrap();
        fs::write(&folder, "").unwrap();
        assert!(is(Some(device), |place| matches!(place, Ok(Place::Another))));
    }
}
