//! The region of production builds: memory shared between processes.

use core::ptr::NonNull;

use tracewing_abi::region::{
    CONTROL, Clock, CpuControl, Geometry, MAGIC, PAGE, Protocol, RegionHeader, STATE_CLOSED, STATE_OPEN,
    ShapeFault, SubBufferHeader, VERSION,
};

use tracewing_units::Cycles;

use crate::clock::exists;
use crate::sync::Ordering::*;
use crate::sync::{AtomicU32, AtomicU64};

/// A handle on a mapped region; copies share the same memory.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    base: NonNull<u8>,
    geometry: Geometry,
    protocol: Protocol,
    clock: Clock,
    origin: u64,
}

// SAFETY: the memory is shared between processes anyway; everything in it that changes is atomic or is
// reached through raw pointers under the rules of the protocols.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Lays a region out in fresh memory. Each buffer's first sub-buffer has number `origin` (modulo the
    /// geometry's number range); 0 is the normal choice, and any other value must work too.
    ///
    /// # Panics
    /// The clock does not exist: [`Clock::Monotonic`] without Linux.
    ///
    /// # Safety
    /// 1. `base` begins a mapping of `geometry.size()` zero bytes, aligned to a page, readable and writable.
    /// 2. The mapping stays as long as any copy of the handle, and any [`crate::Reader`], is used.
    /// 3. No other code uses it yet.
    pub unsafe fn create(
        base: NonNull<u8>,
        geometry: Geometry,
        protocol: Protocol,
        clock: Clock,
        recording: [u8; 16],
        origin: u64,
    ) -> Self {
        assert!(exists(clock), "only Linux keeps a monotonic clock");
        let origin = geometry.later(origin, 0);
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
            origin,
            mode: geometry.mode() as u32,
            state: STATE_OPEN.into(),
            frequency: 0.into(),
            offset_seconds: 0.into(),
            offset_cycles: 0.into(),
            majors: u64::MAX.into(),
            news: 0.into(),
        };
        // SAFETY: obligations 1 and 3: the first page is ours, aligned, and larger than the header.
        unsafe { base.cast::<RegionHeader>().write(header) };
        let this = Self { base, geometry, protocol, clock, origin };
        (0..geometry.cpus()).for_each(|index| this.buffer(index).prepare(origin));
        this
    }

    /// A handle on a region that another process created.
    ///
    /// # Errors
    /// The header's numbers do not describe `mapped` bytes of a region of this version.
    ///
    /// # Safety
    /// 1. `base` begins a readable and writable mapping of `mapped` bytes, at least a page, aligned to a
    ///    page.
    /// 2. The mapping stays, and cannot be truncated (a sealed memfd), as long as any copy of the handle is
    ///    used.
    pub unsafe fn attach(base: NonNull<u8>, mapped: usize) -> Result<Self, ShapeFault> {
        if mapped < PAGE {
            return Err(ShapeFault::Small);
        }
        // SAFETY: obligation 1; a copy, so that what is checked is what is used.
        let header = unsafe { base.cast::<RegionHeader>().read_volatile() };
        let geometry = Geometry::of_header(&header, mapped)?;
        let protocol = Protocol::from_number(header.protocol).ok_or(ShapeFault::Protocol)?;
        let clock = Clock::from_number(header.clock).ok_or(ShapeFault::Clock)?;
        if !exists(clock) {
            return Err(ShapeFault::ForeignClock);
        }
        let origin = geometry.later(header.origin, 0);
        Ok(Self { base, geometry, protocol, clock, origin })
    }

    /// Shape of the region, as checked when it was attached.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Writer protocol of all its buffers.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Clock of all its time stamps.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// First byte of the mapping.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Number of every buffer's first sub-buffer.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// Identity of the recording.
    pub fn recording(&self) -> [u8; 16] {
        // SAFETY: the header lies in the mapping's first page; these bytes do not change after `create`.
        unsafe { (&raw const (*self.base.cast::<RegionHeader>().as_ptr()).recording).read_volatile() }
    }

    /// The enabled major classes, one bit each: the word that [`RegionHeader::majors`] describes.
    pub fn majors(&self) -> &AtomicU64 {
        // SAFETY: the header lies in the mapping's first page; the word is only ever accessed atomically.
        unsafe { &(*self.base.cast::<RegionHeader>().as_ptr()).majors }
    }

    /// Changes when classes need ids: the word that [`RegionHeader::news`] describes.
    pub fn news(&self) -> &AtomicU64 {
        // SAFETY: inside the mapping, by the caller of `create` or `attach`; an atomic may change at any
        // time.
        unsafe { &(*self.base.cast::<RegionHeader>().as_ptr()).news }
    }

    /// Stores the real time of the stamps, for a reader that has the region but not its recording:
    /// `frequency` in Hz, and the real time at which the clock would have shown 0, as seconds since 1970 and
    /// cycles.
    pub fn set_real_time(&self, frequency: u64, offset_seconds: i64, offset_cycles: Cycles) {
        let header = self.base.cast::<RegionHeader>().as_ptr();
        // SAFETY: the header lies in the mapping's first page; these words are only ever accessed atomically.
        let (hz, seconds, cycles) =
            unsafe { (&(*header).frequency, &(*header).offset_seconds, &(*header).offset_cycles) };
        seconds.store(offset_seconds as u64, Relaxed);
        cycles.store(offset_cycles.0, Relaxed);
        hz.store(frequency, Relaxed);
    }

    /// Reports to all writers that the region has no reader any more.
    pub fn close(&self) {
        self.header_state().store(STATE_CLOSED, Relaxed);
    }

    /// Whether [`Region::close`] was called, by any process.
    pub fn is_closed(&self) -> bool {
        self.header_state().load(Relaxed) != STATE_OPEN
    }

    fn header_state(&self) -> &AtomicU32 {
        // SAFETY: the header lies in the mapping's first page; the state is only ever accessed atomically.
        unsafe { &(*self.base.cast::<RegionHeader>().as_ptr()).state }
    }

    /// A buffer by its index: that of its CPU's number, unless the writers have agreed on another order.
    ///
    /// # Panics
    /// The region has no such buffer.
    pub fn buffer(&self, index: usize) -> Buffer {
        Buffer { control: self.control_address(index).cast(), geometry: self.geometry }
    }

    pub(crate) fn control_address(&self, buffer: usize) -> *mut u8 {
        assert!(buffer < self.geometry.cpus(), "buffer {buffer} of {}", self.geometry.cpus());
        // SAFETY: the geometry was checked against the mapping's size, so the offset lies within it.
        unsafe { self.base.as_ptr().add(self.geometry.control_offset(buffer)) }
    }
}

/// One CPU's buffer in a region.
#[derive(Clone, Copy)]
pub struct Buffer {
    control: *mut CpuControl,
    geometry: Geometry,
}

// SAFETY: as for `Region`.
unsafe impl Send for Buffer {}

impl Buffer {
    /// Shape of the region, as checked when it was attached.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The words that writers and the reader change.
    pub fn control(&self) -> &CpuControl {
        // SAFETY: `Region::control_address` gives pages inside the mapping, which outlives the handle
        // (obligation of `Region::create` and `Region::attach`); `CpuControl` consists of atomics and
        // padding.
        unsafe { &*self.control }
    }

    /// The header of the data's sub-buffer with this index.
    pub fn header(&self, physical: usize) -> &SubBufferHeader {
        // SAFETY: `data` takes any index to an address inside the CPU's data; sub-buffers are multiples of
        // 256 bytes, so the header fits and is aligned. It consists of atomics.
        unsafe { &*self.data(physical, 0).cast() }
    }

    /// Address of byte `at` of the data's sub-buffer `physical`.
    pub(crate) fn data(&self, physical: usize, at: usize) -> *mut u8 {
        let offset = (physical * self.geometry.sub_buffer_bytes() + at) & (self.geometry.data_bytes() - 1);
        // SAFETY: the data begin after the control pages and are `data_bytes` long, inside the mapping.
        unsafe { self.control.cast::<u8>().add(CONTROL + offset) }
    }

    /// Writes bytes of an event.
    ///
    /// # Safety
    /// 1. `len` bytes from `start` are readable.
    /// 2. `at + len` is at most the size of a sub-buffer, and that stretch belongs to the caller alone.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, physical: usize, at: usize, start: *const u8, len: usize) {
        // SAFETY: by the obligations; `data` cannot leave the CPU's data, and nothing else writes the
        // stretch.
        unsafe { core::ptr::copy_nonoverlapping(start, self.data(physical, at), len) }
    }

    /// Writes bytes into the CPU's data one by one, at any place, as every process that shares the region
    /// can.
    pub fn store(&self, physical: usize, at: usize, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            // SAFETY: inside the CPU's data, and aligned, being a byte.
            unsafe { core::sync::atomic::AtomicU8::from_ptr(self.data(physical, at + i)) }
                .store(*byte, Relaxed);
        }
    }

    /// Eight bytes of a sub-buffer, copied once. `at + 8` is at most its size.
    pub(crate) fn word(&self, physical: usize, at: usize) -> u64 {
        debug_assert!(at + 8 <= self.geometry.sub_buffer_bytes());
        // SAFETY: inside the CPU's data. Volatile: another process may change the bytes, and the copy is what
        // is used.
        u64::from_le_bytes(unsafe { self.data(physical, at).cast::<[u8; 8]>().read_volatile() })
    }

    /// Copies a stretch of sub-buffer `from`, in whole words, to the same place in sub-buffer `to`. The bytes
    /// may change meanwhile.
    pub(crate) fn copy(&self, from: usize, to: usize, stretch: core::ops::Range<usize>) {
        debug_assert!(stretch.end <= self.geometry.sub_buffer_bytes());
        let word = |physical, at| self.data(physical, at).cast::<u64>();
        for at in (stretch.start & !7..stretch.end).step_by(8) {
            // SAFETY: both lie in the CPU's data, aligned, for a sub-buffer consists of whole words.
            // Volatile: a word that changes while it is copied has any value afterwards; the caller finds out
            // that it was overwritten.
            unsafe { word(to, at).write_volatile(word(from, at).read_volatile()) };
        }
    }
}
