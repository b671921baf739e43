//! Emits with protocol `Publish` the way the agent does: the fixed sequence, then the gathering one, then
//! opening.

use std::sync::atomic::Ordering::*;

use tracewing_abi::event::{CONTEXT, EXTENDED_HEADER};
use tracewing_abi::region::{Clock, Geometry, Loss, Protocol};
use tracewing_ring::publish::{self, Destination, Opened, Outcome};
use tracewing_ring::{Attachment, EnableWord, Region, Segment, thread};
use tracewing_units::{Cpu, Tid};

use crate::events::{self, Plan, fill, payload, plan};
use crate::machine;

/// Attempts before an event is counted lost: the agent's number.
const ATTEMPTS: u32 = 32;

/// Any of the thread's entries, and any major class.
pub const SLOT: usize = 5;
const MAJOR: u8 = 63;

fn entry_offset() -> isize {
    thread::with(|_| ());
    thread::entry_offset(SLOT).expect("the thread has just looked at its block")
}

/// A process's attachment to a region of its own.
pub struct Publisher {
    pub region: Region,
    attachment: Box<Attachment>,
    key: u64,
    rseq_offset: isize,
}

impl Publisher {
    /// A new region with a buffer for every CPU, attached. `None`, with a line on stderr, where there is no
    /// rseq.
    pub fn new(sub_buffers: usize, sub_buffer_bytes: usize) -> Option<Self> {
        let geometry = Geometry::new(machine::possible_cpus(), sub_buffers, sub_buffer_bytes).unwrap();
        Self::of(machine::region(geometry, Protocol::Publish, Clock::Tsc))
    }

    /// Attaches to a region, which stays mapped while this is used.
    pub fn of(region: Region) -> Option<Self> {
        let Some(rseq_offset) = thread::rseq_of_libc() else {
            tracewing_testing::skip(
                tracewing_testing::Cause::Processor,
                "the C library has registered no rseq",
            );
            return None;
        };
        let attachment = Box::new(Attachment::new());
        let key = attachment.attach(&region, thread::unique_key());
        Some(Self { region, attachment, key, rseq_offset })
    }

    /// Registers the calling thread under this thread id.
    pub fn enter(&self, tid: i32) {
        thread::with(|mark| {
            mark.entries[SLOT].tid.store(tid, Relaxed);
            mark.entries[SLOT].key.store(self.key, Relaxed);
        });
    }

    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// The destination that the calling thread writes to.
    pub fn destination(&self) -> Destination<'_> {
        Destination {
            attachment: &self.attachment,
            key: self.key,
            rseq_offset: self.rseq_offset,
            tid: Tid(thread::with(|mark| mark.entries[SLOT].tid.load(Relaxed))),
        }
    }

    /// One attempt of the fixed sequence.
    pub fn fixed<const LEN: usize, const ORDERED: bool>(&self, id: u16, payload: &[u8; LEN]) -> bool {
        let (enabled, entry, payload) = (EnableWord::of(id, MAJOR), entry_offset(), payload.as_ptr());
        // SAFETY: the payload has `LEN` bytes; the region stays mapped; the C library has registered this
        // thread.
        unsafe {
            publish::fixed::<LEN, ORDERED>(&*self.attachment, self.rseq_offset, entry, &enabled, id, payload)
        }
    }

    /// The same for a class with the word `enabled`.
    pub fn fixed_if<const LEN: usize>(&self, enabled: &EnableWord, id: u16, payload: &[u8; LEN]) -> bool {
        let (entry, payload) = (entry_offset(), payload.as_ptr());
        // SAFETY: as in `fixed`.
        unsafe {
            publish::fixed::<LEN, false>(&*self.attachment, self.rseq_offset, entry, enabled, id, payload)
        }
    }

    /// One attempt of the gathering sequence for a class with this word.
    pub fn gather_if(&self, enabled: &EnableWord, id: u16, segments: &[Segment]) -> Outcome {
        // SAFETY: as in `gather`.
        unsafe { publish::gather::<false>(self.destination(), enabled, id, segments, false) }
    }

    /// One attempt of the gathering sequence.
    pub fn gather(&self, id: u16, segments: &[Segment], extended: bool) -> Outcome {
        // SAFETY: tests pass segments of living slices; the rest as in `fixed`.
        unsafe {
            publish::gather::<false>(self.destination(), &EnableWord::of(id, MAJOR), id, segments, extended)
        }
    }

    /// One attempt to open the next sub-buffer.
    pub fn open(&self, cpu: Cpu, head: u64) -> Opened {
        // SAFETY: as in `fixed`.
        unsafe { publish::open(self.destination(), &self.region, cpu, head) }
    }

    /// Writes the event, or counts it as lost.
    pub fn emit(&self, id: u16, segments: &[Segment]) -> Result<(), Loss> {
        let size = Segment::total(segments) + EXTENDED_HEADER + CONTEXT;
        if size > self.region.geometry().largest_event() {
            return self.count(Loss::TooLarge);
        }
        for _ in 0..ATTEMPTS {
            let mut outcome = self.gather(id, segments, false);
            if outcome == Outcome::Extend {
                outcome = self.gather(id, segments, true);
            }
            match outcome {
                Outcome::Written => return Ok(()),
                Outcome::Detached | Outcome::Extend => {}
                Outcome::Full { cpu, head } => match self.open(cpu, head) {
                    Opened::Retry => {}
                    Opened::Full => return Err(Loss::Full),
                    Opened::Interrupted => return self.count(Loss::Interrupted),
                },
                Outcome::Interrupted => return self.count(Loss::Interrupted),
                Outcome::Disabled => unreachable!("every event is enabled here"),
            }
        }
        self.count(Loss::Interrupted)
    }

    /// As [`Publisher::emit`], by the fixed sequence where possible.
    pub fn emit_fixed<const LEN: usize, const ORDERED: bool>(
        &self,
        id: u16,
        payload: &[u8; LEN],
    ) -> Result<(), Loss> {
        if self.fixed::<LEN, ORDERED>(id, payload) {
            return Ok(());
        }
        self.emit(id, &[Segment::of(payload)])
    }

    /// Number `counter` of `writer`, in a form and size that follow from the counter and suit every geometry.
    pub fn emit_any(&self, writer: u32, counter: u32) -> Result<(), Loss> {
        let Plan { id, len, mut random } = plan(writer, counter);
        match id {
            1 => self.emit_fixed::<8, false>(id, &payload(writer, counter)),
            2 => self.emit_fixed::<16, false>(id, &payload(writer, counter)),
            3 => self.emit_fixed::<31, false>(id, &payload(writer, counter)),
            4 => self.emit_fixed::<100, true>(id, &payload(writer, counter)),
            9 => self.emit_fixed::<64, false>(id, &payload(writer, counter)),
            _ => {
                let mut bytes = [0; events::MOST_PLANNED];
                fill(&mut bytes[..len], writer, counter);
                let (head, rest) = bytes[..len].split_at(random.below(len + 1));
                let (middle, tail) = rest.split_at(random.below(rest.len() + 1));
                self.emit(id, &[Segment::of(head), Segment::of(middle), Segment::of(tail)])
            }
        }
    }

    fn count(&self, loss: Loss) -> Result<(), Loss> {
        self.region.buffer(machine::current_cpu()).count_loss(loss);
        Err(loss)
    }
}
