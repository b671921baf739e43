//! The production gate in all interleavings of its accesses (with a bound on preemptions): `RUSTFLAGS="--cfg
//! loom" cargo test --release -p tracewing-trigger --test loom`.

#![cfg(loom)]

#[path = "../src/gate.rs"]
mod gate;

use gate::{Gate, SHARDS};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A gate and a value that exists only while threads may be inside. loom fails if one thread changes it while
/// another looks.
struct Room {
    gate: Gate,
    inside: UnsafeCell<u32>,
}

// SAFETY: the gate keeps accesses to the cell apart; that is what is checked.
unsafe impl Sync for Room {}

impl Room {
    fn new() -> Arc<Self> {
        let room = Arc::new(Self { gate: Gate::new(), inside: UnsafeCell::new(0) });
        room.furnish(1);
        room
    }

    fn furnish(&self, what: u32) {
        // SAFETY: as above.
        self.inside.with_mut(|inside| unsafe { *inside = what });
        self.gate.open();
    }

    fn clear(&self) {
        self.gate.close();
        for shard in 0..SHARDS {
            while self.gate.count(shard) != 0 {
                thread::yield_now();
            }
        }
        // SAFETY: as above.
        self.inside.with_mut(|inside| unsafe { *inside = 0 });
    }

    fn visit(&self, shard: usize) -> Option<u32> {
        self.gate.enter(shard).then(|| {
            // SAFETY: as above.
            let seen = self.inside.with(|inside| unsafe { *inside });
            self.gate.leave(shard);
            seen
        })
    }
}

/// All interleavings with at most two unforced preemptions.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(2);
    builder.check(model);
}

fn visitors(shards: [usize; 2], visits: usize, closer: impl Fn(&Room) + Copy + Send + Sync + 'static) {
    check(move || {
        let room = Room::new();
        let threads = shards.map(|shard| {
            let room = Arc::clone(&room);
            thread::spawn(move || {
                for _ in 0..visits {
                    assert_ne!(room.visit(shard), Some(0), "no thread is inside once the room is cleared");
                }
            })
        });
        closer(&room);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn no_thread_is_inside_when_the_closer_continues() {
    visitors([0, 1], 1, Room::clear);
    visitors([0, 0], 1, Room::clear);
}

#[test]
fn a_room_that_opens_again_is_the_new_one() {
    visitors([0, 0], 1, |room| {
        room.clear();
        room.furnish(2);
    });
}

#[test]
fn a_thread_that_comes_again() {
    check(|| {
        let room = Room::new();
        let visitor = {
            let room = Arc::clone(&room);
            thread::spawn(move || {
                let seen = [room.visit(0), room.visit(0)];
                assert!(!seen.contains(&Some(0)));
                assert!(seen != [Some(2), Some(1)], "time does not go back");
            })
        };
        room.clear();
        room.furnish(2);
        visitor.join().unwrap();
    });
}
