//! The standard library's locks, told: they stand where its own would, and the recording has who waited for
//! which of them, who had it, for how long, and where in the program that was.
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
//! Functions, results and errors are the originals'; the guards lead to the originals. While a recording is
//! there, a lock is tried first. Where that fails, `lock:requested` tells it, the thread tries a few times
//! more, which `lock:spun` counts, and then it waits as the original does. An acquisition without contention
//! is the event `lock:acquired`, and the release `lock:released`; both may be emitted wherever events may.
//! While nobody records, an acquisition costs one load and a jump more, and a release one instruction.
//! `docs/reference/locks.md` says what the events mean together, `tracewing locks` makes tables of them.
//!
//! | module | does |
//! |---|---|
//! | `call` | tries, spins, waits, and tells it |
//! | `held` | guards |
//! | `mutex`, `rwlock`, `condvar` | the standard library's |
//! | `parking_lot` | those of that crate |
//! | `events` | the events of provider `lock` |

mod call;
mod condvar;
#[doc(hidden)]
pub mod events;
mod held;
mod mutex;
#[cfg(feature = "parking_lot")]
pub mod parking_lot;
mod rwlock;

pub use condvar::Condvar;
pub use held::Held;
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult, WaitTimeoutResult};
