//! Classes that are made while the program runs: a table that only grows, by keys, and a list of all of them
//! in the order in which they were made.
//!
//! The thread that makes a class is inside the request that first reached a call site, may be under a filter
//! for system calls, and a child may be forked at any moment. So there is no lock here and no system call but
//! what memory takes: a class is linked into its chain, and then into the list, by one compare-and-swap each.
//! A thread finds the class as soon as it is in its chain; by then its bits for the recordings that take
//! first events are set. What the agent's threads do with the list they do under the agent's lock.
//!
//! A recording can begin or end between the maker's look at the slots and the moment when the class is in the
//! list. Both sides store first and then look (`SeqCst`): the maker that finds the slots changed sets its
//! bits right under the agent's lock; otherwise the agent's thread finds the class. Only in that moment can
//! the maker wait.
//!
//! In a child that is forked between the two links the class is in its chain and in no list: it keeps its
//! events ([`first`](super::first)), and gets no id.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*, fence};

use tracewing_abi::first::{self, Key};
use tracewing_abi::message::{ClassesWriter, MAX_MESSAGE, decode_classes};
use tracewing_abi::schema::Class;
use tracewing_ring::thread::RECORDINGS;

use crate::Event;
use crate::class::EventClass;

/// A class, which is never freed.
#[repr(C)]
pub(super) struct Made {
    class: EventClass,
    description: Class<'static>,
    key: Key,
    encoded: Box<[u8]>,
    /// For each recording, in which the description was written last (`first::place`), 0 for none.
    described: [AtomicU64; RECORDINGS],
    /// The next one of its chain, and the one that was made before it. Set before the class is linked.
    next: *const Made,
    older: *const Made,
}

const CHAINS: usize = 256;

static TABLE: [AtomicPtr<Made>; CHAINS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHAINS];

/// The first event of a class, or its description.
#[derive(crate::Event)]
#[event(crate = crate, provider = "tracewing", name = "first", level = "info")]
pub(super) struct First<'a> {
    low: u64,
    high: u64,
    pid: u32,
    payload: &'a [u8],
}

/// The class of [`First`], which has no site.
pub(super) fn class_of_first() -> &'static EventClass {
    First::class()
}

/// The slots of the recordings that take first events, a bit each.
pub(super) fn taken() -> u32 {
    let is_taken = |slot: &usize| First::class().want(*slot).id() != 0;
    (0..RECORDINGS).filter(is_taken).fold(0, |taken, slot| taken | 1 << slot)
}

/// The one that was made last.
static NEWEST: AtomicPtr<Made> = AtomicPtr::new(ptr::null_mut());

impl Made {
    /// What [`add`] has made this class of.
    ///
    /// # Safety
    /// [`add`] has made it.
    pub(super) unsafe fn of(class: &'static EventClass) -> &'static Self {
        // SAFETY: the first part of a `Made` that is never freed, whose address `add` has given for the
        // whole.
        unsafe { &*ptr::from_ref(class).cast::<Self>() }
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    /// The description, as messages have it.
    pub(super) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Where the description was written last for a recording.
    pub(super) fn described(&self, slot: usize) -> &AtomicU64 {
        &self.described[slot]
    }

    /// The class, identified by its address.
    fn class(this: *const Self) -> &'static EventClass {
        // SAFETY: it is never freed.
        unsafe { &*this.cast::<EventClass>() }
    }
}

extern "C" fn describe(class: &'static EventClass) -> &'static Class<'static> {
    // SAFETY: only `add` makes classes with this function.
    &unsafe { Made::of(class) }.description
}

/// The class with this description, one that was made before or a new one; and whether the recordings that
/// take first events are still the same, so that its bits are right. `None` if it is too large for a message.
pub(super) fn add(description: Class<'static>) -> Option<(&'static EventClass, bool)> {
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut writer = ClassesWriter::new(&mut buffer).ok()?;
    writer.push(&description).ok()?;
    let encoded: Box<[u8]> = decode_classes(writer.finish()).ok()?.next()?.ok()?.into();
    let key = first::key(&encoded);
    let chain = &TABLE[key[0] as usize % CHAINS];
    let mut first = chain.load(Acquire); // with the release below
    if let Some(class) = find(first, key, &encoded) {
        return Some((class, true));
    }
    let new = Box::into_raw(Box::new(Made {
        class: EventClass::new(describe),
        description,
        key,
        encoded,
        described: [const { AtomicU64::new(0) }; RECORDINGS],
        next: first,
        older: ptr::null(),
    }));
    let taken = set_pending(Made::class(new));
    // Release, with the acquire loads here and in `find`: the class is whole.
    while let Err(now) = chain.compare_exchange(first, new, Release, Acquire) {
        // SAFETY: not linked yet, so this thread's own.
        if let Some(class) = find(now, key, unsafe { &(*new).encoded }) {
            // SAFETY: as above; no other thread has seen it.
            drop(unsafe { Box::from_raw(new) });
            return Some((class, true));
        }
        // SAFETY: as above.
        unsafe { (*new).next = now };
        first = now;
    }
    let class = Made::class(new);
    let mut newest = NEWEST.load(Relaxed); // only compared and handed on
    loop {
        // SAFETY: no thread reads this field before the class is in the list.
        unsafe { (*new).older = newest };
        // Release, with `since`.
        match NEWEST.compare_exchange(newest, new, Release, Relaxed) {
            Ok(_) => break,
            Err(now) => newest = now,
        }
    }
    fence(SeqCst); // with `since`: it finds the class, or this finds the slots as they are by then
    Some((class, self::taken() == taken))
}

/// Has the recordings take first events of a class that no other thread knows. Gives which do.
fn set_pending(class: &'static EventClass) -> u32 {
    let taken = taken();
    (0..RECORDINGS).filter(|slot| taken & 1 << slot != 0).for_each(|slot| class.set_pending(slot));
    taken
}

/// Looks for a class in a chain from `made` on.
fn find(mut made: *const Made, key: Key, encoded: &[u8]) -> Option<&'static EventClass> {
    // SAFETY: null, or a class that is linked and thus never freed; the caller has got it by an acquire load.
    while let Some(one) = unsafe { made.as_ref() } {
        if one.key == key && *one.encoded == *encoded {
            return Some(Made::class(made));
        }
        made = one.next;
    }
    None
}

/// How far the list was looked at.
#[derive(Clone, Copy)]
pub(super) struct Seen(*const Made);

// SAFETY: only compared, and set to what is never freed.
unsafe impl Send for Seen {}

impl Seen {
    pub(super) const NONE: Self = Self(ptr::null());
}

/// The classes that were made since, the oldest first.
pub(super) fn since(seen: &mut Seen) -> Vec<&'static EventClass> {
    fence(SeqCst); // with `add`
    let newest: *const Made = NEWEST.load(Acquire); // with `add`
    let (mut made, mut classes) = (newest, Vec::new());
    while !ptr::eq(made, seen.0) {
        // SAFETY: a class in the list, since the one that was seen, or null, comes in it after all newer
        // ones.
        let Some(one) = (unsafe { made.as_ref() }) else { break };
        classes.push(Made::class(made));
        made = one.older;
    }
    seen.0 = newest;
    classes.reverse();
    classes
}
