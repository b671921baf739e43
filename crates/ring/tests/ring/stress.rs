//! Writers of every protocol and a reader at full speed, in either mode: loads with random numbers in them,
//! for tests that take a second and for soak runs that take hours. A load panics when an invariant does not
//! hold; the caller prints its seed.
//!
//! - [`threads`]: one process; threads that stay, migrate freely or are moved around, signal handlers that
//!   nest, a reader that is replaced, snapshots.
//! - [`processes`]: writers and readers that are stopped and killed.
//! - [`hotplug`]: CPUs that come and go.

pub mod hotplug;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stress::processes::{kill_readers, kill_writers};
    use crate::stress::threads::{Load, Reading};

    /// Prints a line for the reader of a run's output, with the seed in case of a failure.
    fn report<T: std::fmt::Debug>(what: &str, shape: Shape, totals: T) {
        println!("{what}, {shape:?}: {totals:?}");
    }

    #[test]
    fn threads_and_signals() {
        for kind in 0..KINDS.len() {
            for seed in 0..6 {
                let mut random = Random(seed);
                let shape = any_shape(kind, &mut random);
                let load = Load { has_signals: seed % 2 == 0, ..Load::any(shape, &mut random, 10_000) };
                println!("{shape:?} {load:?}");
                report("threads", shape, threads::run(shape, load));
            }
        }
    }

    #[test]
    fn two_events_to_a_sub_buffer_and_counters_that_wrap() {
        for kind in KINDS {
            let shape = Shape { origin: NEAR_WRAP, ..Shape::new(kind, 2, 256) };
            for reading in [Reading::Consume, Reading::Restart, Reading::Snapshots] {
                if reading == Reading::Snapshots && shape.mode != tracewing_abi::region::Mode::Overwrite {
                    continue;
                }
                let load = Load {
                    seed: 5,
                    threads: 3,
                    each: 10_000,
                    is_large: true,
                    has_signals: true,
                    is_pushed: false,
                    has_hotplug: false,
                    reading,
                };
                report("large", shape, threads::run(shape, load));
            }
        }
    }

    #[test]
    fn killed_and_stopped_writers() {
        for kind in 0..KINDS.len() {
            let mut random = Random(kind as u64);
            let shape = any_shape(kind, &mut random);
            report("killed", shape, kill_writers(shape, &mut random, 16));
        }
    }

    #[test]
    fn killed_and_stopped_readers() {
        for kind in 0..KINDS.len() {
            let mut random = Random(kind as u64);
            let shape = any_shape(kind, &mut random);
            report("readers", shape, kill_readers(shape, &mut random, 16, 30_000));
        }
    }
}
