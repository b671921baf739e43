//! The memory of a buffer region: a memfd that nobody can resize any more, or a file, mapped shared.
//!
//! What lies in it is the `ring` crate's. A memfd's seals matter because other processes hold the same file: without them
//! one could truncate it, and reading the mapping would then kill the reader with SIGBUS.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;

use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, fstatvfs, ftruncate,
    memfd_create, open,
};
use rustix::io::{Errno, pread};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use tracewing_abi::region::{CONTROL, Geometry};

use crate::Error;

/// Bytes of a sub-buffer, unless asked otherwise. With [`SUB_BUFFERS`] of them a CPU's buffer holds 150,000 events of 28
/// bytes: at the longest interval of [`crate::pace`], 3 million a second. Memory is taken only as far as it is written.
pub const SUB_BUFFER_BYTES: usize = 512 << 10;
/// Sub-buffers per CPU, unless asked otherwise.
pub const SUB_BUFFERS: usize = 8;

/// A shared mapping of zeroed memory, unmapped when dropped.
pub struct SharedMemory {
    base: NonNull<u8>,
    size: usize,
    file: OwnedFd,
}

// SAFETY: the struct owns a mapping that any thread may use; it offers no access to the bytes itself.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; all methods only read the struct's own fields.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// `size` zeroed bytes. Pages take memory only once they are touched.
    ///
    /// # Errors
    /// The kernel refuses the file or the mapping.
    pub fn new(size: usize) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::Memory { size, source: errno.into() };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = match memfd_create("tracewing", flags | MemfdFlags::NOEXEC_SEAL) {
            // Kernels before 6.3 do not know NOEXEC_SEAL.
            Err(Errno::INVAL) => memfd_create("tracewing", flags),
            other => other,
        }
        .map_err(failed)?;
        ftruncate(&file, size as u64).map_err(failed)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).map_err(failed)?;
        Self::map(file, size)
    }

    /// Zeroed bytes for a region, in a new file that takes the disk space of all that is ever touched at once.
    ///
    /// # Errors
    /// The file is there, or cannot be made, allocated or mapped; then none is left.
    pub(crate) fn in_file(path: &Path, geometry: Geometry) -> Result<Self, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| Error::file("create", path)(errno.into()))?;
        let allocate = || {
            let first = geometry.control_offset(0) as u64;
            let touched = (CONTROL + geometry.physical_sub_buffers() * geometry.sub_buffer_bytes()) as u64;
            has_room(&file, first + geometry.cpus() as u64 * touched)?;
            ftruncate(&file, geometry.size() as u64)?;
            fallocate(&file, FallocateFlags::empty(), 0, first)?;
            (0..geometry.cpus()).try_for_each(|cpu| {
                let offset = geometry.control_offset(cpu) as u64;
                fallocate(&file, FallocateFlags::empty(), offset, touched)
            })
        };
        let allocated = allocate().map_err(|errno| Error::file("allocate", path)(errno.into()));
        let mapped = allocated.and_then(|()| Self::map(file, geometry.size()));
        if mapped.is_err() {
            let _ = std::fs::remove_file(path);
        }
        mapped
    }

    fn map(file: OwnedFd, size: usize) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::Memory { size, source: errno.into() };
        // SAFETY: a new mapping at an address that the kernel chooses; nothing existing is touched.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                &file,
                0,
            )
        }
        .map_err(failed)?;
        let base = NonNull::new(base.cast()).ok_or_else(|| failed(Errno::FAULT))?;
        Ok(Self { base, size, file })
    }

    /// First byte; page-aligned.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A copy of `len` bytes from `start` on, which may change meanwhile: the kernel makes it, from the file.
    ///
    /// # Panics
    /// The bytes do not lie in the mapping.
    pub(crate) fn copy(&self, start: *const u8, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.copy_into(&mut bytes, start, len);
        bytes
    }

    /// As [`SharedMemory::copy`], in place of what is in `bytes`.
    pub(crate) fn copy_into(&self, bytes: &mut Vec<u8>, start: *const u8, len: usize) {
        let offset = start.addr().checked_sub(self.base.addr().get());
        let offset = offset.filter(|offset| offset.checked_add(len).is_some_and(|end| end <= self.size));
        let Some(offset) = offset else { panic!("{start:?} and {len} bytes lie outside the region") };
        bytes.clear();
        bytes.reserve(len);
        while bytes.len() < len {
            let (done, left) = (bytes.len(), len - bytes.len());
            match pread(&self.file, &mut bytes.spare_capacity_mut()[..left], (offset + done) as u64) {
                Ok((read, _)) if !read.is_empty() => {
                    let done = done + read.len();
                    // SAFETY: the kernel has filled that many bytes, behind those that were there.
                    unsafe { bytes.set_len(done) };
                }
                Err(Errno::INTR) => {}
                // Nobody can shorten a memfd; of a shortened file the rest is gone.
                Ok(_) | Err(_) => break,
            }
        }
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `map`, unmapped once; `Drain`, its only user, drops its readers first.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// Refuses what a file's disk has no room for at the moment. Tried all the same, it would take all that there is before it
/// failed, and until that was given back the disk would be full for everybody else.
fn has_room(file: &OwnedFd, bytes: u64) -> Result<(), Errno> {
    let disk = fstatvfs(file)?;
    // Some file systems have no blocks to tell of.
    let is_known = disk.f_blocks > 0;
    if is_known && bytes.div_ceil(disk.f_frsize.max(1)) > disk.f_bavail { Err(Errno::NOSPC) } else { Ok(()) }
}

/// Number of CPU buffers that a region needs: one more than the highest CPU number that can ever be online.
///
/// Source: `/sys/devices/system/cpu/possible` (Documentation/admin-guide/cputopology.rst). Without sysfs: the number
/// of configured CPUs.
pub fn possible_cpus() -> usize {
    std::fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|list| highest_cpu(&list))
        .map_or_else(configured_cpus, |highest| highest + 1)
        .clamp(1, tracewing_abi::region::MAX_CPUS)
}

/// The largest number in a CPU list such as `0-3,8`.
fn highest_cpu(list: &str) -> Option<usize> {
    list.trim()
        .split([',', '-'])
        .map(|number| number.parse().ok())
        .try_fold(0, |highest, number| number.map(|number: usize| highest.max(number)))
}

fn configured_cpus() -> usize {
    // SAFETY: sysconf takes a number and returns one.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) }).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tracewing_abi::region::{MAX_SUB_BUFFER, MAX_SUB_BUFFERS};

    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(highest_cpu("0-1\n"), Some(1));
        assert_eq!(highest_cpu("0\n"), Some(0));
        assert_eq!(highest_cpu("0-3,8-11\n"), Some(11));
        assert_eq!(highest_cpu("\n"), None);
    }

    #[test]
    fn nobody_can_resize_it() {
        let memory = SharedMemory::new(8192).unwrap();
        for size in [0, 4096, 16384] {
            assert_eq!(ftruncate(memory.as_fd(), size), Err(Errno::PERM));
        }
    }

    #[test]
    fn a_file_that_is_too_large_takes_no_room_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let geometry = Geometry::new(32, MAX_SUB_BUFFERS, MAX_SUB_BUFFER).unwrap();
        let disk = rustix::fs::statvfs(folder.path()).unwrap();
        if disk.f_bavail * disk.f_frsize > 8 << 40 {
            return eprintln!("skipped: the disk has more than 8 TiB left");
        }
        let (before, free) = (disk.f_bavail, || rustix::fs::statvfs(folder.path()).unwrap().f_bavail);
        let is_over = AtomicBool::new(false);
        let least = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut least = before;
                while !is_over.load(Ordering::Relaxed) {
                    least = least.min(free());
                }
                least
            });
            let made = SharedMemory::in_file(&folder.path().join("b"), geometry);
            is_over.store(true, Ordering::Relaxed);
            assert!(made.is_err_and(|error| error.is_disk_full()));
            watch.join().unwrap()
        });
        assert!(least > before / 2, "of {before} free blocks {least} were left");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
