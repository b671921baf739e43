//! The filters of classes: predicates that an event must satisfy before a recording takes it.
//!
//! They lie in a pool of places of constant size that is never freed. A place is reused once its filter is
//! disabled. A thread that is evaluating it at that moment gets some answer (evaluation is total on any
//! words), and the sequence that follows finds that the class's id in the recording has changed, or writes an
//! event that was begun before the change. So no thread has to wait.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use tracewing_ring::{Segment, thread};
use tracewing_rules::filter::{self, MAX_FILTER, Surroundings};
use tracewing_units::{Cpu, Pid, Tid};

use super::{ATTACHMENTS, identity, system};
use crate::class::EventClass;

/// Words of a place: how many words the filter has, and the filter.
const PLACE: usize = 1 + MAX_FILTER / 8;
/// Places of a chunk.
const CHUNK: usize = 64;
/// Most chunks; with the chunk's places, what a class's 16-bit number reaches.
const CHUNKS: usize = 1 << 10;

type Place = [AtomicU64; PLACE];

/// Chunks so far, each made when it is first needed and kept.
static POOL: [AtomicPtr<Place>; CHUNKS] = [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS];

/// The place with this number, 1 being the first.
fn place(number: u16) -> Option<&'static Place> {
    let index = usize::from(number.checked_sub(1)?);
    let chunk = NonNull::new(POOL.get(index / CHUNK)?.load(Acquire))?; // with the release in `Filters::grow`
    // SAFETY: a chunk has `CHUNK` places of zeroes or words, and is never unmapped.
    Some(unsafe { chunk.add(index % CHUNK).as_ref() })
}

/// Whether the recording's filter for the class, if there is one, accepts an event with this payload.
///
/// # Safety
/// Every segment is readable, and nothing writes to it meanwhile.
#[inline(never)]
pub(crate) unsafe fn accepts(class: &'static EventClass, slot: usize, segments: &[Segment]) -> bool {
    let Some([length, words @ ..]) = place(class.filter(slot)) else { return true };
    let length = length.load(Acquire) as usize; // with the release in `Filters::add`
    // SAFETY: a segment of the caller's, which stays readable and unchanged until the event is written.
    let bytes = segments.iter().map(|segment| unsafe { segment.bytes() });
    filter::evaluate(&words[..length.min(words.len())], bytes, &Here { slot })
}

/// Where an event is emitted. An id that is not known is 0: the event itself is then lost, and counted.
#[derive(Clone)]
struct Here {
    slot: usize,
}

impl Surroundings for Here {
    fn tid(&self) -> Tid {
        // SAFETY: a slot's attachment is always valid.
        let key = unsafe { &*ATTACHMENTS[self.slot].load(Relaxed) }.key();
        // A forked child finds its parent's id, under another key.
        let known = thread::with(|mark| {
            let entry = &mark.entries[self.slot];
            (entry.key.load(Relaxed) == key).then(|| Tid(entry.tid.load(Relaxed)))
        });
        known.or_else(|| Some(identity::of_caller()?.tid)).unwrap_or(Tid(0))
    }

    fn pid(&self) -> Pid {
        identity::of_caller().map_or(Pid(0), |caller| caller.pid)
    }

    fn cpu(&self) -> Cpu {
        Cpu::at(system::current_cpu())
    }
}

/// Which places are taken. Used by one thread at a time.
pub(super) struct Filters {
    free: Vec<u16>,
    chunks: usize,
}

impl Filters {
    pub(super) const fn new() -> Self {
        Self { free: Vec::new(), chunks: 0 }
    }

    /// Stores a filter in a free place and returns its number. `None` if there is no room, or the filter is
    /// invalid: then the class is disabled rather than recorded without the filter.
    pub(super) fn add(&mut self, filter: &[u8]) -> Option<u16> {
        if filter.len() > MAX_FILTER || !filter.len().is_multiple_of(8) {
            return None;
        }
        if self.free.is_empty() {
            self.grow()?;
        }
        let number = self.free.pop()?;
        let [length, words @ ..] = place(number)?;
        length.store(0, Relaxed);
        for (word, bytes) in words.iter().zip(filter.as_chunks::<8>().0) {
            word.store(u64::from_le_bytes(*bytes), Relaxed);
        }
        length.store(filter.len() as u64 / 8, Release); // with `evaluate`
        Some(number)
    }

    /// The place may be used again.
    pub(super) fn remove(&mut self, number: u16) {
        if number != 0 {
            self.free.push(number);
        }
    }

    fn grow(&mut self) -> Option<()> {
        let chunk = POOL.get(self.chunks)?;
        chunk.store(system::map_private(CHUNK * size_of::<Place>())?.as_ptr().cast(), Release); // with `place`
        let first = u16::try_from(self.chunks * CHUNK + 1).ok()?;
        self.chunks += 1;
        self.free.extend((first..=u16::MAX).take(CHUNK).rev());
        Some(())
    }
}
