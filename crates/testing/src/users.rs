//! Other users of the machine, which only root can become.

use crate::skip::{Cause, skip};

pub use crate::skip::is_root as am_root;

/// A user id without an account.
pub const STRANGER: u32 = 54321;
/// A user id with an account on every machine.
pub const NOBODY: u32 = 65534;

/// Whether this process can become another user; prints it if not.
pub fn is_root() -> bool {
    let is_root = am_root();
    if !is_root {
        skip(Cause::Root, "only root can become another user");
    }
    is_root
}

/// Makes the calling thread, and no other, another user's.
///
/// # Panics
/// The process is not root's.
pub fn become_user(user: u32) {
    // SAFETY: the system calls themselves change only this thread.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()), 0);
        assert_eq!(libc::syscall(libc::SYS_setresgid, user, user, user), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, user, user, user), 0);
    }
}
