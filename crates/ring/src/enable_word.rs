//! Whether a recording enables a class: one word per class and recording. The event path reads it before it
//! does anything, and again inside its sequence.

use crate::sync::AtomicU32;
use crate::sync::Ordering::*;

/// 0, or id and major class. An event is committed only while the word still has the id that the event began
/// with. So a thread that clears the word and then restarts every sequence (`membarrier`,
/// `PRIVATE_EXPEDITED_RSEQ`) knows that no event of the class follows (protocol `Publish`).
#[repr(transparent)]
#[derive(Debug)]
pub struct EnableWord(AtomicU32);

/// Position of the major class in the word: a byte of its own.
const MAJOR_SHIFT: u32 = 16;

impl EnableWord {
    /// Offset of the byte that holds the major class.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    pub(crate) const MAJOR: usize = MAJOR_SHIFT as usize / 8;

    /// A disabled class.
    #[cfg(not(loom))]
    pub const fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A class enabled under this id, which is not 0, with this major class (below
    /// [`tracewing_abi::schema::MAJORS`]).
    pub fn of(id: u16, major: u8) -> Self {
        Self(AtomicU32::new(word(id, major)))
    }

    /// The id; 0 while the class is disabled.
    #[inline(always)]
    pub fn id(&self) -> u16 {
        self.0.load(Relaxed) as u16 // only compared, inside the sequence again; says nothing about other memory
    }

    /// Id and major class; `None` while the class is disabled.
    pub fn get(&self) -> Option<(u16, u8)> {
        let word = self.0.load(Relaxed);
        (word != 0).then_some((word as u16, (word >> MAJOR_SHIFT) as u8))
    }

    /// Enables the class under this id from now on.
    pub fn set(&self, id: u16, major: u8) {
        self.0.store(word(id, major), Release); // the id was described before
    }

    /// Disables the class; final after the caller's `membarrier`.
    pub fn clear(&self) {
        self.0.store(0, SeqCst); // partner: the caller's membarrier, after which every sequence finds the id gone
    }
}

fn word(id: u16, major: u8) -> u32 {
    u32::from(id) | u32::from(major) << MAJOR_SHIFT
}
