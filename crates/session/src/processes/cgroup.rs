//! The processes of a control group, and of those below it (cgroups(7)).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use tracewing_units::Pid;

/// Where control groups are mounted. On a machine with both versions of them, systemd has version 2 in a
/// folder of its own, and in another one what it keeps its services in.
const MOUNT_POINTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];
/// The file that lists its processes.
const PROCESSES: &str = "cgroup.procs";

/// The folder of a control group: given as a path, or as `/proc/PID/cgroup` has it.
///
/// # Errors
/// No control group has this path.
pub(super) fn find(path: &Path) -> io::Result<PathBuf> {
    let below = MOUNT_POINTS.map(|point| Path::new(point).join(path.strip_prefix("/").unwrap_or(path)));
    for folder in path.is_absolute().then(|| path.to_owned()).into_iter().chain(below) {
        match fs::metadata(folder.join(PROCESSES)) {
            Ok(_) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Err(error),
            Err(_) => {}
        }
    }
    Err(Errno::NOENT.into())
}

/// The processes that are in control groups, given by their folders, or below.
pub(super) fn processes(folders: &[PathBuf]) -> Vec<Pid> {
    let mut pids = Vec::new();
    folders.iter().for_each(|folder| add(folder, &mut pids));
    pids.sort_unstable();
    pids.dedup();
    pids
}

fn add(folder: &Path, pids: &mut Vec<Pid>) {
    // A group that is gone has none.
    let text = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
    // Of a process in another PID namespace the number is 0.
    pids.extend(text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).map(Pid));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add(&entry.path(), pids);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_groups_below_count() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join(PROCESSES), "7\n0\n5\n").unwrap();
        fs::write(folder.path().join("below").join(PROCESSES), "6\n7\n").unwrap();
        assert_eq!(find(folder.path()).unwrap(), folder.path());
        let folders = [folder.path().to_owned(), folder.path().join("none")];
        assert_eq!(processes(&folders), [5, 6, 7].map(Pid));
        assert_eq!(find(&folders[1]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
