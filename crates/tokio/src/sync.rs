//! tokio's locks, channels and notifications, which tell who waits for what and who has it.
//!
//! Each type wraps tokio's and leads to it ([`Deref`](std::ops::Deref)): what is not here is tokio's own, and
//! tells nothing.

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
