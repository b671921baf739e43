//! A buffer region in memory written by another process: its header, checked in the same way as by the
//! writers and the recorder.

use std::mem::offset_of;

use tracewing_abi::region::{Clock, Geometry, PAGE, Protocol, RegionHeader};

use crate::RegionFault;
use tracewing_programs::image::Memory;
use tracewing_units::{Cpu, Cycles};

/// A region with a valid header.
#[derive(Clone, Copy)]
pub struct Region<'a> {
    pub(crate) memory: &'a dyn Memory,
    pub(crate) base: u64,
    pub(crate) geometry: Geometry,
    pub(crate) protocol: Protocol,
    clock: Clock,
    recording: [u8; 16],
    pub(crate) origin: u64,
    real_time: Option<RealTime>,
}

/// The relation of a clock's values to real time, checked to be plausible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealTime {
    /// Frequency in Hz.
    pub frequency: u64,
    /// Real time at which the clock would have shown 0: whole seconds since 1970.
    pub offset_seconds: i64,
    /// The rest of that time.
    pub offset_cycles: Cycles,
}

impl RealTime {
    fn makes_sense(&self) -> bool {
        (1_000..=1_000_000_000_000).contains(&self.frequency)
            && self.offset_seconds.unsigned_abs() < 1 << 33 // until the year 2242
            && self.offset_cycles.0 < self.frequency
    }
}

impl<'a> Region<'a> {
    /// The region in the `size` bytes from `base` on.
    ///
    /// # Errors
    /// What the bytes are instead.
    pub fn open(memory: &'a dyn Memory, base: u64, size: u64) -> Result<Self, RegionFault> {
        if base.checked_add(size).is_none() {
            return Err(RegionFault::OutsideMemory);
        }
        let page = memory.read(base, PAGE).ok_or(RegionFault::NoHeader)?;
        let four = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
        let eight = |at: usize| u64::from(four(at)) | u64::from(four(at + 4)) << 32;
        let mut recording = [0; 16];
        let at = offset_of!(RegionHeader, recording);
        recording.copy_from_slice(&page[at..at + 16]);
        let header = RegionHeader {
            magic: eight(offset_of!(RegionHeader, magic)),
            version: four(offset_of!(RegionHeader, version)),
            protocol: four(offset_of!(RegionHeader, protocol)),
            cpus: four(offset_of!(RegionHeader, cpus)),
            sub_buffers: four(offset_of!(RegionHeader, sub_buffers)),
            sub_buffer_bytes: four(offset_of!(RegionHeader, sub_buffer_bytes)),
            clock: four(offset_of!(RegionHeader, clock)),
            stride: eight(offset_of!(RegionHeader, stride)),
            size: eight(offset_of!(RegionHeader, size)),
            recording,
            origin: eight(offset_of!(RegionHeader, origin)),
            mode: four(offset_of!(RegionHeader, mode)),
            state: four(offset_of!(RegionHeader, state)).into(),
            frequency: eight(offset_of!(RegionHeader, frequency)).into(),
            offset_seconds: eight(offset_of!(RegionHeader, offset_seconds)).into(),
            offset_cycles: eight(offset_of!(RegionHeader, offset_cycles)).into(),
            majors: eight(offset_of!(RegionHeader, majors)).into(),
            news: 0.into(),
        };
        let mapped = usize::try_from(size).map_err(|_| RegionFault::OutsideMemory)?;
        let geometry = Geometry::of_header(&header, mapped).map_err(RegionFault::Shape)?;
        Ok(Self {
            memory,
            base,
            geometry,
            protocol: Protocol::from_number(header.protocol).ok_or(RegionFault::Protocol)?,
            clock: Clock::from_number(header.clock).ok_or(RegionFault::Clock)?,
            recording,
            origin: geometry.later(header.origin, 0),
            real_time: Some(RealTime {
                frequency: header.frequency.into_inner(),
                offset_seconds: header.offset_seconds.into_inner() as i64,
                offset_cycles: Cycles(header.offset_cycles.into_inner()),
            })
            .filter(RealTime::makes_sense),
        })
    }

    /// Shape of its buffers.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// The clock of its time stamps.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Identity of the recording.
    pub fn recording(&self) -> [u8; 16] {
        self.recording
    }

    /// The relation of the stamps to real time, if the recorder has stored it.
    pub fn real_time(&self) -> Option<RealTime> {
        self.real_time
    }

    /// Address of the words of a CPU's buffer.
    /// The CPUs that have a buffer in it.
    pub fn cpus(&self) -> impl Iterator<Item = Cpu> + use<> {
        (0..self.geometry.cpus()).map(Cpu::at)
    }

    pub(crate) fn control(&self, cpu: Cpu) -> u64 {
        self.base + self.geometry.control_offset(cpu.index()) as u64
    }
}
