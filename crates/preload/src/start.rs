//! The actions when the library is loaded, when a recording begins or ends, and in a forked child.

use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tracewing::sync::events::Shadowed;
use tracewing::{dynamic, emit};
use tracewing_abi::locks::CHAINS_VARIABLE;

use crate::{chain, functions, image, next, seen, unwind};

static ARE_LOCKS_ENABLED: AtomicBool = AtomicBool::new(false);

static ARE_LOCKS_RECORDED: AtomicBool = AtomicBool::new(false);

/// Whether locks are recorded: one relaxed load, since nothing else goes with it.
#[inline(always)]
pub(crate) fn are_locks_recorded() -> bool {
    ARE_LOCKS_RECORDED.load(Relaxed)
}

/// Runs when the library is loaded: after the libraries that it needs, including the C library.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    next::find_all();
    image::prepare();
    unwind::prepare();
    chain::prepare();
    ARE_LOCKS_ENABLED.store(std::env::var_os(CHAINS_VARIABLE).is_some(), Relaxed);
    functions::prepare();
    dynamic::on_change(at_change);
    at_change();
    // SAFETY: functions of the right type, in an object that stays loaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// Handles the beginning or end of a recording: a new one lacks all earlier descriptions.
fn at_change() {
    seen::forget_all();
    functions::at_change();
    let are_locks_recorded = ARE_LOCKS_ENABLED.load(Relaxed) && dynamic::is_recorded();
    ARE_LOCKS_RECORDED.store(are_locks_recorded, Relaxed);
    if are_locks_recorded {
        report_if_shadowed();
    }
}

/// # Safety
/// None: it only stores a number.
unsafe extern "C" fn in_child() {
    seen::forget_all();
}

/// Records which object precedes this library, and the C library, for the most important functions: a program
/// that has its own locks, or a sanitizer that is linked into it (one in a library of its own comes after
/// this one, and is called from here); and an allocator, whose locks are recorded with the program's.
fn report_if_shadowed() {
    const WITH_SYMBOL: c_int = 1; // RTLD_DL_SYMENT of glibc's dlfcn.h
    let functions: [(&CStr, usize); 2] = [
        (c"pthread_mutex_lock", at_start as *const () as usize),
        (c"malloc", libc::getpid as *const () as usize),
    ];
    for (name, neighbour) in functions {
        let mut found = MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: NUL-terminated name, any address, room for the answers: a symbol is null or the object's,
        // which stays.
        let other = unsafe {
            let first = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            let is_other = !first.is_null() && object(first.addr()) != object(neighbour);
            let mut symbol = ptr::null_mut();
            let is_known =
                is_other && libc::dladdr1(first, found.as_mut_ptr(), &raw mut symbol, WITH_SYMBOL) != 0;
            // A program that is not position-independent has stubs for functions whose addresses it takes.
            let is_stub =
                symbol.cast::<libc::Elf64_Sym>().as_ref().is_some_and(|symbol| symbol.st_shndx == 0);
            (is_known && !is_stub).then(|| found.assume_init())
        };
        if let Some(other) = other.filter(|other| !other.dli_fname.is_null()) {
            // SAFETY: a NUL-terminated string of the loader's, which stays as long as the object.
            let path = unsafe { CStr::from_ptr(other.dli_fname) }.to_str().unwrap_or("?");
            emit!(Shadowed { function: name.to_str().unwrap_or("?"), path });
        }
    }
}

/// The beginning of the object that contains this address.
fn object(address: usize) -> Option<usize> {
    image::find(address).map(|image| image.begin)
}
