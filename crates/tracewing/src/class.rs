//! Event classes: a record of 64 bytes each, which the event path reads and the agent changes, and a
//! description that it points to.
//!
//! The agent finds classes by the sites of their events (crate `trigger`). A derived class's record is a
//! `static`. An ad-hoc class's ([`event!`](crate::event)) cannot be one, since a `static` cannot have the
//! types that the compiler infers from the arguments: it is laid out by the assembler, through directives in
//! the code of [`ad_hoc`](crate::declaration::ad_hoc) for those types, with a pointer to the instance of
//! `describe` for them. A class may have several records with equal descriptions; a recording gives equal
//! descriptions the same id.
//!
//! The agent decides what is enabled, and when; [`declaration`](crate::declaration) defines what a
//! description contains.

use core::num::NonZeroU16;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering::*};
use tracewing_abi::schema;
use tracewing_ring::EnableWord;
use tracewing_ring::thread::RECORDINGS;

/// An event class of this program: which recordings enable it, and what its events are.
///
/// Made by [`derive(Event)`](crate::Event) and [`event!`](crate::event) only. A cache line of its own.
#[repr(C, align(64))]
pub struct EventClass {
    wants: [EnableWord; RECORDINGS],
    /// The filter that each recording has for the class (`agent::filters`), 0 for none.
    filters: [AtomicU16; RECORDINGS],
    /// A bit for each recording that enables the class, and above them one for each that has a filter for it.
    wanted: AtomicU32,
    /// A bit for each recording that has given the class no id yet, but takes its first events
    /// (`agent::first`). It is in `wanted` then, too, without an id.
    pending: AtomicU32,
    describe: Describe,
}

const _: () = assert!(size_of::<EventClass>() == 64 && align_of::<EventClass>() == 64);

/// Gives the description of a class.
type Describe = extern "C" fn(&'static EventClass) -> &'static schema::Class<'static>;

/// The bits of recordings in `wanted`.
const ALL: u32 = FILTERED - 1;
/// The first recording's bit for a filter in `wanted`.
pub(crate) const FILTERED: u32 = 1 << RECORDINGS;

impl EventClass {
    /// A class that is off.
    #[doc(hidden)]
    pub const fn new(describe: Describe) -> Self {
        Self {
            wants: [const { EnableWord::none() }; RECORDINGS],
            filters: [const { AtomicU16::new(0) }; RECORDINGS],
            wanted: AtomicU32::new(0),
            pending: AtomicU32::new(0),
            describe,
        }
    }

    /// Whether some recording wants events of this class: one relaxed load.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.wanted() & ALL != 0
    }

    /// A bit for each recording that wants the class, and [`FILTERED`] bits.
    #[inline(always)]
    pub(crate) fn wanted(&self) -> u32 {
        self.wanted.load(Relaxed) // each recording's word says so again
    }

    #[inline(always)]
    pub(crate) fn want(&self, slot: usize) -> &EnableWord {
        &self.wants[slot]
    }

    /// The number of the recording's filter, 0 for none.
    pub(crate) fn filter(&self, slot: usize) -> u16 {
        self.filters[slot].load(Acquire) // with `set_filter`: the filter is in its place
    }

    /// Sets or clears the recording's filter for the class; returns the number of the previous one.
    pub(crate) fn set_filter(&self, slot: usize, number: u16) -> u16 {
        let before = self.filters[slot].swap(number, AcqRel); // with `filter`
        let bit = FILTERED << slot;
        match number {
            0 => self.wanted.fetch_and(!bit, Relaxed),
            _ => self.wanted.fetch_or(bit, Relaxed),
        };
        before
    }

    /// Enables the class for the recording, with this id; or disables it, without one, which is final after
    /// the caller's `membarrier`. Returns whether that changes [`EventClass::is_on`].
    pub(crate) fn set_enabled(&'static self, slot: usize, id: Option<NonZeroU16>) -> bool {
        let bit = 1 << slot;
        match id {
            Some(id) => {
                self.wants[slot].set(id.get(), self.description().major);
                self.wanted.fetch_or(bit, Relaxed) & ALL == 0
            }
            None => {
                self.wants[slot].clear();
                self.wanted.fetch_and(!bit, Relaxed) & ALL == bit
            }
        }
    }

    /// The recording takes first events of the class, until it has decided.
    pub(crate) fn set_pending(&self, slot: usize) {
        self.pending.fetch_or(1 << slot, Relaxed); // a reader that finds only the other bit finds no id either
        self.wanted.fetch_or(1 << slot, Relaxed);
    }

    /// Whether the recording takes first events of the class. Where not, it has an id if the recording wants
    /// it.
    pub(crate) fn is_pending(&self, slot: usize) -> bool {
        self.pending.load(Acquire) & 1 << slot != 0 // with `decided`
    }

    /// Marks the recording's decision as in force. Returns whether it was waited for.
    pub(crate) fn decided(&self, slot: usize) -> bool {
        self.pending.fetch_and(!(1 << slot), Release) & 1 << slot != 0 // partner: `is_pending`; the id is there
    }

    /// Name, level, fields and the like.
    pub fn description(&'static self) -> &'static schema::Class<'static> {
        (self.describe)(self)
    }
}
