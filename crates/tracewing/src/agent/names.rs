//! Names of threads that are known without a system call: the name that a thread gives itself by
//! `pthread_setname_np`, which is defined here and interposes the C library's, or by `prctl` (`filtered`),
//! stored in the thread's block; otherwise the program's, which the kernel gives to new threads of the first
//! one, too.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracewing_ring::thread;

use super::{identity, system};
use crate::words::{self, Words};

/// Bytes of a name, and a NUL.
type Name = [u8; 16];

/// The first thread's name, once the process has taken part in a recording.
static FIRST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Learns the first thread's name. Makes system calls.
pub(super) fn prepare() {
    store(&FIRST, &system::first_thread_name());
}

/// In a forked child, whose first thread has the name of the thread that has forked it.
pub(super) fn forked() {
    store(&FIRST, &of_caller());
}

/// The calling thread's name.
pub(super) fn of_caller() -> Name {
    let name = words::with(|words| load(words.name));
    if name == [0; 16] { load(&FIRST) } else { name }
}

fn store(place: &[AtomicU64; 2], name: &Name) {
    let (words, _) = name.as_chunks();
    place.iter().zip(words).for_each(|(place, word)| place.store(u64::from_ne_bytes(*word), Relaxed));
}

fn load(place: &[AtomicU64; 2]) -> Name {
    let mut name = [0; 16];
    let (words, _) = name.as_chunks_mut();
    words.iter_mut().zip(place).for_each(|(word, place)| *word = place.load(Relaxed).to_ne_bytes());
    name
}

/// Notes the calling thread's own name for itself, cut off as the kernel does.
///
/// # Safety
/// 15 bytes, or as many as there are up to a NUL, are readable.
pub(super) unsafe fn note(name: *const u8) {
    let mut bytes = [0; 16];
    for (index, to) in bytes[..15].iter_mut().enumerate() {
        // SAFETY: the caller's: none before this one was a NUL.
        *to = unsafe { name.add(index).read() };
        if *to == 0 {
            break;
        }
    }
    // A child that runs on its parent's memory has a name of its own, and the parent's block.
    thread::with(|mark| {
        if mark.shared.load(Relaxed) == 0 {
            store(Words::of(mark).name, &bytes);
        }
    });
}

/// `pthread_setname_np` of the C library.
///
/// # Safety
/// As for the C library's.
pub unsafe extern "C" fn noted_setname(of: libc::pthread_t, name: *const c_char) -> c_int {
    type SetName = unsafe extern "C" fn(libc::pthread_t, *const c_char) -> c_int;
    // SAFETY: a NUL-terminated name; null or the C library's function of this type.
    let set: Option<SetName> =
        unsafe { core::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"pthread_setname_np".as_ptr())) };
    // SAFETY: no arguments.
    let is_own = unsafe { libc::pthread_self() } == of;
    let result = match set {
        // SAFETY: the caller's.
        Some(set) => unsafe { set(of, name) },
        // A program without a dynamic linker: as the C library does.
        // SAFETY: a NUL-terminated string, of the caller's.
        None => match unsafe { CStr::from_ptr(name) } {
            name if name.count_bytes() > 15 => libc::ERANGE,
            // SAFETY: a name that the kernel takes.
            name if is_own => unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) },
            name => {
                // SAFETY: the caller's.
                let tid = unsafe { identity::of_thread(of) };
                tid.map_or(libc::ENOSYS, |tid| system::name_thread(tid, name))
            }
        },
    };
    if is_own && result == 0 {
        // SAFETY: a NUL-terminated string, of the caller's.
        unsafe { note(name.cast()) };
    }
    result
}

// Weak, for the same reasons as in `vfork`.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
core::arch::global_asm!(
    ".weak pthread_setname_np",
    ".type pthread_setname_np, @function",
    ".set pthread_setname_np, {set_name}",
    set_name = sym noted_setname,
);
