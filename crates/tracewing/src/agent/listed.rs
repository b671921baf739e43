//! The recorders that want all programs of their user, or of all users: two files list them while there are
//! such ([`JOIN_FILE`]), so that programs which start meanwhile join. Without them a start costs two look-ups
//! that fail, and one if the program is root's.
//!
//! A filter for system calls may end the process for others than these: `openat`, `fstat`, `read` and
//! `close`, which the dynamic linker has just used to load the program, or the plug-in. A statically linked
//! program has no dynamic linker, so nothing is looked up there.

use core::ffi::CStr;
use core::fmt::{self, Write};

use tracewing_abi::{JOIN_FILE, LARGEST_JOIN_FILE, ROOT_FOLDER, USER_FOLDER_VARIABLE, USER_FOLDERS};

use super::join::variable;
use super::system;

const ROOT: libc::uid_t = 0;

/// What the files list, in the form of [`SOCKET_VARIABLE`](tracewing_abi::SOCKET_VARIABLE).
pub(super) struct Listed {
    bytes: [u8; 2 * LARGEST_JOIN_FILE],
    len: usize,
}

impl Listed {
    /// Reads the files of root and of this user.
    pub(super) fn look(has_raised_rights: bool) -> Self {
        let mut listed = Self { bytes: [0; 2 * LARGEST_JOIN_FILE], len: 0 };
        if !is_linked_dynamically() {
            return listed;
        }
        let mut path = Path::new();
        if write!(path, "{ROOT_FOLDER}").is_ok() {
            listed.add(path);
        }
        let user = system::user_at_start();
        // Root's recorders list themselves there only.
        if user == ROOT {
            return listed;
        }
        let mut path = Path::new();
        let folder = match variable(USER_FOLDER_VARIABLE).filter(|_| !has_raised_rights) {
            Some(folder) => path.push(folder.to_bytes()),
            None => write!(path, "{USER_FOLDERS}/{}", user),
        };
        if folder.is_ok() {
            listed.add(path);
        }
        listed
    }

    /// Adds what is listed in a folder, and a colon.
    fn add(&mut self, mut folder: Path) {
        if write!(folder, "/{JOIN_FILE}\0").is_err() {
            return;
        }
        let Ok(path) = CStr::from_bytes_until_nul(&folder.bytes) else { return };
        let room = &mut self.bytes[self.len..][..LARGEST_JOIN_FILE - 1];
        if let Some(len) = system::read_trusted(path, room) {
            self.bytes[self.len + len] = b':';
            self.len += len + 1;
        }
    }

    /// The paths, with colons between them.
    pub(super) fn paths(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A path that is made without allocation.
struct Path {
    bytes: [u8; 256],
    len: usize,
}

impl Path {
    fn new() -> Self {
        Self { bytes: [0; 256], len: 0 }
    }

    fn push(&mut self, bytes: &[u8]) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).and_then(|rest| rest.get_mut(..bytes.len()));
        room.ok_or(fmt::Error)?.copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }
}

impl Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes())
    }
}

fn is_linked_dynamically() -> bool {
    // SAFETY: a number; 0 where there is no interpreter.
    unsafe { libc::getauxval(libc::AT_BASE) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_long_is_none() {
        let mut path = Path::new();
        assert!(path.push(&[b'x'; 230]).is_ok() && path.push(&[b'x'; 27]).is_err());
        assert!(write!(path, "/{JOIN_FILE}\0").is_ok() && write!(path, "/{JOIN_FILE}\0").is_err());
    }
}
