//! Emits by any protocol, in any mode: the parameters of the stress tests.

use tracewing_abi::region::{Clock, Geometry, Loss, Mode, Protocol};
use tracewing_ring::lttng::{self, Access, Local, Smp};
use tracewing_ring::{Region, Segment};
use tracewing_units::Tid;

use crate::events::{self, fill, plan};
use crate::machine::{self, Mapped};
#[cfg(target_arch = "x86_64")]
use crate::publisher::Publisher;

/// The kind of region.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub protocol: Protocol,
    pub mode: Mode,
    /// Sub-buffers per CPU.
    pub sub_buffers: usize,
    /// Bytes of each sub-buffer.
    pub bytes: usize,
    /// Number of the first sub-buffer.
    pub origin: u64,
}

/// A number of the first sub-buffer with which all counters soon wrap around, whatever the geometry.
pub const NEAR_WRAP: u64 = u64::MAX - 9;

/// Every protocol in every mode.
pub const KINDS: [(Protocol, Mode); 6] = [
    (Protocol::Publish, Mode::Discard),
    (Protocol::Publish, Mode::Overwrite),
    (Protocol::Smp, Mode::Discard),
    (Protocol::Smp, Mode::Overwrite),
    (Protocol::Local, Mode::Discard),
    (Protocol::Local, Mode::Overwrite),
];

impl Shape {
    /// A shape of this kind, with numbers from 0.
    pub fn new((protocol, mode): (Protocol, Mode), sub_buffers: usize, bytes: usize) -> Self {
        Self { protocol, mode, sub_buffers, bytes, origin: 0 }
    }

    /// The geometry, with a buffer for each possible CPU.
    pub fn geometry(&self) -> Geometry {
        let geometry = Geometry::new(machine::possible_cpus(), self.sub_buffers, self.bytes).unwrap();
        if self.mode == Mode::Overwrite { geometry.overwriting() } else { geometry }
    }
}

/// A region and the means to write to it.
pub struct Emitter {
    shape: Shape,
    #[cfg(target_arch = "x86_64")]
    publisher: Option<Publisher>,
    mapped: Mapped,
}

impl Emitter {
    /// `None`, with a line on stderr, where the machine lacks what the protocol needs.
    pub fn new(shape: Shape) -> Option<Self> {
        let clock = if cfg!(target_arch = "x86_64") { Clock::Tsc } else { Clock::Monotonic };
        let mapped = Mapped::new(shape.geometry(), shape.protocol, clock, shape.origin);
        #[cfg(target_arch = "x86_64")]
        let publisher = match shape.protocol {
            Protocol::Publish => Some(Publisher::of(mapped.region)?),
            _ => None,
        };
        #[cfg(not(target_arch = "x86_64"))]
        if shape.protocol == Protocol::Publish {
            tracewing_testing::skip(
                tracewing_testing::Cause::Processor,
                "no protocol Publish on this processor",
            );
            return None;
        }
        Some(Self {
            shape,
            #[cfg(target_arch = "x86_64")]
            publisher,
            mapped,
        })
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    pub fn region(&self) -> Region {
        self.mapped.region
    }

    /// Registers the calling thread.
    pub fn enter(&self, writer: u32) {
        let _ = writer;
        #[cfg(target_arch = "x86_64")]
        if let Some(publisher) = &self.publisher {
            publisher.enter(writer as i32);
        }
    }

    /// Number `counter` of `writer`, in a form and size that follow from the two. `buffer` is the CPU whose
    /// buffer `Smp` and `Local` use.
    pub fn emit(&self, writer: u32, counter: u32, buffer: usize) -> Result<(), Loss> {
        match self.shape.protocol {
            #[cfg(target_arch = "x86_64")]
            Protocol::Publish => {
                self.publisher.as_ref().expect("made for the protocol").emit_any(writer, counter)
            }
            Protocol::Local => self.write::<Local>(writer, counter, buffer),
            _ => self.write::<Smp>(writer, counter, buffer),
        }
    }

    fn write<A: Access>(&self, writer: u32, counter: u32, buffer: usize) -> Result<(), Loss> {
        let mut plan = plan(writer, counter);
        let mut bytes = [0; events::MOST_PLANNED];
        let bytes = &mut bytes[..plan.len];
        fill(bytes, writer, counter);
        let (head, tail) = bytes.split_at(plan.random.below(plan.len + 1));
        let region = self.region();
        if plan.random.one_in(2) {
            let segments = [Segment::of(head), Segment::of(tail)];
            // SAFETY: living segments; the region stays mapped; a `Local` buffer has one thread, and its
            // handlers.
            return unsafe { lttng::write::<A>(&region, buffer, Tid(writer as i32), plan.id, &segments) };
        }
        // SAFETY: as above.
        let mut slot =
            unsafe { lttng::reserve::<A>(&region, buffer, Tid(writer as i32), plan.id, plan.len) }?;
        slot.put(head);
        slot.put(tail);
        slot.commit();
        Ok(())
    }

    /// Ends the current sub-buffer; does nothing with `Publish`, which does not need it.
    pub fn force_switch(&self, buffer: usize) -> bool {
        // SAFETY: as in `write`.
        unsafe {
            match self.shape.protocol {
                Protocol::Publish => false,
                Protocol::Smp => lttng::force_switch::<Smp>(&self.region(), buffer),
                Protocol::Local => lttng::force_switch::<Local>(&self.region(), buffer),
            }
        }
    }
}
