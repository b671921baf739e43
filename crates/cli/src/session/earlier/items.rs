//! What a recorder that has ended has left: archives, snapshots, and the rest of its folder. Each is removed
//! only if it still is as it was found then.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind::{InvalidInput, NotFound, PermissionDenied};
use std::io::{self, Read};
use std::path::Path;
use tracewing_files::{Dir, LOCK_FILE, Seal, Tree};

const ARCHIVES: &str = "archives";
const DESCRIPTION: &str = "tracewing.json";
/// What the folder of a trace has, and each of its folders besides streams: the last ones are left by a
/// recorder that was killed.
const FOLDERS: [&str; 3] = ["user", "kernel", "profile"];
const OF_TRACE: [&str; 3] = [DESCRIPTION, ".tracewing.json.new", LOCK_FILE];
const OF_FOLDER: [&str; 3] = [INDEX, "metadata", ".metadata.new"];
const INDEX: &str = "index";
/// Streams that are of no CPU.
const STREAMS: [&str; 4] = ["context", "context_state", "threads", "jit"];
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
    /// It could not be removed now.
    #[serde(skip)]
    pub is_kept: bool,
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

/// Looks at the folder `place` in that of a start. Its recorder must have ended. `None` if there is none.
///
/// # Errors
/// The system cannot look at it now.
pub fn find(start: &Dir, place: &str) -> io::Result<Option<Found>> {
    let mut found = Found::default();
    let Some(folder) = start.folder(place)? else {
        let is_there = start.id_of(place)?.is_some();
        found.strange.extend(is_there.then(|| place.into()));
        return Ok(is_there.then_some(found));
    };
    if let Some(archives) = folder.folder(ARCHIVES)? {
        for name in archives.entries()? {
            found.add(&folder, Path::new(ARCHIVES).join(name).into_os_string())?;
        }
    }
    for name in folder.entries()?.into_iter().filter(|name| is_snapshot(name)) {
        found.add(&folder, name)?;
    }
    // The rest goes after everything else of its recorder.
    let last = found.items.iter().map(|item| item.written).max();
    match item(start, place, "", is_separate)? {
        Some(rest) => found.items.push(Item { written: rest.written.max(last.unwrap_or(i64::MIN)), ..rest }),
        None => found.strange.push(place.into()),
    }
    Ok(Some(found))
}

impl Found {
    fn add(&mut self, folder: &Dir, place: OsString) -> io::Result<()> {
        let item = match place.to_str() {
            Some(text) => match parent_of(folder, text)? {
                Some((parent, name)) => item(&parent, &name, text, |_| false)?,
                None => None,
            },
            None => None,
        };
        match item {
            Some(item) => self.items.push(item),
            None => self.strange.push(place),
        }
        Ok(())
    }
}

fn is_snapshot(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.trim_start_matches('.').starts_with("snapshot-"))
}

/// Whether an entry of a recorder's folder is no part of the rest.
fn is_separate(name: &OsStr) -> bool {
    name == ARCHIVES || is_snapshot(name)
}

/// Whether a recorder writes something of this path below the folder of a trace.
fn is_of_trace(path: &Path) -> bool {
    let names: Option<Vec<&str>> = path.iter().map(OsStr::to_str).collect();
    match names.as_deref() {
        Some([name]) => OF_TRACE.contains(name) || FOLDERS.contains(name),
        Some([folder, name]) => FOLDERS.contains(folder) && (OF_FOLDER.contains(name) || is_stream(name)),
        Some([folder, INDEX, name]) => {
            FOLDERS.contains(folder) && name.strip_suffix(".idx").is_some_and(is_stream)
        }
        _ => false,
    }
}

/// Whether a stream can have this name: `uid0_1`, `uid0-2_1`, `pid7_0`, `channel_0`, `cpu_0`.
fn is_stream(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_label = |label: &str| {
        let (label, number) = label.split_once('-').unwrap_or((label, "1"));
        let user = label.strip_prefix("uid").or(label.strip_prefix("pid"));
        is_number(number) && (user.is_some_and(is_number) || matches!(label, "channel" | "cpu"))
    };
    let of_cpu = name.rsplit_once('_').is_some_and(|(label, cpu)| is_number(cpu) && is_label(label));
    of_cpu || STREAMS.contains(&name)
}

/// The folder in which a place of a recorder's folder is, and its name there.
fn parent_of(folder: &Dir, place: &str) -> io::Result<Option<(Dir, String)>> {
    Ok(match place.split_once('/') {
        Some((ARCHIVES, name)) => folder.folder(ARCHIVES)?.map(|parent| (parent, name.to_owned())),
        Some(_) => None,
        None => Some((folder.clone(), place.to_owned())),
    })
}

/// The item in a folder of this name, if it has what a trace has and nothing else, and if no file of a
/// complete one was written after its description, which is written last.
fn item(parent: &Dir, name: &str, place: &str, is_left_out: fn(&OsStr) -> bool) -> io::Result<Option<Item>> {
    let Some(folder) = parent.folder(name)? else { return Ok(None) };
    let Some(seal) = parent.seal(name, is_left_out, is_of_trace)? else { return Ok(None) };
    let description = described(&folder)?;
    let is_complete = description.as_ref().is_some_and(|of| of["state"] == "complete");
    let last = folder.seal(DESCRIPTION, |_| false, |_| false)?;
    if is_complete && last.is_none_or(|last| last.written < seal.written) {
        return Ok(None);
    }
    let kinds = ["user_streams", "kernel_streams", "profile_streams"];
    let events = description.filter(|of| of["state"] != "recording").map(|of| {
        let streams = kinds.iter().filter_map(|kind| of[*kind].as_array()).flatten();
        streams.filter_map(|stream| stream["events"].as_u64()).sum()
    });
    let Seal { inode, hash, bytes, written } = seal;
    Ok(Some(Item { place: place.to_owned(), inode, hash, bytes, written, events, is_kept: false }))
}

fn described(folder: &Dir) -> io::Result<Option<Value>> {
    let mut text = Vec::new();
    match Tree::of(folder)?.file(Path::new(DESCRIPTION)) {
        Ok(file) => drop(file.take(MOST_BYTES).read_to_end(&mut text)?),
        // The other two are no files, or links.
        Err(error) if matches!(error.kind(), NotFound | InvalidInput | PermissionDenied) => {}
        Err(error) => return Err(error),
    }
    Ok(serde_json::from_slice(&text).ok())
}

impl Item {
    /// Whether it is what is left when archives and snapshots are gone.
    pub fn is_rest(&self) -> bool {
        self.place.is_empty()
    }

    /// Whether what has a name is as it was found.
    fn is(&self, parent: &Dir, name: &str, is_left_out: fn(&OsStr) -> bool) -> io::Result<bool> {
        let seal = parent.seal(name, is_left_out, is_of_trace)?;
        Ok(seal.is_some_and(|seal| (seal.inode, seal.hash) == (self.inode, self.hash)))
    }

    /// Removes it from `place`, the folder of a recorder, in `start`.
    ///
    /// # Errors
    /// The system cannot look at it, or remove it, now. It stays, or a part of it does, hidden.
    pub fn remove(&self, start: &Dir, place: &str) -> io::Result<Removal> {
        let Some(folder) = start.folder(place)? else {
            // A rest that another command was removing.
            return if self.is_rest() { self.finish(start, &hidden(place)) } else { Ok(Removal::Gone) };
        };
        if !self.is_rest() {
            return match parent_of(&folder, &self.place)? {
                Some((parent, name)) => self.remove_from(&parent, &name, |_| false),
                None => Ok(Removal::Gone),
            };
        }
        let has_snapshots = folder.entries()?.iter().any(|name| is_snapshot(name));
        if has_snapshots || !self.is(start, place, is_separate)? || !folder.remove_empty(ARCHIVES) {
            return Ok(Removal::Changed);
        }
        self.remove_from(start, place, is_separate)
    }

    fn remove_from(&self, parent: &Dir, name: &str, is_left_out: fn(&OsStr) -> bool) -> io::Result<Removal> {
        if parent.id_of(name)?.is_none() {
            return self.finish(parent, &hidden(name));
        }
        if !self.is(parent, name, is_left_out)? {
            return Ok(Removal::Changed);
        }
        // Hidden, it is no trace any more; so readers find all of it, or nothing.
        let now = if name.starts_with('.') { name.to_owned() } else { hidden(name) };
        if now != name && parent.rename(name, OsStr::new(&now)).is_err() {
            return Ok(Removal::Changed);
        }
        // What has come between the look and the renaming.
        let is_same = self.is(parent, &now, |_| false);
        if !matches!(is_same, Ok(true)) {
            let _ = parent.rename(&now, OsStr::new(name));
            return is_same.map(|_| Removal::Changed);
        }
        parent.remove_all(&now).map(|()| Removal::Removed)
    }

    /// Removes what is left of it, if its removal was interrupted.
    fn finish(&self, parent: &Dir, hidden: &str) -> io::Result<Removal> {
        if parent.id_of(hidden)?.map(|(_, inode)| inode) != Some(self.inode) {
            return Ok(Removal::Gone);
        }
        parent.remove_all(hidden).map(|()| Removal::Removed)
    }
}

fn hidden(name: &str) -> String {
    format!(".{name}.removed")
}
