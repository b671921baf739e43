//! Attaching to a running process: the function that a recorder has one of its threads call, and the block
//! through which both sides can put the thread back.
//!
//! The recorder stops a thread that sleeps in a system call, writes a [`Saved`] below the red zone of its
//! stack, and lets it continue at the entry, with the block's address in `rdi` and `rsp`, and its own process
//! id in `rsi`, or 0 where that has another meaning in the process. The entry switches to a stack of its own,
//! saves the vector registers, calls the function with both registers, and reports through [`Saved::result`]
//! and [`Saved::progress`]. Then it spins for some milliseconds, in which the recorder stops it and restores
//! the thread itself, so that the kernel treats the interrupted call as it treats every other. Without a
//! recorder, which may have been killed, the entry restores the signal mask and all registers from the block
//! and continues the interrupted call: no thread depends on its recorder's survival.
//!
//! It spins, and makes no system call: one that sleeps with a time-out would take the place of the one that
//! the kernel is to continue (`restart_syscall(2)`).
//!
//! A second thread that arrives while another uses the stack reports [`BUSY`] and changes nothing. So does
//! one that arrives before the dynamic linker has prepared the object, or while it unloads it, by
//! [`NOT_READY`].
//!
//! x86-64 only: elsewhere programs have no entry, and recorders say so.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;

/// Type of the ELF note, of owner [`NOTE_OWNER`](crate::site::NOTE_OWNER), whose description is three `i64`,
/// little-endian: the distance from each of them to the entry, to the word that says when the object was
/// loaded, and to the function by which other copies find its recorders ([`crate::ways`]). The type is the
/// version of everything here.
pub const NOTE_TYPE: u32 = 0x7761_0004;

/// Bytes of the note's description.
pub const NOTE_SIZE: usize = 24;

/// Where in the description each distance is.
pub const ENTRY_AT: usize = 0;
/// See [`ENTRY_AT`]. The word is a `u64`: nanoseconds of `CLOCK_MONOTONIC`, 0 while the object is not in use.
pub const LOADED_AT: usize = 8;
/// See [`ENTRY_AT`].
pub const WAYS_AT: usize = 16;

/// Bytes for the processor's vector registers (`XSAVE`); recorders attach to nothing on a processor that
/// needs more.
pub const VECTORS: usize = 16 << 10;

/// Bytes of the entry's stack.
pub const STACK: usize = 64 << 10;

/// Bytes below a thread's stack pointer that its function may use (System V ABI for AMD64, 3.2.2).
pub const RED_ZONE: u64 = 128;

/// [`Saved::result`] while the call lasts (`-EINPROGRESS`).
pub const UNFINISHED: i64 = -115;

/// [`Saved::result`] where another thread is in the entry (`-EBUSY`).
pub const BUSY: i64 = -16;

/// [`Saved::result`] where the object is not yet, or no longer, in use (`-EAGAIN`).
pub const NOT_READY: i64 = -11;

/// [`Saved::progress`] while the function runs.
pub const CALLING: u64 = 0;

/// [`Saved::progress`] while the entry waits for the recorder: it can be stopped and restored.
pub const WAITING: u64 = 1;

/// [`Saved::progress`] once the entry restores the thread itself.
pub const LEFT: u64 = 2;

/// How often the entry spins, for 40 to 140 cycles each time (`PAUSE`): about 40 ms, in which a recorder gets
/// its turn on a busy machine, too.
pub const SPINS: u32 = 1 << 20;

/// Bits of the flags register that a thread gets back: arithmetic and direction.
pub const FLAGS: u64 = 0xcd5;

/// A borrowed thread's registers, as it continues its system call with them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Saved {
    /// `r15`, `r14`, `r13`, `r12`, `rbp`, `rbx`, `r10`, `r9`, `r8`, `rax`, `rdx`, `rsi`, `rdi`. `rcx` and
    /// `r11` are the kernel's: a system call changes them.
    pub general: [u64; 13],
    /// Stack pointer.
    pub rsp: u64,
    /// Flags register (`RFLAGS`).
    pub flags: u64,
    /// Address at which it continues.
    pub rip: u64,
    /// Blocked signals, one bit each.
    pub mask: u64,
    /// Signals with a handler, after which its call returns `EINTR`. None where the call may be repeated
    /// then, or the thread has filters for system calls: to look for such signals is one.
    pub handled: u64,
    /// What the function returned, a negative error number where it failed.
    pub result: i64,
    /// [`CALLING`], [`WAITING`] or [`LEFT`].
    pub progress: u64,
}

/// Offsets in [`Saved`], for the entry.
#[doc(hidden)]
pub mod at {
    use super::*;
    pub const GENERAL: usize = offset_of!(Saved, general);
    pub const RSP: usize = offset_of!(Saved, rsp);
    pub const FLAGS: usize = offset_of!(Saved, flags);
    pub const RIP: usize = offset_of!(Saved, rip);
    pub const MASK: usize = offset_of!(Saved, mask);
    pub const HANDLED: usize = offset_of!(Saved, handled);
    pub const RESULT: usize = offset_of!(Saved, result);
    pub const PROGRESS: usize = offset_of!(Saved, progress);
}

/// Vector registers and stack of an entry. Only its assembly uses the bytes, one thread at a time.
#[doc(hidden)]
#[repr(C, align(64))]
pub struct Room([AtomicU64; (VECTORS + STACK) / size_of::<u64>()]);

impl Room {
    #[expect(clippy::new_without_default, reason = "made by `attach_entry` alone")]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; (VECTORS + STACK) / size_of::<u64>()])
    }
}

/// Makes the entry of a program or library: `$entry`, which calls `$function`, an
/// `extern "C" fn(*const Saved, i64) -> i64` that must not unwind, and the note by which recorders find it.
/// `$now`, a `fn() -> u64`, gives the time at which the object is loaded, in nanoseconds of
/// `CLOCK_MONOTONIC`, never 0; `$ways` is a [`Ways`](crate::ways::Ways).
#[macro_export]
macro_rules! attach_entry {
    ($entry:ident, $function:path, $now:path, $ways:path) => {
        /// Has the function called on a thread that a recorder has stopped; `tracewing_abi::attach`.
        ///
        /// # Safety
        /// Not to be called: a recorder sets the registers.
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        #[unsafe(naked)]
        unsafe extern "C" fn $entry() {
            static ROOM: $crate::attach::Room = $crate::attach::Room::new();
            static BUSY: ::core::sync::atomic::AtomicU32 = ::core::sync::atomic::AtomicU32::new(0);
            static LOADED: ::core::sync::atomic::AtomicU64 = ::core::sync::atomic::AtomicU64::new(0);

            // The dynamic linker calls these after it has relocated the object, and before it unmaps it.
            #[used]
            #[unsafe(link_section = ".init_array")]
            static BEGIN: extern "C" fn() = begin;
            #[used]
            #[unsafe(link_section = ".fini_array")]
            static END: extern "C" fn() = end;
            extern "C" fn begin() {
                // Read by the assembly, and by recorders.
                LOADED.store($now(), ::core::sync::atomic::Ordering::Relaxed);
            }
            extern "C" fn end() {
                LOADED.store(0, ::core::sync::atomic::Ordering::Relaxed);
            }

            ::core::arch::naked_asm!(
                "mov rbx, rdi",
                // Before anything that a relocation is needed for.
                "mov qword ptr [rbx + {result}], {not_ready}",
                "cmp qword ptr [rip + {loaded}], 0",
                "je 2f",
                // Room is for one thread. The exchange is a full barrier, with the store that gives it back.
                "mov qword ptr [rbx + {result}], {busy_result}",
                "mov eax, 1",
                "xchg eax, dword ptr [rip + {busy}]",
                "test eax, eax",
                "jnz 2f",
                "lea r12, [rip + {room}]",
                "lea rsp, [r12 + {size}]",
                "mov eax, -1",
                "mov edx, -1",
                "xsave64 [r12]",
                "cld",
                "call {function}",
                "mov qword ptr [rbx + {result}], rax",
                "mov eax, -1",
                "mov edx, -1",
                "xrstor64 [r12]",
                "mov rsp, rbx",
                "mov dword ptr [rip + {busy}], 0",
                "2:",
                "mov qword ptr [rbx + {progress}], {waiting}",
                "mov ecx, {spins}",
                "3:",
                "pause",
                "dec ecx",
                "jnz 3b",
                // No recorder. A handler that runs as soon as signals are let through would have ended the
                // call, which is not made again then: rt_sigpending(&pending, 8), into a word of the stack.
                "mov qword ptr [rbx + {progress}], {left}",
                "cmp qword ptr [rbx + {handled}], 0",
                "je 4f",
                "sub rsp, 16",
                "mov eax, 127",
                "mov rdi, rsp",
                "mov esi, 8",
                "syscall",
                "mov rdx, qword ptr [rbx + {mask}]",
                "not rdx",
                "and rdx, qword ptr [rbx + {handled}]",
                "and rdx, qword ptr [rsp]",
                "lea rsp, [rsp + 16]",
                "jz 4f",
                // EINTR, after the instruction.
                "mov qword ptr [rbx + {general} + 72], -4",
                "add qword ptr [rbx + {rip}], 2",
                "4:",
                // rt_sigprocmask(SIG_SETMASK, &mask, NULL, 8).
                "mov eax, 14",
                "mov edi, 2",
                "lea rsi, [rbx + {mask}]",
                "xor edx, edx",
                "mov r10d, 8",
                "syscall",
                // The registers as they were. rcx and r11 are the interrupted call's to change.
                "mov rcx, qword ptr [rbx + {rip}]",
                "push qword ptr [rbx + {flags}]",
                "popfq",
                "mov r15, qword ptr [rbx + {general}]",
                "mov r14, qword ptr [rbx + {general} + 8]",
                "mov r13, qword ptr [rbx + {general} + 16]",
                "mov r12, qword ptr [rbx + {general} + 24]",
                "mov rbp, qword ptr [rbx + {general} + 32]",
                "mov r10, qword ptr [rbx + {general} + 48]",
                "mov r9, qword ptr [rbx + {general} + 56]",
                "mov r8, qword ptr [rbx + {general} + 64]",
                "mov rax, qword ptr [rbx + {general} + 72]",
                "mov rdx, qword ptr [rbx + {general} + 80]",
                "mov rsi, qword ptr [rbx + {general} + 88]",
                "mov rdi, qword ptr [rbx + {general} + 96]",
                // A signal's frame may overwrite the block once the stack pointer is above it.
                "mov r11, rbx",
                "mov rbx, qword ptr [r11 + {general} + 40]",
                "mov rsp, qword ptr [r11 + {rsp}]",
                "jmp rcx",
                // The note (`NOTE_TYPE`).
                ".pushsection .note.tracewing, \"a\", @note",
                ".balign 4",
                ".long 10, {note_size}, {note_type}",
                ".asciz \"tracewing\"",
                ".balign 4",
                ".quad {entry} - .",
                ".quad {loaded} - .",
                ".quad {ways} - .",
                ".popsection",
                entry = sym $entry,
                function = sym $function,
                room = sym ROOM,
                busy = sym BUSY,
                loaded = sym LOADED,
                ways = sym $ways,
                size = const $crate::attach::VECTORS + $crate::attach::STACK,
                busy_result = const $crate::attach::BUSY,
                not_ready = const $crate::attach::NOT_READY,
                result = const $crate::attach::at::RESULT,
                progress = const $crate::attach::at::PROGRESS,
                waiting = const $crate::attach::WAITING,
                left = const $crate::attach::LEFT,
                spins = const $crate::attach::SPINS,
                mask = const $crate::attach::at::MASK,
                handled = const $crate::attach::at::HANDLED,
                rip = const $crate::attach::at::RIP,
                rsp = const $crate::attach::at::RSP,
                flags = const $crate::attach::at::FLAGS,
                general = const $crate::attach::at::GENERAL,
                note_size = const $crate::attach::NOTE_SIZE,
                note_type = const $crate::attach::NOTE_TYPE,
            )
        }

        /// Keeps the entry in the program; of a static library only where the program refers to this.
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        #[used]
        static KEPT: unsafe extern "C" fn() = $entry;
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        #[used]
        static KEPT: extern "C" fn(*const $crate::attach::Saved, i64) -> i64 = $function;
    };
}
