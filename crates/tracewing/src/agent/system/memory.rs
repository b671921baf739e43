//! Mappings of memory.

use core::ptr::NonNull;

use super::Fd;

/// Private zeroes, page-aligned.
pub(in super::super) fn map_private(size: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping where the kernel likes; nothing existing is touched.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), size, access, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// As [`map_private`], and a forked child finds zeroes again. `None` before Linux 4.14, too.
pub(in super::super) fn map_wiped_on_fork(size: usize) -> Option<NonNull<u8>> {
    let base = map_private(size)?;
    // SAFETY: the mapping just made.
    if unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_WIPEONFORK) } == 0 {
        return Some(base);
    }
    // SAFETY: no other code knows of it.
    unsafe { unmap(base, size) };
    None
}

/// Maps a region's file.
pub(in super::super) fn map_shared(file: libc::c_int, size: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: a new mapping where the kernel likes.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), size, access, flags, file, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// Has the kernel map pages of a mapping (madvise(2), `MADV_POPULATE_WRITE`, Linux 5.14), as many as it can.
pub(in super::super) fn populate(base: NonNull<u8>, offset: usize, len: usize) {
    let start = (base.addr().get() + offset).next_multiple_of(4096);
    let end = (base.addr().get() + offset + len) & !4095;
    let len = end.saturating_sub(start);
    // SAFETY: concerns only which pages are mapped, not what is in them.
    unsafe { libc::madvise(start as *mut libc::c_void, len, libc::MADV_POPULATE_WRITE) };
}

/// Keeps a shared mapping from children that are forked from now on: they find nothing at its place. `false`
/// where it cannot be.
pub(in super::super) fn keep_from_children(base: NonNull<u8>, size: usize) -> bool {
    // SAFETY: changes nothing in this process.
    unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_DONTFORK) == 0 }
}

/// Undoes [`keep_from_children`].
pub(in super::super) fn leave_to_children(base: NonNull<u8>, size: usize) -> bool {
    // SAFETY: changes nothing in this process.
    unsafe { libc::madvise(base.as_ptr().cast(), size, libc::MADV_DOFORK) == 0 }
}

/// Puts private zeroes where nothing is mapped; `false` where something is, or the kernel (before Linux 4.17)
/// does not look.
pub(in super::super) fn map_zeroes_into(base: NonNull<u8>, size: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: replaces nothing.
    let found = unsafe { libc::mmap(base.as_ptr().cast(), size, access, flags, -1, 0) };
    if found == libc::MAP_FAILED || found == base.as_ptr().cast() {
        return found != libc::MAP_FAILED;
    }
    // SAFETY: the mapping just made, whose address no other code has.
    unsafe { libc::munmap(found, size) };
    false
}

/// Zeroes in a mapping of their own, which has a name in `/proc/PID/maps`. What a forked child writes there,
/// this process does not see.
pub(in super::super) fn map_named(name: &core::ffi::CStr, size: usize) -> Option<NonNull<u8>> {
    let length = libc::off_t::try_from(size).ok()?;
    let create = |flags: libc::c_uint| {
        // SAFETY: a NUL-terminated name and a number.
        Fd::new(unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), flags) } as libc::c_int)
    };
    // Kernels before 6.3 do not know MFD_NOEXEC_SEAL.
    let file = create(libc::MFD_CLOEXEC | libc::MFD_NOEXEC_SEAL).or_else(|| create(libc::MFD_CLOEXEC))?;
    // SAFETY: a descriptor of our own and a number.
    if unsafe { libc::ftruncate(file.raw(), length) } != 0 {
        return None;
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping where the kernel likes.
    let base = unsafe { libc::mmap(core::ptr::null_mut(), size, access, libc::MAP_PRIVATE, file.raw(), 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// Replaces the mapping at `base` with private zeroes.
///
/// # Safety
/// `base` begins a mapping of `size` bytes whose content is not needed any more, and may change while other
/// threads still use it.
pub(in super::super) unsafe fn map_zeroes_over(base: NonNull<u8>, size: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: the caller's. On failure the old mapping stays, which is just as valid for threads that still
    // use it.
    unsafe { libc::mmap(base.as_ptr().cast(), size, access, flags, -1, 0) };
}

/// Unmaps a mapping.
///
/// # Safety
/// The mapping is not in use.
pub(in super::super) unsafe fn unmap(base: NonNull<u8>, size: usize) {
    // SAFETY: the caller's.
    unsafe { libc::munmap(base.as_ptr().cast(), size) };
}

/// `membarrier(2)` with this command; `false` where the kernel has it not.
pub(in super::super) fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: the call takes three integers and touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}
