//! The slow half of the event path: events of any size, and all events while something stands in the fast
//! half's way: the thread's first event, a full sub-buffer, a quiet time of more than 2^32 cycles, protocol
//! `Smp` where its own fast half (`smp`) does not know the thread or the process records itself.
//!
//! Every way out either has written the event or has counted it lost, and nothing retries without bound.

use core::mem::MaybeUninit;
use core::sync::atomic::{Ordering::*, compiler_fence};

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER};
use tracewing_abi::region::{Loss, Protocol};
use tracewing_ring::lttng::{Look, Smp};
use tracewing_ring::publish::{Destination, Opened, Outcome};
use tracewing_ring::{EnableWord, Segment, publish, thread};
use tracewing_units::Tid;

use super::attach::{Joined, RSEQ_OFFSET, Visit, joined, process_key, stop};
use super::identity::Identity;
use super::smp::is_wanted;
use super::{identity, names, system};
use crate::Event;
use crate::class::EventClass;
use crate::own::Thread;
use crate::payload::Sink;

/// Attempts before the event is counted lost. Each but the first means that another thread has opened a
/// sub-buffer, that this one has migrated, or that the process was attached anew.
const ATTEMPTS: u32 = 32;

/// The class of [`Thread`], which has no site.
pub(crate) fn thread_class() -> &'static EventClass {
    Thread::class()
}

/// Whether there is anything left to do.
enum Step {
    Written,
    /// The event is lost and counted, or no rule enables it.
    Done,
    Again,
}

/// Writes the event with this id and payload, or counts it lost. Says whether it is written.
///
/// # Safety
/// Every segment is readable.
#[cold]
#[inline(never)]
pub(crate) unsafe fn write(class: &'static EventClass, slot: usize, id: u16, segments: &[Segment]) -> bool {
    // SAFETY: the caller's.
    system::keeping_errno(|| unsafe { attempt_all(class, slot, id, segments) })
}

unsafe fn attempt_all(class: &'static EventClass, slot: usize, id: u16, segments: &[Segment]) -> bool {
    for _ in 0..ATTEMPTS {
        let Some(joined) = joined(slot) else { return false };
        if !joined.has_region() {
            if !joined.is_current() {
                continue; // another region now, or none
            }
            lose_in_child(&joined, class.want(slot).get().filter(|(now, _)| *now == id));
            return false;
        }
        if joined.region.is_closed() {
            if !joined.is_current() {
                continue;
            }
            stop(&joined);
            return false;
        }
        // Before the thread is announced, which it is with its first event that is wanted.
        if !is_wanted(class, slot, id, &joined.region) {
            return false;
        }
        let size = Segment::total(segments).saturating_add(EXTENDED_HEADER + CONTEXT);
        if size > joined.region.geometry().largest_event() {
            count_loss(&joined, Loss::TooLarge);
            return false;
        }
        // SAFETY: the caller's.
        match unsafe { attempt(&joined, class.want(slot), id, segments) } {
            Step::Written => return true,
            Step::Done => return false,
            Step::Again => {}
        }
    }
    if let Some(joined) = joined(slot) {
        count_loss(&joined, Loss::Interrupted);
    }
    false
}

/// # Safety
/// Every segment is readable.
unsafe fn attempt(joined: &Visit, want: &EnableWord, id: u16, segments: &[Segment]) -> Step {
    if let Some(loss) = of_thread() {
        count_loss(joined, loss);
        return Step::Done;
    }
    let Some(key) = process_key(joined) else {
        if !joined.is_current() {
            return Step::Again; // another region now, or none
        }
        // In a child that a signal handler has forked, or the recording has ended.
        lose_in_child(joined, want.get());
        return Step::Done;
    };
    let Some(tid) = enter(joined, want, key) else {
        count_loss(joined, Loss::Unknown);
        return Step::Done;
    };
    match joined.region.protocol() {
        Protocol::Publish => {
            let rseq_offset = RSEQ_OFFSET.load(Relaxed);
            let to = Destination { attachment: joined.attachment(), key, rseq_offset, tid };
            // SAFETY: the segments by the caller. The visit keeps the region mapped; the thread is registered
            // by the C library, and its block is not shared.
            unsafe { publish_once(joined, to, want, id, segments) }
        }
        Protocol::Smp => {
            // SAFETY: the segments by the caller.
            if unsafe { smp_once(joined, tid, id, segments) } { Step::Written } else { Step::Done }
        }
        // No recorder gives such a region to threads, which migrate.
        Protocol::Local => {
            count_loss(joined, Loss::Unprotected);
            Step::Done
        }
    }
}

/// Why the calling thread writes no events, if it does not.
fn of_thread() -> Option<Loss> {
    thread::with(|mark| match (mark.silent.load(Relaxed), mark.shared.load(Relaxed)) {
        (0, 0) => None,
        (0, _) => Some(Loss::Unprotected),
        _ => Some(Loss::Silent),
    })
}

/// Protocol `Smp`. By itself, since it takes kilobytes of stack where nothing is optimised, and handlers of
/// signals may have few.
///
/// # Safety
/// Every segment is readable.
#[inline(never)]
unsafe fn smp_once(joined: &Visit, tid: Tid, id: u16, segments: &[Segment]) -> bool {
    // SAFETY: the segments by the caller; the visit keeps the region mapped. A loss is counted there.
    unsafe { Look::<Smp>::new(&joined.region, buffer_of(joined), true).write(tid, id, segments) }.is_ok()
}

/// One attempt with protocol `Publish`; the stamp is always ordered, since this half is slower than a fence
/// anyway.
///
/// # Safety
/// As for [`publish::gather`] and [`publish::open`].
unsafe fn publish_once(
    joined: &Joined,
    to: Destination<'_>,
    want: &EnableWord,
    id: u16,
    segments: &[Segment],
) -> Step {
    // SAFETY: the caller's.
    let mut outcome = unsafe { publish::gather::<true>(to, want, id, segments, false) };
    if outcome == Outcome::Extend {
        // SAFETY: the caller's.
        outcome = unsafe { publish::gather::<true>(to, want, id, segments, true) };
    }
    match outcome {
        Outcome::Written => Step::Written,
        Outcome::Disabled => Step::Done,
        Outcome::Detached | Outcome::Extend => Step::Again,
        // SAFETY: the caller's.
        Outcome::Full { cpu, head } => match unsafe { publish::open(to, &joined.region, cpu, head) } {
            Opened::Retry => Step::Again,
            Opened::Full => Step::Done,
            Opened::Interrupted => {
                count_loss(joined, Loss::Interrupted);
                Step::Done
            }
        },
        Outcome::Interrupted => {
            count_loss(joined, Loss::Interrupted);
            Step::Done
        }
    }
}

/// Registers the calling thread under `key`, and announces it in the trace if it is new there. Returns its
/// id, `None` if it is unknown.
fn enter(joined: &Visit, want: &EnableWord, key: u64) -> Option<Tid> {
    thread::with(|mark| {
        let entry = &mark.entries[joined.slot()];
        if entry.key.load(Relaxed) == key {
            return Some(Tid(entry.tid.load(Relaxed)));
        }
        let identity = identity::of_caller()?;
        entry.tid.store(identity.tid.0, Relaxed);
        compiler_fence(Release); // a signal handler that finds the key finds the id
        entry.key.store(key, Relaxed);
        if entry.announced.swap(short(key), Relaxed) != short(key) {
            announce(joined, want, identity);
        }
        Some(identity.tid)
    })
}

/// Enough of a key to distinguish one recording, or process, from the previous one.
fn short(key: u64) -> i32 {
    (key >> 1) as i32
}

/// Writes the event [`Thread`] into one recording, as of the major class of the event that is at hand, so
/// that it is there whenever that is.
fn announce(joined: &Visit, want: &EnableWord, identity: Identity) {
    let (Some((id, _)), Some((_, major))) = (Thread::class().want(joined.slot()).get(), want.get()) else {
        return;
    };
    let name = names::of_caller();
    let thread = Thread { pid: identity.pid.0, name: up_to_nul(&name) };
    thread.send(Announce { joined, want: &EnableWord::of(id, major), id });
}

fn up_to_nul(name: &[u8]) -> &str {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    core::str::from_utf8(name).unwrap_or("?")
}

/// Takes the payload of a [`Thread`].
struct Announce<'a> {
    joined: &'a Visit,
    want: &'a EnableWord,
    id: u16,
}

impl Sink for Announce<'_> {
    /// # Safety
    /// As for the trait.
    unsafe fn fixed<const LEN: usize, const WORDS: usize, const ORDERED: bool>(
        self,
        payload: [MaybeUninit<u64>; WORDS],
    ) {
        // SAFETY: the caller's.
        unsafe { self.gather::<ORDERED>(&[Segment::new(payload.as_ptr().cast(), LEN)]) };
    }

    unsafe fn gather<const ORDERED: bool>(self, segments: &[Segment]) {
        for _ in 0..ATTEMPTS {
            // SAFETY: the caller's.
            match unsafe { attempt(self.joined, self.want, self.id, segments) } {
                Step::Written | Step::Done => return,
                Step::Again => {}
            }
        }
        count_loss(self.joined, Loss::Interrupted);
    }
}

/// Counts an event as lost in a child that has not inherited its parent's region and waits for its own, or
/// never gets one: an event of a class that this word enables, or of one that has no word yet. The child does
/// not take part in a session of the parent's own.
#[cold]
pub(super) fn lose_in_child(joined: &Joined, want: Option<(u16, u8)>) {
    let Some((children, (_, major))) = joined.children().zip(want) else { return };
    // A wish, which orders nothing.
    if children.majors.load(Relaxed) >> major & 1 != 0 {
        children.count(of_thread().unwrap_or(Loss::Unready));
    }
}

/// Counts an event lost that has more segments than there is room for.
#[cold]
pub(crate) fn too_large(slot: usize) {
    if let Some(joined) = joined(slot) {
        count_loss(&joined, Loss::TooLarge);
    }
}

/// Counts an event lost on the CPU that the thread runs on.
pub(super) fn count_loss(joined: &Joined, loss: Loss) {
    if !joined.has_region() {
        joined.children().into_iter().for_each(|children| children.count(loss));
        return;
    }
    joined.region.buffer(buffer_of(joined)).count_loss(loss);
}

/// The index of the buffer of the CPU that the thread runs on.
fn buffer_of(joined: &Joined) -> usize {
    system::current_cpu().min(joined.region.geometry().cpus() - 1)
}
