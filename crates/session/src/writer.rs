//! Whether a recorder writes to a folder, for the commands of its user. The lock of the folder does not say
//! so for sure: another user that may read the folder can hold it, too.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::geteuid;
use tracewing_files::Dir;
use tracewing_units::Pid;

use crate::credentials::users;

/// Whether the folder is locked, and a process of this user was started to record into it.
pub fn is_written(output: &Path) -> bool {
    let (Some(parent), Some(name)) = (output.parent(), output.file_name()) else { return false };
    let is_locked =
        Dir::parent(parent).is_ok_and(|parent| parent.below(name).is_ok_and(|folder| folder.is_locked()));
    is_locked && has_recorder(output)
}

fn has_recorder(output: &Path) -> bool {
    let user = geteuid().as_raw();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid);
    pids.any(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        records_into(&line, output.as_os_str()) && users(pid) == Some([user; 3])
    })
}

/// Whether this is the command line of a session's recorder that writes to `output`.
fn records_into(line: &[u8], output: &OsStr) -> bool {
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    words.get(1) == Some(&b"record".as_slice())
        && words.windows(2).any(|two| two == [b"-o".as_slice(), output.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_folder_is_written_to_only_by_a_recorder() {
        let place = tempfile::tempdir().unwrap();
        let output = place.path().join("main");
        let (folder, _) = Dir::create(&output).unwrap();
        folder.lock();
        assert!(Dir::parent(place.path()).unwrap().below("main").unwrap().is_locked());
        assert!(!is_written(&output), "this process holds the lock, and is no recorder");
        let line = |words: &[&str]| words.join("\0").into_bytes();
        let recorder = line(&["/usr/bin/tracewing", "record", "--session", "a/b", "-o", "/x/main", ""]);
        assert!(records_into(&recorder, OsStr::new("/x/main")));
        assert!(!records_into(&recorder, OsStr::new("/x/other")));
        assert!(!records_into(&line(&["tracewing", "stats", "-o", "/x/main"]), OsStr::new("/x/main")));
    }
}
