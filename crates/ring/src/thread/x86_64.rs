//! The thread's block on x86-64, reached without a call.
//!
//! `thread_local!` may allocate at a thread's first access when the code lies in a library loaded by
//! `dlopen`, and that access may be in a signal handler. The block is therefore declared in assembly with the
//! initial-exec model: a constant distance from the thread pointer. The loader finds room for a library's 224
//! bytes in the surplus that glibc reserves for exactly this.
//!
//! The symbol is hidden and carries the crate's version, so that several copies and versions of this crate
//! can live in one process, each with a block of its own.

use core::arch::{asm, global_asm};
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicIsize, AtomicU64};

use super::{Entry, Mark};

/// Name of the block's symbol, for assembly in crates of the same version.
#[doc(hidden)]
#[macro_export]
macro_rules! thread_symbol {
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
    concat!(".globl ", thread_symbol!()),
    concat!(".hidden ", thread_symbol!()),
    concat!(".type ", thread_symbol!(), ", @object"),
    concat!(".size ", thread_symbol!(), ", 224"),
    concat!(thread_symbol!(), ":"),
    ".rept 8",  // RECORDINGS
    ".quad -1", // Mark::NEVER
    ".quad 0",
    ".endr",
    ".zero 96",
    ".popsection",
);

/// The result of [`offset`], once it was computed; 0 until then, which is no block's distance.
static OFFSET: AtomicIsize = AtomicIsize::new(0);

/// Distance of the calling thread's [`Mark`] from its thread pointer (`fs`), the same for all threads.
#[inline(always)]
pub fn offset() -> isize {
    // Relaxed: every thread stores the same number.
    match OFFSET.load(Relaxed) {
        0 => first_offset(),
        offset => offset,
    }
}

/// Reads the offset that the linker computed. Not inlined into other crates: where a Rust `dylib` holds this
/// one, the symbol is hidden there.
#[cold]
#[inline(never)]
fn first_offset() -> isize {
    let offset;
    // SAFETY: loads one constant from the global offset table; no memory is written and no flag changed.
    unsafe {
        asm!(
            concat!("mov {}, qword ptr [rip + ", thread_symbol!(), "@GOTTPOFF]"),
            out(reg) offset,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    OFFSET.store(offset, Relaxed);
    offset
}

/// Distance of the calling thread's [`Entry`] for recording `slot` from its thread pointer; `None` until some
/// thread of the process has looked at its block ([`with`]).
#[inline(always)]
pub fn entry_offset(slot: usize) -> Option<isize> {
    // Relaxed: every thread stores the same number.
    let offset = OFFSET.load(Relaxed);
    (offset != 0).then_some(offset + (slot * size_of::<Entry>()) as isize)
}

/// Increments a number in the calling thread's own block and returns its old value: in one instruction, so
/// that no signal handler intervenes, and without a lock, since no other thread writes there.
#[inline(always)]
pub fn count(number: &AtomicU64) -> u64 {
    let mut added = 1_u64;
    // SAFETY: the reference is valid and aligned. This does no more than a relaxed load and a relaxed store
    // of the atomic, which is sound whatever else uses it; that no other thread does makes the number right.
    unsafe {
        asm!("xadd qword ptr [{}], {}", in(reg) number.as_ptr(), inout(reg) added, options(nostack));
    }
    added
}

/// The calling thread's pointer (`fs`): the base of [`offset`] and of rseq offsets.
#[inline]
pub fn pointer() -> *const u8 {
    let pointer;
    // SAFETY: the x86-64 thread-local storage ABI keeps the thread pointer's own address at fs:0.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    }
    pointer
}

/// Distance of the `struct rseq` that the C library registered for each thread from the thread's pointer.
/// `None` if it registered none: glibc before 2.35 or with the tunable `glibc.pthread.rseq=0`, another C
/// library, a kernel without rseq.
pub fn rseq_of_libc() -> Option<isize> {
    let (offset, size): (*const isize, *const u32);
    // SAFETY: loads two addresses from the global offset table, null where the C library lacks the symbols.
    unsafe {
        asm!(
            ".weak __rseq_offset",
            ".weak __rseq_size",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            offset = out(reg) offset,
            size = out(reg) size,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    // SAFETY: null, or glibc's constants of these types (sys/rseq.h), which do not change once the program
    // runs.
    let (offset, size) = unsafe { (offset.as_ref()?, size.as_ref()?) };
    // Offset and size of the fields used here (`cpu_id`, `rseq_cs`) end at byte 16.
    (*size >= 16).then_some(*offset)
}

/// Runs `use_it` on the calling thread's block.
#[inline]
pub fn with<R>(use_it: impl FnOnce(&Mark) -> R) -> R {
    // SAFETY: the block lies at this distance from every thread's pointer, is aligned to 32 bytes, consists
    // of atomics, and lives as long as the thread, which stays inside this call while the reference does.
    use_it(unsafe { &*pointer().offset(offset()).cast() })
}
