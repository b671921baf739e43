//! The buffer region: one shared mapping with a ring buffer per possible CPU.
//!
//! ```text
//! offset 0          RegionHeader            one page, constant but for `state`
//! PAGE + c*stride   CpuControl of CPU c     one page: the words that writers and the consumer change
//!   + PAGE          data of CPU c           N sub-buffers of S bytes, each beginning with a SubBufferHeader
//! ```
//!
//! with `stride = PAGE + N * S`. N and S are powers of two. Positions in a buffer are free-running 64-bit byte
//! counts: `position / S` numbers the sub-buffers for ever, `position % (N * S)` is the offset into the data.
//!
//! Who writes what: the recorder fills in [`RegionHeader`] before it hands the region out and later changes only
//! `state`; writers (threads of traced programs) change [`CpuControl::head`], the loss counters, the commit counters
//! and the data; the consumer changes only [`CpuControl::consumed`] (and, under protocol `Smp`, zeroes a
//! sub-buffer before it releases it).

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64};

/// First word of every region: `tracewng` in ASCII.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tracewng");
/// Changes whenever anything in this crate changes its layout or meaning.
pub const VERSION: u32 = 1;
/// Alignment of the parts of a region, bytes.
pub const PAGE: usize = 4096;
/// Smallest size of a sub-buffer, bytes.
pub const MIN_SUB_BUFFER: usize = 256;
/// Largest size of a sub-buffer, bytes: a position inside one fits 31 bits.
pub const MAX_SUB_BUFFER: usize = 1 << 30;
/// Most sub-buffers a buffer can have; bounds the commit counters in [`CpuControl`].
pub const MAX_SUB_BUFFERS: usize = 256;
/// Bytes at the start of every sub-buffer that hold its [`SubBufferHeader`]; events begin behind them.
pub const SUB_BUFFER_HEADER: usize = size_of::<SubBufferHeader>();
/// Most CPUs a region serves; larger than any Linux configuration (`NR_CPUS` is at most 8192).
pub const MAX_CPUS: usize = 8192;

/// Writer protocol of a region (design: `ring` crate).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Protocol {
    /// One restartable sequence per event; all processes of a user share the region.
    Publish = 1,
    /// Locked compare-and-swap to reserve, locked add to commit; one process per region.
    Smp = 2,
}

impl Protocol {
    /// The protocol with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Publish, Self::Smp].into_iter().find(|p| *p as u32 == number)
    }
}

/// The clock of a recording's time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// The processor's time stamp counter, in cycles; the kernel's trace clock `x86-tsc` reads the same counter.
    Tsc = 1,
    /// `CLOCK_MONOTONIC`, in nanoseconds; the kernel's trace clock `mono` reads the same clock.
    Monotonic = 2,
}

impl Clock {
    /// The clock with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Tsc, Self::Monotonic].into_iter().find(|c| *c as u32 == number)
    }
}

/// `state` while events are wanted.
pub const STATE_OPEN: u32 = 1;
/// `state` once the recorder has stopped: writers that notice switch their sites off.
pub const STATE_CLOSED: u32 = 2;

/// First page of a region.
#[repr(C, align(64))]
pub struct RegionHeader {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// A [`Protocol`].
    pub protocol: u32,
    /// Number of CPU buffers.
    pub cpus: u32,
    /// N, sub-buffers per CPU.
    pub sub_buffers: u32,
    /// S, bytes per sub-buffer.
    pub sub_buffer_bytes: u32,
    /// A [`Clock`].
    pub clock: u32,
    /// Distance of two CPUs' [`CpuControl`], bytes.
    pub stride: u64,
    /// Size of the whole region, bytes.
    pub size: u64,
    /// Identity of the recording; also the UUID of its user trace.
    pub recording: [u8; 16],
    /// [`STATE_OPEN`] or [`STATE_CLOSED`].
    pub state: AtomicU32,
}

/// The words of one CPU's buffer that change. Each group has a cache line of its own.
#[repr(C, align(4096))]
pub struct CpuControl {
    /// Write position, bytes. `Publish`: the one word that commits an event. `Smp`: the paper's write count.
    pub head: AtomicU64,
    _pad0: [u64; 7],
    /// Sub-buffers that the consumer has released, counted for ever.
    pub consumed: AtomicU64,
    _pad1: [u64; 7],
    /// Events lost, cumulative, never reset; a counter per [`Loss`].
    pub lost: [AtomicU64; Loss::COUNT],
    _pad2: [u64; 8 - Loss::COUNT],
    /// `Smp` only: bytes committed into each sub-buffer since the beginning, all laps together (002, section 4,
    /// "commit count"). Sub-buffer number s is complete at `(s / N + 1) * S`.
    pub committed: [AtomicU64; MAX_SUB_BUFFERS],
    _pad3: [u64; 512 - 24 - MAX_SUB_BUFFERS],
}

/// Why an event was lost; indexes [`CpuControl::lost`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Loss {
    /// The buffer was full.
    Full = 0,
    /// The event is larger than half a sub-buffer, or than its 16-bit length field can say.
    TooLarge = 1,
    /// The sequence was aborted too many times in a row (a debugger stepping through it, say).
    Interrupted = 2,
    /// The thread could not be protected against preemption (a child that shares its parent's memory).
    Unprotected = 3,
}

impl Loss {
    /// How many reasons there are.
    pub const COUNT: usize = 4;
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; Self::COUNT] = [Self::Full, Self::TooLarge, Self::Interrupted, Self::Unprotected];

    /// The reason in words, as summaries show it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Full => "buffer full",
            Self::TooLarge => "event too large",
            Self::Interrupted => "interrupted too often",
            Self::Unprotected => "thread not protected",
        }
    }
}

/// First bytes of every sub-buffer. `end` and `used` mean something only once `head / S` has passed the sub-buffer.
#[repr(C)]
pub struct SubBufferHeader {
    /// Time at which the sub-buffer was opened; no event in it is older, and none in the one before is younger.
    pub begin: AtomicU64,
    /// Time at which it was closed; no event in it is younger.
    pub end: AtomicU64,
    /// Its number (`position / S` of its first byte) plus one; 0 in memory that was never opened.
    pub sequence: AtomicU64,
    /// Bytes used, this header included.
    pub used: AtomicU64,
    /// Sum of the CPU's loss counters when it was opened.
    pub lost: AtomicU64,
    _pad: [u64; 3],
}

const _: () = {
    assert!(usize::BITS == 64, "sizes and positions of a region take 64 bits");
    assert!(size_of::<RegionHeader>() <= PAGE);
    assert!(size_of::<CpuControl>() == PAGE);
    assert!(offset_of!(CpuControl, head) == 0);
    assert!(offset_of!(CpuControl, consumed) == 64);
    assert!(offset_of!(CpuControl, lost) == 128);
    assert!(offset_of!(CpuControl, committed) == 192);
    assert!(size_of::<SubBufferHeader>() == 64);
    assert!(offset_of!(SubBufferHeader, begin) == 0);
    assert!(MIN_SUB_BUFFER > 2 * SUB_BUFFER_HEADER);
};

/// The shape of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    cpus: u32,
    sub_buffers: u32,
    sub_buffer_bytes: u32,
}

impl Geometry {
    /// `cpus` buffers of `sub_buffers` sub-buffers of `sub_buffer_bytes` bytes.
    ///
    /// # Errors
    /// What is wrong with a number: not a power of two, or outside its bounds ([`MAX_CPUS`]; 2 to
    /// [`MAX_SUB_BUFFERS`]; [`MIN_SUB_BUFFER`] to [`MAX_SUB_BUFFER`]).
    pub fn new(cpus: usize, sub_buffers: usize, sub_buffer_bytes: usize) -> Result<Self, &'static str> {
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err("the number of CPUs must lie between 1 and 8192");
        }
        if !sub_buffers.is_power_of_two() || !(2..=MAX_SUB_BUFFERS).contains(&sub_buffers) {
            return Err("the number of sub-buffers must be a power of two between 2 and 256");
        }
        if !sub_buffer_bytes.is_power_of_two()
            || !(MIN_SUB_BUFFER..=MAX_SUB_BUFFER).contains(&sub_buffer_bytes)
        {
            return Err("the size of a sub-buffer must be a power of two between 256 bytes and 1 GiB");
        }
        Ok(Self {
            cpus: cpus as u32,
            sub_buffers: sub_buffers as u32,
            sub_buffer_bytes: sub_buffer_bytes as u32,
        })
    }

    /// The shape that a header claims, checked against the size of the mapping it was found in.
    ///
    /// # Errors
    /// What does not fit.
    pub fn of_header(header: &RegionHeader, mapped: usize) -> Result<Self, &'static str> {
        if header.magic != MAGIC {
            return Err("not a tracewing buffer region");
        }
        if header.version != VERSION {
            return Err("buffer region of another version of tracewing");
        }
        let this =
            Self::new(header.cpus as usize, header.sub_buffers as usize, header.sub_buffer_bytes as usize)?;
        if this.size() != mapped || header.size != mapped as u64 || header.stride != this.stride() as u64 {
            return Err("buffer region whose size does not fit its header");
        }
        Ok(this)
    }

    /// Number of CPU buffers.
    pub fn cpus(&self) -> usize {
        self.cpus as usize
    }

    /// N.
    pub fn sub_buffers(&self) -> usize {
        self.sub_buffers as usize
    }

    /// S, bytes.
    pub fn sub_buffer_bytes(&self) -> usize {
        self.sub_buffer_bytes as usize
    }

    /// N * S, bytes of one CPU's data.
    pub fn data_bytes(&self) -> usize {
        self.sub_buffers() * self.sub_buffer_bytes()
    }

    /// Bytes from one CPU's control page to the next one's.
    pub fn stride(&self) -> usize {
        PAGE + self.data_bytes()
    }

    /// Offset of a CPU's control page in the region. The CPU's data follow one [`PAGE`] later.
    pub fn control_offset(&self, cpu: usize) -> usize {
        PAGE + cpu * self.stride()
    }

    /// Bytes of the whole region.
    pub fn size(&self) -> usize {
        self.control_offset(self.cpus())
    }

    /// Largest event, bytes from its header to its end: half a sub-buffer, or what 16 bits can say.
    pub fn largest_event(&self) -> usize {
        (self.sub_buffer_bytes() / 2).min(u16::MAX as usize)
    }
}
