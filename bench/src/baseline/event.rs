//! The event that every scheme writes: tracewing's own with two `u64`, to the byte.

/// Bytes of an event: header, thread, payload.
pub const LENGTH: usize = 28;

/// An event class's number; any would do.
const ID: u64 = 1;

/// What a writer stores and a reader gets back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Low half of the time stamp, then 16 bits of id and 16 of length.
    pub header: u64,
    /// The thread that wrote it.
    pub tid: u32,
    /// Its payload.
    pub values: [u64; 2],
}

impl Event {
    /// An event at a time, in cycles.
    #[inline(always)]
    pub fn at(stamp: u64, tid: u32, values: [u64; 2]) -> Self {
        let header = (stamp & 0xffff_ffff) | ID << 32 | (LENGTH as u64) << 48;
        Self { header, tid, values }
    }
}

/// The time stamp counter, in cycles.
#[inline(always)]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has the instruction, and Linux leaves it to user space.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    compile_error!("the baselines are written for x86-64");
}
