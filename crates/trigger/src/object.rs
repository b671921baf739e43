//! The programs and libraries whose sites belong to this copy of the crate: a list to which each adds itself
//! when it is loaded and from which it removes itself when it is unloaded, both in constant time. Nobody
//! looks at a site before somebody wants to switch one.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::Record;
use crate::lock::{Guard, Lock};

/// A program or library with sites. The assembler lays it out in `site`.
#[repr(C)]
pub struct Object {
    next: AtomicPtr<Object>,
    start: AtomicPtr<Record>,
    stop: AtomicPtr<Record>,
}

const _: () = assert!(size_of::<Object>() == 24);

impl Object {
    /// All its sites, each inlined or generic copy by itself, in no order of meaning.
    pub fn sites(&self) -> &[Record] {
        let start = self.start.load(Ordering::Relaxed);
        let stop = self.stop.load(Ordering::Relaxed);
        if start.is_null() {
            return &[];
        }
        // SAFETY: the linker sets both to begin and end of a section that consists of `Record`s, without gaps
        // since each is as large as three times its alignment and every part of the section begins so
        // aligned. Nobody writes to them but through atomics; they are there as long as the object.
        unsafe { core::slice::from_raw_parts(start, stop.offset_from_unsigned(start)) }
    }
}

/// Guards the list: its nodes stay in it, and their objects loaded, while it is held.
static LIST: Lock = Lock::new();
static FIRST: AtomicPtr<Object> = AtomicPtr::new(ptr::null_mut());
static HOOK: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// The list of objects, none of which is unloaded meanwhile. See [`objects`].
pub struct Objects {
    _guard: Guard<'static>,
    /// Stays with the thread that holds the lock.
    _thread: PhantomData<*const ()>,
}

/// All programs and libraries whose sites belong to this copy of the crate.
///
/// `dlopen` and `dlclose` of a library with sites wait until the returned value is dropped. While it lives,
/// this thread must not call them, nor `dladdr` or `dlsym`, nor this function: it would wait for itself. Not
/// for signal handlers.
pub fn objects() -> Objects {
    Objects { _guard: LIST.lock(), _thread: PhantomData }
}

impl Objects {
    /// The objects, those loaded last first.
    pub fn iter(&self) -> impl Iterator<Item = &Object> {
        let mut next = FIRST.load(Ordering::Relaxed);
        core::iter::from_fn(move || {
            // SAFETY: null, or a node of the list, which stays valid until `remove` has got the lock that
            // `self` holds.
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

/// From now on, calls `hook` for each object with sites that is loaded, on the thread that loads it, before
/// anything else of the object runs. Objects that are there already are those of [`objects`]; one that is
/// loaded meanwhile may come both ways. A later call replaces the hook.
///
/// The hook may call [`objects`]. The thread is inside `dlopen`.
pub fn on_load(hook: fn(&Object)) {
    let guard = LIST.lock();
    HOOK.store(hook as *mut (), Ordering::Relaxed);
    drop(guard);
}

/// Adds an object that is being loaded to the list; `prepare` gets it while no other object can come or go.
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

/// Takes an object that is being unloaded from the list.
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
