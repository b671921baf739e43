//! Holds the bytes of a packet of any size: address space for all of it, memory for the part that is being
//! read.
//!
//! The bytes are copied in with `pread`. A file that shrinks under the reader thus gives an error; a mapping
//! of the file would give SIGBUS.

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;

/// Address space of the smallest window, in bytes: what most packets fit in. It takes no memory until it is
/// written to.
const LEAST_SPACE: usize = 4 << 20;
/// Memory is given back in multiples of this, in bytes: the largest page size of Linux's architectures.
const PAGE: usize = 64 << 10;

/// A packet's first bytes. Those that were [forgotten](Window::forget) or [skipped](Window::skip_to) are
/// whatever.
#[derive(Debug)]
pub(crate) struct Window {
    /// The mapping; dangling where `space` is 0.
    base: NonNull<u8>,
    /// Bytes mapped.
    space: usize,
    /// Bytes of the packet from its beginning on, at most `space`.
    len: usize,
}

// SAFETY: the mapping belongs to this value alone and is reached through it only.
unsafe impl Send for Window {}
// SAFETY: without `&mut` the mapping is only read.
unsafe impl Sync for Window {}

impl Default for Window {
    fn default() -> Self {
        Window { base: NonNull::dangling(), space: 0, len: 0 }
    }
}

impl Window {
    /// Forgets everything, and makes place for a packet of `bytes` bytes.
    ///
    /// # Errors
    /// There is not enough address space.
    pub(crate) fn reset(&mut self, bytes: u64) -> io::Result<()> {
        self.len = 0;
        let bytes = usize::try_from(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?.max(LEAST_SPACE);
        if bytes <= self.space {
            return Ok(());
        }
        *self = Window::default();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address that the kernel chooses; nothing existing is touched.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, flags) }?;
        (self.base, self.space) = (NonNull::new(base.cast()).ok_or(Errno::NOMEM)?, bytes);
        Ok(())
    }

    /// Reads on up to byte `to` of the packet, which begins at byte `offset` of `file`; the file may end
    /// before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn fill(&mut self, file: &File, offset: u64, to: u64) -> io::Result<()> {
        let to = usize::try_from(to).unwrap_or(usize::MAX).min(self.space);
        while self.len < to {
            let from = self.len;
            match file.read_at(&mut self.all()[from..to], offset + from as u64) {
                Ok(0) => break,
                Ok(count) => self.len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Continues at byte `at` and drops everything before; returns up to which byte this holds the packet
    /// then.
    pub(crate) fn skip_to(&mut self, at: u64) -> u64 {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.len = at.clamp(self.len, self.space);
        self.len as u64
    }

    /// Gives back the whole pages among these bytes.
    pub(crate) fn forget(&mut self, bytes: Range<u64>) {
        let page = |byte: u64| usize::try_from(byte).map_or(self.len, |byte| byte.min(self.len)) / PAGE;
        let (from, to) = ((page(bytes.start) + 1) * PAGE, page(bytes.end) * PAGE);
        if from < to {
            let memory = &mut self.all()[from..to];
            // SAFETY: the pages lie in the private mapping, borrowed as a whole; they are zeros afterwards,
            // as new ones are. A base that is not aligned to `PAGE` is aligned to the system's pages, and so
            // are they.
            let _ = unsafe { madvise(memory.as_mut_ptr().cast(), memory.len(), Advice::LinuxDontNeed) };
        }
    }

    fn all(&mut self) -> &mut [u8] {
        // SAFETY: `space` bytes are mapped readable and writable, zeros to begin with, and belong to this
        // value; a dangling base goes with 0 bytes.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.space) }
    }
}

impl AsRef<[u8]> for Window {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: as in `all`; `len` is at most `space`.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.len) }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.space > 0 {
            // SAFETY: the mapping was made in `reset` with this size; no reference outlives the value.
            let _ = unsafe { munmap(self.base.as_ptr().cast(), self.space) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn holds_a_part_of_what_it_has_place_for() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..400_000_u32).map(|number| (number % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        let mut window = Window::default();
        assert!(window.as_ref().is_empty());
        window.reset(1 << 40).unwrap();
        window.fill(&file, 100, 50).unwrap();
        assert_eq!(window.as_ref(), &bytes[100..150]);
        window.skip_to(200_000);
        window.fill(&file, 100, 300_000).unwrap();
        assert_eq!(window.as_ref()[200_000..], bytes[200_100..300_100]);
        assert_eq!(window.as_ref()[..50], bytes[100..150]);
        window.forget(50..290_000);
        assert_eq!(window.as_ref()[..50], bytes[100..150]);
        assert!(window.as_ref()[PAGE..4 * PAGE].iter().all(|&byte| byte == 0));
        assert_eq!(window.as_ref()[290_000..], bytes[290_100..300_100]);
        // After the end of the file there is nothing.
        window.fill(&file, 100, 500_000).unwrap();
        assert_eq!(window.as_ref().len(), 399_900);
        // The same memory does for a smaller packet.
        window.reset(10).unwrap();
        window.fill(&file, 0, 10).unwrap();
        assert_eq!(window.as_ref(), &bytes[..10]);
        assert!(window.reset(u64::MAX).is_err());
        assert!(window.as_ref().is_empty());
    }
}
