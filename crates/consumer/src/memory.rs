//! The memory of a buffer region: a sealed memfd, which cannot be resized any more, or a file, mapped shared.
//!
//! Its content is defined by the `ring` crate. A memfd's seals matter because other processes hold the same
//! file: without them one could truncate it, and reading the mapping would then kill the reader with SIGBUS.
//! A file has no seals: there `shortened` answers the signal.
//!
//! The kernel knows whether a region has writers. A mapping keeps the open file description that it was made
//! from, in a forked child too, and each description that can write counts in the inode (`i_writecount`). The
//! owner and every program get a description of their own; the owner asks for a write lease (fcntl(2),
//! `F_SETLEASE`), which the kernel grants only while the owner's is the only one. No process can then get
//! another, so what is in the region is final.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{
    FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags, fallocate, fcntl_add_seals, fstat, fstatvfs,
    ftruncate, memfd_create, open,
};
use rustix::io::{Errno, pread};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use tracewing_abi::region::{CONTROL, Geometry};
use tracewing_abi::shared::SharedBytes;
use tracewing_files::Dir;

use crate::Error;
use crate::shortened::Guard;

/// Default bytes of a sub-buffer. With [`SUB_BUFFERS`] of them a CPU's buffer holds 150,000 events of 28
/// bytes: at the longest interval of [`crate::pace`], 3 million per second. Memory is only used as far as it
/// is written.
pub const SUB_BUFFER_BYTES: usize = 512 << 10;
/// Default number of sub-buffers per CPU.
pub const SUB_BUFFERS: usize = 8;

/// A shared mapping of zeroed memory, unmapped when dropped.
pub struct SharedMemory {
    base: NonNull<u8>,
    size: usize,
    file: OwnedFd,
    /// Set for a file, which other processes can shorten.
    guard: Option<Guard>,
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
        Self::named("tracewing", size)
    }

    /// Like [`SharedMemory::new`], with a separate name in `/proc/PID/maps`.
    ///
    /// # Errors
    /// As for [`SharedMemory::new`].
    pub(crate) fn named(name: &str, size: usize) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::Memory { size, source: errno.into() };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let made = match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
            // Kernels before 6.3 do not know NOEXEC_SEAL.
            Err(Errno::INVAL) => memfd_create(name, flags),
            other => other,
        }
        .map_err(failed)?;
        ftruncate(&made, size as u64).map_err(failed)?;
        fcntl_add_seals(&made, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).map_err(failed)?;
        // The description that `memfd_create` gives does not count as a writer.
        Self::map(reopen(&made).unwrap_or(made), size)
    }

    /// Zeroed bytes for a region, in a new file for which all disk space that will ever be used is allocated
    /// immediately.
    ///
    /// # Errors
    /// The file exists, or cannot be created, allocated or mapped; then no file is left.
    pub(crate) fn in_file(folder: &Dir, name: &str, geometry: Geometry) -> Result<Self, Error> {
        let path = folder.path().join(name);
        let file: OwnedFd = folder.create_file(name).map_err(Error::file("create", &path))?.into();
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
        let allocated = allocate().map_err(|errno| Error::file("allocate", &path)(errno.into()));
        let mapped = allocated.and_then(|()| Self::map(file, geometry.size())).and_then(Self::guarded);
        if mapped.is_err() {
            let _ = folder.remove(name);
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
        Ok(Self { base, size, file, guard: None })
    }

    /// Makes the mapping survive the loss of its pages.
    fn guarded(mut self) -> Result<Self, Error> {
        let begin = self.base.addr().get();
        let guard = Guard::of(begin..begin + self.size);
        self.guard = Some(guard.map_err(|source| Error::Memory { size: self.size, source })?);
        Ok(self)
    }

    /// Whether memory was lost because a process has shortened the file. Restores the file's size if it was
    /// changed.
    pub(crate) fn is_shortened(&self) -> bool {
        let Some(guard) = &self.guard else { return false };
        let size = fstat(&self.file).map_or(self.size, |data| usize::try_from(data.st_size).unwrap_or(0));
        if size != self.size {
            // A failure leaves the file as it is.
            let _ = ftruncate(&self.file, self.size as u64);
        }
        size < self.size || guard.is_hit()
    }

    /// A descriptor to be passed to programs, which counts in [`SharedMemory::has_writers`]. Without /proc it
    /// is a copy of the owner's, and the region permanently has writers.
    ///
    /// # Errors
    /// There are too many open files.
    pub fn for_writers(&self) -> std::io::Result<OwnedFd> {
        match reopen(&self.file) {
            Err(Errno::NOENT) => self.file.try_clone(),
            other => Ok(other?),
        }
    }

    /// Whether any other process can write to the memory: it has a mapping, or a descriptor from which to
    /// make one. Also `true` if the kernel or file system does not know.
    pub fn has_writers(&self) -> bool {
        /// linux/fcntl.h.
        const F_SETSIG: libc::c_int = 10;
        // SAFETY: three numbers; the descriptor is open.
        let control =
            |command, value: libc::c_int| unsafe { libc::fcntl(self.file.as_raw_fd(), command, value) };
        // A concurrent `open` by path breaks the lease; the signal sent for that must not kill the process.
        control(F_SETSIG, libc::SIGURG);
        let is_granted = control(libc::F_SETLEASE, libc::F_WRLCK) == 0;
        if is_granted {
            control(libc::F_SETLEASE, libc::F_UNLCK);
        }
        !is_granted
    }

    /// Allocates memory for the first bytes of each CPU's part of a region of this shape, `bytes` in total,
    /// before they are written. A program maps allocated memory before its first event.
    pub fn allocate(&self, geometry: Geometry, bytes: usize) {
        let used = CONTROL + geometry.physical_sub_buffers() * geometry.sub_buffer_bytes();
        let each = used.min(bytes / geometry.cpus());
        for cpu in 0..geometry.cpus() {
            // If this fails, pages are allocated one by one as they are written.
            let _ = fallocate(
                &self.file,
                FallocateFlags::empty(),
                geometry.control_offset(cpu) as u64,
                each as u64,
            );
        }
    }

    /// First byte; page-aligned.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Size of the memory, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Copies bytes that may change during the copy: the kernel reads them from the file.
    ///
    /// # Panics
    /// The bytes do not lie in the mapping.
    pub(crate) fn copy(&self, from: SharedBytes) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.copy_into(&mut bytes, from);
        bytes
    }

    /// Like [`SharedMemory::copy`], replacing the content of `bytes`.
    pub(crate) fn copy_into(&self, bytes: &mut Vec<u8>, from: SharedBytes) {
        let (start, len) = (from.as_ptr(), from.len());
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
                    // SAFETY: the kernel has filled that many bytes after the existing ones.
                    unsafe { bytes.set_len(done) };
                }
                Err(Errno::INTR) => {}
                // A memfd cannot be shortened; of a shortened file the rest is gone.
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
        // Before another mapping can take the address.
        self.guard = None;
        // SAFETY: the mapping made in `map`, unmapped once; `Drain`, its only user, drops its readers first.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.size) };
    }
}

/// A new open file description of the same file.
fn reopen(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// Refuses an allocation that does not fit on the disk. An attempt would first take all available space, and
/// until that was released the disk would be full for all other programs.
fn has_room(file: &OwnedFd, bytes: u64) -> Result<(), Errno> {
    let disk = fstatvfs(file)?;
    // Some file systems report no blocks.
    let is_known = disk.f_blocks > 0;
    if is_known && bytes.div_ceil(disk.f_frsize.max(1)) > disk.f_bavail { Err(Errno::NOSPC) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tracewing_abi::region::{MAX_SUB_BUFFER, MAX_SUB_BUFFERS};

    use super::*;

    #[test]
    fn no_process_can_resize_it() {
        let memory = SharedMemory::new(8192).unwrap();
        for size in [0, 4096, 16384] {
            assert_eq!(ftruncate(memory.as_fd(), size), Err(Errno::PERM));
        }
    }

    #[test]
    fn a_file_that_is_shortened_ends_no_reader() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Dir::create(folder.path()).unwrap().0;
        let geometry = Geometry::new(1, 2, 4096).unwrap();
        // The second one finds the place of the first in the list of mappings.
        for name in ["a", "b"] {
            let memory = SharedMemory::in_file(&folder, name, geometry).unwrap();
            let other = SharedMemory::in_file(&folder, &format!("{name}2"), geometry).unwrap();
            let last = memory.size() - 1;
            // SAFETY: it lies in the mapping, and is this test's.
            let at = |at| unsafe { memory.base().add(at) };
            // SAFETY: as above.
            unsafe { at(last).write_volatile(7) };
            assert!(!memory.is_shortened());
            ftruncate(memory.for_writers().unwrap(), 0).unwrap();
            for place in [0, last, last / 2] {
                // SAFETY: as above.
                assert_eq!(unsafe { at(place).read_volatile() }, 0);
            }
            assert_eq!(fstat(&memory).unwrap().st_size, 0);
            // SAFETY: as above.
            unsafe { at(last).write_volatile(8) };
            assert!(memory.is_shortened() && memory.is_shortened() && !other.is_shortened());
            assert_eq!(fstat(&memory).unwrap().st_size as usize, memory.size());
        }
    }

    /// Also one that has the mapping alone, or the descriptor alone, and one that was forked without the C
    /// library.
    #[test]
    fn there_are_writers_as_long_as_any_process_can_write() {
        let folder = tempfile::tempdir().unwrap();
        let geometry = Geometry::new(1, 2, 4096).unwrap();
        let file = SharedMemory::in_file(&Dir::create(folder.path()).unwrap().0, "b", geometry).unwrap();
        for memory in [SharedMemory::new(8192).unwrap(), file] {
            assert!(!memory.has_writers());
            let descriptor = memory.for_writers().unwrap();
            assert!(memory.has_writers(), "a descriptor");
            let program = SharedMemory::map(descriptor, 8192).unwrap();
            let (mut read, write) = std::io::pipe().unwrap();
            // SAFETY: the child makes system calls only.
            let child = unsafe { libc::syscall(libc::SYS_fork) } as i32;
            if child == 0 {
                // SAFETY: the descriptors are the child's; it waits for the pipe's end and ends.
                unsafe {
                    libc::close(write.as_raw_fd());
                    libc::close(program.file.as_raw_fd());
                    libc::read(read.as_raw_fd(), [0u8].as_mut_ptr().cast(), 1);
                    libc::_exit(0);
                }
            }
            assert!(memory.has_writers(), "mappings");
            drop(program);
            assert!(memory.has_writers(), "the child's mapping");
            drop(write);
            // SAFETY: the child of above; its status is not wanted.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            assert!(!memory.has_writers(), "nothing is left");
            assert_eq!(std::io::Read::read(&mut read, &mut [0]).unwrap(), 0);
        }
    }

    #[test]
    fn a_file_that_is_too_large_takes_no_room_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let geometry = Geometry::new(32, MAX_SUB_BUFFERS, MAX_SUB_BUFFER).unwrap();
        let disk = rustix::fs::statvfs(folder.path()).unwrap();
        if disk.f_bavail * disk.f_frsize > 8 << 40 {
            return tracewing_testing::skip(
                tracewing_testing::Cause::Listed("large disk"),
                "the disk has more than 8 TiB left",
            );
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
            let made = SharedMemory::in_file(&Dir::create(folder.path()).unwrap().0, "b", geometry);
            is_over.store(true, Ordering::Relaxed);
            assert!(made.is_err_and(|error| error.is_disk_full()));
            watch.join().unwrap()
        });
        assert!(least > before / 2, "of {before} free blocks {least} were left");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
