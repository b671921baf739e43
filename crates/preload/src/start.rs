//! What happens when the library is loaded, when a recording begins or ends, and in a forked child.

use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tracewing::{dynamic, emit};
use tracewing_abi::locks::CHAINS_VARIABLE;

use crate::events::Shadowed;
use crate::{chain, functions, image, next, seen, unwind};

static ARE_LOCKS_WANTED: AtomicBool = AtomicBool::new(false);

static ARE_LOCKS_RECORDED: AtomicBool = AtomicBool::new(false);

/// Whether locks are recorded: one relaxed load, since nothing else goes with it.
#[inline(always)]
pub(crate) fn are_locks_recorded() -> bool {
    ARE_LOCKS_RECORDED.load(Relaxed)
}

/// Runs when the library is loaded: behind those that it needs, the C library among them.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    next::find_all();
    image::prepare();
    unwind::prepare();
    chain::prepare();
    ARE_LOCKS_WANTED.store(std::env::var_os(CHAINS_VARIABLE).is_some(), Relaxed);
    functions::prepare();
    dynamic::on_change(at_change);
    at_change();
    // SAFETY: functions of the right type, in an object that stays loaded.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// Another recording, or none: what was described, it has not got.
fn at_change() {
    seen::forget_all();
    functions::at_change();
    let are_locks_recorded = ARE_LOCKS_WANTED.load(Relaxed) && dynamic::is_recorded();
    ARE_LOCKS_RECORDED.store(are_locks_recorded, Relaxed);
    if are_locks_recorded {
        tell_if_shadowed();
    }
}

/// # Safety
/// None: it only stores a number.
unsafe extern "C" fn in_child() {
    seen::forget_all();
    functions::in_child();
}

/// Tells who has the most important function in front of this library: a program that brings its own locks, or a sanitizer
/// that is linked into it. (One in a library of its own stands behind, and is called from here.)
fn tell_if_shadowed() {
    const NAME: &CStr = c"pthread_mutex_lock";
    let mut found = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: NUL-terminated name, any address, room for the answer.
    let other = unsafe {
        let first = libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr());
        (is_elsewhere(first) && libc::dladdr(first, found.as_mut_ptr()) != 0).then(|| found.assume_init())
    };
    if let Some(other) = other.filter(|other| !other.dli_fname.is_null()) {
        // SAFETY: a NUL-terminated string of the loader's, which stays as long as the object.
        let path = unsafe { CStr::from_ptr(other.dli_fname) }.to_str().unwrap_or("?");
        emit!(Shadowed { function: "pthread_mutex_lock", path });
    }
}

/// Whether an address lies in another object than this library.
fn is_elsewhere(address: *const c_void) -> bool {
    let object = |address| image::find(address).map(|image| image.begin);
    !address.is_null() && object(address.addr()) != object(at_start as *const () as usize)
}
