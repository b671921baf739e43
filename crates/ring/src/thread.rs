//! What the event path knows about its thread: a block in thread-local storage.
//!
//! Two ways to reach it, with the same functions: by hand-written access on x86-64 (`thread/x86_64.rs`), so that the
//! first access in a signal handler allocates nothing even in a library loaded by `dlopen`; through the standard library
//! elsewhere (`thread/portable.rs`).

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

#[cfg(not(target_arch = "x86_64"))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
pub use portable::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// A thread's block.
#[repr(C, align(32))]
pub struct Mark {
    /// Key of the attachment that the thread has entered ([`Mark::NEVER`] at first): equal to the attachment's key only
    /// when that is the thread's own process, and `tid` is right.
    pub key: AtomicU64,
    /// The thread's id.
    pub tid: AtomicI32,
    /// Above 0: another task with the same memory may be using this very block (a `vfork`ed child and its parent).
    pub shared: AtomicU32,
    /// Bits 1 to 32 of the key under which the thread was last announced in a trace.
    pub announced: AtomicI32,
    /// Id of the task that was last announced while the block was shared.
    pub announced_shared: AtomicI32,
    _pad: [u32; 2],
}

impl Mark {
    /// A key that no attachment ever has.
    pub const NEVER: u64 = u64::MAX;
    /// A block that no thread has used.
    #[cfg(not(target_arch = "x86_64"))]
    const fn new() -> Self {
        Self {
            key: AtomicU64::new(Self::NEVER),
            tid: AtomicI32::new(0),
            shared: AtomicU32::new(0),
            announced: AtomicI32::new(0),
            announced_shared: AtomicI32::new(0),
            _pad: [0; 2],
        }
    }
}

const _: () = assert!(size_of::<Mark>() == 32);

/// A key for [`crate::Attachment::attach`] that no other process on this machine has had.
pub fn unique_key() -> u64 {
    crate::clock::now_ordered(tracewing_abi::region::Clock::Tsc) | 1
}
