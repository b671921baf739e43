//! loom finds the race in K42's scheme that paper 002, section 2, describes. Run by
//! `RUSTFLAGS="--cfg loom" cargo test -p bench --release --test k42`.
#![cfg(loom)]

use baseline::event::Event;
use baseline::geometry::Geometry;
use baseline::k42::K42;
use baseline::memory::Memory;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Two buffers that hold one event each: the second event of a buffer crosses into the next.
const GEOMETRY: Geometry = Geometry::new(2, 32);

/// What the check says when it finds the race.
const UNWRITTEN: &str = "the consumer reads a buffer that no writer has written";

/// The first value of each buffer's event; 0 before it is written.
struct Values([AtomicU64; 2]);

impl Memory for Values {
    // SAFETY: asks no more than the trait does, and needs less: these are atomics.
    unsafe fn put(&self, offset: usize, event: Event) {
        // Relaxed: the scheme's counters must publish it.
        self.0[offset / 32].store(event.values[0], Relaxed);
    }

    // SAFETY: likewise.
    unsafe fn fill(&self, _: usize) {}
}

fn buffers() -> Arc<K42<Values>> {
    Arc::new(K42::new(GEOMETRY, Values([AtomicU64::new(0), AtomicU64::new(0)])))
}

/// What a consumer does that finds a complete buffer.
fn consume(k42: &K42<Values>) {
    if let Some(number) = k42.completed() {
        let value = k42.memory().0[number as usize % 2].load(Relaxed);
        assert_ne!(value, 0, "{UNWRITTEN}");
        k42.consumed();
    }
}

#[test]
fn a_buffer_with_nothing_committed_looks_complete() {
    let found = catch_unwind(AssertUnwindSafe(|| {
        loom::model(|| {
            let k42 = buffers();
            let writers = [1, 2].map(|value| {
                let k42 = k42.clone();
                loom::thread::spawn(move || k42.log_event(value as u32, [value, value]))
            });
            consume(&k42);
            for writer in writers {
                writer.join().unwrap();
            }
        });
    }));
    let panic = found.expect_err("loom has not found the race");
    let message = panic.downcast_ref::<String>().map_or("", String::as_str);
    assert!(message.contains(UNWRITTEN), "loom found something else: {message}");
}

/// The check itself is right: as long as no writer is between reservation and commit, the consumer reads
/// what was written, in every interleaving with the writer that comes after.
#[test]
fn a_buffer_with_late_commits_is_read_whole() {
    loom::model(|| {
        let k42 = buffers();
        k42.log_event(1, [1, 1]);
        let writer = {
            let k42 = k42.clone();
            loom::thread::spawn(move || k42.log_event(2, [2, 2]))
        };
        consume(&k42);
        writer.join().unwrap();
        assert_eq!(k42.memory().0[1].load(Relaxed), 2);
    });
}
