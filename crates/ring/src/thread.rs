//! The event path's data about its thread: a block in thread-local storage.
//!
//! Two ways to reach it, with the same functions: by hand-written access on x86-64 (`thread/x86_64.rs`), so
//! that the first access in a signal handler allocates nothing even in a library loaded by `dlopen`; through
//! the standard library elsewhere (`thread/portable.rs`).

#[cfg(all(target_arch = "x86_64", not(loom)))]
use core::mem::offset_of;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

#[cfg(not(target_arch = "x86_64"))]
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
pub use portable::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// Recordings that a process can take part in at the same time.
pub const RECORDINGS: usize = 8;

/// Words per thread for the use of the crate that writes the events.
pub const WORDS: usize = 9;

/// A thread's state in one recording.
#[repr(C)]
pub struct Entry {
    /// Key of the attachment that the thread entered ([`Mark::NEVER`] at first): equal to the attachment's
    /// key only when that is the thread's own process, and `tid` is right.
    pub key: AtomicU64,
    /// Kernel thread id, valid together with `key`.
    pub tid: AtomicI32,
    /// Bits 1 to 32 of the key under which the recording last announced the thread.
    pub announced: AtomicI32,
}

#[cfg(all(target_arch = "x86_64", not(loom)))]
impl Entry {
    pub(crate) const KEY: usize = offset_of!(Entry, key);
    pub(crate) const TID: usize = offset_of!(Entry, tid);
}

/// A thread's block of thread-local storage.
#[repr(C, align(32))]
pub struct Mark {
    /// One entry per recording.
    pub entries: [Entry; RECORDINGS],
    /// Above 0: another task with the same memory may be using this very block (a `vfork`ed child and its
    /// parent).
    pub shared: AtomicU32,
    /// Not 0: the thread no longer writes events, since it may not read the clock.
    pub silent: AtomicU32,
    /// For the crate that writes the events, which defines their meaning.
    pub words: [AtomicU64; WORDS],
    /// The thread's id when it was last looked up, 0 before that. A forked child uses it to check whether the
    /// C library has noticed the fork.
    pub tid: AtomicI32,
    _pad: [u32; 3],
}

impl Mark {
    /// A key that no attachment ever uses.
    pub const NEVER: u64 = u64::MAX;

    /// A block that no thread has used.
    #[cfg(not(target_arch = "x86_64"))]
    const fn new() -> Self {
        const ENTRY: Entry =
            Entry { key: AtomicU64::new(Mark::NEVER), tid: AtomicI32::new(0), announced: AtomicI32::new(0) };
        Self {
            entries: [ENTRY; RECORDINGS],
            shared: AtomicU32::new(0),
            silent: AtomicU32::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
            tid: AtomicI32::new(0),
            _pad: [0; 3],
        }
    }
}

const _: () = assert!(size_of::<Entry>() == 16 && size_of::<Mark>() == 224);

/// A key for [`crate::Attachment::attach`] that no other process on this machine has had.
pub fn unique_key() -> u64 {
    crate::clock::now_ordered(tracewing_abi::region::Clock::Tsc) | 1
}
