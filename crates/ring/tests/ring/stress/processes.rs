//! Writers and readers that are processes: stopped, killed, replaced.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::*};
use std::thread;
use std::time::Duration;

use tracewing_abi::event::{CONTEXT, HEADER};
use tracewing_abi::region::{MAX_CPUS, Mode, Protocol};

use crate::books::{Books, EVENTS, Totals, WRITERS};
use crate::collector::Collector;
use crate::emitter::{Emitter, Shape};
use crate::events::{PINNED, SMALLEST};
use crate::machine::{self, Child, Random, Shared};

/// Threads of a process that writes with `Smp`.
const THREADS: usize = 3;

/// A process that writes until it is killed, or has written `each` events per thread: one thread with
/// `Publish` and `Local`, several with `Smp`.
fn writer(emitter: &Emitter, books: &Books, first: usize, each: u32) -> Child {
    let protocol = emitter.shape().protocol;
    let cpus = machine::usable_cpus();
    let threads = if protocol == Protocol::Smp { THREADS } else { 1 };
    Child::new(|| {
        let write = |index: usize| {
            let cpu = cpus[index % cpus.len()];
            if protocol == Protocol::Local {
                machine::run_on(&[cpu]);
            }
            let id = (first + index + 1) as u32 | if protocol == Protocol::Publish { 0 } else { PINNED };
            let book = books.open(first + index, id);
            emitter.enter(id);
            for _ in 0..each {
                if !book.emit(emitter, cpu) {
                    break;
                }
            }
        };
        thread::scope(|scope| {
            (1..threads).for_each(|index| {
                scope.spawn(move || write(index));
            });
            write(0);
        });
        // It must be killed, even if it has finished before.
        if each > EVENTS {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        }
        0
    })
}

/// Kills writers at random moments while a reader runs. With `Publish` they share the buffers, and a killed
/// writer is replaced; with the other protocols the buffers are read to their end after their process died,
/// and the next process gets new ones. `None` where the machine lacks what the protocol needs.
pub fn kill_writers(shape: Shape, random: &mut Random, kills: usize) -> Option<Totals> {
    let mut totals = Totals::default();
    let together = if shape.protocol == Protocol::Publish { 2 } else { 1 };
    let rounds = kills.div_ceil(together);
    const ROUNDS: usize = WRITERS / THREADS / 2;
    // With `Publish` the same buffers serve several rounds.
    let rounds_each = if shape.protocol == Protocol::Publish { ROUNDS } else { 1 };
    for round in (0..rounds).step_by(rounds_each) {
        let emitter = Emitter::new(shape)?;
        let books = Books::new();
        let mut collector = Collector::new(emitter.region());
        let (mut killed, mut stops) = (0, 0);
        for round in 0..rounds_each.min(rounds - round) {
            let children: Vec<Child> = (0..together)
                .map(|child| writer(&emitter, &books, round * together + child, u32::MAX))
                .collect();
            let mine = |index: usize| {
                let threads = if shape.protocol == Protocol::Smp { THREADS } else { together };
                books.all().filter(move |book| {
                    let writer = (book.writer.load(Relaxed) & !PINNED) as usize - 1;
                    (index..index + threads).contains(&writer)
                })
            };
            let enough = 1 + random.below(2000) as u32;
            let first = round * together;
            while mine(first).count() < together || mine(first).any(|book| book.ended() < enough) {
                assert!(!children.iter().any(Child::has_ended), "a writer found something wrong");
                collector.drain(random.one_in(2));
                if random.one_in(64) {
                    children[0].stop_while(|| {
                        collector.drain(true);
                    });
                    stops += 1;
                }
            }
            children.into_iter().for_each(Child::kill);
            killed += if shape.protocol == Protocol::Smp { THREADS } else { together } as u64;
            totals.kills += together as u64;
        }
        collector.drain(true);
        let mut hidden = 0;
        if shape.protocol == Protocol::Publish {
            assert!(collector.is_drained(), "what a dead process leaves can be read at once");
        } else {
            for cpu in 0..emitter.region().geometry().cpus() {
                let (_, unfinished) = collector.finalise(cpu);
                totals.unfinished += unfinished.len() as u64;
                hidden += unfinished.iter().sum::<u64>();
            }
        }
        totals += Totals { stops, ..books.balance(&collector, killed, hidden) };
    }
    Some(totals)
}

/// The results that a reading process leaves.
struct Readings {
    /// How often each event was read.
    seen: [[AtomicU8; EVENTS as usize]; THREADS],
    /// Bytes and sub-buffers that it and its predecessors found overwritten, per CPU.
    bytes: [AtomicU64; MAX_CPUS],
    sub_buffers: [AtomicU64; MAX_CPUS],
    is_over: AtomicBool,
}

fn reader(emitter: &Emitter, readings: &Readings, seed: u64) -> Child {
    Child::new(|| {
        let region = emitter.region();
        let mut collector = Collector::new(region);
        let earlier =
            |cpu: usize| (readings.bytes[cpu].load(Relaxed), readings.sub_buffers[cpu].load(Relaxed));
        let earlier: Vec<_> = (0..region.geometry().cpus()).map(earlier).collect();
        let mut random = Random(seed);
        loop {
            let is_last = readings.is_over.load(Acquire);
            for (cpu, (bytes, sub_buffers)) in earlier.iter().enumerate() {
                collector.drain_with(cpu, is_last || random.one_in(2), |events, overwritten| {
                    for event in events {
                        let writer = (event.writer & !PINNED) as usize - 1;
                        readings.seen[writer][event.counter as usize].fetch_add(1, Relaxed);
                    }
                    readings.bytes[cpu].store(bytes + overwritten.bytes, Relaxed);
                    readings.sub_buffers[cpu].store(sub_buffers + overwritten.sub_buffers, Relaxed);
                });
            }
            if is_last {
                assert!(collector.is_drained());
                return 0;
            }
        }
    })
}

/// Stops the writers and the reader now and then, kills the reader, and starts another one on the same
/// buffers.
pub fn kill_readers(shape: Shape, random: &mut Random, kills: usize, each: u32) -> Option<Totals> {
    let emitter = Emitter::new(shape)?;
    let books = Books::new();
    // SAFETY: atomics, for which zero will do.
    let readings: Shared<Readings> = unsafe { Shared::zeroed() };
    let first = writer(&emitter, &books, 0, each);
    let mut reading = reader(&emitter, &readings, random.next());
    let (mut killed, mut stops) = (0, 0);
    for _ in 0..kills {
        thread::sleep(Duration::from_micros(random.below(3000) as u64));
        for child in [&first, &reading] {
            if random.one_in(2) {
                child.stop_while(|| thread::sleep(Duration::from_micros(random.below(1000) as u64)));
                stops += 1;
            }
        }
        assert!(!reading.has_ended(), "a reader found something wrong");
        reading.kill();
        killed += 1;
        reading = reader(&emitter, &readings, random.next());
    }
    assert_eq!(first.code(), 0);
    readings.is_over.store(true, Release);
    assert_eq!(reading.code(), 0, "the last reader found something wrong");
    let most = (shape.bytes / (HEADER + CONTEXT + SMALLEST)) as u64;
    let (mut totals, mut twice) = (Totals { kills: killed, stops, restarts: killed, ..Totals::default() }, 0);
    for book in books.all() {
        let writer = (book.writer.load(Relaxed) & !PINNED) as usize - 1;
        for counter in 0..book.ended() {
            let seen = u64::from(readings.seen[writer][counter as usize].load(Relaxed));
            assert!(seen == 0 || !book.is_lost(counter), "read and lost: event {counter} of {writer}");
            assert!(seen <= killed + 1);
            twice += seen.saturating_sub(1);
            totals.emitted += 1;
            totals.read += seen.min(1);
            totals.lost += u64::from(book.is_lost(counter));
            totals.overwritten += u64::from(seen == 0 && !book.is_lost(counter));
        }
    }
    let sum = |words: &[AtomicU64]| words.iter().map(|word| word.load(Relaxed)).sum::<u64>();
    totals.sub_buffers = sum(&readings.sub_buffers);
    assert!(twice <= killed * most, "{twice} events were read twice, by {killed} readers that were killed");
    match shape.mode {
        Mode::Discard => assert_eq!(totals.overwritten, 0, "vanished: {totals:?}"),
        Mode::Overwrite => {
            let bytes = sum(&readings.bytes);
            let least = totals.overwritten * (HEADER + CONTEXT + SMALLEST) as u64;
            assert!(least <= bytes, "{bytes} bytes overwritten, but {totals:?}");
        }
    }
    Some(totals)
}
