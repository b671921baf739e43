//! tokio's locks, channels and notifications, which record which task waits for what and which one holds it.
//!
//! Each type wraps tokio's and dereferences to it ([`Deref`](std::ops::Deref)): methods that are not listed
//! here are tokio's own, and record nothing.

mod held;
mod mpsc_channel;
mod mutex;
mod notify;
mod oneshot_channel;
mod rwlock;
mod semaphore;
mod waited;
mod watch_channel;

pub use held::Held;
pub use mutex::{Mutex, MutexGuard, OwnedMutexGuard};
pub use notify::Notify;
pub use rwlock::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
pub use waited::Waited;

/// Channels with several senders and one receiver.
pub mod mpsc {
    pub use super::mpsc_channel::{Receiver, Sender, UnboundedReceiver, channel, unbounded_channel};
    pub use tokio::sync::mpsc::{UnboundedSender, error};
}

/// Channels for one value.
pub mod oneshot {
    pub use super::oneshot_channel::{Receiver, channel};
    pub use tokio::sync::oneshot::{Sender, error};
}

/// Channels that keep the last value.
pub mod watch {
    pub use super::watch_channel::{Receiver, Sender, channel};
    pub use tokio::sync::watch::{Ref, error};
}
