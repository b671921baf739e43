//! Runs code that is seldom needed without making the surrounding code prepare for a call.
//!
//! An ordinary call leaves most registers undefined. The compiler therefore keeps values in registers that
//! functions preserve, which it must save when the function begins: instructions that are executed even if
//! the call is not. Here only vector registers are lost, which no function preserves anyway, and with
//! [`cold_call`] five general ones: the remaining four give the compiler room to save those five on the cold
//! path.

use core::arch::{asm, naked_asm};
use core::mem::{ManuallyDrop, MaybeUninit, offset_of};

use crate::Callee;

/// Maximum number of words passed in registers.
const WORDS: usize = 6;

type Word = MaybeUninit<u64>;

/// Pushes words on the stack, the last first, and calls a trampoline, which finds them after its return
/// address.
macro_rules! through {
    ($trampoline:path, $words:expr, [$($step:literal)*] $($operand:tt)*) => {
        asm!(
            "lea rsp, [rsp - 128]",
            $($step,)*
            "call {trampoline}",
            "lea rsp, [rsp + 128 + 8 * {WORDS}]",
            trampoline = sym $trampoline,
            WORDS = const $words,
            $($operand)*
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            out("xmm16") _, out("xmm17") _, out("xmm18") _, out("xmm19") _,
            out("xmm20") _, out("xmm21") _, out("xmm22") _, out("xmm23") _,
            out("xmm24") _, out("xmm25") _, out("xmm26") _, out("xmm27") _,
            out("xmm28") _, out("xmm29") _, out("xmm30") _, out("xmm31") _,
            out("k0") _, out("k1") _, out("k2") _, out("k3") _,
            out("k4") _, out("k5") _, out("k6") _, out("k7") _,
            out("mm0") _, out("mm1") _, out("mm2") _, out("mm3") _,
            out("mm4") _, out("mm5") _, out("mm6") _, out("mm7") _,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack),
        )
    };
}

/// Passes each word to `$through`, with the instruction that pushes it.
macro_rules! with_words {
    ($count:expr, $words:expr, $through:ident!($($argument:tt)*)) => {{
        let [a, b, c, d, e, f] = $words;
        match $count {
            0 => $through!($($argument)* []),
            1 => $through!($($argument)* ["push {a}"] a = in(reg) a,),
            2 => $through!($($argument)* ["push {b}" "push {a}"] a = in(reg) a, b = in(reg) b,),
            3 => $through!(
                $($argument)* ["push {c}" "push {b}" "push {a}"] a = in(reg) a, b = in(reg) b, c = in(reg) c,
            ),
            4 => $through!(
                $($argument)* ["push {d}" "push {c}" "push {b}" "push {a}"]
                a = in(reg) a, b = in(reg) b, c = in(reg) c, d = in(reg) d,
            ),
            5 => $through!(
                $($argument)* ["push {e}" "push {d}" "push {c}" "push {b}" "push {a}"]
                a = in(reg) a, b = in(reg) b, c = in(reg) c, d = in(reg) d, e = in(reg) e,
            ),
            _ => $through!(
                $($argument)* ["push {f}" "push {e}" "push {d}" "push {c}" "push {b}" "push {a}"]
                a = in(reg) a, b = in(reg) b, c = in(reg) c, d = in(reg) d, e = in(reg) e, f = in(reg) f,
            ),
        }
    }};
}

/// Number of stack words for an `F`.
const fn words<F>() -> usize {
    size_of::<F>().div_ceil(8)
}

/// Runs `run`, the action of a site that is on, out of line.
///
/// Everything that it needs is best moved into it: anything it borrows from the surrounding function must be
/// in memory there, even while the site is off. Up to six words need no memory at all. A panic in it aborts
/// the program.
#[inline(always)]
pub fn cold<F: FnOnce()>(run: F) {
    if words::<F>() > WORDS || align_of::<F>() > 8 {
        let mut run = ManuallyDrop::new(run);
        let run = &raw mut *run;
        // SAFETY: `run` is used once, here.
        in_registers(move || unsafe { run.read() }());
    } else {
        in_registers(run);
    }
}

#[inline(always)]
fn in_registers<F: FnOnce()>(run: F) {
    let mut word = [Word::uninit(); WORDS];
    // SAFETY: the words are at least as large as `F`, and at least as aligned.
    unsafe { word.as_mut_ptr().cast::<F>().write(run) };
    macro_rules! closure {
        ([$($push:literal)*] $($word:tt)*) => {
            through!(trampoline::<F>, words::<F>(), [$($push)*] $($word)*)
        };
    }
    // SAFETY: leaves the 128 bytes below the stack pointer alone, which the function may use without notice
    // (the platform's red zone), and moves the stack pointer back. `trampoline` takes the closure from after
    // its return address, and preserves all registers that are not named.
    unsafe { with_words!(words::<F>(), word, closure!()) }
}

/// Calls `T`'s function with `first` and the address of `words`, which lie after an address in the code of
/// the site. Up to six words need no memory around the site. Values around the call stay in registers; some
/// may have to be moved on the cold path.
///
/// # Safety
/// As for the function.
#[inline(always)]
pub unsafe fn cold_call<T: Callee, const COUNT: usize>(first: *const (), words: [Word; COUNT]) {
    if COUNT > WORDS {
        let located = Located { site: here(), words };
        let words = (&raw const located).cast::<u8>().wrapping_add(offset_of!(Located<COUNT>, words));
        // SAFETY: the caller's; the site's address lies before the words, in the same object.
        return unsafe { cold_call_at::<T>(first, words) };
    }
    let word = core::array::from_fn(|index| words.get(index).copied().unwrap_or(Word::uninit()));
    macro_rules! function {
        ([$($push:literal)*] $($word:tt)*) => {
            through!(
                light_trampoline::<T, COUNT>, COUNT, [$($push)* "mov rsi, rsp"] $($word)*
                inlateout("rdi") first => _,
                lateout("rax") _, lateout("rcx") _, lateout("rdx") _, lateout("rsi") _,
            )
        };
    }
    // SAFETY: as above; the registers that the trampoline does not preserve are named. The words are on the
    // stack as long as the function runs; its arguments are the caller's responsibility.
    unsafe { with_words!(COUNT, word, function!()) }
}

/// Words after the address of their site, as on the stack, where that is the return address.
#[repr(C)]
struct Located<const COUNT: usize> {
    site: usize,
    words: [Word; COUNT],
}

/// An address in the code that this is inlined into.
#[inline(always)]
pub fn here() -> usize {
    let here;
    // SAFETY: computes an address. Not `pure`: it stays out of line, where it is needed.
    unsafe { asm!("lea {}, [rip]", out(reg) here, options(nomem, nostack, preserves_flags)) };
    here
}

/// Calls `T`'s function with these arguments; see [`cold_call`].
///
/// # Safety
/// As for the function.
#[inline(always)]
pub unsafe fn cold_call_at<T: Callee>(first: *const (), second: *const u8) {
    // SAFETY: as above.
    unsafe {
        through!(
            light_trampoline::<T, 0>, 0usize, []
            inlateout("rdi") first => _,
            inlateout("rsi") second => _,
            lateout("rax") _, lateout("rcx") _, lateout("rdx") _,
        )
    }
}

/// Calls [`run`] and preserves the general registers. For an unwinder, the caller's stack pointer is the
/// value from before `cold` moved it.
///
/// # Safety
/// Called only by `in_registers`, with the closure's words after the return address.
#[unsafe(naked)]
unsafe extern "C" fn trampoline<F: FnOnce()>() {
    naked_asm!(
        ".cfi_startproc",
        // On the stack: the return address, the closure's words, 128 bytes.
        ".cfi_def_cfa_offset 136 + 8 * {WORDS}",
        ".cfi_offset rip, -(136 + 8 * {WORDS})",
        "push rbp",
        ".cfi_def_cfa_offset 144 + 8 * {WORDS}",
        ".cfi_offset rbp, -(144 + 8 * {WORDS})",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "lea rdi, [rbp + 16]",
        "and rsp, -16",
        "call {run}",
        "lea rsp, [rbp - 72]",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "pop rbp",
        ".cfi_def_cfa rsp, 136 + 8 * {WORDS}",
        "ret",
        ".cfi_endproc",
        run = sym run::<F>,
        WORDS = const words::<F>(),
    )
}

/// Calls the function with the arguments in their registers, and preserves r8 to r11 in addition to the
/// registers that the function preserves.
///
/// # Safety
/// Called only by [`cold_call`] and [`cold_call_at`], with `COUNT` words after the return address.
#[unsafe(naked)]
unsafe extern "C" fn light_trampoline<T: Callee, const COUNT: usize>() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_def_cfa_offset 136 + 8 * {WORDS}",
        ".cfi_offset rip, -(136 + 8 * {WORDS})",
        "push rbp",
        ".cfi_def_cfa_offset 144 + 8 * {WORDS}",
        ".cfi_offset rbp, -(144 + 8 * {WORDS})",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "and rsp, -16",
        "call {function}",
        "mov r8, [rbp - 8]",
        "mov r9, [rbp - 16]",
        "mov r10, [rbp - 24]",
        "mov r11, [rbp - 32]",
        "leave",
        ".cfi_def_cfa rsp, 136 + 8 * {WORDS}",
        "ret",
        ".cfi_endproc",
        function = sym T::call,
        WORDS = const COUNT,
    )
}

/// # Safety
/// `function` is not used afterwards.
unsafe extern "C" fn run<F: FnOnce()>(function: *mut F) {
    // SAFETY: the caller's.
    let function = unsafe { function.read() };
    function();
}
