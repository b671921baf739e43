//! What a recorder that has ended has left: archives, snapshots, and the rest of its folder. Each is removed
//! only if it still is as it was found then.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::Path;
use tracewing_files::{Dir, Seal, Tree};

const ARCHIVES: &str = "archives";
const DESCRIPTION: &str = "tracewing.json";
/// What the folder of a trace has; the last one is left by a recorder that was killed.
const OF_TRACE: [&str; 5] = [DESCRIPTION, "user", "kernel", "profile", ".tracewing.json.new"];
/// Largest description that is read, bytes.
const MOST_BYTES: u64 = 64 << 20;

/// A thing that can be removed as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// `archives/NAME`, or `snapshot-NUMBER`; empty for the rest of the recorder's folder.
    pub place: String,
    inode: u64,
    hash: u64,
    pub bytes: u64,
    /// When the last of it was written, in ns since 1970.
    pub written: i64,
    /// Events in it; `None` if its recorder was killed before it counted them.
    pub events: Option<u64>,
}

/// What has become of an item that was to be removed.
#[derive(Debug, PartialEq, Eq)]
pub enum Removal {
    Removed,
    /// It was not there.
    Gone,
    /// It is not as it was found, and stays.
    Changed,
}

/// What was found in the folder of a recorder.
#[derive(Debug, Default)]
pub struct Found {
    pub items: Vec<Item>,
    /// What is not a recorder's, or may have been changed since.
    pub strange: Vec<OsString>,
}

/// Looks at the folder `place` in that of a start. Its recorder must have ended.
pub fn find(start: &Dir, place: &str) -> Option<Found> {
    let folder = start.folder(place).ok()??;
    let mut found = Found::default();
    let archives = folder.folder(ARCHIVES).ok()?;
    for name in archives.iter().flat_map(Dir::entries).flatten() {
        found.add(&folder, Path::new(ARCHIVES).join(name).into_os_string());
    }
    for name in folder.entries().ok()?.into_iter().filter(|name| is_snapshot(name)) {
        found.add(&folder, name);
    }
    // The rest goes after everything else of its recorder.
    let last = found.items.iter().map(|item| item.written).max();
    match item(start, place, "", is_separate) {
        Some(rest) => found.items.push(Item { written: rest.written.max(last.unwrap_or(i64::MIN)), ..rest }),
        None => found.strange.push(place.into()),
    }
    Some(found)
}

impl Found {
    fn add(&mut self, folder: &Dir, place: OsString) {
        let item = place.to_str().and_then(|text| {
            let (parent, name) = parent_of(folder, text)?;
            item(&parent, &name, text, |_| false)
        });
        match item {
            Some(item) => self.items.push(item),
            None => self.strange.push(place),
        }
    }
}

fn is_snapshot(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.trim_start_matches('.').starts_with("snapshot-"))
}

/// Whether an entry of a recorder's folder is no part of the rest.
fn is_separate(name: &OsStr) -> bool {
    name == ARCHIVES || is_snapshot(name)
}

/// The folder in which a place of a recorder's folder is, and its name there.
fn parent_of(folder: &Dir, place: &str) -> Option<(Dir, String)> {
    match place.split_once('/') {
        Some((ARCHIVES, name)) => Some((folder.folder(ARCHIVES).ok()??, name.to_owned())),
        Some(_) => None,
        None => Some((folder.clone(), place.to_owned())),
    }
}

/// The item in a folder of this name, if it has what a trace has and nothing else, and if no file of a
/// complete one was written after its description, which is written last.
fn item(parent: &Dir, name: &str, place: &str, is_left_out: fn(&OsStr) -> bool) -> Option<Item> {
    let folder = parent.folder(name).ok()??;
    let mut entries = folder.entries().ok()?.into_iter().filter(|entry| !is_left_out(entry));
    entries.all(|entry| OF_TRACE.iter().any(|known| entry == *known)).then_some(())?;
    let Seal { inode, hash, bytes, written } = parent.seal(name, is_left_out)?;
    let description = described(&folder);
    let is_complete = description.as_ref().is_some_and(|of| of["state"] == "complete");
    if is_complete && folder.seal(DESCRIPTION, |_| false)?.written < written {
        return None;
    }
    let kinds = ["user_streams", "kernel_streams", "profile_streams"];
    let events = description.filter(|of| of["state"] != "recording").map(|of| {
        let streams = kinds.iter().filter_map(|kind| of[*kind].as_array()).flatten();
        streams.filter_map(|stream| stream["events"].as_u64()).sum()
    });
    Some(Item { place: place.to_owned(), inode, hash, bytes, written, events })
}

fn described(folder: &Dir) -> Option<Value> {
    let mut text = Vec::new();
    let file = Tree::of(folder).ok()?.file(Path::new(DESCRIPTION)).ok()?;
    file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl Item {
    /// Whether it is what is left when archives and snapshots are gone.
    pub fn is_rest(&self) -> bool {
        self.place.is_empty()
    }

    fn is(&self, seal: Option<Seal>) -> bool {
        seal.is_some_and(|seal| (seal.inode, seal.hash) == (self.inode, self.hash))
    }

    /// Removes it from `place`, the folder of a recorder, in `start`.
    pub fn remove(&self, start: &Dir, place: &str) -> Removal {
        let Ok(Some(folder)) = start.folder(place) else {
            // A rest that another command was removing.
            return if self.is_rest() { self.finish(start, &hidden(place)) } else { Removal::Gone };
        };
        if folder.is_locked() {
            return Removal::Changed;
        }
        if !self.is_rest() {
            let parent = parent_of(&folder, &self.place);
            return parent
                .map_or(Removal::Gone, |(parent, name)| self.remove_from(&parent, &name, |_| false));
        }
        let has_snapshots = folder.entries().is_ok_and(|all| all.iter().any(|name| is_snapshot(name)));
        if has_snapshots || !self.is(start.seal(place, is_separate)) || !folder.remove_empty(ARCHIVES) {
            return Removal::Changed;
        }
        self.remove_from(start, place, is_separate)
    }

    fn remove_from(&self, parent: &Dir, name: &str, is_left_out: fn(&OsStr) -> bool) -> Removal {
        if !parent.has(name) {
            return self.finish(parent, &hidden(name));
        }
        if !self.is(parent.seal(name, is_left_out)) {
            return Removal::Changed;
        }
        // Hidden, it is no trace any more; so readers find all of it, or nothing.
        let now = if name.starts_with('.') { name.to_owned() } else { hidden(name) };
        if now != name && parent.rename(name, OsStr::new(&now)).is_err() {
            return Removal::Changed;
        }
        // What has come between the look and the renaming.
        if !self.is(parent.seal(&now, |_| false)) {
            let _ = parent.rename(&now, OsStr::new(name));
            return Removal::Changed;
        }
        if parent.remove_all(&now).is_ok() { Removal::Removed } else { Removal::Changed }
    }

    /// Removes what is left of it, if its removal was interrupted.
    fn finish(&self, parent: &Dir, hidden: &str) -> Removal {
        let inode = parent.folder(hidden).ok().flatten().and_then(|folder| folder.inode().ok());
        if inode != Some(self.inode) {
            return Removal::Gone;
        }
        if parent.remove_all(hidden).is_ok() { Removal::Removed } else { Removal::Changed }
    }
}

fn hidden(name: &str) -> String {
    format!(".{name}.removed")
}
