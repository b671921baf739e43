//! The buffer region: one shared mapping with a ring buffer per possible CPU.
//!
//! ```text
//! offset 0             RegionHeader            one page, constant but for what the recorder changes
//! PAGE + c*stride      CpuControl of CPU c     the words that writers and the consumer change
//!   + CONTROL          data of CPU c           sub-buffers of S bytes, each beginning with a SubBufferHeader
//! ```
//!
//! A buffer is a ring of N slots; N and S are powers of two. Sub-buffer numbers increase permanently: number
//! `s` belongs to slot `s % N`. In discard mode slot k is sub-buffer k of the data. In overwrite mode there
//! is one more sub-buffer, which is the reader's, and a slot's word in [`TableEntry::reference`] says which
//! one belongs to it at the moment.
//!
//! A position in a buffer is one word, and says all that a writer needs to know:
//!
//! ```text
//! sequence | physical | at      at: offset in the sub-buffer, log2 S bits; 0 means that it is not opened yet
//!                               physical: which sub-buffer of the data, log2 P bits
//!                               sequence: its number, the other bits; wraps around
//! ```
//!
//! with P the number of sub-buffers in the data, rounded up to a power of two. The lower two fields together
//! are the offset into the data, so no writer looks anything up.
//!
//! What each side writes: the recorder fills in [`RegionHeader`] before it hands the region out and later
//! changes only `state`, `majors` and the clock's calibration; writers (threads of traced programs) change
//! [`CpuControl::head`], [`CpuControl::last`], the loss counters, the table, the data, and
//! [`RegionHeader::news`]; the consumer changes [`CpuControl::consumed`] and, in overwrite mode, exchanges
//! sub-buffers in the table.

mod geometry;
mod shape;

#[cfg(not(loom))]
use core::mem::{offset_of, size_of};

pub use self::geometry::Geometry;
pub use self::shape::ShapeFault;
use crate::atomic::{AtomicU32, AtomicU64};

/// First word of every region: `tracewng` in ASCII.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tracewng");
/// Changes whenever anything in this crate changes its layout or meaning.
pub const VERSION: u32 = 8;
/// Alignment of the parts of a region, bytes.
pub const PAGE: usize = 4096;
/// Bytes of a [`CpuControl`]: where a CPU's data begin.
pub const CONTROL: usize = 3 * PAGE;
/// Smallest size of a sub-buffer, bytes. The model checker has smaller ones, to come round sooner.
pub const MIN_SUB_BUFFER: usize = if cfg!(loom) { 128 } else { 256 };
/// Largest size of a sub-buffer, bytes: an offset in one fits 30 bits.
pub const MAX_SUB_BUFFER: usize = 1 << 30;
/// Most slots a buffer can have.
pub const MAX_SUB_BUFFERS: usize = if cfg!(loom) { 4 } else { 256 };
/// Bytes at the start of every sub-buffer that hold its [`SubBufferHeader`]; events follow.
pub const SUB_BUFFER_HEADER: usize = 64;
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
    /// The same without locks: all writers of a buffer stay on one CPU, where interrupts nest.
    Local = 3,
}

impl Protocol {
    /// The protocol with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Publish, Self::Smp, Self::Local].into_iter().find(|p| *p as u32 == number)
    }
}

/// What a full buffer loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// The new event.
    Discard = 1,
    /// The oldest sub-buffer (the papers' flight recorder mode).
    Overwrite = 2,
}

impl Mode {
    /// The mode with this number, if there is one.
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Discard, Self::Overwrite].into_iter().find(|m| *m as u32 == number)
    }
}

/// The clock of a recording's time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Clock {
    /// The processor's time stamp counter, in cycles; the kernel's trace clock `x86-tsc` reads the same
    /// counter.
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

/// `state` while events are recorded.
pub const STATE_OPEN: u32 = 1;
/// `state` once the recorder has stopped: writers that notice switch their sites off.
pub const STATE_CLOSED: u32 = 2;

/// First page of a region.
#[cfg_attr(not(loom), repr(C, align(64)))]
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
    /// Number of every buffer's first sub-buffer.
    pub origin: u64,
    /// A [`Mode`].
    pub mode: u32,
    /// [`STATE_OPEN`] or [`STATE_CLOSED`].
    pub state: AtomicU32,
    /// The clock's frequency, Hz; 0 until the recorder has stored it. For a reader that finds the region
    /// without its recording.
    pub frequency: AtomicU64,
    /// Real time at which the clock would have shown 0, as in the recording's metadata: whole seconds since
    /// 1970, an `i64`,
    pub offset_seconds: AtomicU64,
    /// and cycles.
    pub offset_cycles: AtomicU64,
    /// One bit per major class ([`crate::schema::MAJORS`]), which writers test for each event: classes
    /// without their bit are disabled (002, section 3.4; K42's mask word). 0 while the recording is paused.
    /// Only the recorder changes it.
    pub majors: AtomicU64,
    /// Overwrite mode: changes when a program writes an event of a class that has no id yet
    /// ([`crate::first`]). The recorder polls it and then asks for the class.
    pub news: AtomicU64,
}

/// The words of one CPU's buffer that change. Each group has a cache line of its own.
#[cfg_attr(not(loom), repr(C, align(64)))]
pub struct CpuControl {
    /// Write position. `Publish`: the one word that commits an event. `Smp`, `Local`: the paper's write
    /// count.
    pub head: AtomicU64,
    /// `Smp`: lets the next writer see that it need not wait for the clock ([`Last`]).
    pub last: AtomicU64,
    _pad0: [u64; 6],
    /// Position up to which the consumer has released (the paper's read count); its physical part is
    /// meaningless.
    pub consumed: AtomicU64,
    _pad1: [u64; 7],
    /// Events lost, cumulative, never reset; a counter per [`Loss`].
    pub lost: [AtomicU64; Loss::COUNT],
    _pad2: [u64; 8 - Loss::COUNT],
    /// The sub-buffer table; the first N entries are used.
    pub table: [TableEntry; MAX_SUB_BUFFERS],
    _pad3: [u64; (CONTROL - 192 - 32 * MAX_SUB_BUFFERS) / 8],
}

/// The newest event of a buffer: the low 40 bits of the write count after it, and the low 24 of its stamp. A
/// hint: it may describe an older event, as its position shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last(pub u64);

impl Last {
    const STAMP_BITS: u32 = 24;

    /// For an event with this stamp that ends at write count `head`.
    pub fn new(head: u64, stamp: u64) -> Self {
        Self(head << Self::STAMP_BITS | stamp & ((1 << Self::STAMP_BITS) - 1))
    }

    /// Whether the event that ends at `head` is this one and not younger than `stamp`, which was taken at
    /// most 2^23 cycles before that event or at any time after it. May return `false` if the event is older
    /// by more.
    pub fn allows(self, head: u64, stamp: u64) -> bool {
        let differs = self.0 ^ Self::new(head, stamp).0;
        let later = stamp.wrapping_sub(self.0) << (64 - Self::STAMP_BITS);
        differs >> Self::STAMP_BITS == 0 && later as i64 >= 0
    }
}

/// One slot of the ring: an entry of the sub-buffer table.
#[cfg_attr(not(loom), repr(C))]
pub struct TableEntry {
    /// Overwrite mode: number and physical index of the sub-buffer that the slot holds ([`Reference`]). The
    /// word in which writers claim the slot for the next lap, and the reader exchanges the sub-buffer with
    /// its own.
    pub reference: AtomicU64,
    /// `Smp`, `Local`: bytes committed into the slot since the beginning, all laps together (002, section 4,
    /// "commit count").
    pub committed: AtomicU64,
    /// `Smp`, `Local`: the commit count up to which no byte was missing when that was last known (002,
    /// section 4, "commit seq").
    pub commit_seq: AtomicU64,
    _pad: u64,
}

/// For the model checker, whose atomics are objects and not words.
#[cfg(loom)]
mod modelled {
    use super::*;

    fn zero() -> AtomicU64 {
        AtomicU64::new(0)
    }

    impl CpuControl {
        /// All zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            let entry = || TableEntry { reference: zero(), committed: zero(), commit_seq: zero(), _pad: 0 };
            Self {
                head: zero(),
                last: zero(),
                _pad0: [0; 6],
                consumed: zero(),
                _pad1: [0; 7],
                lost: core::array::from_fn(|_| zero()),
                _pad2: [0; 8 - Loss::COUNT],
                table: core::array::from_fn(|_| entry()),
                _pad3: [0; (CONTROL - 192 - 32 * MAX_SUB_BUFFERS) / 8],
            }
        }
    }

    impl SubBufferHeader {
        /// All zero.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Self {
            let (begin, end, sequence, used) = (zero(), zero(), zero(), zero());
            Self { begin, end, sequence, used, lost: zero(), before: zero(), _pad: [0; 2] }
        }
    }
}

/// A slot's word in overwrite mode, unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Number of the sub-buffer (the paper's tag; section 4.3.2).
    pub sequence: u64,
    /// Its index in the data.
    pub physical: usize,
}

impl Reference {
    /// Physical indices are below 2^9.
    const PHYSICAL_BITS: u32 = 9;

    /// Splits a slot's word.
    pub fn unpack(word: u64) -> Self {
        let physical = word as usize & ((1 << Self::PHYSICAL_BITS) - 1);
        Self { sequence: word >> Self::PHYSICAL_BITS, physical }
    }

    /// The word to store; [`Reference::unpack`] reverses it.
    pub fn pack(self) -> u64 {
        self.sequence << Self::PHYSICAL_BITS | self.physical as u64
    }
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
    /// The thread's id could not be known without a system call, which events never make.
    Unknown = 4,
    /// A forked child had no buffers of its own yet.
    Unready = 5,
    /// The thread does not write events any more (`tracewing::before_sandbox`).
    Silent = 6,
}

impl Loss {
    /// How many reasons there are.
    pub const COUNT: usize = 7;
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Full,
        Self::TooLarge,
        Self::Interrupted,
        Self::Unprotected,
        Self::Unknown,
        Self::Unready,
        Self::Silent,
    ];

    /// The reason in words, as summaries show it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Full => "buffer full",
            Self::TooLarge => "event too large",
            Self::Interrupted => "interrupted too often",
            Self::Unprotected => "thread not protected",
            Self::Unknown => "thread id not known",
            Self::Unready => "forked child without buffers yet",
            Self::Silent => "in a sandbox",
        }
    }
}

/// First bytes of every sub-buffer. `end` and `used` mean something only once `head` has passed the
/// sub-buffer.
#[cfg_attr(not(loom), repr(C))]
pub struct SubBufferHeader {
    /// Time at which the sub-buffer was opened; no event in it is older, and none in the one before is
    /// younger.
    pub begin: AtomicU64,
    /// Time at which it was closed; no event in it is younger.
    pub end: AtomicU64,
    /// Its number plus one; 0 in memory that was never opened.
    pub sequence: AtomicU64,
    /// Bytes used, this header included.
    pub used: AtomicU64,
    /// Sum of the CPU's loss counters when it was opened.
    pub lost: AtomicU64,
    /// Bytes of events in all sub-buffers before it.
    pub before: AtomicU64,
    _pad: [u64; 2],
}

#[cfg(not(loom))]
const _: () = {
    assert!(usize::BITS == 64, "sizes and positions of a region take 64 bits");
    assert!(size_of::<RegionHeader>() <= PAGE);
    assert!(size_of::<CpuControl>() == CONTROL);
    assert!(offset_of!(CpuControl, head) == 0);
    assert!(offset_of!(CpuControl, consumed) == 64);
    assert!(offset_of!(CpuControl, lost) == 128);
    assert!(offset_of!(CpuControl, table) == 192);
    assert!(size_of::<TableEntry>() == 32);
    assert!(size_of::<SubBufferHeader>() == SUB_BUFFER_HEADER);
    assert!(offset_of!(SubBufferHeader, begin) == 0);
    assert!(MIN_SUB_BUFFER > 2 * SUB_BUFFER_HEADER);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_allows_what_is_not_older() {
        let (head, stamp) = (0x12_3456_789a_bcde, 0xffff_ffff_ff00_0010);
        let last = Last::new(head, stamp);
        for later in [0, 1, 0xffff0, (1 << 23) - 1] {
            assert!(last.allows(head, stamp + later), "{later}");
        }
        for earlier in [1, 0x20, 1 << 22, 1 << 23] {
            assert!(!last.allows(head, stamp - earlier), "{earlier}");
        }
        assert!(!last.allows(head + 1, stamp) && !last.allows(head ^ (1 << 39), stamp));
    }
}
