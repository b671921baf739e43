//! Copies of compiled functions at chosen addresses. Where a function comes to lie can change its speed by
//! more than an instruction in it (Mytkowicz et al., *Producing Wrong Data Without Doing Anything Obviously
//! Wrong!*, 2009); as many places as there are rounds take that out of the comparison (Curtsinger and Berger,
//! *Stabilizer*, 2013).

use anyhow::{Context, Result, ensure};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::ptr::null_mut;

/// What is compared.
pub type Code = extern "C" fn(u64, u64) -> u64;

/// Bytes of a page, and how many there are.
pub const PAGE: usize = 4096;
const PAGES: usize = 8;

/// Functions are aligned to so many bytes, by the compiler as here.
pub const ALIGNMENT: usize = 16;

/// Memory for copies.
pub struct Copies {
    memory: *mut u8,
}

impl Copies {
    pub fn new() -> Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE | ProtFlags::EXEC;
        // SAFETY: new memory, wherever there is room.
        let memory = unsafe { mmap_anonymous(null_mut(), PAGES * PAGE, access, MapFlags::PRIVATE) };
        Ok(Self { memory: memory.context("cannot get memory for code")?.cast() })
    }

    /// Copies a function into the `index`th pair of pages, `position` bytes after its beginning.
    ///
    /// # Safety
    /// `code` is a whole function that can be executed at any address.
    pub unsafe fn place(&mut self, index: usize, position: usize, code: &[u8]) -> Result<Code> {
        ensure!(index < PAGES / 2 && position.is_multiple_of(ALIGNMENT), "no such place");
        ensure!(position < PAGE && code.len() <= PAGE, "a function that is too large");
        // SAFETY: the two pages from there belong to this value, and no thread executes them now.
        let function = unsafe {
            let at = self.memory.add(index * 2 * PAGE + position);
            at.copy_from_nonoverlapping(code.as_ptr(), code.len());
            at
        };
        // SAFETY: a function of this type (the caller's). On x86-64 a processor executes what it has itself
        // written before.
        Ok(unsafe { std::mem::transmute::<*mut u8, Code>(function) })
    }
}
