//! A user thread that has not ended, in eight bytes.

use std::num::NonZeroU64;
use tracewing::user_thread::UserThread;

/// A user thread's number, and whether wakers of it are [kept](Self::kept), in eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Living(NonZeroU64);

impl Living {
    /// A bit that the number never reaches.
    const KEPT: u64 = 1 << 63;

    pub(crate) fn thread(self) -> UserThread {
        let number = NonZeroU64::new(self.0.get() & !Self::KEPT);
        number.expect("it was a user thread's").into()
    }

    /// The same user thread, with a kept waker that must learn of its end.
    pub(crate) fn kept(self) -> Self {
        Self(self.0 | Self::KEPT)
    }

    pub(crate) fn is_kept(self) -> bool {
        self.0.get() & Self::KEPT != 0
    }
}

impl From<UserThread> for Living {
    fn from(thread: UserThread) -> Self {
        Self(thread.get())
    }
}
