//! A thread's call chain: the return addresses on its stack, found by the exception unwinder (libgcc's),
//! which needs no frame pointers. A walk along frame pointers alone would silently leave out every function
//! without one, such as most functions of a distribution; frame pointers serve code without tables
//! (`frames`).
//!
//! It is used only where it allocates nothing and takes no lock: with glibc 2.35 and libgcc 12, which find
//! the tables of an address by `_dl_find_object`. Elsewhere a chain consists of its innermost address. If the
//! program has registered tables for generated code (`__register_frame`), libgcc 12 briefly takes a mutex.

use core::arch::{asm, global_asm};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::frames::{self, Frame};
use crate::image;

/// Maximum number of frames of a chain.
pub(crate) const DEPTH: usize = 32;

/// The range of this library's own code, whose frames are not part of a chain; empty while chains cannot be
/// found.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

// Whether the thread is in the unwinder. Not `thread_local!`, which may allocate in a library.
global_asm!(
    ".pushsection .tbss.tracewing_unwinding, \"awT\", @nobits",
    ".balign 4",
    ".globl __tracewing_unwinding",
    ".hidden __tracewing_unwinding",
    ".type __tracewing_unwinding, @object",
    ".size __tracewing_unwinding, 4",
    "__tracewing_unwinding:",
    ".zero 4",
    ".popsection",
);

/// Finds out whether chains can be found.
pub(crate) fn prepare() {
    frames::prepare();
    // SAFETY: NUL-terminated names. A function that libgcc 12 added identifies that version.
    let is_new =
        unsafe { !libc::dlvsym(libc::RTLD_DEFAULT, c"__divhc3".as_ptr(), c"GCC_12.0.0".as_ptr()).is_null() };
    if let Some(own) = image::find(prepare as *const () as usize).filter(|_| is_new) {
        OWN[0].store(own.begin, Relaxed); // both before another thread runs, or to the same
        OWN[1].store(own.end, Relaxed);
    }
}

/// Writes the return addresses of the calling thread's frames outside of this library, the innermost first;
/// only `caller`, which is the first of them, if no more can be found. Returns their number.
pub(crate) fn unwind(caller: u64, frames: &mut [u64; DEPTH]) -> usize {
    frames[0] = caller;
    if OWN[1].load(Relaxed) == 0 {
        return 1;
    }
    let mut walk = Walk { frames, count: 0, last: None };
    // SAFETY: a callback of the right type, and its argument.
    let end = unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    let Walk { frames, count, last } = walk;
    let Some(last) = last.filter(|_| end == NO_TABLE) else { return count.max(1) };
    let rest = frames[count..].iter_mut().zip(last.callers(place(0).addr()));
    count + rest.map(|(place, frame)| *place = frame.address as u64).count()
}

/// Runs `body` unless the thread is already in it: libgcc may take a lock of the kind that led here.
pub(crate) fn not_within_itself(body: impl FnOnce()) {
    let offset: isize;
    // SAFETY: loads one constant from the global offset table; no memory is written and no flag changed.
    unsafe {
        asm!(
            "mov {}, qword ptr [rip + __tracewing_unwinding@GOTTPOFF]",
            out(reg) offset,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    let flag = place(offset);
    // SAFETY: the thread's own, which no other thread touches; a signal handler leaves it as it was.
    unsafe {
        if flag.read_volatile() != 0 {
            return;
        }
        flag.write_volatile(1);
    }
    body();
    // SAFETY: as above.
    unsafe { flag.write_volatile(0) };
}

/// The place in the calling thread's storage at this distance from its pointer.
fn place(offset: isize) -> *mut u32 {
    let pointer: *mut u8;
    // SAFETY: the x86-64 thread-local storage ABI keeps the thread pointer's own address at fs:0.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    }
    pointer.wrapping_offset(offset).cast()
}

struct Walk<'a> {
    frames: &'a mut [u64; DEPTH],
    count: usize,
    last: Option<Frame>,
}

/// `_URC_NO_REASON`: continue.
const CONTINUE: c_int = 0;
/// `_URC_NORMAL_STOP`.
const STOP: c_int = 4;
/// `_URC_END_OF_STACK`: the unwinder's result if it has no table for the last frame.
const NO_TABLE: c_int = 5;
/// The frame pointer's number (System V ABI for x86-64, 3.6.2).
const RBP: c_int = 6;

/// # Safety
/// `walk` is the [`Walk`] that the unwinder was given.
unsafe extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the caller's.
    let walk = unsafe { &mut *walk.cast::<Walk<'_>>() };
    // SAFETY: the context from the unwinder.
    let address = unsafe { _Unwind_GetIP(context) };
    if (OWN[0].load(Relaxed)..OWN[1].load(Relaxed)).contains(&address) {
        return CONTINUE;
    }
    let Some(place) = walk.frames.get_mut(walk.count).filter(|_| address != 0) else { return STOP };
    *place = address as u64;
    walk.count += 1;
    // SAFETY: the context from the unwinder, in which registers that functions preserve have a value.
    let (stack_pointer, frame_pointer) = unsafe { (_Unwind_GetCFA(context), _Unwind_GetGR(context, RBP)) };
    walk.last = Some(Frame { address, stack_pointer, frame_pointer });
    CONTINUE
}

// SAFETY: the declarations of libgcc's unwind.h.
#[link(name = "gcc_s")]
unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
    fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    fn _Unwind_GetGR(context: *mut c_void, register: c_int) -> usize;
}
