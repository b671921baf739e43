//! The buffers that a process currently writes to: the words that the event path reads inside its sequence.
//!
//! One [`Attachment`] serves all threads of a process. It is stored in memory that a forked child sees as
//! zeroes (`MADV_WIPEONFORK`), so a child is detached by construction until it attaches itself. Attaching
//! stores all other words first and the key last; detaching clears the key, and then restarts every thread
//! that is inside a sequence (`membarrier`, `PRIVATE_EXPEDITED_RSEQ`), which finds the key gone.

#[cfg(all(target_arch = "x86_64", not(loom)))]
use core::mem::offset_of;
use core::sync::atomic::compiler_fence;

use tracewing_abi::region::{MIN_SUB_BUFFER, Protocol};

use crate::Region;
use crate::sync::Ordering::*;
use crate::sync::{AtomicU32, AtomicU64};

/// The buffers of a process. All zero means detached.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Attachment {
    key: AtomicU64,
    base: AtomicU64,
    stride: AtomicU64,
    sub_buffer_mask: AtomicU64,
    data_mask: AtomicU64,
    sub_buffer_bits: AtomicU64,
    cpus: AtomicU32,
}

/// The offsets at which the sequences read these words.
#[cfg(all(target_arch = "x86_64", not(loom)))]
impl Attachment {
    pub(crate) const KEY: usize = offset_of!(Attachment, key);
    pub(crate) const BASE: usize = offset_of!(Attachment, base);
    pub(crate) const STRIDE: usize = offset_of!(Attachment, stride);
    pub(crate) const SUB_BUFFER_MASK: usize = offset_of!(Attachment, sub_buffer_mask);
    pub(crate) const DATA_MASK: usize = offset_of!(Attachment, data_mask);
    pub(crate) const SUB_BUFFER_BITS: usize = offset_of!(Attachment, sub_buffer_bits);
    pub(crate) const CPUS: usize = offset_of!(Attachment, cpus);
}

impl Attachment {
    /// Detached, with all words zero.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            key: AtomicU64::new(0),
            base: AtomicU64::new(0),
            stride: AtomicU64::new(0),
            sub_buffer_mask: AtomicU64::new(0),
            data_mask: AtomicU64::new(0),
            sub_buffer_bits: AtomicU64::new(0),
            cpus: AtomicU32::new(0),
        }
    }

    /// An attachment to no region.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The key of the current attachment; 0 while detached.
    pub fn key(&self) -> u64 {
        self.key.load(Acquire) // with the release in `attach`: the other words are those of this key
    }

    /// Largest event that the attached region takes, bytes
    /// ([`tracewing_abi::region::Geometry::largest_event`]); a small value while detached.
    pub fn largest_event(&self) -> usize {
        let bytes = self.sub_buffer_mask.load(Relaxed) as usize + 1;
        (bytes.max(MIN_SUB_BUFFER) / 2).min(u16::MAX as usize)
    }

    /// Attaches the process to `region` under a key that no earlier attachment used; a forked child must not
    /// reuse its parent's. Several threads may do this at the same time for the same region: one key wins,
    /// the other words are equal. Returns the key in force.
    ///
    /// # Panics
    /// `key` is 0, or the region's protocol is not [`Protocol::Publish`].
    pub fn attach(&self, region: &Region, key: u64) -> u64 {
        assert!(key != 0, "key 0 means detached");
        assert!(region.protocol() == Protocol::Publish, "only Publish reads the attachment");
        let geometry = region.geometry();
        let mask = geometry.sub_buffer_bytes() as u64 - 1;
        self.base.store(region.control_address(0) as u64, Relaxed);
        self.stride.store(geometry.stride() as u64, Relaxed);
        self.sub_buffer_mask.store(mask, Relaxed);
        self.data_mask.store(geometry.data_bytes() as u64 - 1, Relaxed);
        self.sub_buffer_bits.store(!mask, Relaxed);
        self.cpus.store(geometry.cpus() as u32, Relaxed);
        // Release: a thread that reads this key (`key`, or the sequence's first load) reads the words above.
        match self.key.compare_exchange(0, key, Release, Acquire) {
            Ok(_) => key,
            Err(current) => current,
        }
    }

    /// Detaches the process. A thread may still commit one event into the old buffers until the caller has
    /// restarted all sequences (`membarrier`).
    pub fn detach(&self) {
        self.key.store(0, SeqCst); // partner: the caller's membarrier, after which every sequence finds the key gone
        compiler_fence(SeqCst); // keeps the store before that call
    }
}
