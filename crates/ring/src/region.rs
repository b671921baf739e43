//! A mapped buffer region: finding its parts.
//!
//! The region is shared with other processes, hostile ones among them. Its shape is checked and copied once, when the
//! region is attached; later nothing but the atomics of its control pages is read from it, each with its own check.

use core::ptr::NonNull;
use core::sync::atomic::Ordering::*;

use tracewing_abi::region::{
    Clock, CpuControl, Geometry, Loss, MAGIC, PAGE, Protocol, RegionHeader, STATE_CLOSED, STATE_OPEN,
    SubBufferHeader, VERSION,
};

use crate::Reader;

/// A handle on a mapped region; copies refer to the same memory.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    base: NonNull<u8>,
    geometry: Geometry,
    protocol: Protocol,
    clock: Clock,
}

// SAFETY: the memory is shared between processes anyway; everything in it that changes is atomic or is reached
// through raw pointers under the rules of the protocols.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Lays a region out in fresh memory.
    ///
    /// # Safety
    /// 1. `base` begins a mapping of `geometry.size()` zero bytes, aligned to a page, readable and writable.
    /// 2. The mapping stays as long as any copy of the handle, and any [`Reader`], is used.
    /// 3. Nobody else uses it yet.
    pub unsafe fn create(
        base: NonNull<u8>,
        geometry: Geometry,
        protocol: Protocol,
        clock: Clock,
        recording: [u8; 16],
    ) -> Self {
        let header = RegionHeader {
            magic: MAGIC,
            version: VERSION,
            protocol: protocol as u32,
            cpus: geometry.cpus() as u32,
            sub_buffers: geometry.sub_buffers() as u32,
            sub_buffer_bytes: geometry.sub_buffer_bytes() as u32,
            clock: clock as u32,
            stride: geometry.stride() as u64,
            size: geometry.size() as u64,
            recording,
            state: STATE_OPEN.into(),
        };
        // SAFETY: obligations 1 and 3: the first page is ours, aligned, and larger than the header.
        unsafe { base.cast::<RegionHeader>().write(header) };
        Self { base, geometry, protocol, clock }
    }

    /// A handle on a region that another process laid out.
    ///
    /// # Errors
    /// The header's numbers do not describe `mapped` bytes of a region of this version.
    ///
    /// # Safety
    /// 1. `base` begins a readable and writable mapping of `mapped` bytes, at least a page, aligned to a page.
    /// 2. The mapping stays, and cannot be truncated (a sealed memfd), as long as any copy of the handle is used.
    pub unsafe fn attach(base: NonNull<u8>, mapped: usize) -> Result<Self, &'static str> {
        if mapped < PAGE {
            return Err("buffer region smaller than a page");
        }
        // SAFETY: obligation 1; a copy, so that what is checked is what is used.
        let header = unsafe { base.cast::<RegionHeader>().read_volatile() };
        let geometry = Geometry::of_header(&header, mapped)?;
        let protocol =
            Protocol::from_number(header.protocol).ok_or("buffer region of an unknown protocol")?;
        let clock = Clock::from_number(header.clock).ok_or("buffer region with an unknown clock")?;
        Ok(Self { base, geometry, protocol, clock })
    }

    /// Its shape.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Its writer protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The clock of its time stamps.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Where the mapping begins.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Identity of the recording.
    pub fn recording(&self) -> [u8; 16] {
        // SAFETY: the header lies in the mapping's first page; these bytes do not change after `create`.
        unsafe { (&raw const (*self.base.cast::<RegionHeader>().as_ptr()).recording).read_volatile() }
    }

    /// Tells all writers that nobody reads any more.
    pub fn close(&self) {
        self.header_state().store(STATE_CLOSED, Relaxed);
    }

    /// Whether [`Region::close`] was called, by whoever.
    pub fn is_closed(&self) -> bool {
        self.header_state().load(Relaxed) != STATE_OPEN
    }

    fn header_state(&self) -> &core::sync::atomic::AtomicU32 {
        // SAFETY: the header lies in the mapping's first page; the state is only ever accessed atomically.
        unsafe { &(*self.base.cast::<RegionHeader>().as_ptr()).state }
    }

    /// The buffer of a CPU.
    ///
    /// # Panics
    /// The region has no such CPU.
    pub fn cpu(&self, cpu: usize) -> Cpu {
        Cpu { control: self.control_address(cpu).cast(), geometry: self.geometry }
    }

    /// The CPU's loss counters, one per [`Loss`].
    ///
    /// # Panics
    /// The region has no such CPU.
    pub fn lost(&self, cpu: usize) -> [u64; Loss::COUNT] {
        self.cpu(cpu).lost()
    }

    /// The one reader of a CPU's buffer, at the buffer's very beginning.
    ///
    /// # Safety
    /// The buffer gets no second reader, in this process or another, for as long as the region lives.
    ///
    /// # Panics
    /// The region has no such CPU.
    pub unsafe fn reader(&self, cpu: usize) -> Reader {
        Reader::new(self.cpu(cpu), self.protocol)
    }

    pub(crate) fn control_address(&self, cpu: usize) -> *mut u8 {
        assert!(cpu < self.geometry.cpus(), "CPU {cpu} of {}", self.geometry.cpus());
        // SAFETY: the geometry was checked against the mapping's size, so the offset lies within it.
        unsafe { self.base.as_ptr().add(self.geometry.control_offset(cpu)) }
    }
}

/// One CPU's buffer in a region.
#[derive(Clone, Copy)]
pub struct Cpu {
    control: *mut CpuControl,
    geometry: Geometry,
}

// SAFETY: as for `Region`.
unsafe impl Send for Cpu {}

impl Cpu {
    /// Its shape.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The words that writers and the reader change.
    pub fn control(&self) -> &CpuControl {
        // SAFETY: `Region::control_address` gives pages inside the mapping, which outlives the handle (obligation of
        // `Region::create` and `Region::attach`); `CpuControl` consists of atomics and padding.
        unsafe { &*self.control }
    }

    /// Counts a lost event.
    pub fn count_loss(&self, loss: Loss) {
        self.control().lost[loss as usize].fetch_add(1, Relaxed);
    }

    /// The loss counters.
    pub fn lost(&self) -> [u64; Loss::COUNT] {
        Loss::ALL.map(|loss| self.control().lost[loss as usize].load(Relaxed))
    }

    /// Sum of the loss counters.
    pub fn lost_total(&self) -> u64 {
        self.lost().into_iter().fold(0, u64::wrapping_add)
    }

    /// The header of the sub-buffer with this number.
    pub fn sub_buffer(&self, sequence: u64) -> &SubBufferHeader {
        let bytes = self.geometry.sub_buffer_bytes();
        // SAFETY: `data` takes any position to an address inside the CPU's data; sub-buffers are multiples of 256
        // bytes, so the header fits and is aligned. It consists of atomics.
        unsafe { &*self.data(sequence.wrapping_mul(bytes as u64)).cast() }
    }

    /// The address of a position's byte.
    pub fn data(&self, position: u64) -> *mut u8 {
        let offset = position as usize & (self.geometry.data_bytes() - 1);
        // SAFETY: the data begin one page after the control page and are `data_bytes` long, inside the mapping.
        unsafe { self.control.cast::<u8>().add(PAGE + offset) }
    }
}
