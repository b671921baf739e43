//! Reads `tracewing.json`, in which a recording says how it was made, whether it is complete, and when it
//! ended.

use crate::open::recording::{Recording, Trace};
use crate::stream::cursor::{Lost, LostKind};
use crate::stream::losses::Losses;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tracewing_files::Tree;
use tracewing_units::Timestamp;
use tracewing_vocabulary::renamed;

/// The description file next to the traces.
pub(crate) const NAME: &str = "tracewing.json";

/// The `state` of one that is being made.
pub(crate) const RECORDING: &str = "recording";

/// The `state` of one whose recorder was killed, as [`parsed`] has it.
pub(crate) const KILLED: &str = "killed";

/// The `state` of a recording that ended before its time.
pub(crate) const CUT_SHORT: &str = "cut_short";

/// The `state` of a recording that has everything that it was to record.
const COMPLETE: &str = "complete";

/// Key that marks a description copied from the recording that the traces were converted from.
pub(crate) const COPIED: &str = "copied";

/// What those lacked, a line each.
pub(crate) const MISSING: &str = "missing";

/// Names of the traces whose folders were gone.
pub(crate) const GONE: &str = "gone";

/// More events than any recording has: larger values are treated as unknown.
const MOST_EVENTS: u64 = 1 << 48;

/// The reason of a loss of all that a thread without a place in its program's buffers emits.
pub(crate) const NOT_PROTECTED: &str = "thread not protected";

/// More than a recording ever has to say.
const MAX_SIZE: u64 = 64 << 20;

/// The bytes of the description in `folder`. `None` unless it is a regular file of reasonable size: it may
/// come from an untrusted source, and neither a pipe nor an endless file may block the reader of a trace.
pub(crate) fn read(folder: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    Tree::open(folder).ok()?.file(Path::new(NAME)).ok()?.take(MAX_SIZE + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_SIZE).then_some(bytes)
}

/// The description in `folder` for a trace that was converted from that recording: it is marked as such,
/// since it lists other files, and contains what the recording lacked. An invalid one stays as it is.
pub(crate) fn for_copy(folder: &Path, missing: &[String], gone: Vec<String>) -> Option<Vec<u8>> {
    let bytes = read(folder)?;
    let Ok(mut described @ Value::Object(_)) = serde_json::from_slice(&bytes) else { return Some(bytes) };
    rename(&mut described);
    described[COPIED] = true.into();
    described[MISSING] = missing.into();
    if !gone.is_empty() {
        described[GONE] = gone.into();
    }
    serde_json::to_vec_pretty(&described).ok()
}

/// The description of the recording in `folder`. Its `state` is `killed` if the recorder ended without
/// writing a final one: a running recorder holds a lock on the folder.
pub(crate) fn parsed(folder: &Path) -> Option<Value> {
    let mut described: Value = serde_json::from_slice(&read(folder)?).ok()?;
    rename(&mut described);
    if described["state"] == RECORDING && File::open(folder).is_ok_and(|it| it.try_lock_shared().is_ok()) {
        described["state"] = KILLED.into();
    }
    Some(described)
}

/// What the description says of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Listed {
    pub(crate) events: u64,
    /// Those of them that repeat the state.
    pub(crate) state: u64,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    /// Whether it lost more than that: a program has filled its counters with nonsense.
    pub(crate) is_lost_unknown: bool,
    /// Sub-buffers that were overwritten before they were read.
    pub(crate) overwritten: u64,
}

impl Listed {
    /// What it has lost in addition to the events that are counted.
    pub(crate) fn more(&self) -> Losses {
        let mut more = Losses::default();
        more.note(&Lost { kind: LostKind::Packets, count: Some(self.overwritten), range: None });
        if self.is_lost_unknown { more.and(Losses::of_events(None)) } else { more }
    }
}

/// The streams of a trace by their files.
pub(crate) fn streams(described: &Value, trace: &str) -> BTreeMap<String, Listed> {
    let stream = |stream: &Value| {
        let number = |pointer: &str| stream.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let listed = Listed {
            events: number("/events").saturating_add(number("/state_events")),
            state: number("/state_events"),
            bytes: number("/bytes"),
            lost: number("/lost_events"),
            is_lost_unknown: stream["is_lost_unknown"] == true,
            overwritten: number("/overwritten/sub_buffers"),
        };
        let name = stream["name"].as_str()?;
        (!name.is_empty() && !name.contains('/')).then(|| (name.to_owned(), listed))
    };
    described[format!("{trace}_streams")].as_array().into_iter().flatten().filter_map(stream).collect()
}

/// A number of events, unless it is absurd.
pub(crate) fn known(events: u64) -> Option<u64> {
    Some(events).filter(|events| *events < MOST_EVENTS)
}

/// Gives members that an earlier version wrote their present names.
fn rename(described: &mut Value) {
    let in_object = |object: &mut Value, of: &str| {
        let Value::Object(object) = object else { return };
        for (earlier, present) in renamed::description_keys(of) {
            if let Some(value) = object.remove(earlier) {
                object.insert(present.to_owned(), value);
            }
        }
    };
    in_object(described, "");
    for (name, member) in described.as_object_mut().into_iter().flatten() {
        match member {
            Value::Array(all) => all.iter_mut().for_each(|one| in_object(one, name)),
            one => in_object(one, name),
        }
    }
}

/// Whether the recording in `folder` is tracewing's own, and complete.
pub(crate) fn is_over(folder: &Path) -> bool {
    parsed(folder).is_some_and(|described| described["state"].as_str().is_some_and(|it| it != RECORDING))
}

impl Recording {
    /// When it ended: until then nothing is missing after its last event. `None` if it is not stated, or the
    /// recording was cut short.
    pub fn end(&self) -> Option<Timestamp> {
        match self.is_extract() {
            true => self.extract_end(),
            false => described(self).iter().map(end).reduce(|one, other| Some(one?.max(other?)))?,
        }
    }
}

/// What recordings of tracewing say of themselves: the `tracewing.json` files in the folders that were given
/// and in those around the traces.
pub fn described(recording: &Recording) -> Vec<serde_json::Value> {
    let around = recording.traces().iter().flat_map(Trace::folders).filter_map(|folder| folder.parent());
    let mut folders: Vec<&Path> = recording.inputs().iter().map(AsRef::as_ref).chain(around).collect();
    let mut seen = Vec::new();
    folders.retain(|folder| match std::fs::canonicalize(folder) {
        Ok(real) if !seen.contains(&real) => {
            seen.push(real);
            true
        }
        _ => false,
    });
    folders.iter().filter_map(|folder| parsed(folder)).collect()
}

/// When the recording ended that is described so.
fn end(described: &Value) -> Option<Timestamp> {
    let cycles =
        described.pointer("/snapshot/taken_cycles").or_else(|| described.pointer("/clock/stopped_cycles"))?;
    (described["state"] == COMPLETE).then(|| real_time(described, cycles))?
}

/// Real time of a stamp of the clock of the recording that is described so.
pub fn real_time(described: &Value, cycles: &Value) -> Option<Timestamp> {
    let number = |pointer| described.pointer(pointer).and_then(Value::as_i64).map(i128::from);
    let frequency = number("/clock/frequency_hz").filter(|frequency| *frequency > 0)?;
    let since = i128::from(cycles.as_u64()?) - number("/clock/begin/cycles")?;
    let ns = number("/clock/begin/realtime_ns")? + since * 1_000_000_000 / frequency;
    i64::try_from(ns).ok().map(Timestamp::from_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_a_file_of_a_sensible_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert_eq!(read(folder.path()), None);
        fs::create_dir(&path).unwrap();
        assert_eq!(read(folder.path()), None);
        fs::remove_dir(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(read(folder.path()), None);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "{}").unwrap();
        assert_eq!(read(folder.path()).as_deref(), Some(&b"{}"[..]));
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(folder.path()), None);
    }
}
