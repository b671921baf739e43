//! Instrumented versions of the standard library's locks. They replace the originals; the recording then
//! shows which thread waited for which lock, which held it, for how long, and where in the program.
//!
//! ```
//! use tracewing::sync::{Condvar, Mutex};
//!
//! static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
//! static FILLED: Condvar = Condvar::new();
//!
//! QUEUE.lock().unwrap().push(7);
//! FILLED.notify_one();
//! let queue = FILLED.wait_while(QUEUE.lock().unwrap(), |queue| queue.is_empty()).unwrap();
//! assert_eq!(*queue, [7]);
//! ```
//!
//! With the feature `parking_lot`, [`parking_lot`] has those of the crate of that name.
//!
//! Functions, results and errors are the originals'; the guards lead to the originals. During a recording, a
//! lock is tried first. If that fails, `lock:requested` records it, the thread tries a few more times, which
//! `lock:spun` counts, and then it waits like the original. An acquisition without contention is the event
//! `lock:acquired`, and the release `lock:released`; both may be emitted wherever events may. Without a
//! recording, an acquisition costs an additional load and jump, and a release one instruction.
//! `docs/reference/locks.md` explains the events, `tracewing locks` makes tables of them.
//!
//! | module | does |
//! |---|---|
//! | `call` | tries, spins, waits, and records it |
//! | `held` | guards |
//! | `mutex`, `rwlock`, `condvar` | the standard library's; `like_std` what they do as there |
//! | `parking_lot` | those of that crate |
//! | `events` | the events of provider `lock` |

mod call;
mod condvar;
#[doc(hidden)]
pub mod events;
mod held;
mod like_std;
mod mutex;
#[cfg(feature = "parking_lot")]
pub mod parking_lot;
mod rwlock;

pub use condvar::Condvar;
pub use held::Held;
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult, WaitTimeoutResult};
