//! Maps keyed by numbers from a trace: a multiplication per look-up, with a random seed per process, so that
//! no trace can be crafted in which all numbers collide.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map whose keys are numbers.
pub(super) type Map<K, V> = HashMap<K, V, Seed>;

#[derive(Debug, Clone)]
pub(super) struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Seed(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for Seed {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded(self.0)
    }
}

/// Both halves of a product, folded: each bit of it depends on the number.
pub(super) struct Folded(u64);

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(number ^ self.0) * 0x9E37_79B9_7F4A_7C15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_i32(&mut self, number: i32) {
        self.write_u32(number as u32);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
