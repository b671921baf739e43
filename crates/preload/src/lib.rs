//! Intercepts the C library's locks in a program that was never instrumented, and records them; also the
//! calls that `-finstrument-functions` or `-pg -mfentry` insert into functions. This is
//! `libtracewing_preload.so`, which `tracewing record --locks` and `--functions` name in `LD_PRELOAD`.
//!
//! | module | does |
//! |---|---|
//! | `next` | finds the functions that ours replace |
//! | `caller` | exports ours, and passes them their return address |
//! | `take` | common to all locks: try, wait if that fails, record |
//! | `mutex`, `rwlock`, `spin`, `semaphore`, `condition`, `barrier` | the functions |
//! | `chain` | call chains of acquisitions, each described once |
//! | `unwind` | a thread's call chain |
//! | `frames` | … in code without unwind tables |
//! | `hash` | numbers that identify chains and files in events |
//! | `image` | the files of the code in chains |
//! | `seen` | what was described lately |
//! | `functions` | functions of programs that were built with calls at their beginning and end |
//! | `start` | what happens when the library is loaded, and in a forked child |
//! | `children` | `vfork` and `clone`, which the crate `tracewing` has to notice |
//! | `unload` | `dlclose`, after which other code may be at the same addresses |
//!
//! The events are those of `tracewing::sync`. An uncontended lock and unlock are two, `lock:acquired` and
//! `lock:released`. A lock is tried first; only if that fails, `lock:requested` records when the wait began
//! and which thread held the lock, and `lock:called_from` records the thread's call chain, which is found
//! while the thread would wait in any case. `docs/reference/locks.md` explains the events together.
//!
//! While the process is not recorded, a call costs one additional load and jump. The path of an event
//! allocates nothing, takes no lock and calls no function of the program: only the C library's own, by the
//! addresses found when the library was loaded, and the event path of `tracewing`. So the functions may be
//! called wherever the C library's may: from a `malloc`, from destructors, while threads end.
//!
//! # Limits
//! - glibc 2.35 on x86-64. Elsewhere the library is empty.
//! - Locks without calls between objects are not seen: those of static programs, of the C library itself
//!   (`FILE`s, `malloc`, C11's `mtx_lock`), of objects opened with `RTLD_DEEPBIND` or `dlmopen`, and locks
//!   that a program builds itself on `futex`, as Rust's standard library does.
//! - A thread that is cancelled in `pthread_cond_wait` reacquires the mutex without a `lock:condition_woken`.

#![cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#![warn(unreachable_pub)]

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
mod object;
mod rwlock;
mod seen;
mod semaphore;
mod spin;
mod start;
mod take;
mod unload;
mod unwind;

use object::{Object, address};
