//! What the event path knows about its thread: a block in thread-local storage that is reached without a call.
//!
//! `thread_local!` may allocate at a thread's first access when the code lies in a library loaded by `dlopen`, and that
//! access may be in a signal handler. The block is therefore declared in assembly with the initial-exec model: a
//! constant distance from the thread pointer. The loader finds room for a library's 32 bytes in the surplus that glibc
//! reserves for exactly this.
//!
//! The symbol is hidden and carries the crate's version, so that several copies and versions of this crate can live in
//! one process, each with a block of its own.

use core::arch::{asm, global_asm};
use core::mem::offset_of;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

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
    /// Thread id that was last announced in the trace.
    pub announced: AtomicI32,
    _pad: [u32; 3],
}

impl Mark {
    /// A key that no attachment ever has.
    pub const NEVER: u64 = u64::MAX;
    pub(crate) const KEY: usize = offset_of!(Mark, key);
    pub(crate) const TID: usize = offset_of!(Mark, tid);
}

const _: () = assert!(size_of::<Mark>() == 32);

macro_rules! symbol {
    () => {
        concat!(
            "__tracewing_thread_",
            env!("CARGO_PKG_VERSION_MAJOR"),
            "_",
            env!("CARGO_PKG_VERSION_MINOR"),
            "_",
            env!("CARGO_PKG_VERSION_PATCH")
        )
    };
}

global_asm!(
    ".pushsection .tdata.tracewing_thread, \"awT\", @progbits",
    ".balign 32",
    concat!(".globl ", symbol!()),
    concat!(".hidden ", symbol!()),
    concat!(".type ", symbol!(), ", @object"),
    concat!(".size ", symbol!(), ", 32"),
    concat!(symbol!(), ":"),
    ".quad -1", // Mark::NEVER
    ".zero 24",
    ".popsection",
);

/// Distance of the calling thread's [`Mark`] from its thread pointer (`fs`), the same for all threads.
#[inline(always)]
pub fn offset() -> isize {
    let offset;
    // SAFETY: loads one constant from the global offset table; no memory is written and no flag changed.
    unsafe {
        asm!(
            concat!("mov {}, qword ptr [rip + ", symbol!(), "@GOTTPOFF]"),
            out(reg) offset,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    offset
}

/// Runs `use_it` on the calling thread's block.
#[inline]
pub fn with<R>(use_it: impl FnOnce(&Mark) -> R) -> R {
    let thread_pointer: *const u8;
    // SAFETY: the x86-64 thread-local storage ABI keeps the thread pointer's own address at fs:0.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) thread_pointer, options(pure, readonly, nostack, preserves_flags));
    }
    // SAFETY: the block lies at this distance from every thread's pointer, is aligned to 32 bytes, consists of atomics,
    // and lives as long as the thread, which stays inside this call while the reference does.
    use_it(unsafe { &*thread_pointer.offset(offset()).cast() })
}
