//! What the earlier starts of a session with a size have left, and its recorders that have ended: it has at
//! most a half of the size, of which the oldest goes first, and a new start has the rest.
//!
//! A file in the folder for sessions lists the starts and, once a recorder has ended, each thing that it has
//! left, with its seal ([`tracewing_files::Seal`]). Nothing else is removed, and of this nothing that is not
//! as it was found. Only a command that has locked that folder finds or removes something, never a recorder,
//! which reads what programs write. What cannot be looked at now, for example since its disk is not mounted,
//! is not forgotten.

use super::definition::Definition;
use super::ended::log_name;
use super::store::Locked;
use crate::output::{count_of, print_warning};
use crate::record::{parse_size, parse_total_size};
use anyhow::Result;
use items::Removal;
use list::Record;
pub use list::Removed;
use start::{Part, Place, Start, log};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use tracewing_files::{Dir, Exclusive};

mod items;
mod list;
mod start;

/// The least size that a start has.
const LEAST: u64 = 512 << 10;
/// Places of what stays that are named in a message.
const MOST_NAMED: usize = 3;

/// What earlier starts have left, while no other command changes it.
pub struct Earlier<'a> {
    locked: &'a Locked<'a>,
    name: &'a str,
    /// What all may have, and the least that a new start needs.
    total: u64,
    least: u64,
    record: Record,
    strange: Vec<PathBuf>,
    /// What cannot be looked at now, and why; its bytes are unknown.
    unknown: BTreeSet<(PathBuf, String)>,
    /// What cannot be removed now, and why.
    kept: BTreeSet<(PathBuf, String)>,
}

/// Whether a recorder writes to `place` in the folder of a start.
fn is_written(start: &Dir, place: &str) -> io::Result<bool> {
    start.folder(place)?.map_or(Ok(false), Exclusive::is_held)
}

/// What was removed of the channels' earlier recorders since the session was started; `None` if the list had
/// mistakes, so that this is unknown.
pub fn removed(text: Option<Vec<u8>>) -> Option<BTreeMap<String, Removed>> {
    let record = text.map_or(Ok(Record::default()), |text| Record::read(&text)).ok()?;
    (!record.has_removed_more).then_some(record.removed)
}

/// Reads the list of a session's starts. Of one with mistakes, which is going to be replaced, a copy is kept.
fn read(locked: &Locked<'_>, name: &str) -> Result<Record> {
    let Some(text) = locked.starts(name)? else { return Ok(Record::default()) };
    Record::read(&text).or_else(|partial| {
        let copy = locked.keep_starts(name, &text)?;
        print_warning(&format!(
            "{name}: the list of what its earlier starts have left has mistakes; {} of it can be read. What else it \
             lists is no part of --total-size any more, and never removed: the list is kept in {}",
            count_of(partial.starts.len(), "start"),
            copy.display()
        ));
        Ok(partial)
    })
}

impl<'a> Earlier<'a> {
    /// `None` if the session has no size.
    ///
    /// # Errors
    /// The file with its starts cannot be read now; or it has mistakes, and cannot be copied.
    pub fn of(locked: &'a Locked<'a>, definition: &'a Definition) -> Result<Option<Self>> {
        let size = definition.total_size.as_ref();
        let Some(total) = size.and_then(|size| parse_total_size(size).ok()) else { return Ok(None) };
        let sizes = definition.channels.values().filter_map(|options| options.get("rotate-size")?.as_str());
        let largest = sizes.filter_map(|size| Some(parse_size(size).ok()?.0 as u64)).max().unwrap_or(0);
        let least = LEAST.max(largest.saturating_mul(2)).max(total / 2).min(total);
        let record = read(locked, &definition.name)?;
        Ok(Some(Self {
            locked,
            name: &definition.name,
            total,
            least,
            record,
            strange: Vec::new(),
            unknown: BTreeSet::new(),
            kept: BTreeSet::new(),
        }))
    }

    /// Finds what recorders have left that have ended since; those that write to `running` have not.
    pub fn find(&mut self, running: &[&Path]) {
        let (strange, unknown) = (&mut self.strange, &mut self.unknown);
        self.record.starts.retain_mut(|start| {
            let folder = match start.open() {
                Ok(Place::Same(folder)) => folder,
                Ok(Place::Nothing) => return false,
                Ok(Place::Another) => {
                    strange.push(start.folder.clone());
                    return false;
                }
                Err(error) => {
                    // What was found in it before has the bytes that it had.
                    if start.parts.values().any(|part| part.items.is_none()) {
                        unknown.insert((start.folder.clone(), error.to_string()));
                    }
                    return true;
                }
            };
            start.parts.retain(|place, part| {
                let path = start.folder.join(place);
                if part.items.is_some() || running.contains(&path.as_path()) {
                    return true;
                }
                match is_written(&folder, place).and_then(|is_written| match is_written {
                    true => Err(io::Error::other("a recorder that has not answered writes there")),
                    false => part.find(&folder, place),
                }) {
                    Ok(Some(found)) => {
                        let path_of =
                            |of: OsString| if of == place.as_str() { path.clone() } else { path.join(of) };
                        strange.extend(found.into_iter().map(path_of));
                        true
                    }
                    Ok(None) => false,
                    Err(error) => {
                        unknown.insert((path, error.to_string()));
                        true
                    }
                }
            });
            // What was never started has no parts, either.
            !start.parts.is_empty()
        });
    }

    /// Makes room for a new start below this folder. Gives its size.
    pub fn begin(&mut self, folder: &Dir) -> Result<u64> {
        self.record.removed.clear();
        self.record.has_removed_more = false;
        self.make_room(|_| true, self.total - self.least);
        // What could not be removed has no part in the least.
        let rest = self.total.saturating_sub(self.bytes(|_| true)).max(self.least);
        let size = if self.unknown.is_empty() { rest } else { self.least };
        let (device, inode) = folder.id()?;
        let (path, device, parts) = (folder.path().to_owned(), Some(device), BTreeMap::new());
        self.record.starts.push(Start { folder: path, inode, device, size, parts });
        Ok(size)
    }

    /// Makes room for another recorder of a start whose others run. Gives the size that all have.
    pub fn again(&mut self, folder: &Dir) -> u64 {
        let inode = folder.inode().ok();
        let is_it = |start: &Start| Some(start.inode) == inode && start.folder == folder.path();
        let Some(size) = self.record.starts.iter().find(|start| is_it(start)).map(|start| start.size) else {
            return self.total;
        };
        let size = size.min(self.total);
        self.make_room(|start| !is_it(start), self.total - size);
        self.make_room(is_it, size / 2);
        size
    }

    /// Notes that a channel's recorder is going to write to `place` in the folder of a start.
    pub fn add(&mut self, folder: &Dir, place: &str, channel: &str) {
        // The last: an older one can have had the same name, on a disk that is not mounted now.
        if let Some(start) = self.record.starts.iter_mut().rfind(|start| start.folder == folder.path()) {
            let part = Part { channel: channel.to_owned(), items: None, log: None };
            start.parts.insert(place.to_owned(), part);
        }
    }

    fn bytes(&self, is_meant: impl Fn(&Start) -> bool) -> u64 {
        let parts =
            self.record.starts.iter().filter(|start| is_meant(start)).flat_map(|start| start.parts.values());
        parts.flat_map(|part| part.items.iter().flatten()).map(|item| item.bytes).sum()
    }

    /// Removes the oldest archives, snapshots and rests of these starts until all have at most so many bytes.
    fn make_room(&mut self, is_meant: impl Fn(&Start) -> bool, most: u64) {
        // The last change of the file, before anything is removed.
        self.save();
        while self.bytes(&is_meant) > most {
            // What is kept is not tried again.
            let Some((at, place, number)) = self.oldest(&is_meant) else { break };
            self.remove(at, &place, number);
        }
        self.record.starts.retain(|start| {
            let is_over = start.parts.is_empty();
            is_over.then(|| start.remove_empty());
            !is_over
        });
    }

    fn oldest(&self, is_meant: impl Fn(&Start) -> bool) -> Option<(usize, String, usize)> {
        let starts = self.record.starts.iter().enumerate().filter(|(_, start)| is_meant(start));
        let parts =
            starts.flat_map(|(at, start)| start.parts.iter().map(move |(place, part)| (at, place, part)));
        let items = parts.flat_map(|(at, place, part)| {
            let items = part.items.iter().flatten().enumerate().filter(|(_, item)| !item.is_kept);
            items.map(move |(number, item)| ((item.written, item.is_rest()), (at, place, number)))
        });
        let ((_, _), (at, place, number)) = items.min()?;
        Some((at, place.clone(), number))
    }

    fn remove(&mut self, at: usize, place: &str, number: usize) {
        let start = &mut self.record.starts[at];
        let opened = start.open();
        let Some(part) = start.parts.get_mut(place) else { return };
        let items = part.items.get_or_insert_default();
        let removal = match &opened {
            Ok(Place::Same(folder)) => items[number].remove(folder, place),
            Ok(Place::Another) => Ok(Removal::Changed),
            Ok(Place::Nothing) => Ok(Removal::Gone),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        let removal = match removal {
            Ok(removal) => removal,
            Err(error) => {
                items[number].is_kept = true;
                let at = start.folder.join(place).join(&items[number].place);
                self.kept.insert((at, error.to_string()));
                return;
            }
        };
        let item = items.remove(number);
        match removal {
            Removal::Removed => {
                let removed = self.record.removed.entry(part.channel.clone()).or_default();
                removed.count += 1;
                removed.events += item.events.unwrap_or(0);
                removed.has_more |= item.events.is_none();
                removed.bytes += item.bytes;
            }
            Removal::Gone => {}
            Removal::Changed => self.strange.push(start.folder.join(place).join(&item.place)),
        }
        if items.is_empty() {
            if let Ok(Place::Same(folder)) = opened
                && !folder.has(place)
                && log(&folder, place).is_ok_and(|log| log.map(|log| (log.inode, log.hash)) == part.log)
            {
                // It stays if it cannot be removed.
                let _ = folder.remove(&log_name(place));
            }
            start.parts.remove(place);
        }
    }

    /// Writes the file, and says what stays that is not known to be the session's, and what could not be
    /// looked at.
    pub fn finish(self) {
        self.save();
        let named = |paths: &mut dyn Iterator<Item = String>| {
            let more = if paths.size_hint().0 > MOST_NAMED { ", …" } else { "" };
            format!("{}{more}", paths.take(MOST_NAMED).collect::<Vec<_>>().join(", "))
        };
        if !self.strange.is_empty() {
            print_warning(&format!(
                "{}: not part of --total-size, and never removed, since something in it may not be what a recorder has \
                 written: {} ({})",
                self.name,
                named(&mut self.strange.iter().map(|path| path.display().to_string())),
                count_of(self.strange.len(), "folder")
            ));
        }
        let with_reasons = |of: &BTreeSet<(PathBuf, String)>| {
            let named = named(&mut of.iter().map(|(path, why)| format!("{}: {why}", path.display())));
            format!("{named} ({})", count_of(of.len(), "folder"))
        };
        if !self.unknown.is_empty() {
            print_warning(&format!(
                "{}: part of --total-size with a size that is unknown at present, and not removed: {}",
                self.name,
                with_reasons(&self.unknown)
            ));
        }
        if !self.kept.is_empty() {
            print_warning(&format!(
                "{}: still part of --total-size, but cannot be removed at present: {}",
                self.name,
                with_reasons(&self.kept)
            ));
        }
    }

    fn save(&self) {
        let written = serde_json::to_string(&self.record).map_err(Into::into);
        if let Err(error) = written.and_then(|text| self.locked.set_starts(self.name, &text)) {
            print_warning(&format!("{}: {error:#}", self.name));
        }
    }
}
