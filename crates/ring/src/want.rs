//! Whether a recording wants the events of a class: one word for each class and recording, which the event
//! path looks at before it does anything and again inside its sequence.

use crate::sync::AtomicU32;
use crate::sync::Ordering::*;

/// 0, or id and major class. An event is committed only while the word has the id that it was begun with, so
/// whoever clears it and then makes every thread leave its sequence (`membarrier`, `PRIVATE_EXPEDITED_RSEQ`)
/// knows that no event of the class follows (protocol `Publish`).
#[repr(transparent)]
#[derive(Debug)]
pub struct Want(AtomicU32);

/// Where the major class is in the word: a byte of its own.
const MAJOR_SHIFT: u32 = 16;

impl Want {
    /// Offset of the byte that has the major class.
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    pub(crate) const MAJOR: usize = MAJOR_SHIFT as usize / 8;

    /// Not wanted.
    #[cfg(not(loom))]
    pub const fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Wanted under this id, which is not 0, as of this major class (below
    /// [`tracewing_abi::schema::MAJORS`]).
    pub fn of(id: u16, major: u8) -> Self {
        Self(AtomicU32::new(word(id, major)))
    }

    /// The id, 0 where the class is not wanted.
    #[inline(always)]
    pub fn id(&self) -> u16 {
        self.0.load(Relaxed) as u16 // only compared, inside the sequence again; says nothing about other memory
    }

    /// Id and major class.
    pub fn get(&self) -> Option<(u16, u8)> {
        let word = self.0.load(Relaxed);
        (word != 0).then_some((word as u16, (word >> MAJOR_SHIFT) as u8))
    }

    /// From now on wanted under this id.
    pub fn set(&self, id: u16, major: u8) {
        self.0.store(word(id, major), Release); // what the id stands for was said before
    }

    /// From now on not wanted; final with the caller's `membarrier`.
    pub fn clear(&self) {
        self.0.store(0, SeqCst); // partner: the caller's membarrier, behind which every sequence finds the id gone
    }
}

fn word(id: u16, major: u8) -> u32 {
    u32::from(id) | u32::from(major) << MAJOR_SHIFT
}
