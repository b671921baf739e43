//! The slow half of the event path: events of any size, and all events while something stands in the fast half's way:
//! the thread's first event, a full sub-buffer, a quiet time of more than 2^32 cycles, protocol `Smp` where its own fast
//! half (`smp`) does not know the thread or the process records itself.
//!
//! Every way out either has written the event or has counted it lost, and nothing retries without bound.

use core::mem::MaybeUninit;
use core::sync::atomic::{Ordering::*, compiler_fence};

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER};
use tracewing_abi::region::{Loss, Protocol};
use tracewing_ring::lttng::{Look, Smp};
use tracewing_ring::publish::{Destination, Opened, Outcome};
use tracewing_ring::{Segment, Want, publish, thread};

use super::attach::{Joined, RSEQ_OFFSET, Visit, joined, process_key, stop};
use super::smp::is_wanted;
use super::system;
#[cfg(target_arch = "x86_64")]
use super::unprotected;
use crate::Event;
use crate::class::EventClass;
use crate::payload::Sink;

/// Attempts before the event is counted lost. Each but the first means that another thread has opened a sub-buffer, that
/// this one has migrated, or that the process was attached anew.
const ATTEMPTS: u32 = 32;

/// A thread's first event: which process the thread belongs to, and its name.
#[derive(crate::Event)]
#[event(crate = crate, provider = "tracewing", level = "info", print = "thread {name} of process {pid}")]
struct Thread<'a> {
    /// The process id.
    pid: i32,
    name: &'a str,
}

/// The class of [`Thread`], which has no site.
pub(crate) fn thread_class() -> &'static EventClass {
    Thread::class()
}

/// Whether there is anything left to do.
pub(super) enum Step {
    Done,
    Again,
}

/// Writes the event with this id and payload, or counts it lost.
///
/// # Safety
/// Every segment is readable.
#[cold]
#[inline(never)]
pub(crate) unsafe fn write(class: &'static EventClass, slot: usize, id: u16, segments: &[Segment]) {
    // SAFETY: the caller's.
    system::keeping_errno(|| unsafe { attempt_all(class, slot, id, segments) });
}

unsafe fn attempt_all(class: &'static EventClass, slot: usize, id: u16, segments: &[Segment]) {
    for _ in 0..ATTEMPTS {
        let Some(joined) = joined(slot) else { return };
        if joined.region.is_closed() {
            return stop(&joined);
        }
        // Before the thread is announced, which it is with its first event that is wanted.
        if !is_wanted(class, slot, id, &joined.region) {
            return;
        }
        let size = Segment::total(segments).saturating_add(EXTENDED_HEADER + CONTEXT);
        if size > joined.region.geometry().largest_event() {
            return count_loss(&joined, Loss::TooLarge);
        }
        // SAFETY: the caller's.
        if let Step::Done = unsafe { attempt(&joined, class.want(slot), id, segments) } {
            return;
        }
    }
    if let Some(joined) = joined(slot) {
        count_loss(&joined, Loss::Interrupted);
    }
}

unsafe fn attempt(joined: &Visit, want: &Want, id: u16, segments: &[Segment]) -> Step {
    let shared = thread::with(|mark| mark.shared.load(Relaxed) != 0);
    // A child on its parent's memory has a process id of its own, with which it cannot ask for its parent.
    let Some(key) = process_key(joined, !shared) else {
        if !joined.is_current() {
            return Step::Again; // another region now, or none
        }
        count_loss(joined, Loss::Unprotected);
        return Step::Done;
    };
    match joined.region.protocol() {
        #[cfg(target_arch = "x86_64")]
        Protocol::Publish if shared => {
            let tid = announce_shared(joined, want, key);
            // SAFETY: the caller's.
            unsafe { unprotected::write(joined, key, tid, want, id, segments) };
            Step::Done
        }
        Protocol::Publish => {
            let to = Destination {
                attachment: joined.attachment(),
                key,
                rseq_offset: RSEQ_OFFSET.load(Relaxed),
                tid: enter(joined, want, key),
            };
            // SAFETY: the segments by the caller. The visit keeps the region mapped; the thread is registered
            // by the C library, and its block is not shared.
            unsafe { publish_once(joined, to, want, id, segments) }
        }
        Protocol::Smp => {
            let tid = if shared { announce_shared(joined, want, key) } else { enter(joined, want, key) };
            // SAFETY: the segments by the caller.
            unsafe { smp_once(joined, tid, id, segments) };
            Step::Done
        }
        // No recorder gives such a region to threads, which migrate.
        Protocol::Local => {
            count_loss(joined, Loss::Unprotected);
            Step::Done
        }
    }
}

/// Protocol `Smp`. By itself, since it takes kilobytes of stack where nothing is optimised, and handlers of signals may have few.
///
/// # Safety
/// Every segment is readable.
#[inline(never)]
unsafe fn smp_once(joined: &Visit, tid: i32, id: u16, segments: &[Segment]) {
    // SAFETY: the segments by the caller; the visit keeps the region mapped. A loss is counted there.
    let _ = unsafe { Look::<Smp>::new(&joined.region, cpu_of(joined), true).write(tid, id, segments) };
}

/// One attempt with protocol `Publish`; the stamp is always ordered, since this half is slower than a fence anyway.
///
/// # Safety
/// As for [`publish::gather`] and [`publish::open`].
pub(super) unsafe fn publish_once(
    joined: &Joined,
    to: Destination,
    want: &Want,
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
        Outcome::Written | Outcome::Unwanted => Step::Done,
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

/// Makes the calling thread known under `key`, and announces it in the trace if it is new there. Gives its id.
fn enter(joined: &Visit, want: &Want, key: u64) -> i32 {
    thread::with(|mark| {
        let entry = &mark.entries[joined.slot()];
        if entry.key.load(Relaxed) == key {
            return entry.tid.load(Relaxed);
        }
        let tid = system::thread_id();
        entry.tid.store(tid, Relaxed);
        compiler_fence(Release); // a signal handler that finds the key finds the id
        entry.key.store(key, Relaxed);
        if entry.announced.swap(short(key), Relaxed) != short(key) {
            announce(joined, want);
        }
        tid
    })
}

/// As much of a key as tells one recording, or process, from the one before.
fn short(key: u64) -> i32 {
    (key >> 1) as i32
}

/// Announces a task that uses another thread's block, or whose block is used, and gives its id.
fn announce_shared(joined: &Visit, want: &Want, key: u64) -> i32 {
    let tid = system::thread_id();
    let is_new = |mark: &thread::Mark| {
        let entry = &mark.entries[joined.slot()];
        let is_owner = entry.tid.load(Relaxed) == tid && entry.announced.load(Relaxed) == short(key);
        !is_owner && mark.announced_shared.swap(tid, Relaxed) != tid
    };
    if thread::with(is_new) {
        announce(joined, want);
    }
    tid
}

/// Writes the event [`Thread`] into one recording, as of the major class of the event that is at hand, so that it is there
/// whenever that is.
fn announce(joined: &Visit, want: &Want) {
    let (Some((id, _)), Some((_, major))) = (Thread::class().want(joined.slot()).get(), want.get()) else {
        return;
    };
    let name = system::thread_name();
    let thread = Thread { pid: system::process_id(), name: up_to_nul(&name) };
    thread.send(Announce { joined, want: &Want::of(id, major), id });
}

fn up_to_nul(name: &[u8]) -> &str {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    core::str::from_utf8(name).unwrap_or("?")
}

/// Takes the payload of a [`Thread`].
struct Announce<'a> {
    joined: &'a Visit,
    want: &'a Want,
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
        unsafe { self.gather::<ORDERED>(&[Segment { start: payload.as_ptr().cast(), len: LEN }]) };
    }

    unsafe fn gather<const ORDERED: bool>(self, segments: &[Segment]) {
        for _ in 0..ATTEMPTS {
            // SAFETY: the caller's.
            if let Step::Done = unsafe { attempt(self.joined, self.want, self.id, segments) } {
                return;
            }
        }
        count_loss(self.joined, Loss::Interrupted);
    }
}

/// Counts an event lost on the CPU that the thread runs on.
pub(super) fn count_loss(joined: &Joined, loss: Loss) {
    joined.region.cpu(cpu_of(joined)).count_loss(loss);
}

fn cpu_of(joined: &Joined) -> usize {
    system::current_cpu().min(joined.region.geometry().cpus() - 1)
}
