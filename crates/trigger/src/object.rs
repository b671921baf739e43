//! The programs and libraries whose sites belong to this copy of the crate: a list that each joins when it is
//! loaded and leaves when it is unloaded, both in constant time. No site is read before one is to be
//! switched.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::Record;
use crate::lock::{Guard, Lock};

/// A program or library with sites. The assembler code in `site` defines its layout.
#[repr(C)]
pub struct Object {
    next: AtomicPtr<Object>,
    start: AtomicPtr<Record>,
    stop: AtomicPtr<Record>,
}

const _: () = assert!(size_of::<Object>() == 24);

impl Object {
    /// All its sites, each inlined or generic copy by itself, in arbitrary order.
    pub fn sites(&self) -> &[Record] {
        let start = self.start.load(Ordering::Relaxed);
        let stop = self.stop.load(Ordering::Relaxed);
        if start.is_null() {
            return &[];
        }
        // SAFETY: the linker sets both to begin and end of a section that consists of `Record`s, without gaps
        // since each is as large as three times its alignment and every part of the section begins so
        // aligned. They are written only through atomics, and exist as long as the object.
        unsafe { core::slice::from_raw_parts(start, stop.offset_from_unsigned(start)) }
    }
}

/// Guards the list: while it is held, nodes stay in the list and their objects stay loaded.
static LIST: Lock = Lock::new();
static FIRST: AtomicPtr<Object> = AtomicPtr::new(ptr::null_mut());
static HOOK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// The list of objects; none of them is unloaded while this exists. See [`objects`].
pub struct Objects {
    _guard: Guard<'static>,
    /// Not `Send`: it stays on the thread that holds the lock.
    _thread: PhantomData<*const ()>,
}

/// All programs and libraries whose sites belong to this copy of the crate.
///
/// `dlopen` and `dlclose` of a library with sites wait until the returned value is dropped. While it lives,
/// this thread must not call them, nor `dladdr` or `dlsym`, nor this function: it would deadlock. Must not be
/// called in a signal handler.
pub fn objects() -> Objects {
    Objects { _guard: LIST.lock(), _thread: PhantomData }
}

impl Objects {
    /// The objects, the most recently loaded first.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        let mut next = FIRST.load(Ordering::Relaxed);
        core::iter::from_fn(move || {
            // SAFETY: null, or a node of the list, which stays valid until `remove` gets the lock that `self`
            // holds.
            let object = unsafe { next.as_ref()? };
            next = object.next.load(Ordering::Relaxed);
            Some(object)
        })
    }

    /// The sites of all objects.
    pub fn sites(&self) -> impl Iterator<Item = &Record> {
        self.iter().flat_map(Object::sites)
    }
}

/// Calls `hook` from now on for each object with sites that is loaded, on the loading thread, before any
/// other code of the object runs. Objects loaded before are in [`objects`]; one that is loaded meanwhile may
/// appear both ways. A later call replaces the hook.
///
/// The hook may call [`objects`]. The thread is inside `dlopen`.
pub fn on_load(hook: fn(&Object)) {
    let guard = LIST.lock();
    HOOK.store(hook as *mut (), Ordering::Relaxed);
    drop(guard);
}

/// Adds an object that is being loaded to the list; calls `prepare` with it while no other object can be
/// added or removed.
#[cfg(feature = "sites")]
pub(crate) fn add(object: &'static Object, prepare: fn(&Object)) {
    let guard = LIST.lock();
    object.next.store(FIRST.load(Ordering::Relaxed), Ordering::Relaxed);
    FIRST.store(ptr::from_ref(object).cast_mut(), Ordering::Relaxed);
    let hook = HOOK.load(Ordering::Relaxed);
    prepare(object);
    drop(guard);
    if !hook.is_null() {
        // SAFETY: what `on_load` has stored.
        let hook: fn(&Object) = unsafe { core::mem::transmute(hook) };
        hook(object);
    }
}

/// Removes an object that is being unloaded from the list.
#[cfg(feature = "sites")]
pub(crate) fn remove(object: &Object) {
    let _guard = LIST.lock();
    let mut link = &FIRST;
    loop {
        // SAFETY: null or a node of the list, and the lock is held.
        let Some(next) = (unsafe { link.load(Ordering::Relaxed).as_ref() }) else { return };
        if ptr::eq(next, object) {
            link.store(object.next.load(Ordering::Relaxed), Ordering::Relaxed);
            return;
        }
        link = &next.next;
    }
}
