//! Notices children that run on their parent's memory and thread block: `vfork` and `clone` are defined here
//! and interpose the C library's. They only add a mark in the thread's block, because of which such a
//! child's events (and, while it runs, the parent's) are counted as lost: the block's id and its `struct
//! rseq` are the parent's, and replacing them takes system calls, for which a filter may end the child.
//!
//! Both symbols are weak, so that two copies of this crate, or a program with a `vfork` of its own, still
//! link; a library that is pre-loaded exports them itself ([`dynamic::children`](crate::dynamic)). A child
//! made by a raw system call is not noticed, nor is one whose parent is noticed by another copy of this crate
//! (the program's, for a plug-in's events): its events may then overwrite others of the same CPU.
//! `posix_spawn`, `system` and `std::process::Command` run no code of the program in the child and are not
//! concerned.

use core::arch::{global_asm, naked_asm};
use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::sync::atomic::{Ordering::*, compiler_fence};

use tracewing_ring::thread::{self, Entry, Mark, RECORDINGS};

/// `vfork(2)` of the C library.
///
/// The child returns first, on the parent's stack, so the return address is kept in a register (rdi) as the C
/// library does; the kernel preserves all but rax, rcx and r11.
///
/// # Safety
/// As for the C library's.
#[unsafe(naked)]
pub unsafe extern "C" fn noticed_vfork() {
    naked_asm!(
        "pop rdi",
        concat!("mov rsi, qword ptr [rip + ", tracewing_ring::thread_symbol!(), "@GOTTPOFF]"),
        "inc dword ptr fs:[rsi + {SHARED}]", // first: a signal handler in between enters no key anew
        ".set .Lentry, 0",
        ".rept {RECORDINGS}",
        "mov qword ptr fs:[rsi + {KEY} + .Lentry], -1", // Mark::NEVER
        ".set .Lentry, .Lentry + {ENTRY}",
        ".endr",
        "mov eax, 58", // SYS_vfork
        "syscall",
        "push rdi",
        "test eax, eax",
        "jz 2f", // the child leaves the mark
        "dec dword ptr fs:[rsi + {SHARED}]",
        "test eax, eax",
        "js 3f",
        "2:",
        "ret",
        "3:",
        "neg eax",
        "push rax", // also aligns the stack
        "call __errno_location@PLT",
        "pop rcx",
        "mov dword ptr [rax], ecx",
        "mov eax, -1",
        "ret",
        KEY = const offset_of!(Mark, entries) + offset_of!(Entry, key),
        ENTRY = const size_of::<Entry>(),
        RECORDINGS = const RECORDINGS,
        SHARED = const offset_of!(Mark, shared),
    )
}

global_asm!(
    ".weak vfork",
    ".type vfork, @function",
    ".set vfork, {vfork}",
    ".weak clone",
    ".type clone, @function",
    ".set clone, {clone}",
    vfork = sym noticed_vfork,
    clone = sym noticed_clone,
);

// SAFETY: the C library's own declaration, with its variadic part spelled out.
unsafe extern "C" {
    /// The C library's `clone`, by its other name.
    #[link_name = "__clone"]
    fn clone_of_libc(
        main: *mut c_void,
        stack: *mut c_void,
        flags: c_int,
        argument: *mut c_void,
        parent_tid: *mut c_void,
        tls: *mut c_void,
        child_tid: *mut c_void,
    ) -> c_int;
}

/// `clone(2)` of the C library. Its last three parameters are variadic there; passing all of them is the same
/// call.
///
/// # Safety
/// As for the C library's.
pub unsafe extern "C" fn noticed_clone(
    main: *mut c_void,
    stack: *mut c_void,
    flags: c_int,
    argument: *mut c_void,
    parent_tid: *mut c_void,
    tls: *mut c_void,
    child_tid: *mut c_void,
) -> c_int {
    let shares = flags & libc::CLONE_VM != 0 && flags & libc::CLONE_SETTLS == 0;
    if shares {
        thread::with(|mark| {
            mark.shared.fetch_add(1, Relaxed);
            compiler_fence(Release); // a signal handler in between enters no key anew
            mark.entries.iter().for_each(|entry| entry.key.store(Mark::NEVER, Relaxed));
        });
    }
    // SAFETY: the caller's.
    let child = unsafe { clone_of_libc(main, stack, flags, argument, parent_tid, tls, child_tid) };
    // With CLONE_VFORK the child is gone from this memory by now; without, it is unknown how long it stays.
    if shares && (child < 0 || flags & libc::CLONE_VFORK != 0) {
        thread::with(|mark| mark.shared.fetch_sub(1, Relaxed));
    }
    child
}
