//! Reads `tracewing.json`, in which a recording says how it was made and whether it is complete.

use serde_json::Value;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The file beside the traces.
pub(crate) const NAME: &str = "tracewing.json";

/// The `state` of one that is being made.
pub(crate) const RECORDING: &str = "recording";

/// The `state` of one whose recorder was killed, as [`parsed`] has it.
pub(crate) const KILLED: &str = "killed";

/// The `state` of one that ended before its time.
pub(crate) const CUT_SHORT: &str = "cut_short";

/// More than a recording ever has to say.
const MAX_SIZE: u64 = 64 << 20;

/// The bytes of the description in `folder`. `None` if there is none that is a regular file of a sensible size: it may come
/// from anybody, and neither a pipe nor an endless file is to stop the reader of a trace.
pub(crate) fn read(folder: &Path) -> Option<Vec<u8>> {
    let path = folder.join(NAME);
    // Looked at first, since opening a pipe waits for its writer.
    if !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(&path).ok()?.take(MAX_SIZE + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_SIZE).then_some(bytes)
}

/// What the recording in `folder` says of itself. Its `state` is `killed` where the recorder did not come to write another:
/// it holds a lock on the folder as long as it works.
pub(crate) fn parsed(folder: &Path) -> Option<Value> {
    let mut described: Value = serde_json::from_slice(&read(folder)?).ok()?;
    if described["state"] == RECORDING && File::open(folder).is_ok_and(|it| it.try_lock_shared().is_ok()) {
        described["state"] = KILLED.into();
    }
    Some(described)
}

/// Whether the recording in `folder` is one of tracewing's, and nobody adds to it any more.
pub(crate) fn is_over(folder: &Path) -> bool {
    parsed(folder).is_some_and(|described| described["state"].as_str().is_some_and(|it| it != RECORDING))
}

#[cfg(test)]
mod tests {
    use super::*;

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
