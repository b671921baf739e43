//! Keeps this process alive when another one takes away the memory of a region in a file. A program gets a
//! descriptor of the file and can shorten it, or punch holes into it on a full disk. An access to the mapping
//! then raises SIGBUS.
//!
//! The handler maps a page of zeros in place of the missing one. That page belongs to this process alone, so
//! what the program writes there is lost; the reader finds a damaged buffer and reports it.

use std::io;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `linux/asm-generic/siginfo.h`: no memory is at the address.
const BUS_ADRERR: libc::c_int = 2;

/// Guarded mappings. Entries are never freed: a handler may be reading them.
static MAPPINGS: AtomicPtr<Mapping> = AtomicPtr::new(ptr::null_mut());
/// Held to change the list and to install the handler.
static LOCK: Mutex<()> = Mutex::new(());
static PAGE: AtomicUsize = AtomicUsize::new(0);
/// The previous action of SIGBUS; null until the handler is installed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// An entry of the list; free where `begin` is 0.
struct Mapping {
    begin: AtomicUsize,
    end: AtomicUsize,
    /// Whether pages were missing.
    is_hit: AtomicBool,
    next: *mut Mapping,
}

// SAFETY: `next` does not change and leads to entries that are never freed; all else is atomic.
unsafe impl Sync for Mapping {}

/// Guards a mapping while it lives.
pub(crate) struct Guard(&'static Mapping);

impl Guard {
    /// Guards a mapping, which must stay mapped until the guard is dropped.
    ///
    /// # Errors
    /// The kernel refuses the handler.
    pub(crate) fn of(mapping: Range<usize>) -> io::Result<Self> {
        let _lock = lock();
        // Only changed under the lock.
        if BEFORE.load(Relaxed).is_null() {
            install()?;
        }
        let mut at = MAPPINGS.load(Acquire); // what `Release` below has added
        // SAFETY: entries are leaked, so a pointer in the list is null or permanently valid.
        while let Some(entry) = unsafe { at.as_ref() } {
            // `Release` in `drop`.
            if entry.begin.load(Acquire) == 0 {
                entry.is_hit.store(false, Relaxed); // as the end
                entry.end.store(mapping.end, Relaxed); // the end of a free entry is not read
                entry.begin.store(mapping.start, Release); // the handler's `Acquire`
                return Ok(Self(entry));
            }
            at = entry.next;
        }
        let new: &'static Mapping = Box::leak(Box::new(Mapping {
            begin: mapping.start.into(),
            end: mapping.end.into(),
            is_hit: false.into(),
            next: MAPPINGS.load(Relaxed), // only changed under the lock
        }));
        MAPPINGS.store(ptr::from_ref(new).cast_mut(), Release); // the `Acquire` above and the handler's
        Ok(Self(new))
    }

    /// Whether pages were missing.
    pub(crate) fn is_hit(&self) -> bool {
        self.0.is_hit.load(Relaxed) // mostly set by this thread; else seen at a later look
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _lock = lock();
        self.0.begin.store(0, Release); // the `Acquire` of the handler and of `Guard::of`
    }
}

fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install() -> io::Result<()> {
    PAGE.store(rustix::param::page_size(), Relaxed); // before there is a handler
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    // SAFETY: all pointers are to live locals; an all-zero action is a valid one to begin with, and the
    // handler makes system calls only. The previous action is leaked, since the handler reads it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        BEFORE.store(Box::into_raw(Box::new(before.assume_init())), Release); // the handler's `Acquire`
        // It cannot fail, since the query has succeeded.
        libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
    }
    Ok(())
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the signal's own; SIGBUS has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let mapping = mapping_of(address).filter(|_| code == BUS_ADRERR);
    if let Some(mapping) = mapping.filter(|_| put_page(address)) {
        return mapping.is_hit.store(true, Relaxed);
    }
    // SAFETY: as `install` left it. The access is repeated when this returns, and the previous action handles
    // it.
    unsafe {
        let before = BEFORE.load(Acquire); // `Release` of `install`
        libc::sigaction(libc::SIGBUS, before, ptr::null_mut());
        if code <= 0 {
            // It was sent by a process, so no access repeats it.
            libc::raise(libc::SIGBUS);
        }
    }
}

fn mapping_of(address: usize) -> Option<&'static Mapping> {
    let mut at = MAPPINGS.load(Acquire); // `Release` in `Guard::of`
    // SAFETY: entries are leaked, so a pointer in the list is null or permanently valid.
    while let Some(entry) = unsafe { at.as_ref() } {
        let begin = entry.begin.load(Acquire); // `Release` in `Guard::of`
        if begin != 0 && (begin..entry.end.load(Relaxed)).contains(&address) {
            return Some(entry);
        }
        at = entry.next;
    }
    None
}

/// Maps a page of zeros at an address that has none.
fn put_page(address: usize) -> bool {
    let page = PAGE.load(Relaxed); // stored before the handler was installed
    // SAFETY: the page lies in a mapping that is guarded, and nothing was readable there.
    let put = unsafe {
        libc::mmap(
            (address & !(page - 1)) as *mut libc::c_void,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    put != libc::MAP_FAILED
}
