//! The recorders that want all programs of their user, or of all users: two files list them while there are
//! such ([`JOIN_FILE`]), so that programs which start meanwhile join. Without them a start costs two look-ups
//! that fail.
//!
//! A filter for system calls that the process has inherited may end it for these calls. The dynamic linker
//! has just made the same ones (`open`, `fstat`, `read`, `close`) to load the program. A statically linked
//! program has no dynamic linker, so nothing is looked up there.

use std::ffi::CString;

use tracewing_abi::{JOIN_FILE, LARGEST_JOIN_FILE, ROOT_FOLDER, USER_FOLDER_VARIABLE, USER_FOLDERS};

use super::join::variable;
use super::system;

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
        listed.add(ROOT_FOLDER.as_bytes());
        match variable(USER_FOLDER_VARIABLE).filter(|_| !has_raised_rights) {
            Some(folder) => listed.add(folder.to_bytes()),
            None => listed.add(format!("{USER_FOLDERS}/{}", system::user()).as_bytes()),
        }
        listed
    }

    /// Adds what is listed in a folder, and a colon.
    fn add(&mut self, folder: &[u8]) {
        let Ok(path) = CString::new([folder, b"/", JOIN_FILE.as_bytes()].concat()) else { return };
        let room = &mut self.bytes[self.len..][..LARGEST_JOIN_FILE - 1];
        if let Some(len) = system::read_trusted(&path, room) {
            self.bytes[self.len + len] = b':';
            self.len += len + 1;
        }
    }

    /// The paths, with colons between them.
    pub(super) fn paths(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

fn is_linked_dynamically() -> bool {
    // SAFETY: a number; 0 where there is no interpreter.
    unsafe { libc::getauxval(libc::AT_BASE) != 0 }
}
