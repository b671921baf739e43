//! Changes a byte of the program's code while it runs.
//!
//! The first choice is `/proc/self/mem`: the kernel writes through it into pages that the program may only
//! execute (it copies those that come from a file), so that no page is ever writable to the program, and none
//! ever loses its permission to execute. Policies that forbid pages which are both writable and executable do
//! not concern it, other than the kernel's own switch for it (`proc_mem.force_override`).
//!
//! The second choice, if that is refused: the page is made writable in addition to executable, the byte is
//! stored, and the page is made executable only. The kernel stores the byte (`read` from a pipe), which
//! returns an error, not a signal, if another copy of this crate has just removed the permission again.
//!
//! While a [`Patcher`] lives it holds a lock of the process: `flock` on `/proc/self/mem`, a file that is
//! private to each process and shared by all copies of this crate. A child does not inherit the parent's.

use core::ffi::c_int;
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

/// How often the second choice may lose its permission to another copy of this crate.
const ATTEMPTS: usize = 1000;

/// A kernel error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) c_int);

impl Errno {
    fn last() -> Self {
        // SAFETY: the thread's own.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0u8; 128];
        // SAFETY: writes at most the given number of bytes, including a NUL.
        let result = unsafe { libc::strerror_r(self.0, text.as_mut_ptr().cast(), text.len()) };
        let words = core::ffi::CStr::from_bytes_until_nul(&text).ok().and_then(|text| text.to_str().ok());
        match words {
            Some(words) if result == 0 => write!(f, "{words}"),
            _ => write!(f, "error {}", self.0),
        }
    }
}

/// The operations that the kernel refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Opening, locking or writing `/proc/self/mem`.
    pub(crate) memory: Errno,
    /// Making a page writable, or writing to it.
    pub(crate) page: Errno,
}

impl Refused {
    /// Whether only descriptors were refused.
    pub(crate) fn lacks_descriptors(self) -> bool {
        [self.memory.0, self.page.0].iter().all(|errno| matches!(*errno, libc::EMFILE | libc::ENFILE))
    }
}

/// The right to change code.
pub(crate) struct Patcher {
    /// `/proc/self/mem`, locked.
    memory: Result<Descriptor, Errno>,
    /// Both ends of a pipe, once the second choice is used.
    pipe: Option<[Descriptor; 2]>,
}

impl Patcher {
    /// Waits for other copies of this crate to finish.
    pub(crate) fn new() -> Self {
        Self { memory: locked_memory(), pipe: None }
    }

    /// Stores `byte` at `address`, atomically for other processors.
    ///
    /// # Safety
    /// `address` lies in the code of a loaded object, and threads may execute either byte.
    pub(crate) unsafe fn store(&mut self, address: usize, byte: u8) -> Result<(), Refused> {
        let refused = match &self.memory {
            Ok(memory) => match write_at(memory, address, byte) {
                Ok(()) => return Ok(()),
                Err(errno) => errno,
            },
            Err(errno) => *errno,
        };
        // SAFETY: the caller's.
        unsafe { self.store_through_page(address, byte) }.map_err(|page| Refused { memory: refused, page })
    }

    /// # Safety
    /// As for [`store`](Self::store).
    unsafe fn store_through_page(&mut self, address: usize, byte: u8) -> Result<(), Errno> {
        if self.pipe.is_none() {
            self.pipe = Some(pipe()?);
        }
        let Some([out, into]) = &self.pipe else { return Err(Errno(libc::EBADF)) };
        // SAFETY: has no obligations.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let page = (address & !(size - 1)) as *mut libc::c_void;
        const CODE: c_int = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: one byte, from the stack.
        if unsafe { libc::write(into.0, (&raw const byte).cast(), 1) } != 1 {
            return Err(Errno::last());
        }
        for _ in 0..ATTEMPTS {
            // SAFETY: the page is code (the caller's); it stays readable and executable.
            if unsafe { libc::mprotect(page, size, CODE | libc::PROT_WRITE) } != 0 {
                return Err(Errno::last());
            }
            // SAFETY: the kernel checks the address, and stores the byte there (the caller's).
            let read = unsafe { libc::read(out.0, address as *mut libc::c_void, 1) };
            let failed = Errno::last();
            // SAFETY: as above.
            if unsafe { libc::mprotect(page, size, CODE) } != 0 {
                return Err(Errno::last());
            }
            match read {
                1 => return Ok(()),
                _ if failed.0 == libc::EFAULT || failed.0 == libc::EINTR => {}
                _ => return Err(failed),
            }
        }
        Err(Errno(libc::EFAULT))
    }
}

impl Drop for Patcher {
    fn drop(&mut self) {
        if let Ok(memory) = &self.memory {
            // Explicitly, not by closing: a child forked meanwhile has the descriptor, too. SAFETY: has no
            // obligations.
            unsafe { libc::flock(memory.0, libc::LOCK_UN) };
        }
    }
}

/// The bytes from `address` on.
///
/// # Safety
/// All of them lie in the code of a loaded object.
pub(crate) unsafe fn load<const LEN: usize>(address: usize) -> [u8; LEN] {
    core::array::from_fn(|index| {
        // SAFETY: readable (the caller's); all changes are atomic.
        unsafe { &*((address + index) as *const AtomicU8) }.load(Ordering::Relaxed)
    })
}

struct Descriptor(c_int);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: this value's own.
        unsafe { libc::close(self.0) };
    }
}

fn locked_memory() -> Result<Descriptor, Errno> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a string.
    let memory = repeat(|| unsafe { libc::open(c"/proc/self/mem".as_ptr(), flags) } as isize)?;
    let memory = Descriptor(memory as c_int);
    // SAFETY: has no obligations.
    repeat(|| unsafe { libc::flock(memory.0, libc::LOCK_EX) } as isize)?;
    Ok(memory)
}

fn write_at(memory: &Descriptor, address: usize, byte: u8) -> Result<(), Errno> {
    // The file is as large as the address space: no address of a program is negative as an offset.
    // SAFETY: one byte, from the stack.
    match repeat(|| unsafe { libc::pwrite(memory.0, (&raw const byte).cast(), 1, address as libc::off_t) })? {
        1 => Ok(()),
        _ => Err(Errno(libc::EIO)),
    }
}

fn pipe() -> Result<[Descriptor; 2], Errno> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors.
    repeat(|| unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } as isize)?;
    Ok(ends.map(Descriptor))
}

/// Repeats a call that a signal interrupted.
fn repeat(mut call: impl FnMut() -> isize) -> Result<isize, Errno> {
    loop {
        let result = call();
        if result >= 0 {
            return Ok(result);
        }
        let errno = Errno::last();
        if errno.0 != libc::EINTR {
            return Err(errno);
        }
    }
}
