//! `__fentry__`, which functions built with `-pg -mfentry` call first of all: when nothing is on their stack
//! yet but where they return to. That is replaced, so that they return to a place in it, from where [`ends`]
//! is told, and goes on to where they would have returned to, as uftrace does it. (What ran them in a frame
//! of its own would move their arguments.)
//!
//! Its two clock readings take most of the time (9.7 ns each where it was measured), and much of the rest
//! goes on beside them, as long as nothing has to wait for memory: see the comments.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicPtr, AtomicU8, Ordering::Relaxed};

use libc::c_void;
use tracewing::dynamic::{EventClass, record_bytes, try_record};
use tracewing::{Event, emit};

use super::registers::saved;
use super::{Entry, Exit, NotFollowed, chosen, pool, shadow, thread};

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
        // All that may hold arguments; r10 is for functions within functions, rax says how many vectors a
        // variadic one has got.
        "2: push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "mov rdi, [rsp + 64]", // where this call returns to: the function
        "lea rsi, [rsp + 72]", // where the function does
        // From here to `ret`, rsp never comes from memory: the next call would wait for that.
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "test spl, 8",
        "jnz 5f",
        "call {begins}",
        "3: test al, al", // nothing up to `jz` changes flags
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "lea rsp, [rsp + 128]",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "jz 4f",
        // Written as it was pushed and will be popped, by rsp: the processor takes the one for the other
        // without asking memory.
        "lea r11, [rip + __tracewing_returned]",
        "mov [rsp + 8], r11",
        // The function goes on, by a jump: this call stays the last one that the processor knows of, so that
        // it expects the function to return to what follows it. One that calls no other such function does,
        // and costs no wrong guess.
        "pop r11",
        "call 7f",
        // Where functions return to whose return address was replaced.
        ".globl __tracewing_returned",
        ".hidden __tracewing_returned",
        "__tracewing_returned:",
        // All that may hold results. The place of the return address was above.
        "push rax",
        "push rdx",
        "lea rdi, [rsp + 8]",
        "sub rsp, 32",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "test spl, 8",
        "jnz 6f",
        "call {ends}",
        "8: mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "add rsp, 32",
        "pop rdx",
        "pop rax",
        "jmp r11",
        "7: lea rsp, [rsp + 8]",
        "jmp r11",
        "4: ret",
        // Where the function's stack is not aligned.
        "5: sub rsp, 8",
        "call {begins}",
        "lea rsp, [rsp + 8]",
        "jmp 3b",
        "6: sub rsp, 8",
        "call {ends}",
        "lea rsp, [rsp + 8]",
        "jmp 8b",
        IS_ON = sym IS_ON,
        NEXT = sym NEXT,
        begins = sym begins,
        ends = sym ends,
    )
}

unsafe extern "C" {
    /// In [`__fentry__`]. Not to be called.
    fn __tracewing_returned();
}

/// What return addresses are replaced by.
pub(super) fn hook() -> usize {
    __tracewing_returned as *const () as usize
}

/// Gives whether the function's return address is to be replaced next.
///
/// # Safety
/// `function` is what a function goes on with, and `place` where its return address is, on the thread's
/// stack, or what gcc has pushed onto that.
unsafe extern "C" fn begins(function: usize, place: *mut usize) -> bool {
    if !chosen::is_wanted(function) {
        return false;
    }
    // By the calling convention; a push leaves the stack otherwise.
    match place.addr() % 16 == 8 {
        // SAFETY: the caller's.
        true => unsafe { follows(function, place) },
        // SAFETY: the caller's.
        false => unsafe { begins_within(function, place) },
    }
}

/// The same, but this replaces the address itself: a function within a function, for which gcc has saved r10,
/// where the other's variables are, before the call, and restores it behind that.
///
/// # Safety
/// As for [`begins`].
#[cold]
#[inline(never)]
unsafe fn begins_within(function: usize, place: *mut usize) -> bool {
    const POP_R10: [u8; 2] = [0x41, 0x5a];
    // SAFETY: code that runs next, and may be read. No function begins with this otherwise: it would take its
    // own return address.
    let has_saved = unsafe { core::ptr::with_exposed_provenance::<[u8; 2]>(function).read() } == POP_R10;
    // SAFETY: the caller's.
    unsafe {
        let place = place.add(usize::from(has_saved));
        if follows(function, place) {
            place.write(hook());
        }
    }
    false
}

/// Gives whether the end of a function can be followed, whose return address is at `place`, and tells of its
/// begin.
///
/// # Safety
/// It is.
#[inline(always)]
unsafe fn follows(function: usize, place: *mut usize) -> bool {
    let own = thread::shadow().filter(|shadow| !shadow.is_restored());
    let Some(shadow) = own.or_else(|| prepared_saved(place.expose_provenance())) else {
        return not_followed(function);
    };
    // SAFETY: the caller's.
    let back = unsafe { place.read() };
    if !shadow.begin(place.expose_provenance(), back, function, back != hook()) {
        return not_followed(function);
    }
    tell(Entry::class(), function);
    true
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
    let shadow = thread::shadow().or_else(pool::take)?;
    if shadow.is_restored() {
        // SAFETY: the function that begins returns there, so the thread is on that stack.
        unsafe { shadow.replace(place, hook(), |function| tell(Exit::class(), function)) };
    }
    Some(shadow)
}

#[cold]
#[inline(never)]
fn not_followed(function: usize) -> bool {
    saved(|| emit!(NotFollowed { function: function as u64 }));
    false
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
        let Some((address, function)) = pool::end_elsewhere(place) else { lost() };
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
