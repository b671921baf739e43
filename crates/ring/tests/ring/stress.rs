//! Writers of every protocol and a reader at full speed, in either mode: loads with random numbers in them, for tests
//! that take a second and for soak runs that take hours. A load panics when an invariant does not hold; its seed is
//! in whatever the caller prints.
//!
//! - [`threads`]: one process; threads that stay, roam or are pushed around, signal handlers that nest, a reader that is
//!   replaced, snapshots.
//! - [`processes`]: writers and readers that are stopped and killed.

pub mod processes;
pub mod threads;

use crate::emitter::{KINDS, NEAR_WRAP, Shape};
use crate::machine::Random;

/// A shape of this kind, small sub-buffers more often than not.
pub fn any_shape(kind: usize, random: &mut Random) -> Shape {
    const SIZES: [(usize, usize); 6] = [(2, 256), (4, 256), (8, 512), (4, 1024), (4, 4096), (2, 65536)];
    let (sub_buffers, bytes) = SIZES[random.below(SIZES.len())];
    let origin = if random.one_in(2) { NEAR_WRAP } else { 0 };
    Shape { origin, ..Shape::new(KINDS[kind % KINDS.len()], sub_buffers, bytes) }
}
