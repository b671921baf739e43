//! The shadows of all threads.
//!
//! They are never freed; new threads get those of ended threads. If a stack was moved to another thread, that
//! thread searches all shadows.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

use super::shadow::Shadow;
use super::thread;

/// All shadows, the newest first.
static NEWEST: AtomicPtr<Shadow> = AtomicPtr::new(ptr::null_mut());

/// The key of `pthread_key_create` whose destructor gives a thread's shadow back.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Must be called while the library is loaded: the first keys need no memory.
pub(super) fn prepare() {
    let mut key = 0;
    // SAFETY: room for the key, and a function of the right type, in an object that stays loaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(give_back)) } == 0 {
        KEY.store(key, Relaxed);
    }
}

/// # Safety
/// `shadow` is the thread's.
unsafe extern "C" fn give_back(shadow: *mut libc::c_void) {
    // SAFETY: the caller's; shadows are never freed.
    let shadow = unsafe { &*shadow.cast::<Shadow>() };
    thread::set_shadow(None);
    shadow.clear();
    shadow.is_used.store(false, Release); // with `take`
}

fn all() -> impl Iterator<Item = &'static Shadow> {
    let first = NEWEST.load(Acquire); // with `take`: it is complete
    // SAFETY: null, or a shadow, which is never freed.
    core::iter::successors(unsafe { first.as_ref() }, |shadow| unsafe { shadow.next.load(Relaxed).as_ref() })
}

/// A shadow for the calling thread; `None` if memory is exhausted.
#[cold]
pub(super) fn take() -> Option<&'static Shadow> {
    let free = |shadow: &&Shadow| {
        shadow.is_used.compare_exchange(false, true, Acquire, Relaxed).is_ok() // with `give_back`
    };
    let shadow = all().find(free).or_else(make)?;
    thread::set_shadow(Some(shadow));
    // SAFETY: a key that was made, or one that is refused.
    unsafe { libc::pthread_setspecific(KEY.load(Relaxed), ptr::from_ref(shadow).cast()) };
    Some(shadow)
}

fn make() -> Option<&'static Shadow> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: new memory. Zeroes are a valid shadow.
    let shadow = unsafe {
        let memory = libc::mmap(ptr::null_mut(), size_of::<Shadow>(), protection, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return None;
        }
        &*memory.cast::<Shadow>()
    };
    shadow.is_used.store(true, Relaxed);
    // Release: with `all`, which finds the shadow complete.
    let _ = NEWEST.fetch_update(Release, Relaxed, |newest| {
        shadow.next.store(newest, Relaxed);
        Some(ptr::from_ref(shadow).cast_mut())
    });
    Some(shadow)
}

/// Where the function at this place on a stack that another thread was on returns to, and which it is.
#[cold]
pub(super) fn end_elsewhere(place: usize) -> Option<(usize, usize)> {
    all().find_map(|shadow| shadow.end_elsewhere(place))
}
