//! Calls where no register may change except those that Rust code for any x86-64 uses, which the calling stub
//! has saved.
//!
//! `__fentry__` is called before a function has read its arguments, and a function's results are in registers
//! when it returns. The stubs save the general registers and the vector registers for arguments or results,
//! to the 128 bits that Rust code here may change. What the C library and the kernel's vDSO do to the wider
//! registers is unknown: code that may call them is run by [`saved`].

use core::arch::naked_asm;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether the processor and the kernel have `xsave`.
static HAS_XSAVE: AtomicBool = AtomicBool::new(false);

/// Must be called while the library is loaded.
pub(crate) fn prepare() {
    HAS_XSAVE.store(std::is_x86_feature_detected!("xsave"), Relaxed); // alone: nothing else goes with it
}

/// Calls `body` and preserves all registers of the x87, SSE, AVX and AVX-512.
pub(super) fn saved<F: FnOnce()>(body: F) {
    let mut body = Some(body);
    // SAFETY: a function, and its argument, which lives until it returns.
    unsafe { call_saved(run::<F>, (&raw mut body).cast()) }
}

/// # Safety
/// `body` is the address of an `Option<F>`.
unsafe extern "C" fn run<F: FnOnce()>(body: *mut ()) {
    // SAFETY: the caller's.
    if let Some(body) = unsafe { (*body.cast::<Option<F>>()).take() } {
        body();
    }
}

/// Bytes for the state: the legacy area, the header, and the components up to AVX-512's, where every
/// processor so far has them in the standard format (Intel's manual, volume 1, 13.4 to 13.6; `CPUID` leaf 0xD
/// shows the same for AMD's).
const STATE: usize = 2696_usize.next_multiple_of(64);
/// The saved components: x87, SSE, AVX, the three of AVX-512.
const COMPONENTS: u32 = 0b1110_0111;

/// # Safety
/// `body` may be called with `argument`.
#[unsafe(naked)]
unsafe extern "C" fn call_saved(body: unsafe extern "C" fn(*mut ()), argument: *mut ()) {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rbx",
        "sub rsp, {STATE}",
        "and rsp, -64",
        "mov rcx, rdi",
        "mov rdi, rsi",
        "movzx ebx, byte ptr [rip + {HAS_XSAVE}]",
        "test ebx, ebx",
        "jz 2f",
        // The part of the header that `xsave` does not write must be 0 for `xrstor`.
        "xor eax, eax",
        "mov qword ptr [rsp + 512], rax",
        "mov qword ptr [rsp + 520], rax",
        "mov qword ptr [rsp + 528], rax",
        "mov qword ptr [rsp + 536], rax",
        "mov qword ptr [rsp + 544], rax",
        "mov qword ptr [rsp + 552], rax",
        "mov qword ptr [rsp + 560], rax",
        "mov qword ptr [rsp + 568], rax",
        "mov eax, {COMPONENTS}",
        "xor edx, edx",
        "xsave64 [rsp]",
        "jmp 3f",
        "2: fxsave64 [rsp]",
        "3: call rcx",
        "test ebx, ebx",
        "jz 4f",
        "mov eax, {COMPONENTS}",
        "xor edx, edx",
        "xrstor64 [rsp]",
        "jmp 5f",
        "4: fxrstor64 [rsp]",
        "5: mov rbx, [rbp - 8]",
        "leave",
        "ret",
        STATE = const STATE,
        COMPONENTS = const COMPONENTS,
        HAS_XSAVE = sym HAS_XSAVE,
    )
}
