//! Descriptors, and what they refer to.

use core::ffi::CStr;
use core::mem::MaybeUninit;

/// A descriptor that is closed at the end.
pub(crate) struct Fd(pub(super) libc::c_int);

impl Fd {
    /// Takes over a descriptor that a system call has just made.
    pub(in super::super) fn new(fd: libc::c_int) -> Option<Self> {
        (fd >= 0).then(|| Self(fd))
    }

    pub(in super::super) fn raw(&self) -> libc::c_int {
        self.0
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

/// Opens a file to be read.
pub(in super::super) fn open(path: &CStr) -> Option<Fd> {
    // SAFETY: a NUL-terminated path and a number.
    Fd::new(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) })
}

/// Reads the first bytes of a file.
pub(in super::super) fn read_file(path: &CStr, buffer: &mut [u8]) -> Option<usize> {
    let file = open(path)?;
    // SAFETY: the buffer is writable.
    let len = unsafe { libc::read(file.0, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(len).ok().filter(|len| *len > 0)
}

/// Reads the first bytes of a regular file that only root can have written, or the user that started the
/// program. Never waits, and follows no link at the path's end.
pub(in super::super) fn read_trusted(path: &CStr, buffer: &mut [u8]) -> Option<usize> {
    const FLAGS: libc::c_int = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOFOLLOW;
    const OTHERS_WRITE: libc::mode_t = 0o022;
    // SAFETY: a NUL-terminated path and a number.
    let file = Fd::new(unsafe { libc::open(path.as_ptr(), FLAGS) })?;
    let mut data = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `data` has room for a stat, and all-zero is one.
    let data = unsafe { (libc::fstat(file.0, data.as_mut_ptr()) == 0).then(|| data.assume_init()) }?;
    let is_trusted = data.st_mode & libc::S_IFMT == libc::S_IFREG
        && data.st_mode & OTHERS_WRITE == 0
        && (data.st_uid == 0 || data.st_uid == user_at_start());
    if !is_trusted {
        return None;
    }
    // SAFETY: the buffer is writable.
    let len = unsafe { libc::read(file.0, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(len).ok().filter(|len| *len > 0)
}

/// The effective user when the program was started, without a system call.
pub(in super::super) fn user_at_start() -> libc::uid_t {
    // SAFETY: a number, which the kernel always gives.
    unsafe { libc::getauxval(libc::AT_EUID) as libc::uid_t }
}

/// Bytes of memory, or of the disk, that a file takes.
pub(in super::super) fn allocated(file: libc::c_int) -> usize {
    const BLOCK: usize = 512; // stat(2), whatever the file system's blocks are
    let mut data = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `data` has room for a stat, and all-zero is one.
    let data = unsafe { (libc::fstat(file, data.as_mut_ptr()) == 0).then(|| data.assume_init()) };
    data.map_or(0, |data| usize::try_from(data.st_blocks).unwrap_or(0).saturating_mul(BLOCK))
}

/// Closes a descriptor by its number.
pub(in super::super) fn close(descriptor: libc::c_int) {
    // SAFETY: a number; the caller knows that it is its own.
    unsafe { libc::close(descriptor) };
}

/// The same socket by a high number, where programs do not look for theirs.
pub(in super::super) fn out_of_the_way(socket: Fd) -> Fd {
    copy(socket.0).unwrap_or(socket)
}

/// Another descriptor with a high number for what a descriptor refers to.
pub(in super::super) fn copy(descriptor: libc::c_int) -> Option<Fd> {
    const LOWEST: libc::c_int = 900;
    // SAFETY: two integers.
    Fd::new(unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, LOWEST) })
}

/// What a descriptor refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Identity {
    pub(in super::super) device: libc::dev_t,
    pub(in super::super) inode: libc::ino_t,
}

/// `None` where the number refers to nothing.
pub(in super::super) fn identity(descriptor: libc::c_int) -> Option<Identity> {
    let mut data = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `data` has room for a stat, and all-zero is one.
    let data = unsafe { (libc::fstat(descriptor, data.as_mut_ptr()) == 0).then(|| data.assume_init()) }?;
    Some(Identity { device: data.st_dev, inode: data.st_ino })
}
