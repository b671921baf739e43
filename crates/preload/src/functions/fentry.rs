//! `__fentry__`, which functions built with `-pg -mfentry` call first of all: when nothing is on their stack yet but where they
//! return to. That is replaced, so that they return to [`returned`], which tells of the end and goes on to where they would
//! have returned to, as uftrace does it. (What ran them in a frame of its own would move their arguments.)

use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed};

use libc::c_void;
use tracewing::dynamic::{EventClass, record_bytes, try_record};
use tracewing::{Event, emit};

use super::registers::saved;
use super::{Entry, Exit, NotFollowed, chosen, shadow, thread};

/// 1 while functions are recorded.
pub(super) static IS_ON: AtomicU8 = AtomicU8::new(0);

/// Where `__fentry__` goes on to otherwise: the C library's function, where nobody has asked for functions.
pub(super) static NEXT: AtomicPtr<c_void> = AtomicPtr::new(nothing as *mut c_void);

/// # Safety
/// For [`NEXT`] only.
#[unsafe(naked)]
unsafe extern "C" fn nothing() {
    naked_asm!("ret")
}

/// What gcc and clang have a function call before anything else.
///
/// # Safety
/// Called by compilers only.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn __fentry__() {
    naked_asm!(
        "cmp byte ptr [rip + {IS_ON}], 0",
        "jne 2f",
        "jmp qword ptr [rip + {NEXT}]",
        // All that may hold arguments; r10 is for functions within functions, rax says how many vectors a variadic one has got.
        "2: push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push rbp",
        "mov rbp, rsp",
        "mov rdi, [rbp + 72]", // where this call returns to: the function
        "lea rsi, [rbp + 80]", // where the function does
        "sub rsp, 128",
        "and rsp, -16",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "call {begins}",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "mov rsp, rbp",
        "pop rbp",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "ret",
        IS_ON = sym IS_ON,
        NEXT = sym NEXT,
        begins = sym begins,
    )
}

/// Where functions return to.
///
/// # Safety
/// For functions only whose return address was replaced by this.
#[unsafe(naked)]
unsafe extern "C" fn returned() {
    naked_asm!(
        // All that may hold results. The place of the return address was above.
        "push rax",
        "push rdx",
        "push rbp",
        "mov rbp, rsp",
        "lea rdi, [rbp + 16]",
        "sub rsp, 32",
        "and rsp, -16",
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "call {ends}",
        "mov r11, rax",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "mov rsp, rbp",
        "pop rbp",
        "pop rdx",
        "pop rax",
        // The processor has taken the function's return for the one that was called for: another would lead it astray.
        "jmp r11",
        ends = sym ends,
    )
}

/// What return addresses are replaced by.
pub(super) fn hook() -> usize {
    returned as *const () as usize
}

/// # Safety
/// `place` is where the return address of a function that begins is, on the thread's stack.
unsafe extern "C" fn begins(function: usize, place: *mut usize) {
    if !chosen::is_wanted(function) {
        return;
    }
    let own = thread::shadow().filter(|shadow| !shadow.is_restored());
    let Some(shadow) = own.or_else(|| prepared_saved(place.expose_provenance())) else {
        return not_followed(function);
    };
    // SAFETY: the caller's.
    let back = unsafe { place.read() };
    if !shadow.begin(place.expose_provenance(), back, function, back != hook()) {
        return not_followed(function);
    }
    // SAFETY: the caller's; `returned` finds out that it was `back`.
    unsafe { place.write(hook()) };
    tell(Entry::class(), function);
}

#[cold]
#[inline(never)]
fn prepared_saved(place: usize) -> Option<&'static shadow::Shadow> {
    let mut shadow = None;
    saved(|| shadow = prepared(place));
    shadow
}

/// A shadow in which all is as it has to be.
#[cold]
fn prepared(place: usize) -> Option<&'static shadow::Shadow> {
    let shadow = thread::shadow().or_else(shadow::take)?;
    if shadow.is_restored() {
        // SAFETY: the function that begins returns there, so the thread is on that stack.
        unsafe { shadow.replace(place, hook(), |function| tell(Exit::class(), function)) };
    }
    Some(shadow)
}

#[cold]
#[inline(never)]
fn not_followed(function: usize) {
    saved(|| emit!(NotFollowed { function: function as u64 }));
}

/// A function has returned whose return address was at this place: gives what it was.
extern "C" fn ends(place: usize) -> usize {
    let Some((back, function)) = thread::shadow().and_then(|shadow| shadow.end(place)) else {
        return ends_elsewhere(place);
    };
    tell(Exit::class(), function);
    back
}

#[cold]
#[inline(never)]
fn ends_elsewhere(place: usize) -> usize {
    let mut back = 0;
    saved(|| {
        let Some((address, function)) = shadow::end_elsewhere(place) else { lost() };
        tell(Exit::class(), function);
        back = address;
    });
    back
}

/// The program cannot go on: nobody knows where.
fn lost() -> ! {
    const TEXT: &[u8] =
        b"tracewing: a function returns from a stack that was copied or moved; record this program \
        with -finstrument-functions instead of -pg -mfentry\n";
    // SAFETY: a text of that many bytes.
    unsafe {
        libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
        libc::abort()
    }
}

/// Tells of a function, without touching registers that the stubs have not saved.
#[inline(always)]
pub(super) fn tell(class: &'static EventClass, function: usize) {
    let payload = (function as u64).to_ne_bytes();
    if !try_record(class, &payload) {
        tell_slow(class, payload);
    }
}

#[cold]
#[inline(never)]
fn tell_slow(class: &'static EventClass, payload: [u8; 8]) {
    if class.is_on() {
        saved(|| record_bytes(class, &payload));
    }
}

/// Leaves `__fentry__` to the C library: nobody has asked for functions.
pub(super) fn pass_on() {
    // SAFETY: a NUL-terminated name.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__fentry__".as_ptr()) };
    if !next.is_null() {
        NEXT.store(next, Relaxed); // of code, which nobody has written
    }
}
