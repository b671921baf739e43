//! Protocol `Publish`: the sequences' steps, with a possible abort before each, and the production reader.

use std::cell::Cell;
use std::sync::Arc;

use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use tracewing_abi::region::Protocol;
use tracewing_ring::publish::model::{Fate, Processor, Task, event, open};
use tracewing_ring::publish::{Opened, Outcome};
use tracewing_ring::{Attachment, EnableWord, Reader, Region, UpTo};
use tracewing_units::{Cpu, Tid};

use crate::support::{self, BEFORE, Check, check, payload, region};

const KEY: u64 = 7;
/// Attempts of a writer, as in the agent.
const ATTEMPTS: u32 = 6;

struct World {
    region: Region,
    processors: Vec<Processor>,
    attachment: Attachment,
}

impl World {
    fn new(overwriting: bool, cpus: usize, origin: u64) -> Arc<Self> {
        let region = region(Protocol::Publish, overwriting, cpus, origin);
        let attachment = Attachment::new();
        attachment.attach(&region, KEY);
        let processors = (0..cpus).map(|_| Processor::default()).collect();
        Arc::new(Self { region, processors, attachment })
    }

    fn task<'a>(&'a self, tid: Tid, fate: &'a dyn Fn() -> Fate) -> Task<'a> {
        Task {
            processors: &self.processors,
            on: 0,
            attachment: &self.attachment,
            key: KEY,
            tid,
            enabled: None,
            fate,
        }
    }
}

/// Whether the event was written; `None` if the task was killed.
fn emit(world: &World, task: &mut Task<'_>, number: u64) -> Option<bool> {
    let payload = payload(task.tid.0 as u64, number);
    for _ in 0..ATTEMPTS {
        match event(task, &world.region, 1, &payload, false)? {
            Outcome::Written => return Some(true),
            Outcome::Full { cpu, head } => match open(task, &world.region, cpu, head)? {
                Opened::Retry => {}
                Opened::Full => return Some(false),
                Opened::Interrupted => break,
            },
            Outcome::Interrupted => break,
            other => panic!("{other:?}"),
        }
    }
    Some(false)
}

fn proceed() -> Fate {
    Fate::Continue
}

/// Returns the number of events written.
fn emit_all(world: &World, tid: Tid, count: u64) -> u64 {
    let mut task = world.task(tid, &proceed);
    (0..count).filter(|number| emit(world, &mut task, *number).unwrap()).count() as u64
}

/// Two writers on one CPU and a reader on another; the reader reads `looks` times meanwhile, and once at the
/// end.
fn writers_and_reader(
    world: Arc<World>,
    counts: [u64; 2],
    looks: u32,
    partial: bool,
) -> (Check, Reader, u64) {
    assert_eq!(emit_all(&world, Tid(3), BEFORE), BEFORE);
    let (first, second) = (world.clone(), world.clone());
    let first = thread::spawn(move || emit_all(&first, Tid(1), counts[0]));
    let second = thread::spawn(move || emit_all(&second, Tid(2), counts[1]));
    let looking = support::look_meanwhile(&world.region, looks, partial);
    let written = first.join().unwrap() + second.join().unwrap();
    let (mut reader, mut check) = looking.join().unwrap();
    check.drain(&mut reader);
    (check, reader, BEFORE + written)
}

#[test]
fn discard() {
    check(2, || {
        let world = World::new(false, 1, 0);
        let (check, _, written) = writers_and_reader(world, [1, 1], 2, true);
        assert_eq!(check.events, written);
    });
}

/// Two writers find the same sub-buffer full.
#[test]
fn two_open_the_next_one() {
    check(2, || {
        let world = World::new(false, 1, 0);
        assert_eq!(emit_all(&world, Tid(3), 3), 3);
        let (first, second) = (world.clone(), world.clone());
        let first = thread::spawn(move || emit_all(&first, Tid(1), 1));
        let second = thread::spawn(move || emit_all(&second, Tid(2), 1));
        let written = 3 + first.join().unwrap() + second.join().unwrap();
        let (mut reader, mut check) = (support::reader(&world.region, 0), Check::default());
        check.drain(&mut reader);
        assert_eq!(check.events, written);
    });
}

#[test]
fn discard_below_the_wrap() {
    check(2, || {
        let world = World::new(false, 1, u64::MAX);
        let (check, _, written) = writers_and_reader(world, [1, 1], 2, true);
        assert_eq!(check.events, written);
    });
}

#[test]
fn overwrite() {
    check(2, || {
        let world = World::new(true, 1, 0);
        let (check, reader, written) = writers_and_reader(world, [2, 1], 1, false);
        assert_eq!(check.events + check.overwritten_events(), written);
        assert_eq!(reader.overwritten().sub_buffers, check.overwritten.sub_buffers);
    });
}

#[test]
fn overwrite_below_the_wrap() {
    check(2, || {
        let world = World::new(true, 1, u64::MAX - 1);
        let (check, _, written) = writers_and_reader(world, [2, 1], 1, false);
        assert_eq!(check.events + check.overwritten_events(), written);
    });
}

/// A snapshot while a writer continues, and another at the end: each is a stretch without gaps up to the
/// newest event.
#[test]
fn snapshots() {
    check(2, || {
        let world = World::new(true, 1, 0);
        let writer = world.clone();
        emit_all(&world, Tid(1), BEFORE);
        let writer = thread::spawn(move || emit_all(&writer, Tid(2), 2));
        let mut reader = support::reader(&world.region, 0);
        let snapshot = |reader: &mut Reader| {
            let mut check = Check::default();
            reader.rewind();
            while let Some(chunk) = reader.next(UpTo::LastWritten).unwrap() {
                check.look(reader, &chunk);
                reader.give_back(chunk);
            }
            check
        };
        let first = thread::spawn(move || {
            snapshot(&mut reader);
            reader
        });
        let written = BEFORE + writer.join().unwrap();
        let mut reader = first.join().unwrap();
        let last = snapshot(&mut reader);
        assert_eq!(last.events + last.overwritten_events(), written);
        assert!(last.events > 3, "both slots are still there");
    });
}

/// The current sub-buffer is overwritten while the reader copies it.
#[test]
fn a_copy_that_is_overwritten() {
    check(1, || {
        let world = World::new(true, 1, 0);
        let before = emit_all(&world, Tid(1), 4);
        let writer = world.clone();
        let writer = thread::spawn(move || {
            let mut task = writer.task(Tid(2), &proceed);
            // The short way around the ring: sub-buffers may be left before they are full.
            for _ in 0..2 {
                let head = writer.region.buffer(0).control().head.load(Relaxed);
                assert_eq!(open(&mut task, &writer.region, Cpu(0), head), Some(Opened::Retry));
            }
            emit(&writer, &mut task, 0)
        });
        let looking = support::look_meanwhile(&world.region, 2, true);
        assert_eq!(writer.join().unwrap(), Some(true));
        let (mut reader, mut check) = looking.join().unwrap();
        check.drain(&mut reader);
        assert_eq!(check.events + check.overwritten_events(), before + 1);
    });
}

/// A writer is moved to the other CPU, or killed, before each step.
#[test]
fn migration_and_death() {
    for (overwriting, at) in [false, true].into_iter().flat_map(|mode| (0..26).map(move |at| (mode, at))) {
        for fate in [Fate::Migrate(1), Fate::Die] {
            check(1, move || {
                let world = World::new(overwriting, 2, 0);
                let (moving, other) = (world.clone(), world.clone());
                let moving = thread::spawn(move || {
                    let steps = Cell::new(0);
                    let fates = || match steps.replace(steps.get() + 1) == at {
                        true => fate,
                        false => Fate::Continue,
                    };
                    let mut task = moving.task(Tid(1), &fates);
                    (0..3).map_while(|number| emit(&moving, &mut task, number)).filter(|done| *done).count()
                });
                let other = thread::spawn(move || emit_all(&other, Tid(2), 2));
                let mut readers = [0, 1].map(|cpu| (support::reader(&world.region, cpu), Check::default()));
                readers.iter_mut().for_each(|(reader, check)| check.one(reader, true));
                let written = moving.join().unwrap() as u64 + other.join().unwrap();
                readers.iter_mut().for_each(|(reader, check)| check.drain(reader));
                let seen: u64 =
                    readers.iter().map(|(_, check)| check.events + check.overwritten_events()).sum();
                assert_eq!(seen, written);
            });
        }
    }
}

/// Detaching: after the key's store and a `membarrier`, no thread writes to the old region.
#[test]
fn detach() {
    check(3, || {
        let world = World::new(false, 1, 0);
        let writer = world.clone();
        let writer = thread::spawn(move || {
            let mut task = writer.task(Tid(1), &proceed);
            matches!(open(&mut task, &writer.region, Cpu(0), 0), Some(Opened::Retry))
                && event(&mut task, &writer.region, 1, &payload(1, 0), false) == Some(Outcome::Written)
        });
        world.attachment.detach();
        world.processors.iter().for_each(Processor::interrupt);
        let mut reader = support::reader(&world.region, 0);
        let mut check = Check::default();
        check.drain(&mut reader);
        let written = writer.join().unwrap();
        assert_eq!(check.events, u64::from(written), "what was written was written before");
        assert!(reader.next(UpTo::LastWritten).unwrap().is_none());
    });
}

/// Disabling a class: after its word is cleared and a `membarrier`, no event of the class is committed, even
/// by a task that had looked before.
#[test]
fn switching_off() {
    check(3, || {
        let world = World::new(false, 1, 0);
        let enabled = Arc::new(EnableWord::of(1, 0));
        let (writer, shared) = (world.clone(), enabled.clone());
        let writer = thread::spawn(move || {
            let mut task = Task { enabled: Some(&shared), ..writer.task(Tid(1), &proceed) };
            shared.id() == 1
                && matches!(open(&mut task, &writer.region, Cpu(0), 0), Some(Opened::Retry))
                && event(&mut task, &writer.region, 1, &payload(1, 0), false) == Some(Outcome::Written)
        });
        enabled.clear();
        world.processors.iter().for_each(Processor::interrupt);
        let mut reader = support::reader(&world.region, 0);
        let mut check = Check::default();
        check.drain(&mut reader);
        let written = writer.join().unwrap();
        assert_eq!(check.events, u64::from(written), "what was written was written before");
        assert!(reader.next(UpTo::LastWritten).unwrap().is_none());
    });
}
