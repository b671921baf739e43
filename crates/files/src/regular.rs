//! Opens regular files whose paths come from outside; anything else is not opened, not even briefly.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// Opens the regular file at `path` for reading. A device, a pipe or a socket at that path, even one put
/// there meanwhile, is not opened: opening alone can have an effect, or block.
///
/// # Errors
/// The file cannot be opened, or is not a regular file ([`io::ErrorKind::InvalidInput`]).
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Looked up, but not opened.
    let place = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&place)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&place)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::inotify;
    use std::io::Read;
    use std::mem::MaybeUninit;

    #[test]
    fn what_is_no_regular_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, file] = ["pipe", "file"].map(|name| folder.path().join(name));
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::fs::write(&file, "text").unwrap();
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let events = inotify::init(flags).unwrap();
        inotify::add_watch(&events, &pipe, inotify::WatchFlags::OPEN).unwrap();
        assert_eq!(open_regular(&pipe).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(open_regular(folder.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let mut buffer = [MaybeUninit::uninit(); 512];
        assert!(inotify::Reader::new(&events, &mut buffer).next().is_err(), "it was opened");
        let mut text = String::new();
        open_regular(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    }
}
