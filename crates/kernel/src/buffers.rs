//! The buffers of an instance: how large the kernel makes them, and what they lose when they are full.
//!
//! `buffer_size_kb` counts the bytes of records, without the header of each sub-buffer, and the kernel rounds
//! up to whole sub-buffers, two at least. Since Linux 6.8, `buffer_subbuf_size_kb` makes a sub-buffer larger
//! than a page: memory of neighbouring pages, a power of two of them, 128 at most. Where there is none, or
//! not enough of it in one piece, sub-buffers are smaller, and there are the more of them.

use crate::error::Error;
use crate::instance::Instance;
use crate::options::{Options, memory_kib_per_cpu};
use crate::tracefs::{Tracefs, read};
use std::fmt;
use std::io::ErrorKind;

const SIZE: &str = "buffer_size_kb";
const SUB_BUFFER_SIZE: &str = "buffer_subbuf_size_kb";
/// The most pages of a sub-buffer (`buffer_subbuf_size_write`, `kernel/trace/trace.c`).
const MOST_PAGES: usize = 128;
/// Within a sub-buffer, the kernel counts with 20 bits (`RB_WRITE_MASK`, `kernel/trace/ring_buffer.c`).
const MOST_BYTES: usize = 1 << 19;
/// The least sub-buffers of a CPU (`__ring_buffer_alloc`).
const LEAST: usize = 2;

/// The buffer of each CPU, as the kernel has made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelBuffers {
    /// Number of sub-buffers.
    pub sub_buffers: u32,
    /// Bytes of a sub-buffer.
    pub sub_buffer_bytes: u32,
    /// A full buffer loses its oldest sub-buffer, not the new event.
    pub overwrites: bool,
}

impl fmt::Display for KernelBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sub-buffers of {} KiB", self.sub_buffers, self.sub_buffer_bytes / 1024)
    }
}

impl KernelBuffers {
    /// A line for the user if the kernel has made them of other sizes than the options say.
    pub(crate) fn differs_from(self, options: &Options) -> Option<String> {
        let kib = options.sub_buffer_kib?;
        let is_as_asked = self.sub_buffer_bytes == kib.saturating_mul(1024)
            && self.sub_buffers.checked_mul(kib) == Some(options.buffer_kib);
        (!is_as_asked).then(|| {
            let total = options.buffer_kib;
            format!("the kernel's buffers have {self} per CPU, where {total} KiB in such of {kib} KiB were requested")
        })
    }
}

/// Sets the buffers of a new instance up, and reads back what the kernel has made of it.
pub(crate) fn set_up(
    tracefs: &Tracefs,
    instance: &Instance,
    options: &Options,
    overwrites: bool,
) -> Result<KernelBuffers, Error> {
    instance.set("options/overwrite", if overwrites { "1" } else { "0" })?;
    // The layout's own size is that of the top level's sub-buffers, which others may have changed.
    let (page, header) = (rustix::param::page_size(), tracefs.layout().header());
    let refused = |error| match error {
        Error::Tracefs { source, .. } => Error::Buffer { kib: options.buffer_kib, source },
        error => error,
    };
    let Some(kib) = options.sub_buffer_kib else {
        instance.set(SIZE, &options.buffer_kib.to_string()).map_err(refused)?;
        return Ok(read_back(instance, page, header, overwrites));
    };
    // The kernel's own check takes each sub-buffer for a page (`__rb_allocate_pages`).
    if u64::from(options.buffer_kib) > memory_kib_per_cpu() {
        return Err(Error::Buffer { kib: options.buffer_kib, source: ErrorKind::OutOfMemory.into() });
    }
    let mut size = (kib as usize).saturating_mul(1024).clamp(page, (page * MOST_PAGES).min(MOST_BYTES));
    loop {
        let is_set = size == page || instance.set(SUB_BUFFER_SIZE, &(size / 1024).to_string()).is_ok();
        if is_set {
            match instance.set(SIZE, &records_kib(options.buffer_kib, size, header).to_string()) {
                Ok(()) => return Ok(read_back(instance, page, header, overwrites)),
                Err(error) if size == page => return Err(refused(error)),
                Err(_) => {}
            }
        }
        size /= 2;
        if size <= page {
            // Kernels before 6.8 have no others.
            let _ = instance.set(SUB_BUFFER_SIZE, &(page / 1024).to_string());
            size = page;
        }
    }
}

/// What `buffer_size_kb` is to be for so many KiB in sub-buffers of `size` bytes.
fn records_kib(total_kib: u32, size: usize, header: usize) -> usize {
    let sub_buffers = (total_kib as usize * 1024 / size).max(LEAST);
    // Rounded down by less than a sub-buffer, and up again by the kernel.
    sub_buffers * (size - header) / 1024
}

fn read_back(instance: &Instance, page: usize, header: usize, overwrites: bool) -> KernelBuffers {
    let number = |file: &str| {
        let text = read(&instance.path().join(file)).ok()?;
        text.split_ascii_whitespace().next()?.parse::<usize>().ok()
    };
    let size = number(SUB_BUFFER_SIZE).map_or(page, |kib| kib * 1024).clamp(4096, 1 << 20);
    // As `ring_buffer_resize` does it. The number is rounded down by less than a sub-buffer.
    let sub_buffers = (number(SIZE).unwrap_or_default() * 1024).div_ceil(size - header).max(LEAST);
    KernelBuffers { sub_buffers: sub_buffers as u32, sub_buffer_bytes: size as u32, overwrites }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_rounds_to_as_many_sub_buffers_as_are_requested() {
        for size in (12..=19).map(|bits| 1 << bits) {
            for sub_buffers in [2, 4, 64, 1024] {
                let kib = records_kib((sub_buffers * size / 1024) as u32, size, 16);
                assert_eq!((kib * 1024).div_ceil(size - 16), sub_buffers, "{sub_buffers} of {size}");
            }
        }
        assert_eq!((records_kib(1, 4096, 16) * 1024).div_ceil(4080), 2);
    }

    #[test]
    fn other_sizes_than_those_requested_are_noted() {
        let made = KernelBuffers { sub_buffers: 2, sub_buffer_bytes: 4096, overwrites: false };
        assert_eq!(made.to_string(), "2 sub-buffers of 4 KiB");
        assert_eq!(KernelBuffers { sub_buffers: 8, ..made }.to_string(), "8 sub-buffers of 4 KiB");
    }
}
