//! The functions that ours replace: the C library's, or those of another library that replaces them, too.
//!
//! All are looked up when the library is loaded (`start`). An earlier call, from the constructor of another
//! library or from a `malloc` that the loader calls, looks up its own function: in glibc 2.34 and later a
//! successful `dlsym` allocates nothing, so it cannot recurse.

use core::ffi::{CStr, c_void};
use core::marker::PhantomData;
use core::mem::transmute_copy;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function of type `F`, a function pointer.
pub(crate) struct Next<F> {
    name: &'static CStr,
    /// The symbol's version, if several versions differ.
    version: Option<&'static CStr>,
    address: AtomicPtr<c_void>,
    is: PhantomData<fn() -> F>,
}

impl<F: Copy> Next<F> {
    /// # Safety
    /// The function of this name is an `F`.
    pub(crate) const unsafe fn new(name: &'static CStr, version: Option<&'static CStr>) -> Self {
        assert!(size_of::<F>() == size_of::<*mut c_void>());
        Self { name, version, address: AtomicPtr::new(ptr::null_mut()), is: PhantomData }
    }

    /// The function, if it exists: later C libraries added some.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<F> {
        let mut address = self.address.load(Relaxed); // of code, which was there before
        if address.is_null() {
            address = self.find();
        }
        // SAFETY: a function pointer of this type (the obligation of `new`).
        (!address.is_null()).then(|| unsafe { transmute_copy(&address) })
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> *mut c_void {
        let (next, name) = (libc::RTLD_NEXT, self.name.as_ptr());
        // SAFETY: NUL-terminated names.
        let address = unsafe {
            let versioned = self.version.map(|version| libc::dlvsym(next, name, version.as_ptr()));
            versioned.filter(|found| !found.is_null()).unwrap_or_else(|| libc::dlsym(next, name))
        };
        self.address.store(address, Relaxed);
        address
    }
}

/// Declares the functions that ours replace, and [`find_all`] of them.
macro_rules! next {
    ($($static:ident $(@ $version:literal)? = $name:literal ($($argument:ty),*);)*) => {
        $(
            pub(crate) static $static: Next<unsafe extern "C-unwind" fn($($argument),*) -> ::core::ffi::c_int> =
                // SAFETY: the type is that of POSIX.
                unsafe { Next::new($name, next!(@version $($version)?)) };
        )*

        /// Looks up all of them.
        pub(crate) fn find_all() {
            $($static.get();)*
        }
    };
    (@version) => { None };
    (@version $version:literal) => { Some($version) };
}

/// Forwards a call to the replaced function, from an unsafe function whose arguments meet that function's
/// obligations.
macro_rules! pass_on {
    ($next:ident($($argument:expr),*)) => {
        match $crate::next::$next.get() {
            // SAFETY: the caller's.
            Some(next) => unsafe { next($($argument),*) },
            None => ::libc::ENOSYS,
        }
    };
}

pub(crate) use pass_on;

type Lock = *mut crate::Object;
type Until = *const libc::timespec;

next! {
    MUTEX_LOCK = c"pthread_mutex_lock" (Lock);
    MUTEX_TRYLOCK = c"pthread_mutex_trylock" (Lock);
    MUTEX_TIMEDLOCK = c"pthread_mutex_timedlock" (Lock, Until);
    MUTEX_CLOCKLOCK = c"pthread_mutex_clocklock" (Lock, libc::clockid_t, Until);
    MUTEX_UNLOCK = c"pthread_mutex_unlock" (Lock);
    RWLOCK_RDLOCK = c"pthread_rwlock_rdlock" (Lock);
    RWLOCK_TRYRDLOCK = c"pthread_rwlock_tryrdlock" (Lock);
    RWLOCK_TIMEDRDLOCK = c"pthread_rwlock_timedrdlock" (Lock, Until);
    RWLOCK_CLOCKRDLOCK = c"pthread_rwlock_clockrdlock" (Lock, libc::clockid_t, Until);
    RWLOCK_WRLOCK = c"pthread_rwlock_wrlock" (Lock);
    RWLOCK_TRYWRLOCK = c"pthread_rwlock_trywrlock" (Lock);
    RWLOCK_TIMEDWRLOCK = c"pthread_rwlock_timedwrlock" (Lock, Until);
    RWLOCK_CLOCKWRLOCK = c"pthread_rwlock_clockwrlock" (Lock, libc::clockid_t, Until);
    RWLOCK_UNLOCK = c"pthread_rwlock_unlock" (Lock);
    SPIN_LOCK = c"pthread_spin_lock" (Lock);
    SPIN_TRYLOCK = c"pthread_spin_trylock" (Lock);
    SPIN_UNLOCK = c"pthread_spin_unlock" (Lock);
    SEM_WAIT = c"sem_wait" (Lock);
    SEM_TRYWAIT = c"sem_trywait" (Lock);
    SEM_TIMEDWAIT = c"sem_timedwait" (Lock, Until);
    SEM_CLOCKWAIT = c"sem_clockwait" (Lock, libc::clockid_t, Until);
    SEM_POST = c"sem_post" (Lock);
    // Earlier versions took another structure; no 64-bit program since 2003 uses them.
    COND_WAIT @ c"GLIBC_2.3.2" = c"pthread_cond_wait" (Lock, Lock);
    COND_TIMEDWAIT @ c"GLIBC_2.3.2" = c"pthread_cond_timedwait" (Lock, Lock, Until);
    COND_CLOCKWAIT = c"pthread_cond_clockwait" (Lock, Lock, libc::clockid_t, Until);
    COND_SIGNAL @ c"GLIBC_2.3.2" = c"pthread_cond_signal" (Lock);
    COND_BROADCAST @ c"GLIBC_2.3.2" = c"pthread_cond_broadcast" (Lock);
    BARRIER_WAIT = c"pthread_barrier_wait" (Lock);
    DLCLOSE = c"dlclose" (*mut c_void);
}
