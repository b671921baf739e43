//! The region that the model checker runs: the same words, each an object of the checker's own.
//!
//! Events are written and read field by field. A field is one cell, at its offset: fewer loads mean fewer
//! combinations of old and new values for the checker to try. The checker lets no load see a store that runs
//! later. Each cell therefore has a plain owner as well: a write must come after every earlier read and
//! write, in the memory model's sense, or the checker reports it. A copy that is validated afterwards reads
//! without being the owner.

use std::sync::Arc;
use std::vec::Vec;

use tracewing_abi::region::{Clock, CpuControl, Geometry, Protocol, SUB_BUFFER_HEADER, SubBufferHeader};

use crate::sync::Ordering::{self, *};
use crate::sync::{AtomicU64, UnsafeCell};

/// Distance of two cells: fields begin at even offsets.
const STEP: usize = 2;
/// Most bytes of a field.
const FIELD: usize = 8;

/// A handle on a region.
#[derive(Clone, Debug)]
pub struct Region {
    geometry: Geometry,
    protocol: Protocol,
    clock: Clock,
    origin: u64,
    buffers: Arc<[Buffer]>,
}

impl Region {
    /// A region with nothing in it.
    pub fn new(geometry: Geometry, protocol: Protocol, clock: Clock, origin: u64) -> Self {
        let origin = geometry.later(origin, 0);
        let buffers: Arc<[Buffer]> = (0..geometry.cpus()).map(|_| Buffer::new(geometry)).collect();
        buffers.iter().for_each(|buffer| buffer.prepare(origin));
        Self { geometry, protocol, clock, origin, buffers }
    }

    /// Number and sizes of the buffers.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// How writers publish events.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The clock of its time stamps, simulated by the checker: `Monotonic` is the same for all threads, `Tsc`
    /// is read as a processor reads it.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Number of every buffer's first sub-buffer.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// A buffer by its index.
    ///
    /// # Panics
    /// The region has no such buffer.
    pub fn buffer(&self, index: usize) -> Buffer {
        self.buffers[index].clone()
    }

    pub(crate) fn control_address(&self, _buffer: usize) -> *mut u8 {
        core::ptr::null_mut() // the modelled sequences take the region itself
    }
}

/// One CPU's buffer in a region.
#[derive(Clone, Debug)]
pub struct Buffer {
    geometry: Geometry,
    words: Arc<Words>,
}

struct Words {
    control: CpuControl,
    headers: Vec<SubBufferHeader>,
    /// The bytes after the headers.
    cells: Vec<Vec<Cell>>,
}

struct Cell {
    value: AtomicU64,
    owner: UnsafeCell<()>,
}

impl Cell {
    fn new() -> Self {
        Self { value: AtomicU64::new(0), owner: UnsafeCell::new(()) }
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.owner.with_mut(|_| ());
        self.value.store(value, ordering);
    }

    fn load(&self) -> u64 {
        self.owner.with(|_| ());
        self.value.load(Relaxed)
    }
}

impl core::fmt::Debug for Words {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Words")
    }
}

impl Buffer {
    fn new(geometry: Geometry) -> Self {
        let physical = geometry.physical_sub_buffers();
        let cells = (geometry.sub_buffer_bytes() - SUB_BUFFER_HEADER) / STEP;
        let words = Words {
            control: CpuControl::new(),
            headers: (0..physical).map(|_| SubBufferHeader::new()).collect(),
            cells: (0..physical).map(|_| (0..cells).map(|_| Cell::new()).collect()).collect(),
        };
        Self { geometry, words: Arc::new(words) }
    }

    /// Number and sizes of the buffers.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The words that writers and the reader change.
    pub fn control(&self) -> &CpuControl {
        &self.words.control
    }

    /// The header of the data's sub-buffer with this index.
    pub fn header(&self, physical: usize) -> &SubBufferHeader {
        &self.words.headers[physical]
    }

    /// No address: [`Buffer::word`] reads a chunk's bytes.
    pub(crate) fn data(&self, _physical: usize, _at: usize) -> *mut u8 {
        core::ptr::null_mut()
    }

    /// Writes a field of an event.
    ///
    /// # Safety
    /// `len` bytes from `start` are readable.
    pub(crate) unsafe fn write(&self, physical: usize, at: usize, start: *const u8, len: usize) {
        // SAFETY: the caller's.
        self.write_cells(physical, at, unsafe { core::slice::from_raw_parts(start, len) }, Relaxed);
    }

    /// Writes bytes of an event as the instructions of `Publish` do: on x86-64 every store is a release.
    pub fn store(&self, physical: usize, at: usize, bytes: &[u8]) {
        // Partner: the acquire fence in `Reader::copied`.
        self.write_cells(physical, at, bytes, Release);
    }

    fn write_cells(&self, physical: usize, at: usize, bytes: &[u8], ordering: Ordering) {
        for (i, field) in bytes.chunks(FIELD).enumerate() {
            let mut value = [0; FIELD];
            value[..field.len()].copy_from_slice(field);
            self.cell(physical, at + i * FIELD).store(u64::from_le_bytes(value), ordering);
        }
    }

    /// The field of a sub-buffer that begins at `at`.
    pub fn word(&self, physical: usize, at: usize) -> u64 {
        self.cell(physical, at).load()
    }

    pub(crate) fn copy(&self, from: usize, to: usize, stretch: core::ops::Range<usize>) {
        for at in stretch.step_by(STEP) {
            let value = self.cell(from, at).value.load(Relaxed);
            self.cell(to, at).store(value, Relaxed);
        }
    }

    fn cell(&self, physical: usize, at: usize) -> &Cell {
        assert!(at % STEP == 0, "the checker's fields begin at even offsets");
        &self.words.cells[physical][(at - SUB_BUFFER_HEADER) / STEP]
    }
}
