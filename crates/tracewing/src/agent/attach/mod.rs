//! Which buffers the process writes to: a [`Slot`] for each recording that it takes part in.
//!
//! [`Slot::joined`] holds the region, its use, and its [`Own`] page, with the attachment that the fast half
//! of the event path reads. A forked child inherits all of that and the classes' ids, and finds the page
//! wiped. Where the region is shared, its first event comes to [`process_key`], which attaches it again. Else
//! the child has not got the region: it takes over the one that its parent had for it ([`take_over`],
//! `spare`), or counts its losses ([`Joined::children`]) until the agent's thread has got one for it.
//!
//! Threads may be anywhere between a look at a slot and their last access to what it names. In the slow half
//! they are counted ([`Visit`]); in the fast half of `Publish` they are in a sequence, which `membarrier`
//! restarts. So a region can be unmapped when the recording is over. The fast half of `Smp` is not counted:
//! there zeroes take the region's place, and two pages stay.

//!
//! | file | does |
//! |---|---|
//! | `buffers` | maps regions, and unmaps those that no thread writes to |
//! | `begin` | makes a region the one that the process writes to, after forks, too |
//! | `leave` | leaves a recording |
//! | `visits` | counts the threads that use a region |

mod begin;
mod buffers;
mod leave;
mod visits;

use core::ops::Deref;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicPtr, AtomicU64, Ordering::*};

use tracewing_abi::children::Children;
use tracewing_abi::region::Protocol;
use tracewing_ring::thread::RECORDINGS;
use tracewing_ring::{Attachment, Region};

use super::access::Access;
use super::{identity, names, system};

#[cfg(feature = "session")]
pub(crate) use begin::{attach, set_majors};
pub(super) use begin::{attach_buffers, process_key, take_over, take_part};
pub(super) use buffers::{Buffers, unmap};
pub(super) use leave::{end, leave, stop};

/// The region that a process writes to. A forked child that has not got it finds nothing at its place: the
/// key is looked for first ([`Joined::has_region`]).
pub(super) struct Joined {
    pub(super) region: Region,
    /// A forked child writes to it, too.
    inherited: bool,
    /// Where a child counts that has none.
    children: Option<&'static Children>,
    /// What the recorder calls it, where the process has taken it over from its parent; else 0.
    number: u64,
    access: Access,
    own: &'static Own,
}

/// What belongs to one process and one region: a forked child finds it zeroed.
#[repr(C)]
struct Own {
    attachment: Attachment,
    /// Key of the process where the protocol is `Smp`, whose events never take the fast half of `Publish`.
    smp_key: AtomicU64,
}

/// Of a region that this process does not write to any more.
static NO_KEYS: Own = Own { attachment: Attachment::new(), smp_key: AtomicU64::new(0) };

static DETACHED: Attachment = Attachment::new();
/// Distance of a thread's `struct rseq` from its thread pointer, once the process is attached with `Publish`.
pub(crate) static RSEQ_OFFSET: AtomicIsize = AtomicIsize::new(0);

/// The process's part in one recording.
pub(crate) struct Slot {
    joined: AtomicPtr<Joined>,
    /// A page that was detached. It is never unmapped, since the fast half may have loaded its address and
    /// not yet its key.
    spare: AtomicPtr<Own>,
    /// The region, if its protocol is `Smp` and it is a recorder's: for the fast half of that protocol.
    smp: AtomicPtr<Joined>,
    taken: AtomicBool,
}

/// What the fast half of the event path reads, for each slot; always valid.
pub(crate) static ATTACHMENTS: [AtomicPtr<Attachment>; RECORDINGS] =
    [const { AtomicPtr::new((&raw const DETACHED).cast_mut()) }; RECORDINGS];

/// All of them, taken or not.
static SLOTS: [Slot; RECORDINGS] = [const { Slot::new() }; RECORDINGS];

impl Slot {
    const fn new() -> Self {
        Self {
            joined: AtomicPtr::new(core::ptr::null_mut()),
            spare: AtomicPtr::new(core::ptr::null_mut()),
            smp: AtomicPtr::new(core::ptr::null_mut()),
            taken: AtomicBool::new(false),
        }
    }

    /// A free one's number, from now on the caller's.
    pub(super) fn take() -> Option<usize> {
        SLOTS.iter().position(|slot| !slot.taken.swap(true, Acquire)) // with `give_back`
    }

    /// The region for the fast half of protocol `Smp`.
    pub(super) fn smp(number: usize) -> &'static AtomicPtr<Joined> {
        &SLOTS[number].smp
    }

    /// Frees the slot for another recording, once no class is enabled in it.
    pub(super) fn give_back(number: usize) {
        SLOTS[number].taken.store(false, Release); // with `take`
    }
}

/// Number of times that a slot is read before it is assumed to be changing permanently.
const ATTEMPTS: u32 = 64;

/// The region in use, held as long as the value.
pub(super) struct Visit {
    joined: &'static Joined,
    slot: usize,
    _counted: Option<visits::Counted>,
}

impl Deref for Visit {
    type Target = Joined;

    fn deref(&self) -> &Joined {
        self.joined
    }
}

impl Visit {
    /// Whether this is still the region to use.
    pub(super) fn is_current(&self) -> bool {
        core::ptr::eq(SLOTS[self.slot].joined.load(Relaxed), self.joined)
    }

    pub(super) fn slot(&self) -> usize {
        self.slot
    }
}

/// The region in use in a slot, if there is one. None either after [`ATTEMPTS`] sessions have begun or ended
/// between two looks: an event then belongs to no recording that is known to live.
pub(super) fn joined(slot: usize) -> Option<Visit> {
    for _ in 0..ATTEMPTS {
        let joined = SLOTS[slot].joined.load(Acquire); // with the release in `begin`
        if joined.is_null() {
            return None;
        }
        let counted = visits::count();
        // Unchanged: a thread that ends the recording now waits for this visit. Ordered after the count by
        // the fence there.
        if core::ptr::eq(SLOTS[slot].joined.load(Acquire), joined) {
            return Some(Visit {
                // SAFETY: freed when no visit is left.
                joined: unsafe { &*joined },
                slot,
                _counted: counted,
            });
        }
    }
    None
}

/// Whether protocol `Publish` can be used: on x86-64, where the C library has registered restartable
/// sequences for its threads (glibc since 2.35, unless its tunable `glibc.pthread.rseq` is 0) in an area that
/// has all that is needed.
pub(crate) fn can_publish() -> bool {
    tracewing_ring::thread::rseq_of_libc().is_some()
}

impl Joined {
    /// How its recorder is reached.
    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// Whether a forked child keeps using the region.
    pub(super) fn is_inherited(&self) -> bool {
        self.inherited
    }

    /// Whether this process has the region, and not its parent alone.
    pub(super) fn has_region(&self) -> bool {
        self.inherited || self.key() != 0
    }

    /// What the recorder calls the region, if the process has taken it over from its parent.
    pub(super) fn number(&self) -> Option<u64> {
        (self.number != 0).then_some(self.number)
    }

    /// Where a child counts that does not have the region; `None` if they are not counted, or the recording
    /// is over.
    pub(super) fn children(&self) -> Option<&'static Children> {
        self.children.filter(|children| children.is_open())
    }

    fn key(&self) -> u64 {
        match self.region.protocol() {
            Protocol::Publish => self.own.attachment.key(),
            Protocol::Smp | Protocol::Local => self.own.smp_key.load(Relaxed), // only compared; says nothing about other memory
        }
    }

    /// What the fast half reads while this is the region in use.
    pub(super) fn attachment(&self) -> &'static Attachment {
        &self.own.attachment
    }

    /// The key of this very process, if it is attached with protocol `Smp`.
    pub(super) fn smp_key(&self) -> Option<u64> {
        let key = self.own.smp_key.load(Relaxed); // only compared; says nothing about other memory
        (key != 0).then_some(key)
    }
}
