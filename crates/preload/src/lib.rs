//! Stands in front of the C library's locks in a program that was never instrumented, and records them; and
//! of what functions call in programs that were built with `-finstrument-functions` or `-pg -mfentry`:
//! `libtracewing_preload.so`, which `tracewing record --locks` and `--functions` name in `LD_PRELOAD`.
//!
//! | module | does |
//! |---|---|
//! | `next` | finds the functions that stand behind ours |
//! | `caller` | exports ours, and tells them who calls |
//! | `take` | what all locks share: try, wait if that fails, tell |
//! | `mutex`, `rwlock`, `spin`, `semaphore`, `condition`, `barrier` | the functions |
//! | `chain` | call chains of acquisitions, each described once |
//! | `unwind` | where a thread comes from |
//! | `frames` | … once it is in code of which no table tells |
//! | `hash` | the numbers by which events name chains and files |
//! | `image` | which files the code in chains is from |
//! | `seen` | what was described lately |
//! | `functions` | functions of programs that were built to tell of them |
//! | `start` | what happens when the library is loaded, and in a forked child |
//! | `children` | `vfork` and `clone`, which the crate `tracewing` has to notice |
//! | `unload` | `dlclose`, behind which other code may be where some was |
//!
//! The events are those of `tracewing::sync`. An uncontended lock and unlock are two, `lock:acquired` and
//! `lock:released`. A lock is tried first; only where that fails, `lock:requested` tells when the wait began
//! and who had the lock, and `lock:called_from` by which call chain the thread came there, found while it
//! would wait in any case. `docs/reference/locks.md` says what the events mean together.
//!
//! While the process takes part in no recording, a call costs one load and a jump more. On the way of an
//! event nothing is allocated, no lock is taken and no other function of the program is called: the C
//! library's own, by the addresses that were found when the library was loaded, and what `tracewing` does for
//! an event. So the functions may be called from anywhere the C library's may: from a `malloc`, from
//! destructors, while threads end.
//!
//! # Limits
//! - glibc 2.35 on x86-64. Elsewhere the library is empty.
//! - Locks that are no calls between objects are not seen: those of static programs, of the C library inside
//!   of itself (`FILE`s, `malloc`, C11's `mtx_lock`), of objects opened with `RTLD_DEEPBIND` or `dlmopen`,
//!   and locks that a program builds itself on `futex`, as Rust's standard library does.
//! - A thread that is cancelled in `pthread_cond_wait` has the mutex again without a `lock:condition_woken`.

#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]

mod barrier;
mod caller;
mod chain;
mod children;
mod condition;
mod frames;
mod functions;
mod hash;
mod image;
mod mutex;
mod next;
mod rwlock;
mod seen;
mod semaphore;
mod spin;
mod start;
mod take;
mod unload;
mod unwind;

/// What a lock is to this library: a place in memory that belongs to the C library.
type Object = core::ffi::c_void;

/// The number of an object in events: its address.
fn address(object: *const Object) -> u64 {
    object.addr() as u64
}
