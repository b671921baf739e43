//! Protocol `Publish` between processes that share the region and are killed at random moments.

use std::sync::atomic::{AtomicU32, Ordering::*};

use crate::collector::Collector;
use crate::machine::{self, Random, Shared};
use crate::publisher::Publisher;

/// A child's own account: events begun, and events ended.
#[derive(Default)]
struct Progress {
    begun: AtomicU32,
    ended: AtomicU32,
}

fn emit_until(publisher: &Publisher, writer: u32, count: u32, progress: &Progress) -> i32 {
    publisher.enter(writer as i32);
    for counter in 0..count {
        progress.begun.store(counter + 1, Relaxed);
        let _ = publisher.emit_any(writer, counter);
        progress.ended.store(counter + 1, Relaxed);
    }
    0
}

#[test]
fn processes_share_a_region() {
    let Some(publisher) = Publisher::new(4, 1024) else { return };
    let mut collector = Collector::new(publisher.region);
    // SAFETY: atomics, for which zero will do.
    let progress: Shared<[Progress; 4]> = unsafe { Shared::zeroed() };
    const EACH: u32 = 20_000;
    let mut children: Vec<i32> =
        (0..4).map(|i| machine::fork(|| emit_until(&publisher, i as u32 + 1, EACH, &progress[i]))).collect();
    while progress.iter().any(|child| child.ended.load(Relaxed) < EACH) {
        collector.drain(true);
    }
    children.drain(..).for_each(|pid| assert_eq!(machine::wait(pid), 0));
    collector.drain(true);
    assert_eq!(collector.read + collector.lost(), u64::from(4 * EACH));
    assert!(collector.read > 0);
}

#[test]
fn killed_writers_leave_nothing_garbled() {
    const ROUNDS: u32 = 150;
    let Some(publisher) = Publisher::new(4, 1024) else { return };
    let mut collector = Collector::new(publisher.region);
    let mut random = Random(11);
    let (mut at_least, mut at_most) = (0, 0);
    for round in 0..ROUNDS {
        // SAFETY: atomics, for which zero will do.
        let progress: Shared<[Progress; 2]> = unsafe { Shared::zeroed() };
        let children: Vec<i32> = (0..2)
            .map(|i| {
                let writer = 1 + 2 * round + i;
                machine::fork(|| emit_until(&publisher, writer, u32::MAX, &progress[i as usize]))
            })
            .collect();
        let enough = 1 + random.below(3000) as u32;
        while progress.iter().any(|child| child.ended.load(Relaxed) < enough) {
            collector.drain(random.below(2) == 0);
        }
        children.into_iter().for_each(machine::kill);
        collector.drain(true);
        assert!(collector.is_drained(), "what a dead process leaves can be read at once");
        for child in &*progress {
            at_least += u64::from(child.ended.load(Relaxed));
            at_most += u64::from(child.begun.load(Relaxed));
        }
    }
    let found = collector.read + collector.lost();
    assert!((at_least..=at_most).contains(&found), "{found} not in {at_least} to {at_most}");
    assert!(at_most - at_least <= u64::from(2 * ROUNDS));
}
