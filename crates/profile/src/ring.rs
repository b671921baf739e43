//! A CPU's buffer that the kernel writes records into (`struct perf_event_mmap_page` and the data after it,
//! in include/uapi/linux/perf_event.h).
//!
//! The kernel writes records, then moves `data_head`. It overwrites nothing between `data_tail` and
//! `data_head`; it counts records that do not fit, and reports the count in a record as soon as there is
//! room.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes for records. With the page before them, this is what an unprivileged user may lock per CPU
/// (`perf_event_mlock_kb`, 516 KiB).
pub(crate) const BYTES: usize = 512 << 10;
/// The same with copies of stacks: 0.25 s of 16 KiB, 997 times a second.
pub(crate) const BYTES_WITH_STACKS: usize = 4 << 20;
/// Smallest useful size, for users that may lock less.
const LEAST_BYTES: usize = 32 << 10;
/// Size of a record's header: `u32 type`, `u16 misc`, `u16 size`.
const HEADER: usize = 8;

/// A record: its type, `misc`, and the bytes after its header.
pub(crate) type Raw<'a> = (u32, u16, &'a [u8]);

/// The mapped buffer of a perf event.
pub(crate) struct Ring {
    page: NonNull<perf_event_mmap_page>,
    data: *const u8,
    /// Bytes of data.
    size: usize,
    mapped: usize,
    tail: u64,
    /// Holds a record that wraps around the end of the buffer.
    joined: Vec<u8>,
}

impl Ring {
    /// Maps the buffer of an event: `size` bytes, a power of two, or as many as this user may have.
    pub(crate) fn map(event: &OwnedFd, mut size: usize) -> io::Result<Self> {
        loop {
            match Self::map_bytes(event, size) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && size > LEAST_BYTES => {
                    size /= 2
                }
                result => return result,
            }
        }
    }

    fn map_bytes(event: &OwnedFd, size: usize) -> io::Result<Self> {
        let page_size = rustix::param::page_size();
        let mapped = page_size + size;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            mmap(ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, event, 0)?
        };
        // SAFETY: the mapping is larger than a page.
        let data = unsafe { base.byte_add(page_size) }.cast();
        let page = NonNull::new(base.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { page, data, size, mapped, tail: 0, joined: Vec::new() })
    }

    /// Passes all available records to `each` and frees their space.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Raw<'_>)) {
        // Pairs with the kernel's release of `data_head`: everything before it is written.
        let head = self.head().load(Ordering::Acquire);
        while head.wrapping_sub(self.tail) >= HEADER as u64 {
            let at = self.tail as usize % self.size;
            // SAFETY: `at` is within the data. Records are aligned to 8 bytes, so a header does not wrap
            // around. The kernel writes nothing between tail and head.
            let header = unsafe { self.data.add(at).cast::<[u8; HEADER]>().read() };
            let [a, b, c, d, e, f, g, h] = header;
            let (kind, misc) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
            let size = usize::from(u16::from_le_bytes([g, h]));
            if size < HEADER || size as u64 > head.wrapping_sub(self.tail) {
                self.tail = head;
                break;
            }
            let first = size.min(self.size - at);
            // SAFETY: both slices are within the data, and the kernel does not write there until the tail has
            // moved past them.
            let (front, back) = unsafe {
                (
                    slice::from_raw_parts(self.data.add(at), first),
                    slice::from_raw_parts(self.data, size - first),
                )
            };
            if back.is_empty() {
                each((kind, misc, &front[HEADER..]));
            } else {
                self.joined.clear();
                self.joined.extend_from_slice(front);
                self.joined.extend_from_slice(back);
                each((kind, misc, &self.joined[HEADER..]));
            }
            self.tail = self.tail.wrapping_add(size as u64);
        }
        // Pairs with the kernel's read of `data_tail`: everything before it has been read.
        self.tail().store(self.tail, Ordering::Release);
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: in the mapping, aligned, and only accessed atomically, both by the kernel and here.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.page.as_ptr()).data_tail) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made above; no reference to it is left.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), self.mapped) };
    }
}
