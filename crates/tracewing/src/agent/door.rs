//! Words in which an agent's thread leaves what a recorder has to know of a door
//! (`tracewing_abi::message::door`).

use core::sync::atomic::{AtomicI64, Ordering::*};

use tracewing_abi::message::door::Door;
use tracewing_ring::thread::RECORDINGS;

/// One for each recorder that can attach at the same time.
static WORDS: [AtomicI64; RECORDINGS] = [const { AtomicI64::new(Door::Closed.word()) }; RECORDINGS];

/// A word, until its door is closed or could not be made. Nothing in it says anything about other memory.
pub(super) struct Word(&'static AtomicI64);

impl Word {
    /// One that is not in use; `None` if all are. The error in it, if there is one, has been read, or its
    /// recorder takes the new door for its own: of two that enter, one does so in vain.
    pub(super) fn take() -> Option<Self> {
        let take = |word: &&AtomicI64| {
            let before = word.load(Relaxed);
            let is_free = before <= Door::Closed.word();
            is_free && word.compare_exchange(before, Door::Opening.word(), Relaxed, Relaxed).is_ok()
        };
        WORDS.iter().find(take).map(Self)
    }

    /// Where a recorder finds it.
    pub(super) fn address(&self) -> usize {
        core::ptr::from_ref(self.0).addr()
    }

    /// The word at an address that [`Word::address`] has given.
    pub(super) fn at(address: usize) -> Option<Self> {
        WORDS.iter().find(|word| core::ptr::from_ref(*word).addr() == address).map(Self)
    }

    pub(super) fn say(&self, door: Door) {
        self.0.store(door.word(), Relaxed);
    }
}

/// In a forked child: all doors are the parent's.
pub(super) fn forked() {
    WORDS.iter().for_each(|word| word.store(Door::Closed.word(), Relaxed));
}
