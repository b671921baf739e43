//! The room on the disk that the channels of a session share.
//!
//! Each channel has a recorder of its own, and all write below one folder. Each looks how much all of them
//! have written there. Beyond the limit, the recorder with the oldest archive removes that one; the others
//! wait for it, though not for long, since it may have been killed. No recorder removes another one's
//! archives, and none asks another one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tracewing_files::Dir;

use crate::archive_names::{FOLDER, key};

/// Least time between two looks, and how many times as long as a look itself it is.
const LOOK: Duration = Duration::from_millis(10);
const PART: u32 = 20;
/// Time that another recorder has to remove its oldest archive.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same at the end of the recording, for all together.
const ENDING: Duration = Duration::from_secs(1);

/// What a recorder knows of the others.
pub(crate) struct Shared {
    /// Bytes that all may have.
    most: u64,
    /// The folder that has one for each channel.
    folder: PathBuf,
    /// The name of this recorder's folder in it.
    own: OsString,
    next_look: Option<Instant>,
    /// Bytes of the others at the last look.
    bytes: u64,
    /// The oldest archive of each of the others that can remove one.
    oldest: BTreeMap<OsString, String>,
    /// Since when the same one is waited for.
    awaited: Option<(OsString, String, Instant)>,
    /// Those that were waited for in vain.
    left: BTreeMap<OsString, String>,
    /// Until when others are waited for at the end of the recording.
    end: Option<Instant>,
}

impl Shared {
    /// Nothing was looked at yet.
    pub(crate) fn new(most: u64, output: PathBuf) -> Self {
        let own = output.file_name().map(OsStr::to_owned).unwrap_or_default();
        let folder = output.parent().map(ToOwned::to_owned).unwrap_or_default();
        Self {
            most,
            folder,
            own,
            next_look: None,
            bytes: 0,
            oldest: BTreeMap::new(),
            awaited: None,
            left: BTreeMap::new(),
            end: None,
        }
    }

    /// Whether this recorder, with so many bytes of its own, is to remove its oldest archive.
    pub(crate) fn is_due(&mut self, own: u64, oldest: &str, now: Instant) -> bool {
        let is_fresh = self.next_look.is_none_or(|time| now >= time);
        if is_fresh {
            self.look();
            self.next_look = Some(now + LOOK.max(now.elapsed() * PART));
        }
        if !self.is_too_much(own) {
            self.awaited = None;
            return false;
        }
        let Some((name, theirs)) = self.earlier(oldest) else { return true };
        match &self.awaited {
            Some((of, which, since)) if *of == name && *which == theirs => {
                // What an older look has shown may be gone.
                if is_fresh && now.saturating_duration_since(*since) >= PATIENCE {
                    self.left.insert(name, theirs);
                }
            }
            _ => self.awaited = Some((name, theirs, now)),
        }
        false
    }

    /// The recorder with the oldest archive of all, and that archive, if it is older than this recorder's.
    fn earlier(&self, oldest: &str) -> Option<(OsString, String)> {
        let own = (key(oldest), &self.own);
        let earlier = self
            .oldest
            .iter()
            .filter(|(name, theirs)| self.left.get(*name) != Some(theirs) && (key(theirs), *name) < own);
        let (name, theirs) = earlier.min_by_key(|(name, theirs)| (key(theirs), *name))?;
        Some((name.clone(), theirs.clone()))
    }

    /// As [`Shared::is_due`] at the end of the recording: waits for the others, which may be ending, too.
    pub(crate) fn is_due_at_end(&mut self, own: u64, oldest: &str) -> bool {
        let until = *self.end.get_or_insert_with(|| Instant::now() + ENDING);
        loop {
            self.look();
            if !self.is_too_much(own) {
                return false;
            }
            if self.earlier(oldest).is_none() || Instant::now() >= until {
                return true;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn is_too_much(&self, own: u64) -> bool {
        self.bytes.saturating_add(own) > self.most
    }

    fn look(&mut self) {
        self.bytes = 0;
        self.oldest.clear();
        let Some(parent) = self.folder.parent().and_then(|parent| Dir::parent(parent).ok()) else { return };
        let Some(session) = self.folder.file_name().and_then(|name| parent.below(name).ok()) else { return };
        for name in session.entries().unwrap_or_default().into_iter().filter(|name| *name != self.own) {
            let Ok(folder) = session.below(&name) else { continue };
            self.bytes = self.bytes.saturating_add(folder.size());
            let Ok(archives) = folder.below(FOLDER) else { continue };
            let names = archives.entries().unwrap_or_default().into_iter();
            let names = names.filter_map(|name| name.into_string().ok());
            let (gone, mut names): (Vec<_>, Vec<_>) = names.partition(|name| name.starts_with('.'));
            // These are being removed.
            let gone = gone.iter().filter_map(|name| Some(archives.below(name).ok()?.size()));
            self.bytes = self.bytes.saturating_sub(gone.sum());
            names.sort_by_key(|name| key(name));
            // The last one is being written.
            names.pop();
            if let Some(oldest) = names.into_iter().next() {
                self.oldest.insert(name, oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session's folder in which the channel `other` has archives, of 1000 bytes each.
    fn session(archives: &[&str]) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("tracewing-shared-{}-{}", std::process::id(), archives.len()));
        for archive in archives {
            let path = folder.join("other").join(FOLDER).join(archive);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("stream"), [0; 1000]).unwrap();
        }
        std::fs::create_dir_all(folder.join("own")).unwrap();
        folder
    }

    #[test]
    fn the_recorder_with_the_oldest_archive_removes_it() {
        let folder = session(&["20260101T000000Z-9", "20260101T000000Z-10", "20260101T000009Z-11"]);
        let now = Instant::now();
        let shared = || Shared::new(4000, folder.join("own"));
        assert!(!shared().is_due(1000, "20250101T000000Z-1", now), "there is room");
        assert!(shared().is_due(1001, "20250101T000000Z-1", now), "its own is the oldest");
        let mut one = shared();
        assert!(!one.is_due(1001, "20260101T000001Z-1", now), "the other one's is older");
        assert!(!one.is_due(1001, "20260101T000000Z-10", now), "9 comes before 10");
        assert_eq!(one.oldest.values().collect::<Vec<_>>(), ["20260101T000000Z-9"]);
        assert!(!one.is_due(1001, "20260101T000001Z-1", now + PATIENCE));
        assert!(one.is_due(1001, "20260101T000001Z-1", now + PATIENCE), "the other one does nothing");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
