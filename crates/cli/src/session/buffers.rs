//! Where the recorders of a session keep the buffers of programs as files (`--buffers-in DIR`): each in a
//! folder of its own below DIR, since what a killed one has left is needed to recover the events in it.
//! Nothing is deleted here.

use super::definition::Definition;
use crate::output::{print_warning, shown};
use std::fs::read_dir;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use tracewing_consumer::survival::SUFFIX;

const OPTION: &str = "buffers-in";

/// The options of the recorder that writes to `place` in the folder of a start, with a folder for its buffers
/// that no earlier recorder has had.
pub fn placed(definition: &Definition, options: &Table, start: &Path, place: &str) -> Table {
    let mut options = options.clone();
    if let Some(Value::String(folder)) = options.get_mut(OPTION) {
        let start = start.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{}.{start}.{place}", definition.name);
        let more = (2_u32..).map(|number| format!("{name}~{number}"));
        let base = PathBuf::from(&*folder);
        let mut paths = std::iter::once(name.clone()).chain(more).map(|name| base.join(name));
        // One that was killed before it began has left no trace whose number would be taken.
        let free = paths.find(|path| !definition.folder.join(path).exists());
        if let Some(free) = free {
            *folder = free.to_string_lossy().into_owned();
        }
    }
    options
}

/// The folders with buffers that earlier recorders of a channel or trigger have left, the oldest first.
pub fn left(definition: &Definition, part: &str, options: &Table) -> Vec<PathBuf> {
    let Some(folder) = options.get(OPTION).and_then(Value::as_str) else { return Vec::new() };
    let entries = read_dir(definition.folder.join(folder)).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let is_of_part = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let place =
            name.strip_prefix(&definition.name).and_then(|rest| rest.strip_prefix('.')?.split_once('.'));
        place
            .and_then(|(_, place)| place.strip_prefix(part))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
    };
    let mut left: Vec<PathBuf> = paths.filter(is_of_part).filter(|path| has_buffers(path)).collect();
    // By the time of the start, and there by number.
    left.sort_by_cached_key(|path| (start_of(path), path.as_os_str().len(), path.clone()));
    left
}

/// Says where it is, and how it is read.
pub fn report(called: &str, left: &[PathBuf]) {
    let Some(last) = left.last() else { return };
    let last = shown(&last.to_string_lossy()).into_owned();
    match left.len() {
        1 => print_warning(&format!(
            "{called}: what an earlier recorder has not written is kept: `tracewing recover {last} -o DIR` reads it; \
             then {last} can be deleted"
        )),
        count => print_warning(&format!(
            "{called}: what {count} earlier recorders have not written is kept, that of the last one in {last}: \
             `tracewing recover {last} -o DIR` reads it; each such folder can be deleted then"
        )),
    }
}

fn start_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    Some(name.rsplit_once('.')?.0.to_owned())
}

fn has_buffers(path: &Path) -> bool {
    let mut names = read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.any(|name| name.to_string_lossy().ends_with(SUFFIX))
}
