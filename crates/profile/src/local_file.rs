//! Opens a file that a program has executed, by its path, without waiting for a file system: that may be a
//! program's own (FUSE), which answers when it likes.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// How often a lookup is repeated that a rename has disturbed, or whose path has to be read from the disk.
const ATTEMPTS: usize = 16;

/// Opens a regular file to read it; `None` if it is on a file system of a program, or is not one that was in
/// use just now.
pub(crate) fn open(path: &Path) -> Option<File> {
    let place = look_up(path).ok()?;
    if is_of_program(place.as_fd())? {
        return None;
    }
    let is_file = place.metadata().is_ok_and(|about| about.is_file());
    is_file.then(|| File::open(format!("/proc/self/fd/{}", place.as_raw_fd())).ok())?
}

fn look_up(path: &Path) -> Result<File, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let how = ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..ATTEMPTS {
        match openat2(CWD, path, flags, Mode::empty(), how) {
            Err(Errno::AGAIN) => {}
            // Before Linux 5.12, and in containers that do not know the call.
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => {
                return Ok(openat(CWD, path, flags, Mode::empty())?.into());
            }
            found => return Ok(found?.into()),
        }
    }
    Err(Errno::AGAIN)
}

/// Whether a file is on a file system that a program serves; `None` if that is unknown.
fn is_of_program(file: BorrowedFd<'_>) -> Option<bool> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let mount = about.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    let kind = mounts.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        (fields.next()? == mount.as_bytes()).then_some(())?;
        fields.find(|field| *field == b"-")?;
        fields.next()
    });
    kind.map(|kind| kind.starts_with(b"fuse"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn regular_files_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        fs::write(&path, "code").unwrap();
        let mut text = String::new();
        open(&path).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "code");
        assert!(open(place.path()).is_none() && open(&place.path().join("other")).is_none());
    }

    /// Opening one waits for a writer.
    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(open(&path).is_none());
    }
}
